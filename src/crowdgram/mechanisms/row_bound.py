"""The contribution bound: how much of one user to pay for, by predicted noise and predicted bias.

Clipping users at a bound changes their shares of the sum. The answer moves by at most twice the total variation between
the shares before and after; on real tables by a part of that which hardly depends on the bound, the *disagreement* of
heavy users with the crowd: 0.05 (plate appearances) to 0.55 (packages), and nearly constant on each table. So a bound's
bias is 2 disagreement TV, with the disagreement uncertain by a factor of two. Strangers, who do
not continue the crowd (robots, shared accounts), are taken to have nothing in common with it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..arrays import Floats, Integers, distinct
from .estimate import spread_bias
from .tuning import TUNING
from .user_sizes import Crowds

__all__ = [
    "ChosenBound",
    "Disagreement",
    "average_error",
    "best_bound",
    "bias_of",
    "costs_at_one_bound",
    "costs_if_known",
    "expected_errors",
    "moved_squares",
    "part_saved_if_known",
    "points",
    "share_above",
    "worth_knowing",
]


POWER = 0.5
"""What is expected of an error that is uncertain by factors is the square of its mean root: between the mean, which
rests on what is unlikely and far off, and the mean of its logarithm, for which nothing that is unlikely counts.
"""
BIN_POINTS = 4
"""Points that a bin's users are spread over, and bounds for each bin: the best may lie inside one."""
BOUNDS_TRIED = 80
"""Bounds that are tried, over all orders of magnitude. They are at most a third of an octave apart, and the error is
flat around the best; half as many if sizes lie around masses, where it is flatter still.
"""


@dataclass(frozen=True, eq=False)
class Disagreement:
    """What is believed of the disagreement of heavy users: log-normal, until strata tell of it (`learned`)."""

    values: Floats
    weights: Floats

    @classmethod
    def prior(cls, most: float = 1.0) -> Disagreement:
        """Before anything is measured. most: how far users are from the crowd at most; all together are no farther."""
        away = np.linspace(-3, 3, 61)
        weights = np.exp(-(away**2) / 2)
        values = np.minimum(TUNING.disagreement * np.exp(TUNING.disagreement_spread * away), most)
        return cls(values, weights / weights.sum())

    def learned(self, away: Floats, noise: float, shares: Floats) -> Disagreement:
        """What is believed once the shares of heavy users were measured to be `away` from those of the others, with
        noise of this standard deviation, and those of all users are `shares`.
        """
        variances = noise**2 + np.array([spread_bias(2 * value, shares) for value in self.values]) ** 2
        expected = math.sqrt(2 / math.pi) * np.sqrt(variances).sum(axis=1)
        spread = (1 - 2 / math.pi) * variances.sum(axis=1)
        fit = -0.5 * ((float(np.abs(away).sum()) - expected) ** 2 / spread + np.log(spread))
        weights = self.weights * np.exp(fit - fit.max())
        return Disagreement(self.values, weights / weights.sum())

    @property
    def root_mean_square(self) -> float:
        return float(np.sqrt(self.weights @ self.values**2))

    @property
    def mean(self) -> float:
        return float(self.weights @ self.values)


@dataclass(frozen=True)
class ChosenBound:
    """A bound on users' sizes, its predicted l1 error, and the two parts of it."""

    size: float
    cost: float
    noise: float
    bias: float

    @property
    def rows(self) -> int:
        """The bound as a whole number of rows."""
        return max(1, round(self.size))


def average_error(weights: Floats, errors: Floats) -> Floats:
    """What is expected of errors, one row (or number) for each crowd, which have these probabilities."""
    average: Floats = (weights @ errors**POWER) ** (1 / POWER)
    return average


@dataclass(frozen=True, eq=False)
class _Costs:
    """For every crowd (rows) and every bound (columns): noise and bias in l1."""

    bounds: Floats
    weights: Floats
    noise: Floats
    bias: Floats

    @property
    def total(self) -> Floats:
        return np.hypot(self.noise, self.bias)

    @property
    def expected(self) -> Floats:
        return average_error(self.weights, self.total)

    @property
    def saved_if_known(self) -> float:
        """The expected error at the best bound for all crowds, less that at the best bound for each."""
        return float(self.expected.min() - average_error(self.weights, self.total.min(axis=1)))


