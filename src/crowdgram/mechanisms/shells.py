"""What clipping does to an answer: a model of how users differ with their distance from the centre, learned on the way.

Clip every user's deviation at radii R_1 < R_2 < ...: what lies between two of them, over all users, is a *shell* with a
mass D_l and a mean distribution q_l. The answer is sum_l D_l q_l / D. Rounds measure sums over neighbouring shells
(*levels*), each with noise of its own; the outermost shells are never worth their noise. How wrong the answer is
without them depends on how far q_l drifts with l. That is a trend, which users far from the crowd share (common items
gain or lose together), and a random walk with two variances, learned from differences between measured levels, beside
what users' own scatter explains. One covariance then gives the best linear unbiased estimate, its noise, its bias, and
the radii that are best for the next round.

Everything here is post-processing of noisy values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np

from ..arrays import Floats, Integers, distinct
from .tuning import TUNING

__all__ = [
    "Drift",
    "GroupShares",
    "ItemGroup",
    "Levels",
    "Shells",
    "Users",
    "combine_levels",
    "floor_shares",
    "item_moments",
    "item_tilts",
    "plan_levels",
]


VARIANCES = np.geomspace(1e-6, 1, 13)
"""Drift variances that are tried, of shells below the median of mass and above it."""
POWERS = 1.0, 0.75, 0.5
"""How drift goes with an item's share. The rarer an item, the fewer users hold it, and the more it may differ."""
KNOTS = 16
"""Items of a group at which a mean over all that the drift may be is worked out."""
MEASURED = 0.95
"""One level alone must hold this part of all mass: a bias that is not measured has to be small."""
LEAST_VARIANCE = 1e-12
"""Of a difference between levels, over the sum of all."""
NEARLY_BEST = 1.02
"""Of levels that are predicted to err by no more than this, over the best, those are taken that reach farthest: what is
measured is known better than what is predicted.
"""
APART = 2 * math.pi
"""The variance that makes a normal vector, whose deviations sum to 1, as long in l1 as users are who share nothing."""
FIRST_LEVELS = (0.1, 0.3, 0.5, 0.7, 0.9, 0.97, 0.995)
"""Quantiles of users' sizes at which the lowest level may end."""


def floor_shares(shares: Floats) -> Floats:
    """No item is believed to be ten times rarer than the mean."""
    floored: Floats = np.maximum(shares, 0.1 / len(shares))
    return floored


def item_moments(f: Floats) -> Floats:
    """What the variances of own scatter and of drift go with, item by item: shares f, and the squares of f^power, for
    the POWERS, divided by its sum. So drift is as large in all, over all items.
    """
    forms = [f**power for power in POWERS]
    return np.stack([f, *((each / each.sum()) ** 2 for each in forms)])


def item_tilts(f: Floats) -> Floats:
    """f (log f - sum f log f): how fast the shares in f^(1 + t) move with t."""
    tilts: Floats = f * (np.log(f) - float(f @ np.log(f)) / float(f.sum()))
    return tilts


@dataclass(frozen=True, eq=False)
class ItemGroup:
    """Items of one scale: which; the mean square of their scale; the means of their moments; their tilts."""

    members: Integers
    scale_square: float
    moments: Floats
    tilts: Floats


@dataclass(frozen=True, eq=False)
class GroupShares:
    """The items of a group by their shares: their moments, tilts and logarithms; and the KNOTS among them, at which a
    mean over all that the drift may be is worked out, by their places and logarithms.
    """

    moments: Floats
    tilts: Floats
    logs: Floats
    knots: Integers
    knot_logs: Floats

    @classmethod
    def of(cls, groups: Sequence[ItemGroup], shares: Floats) -> list[GroupShares]:
        f = floor_shares(shares)
        moments, tilts = item_moments(f), item_tilts(f)
        return [cls._at(moments[:, group.members], tilts[group.members]) for group in groups]

    @classmethod
    def _at(cls, moments: Floats, tilts: Floats) -> GroupShares:
        order = np.argsort(moments[0])
        logs = np.log(moments[0][order])
        places = distinct(np.searchsorted(logs, np.linspace(logs[0], logs[-1], KNOTS)).clip(0, len(logs) - 1))
        if len(order) <= KNOTS:
            places = np.arange(len(order))
        return cls(moments, tilts, np.log(moments[0]), order[places], logs[places])


@dataclass(frozen=True, eq=False)
class Users:
    """Users by size: how many, their sizes and masses, and the part of them who are strangers: who have nothing in
    common with the crowd.
    """

    users: Floats
    sizes: Floats
    masses: Floats
    strange: Floats


