"""A noisy histogram of users, and which of its bins stand out of the noise. Post-processing of noisy values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from ..arrays import Booleans, Floats, Integers
from .measurements import inverse_variance_mean
from .tuning import TUNING

__all__ = ["Bins", "Window", "find_windows", "merged"]

Number = TypeVar("Number", np.float64, np.int64)


def merged(values: npt.NDArray[Number], edges: Floats, wider: Floats) -> npt.NDArray[Number]:
    """Sums of `values`, one for each bin that ends at `edges`, over wider bins, whose edges are among these."""
    sums: npt.NDArray[Number] = np.add.reduceat(values, np.append(0, np.searchsorted(edges, wider)[:-1] + 1))
    return sums


@dataclass(frozen=True, eq=False)
class Bins:
    """A noisy histogram: `users[j]`, with noise of standard deviation `deviations[j]`, are larger than edges[j-1] and
    at most edges[j]. `laplace`: the noise is Laplace, not Gaussian. `added`: the histograms that it is the mean of.
    """

    users: Floats
    deviations: Floats
    edges: Floats
    laplace: bool
    added: tuple[Bins, ...] = ()

    @property
    def looks(self) -> tuple[Bins, ...]:
        """The histograms that were drawn."""
        return self.added or (self,)

    def merged(self, edges: Floats) -> Bins:
        """The same users in wider bins, whose edges are among these."""
        users, variances = (merged(each, self.edges, edges) for each in (self.users, self.deviations**2))
        return Bins(users, np.sqrt(variances), edges, self.laplace, tuple(each.merged(edges) for each in self.added))

    def __add__(self, other: Bins) -> Bins:
        """Two looks at the same users, weighed by inverse variance, in the bins that both have."""
        edges = np.intersect1d(self.edges, other.edges, assume_unique=True)
        one, two = self.merged(edges), other.merged(edges)
        users, deviations = inverse_variance_mean(one.users, one.deviations, two.users, two.deviations)
        looks = tuple(look.merged(edges) for look in (*self.looks, *other.looks))
        return Bins(users, deviations, edges, self.laplace, looks)


@dataclass(frozen=True)
class Window:
    """Bins that stand out of the noise, and the probability that they hold noise only."""

    first: int
    last: int
    doubt: float


def find_windows(bins: Bins, eager: bool) -> list[Window]:
    """Windows that hold users: those that stand out, the clearer the farther they are from others; then windows beside
    them.
    """
    taken = np.zeros(len(bins.users), dtype=bool)
    marked: list[Window] = []
    for chance in (1.0, 10.0, 100.0) if eager else (1.0, 10.0):
        for width in (1, 2, 4, 8, 16):
            while window := _mark(bins, taken, width, chance * TUNING.first_alarm, beside=False):
                marked.append(window)
        if marked:
            break
    for width in (1, 2, 4) if marked else ():
        while window := _mark(bins, taken, width, TUNING.beside, beside=True):
            marked.append(window)
    return marked


def _mark(bins: Bins, taken: Booleans, width: int, chance: float, *, beside: bool) -> Window | None:
    """Take the window that stands out most, if one does: noise alone would do so with `chance`, or, once others are
    taken, with `more_alarm` and half as much for every octave that lies between. A window that just does is as likely
    to be noise as not.
    """
    if width > len(taken):
        return None
    ones = np.ones(width)
    rest, variances = np.where(taken, 0.0, bins.users), np.where(taken, 0.0, bins.deviations**2)
    fresh, begin = np.convolve(~taken, ones, "valid"), np.arange(len(taken) - width + 1)
    chances, possible = _chances(bins, taken, begin, begin + width, chance, beside)
    clear = np.convolve(rest, ones, "valid") / np.sqrt(np.maximum(np.convolve(variances, ones, "valid"), 1e-300))
    clear = np.where(possible & (fresh > 0), clear - _limits(chances, fresh, bins.laplace), -np.inf)
    for best in np.argsort(-clear):
        if clear[best] < 0:
            break
        window = _narrowed(bins, taken, rest, variances, int(best), width, chance, beside)
        if window is not None:
            taken[window.first : window.last + 1] = True
            return window
    return None


def _chances(
    bins: Bins, taken: Booleans, begin: Integers, end: Integers, chance: float, beside: bool
) -> tuple[Floats, Booleans]:
    """With which chance noise may stand out in windows of these bins, and which windows are asked about."""
    chances, possible = np.full(len(begin), chance), np.ones(len(begin), dtype=bool)
    if not taken.any():
        return chances, possible
    first, last = np.flatnonzero(taken)[[0, -1]]
    logs = np.log2(bins.edges)
    near = (begin <= last + 1) & (end >= first)
    if beside:
        return chances, near
    gap = np.maximum(logs[np.maximum(begin - 1, 0)] - logs[last], logs[first] - logs[end - 1])
    return np.where(near, 1.0, 2.0 ** -np.maximum(gap, 0.0)) * TUNING.more_alarm, possible


def _narrowed(
    bins: Bins, taken: Booleans, rest: Floats, variances: Floats, begin: int, width: int, chance: float, beside: bool
) -> Window | None:
    """The part of a window that stands out most, if it does so by itself: it may lie farther from others."""
    totals = np.append(0.0, np.cumsum(rest[begin : begin + width]))
    squares = np.append(0.0, np.cumsum(variances[begin : begin + width]))
    i, j = max(
        ((i, j) for i in range(width) for j in range(i + 1, width + 1) if squares[j] > squares[i]),
        key=lambda ends: (totals[ends[1]] - totals[ends[0]]) / math.sqrt(squares[ends[1]] - squares[ends[0]]),
    )
    standing = (totals[j] - totals[i]) / math.sqrt(squares[j] - squares[i])
    fresh = np.array([float((~taken[begin + i : begin + j]).sum())])
    chances, possible = _chances(bins, taken, np.array([begin + i]), np.array([begin + j]), chance, beside)
    if not possible[0] or standing < _limits(chances, fresh, bins.laplace)[0]:
        return None
    tried = chances[0] * np.geomspace(1.0, 1e-6, 25)
    limits = _limits(tried, np.full(len(tried), fresh[0]), bins.laplace)
    noise = float(np.exp(np.interp(standing, limits, np.log(tried))))
    return Window(begin + i, begin + j - 1, noise / (noise + float(chances[0])))


def _limits(chances: Floats, bins: Floats, laplace: bool) -> Floats:
    """Standard deviations that the noise of so many bins together exceeds with these chances. Sums of Laplace draws
    come near the normal law as the root of their number grows.
    """
    normal: Floats = -ndtri(chances)
    if not laplace:
        return normal
    single = -np.log(2 * chances) / math.sqrt(2)
    return normal + (single - normal) / np.sqrt(np.maximum(bins, 1.0))
