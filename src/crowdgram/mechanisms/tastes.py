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

from ..arrays import Floats
from ..privacy import Looks
from ..tables import HALF_BINS, UNIT, Counts, UsersByHalf
from .pilot_queries import HALVES
from .tuning import TUNING

__all__ = ["Tastes", "Weighing", "look_at_tastes"]

HALF_PARTS = (np.arange(2 * HALF_BINS) + 0.5) / (2 * HALF_BINS)
"""What part of the crowd may lie in a half of the items."""
TASTES = np.geomspace(1e-4, 1.0, 17)
"""Tastes that are tried. Half of the belief is spread evenly over them beforehand, half over their logarithms."""
_SIZES = (1 - TASTES[:-1]) / TASTES[:-1]
FEW_ROWS = 64
"""Rows up to which the parts that users can have stand apart."""
STRANGE = np.array([0.0, 0.1, 0.25, 0.5, 0.75])
"""Shares of strangers that are tried; none is as likely beforehand as some."""
QUADRATURE, SERIES, WIDE_SIZE = 12, 40, 400.0
"""Nodes in each bin of a beta law, terms of the series for the bins at its ends, and the size a + b below which these
are taken.
"""
LIKELY_TASTE = 0.01
"""What is less likely than this, compared with the likeliest, does not count."""


@dataclass(frozen=True)
class Weighing:
    """Whose tastes are looked at. users: the weight of all, with its standard deviation. row_cap: rows from which on a
    user weighs 1. rows: numbers of rows, and what users with so many weigh; None if what chance does with few rows
    counts as a taste.
    """

    users: tuple[float, float]
    row_cap: int = 1
    rows: tuple[Floats, Floats] | None = None


@dataclass(frozen=True)
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
        square = min(max(float(np.mean(squares)), 1 / items), 1 - 1 / (2 * items))
        chances = weights.ravel()[likely]
        return cls(tastes[likely], strange[likely], chances / chances.sum(), square, fits, squares)

    def quantile(self, chance: float) -> float:
        """The taste that users do not exceed with this probability."""
        order = np.argsort(self.tastes)
        place = np.searchsorted(np.cumsum(self.weights[order]), chance)
        return float(self.tastes[order][min(int(place), len(order) - 1)])

    @property
    def mean_distance(self) -> float:
        """The mean square distance from the crowd, over mass squared, of users with many rows."""
        return (1 - self.square) * float(self.weights @ (self.tastes * (1 - self.strange) + self.strange))


