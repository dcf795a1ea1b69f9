"""Reach: from noisy sums of users by item to an estimate with intervals, and a predicted error.

What the bound on one user's items takes off an item is a bias, and its size is measured by the same noise, in the books
of `tables.ItemReach`. Post-processing of noisy values.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np
from scipy import special

from ..arrays import Floats, Integers
from ..tables import BOOKS, FAR, GROUP_PART, UNIT, ItemReach
from .estimate import CONFIDENCE, Parameters, half_width
from .shrink import NoiseShape, Shrunk, shrink

__all__ = ["Books", "ReachEstimate", "Taken", "estimate_reach", "number_of_users"]

CORRECTION = 0.5
"""Of what the bound takes off an item in the mean, which is added back: heavy users have other items than the crowd,
but not wholly other ones. On real tables the whole overshoots and nothing falls short.
"""
LEFT = 0.85
"""What is then left of the bias in l1, for the predicted error. Few users may hold most of the bias: they have items of
their own, and are seldom seen.
"""
DOUBT = 2.5
"""Standard deviations of its own noise that *missing* is allowed to be off by in intervals."""
SEEN = 2.0
"""Standard deviations of its noise above which *missing* is added back."""
TYPICAL = 2.3, 2.5 * FAR
"""Items of users whom the bound scales down, and of those far above it, over the bound, if no histogram tells more."""
ROUGH = 0.3
"""How far a crowd's own figures may be off, relative to them, if they are compared with the books."""


@dataclass(frozen=True, eq=False)
class ReachEstimate:
    """How many users have each item, from noisy values only.

    counts: of users. standard_errors: of their noise. lower, upper: a CONFIDENCE interval for the table's own number,
    noise and bound included. users: how many there are, with a CONFIDENCE interval. left_out: how many users the bound
    takes off an item that all users have, likewise; None if it takes nothing off. predicted_l1_error: of all counts;
    predicted_errors: the part of each of them. groups: how many users each group has, likewise.
    """

    counts: Floats
    standard_errors: Floats
    lower: Floats
    upper: Floats
    users: tuple[float, float, float]
    left_out: tuple[float, float, float] | None
    predicted_l1_error: float
    predicted_errors: Floats
    groups: tuple[tuple[float, float, float], ...] = ()
    parameters: Parameters = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Taken:
    """What a bound takes off all items together, in users, in each crowd that is possible, and the crowds' weights;
    and what it takes off an item that all users have: by users near the bound, and far above it.
    """

    weights: Floats
    taken: Floats
    near: Floats
    far: Floats

    def given(self, near: float, far: float, error: float) -> Taken:
        """The same crowds, weighed by what noisy books say of them. A crowd's own figures are rough."""
        rough = [np.hypot(error, ROUGH * each) for each in (self.near, self.far)]
        away = (near - self.near) / rough[0], (far - self.far) / rough[1]
        logs = np.log(self.weights) - 0.5 * (away[0] ** 2 + away[1] ** 2) - np.log(rough[0] * rough[1])
        weights = np.exp(logs - logs.max())
        return replace(self, weights=weights / weights.sum())

    @property
    def mean(self) -> float:
        return float(self.weights @ self.taken)

    def error(self, noise: float, added: float) -> float:
        """The l1 error of all counts: noise, and what is left of the bias. What is added back is at least taken."""
        return float(self.weights @ np.hypot(noise, LEFT * np.maximum(self.taken, added)))


@dataclass(frozen=True)
class Books:
    """What the noisy books say, in users: kept, and missing in all and of users far above the bound. error: the
    standard deviation of each of the three coordinates that they are made of.
    """

    kept: float
    missing: float
    far: float
    error: float

    def widened(self, low: Floats, high: Floats, sums: ItemReach) -> tuple[Floats, Floats]:
        """Ends of intervals of what is kept, with what the bound may take off."""
        least, most = self.bias(low, high, FAR if sums.norm == "l1" else math.sqrt(FAR))
        return low + least, high + most

    def bias(self, low: Floats, high: Floats, ratio: float) -> tuple[Floats, Floats]:
        """Between what the bound may take off an item whose sum lies between `low` and `high`.

        A user who has it and is not far above the bound adds w >= 1 / ratio to its sum and lacks 1 - w <= (ratio - 1)
        w; all others lack at most `far`. So an item lacks at most (ratio - 1) of its sum and `far`, and never more than
        `missing`. The users who do not have it lack as much of what is kept beside its sum, and the item all the rest.
        """
        doubt = DOUBT * self.error
        most, far = max(self.missing, 0.0) + math.sqrt(2) * doubt, max(self.far, 0.0) + doubt
        up = np.minimum(most, (ratio - 1) * np.maximum(high, 0.0) + far)
        others = (ratio - 1) * np.maximum(self.kept + doubt - low, 0.0) + far
        return np.maximum(self.missing - math.sqrt(2) * doubt - others, 0.0), up