@dataclass(frozen=True, eq=False)
class Shells:
    """radii: upper ends. masses: D_l. own: the covariance of the q_l that comes of users' own scatter, for an item of
    share 1. strange: that which comes of strangers, for a moment of drift of 1. firsts: where the lowest level may end.
    unit: the size of a user with one row.
    """

    radii: Floats
    masses: Floats
    own: Floats
    strange: Floats
    firsts: tuple[int, ...]
    unit: float

    @classmethod
    def of(cls, crowd: Users, spread: float, top: float = 0.0) -> Shells:
        """`spread`: sum_i f_i / a_i^2, the square size of a user with one row.

        Strangers agree with each other, and not with the crowd: they are 2 away from it in l1.
        """
        order = np.argsort(crowd.sizes)
        users, sizes, masses, strange = (
            each[order] for each in (crowd.users, crowd.sizes, crowd.masses, crowd.strange)
        )
        cumulative = np.cumsum(users) / users.sum()

        def quantile(share: float) -> float:
            return float(sizes[min(int(np.searchsorted(cumulative, share)), len(sizes) - 1)])

        step = TUNING.step / 2  # half a bin
        start = quantile(0.1) * 2 ** (step / 2)
        octaves = max(math.log2(max(float(sizes[-1]), top) / start), 0.0)
        radii: Floats = start * np.exp2(step * np.arange(math.ceil(octaves / step) + 1))
        parts = np.diff(np.minimum(sizes[:, None], np.append(0.0, radii)), axis=1)
        mass = (users * masses / sizes) @ parts
        count = len(radii) if top else int((mass > 1e-7 * mass.sum()).sum())
        radii, parts, mass = radii[:count], parts[:, :count], np.maximum(mass[:count], 1e-12)
        theirs = np.minimum((users * strange * masses / sizes) @ parts / mass, 1.0)
        own = (parts.T * users) @ parts / np.outer(mass, mass) / spread
        apart = APART * np.outer(theirs, theirs)
        firsts = {min(int(np.searchsorted(radii, quantile(q))), count - 1) for q in FIRST_LEVELS}
        return cls(radii, mass, own, apart, tuple(sorted(firsts)), math.sqrt(spread))

    @cached_property
    def shares(self) -> Floats:
        part: Floats = self.masses / self.masses.sum()
        return part

    @cached_property
    def octaves(self) -> Floats:
        """Where shells are, from the lowest on."""
        places: Floats = np.arange(len(self.masses), dtype=np.float64) * (TUNING.step / 2)
        return places

    def walks(self, told: float) -> tuple[Floats, Floats]:
        """The covariances of two random walks over shells, of variance 1 an octave: one that moves up to the median of
        mass, and one that moves beyond it, and faster, with the root of the size, beyond the size `told`, in units.
        """
        low = np.arange(len(self.masses) - 1) < np.searchsorted(np.cumsum(self.shares), 0.5)
        faster = np.sqrt(np.maximum(self.radii[1:] / self.unit / told, 1.0))
        steps = [np.append(0.0, np.cumsum(part * TUNING.step / 2)) for part in (low, ~low * faster)]
        return np.minimum.outer(steps[0], steps[0]), np.minimum.outer(steps[1], steps[1])


