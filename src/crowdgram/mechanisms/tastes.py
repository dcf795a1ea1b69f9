"""How much users differ, from what part of their rows lies in one half of the items.

If all users draw from one distribution, that part is the same for all, but for chance. If users have tastes of their
own, it varies: a user with taste t draws each row anew with probability 1 - t, so to speak, and repeats one of those
before it otherwise, and the part has a beta distribution of variance pi (1 - pi) t. At the other end are *strangers*,
who have one item. A histogram of users over that part is cheap: users who agree stand in a few bins, and are seen even
if the noise of a bin is a twentieth of them. To measure a mean square distance to the same precision takes a
hundred times as much. One half could hide what users differ by, so another is looked at before rounds.

Post-processing of noisy values, but for the two looks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import betainc, gammaln

from ..arrays import Floats
from ..privacy import Guarantee, Looks
from ..tables import HALF_BINS, UNIT, Counts, UsersByHalf
from .pilot_queries import HALVES
from .tuning import TUNING

__all__ = ["Tastes", "Weighing", "look_at_tastes", "part_for_tastes"]

HALF_PARTS = (np.arange(2 * HALF_BINS) + 0.5) / (2 * HALF_BINS)
"""What part of the crowd may lie in a half of the items."""
TASTES = np.geomspace(1e-4, 1.0, 17)
"""Tastes that are tried. Half of the belief is spread evenly over them beforehand, half over their logarithms."""
_SIZES = (1 - TASTES[:-1]) / TASTES[:-1]
FEW_ROWS = 64
"""Rows up to which the parts that users can have stand apart."""
STRANGE = np.array([0.0, 0.1, 0.25, 0.5, 0.75])
"""Shares of strangers that are tried; none is as likely beforehand as some."""
LIKELY_TASTE = 0.01
"""What is less likely than this, compared with the likeliest, does not count."""


@dataclass(frozen=True, eq=False)
class Weighing:
    """Whose tastes are looked at. users: the weight of all, with its standard deviation. row_cap: rows from which on a
    user weighs 1. rows: numbers of rows, and what users with so many weigh; None if what chance does with few rows
    counts as a taste.
    """

    users: tuple[float, float]
    row_cap: int = 1
    rows: tuple[Floats, Floats] | None = None


@dataclass(frozen=True, eq=False)
class Tastes:
    """What is believed: with probability `weights[j]`, users have the taste `tastes[j]`, but for the part `strange[j]`,
    who are strangers. square: ||p||^2 of the crowd, roughly. fits: log-likelihoods of each of TASTES and STRANGE;
    squares: what each look told of the square.
    """

    tastes: Floats
    strange: Floats
    weights: Floats
    square: float
    fits: Floats
    squares: tuple[float, ...]

    @classmethod
    def of(cls, fits: Floats, squares: tuple[float, ...], items: int) -> Tastes:
        prior = np.outer(1 / len(TASTES) + TASTES / TASTES.sum(), np.where(STRANGE > 0, 1 / (len(STRANGE) - 1), 1.0))
        weights = prior * np.exp(fits - fits.max())
        tastes, strange = (each.ravel() for each in np.broadcast_arrays(TASTES[:, None], STRANGE))
        likely = weights.ravel() > LIKELY_TASTE * weights.max()
        told = float(np.mean(squares)) if squares else 1 / math.sqrt(items)
        square = min(max(told, 1 / items), 1 - 1 / (2 * items))
        chances = weights.ravel()[likely]
        return cls(tastes[likely], strange[likely], chances / chances.sum(), square, fits, squares)

    @classmethod
    def prior(cls, items: int) -> Tastes:
        """Before any look. Every other taste, and part of strangers, stands for its neighbours."""
        fits = np.full((len(TASTES), len(STRANGE)), -np.inf)
        fits[::2, ::2] = 0.0
        return cls.of(fits, (), items)

    def quantile(self, chance: float) -> float:
        """The taste that users do not exceed with this probability."""
        order = np.argsort(self.tastes)
        place = np.searchsorted(np.cumsum(self.weights[order]), chance)
        return float(self.tastes[order][min(int(place), len(order) - 1)])

    @property
    def looks(self) -> int:
        """How many halves of the items were looked at."""
        return len(self.squares)

    def apart(self, items: int) -> Floats:
        """How far users with many rows are from the crowd, in total variation, for each taste. The mean of a group of
        them is no farther.
        """
        own = np.minimum(np.sqrt(items / (2 * math.pi) * (1 - self.square) * self.tastes), 1.0)
        return (1 - self.strange) * own + self.strange

    @property
    def mean_distance(self) -> float:
        """The mean square distance from the crowd, over mass squared, of users with many rows."""
        return (1 - self.square) * float(self.weights @ (self.tastes * (1 - self.strange) + self.strange))


def part_for_tastes(guarantee: Guarantee, items: int, weighing: Weighing, worth: float = 0.0) -> float:
    """What a look takes of epsilon: enough for the noise of a bin to be as large as chance would make it. But no more
    than it is `worth`, or than `halves_look`, if that is more; nor than was set aside for it.
    """
    wanted = TUNING.halves_detail / math.sqrt(max(weighing.users[0], 1.0)) / guarantee.epsilon
    return min(wanted, HALVES[0].most(items), max(worth, TUNING.halves_look))


def look_at_tastes(
    counts: Counts, spending: Looks, items: int, weighing: Weighing, before: Tastes, worth: float = 0.0
) -> Tastes:
    """Buy a histogram over one half of the items, or, if one was looked at `before`, over the other. worth: the part
    of epsilon that knowing tastes would save.
    """
    number = before.looks
    alike, alone = _forms()
    if weighing.rows is not None:
        alike = _with_chance(*weighing.rows)
    sums = counts.sum(UsersByHalf(counts.items, number, weighing.row_cap))
    epsilon = part_for_tastes(spending.guarantee, items, weighing, worth) * spending.guarantee.epsilon
    noisy, event = spending.laplace(HALVES[number].purpose, sums.values, bound=sums.bound.l1, epsilon=epsilon)
    logs = _likelihoods(noisy / UNIT, event.scale / UNIT, weighing.users, alike, alone)
    chances = np.exp(logs - logs.max())
    fits = np.log(chances.sum(axis=0) + 1e-300)
    parts = chances.sum(axis=(1, 2))
    told = float(parts @ (2 * HALF_PARTS - 1) ** 2 / parts.sum())
    return Tastes.of(fits + before.fits if number else fits, (told, *before.squares), counts.items)


def _likelihoods(noisy: Floats, scale: float, users: tuple[float, float], alike: Floats, alone: Floats) -> Floats:
    """Log-likelihoods of Laplace noise, by HALF_PARTS, TASTES and STRANGE; the mean over the number of users."""
    numbers = [max(users[0] + away * users[1], 1.0) for away in (-1.2, 0.0, 1.2)]
    found = np.empty((len(HALF_PARTS), len(TASTES), len(STRANGE)))
    for j, strange in enumerate(STRANGE):
        form = (1 - strange) * alike + strange * alone[:, None, :]
        found[:, :, j] = np.logaddexp.reduce([-np.abs(noisy - n * form).sum(axis=2) / scale for n in numbers])
    return found


def _with_chance(rows: Floats, users: Floats) -> Floats:
    """How users with so many rows are spread over bins, for each of HALF_PARTS and TASTES."""
    alike, _ = _forms()
    few = np.rint(rows) <= FEW_ROWS
    # Users of m rows have t + (1 - t) / m, as if chance were a taste.
    tastes = TASTES[:, None] + (1 - TASTES[:, None]) / np.maximum(rows[~few], 1.0)
    places = np.log(tastes / TASTES[0]) / math.log(TASTES[1] / TASTES[0])
    low = np.minimum(places.astype(np.int64), len(TASTES) - 2)
    spread = np.zeros((len(TASTES), len(TASTES)))
    for line, j, above in zip(spread, low, places - low, strict=True):
        np.add.at(line, j, users[~few] * (1 - above))
        np.add.at(line, j + 1, users[~few] * above)
    found: Floats = np.tensordot(spread, alike, (1, 1)).swapaxes(0, 1)
    for one, number in zip(np.rint(rows[few]).astype(int).tolist(), users[few].tolist(), strict=True):
        if number > 0:
            found = found + number * _with_rows(max(one, 1))
    found /= users.sum()
    return found


@lru_cache(maxsize=FEW_ROWS)
def _with_rows(rows: int) -> Floats:
    """How users with a few rows are spread over bins: a beta-binomial law, for each of HALF_PARTS and TASTES."""
    h = np.arange(rows + 1)
    place = np.where(h == 0, 0, np.where(h == rows, HALF_BINS + 1, 1 + HALF_BINS * h // rows))
    a = HALF_PARTS[:, None, None] * _SIZES[:, None]
    b = (1 - HALF_PARTS)[:, None, None] * _SIZES[:, None]
    logs = gammaln(a + h) - gammaln(a) + gammaln(b + rows - h) - gammaln(b) + gammaln(a + b) - gammaln(a + b + rows)
    chances = np.exp(logs + gammaln(rows + 1) - gammaln(h + 1) - gammaln(rows - h + 1))
    alike = np.zeros((len(HALF_PARTS), len(TASTES), HALF_BINS + 2))
    alike[:, :-1] = chances @ np.eye(HALF_BINS + 2)[place]
    alike[:, -1] = _forms()[1]
    return alike


@lru_cache(maxsize=1)
def _forms() -> tuple[Floats, Floats]:
    """How users are spread over bins: for each of HALF_PARTS and TASTES; and strangers, for each of HALF_PARTS."""
    edges = np.linspace(0.0, 1.0, HALF_BINS + 1)
    alone = np.zeros((len(HALF_PARTS), HALF_BINS + 2))
    alone[:, 0], alone[:, -1] = 1 - HALF_PARTS, HALF_PARTS
    low = HALF_PARTS[:HALF_BINS]  # the others mirror them: a part of 1 - p in one half is a part of p in the other
    below = betainc(low[:, None, None] * _SIZES[:, None], (1 - low)[:, None, None] * _SIZES[:, None], edges)
    alike = np.zeros((len(HALF_PARTS), len(TASTES), HALF_BINS + 2))
    alike[:HALF_BINS, :-1, 1:-1] = np.diff(below, axis=2)
    alike[HALF_BINS:] = alike[:HALF_BINS][::-1, :, ::-1]
    alike[:, -1] = alone
    return alike, alone