def best_bound(crowds: Crowds, noise: float, disagreement: float, spread: Spread | None = None) -> ChosenBound:
    """The bound R that minimises the expected  sqrt((noise R / D(R))^2 + (2 disagreement TV(R))^2).

    where: noise is the l1 noise, over all items, of a sum in which one user weighs 1; D(R) = sum_u mass_u min(1, R /
    size_u); TV(R) as in the module's text. Squares, as an item's noise and its bias are independent.
    """
    costs = _costs(crowds.likely, noise, disagreement, spread)
    expected = costs.expected
    # Among equals the largest: where all users are of one size, any smaller bound costs the same, and keeps less.
    best = int(np.nonzero(expected <= expected.min() * (1 + 1e-9))[0].max())
    parts = (float(np.sqrt(costs.weights @ part[:, best] ** 2)) for part in (costs.noise, costs.bias))
    return ChosenBound(float(costs.bounds[best]), float(expected[best]), *parts)


def costs_if_known(crowds: Crowds, noise: float | Floats, disagreement: float, bounds: Floats | None = None) -> Floats:
    """The l1 error for each crowd, at its own best bound; of these `bounds`, each with its own noise, if given."""
    best: Floats = _costs(crowds, noise, disagreement, None, bounds).total.min(axis=1)
    return best


def costs_at_one_bound(crowds: Crowds, noise: float, disagreement: float, spread: Spread) -> tuple[Floats, Floats]:
    """The l1 error for each crowd, at the bound that is best for all of them, and at its own best. `spread`: how sizes
    lie around masses.
    """
    costs = _costs(crowds, noise, disagreement, spread)
    total = costs.total
    return total[:, int(np.argmin(costs.expected))], total.min(axis=1)


def expected_errors(crowds: Crowds, bounds: Floats, noise: Floats, disagreement: float) -> Floats:
    """What is expected of the l1 error at each of these bounds, with the noise that goes with it."""
    return _costs(crowds.likely, noise, disagreement, None, bounds).expected


def worth_knowing(crowds: Crowds, noise: float, disagreement: float, spread: Spread | None = None) -> float:
    """What knowing the crowd exactly would save of the l1 error."""
    return _costs(crowds.likely, noise, disagreement, spread).saved_if_known


def part_saved_if_known(crowds: Crowds, noise: float, disagreement: float) -> float:
    """The part of the expected l1 error that knowing the crowd exactly would save."""
    costs = _costs(crowds.likely, noise, disagreement, None)
    return costs.saved_if_known / float(costs.expected.min())


def bias_of(crowds: Crowds, bounds: Floats) -> tuple[Floats, Floats]:
    """2 TV(bound) for each of the crowds (rows) and bounds (columns): the part that the disagreement multiplies, and
    that of strangers.
    """
    users, sizes, strange = points(crowds)
    clipped = _Clipped.of(users * sizes, sizes, bounds)
    whole, theirs = clipped.variations(), clipped.variations(strange)
    return 2 * (whole - theirs), 2 * theirs


def moved_squares(crowds: Crowds, bound: float) -> Floats:
    """For each crowd: how far the bound moves users' shares of the sum, squared, over all users."""
    users, sizes, _ = points(crowds)
    kept = np.minimum(sizes, bound)
    moved = sizes / (users @ sizes)[:, None] - kept / (users @ kept)[:, None]
    squares: Floats = (users * moved**2).sum(axis=1)
    return squares


def share_above(crowds: Crowds, bound: float) -> tuple[float, float, float]:
    """The share of all rows that lies above a bound on users' rows: the mean over crowds, and a 95% interval."""
    users, sizes, _ = points(crowds)
    above = 1 - (users * np.minimum(sizes, bound)).sum(axis=1) / (users * sizes).sum(axis=1)
    order = np.argsort(above)
    cumulative = np.cumsum(crowds.weights[order])
    low, high = (float(above[order][min(int(np.searchsorted(cumulative, q)), len(order) - 1)]) for q in (0.025, 0.975))
    return float(crowds.weights @ above), low, high


@dataclass(frozen=True)
class Spread:
    """How sizes lie around masses, which `Crowds` calls sizes: `shares[j]` of the users of a mass are at mass *
    distance(mass, factors[j]).
    """

    shares: tuple[float, ...]
    factors: tuple[float, ...]
    distance: Callable[[Floats, float], Floats]


def points(crowds: Crowds, number: int = BIN_POINTS) -> tuple[Floats, Floats, Floats]:
    """Every bin's users spread evenly on the log scale over so many points, their sizes, and the part of strangers;
    without bins that no crowd has.
    """
    inside = (np.arange(number) + 0.5) / number - 0.5
    sizes = crowds.sizes[:, None] * np.exp2(crowds.octaves[:, None] * inside)
    present = crowds.users.max(axis=0) > 0
    users = np.repeat(crowds.users[:, present] / number, number, axis=1)
    return users, sizes[present].ravel(), np.repeat(crowds.strangers[:, present], number, axis=1)