class Drift:
    """What is believed of the drift: a posterior over (low, high, shape), by prior and by all levels measured so far.
    low, high: its variances; shape: the place in POWERS of how they depend on items.
    """

    def __init__(self) -> None:
        found = np.array(list(product(VARIANCES, VARIANCES, range(len(POWERS)))))
        self.low, self.high, self.shape = found[:, 0], found[:, 1], found[:, 2].astype(np.int64)
        logs = np.log(found[:, :2] / TUNING.drift) / TUNING.drift_spread
        self._log: Floats = -0.5 * (logs**2).sum(axis=1)
        self.posterior = _likely(self._log)
        self._precision, self._score = 1 / TUNING.drift, 0.0
        self._told = math.inf
        self._walked: tuple[Shells, float, tuple[Floats, Floats]] | None = None

    def elsewhere(self) -> Drift:
        """What is believed of the drift around another centre: variances may differ, by half of what the prior lets
        them.
        """
        away = np.log(VARIANCES[:, None] / VARIANCES) / (TUNING.drift_spread / 2)
        blur = np.exp(-0.5 * away**2)
        blur /= blur.sum(axis=0)
        grid = self.posterior.reshape(len(VARIANCES), len(VARIANCES), len(POWERS))
        found = copy(self)
        found._log = np.log(np.maximum(np.einsum("ai,bj,ijk->abk", blur, blur, grid).ravel(), 1e-300))
        found.posterior = _likely(found._log)
        found._told, found._walked = math.inf, None
        return found

    @property
    def tilt(self) -> tuple[float, float]:
        """What shares in f^(1 + t) gain in t with each octave, and its standard deviation: users far from the crowd
        mostly hold more of what is common (if they have few items) or less of it (if they have many).
        """
        return self._score / self._precision, 1 / math.sqrt(self._precision)

    def covariances(self, shells: Shells) -> list[Floats]:
        """The covariances of the q_l, to be multiplied by the moments of an item: own scatter, and the walk of each
        shape with the variance of its mean error: the mean variance would rest on what is unlikely.
        """
        low, high = self._walks(shells)
        walks = []
        for shape in range(len(POWERS)):
            weights = self.posterior * (self.shape == shape)
            walk = _mean_root(weights, self.low) * low + _mean_root(weights, self.high) * high
            walks.append(walk + weights.sum() * shells.strange)
        return [shells.own, *walks]

    def _walks(self, shells: Shells) -> tuple[Floats, Floats]:
        """The walks of these shells, which are asked for again for each group of items."""
        if self._walked is None or self._walked[0] is not shells or self._walked[1] != self._told:
            self._walked = shells, self._told, shells.walks(self._told)
        return self._walked[2]

    def deviations(self, shells: Shells, combination: Floats, items: GroupShares) -> tuple[Floats, Floats]:
        """The standard deviation of a combination of the q_l, for each of these items: its root mean square over the
        posterior, and its mean.
        """
        own, strange, low, high = (
            max(float(combination @ one @ combination), 0.0)
            for one in (shells.own, shells.strange, *self._walks(shells))
        )
        walked, moments = self.low * low + self.high * high, items.moments
        by_shape = np.bincount(self.shape, self.posterior * walked, len(POWERS))
        # Strangers may all hold one item, and which is a matter of its share.
        root: Floats = np.sqrt(moments[0] * (own + strange / APART) + by_shape @ moments[1:])
        walked = walked + strange
        # The mean over the posterior is smooth in the share: some items tell it for those between.
        some = moments[:, items.knots]
        mean = self.posterior @ np.sqrt(some[0] * own + some[1:].take(self.shape, axis=0) * walked[:, None])
        found: Floats = np.interp(items.logs, items.knot_logs, mean / np.maximum(root[items.knots], 1e-300)) * root
        return root, found

    def learn(self, shells: Shells, levels: Levels, groups: Sequence[ItemGroup]) -> None:
        """Take in the differences between neighbouring levels."""
        count = len(levels.ends)
        if count < 2:
            return
        contrast = np.diff(np.eye(count), axis=0)
        mix = levels.mixing(shells)
        own, strange = (mix @ each @ mix.T for each in (shells.own, shells.strange))
        low, high = (mix @ walk @ mix.T for walk in self._walks(shells))
        stacked = self.low[:, None, None] * low + self.high[:, None, None] * high + strange
        steps = contrast @ mix @ shells.octaves
        posterior = self.posterior
        variances = []
        for group in groups:
            noise = np.diag(levels.noise(group))
            drift = stacked * group.moments[1:][self.shape][:, None, None]
            variance = contrast @ (noise + own * group.moments[0] + drift) @ contrast.T
            # If one level is noisier than others beyond all digits, differences with it would all be the same.
            floor = LEAST_VARIANCE * np.trace(variance, axis1=1, axis2=2)[:, None, None]
            variances.append(variance + floor * np.eye(count - 1))
            weighed = np.linalg.solve(np.tensordot(posterior, variances[-1], 1), steps)
            self._precision += float(weighed @ steps) * float(group.tilts @ group.tilts)
            self._score += float(weighed @ contrast @ levels.values[:, group.members] @ group.tilts)
        for group, variance in zip(groups, variances, strict=True):
            n = len(group.members)
            away = contrast @ levels.values[:, group.members] - self.tilt[0] * np.outer(steps, group.tilts)
            square = away @ away.T / n
            fit = np.trace(np.linalg.solve(variance, np.broadcast_to(square, variance.shape)), axis1=1, axis2=2)
            self._log = self._log - 0.5 * n * (np.linalg.slogdet(variance)[1] + fit)
        self.posterior = _likely(self._log)
        self._told = shells.radii[_last_telling(levels, steps, groups)] / shells.unit


