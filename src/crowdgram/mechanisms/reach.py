"""Reach: how many users have each item, by plain noise on bounded sums, whose bound and noise are chosen privately.

A user with d items is scaled down to a bound L on items: to L / d of a weight in l1, for Laplace noise of scale L /
epsilon, or to sqrt(L / d) in l2, for Gaussian noise that grows as sqrt(L). What that takes off an item is a bias, and
its size is measured by the same noise (`tables.ItemReach`): *missing* is what an item loses that all users have. L and
the noise are chosen by predicted error, from noisy numbers of users by items.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
from scipy import special

from ..arrays import Floats, Integers
from ..privacy import Cost, Guarantee, LaplaceEvent, Looks, Ready, Reserve
from ..stages import Stage
from ..tables import BOOKS, FAR, MOST_ITEMS_PER_USER, UNIT, ItemReach, Norm, Presence, UsersByItems
from .costs import gaussian_way, items_between, pure_way
from .discovery import Finish
from .estimate import CONFIDENCE, Parameters, half_width
from .item_sizes import crowds_of_items
from .mechanism import PURE_LEAST, Searching, check_whole
from .pilot_queries import HISTOGRAM_UNIT, PilotQuery, looked_for
from .request import Request
from .shrink import NoiseShape, Shrunk, shrink
from .user_sizes import Bins

__all__ = ["ItemUsers", "ReachEstimate"]

FIRST = PilotQuery("users by items, first look", 0.01, HISTOGRAM_UNIT, grows=3.0, power=0.5)
SECOND = PilotQuery("users by items, second look", 0.05, HISTOGRAM_UNIT, grows=1.6, power=0.2)
"""Larger if items are few: a wrong bound is dearer beside the noise, and Gaussian noise, which pays for what is
reserved, is seldom the best.
"""

CORRECTION = 0.5
"""Of what the bound takes off an item in the mean, which is added back: heavy users have other items than the crowd,
but not wholly other ones. On real tables the whole overshoots and nothing falls short.
"""
RESIDUAL, LEFT = 0.6, 0.85
"""What is then left of the bias in l1, for the choice, and for the predicted error. Few users may hold most of the
bias: they have items of their own, and are seldom seen.
"""
LIGHT_BOOKS, LEAST_BOOKS, MOST_BOOKS = 0.5, 0.02, 0.05
"""Of UNIT, for the books in l1: LIGHT_BOOKS / bound, within these limits. They then have about the noise of items."""
SQUARE_BOOKS = 0.15
"""Of UNIT, for the books in l2: costs items a hundredth."""
DOUBT = 2.5
"""Standard deviations of its own noise that *missing* is allowed to be off by in intervals."""
SEEN = 2.0
"""Standard deviations of its noise above which *missing* is added back."""
TYPICAL = 2.3, 2.5 * FAR
"""Items of users whom the bound scales down, and of those far above it, over the bound, if no histogram tells more."""
WHOLE = 1.05
"""No bound is taken if its predicted error is at most this factor above the least: intervals then need no allowance."""
ROUGH = 0.3
"""How far a crowd's own figures may be off, relative to them, if they are compared with the books."""
PARTS = 3
"""Points that a bin's users are spread over."""
MOST_BOUNDS = 48
SMALL_BOUNDS = 12


@dataclass(frozen=True)
class ReachEstimate:
    """How many users have each item, from noisy values only.

    counts: of users. standard_errors: of their noise. lower, upper: a CONFIDENCE interval for the table's own number,
    noise and bound included. users: how many there are, with a CONFIDENCE interval. left_out: how many users the bound
    takes off an item that all users have, likewise; None if it takes nothing off. predicted_l1_error: of all counts.
    """

    counts: Floats
    standard_errors: Floats
    lower: Floats
    upper: Floats
    users: tuple[float, float, float]
    left_out: tuple[float, float, float] | None
    predicted_l1_error: float
    parameters: Parameters = field(default_factory=dict)