def look_at_tastes(
    counts: Counts, spending: Looks, items: int, weighing: Weighing, before: Tastes | None = None
) -> Tastes:
    """Buy a histogram over one half of the items, or, if there is one `before`, over the other."""
    number = 0 if before is None else 1
    alike, alone = _forms()
    if weighing.rows is not None:
        alike = _with_chance(*weighing.rows)
    sums = counts.sum(UsersByHalf(counts.items, number, weighing.row_cap))
    wanted = TUNING.halves_detail / math.sqrt(max(weighing.users[0], 1.0))
    noisy, event = spending.laplace(
        HALVES[number].purpose,
        sums.values,
        bound=sums.bound.l1,
        epsilon=min(HALVES[number].most(items) * spending.guarantee.epsilon, wanted),
    )
    logs = _likelihoods(noisy / UNIT, event.scale / UNIT, weighing.users, alike, alone)
    chances = np.exp(logs - logs.max())
    fits = np.log(chances.sum(axis=0) + 1e-300)
    parts = chances.sum(axis=(1, 2))
    squares: tuple[float, ...] = (float(parts @ (2 * HALF_PARTS - 1) ** 2 / parts.sum()),)
    if before is not None:
        fits, squares = fits + before.fits, squares + before.squares
    return Tastes.of(fits, squares, counts.items)


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
    """How users with a few rows are spread over bins: a beta-binomial law, for each of HALF_PARTS and TASTES.

    Formula: P[h] = C(m, h) a^(h) b^(m-h) / s^(m), where m is `rows`, h how many of them are in the half, s = a + b the
    size, and x^(n) = x (x + 1) ... (x + n - 1).
    """
    h = np.arange(rows + 1)
    place = np.where(h == 0, 0, np.where(h == rows, HALF_BINS + 1, 1 + HALF_BINS * h // rows))
    inside, whole, factorials = _rising()
    ways = factorials[rows] - factorials[h] - factorials[rows - h]
    logs = inside[:HALF_BINS, :, h] + inside[: HALF_BINS - 1 : -1, :, rows - h] + (ways - whole[:, [rows]])
    chances = np.exp(logs)  # of half of HALF_PARTS; the others are the mirror image
    alike = np.zeros((len(HALF_PARTS), len(TASTES), HALF_BINS + 2))
    alike[:, :-1, place] = np.concatenate([chances, chances[::-1, :, ::-1]])
    alike[:, -1] = _forms()[1]
    return alike


@lru_cache(maxsize=1)
def _rising() -> tuple[Floats, Floats, Floats]:
    """Logarithms of rising factorials x^(0), ..., x^(FEW_ROWS): for x = a of each of HALF_PARTS and TASTES but the
    last, whose b is the a of the opposite part; for x = s; and for x = 1, the factorials.
    """
    starts = (HALF_PARTS[:, None, None] * _SIZES[:, None], _SIZES[:, None], np.ones(1))
    steps = np.arange(FEW_ROWS)
    sums = [np.cumsum(np.log(start + steps), axis=-1) for start in starts]
    first, second, third = (np.concatenate([np.zeros((*each.shape[:-1], 1)), each], axis=-1) for each in sums)
    return first, second, third


@lru_cache(maxsize=1)
def _forms() -> tuple[Floats, Floats]:
    """How users are spread over bins: for each of HALF_PARTS and TASTES; and strangers, for each of HALF_PARTS."""
    alone = np.zeros((len(HALF_PARTS), HALF_BINS + 2))
    alone[:, 0], alone[:, -1] = 1 - HALF_PARTS, HALF_PARTS
    alike = np.zeros((len(HALF_PARTS), len(TASTES), HALF_BINS + 2))
    alike[:, :-1, 1:-1], alike[:, -1] = _beta_bins(), alone
    return alike, alone


def _beta_bins() -> Floats:
    """The chances of HALF_BINS equal bins, by the beta law of each of HALF_PARTS and TASTES but the last.

    By quadrature in each bin, and divided by their sum. The bins at the ends, where the density may have no bound, are
    sums of a series, unless the law is so narrow that the series would cancel. It is within 2e-6 of
    `scipy.special.betainc`, which takes longer to load than this to run.
    """
    a = HALF_PARTS[:HALF_BINS, None] * _SIZES  # the other parts are the mirror image
    b = _SIZES - a
    # Gauss and Legendre's nodes in (0, 1): eigenvalues of a Jacobi matrix (Golub and Welsch, 1969).
    beside = np.arange(1, QUADRATURE) / np.sqrt(4.0 * np.arange(1, QUADRATURE) ** 2 - 1)
    nodes, vectors = np.linalg.eigh(np.diag(beside, 1) + np.diag(beside, -1))
    points = (np.arange(HALF_BINS)[:, None] + (1 + nodes) / 2) / HALF_BINS
    part = HALF_PARTS[:HALF_BINS, None]
    scale = (a - 1) * np.log(part) + (b - 1) * np.log1p(-part)  # about the highest: it cancels
    logs = (a - 1)[..., None] * np.log(points.ravel()) + (b - 1)[..., None] * np.log1p(-points.ravel())
    chances = np.exp(logs - scale[..., None]).reshape(*a.shape, *points.shape) @ vectors[0] ** 2 / HALF_BINS
    wide = _SIZES < WIDE_SIZE
    for end, near, far in ((0, a[:, wide], b[:, wide]), (-1, b[:, wide], a[:, wide])):
        # int_0^w x^(a-1) (1 - x)^(b-1) dx = w^a sum_k (1 - b)_k / k! w^k / (a + k)
        term, total = np.ones_like(near), 1 / near
        for k in range(1, SERIES):
            term = term * (k - far) / (k * HALF_BINS)
            total = total + term / (near + k)
        chances[:, wide, end] = np.exp(-near * math.log(HALF_BINS) - scale[:, wide]) * total
    chances /= chances.sum(axis=2, keepdims=True)
    return np.concatenate([chances, chances[::-1, :, ::-1]])