def _likely(logs: Floats) -> Floats:
    """Probabilities from their logarithms, to which any constant may be added."""
    weights = np.exp(logs - logs.max())
    likely: Floats = weights / weights.sum()
    return likely


def _mean_root(weights: Floats, variances: Floats) -> float:
    """The square of the mean root of variances, times the sum of the weights."""
    return float(weights @ np.sqrt(variances)) ** 2 / max(float(weights.sum()), 1e-300)


def _last_telling(levels: Levels, steps: Floats, groups: Sequence[ItemGroup]) -> int:
    """The shell with which the last level ends that told of drift: its logarithm would be known to within 1, if it were
    what is believed beforehand.
    """
    last = levels.ends[0]
    for j, step in enumerate(steps.tolist(), start=1):
        known = 0.0
        for group in groups:
            ratio = TUNING.drift * step * group.moments[1] / (levels.variances[j] * group.scale_square)
            known += len(group.members) / 2 * (ratio / (1 + ratio)) ** 2
        if known > 1.0:
            last = levels.ends[j]
    return last


@dataclass(frozen=True, eq=False)
class Levels:
    """What a round measured: level j ends with shell ends[j]; values[j]: its mean distribution, item by item;
    variances[j]: of its noise, for an item of scale 1; divisors[j]: of what the error of its mass does, item by item.
    """

    ends: tuple[int, ...]
    values: Floats
    variances: Floats
    divisors: Floats

    def mixing(self, shells: Shells) -> Floats:
        return _mixing(self.ends, shells)

    def noise(self, group: ItemGroup) -> Floats:
        """The variances of a group of items, on average."""
        average: Floats = self.variances * group.scale_square + self.divisors[:, group.members].mean(axis=1)
        return average


def combine_levels(
    shells: Shells,
    levels: Levels,
    drift: Drift,
    groups: Sequence[ItemGroup],
    scales: Floats,
    shares: Sequence[GroupShares],
) -> tuple[Floats, Floats, Floats, Floats]:
    """The best linear unbiased estimate of the answer from one round's levels, the variance of its noise, and the
    standard deviation of its bias, item by item: its root mean square over what the drift may be, and its mean. Levels
    are weighed by what was believed of `groups`; the bias is that of items with these `shares`, group by group.
    """
    estimate, noise, bias, expected = (np.zeros(len(scales)) for _ in range(4))
    mix = levels.mixing(shells)
    sums = _moments(shells, mix, drift.covariances(shells))
    weighed = _best(np.array([levels.noise(group) for group in groups]), sums, np.array([g.moments for g in groups]))
    tilt, tilt_error = drift.tilt
    # How much lies beyond the last level is predicted, not measured.
    tilt_error = math.hypot(tilt_error, TUNING.mass_doubt * tilt)
    for group, items, weights in zip(groups, shares, weighed, strict=True):
        i = group.members
        noise[i] = weights**2 @ (np.outer(levels.variances, scales[i] ** 2) + levels.divisors[:, i])
        missing = shells.shares - weights @ mix
        moved = float(missing @ shells.octaves)
        estimate[i] = weights @ levels.values[:, i] + tilt * moved * group.tilts
        root, mean = drift.deviations(shells, missing, items)
        bias[i], expected[i] = (np.hypot(each, tilt_error * moved * items.tilts) for each in (root, mean))
    return estimate, noise, bias, expected