def estimate_reach(
    noisy: Integers, sums: ItemReach, taken: Taken | None, deviation: float, shape: NoiseShape, items: int
) -> ReachEstimate:
    first, weight, bound = BOOKS[sums.norm], sums.full_weight, sums.bound_on_items
    values = noisy.astype(np.float64)
    raw, noise = values[first : first + items] / weight, np.full(items, deviation / weight)
    users = number_of_users(values, sums, deviation)
    half = half_width(shape, noise)
    shrunk = shrink(raw, noise, shape)
    shrunk = _summing_up(shrunk, float(raw.sum()), math.sqrt(items) * float(noise[0]))
    low, high, added, left_out, books = raw - half, raw + half, np.zeros(items), None, None
    if bound < items:
        kept, near, far = (float(one) / sums.books for one in values[:3])
        books = Books(kept, near + far, far if FAR * bound < items else 0.0, deviation / sums.books)
        low, high = books.widened(low, high, sums)
        taken = _taken_by_books(sums, books, near, items) if taken is None else taken.given(near, far, books.error)
        added = _typical_bias(shrunk.means, taken.mean, books)
        doubt = math.sqrt(2) * float(special.ndtri((1 + CONFIDENCE) / 2)) * books.error
        missing = max(books.missing, 0.0)
        left_out = missing, max(books.missing - doubt, 0.0), max(books.missing + doubt, missing)
    predicted = by_noise = float(shrunk.spreads.sum())
    if books is not None and taken is not None:
        predicted = taken.error(by_noise, float(added.sum()))
    lower, upper = np.clip(low, 0.0, users[2]), np.clip(high, 0.0, users[2])
    counts = np.clip(shrunk.means + CORRECTION * added, lower, upper)
    by_bias = (predicted - by_noise) / max(float(counts.sum()), 1e-9)  # for each user who is counted
    return ReachEstimate(
        counts=counts,
        standard_errors=noise,
        lower=lower,
        upper=upper,
        users=users,
        left_out=left_out,
        predicted_l1_error=predicted,
        predicted_errors=shrunk.spreads + by_bias * counts,
        groups=_users_of_groups(values[first + items :], sums, deviation, shape, books, users[2]),
        parameters={"noise": shape, "max_items_per_user": bound},
    )


def _users_of_groups(
    values: Floats, sums: ItemReach, deviation: float, shape: NoiseShape, books: Books | None, most: float
) -> tuple[tuple[float, float, float], ...]:
    """How many users each group has, with an interval. The bound takes off a group what it takes off an item that the
    same users have.
    """
    weight = sums.full_weight // GROUP_PART
    raw, half = values / weight, half_width(shape, np.full(len(values), deviation / weight))
    low, high, found = raw - half, raw + half, raw
    if books is not None:
        low, high = books.widened(low, high, sums)
        if books.missing > SEEN * books.error:
            found = raw + np.minimum(np.maximum(raw, 0.0) * books.missing / max(books.kept, 1.0), books.missing)
    lower, upper = np.clip(low, 0.0, most), np.clip(high, 1.0, max(most, 1.0))
    value = np.clip(found, np.maximum(lower, 1.0), upper)
    return tuple(zip(value.tolist(), lower.tolist(), upper.tolist(), strict=True))


def _summing_up(shrunk: Shrunk, total: float, error: float) -> Shrunk:
    """Means that sum to no more than the noisy sums do together: that noisy counts below 0 become 0 makes each of them
    a little too large, and all of many items much.

    The sum of all is known with `error`, and is at least 0: the mean of a normal law that is cut off there.
    """
    ratio = max(total / error, -6.0)
    likely = total + error * math.exp(-(ratio**2) / 2) / math.sqrt(2 * math.pi) / float(special.ndtr(ratio))
    part = min(likely / max(float(shrunk.means.sum()), 1e-9), 1.0)
    return replace(shrunk, means=shrunk.means * part)


def _taken_by_books(sums: ItemReach, books: Books, near: float, items: int) -> Taken:
    """What the bound takes off all items, if only the books tell it."""
    parts = (near, books.far), TYPICAL
    lacking = [
        max(missing, 0.0) * min(times * sums.bound_on_items, items) for missing, times in zip(*parts, strict=True)
    ]
    return Taken(*(np.array([one]) for one in (1.0, sum(lacking), near, books.far)))


def _typical_bias(shrunk: Floats, taken: float, books: Books) -> Floats:
    """What the bound takes off each item if heavy users have it as often as others: at most `missing`, and nothing if
    that is not seen above its noise.
    """
    total = float(shrunk.sum())
    if total <= 0.0 or books.missing < SEEN * books.error:
        return np.zeros(len(shrunk))
    return np.minimum(shrunk * taken / total, books.missing)


def number_of_users(values: Floats, sums: ItemReach, deviation: float) -> tuple[float, float, float]:
    """How many users there are, with an interval: by the books, which everybody adds to alike; in l1 everybody adds
    UNIT in all too, which tells more if items are few.
    """
    ways = [(values[:3], sums.books)] if sums.books else []
    if sums.norm == "l1":
        ways.append((values, UNIT))
    added, each = min(ways, key=lambda way: math.sqrt(len(way[0])) / way[1])
    found, error = float(added.sum()) / each, math.sqrt(len(added)) * deviation / each
    half = float(special.ndtri((1 + CONFIDENCE) / 2)) * error * (1.05 if sums.norm == "l1" else 1.0)
    value = max(found, 1.0)
    return value, min(max(found - half, 0.0), value), max(found + half, value)