@dataclass(frozen=True)
class ItemUsers(Searching):
    """Users by item, by Laplace or Gaussian noise, whichever is predicted to err less.

    max_items_per_user: the bound L; by default it is found privately.

    Guarantee: looks are reserved by public values before the table is looked at. The noise and the bound are chosen
    from their noisy outcomes. Gaussian noise has what is left when all of the reserve is spent, and Laplace noise what
    is left of epsilon: Theorem 4 in docs/proofs/accounting.md. `ItemReach` moves by UNIT (add-remove), by 2 UNIT in l1
    or by sqrt(2) UNIT in l2 (replace).
    """

    name = "reach"
    finish: ClassVar[Finish] = "either"
    weights = ("users",)
    max_items_per_user: int | None = None

    def __post_init__(self) -> None:
        check_whole("max_items_per_user", self.max_items_per_user, MOST_ITEMS_PER_USER)

    def reserves(self, guarantee: Guarantee, _: Request, items: int) -> list[Reserve]:
        if self.max_items_per_user is not None:
            return []
        return [look.reserve(guarantee, items) for look in (FIRST, SECOND)]

    def ways(self, trial: Looks, items: int | None) -> Sequence[Cost]:
        fewest, most = (number + BOOKS["l2"] for number in items_between(items))
        gaussian = [gaussian_way(trial, fewest, most)] if trial.guarantee.delta > 0.0 else []
        return [*([pure_way(trial)] if _may_finish_purely(trial) else []), *gaussian]

    def run(self, presence: Presence, budget: Ready, request: Request, /) -> ReachEstimate:
        looks = budget.looks(self.reserves(budget.guarantee, request, looked_for(presence.items, request)))
        request.report(Stage.BOUNDING)
        chosen, taken = self._choose(presence, looks, looked_for(presence.items, request))
        request.report(Stage.SUMMING)
        sums = presence.sum(chosen)
        request.report(Stage.NOISE)
        if chosen.norm == "l1":
            pure = looks.finish_purely()
            noisy, event = pure.laplace(
                "users by item", sums.values, bound=sums.bound.l1, epsilon=pure.remaining_epsilon()
            )
            return _estimate(noisy, chosen, taken, _deviation(event), "laplace", presence.items)
        rounds = looks.rounds()
        noisy, normal = rounds.gaussian(
            "users by item",
            sums.values,
            bound=sums.bound.l2,
            mu=rounds.remaining_mu(len(sums.values)),
            non_negative=sums.bound.non_negative,
        )
        return _estimate(noisy, chosen, taken, normal.sigma, "gaussian", presence.items)

    def _choose(self, presence: Presence, looks: Looks, looked: int) -> tuple[ItemReach, _Taken | None]:
        """The sums to ask for, and what their bound is expected to take off all items, if there was a look. looked:
        for how many items looks were reserved.
        """
        items = presence.items
        if self.max_items_per_user is not None or items == 1:
            return _least_noise(looks, items, min(self.max_items_per_user or 1, items)), None
        edges = _edges(items)
        histogram = presence.sum(UsersByItems(edges)).values
        found = _histogram(histogram, looks, FIRST.purpose, FIRST.most(looked), edges)
        prices = _prices(found, looks, items)
        # Gaussian noise pays for what is reserved, taken or not.
        if prices.chosen.sums.norm == "l2" or prices.worth_knowing > SECOND.most(looked) * prices.noise:
            found += _histogram(histogram, looks, SECOND.purpose, SECOND.most(looked), edges)
            prices = _prices(found, looks, items)
        return prices.chosen.sums, prices.taken


def _edges(items: int) -> list[int]:
    """1, 2, 3, 5, 8, 13, ..., and all items by themselves: a bound need not be known better, and more bins hold fewer
    users in the same noise.
    """
    edges, after = [1], 2
    while after < items - 1:
        edges.append(after)
        after += edges[-2]
    return sorted({*edges, max(items - 1, 1), items})


def _may_finish_purely(looks: Looks) -> bool:
    """Whether enough of epsilon is left for Laplace noise: not after a search for items that took most of it."""
    return looks.guarantee.delta == 0.0 or looks.remaining_epsilon() >= PURE_LEAST * looks.guarantee.epsilon


def _deviation(event: LaplaceEvent) -> float:
    return math.sqrt(2) * event.scale


def _histogram(histogram: Integers, looks: Looks, purpose: str, part: float, edges: Sequence[int]) -> Bins:
    """A noisy histogram. A user is in one bin."""
    noisy, event = looks.laplace(
        purpose, histogram * HISTOGRAM_UNIT, bound=HISTOGRAM_UNIT, epsilon=part * looks.guarantee.epsilon
    )
    deviation = _deviation(event) / HISTOGRAM_UNIT
    return Bins(noisy / HISTOGRAM_UNIT, np.full(len(edges), deviation), np.array(edges, dtype=np.float64), laplace=True)


# --- the choice of the bound and the noise


@dataclass(frozen=True)
class _Candidate:
    """Sums that may be asked for, and the l1 noise of all items that they would have, in users. whole: whether they
    leave nothing out.
    """

    sums: ItemReach
    noise: float
    whole: bool