def _costs(
    crowds: Crowds, noise: float | Floats, disagreement: float, spread: Spread | None, bounds: Floats | None = None
) -> _Costs:
    """`bounds`: those that are tried, each with its own noise; by default all that may be best."""
    users, masses, strange = points(crowds, BIN_POINTS if spread is None else 1)  # a spread is wider than a bin
    sizes, part = masses, disagreement + (1 - disagreement) * strange
    if spread is not None:
        # Strangers draw a centre towards them: what they hold of all rows is not part of their distance.
        held = (users * strange) @ masses / (users @ masses)
        theirs = 1 - float(crowds.weights @ held**2 / max(float(crowds.weights @ held), 1e-300))
        # Levels tell what they hold if they are many: as if each were measured by a vector of norm 1.
        unmeasured = np.minimum(noise / np.maximum((users * strange).sum(axis=1), 1e-9), 1.0)
        users = np.concatenate([*(users * (1 - strange) * share for share in spread.shares), users * strange], axis=1)
        sizes = np.concatenate([*(masses * spread.distance(masses, each) for each in spread.factors), theirs * masses])
        part = np.repeat(
            np.stack([np.full(len(unmeasured), disagreement), unmeasured], axis=1),
            [len(masses) * len(spread.shares), len(masses)],
            axis=1,
        )
        masses = np.tile(masses, len(spread.shares) + 1)
    if bounds is None:
        bounds = distinct(sizes[users.max(axis=0) > 0])
        most = BOUNDS_TRIED if spread is None else BOUNDS_TRIED // 2
        if len(bounds) > most:
            bounds = np.geomspace(bounds[0], bounds[-1], most)
    clipped = _Clipped.of(users * masses, sizes, bounds)
    noises = noise * bounds / np.maximum(clipped.after, 1e-300)
    return _Costs(bounds, crowds.weights, noises, 2 * clipped.variations(part))


@dataclass(frozen=True, eq=False)
class _Sums:
    """Sums over points in the order of their sizes, for every crowd (rows) and every number of points (columns): of
    what the first so many hold, and of that over their sizes for all others.
    """

    below: Floats
    beyond: Floats

    @classmethod
    def of(cls, held: Floats, sizes: Floats) -> _Sums:
        below, beyond = np.zeros((2, held.shape[0], held.shape[1] + 1))
        np.cumsum(held, axis=1, out=below[:, 1:])
        np.cumsum((held / sizes)[:, ::-1], axis=1, out=beyond[:, -2::-1])
        return cls(below, beyond)


@dataclass(frozen=True, eq=False)
class _Clipped:
    """Points in the order of their sizes, clipped at each bound. `whole`: how many a bound leaves as they are; `after`:
    for every crowd (rows) and bound (columns), the sum that is left.

    A point keeps min(1, R / size) of its sum, so sums below and beyond a size are enough. As a product of matrices the
    same kept the threads of BLAS busy for longer than all else that a small release does.
    """

    before: Floats
    sizes: Floats
    bounds: Floats
    order: Integers
    whole: Integers
    sums: _Sums
    after: Floats

    @classmethod
    def of(cls, before: Floats, sizes: Floats, bounds: Floats) -> _Clipped:
        order = np.argsort(sizes)
        before, sizes = before[:, order], sizes[order]
        whole, sums = np.searchsorted(sizes, bounds, side="right"), _Sums.of(before, sizes)
        after = sums.below[:, whole] + bounds * sums.beyond[:, whole]
        return cls(before, sizes, bounds, order, whole, sums, after)

    def variations(self, part: Floats | None = None) -> Floats:
        """Total variation between the users' shares of the sum before and after clipping, of which `part` counts (by
        default all), for every crowd (rows) and bound (columns).

        What a point keeps, over what all keep, falls as sizes grow: shares rise up to one size and fall beyond it.
        """
        bounds, after, total = self.bounds, self.after, self.sums.below[:, -1:]
        counted = self.sums if part is None else _Sums.of(self.before * part[..., self.order], self.sizes)
        rising = np.maximum(np.searchsorted(self.sizes, bounds * total / after), self.whole)
        below, beyond = (np.take_along_axis(each, rising, axis=1) for each in (counted.below, counted.beyond))
        kept_below = counted.below[:, self.whole] + bounds * (counted.beyond[:, self.whole] - beyond)
        risen = kept_below / after - below / total
        fallen = (counted.below[:, -1:] - below) / total - bounds * beyond / after
        variations: Floats = np.maximum(risen + fallen, 0.0) / 2
        return variations