def plan_levels(
    shells: Shells,
    covariances: Sequence[Floats],
    groups: Sequence[ItemGroup],
    variance: Callable[[Floats], Floats],
    most: int,
) -> tuple[float, tuple[int, ...], Floats]:
    """The least predicted l1 error over all items, where the levels end that promise it, and their shares of the round.

    `variance(x)`: of the noise on a sum of vectors of norm at most 1 with a share x of the round. Shares in proportion
    to the widths of levels make all levels together as noisy as one sum clipped at the last radius.
    """
    count, stride = len(shells.radii), max(1, round(2 * TUNING.level_octaves / TUNING.step))
    tried: list[tuple[float, tuple[int, ...], Floats]] = []
    sizes = math.sqrt(2 / math.pi) * np.array([len(g.members) for g in groups])
    squares, beliefs = np.array([g.scale_square for g in groups]), np.array([g.moments for g in groups])

    def cost_of(ends: tuple[int, ...]) -> Callable[[Floats], float]:
        """The predicted error with these levels, by their shares of the round."""
        unit = (_widths(ends, shells) / _masses(ends, shells)) ** 2
        believed = _believed(_moments(shells, _mixing(ends, shells), covariances), beliefs)
        return lambda x: float(sizes @ np.sqrt(_least_variances(unit * variance(x), believed, squares)))

    for first in shells.firsts:
        chain = sorted({*range(first, count, stride), count - 1})
        for top in range(1, min(len(chain), most) + 1):
            ends = tuple(chain[:top])
            if top == 1 and len(chain) > 1 and shells.shares[: first + 1].sum() < MEASURED:
                continue
            cost = cost_of(ends)
            for power in (0.0, 0.5, 1.0) if top > 1 else (1.0,):
                x = _widths(ends, shells) ** power
                tried.append((cost(x / x.sum()), ends, x / x.sum()))
    enough = NEARLY_BEST * min(one[0] for one in tried)
    least, ends, x = min((one for one in tried if one[0] <= enough), key=lambda one: (-one[1][-1], one[0]))
    cost = cost_of(ends)
    for factor in (3.0, 1 / 3, 1.5, 1 / 1.5) * 2:
        for j in range(len(x)):
            other = x.copy()
            other[j] *= factor
            other /= other.sum()
            error = cost(other)
            if error < least * 0.999:
                least, x = error, other
    return least, ends, x


_Sums = list[tuple[Floats, Floats, float]]


def _mixing(ends: Sequence[int], shells: Shells) -> Floats:
    """Each level as a mean of its shells, by mass."""
    mix = np.zeros((len(ends), len(shells.masses)))
    first = 0
    for j, end in enumerate(ends):
        part = shells.masses[first : end + 1]
        mix[j, first : end + 1] = part / part.sum()
        first = end + 1
    return mix


def _masses(ends: Sequence[int], shells: Shells) -> Floats:
    return np.diff(np.append(0.0, np.cumsum(shells.masses)[list(ends)]))


def _widths(ends: Sequence[int], shells: Shells) -> Floats:
    return np.diff(np.append(0.0, shells.radii[list(ends)]))


def _moments(shells: Shells, mix: Floats, covariances: Sequence[Floats]) -> _Sums:
    """For each covariance: with the levels, between them, and of the answer itself."""
    p = shells.shares
    return [(mix @ (one @ p), mix @ one @ mix.T, float(p @ one @ p)) for one in covariances]


def _best(noise: Floats, sums: _Sums, moments: Floats) -> Floats:
    """Weights of levels that sum to 1, for an answer with the least error. A row for each group, as in `noise`, the
    variances of levels, and in `moments`.
    """
    with_answer = sum(f[:, None] * c for f, (c, _, _) in zip(moments.T, sums, strict=True))
    between = sum(f[:, None, None] * v for f, (_, v, _) in zip(moments.T, sums, strict=True))
    levels = np.arange(noise.shape[1])
    between[:, levels, levels] += noise
    inverse = np.linalg.inv(between)
    ones = inverse.sum(axis=2)
    weights = (inverse @ with_answer[:, :, None])[:, :, 0]
    unbiased: Floats = weights + ones * (1 - weights.sum(axis=1, keepdims=True)) / ones.sum(axis=1, keepdims=True)
    return unbiased


_Believed = tuple[Floats, Floats, Floats]


def _believed(sums: _Sums, moments: Floats) -> _Believed:
    """`sums` as they weigh for each group, a row of `moments`: with the levels, between them, and of the answer."""
    with_answer, between, answer = (np.array(each) for each in zip(*sums, strict=True))
    return moments @ with_answer, np.tensordot(moments, between, 1), moments @ answer


def _least_variances(noise: Floats, believed: _Believed, scale_squares: Floats) -> Floats:
    """The variances of `_best`."""
    with_answer, between, answer = believed
    inverse = np.linalg.inv(between + np.diag(noise) * scale_squares[:, None, None])
    ones = inverse.sum(axis=2)
    weights = (inverse @ with_answer[:, :, None])[:, :, 0]
    weights = weights + ones * ((1 - weights.sum(axis=1)) / ones.sum(axis=1))[:, None]
    noisy = (weights**2 * noise).sum(axis=1) * scale_squares
    left = (between @ weights[:, :, None])[:, :, 0] - 2 * with_answer
    variances: Floats = np.maximum(answer + (weights * left).sum(axis=1), 0.0) + noisy
    return variances