@dataclass(frozen=True)
class _Taken:
    """What a bound takes off all items together, in users, in each crowd that is possible, and the crowds' weights;
    and what it takes off an item that all users have: by users near the bound, and far above it.
    """

    weights: Floats
    taken: Floats
    near: Floats
    far: Floats

    def given(self, near: float, far: float, error: float) -> _Taken:
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
class _Prices:
    """A row for each crowd that is possible, with its weight, and a column for each candidate: predicted l1 errors, and
    what the bound takes off all items.
    """

    candidates: Sequence[_Candidate]
    weights: Floats
    errors: Floats
    taken_off: Floats
    users: Floats
    sizes: Floats

    @property
    def place(self) -> int:
        """Of the candidate that is chosen."""
        expected = self.weights @ self.errors
        favoured = np.array([one.whole for one in self.candidates]) & (expected <= WHOLE * expected.min())
        return int(np.argmin(np.where(favoured, expected, np.inf) if favoured.any() else expected))

    @property
    def chosen(self) -> _Candidate:
        return self.candidates[self.place]

    @property
    def noise(self) -> float:
        return self.chosen.noise

    @property
    def taken(self) -> _Taken:
        sums = self.chosen.sums
        lack, far = 1 - _weights(sums, self.sizes), self.sizes > FAR * sums.bound_on_items
        near = self.users @ np.where(far, 0.0, lack), self.users @ np.where(far, lack, 0.0)
        return _Taken(self.weights, self.taken_off[:, self.place], *near)

    @property
    def worth_knowing(self) -> float:
        """What knowing the crowd exactly would save."""
        return float((self.weights @ self.errors).min() - self.weights @ self.errors.min(axis=1))


def _candidates(looks: Looks, items: int, bounds: Sequence[int]) -> list[_Candidate]:
    """Both noises with each bound, as far as the budget allows them."""
    found = []
    if _may_finish_purely(looks):
        scale = looks.laplace_scale(UNIT, looks.remaining_epsilon())
        found += [
            _Candidate(one, items * scale / one.full_weight, one.bound_on_items >= items)
            for one in _sums(bounds, items, "l1")
        ]
    if looks.guarantee.delta > 0.0:
        sigma = looks.gaussian_sigma(UNIT, looks.remaining_mu(items + BOOKS["l2"]), non_negative=True)
        mean = math.sqrt(2 / math.pi) * sigma
        found += [
            _Candidate(one, items * mean / one.full_weight, one.bound_on_items >= items)
            for one in _sums(bounds, items, "l2")
        ]
    return found


def _least_noise(looks: Looks, items: int, bound: int) -> ItemReach:
    return min(_candidates(looks, items, [bound]), key=lambda one: one.noise).sums


def _sums(bounds: Sequence[int], items: int, norm: Norm) -> list[ItemReach]:
    return [ItemReach(bound, norm, round(_books(bound, items, norm) * UNIT)) for bound in bounds]


def _books(bound: int, items: int, norm: Norm) -> float:
    if norm == "l2":
        return SQUARE_BOOKS
    return 0.0 if bound >= items else min(max(LIGHT_BOOKS / bound, LEAST_BOOKS), MOST_BOOKS)


def _prices(seen: Bins, looks: Looks, items: int) -> _Prices:
    """The predicted error of each candidate: sqrt(n^2 + (RESIDUAL b)^2), with n = noise h / (noise + h).

    where: b = sum_u (1 - w_u) d_u is what the bound takes of all users' items; h = k + noise / sqrt(items), with k =
    sum_u w_u d_u what it keeps, and the noise of the sum of all. Noise counts for h at most, because shrinkage makes
    an item zero that is lost in it.
    """
    crowds = crowds_of_items(seen, items)
    users, sizes = np.repeat(crowds.users / PARTS, PARTS, axis=1), crowds.points(PARTS)
    geometric = np.rint(np.geomspace(1, items, MOST_BOUNDS)).astype(int).tolist()
    bounds = sorted({min(one, items) for one in (*geometric, *range(1, SMALL_BOUNDS + 1), items)})
    candidates = _candidates(looks, items, bounds)
    weights = np.stack([_weights(one.sums, sizes) for one in candidates], axis=1)
    kept, lack = users @ (sizes[:, None] * weights), sizes[:, None] * (1 - weights)
    taken = np.hypot(
        users @ lack, np.sqrt(crowds.deviations**2 @ lack.reshape(-1, PARTS, lack.shape[1]).mean(axis=1) ** 2)
    )
    noise = np.array([one.noise for one in candidates])
    hidden = kept + noise / math.sqrt(items)
    errors = np.hypot(noise * hidden / (noise + hidden), RESIDUAL * taken)
    return _Prices(candidates, crowds.weights, errors, taken, users, sizes)


def _weights(sums: ItemReach, sizes: Floats) -> Floats:
    """W_u / W of users with so many items."""
    part: Floats = np.minimum(1.0, sums.bound_on_items / sizes)
    return part if sums.norm == "l1" else np.sqrt(part)


# --- from noisy sums to an estimate


@dataclass(frozen=True)
class _Books:
    """What the noisy books say, in users: kept, and missing in all and of users far above the bound. error: the
    standard deviation of each of the three coordinates that they are made of.
    """

    kept: float
    missing: float
    far: float
    error: float

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


def _estimate(
    noisy: Integers, sums: ItemReach, taken: _Taken | None, deviation: float, shape: NoiseShape, items: int
) -> ReachEstimate:
    first, weight, bound = BOOKS[sums.norm], sums.full_weight, sums.bound_on_items
    values = noisy.astype(np.float64)
    raw, noise = values[first:] / weight, np.full(items, deviation / weight)
    users = _number_of_users(values, sums, deviation)
    half = half_width(shape, noise)
    shrunk = shrink(raw, noise, shape)
    shrunk = _summing_up(shrunk, float(raw.sum()), math.sqrt(items) * float(noise[0]))
    low, high, added, left_out = raw - half, raw + half, np.zeros(items), None
    if bound < items:
        kept, near, far = (float(one) / sums.books for one in values[:3])
        books = _Books(kept, near + far, far if FAR * bound < items else 0.0, deviation / sums.books)
        least, most = books.bias(low, high, FAR if sums.norm == "l1" else math.sqrt(FAR))
        low, high = low + least, high + most
        taken = _taken_by_books(sums, books, near, items) if taken is None else taken.given(near, far, books.error)
        added = _typical_bias(shrunk.means, taken.mean, books)
        doubt = math.sqrt(2) * float(special.ndtri((1 + CONFIDENCE) / 2)) * books.error
        missing = max(books.missing, 0.0)
        left_out = missing, max(books.missing - doubt, 0.0), max(books.missing + doubt, missing)
    predicted = float(shrunk.spreads.sum())
    if bound < items and taken is not None:
        predicted = taken.error(predicted, float(added.sum()))
    lower, upper = np.clip(low, 0.0, users[2]), np.clip(high, 0.0, users[2])
    return ReachEstimate(
        counts=np.clip(shrunk.means + CORRECTION * added, lower, upper),
        standard_errors=noise,
        lower=lower,
        upper=upper,
        users=users,
        left_out=left_out,
        predicted_l1_error=predicted,
        parameters={"noise": shape, "max_items_per_user": bound},
    )


def _summing_up(shrunk: Shrunk, total: float, error: float) -> Shrunk:
    """Means that sum to no more than the noisy sums do together: that noisy counts below 0 become 0 makes each of them
    a little too large, and all of many items much.

    The sum of all is known with `error`, and is at least 0: the mean of a normal law that is cut off there.
    """
    ratio = max(total / error, -6.0)
    likely = total + error * math.exp(-(ratio**2) / 2) / math.sqrt(2 * math.pi) / float(special.ndtr(ratio))
    part = min(likely / max(float(shrunk.means.sum()), 1e-9), 1.0)
    return replace(shrunk, means=shrunk.means * part)


def _taken_by_books(sums: ItemReach, books: _Books, near: float, items: int) -> _Taken:
    """What the bound takes off all items, if only the books tell it."""
    parts = (near, books.far), TYPICAL
    lacking = [
        max(missing, 0.0) * min(times * sums.bound_on_items, items) for missing, times in zip(*parts, strict=True)
    ]
    return _Taken(*(np.array([one]) for one in (1.0, sum(lacking), near, books.far)))


def _typical_bias(shrunk: Floats, taken: float, books: _Books) -> Floats:
    """What the bound takes off each item if heavy users have it as often as others: at most `missing`, and nothing if
    that is not seen above its noise.
    """
    total = float(shrunk.sum())
    if total <= 0.0 or books.missing < SEEN * books.error:
        return np.zeros(len(shrunk))
    return np.minimum(shrunk * taken / total, books.missing)


def _number_of_users(values: Floats, sums: ItemReach, deviation: float) -> tuple[float, float, float]:
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
