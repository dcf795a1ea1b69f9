"""Users by size (rows, or distance from a centre): what a noisy histogram on a logarithmic scale says of them.

Bins that stand out of the noise are smoothed: their users rise once and fall once. Beyond the last of them users are
too few to be seen, but not nobody: a tail goes on from what is seen, as steeply as the noise beyond allows, and how
steeply is uncertain. A reading is therefore a set of crowds with probabilities. Post-processing of noisy values.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .measurements import agreed
from .tuning import TUNING

__all__ = ["Bins", "Crowds", "read"]

Floats = npt.NDArray[np.float64]

REACH = 8.0
"""Octaves beyond what is seen in which users are thought possible."""
FITTED = 1.5
"""Octaves of what is seen that a tail continues."""
ROUGH = 0.15
"""How far smoothed bins are from a tail's formula, relative."""
HIDDEN = np.geomspace(1e-5, 1e-2, 7)
"""Shares of users that may have rows of another order."""
LEAST = 0.3
"""A tail ends where fewer users than this are expected beyond."""


@dataclass(frozen=True)
class Bins:
    """A noisy histogram: `users[j]`, with noise of standard deviation `deviation`, are larger than edges[j-1] and at
    most edges[j]. `laplace`: the noise is Laplace, not Gaussian.
    """

    users: Floats
    deviation: float
    edges: Floats
    laplace: bool

    def __add__(self, other: Bins) -> Bins:
        """Two looks at the same histogram, weighed by inverse variance."""
        users, deviation = agreed(self.users, self.deviation, other.users, other.deviation)
        return Bins(users, deviation, self.edges, self.laplace)


@dataclass(frozen=True)
class Crowds:
    """What a histogram leaves possible: row t of `users` has probability `weights[t]`; column j are users of size
    `sizes[j]`. `error` is the standard deviation of the number of users that are seen.
    """

    sizes: Floats
    users: Floats
    weights: Floats
    error: float

    @property
    def typical(self) -> Floats:
        """The geometric mean over the crowds that are possible."""
        logs = self.weights @ np.log(self.users + 1e-9)
        return np.where(self.users.max(axis=0) > 0, np.exp(logs) - 1e-9, 0.0).clip(0.0)

    @property
    def settled(self) -> Crowds:
        """The typical crowd alone, as if it were certain."""
        return Crowds(self.sizes, self.typical[None, :], np.ones(1), self.error)

    def spread_out(self, parts: int) -> Floats:
        """So many crowds, as likely as each other, in the order of what their largest users hold."""
        order = np.argsort(self.users @ self.sizes)
        cumulative = np.cumsum(self.weights[order])
        places = np.searchsorted(cumulative, (np.arange(parts) + 0.5) / parts)
        chosen: Floats = self.users[order[np.minimum(places, len(order) - 1)]]
        return chosen

    def quantile(self, share: float) -> float:
        """The size that this share of users do not exceed."""
        typical = self.typical
        place = np.searchsorted(np.cumsum(typical) / typical.sum(), share)
        return float(self.sizes[min(int(place), len(self.sizes) - 1)])


def read(bins: Bins, *, eager: bool = False, strangers: bool = False) -> Crowds | None:
    """The crowds that `bins` leave possible; None if nothing stands out. `eager`: if nothing is clear, believe less.
    `strangers`: a few users beside the crowd are possible.
    """
    ends = _seen(bins, eager)
    if ends is None:
        return None
    first, last = ends
    upper = bins.edges
    lower = np.append(max(upper[0] / 2, 0.5) if upper[0] == 1 else upper[0] * upper[0] / upper[1], upper[:-1])
    sizes = np.sqrt(lower * upper)
    if upper[0] == 1:  # whole numbers of rows: from the one after the edge below
        sizes = np.sqrt(np.append(1.0, upper[:-1] + 1) * upper)
    widths = np.log2(upper / lower)
    shape = np.zeros(len(bins.users))
    shape[first : last + 1] = _rising_and_falling(bins.users[first : last + 1])
    alike = math.log2(sizes[last] / sizes[first]) < 1.0  # by design, most likely: nobody has rows of another order
    tails, weights = _tails(bins, shape, sizes, widths, last, HIDDEN if strangers and not alike else HIDDEN[:0])
    users = np.where(np.arange(len(shape)) <= last, shape, tails)
    return Crowds(sizes, users, weights, bins.deviation * math.sqrt(last - first + 1))


def _tails(
    bins: Bins, shape: Floats, sizes: Floats, widths: Floats, last: int, hidden: Floats
) -> tuple[Floats, Floats]:
    """Tails beyond the last bin that is seen, and their posterior: the crowd's own, and perhaps a few users beside it.

    The crowd's own are A exp(-b x - c x^2) users an octave, x octaves from where they begin; b is log-normal by prior,
    c anything from 0 (a power law) to a log-normal's. Four times in five a share of all users, too few to be seen, has
    rows of another order (robots, shared accounts): half as many users with each octave. The likelihood is that of the
    last octaves seen and of the noise beyond.
    """
    x = np.log2(sizes)
    top = int(np.argmax(shape / widths))
    start = max(int(np.searchsorted(x, x[last] - FITTED)), min(top, last))
    end = min(int(np.searchsorted(x, x[last] + REACH)), len(x) - 1)
    part = slice(start, end + 1)
    away, beyond = x[part] - x[start], np.arange(start, end + 1) > last
    seen = np.append(shape[start : last + 1], bins.users[last + 1 : end + 1])
    variance = bins.deviation**2 + np.where(beyond, 0.0, ROUGH * seen) ** 2
    slopes, bends = np.meshgrid(np.geomspace(0.2, 40, 24), np.append(0.0, np.geomspace(0.02, 5, 6)), indexing="ij")
    b, c = slopes.ravel(), bends.ravel()
    form = np.exp(-b[:, None] * away - c[:, None] * away**2) * widths[part]
    size = np.maximum((form * seen / variance).sum(axis=1) / (form**2 / variance).sum(axis=1), 0.0)
    own = size[:, None] * form
    few = np.where(beyond, math.log(2) * widths[part] * 2.0 ** (x[last] - x[part]), 0.0) * shape.sum()
    parts = np.append(0.0, hidden)
    expected = (own[:, None, :] + parts[:, None] * few).reshape(-1, len(away))
    chances = np.append(0.2, np.full(len(hidden), 0.8 / max(len(hidden), 1)))
    prior = -0.5 * (np.log(b / TUNING.fall) / TUNING.fall_spread) ** 2
    fit = -0.5 * ((seen - expected) ** 2 / variance).sum(axis=1) + np.add.outer(prior, np.log(chances)).ravel()
    weights = np.exp(fit - fit.max())
    keep = weights > 1e-3
    tails = np.zeros((int(keep.sum()), len(sizes)))
    tails[:, part] = np.where(beyond, expected[keep], 0.0)
    left = np.cumsum(tails[:, ::-1], axis=1)[:, ::-1]
    return np.where(left > LEAST, tails, 0.0), weights[keep] / weights[keep].sum()


def _seen(bins: Bins, eager: bool) -> tuple[int, int] | None:
    """The first and the last bin that hold users: windows that stand out, the clearer the farther they are from others;
    then windows beside them.
    """
    limit = TUNING.seen_laplace if bins.laplace else TUNING.seen_gaussian
    marked = np.zeros(len(bins.users), dtype=bool)
    for factor in (1.0, 0.85, 0.7) if eager else (1.0, 0.85):
        for width in (1, 2, 4, 8, 16):
            while _mark(bins, marked, width, factor * limit, beside=False):
                pass
        if marked.any():
            break
    if not marked.any():
        return None
    for width in (1, 2, 4):
        while _mark(bins, marked, width, TUNING.beside, beside=True):
            pass
    places = np.flatnonzero(marked)
    return int(places[0]), int(places[-1])


def _mark(bins: Bins, marked: npt.NDArray[np.bool_], width: int, limit: float, *, beside: bool) -> bool:
    """Mark the window that stands out most, if one does. Six octaves of distance double what it must show."""
    if width > len(marked):
        return False
    ones = np.ones(width)
    rest, fresh = np.where(marked, 0.0, bins.users), np.convolve(~marked, ones, "valid")
    sums = np.convolve(rest, ones, "valid")
    clear = np.where(fresh > 0, sums / (bins.deviation * np.sqrt(np.maximum(fresh, 1))), -np.inf)
    if marked.any():
        first, last = np.flatnonzero(marked)[[0, -1]]
        begin, end = np.arange(len(clear)), np.arange(len(clear)) + width
        logs = np.log2(bins.edges)
        gap = np.maximum(logs[np.maximum(begin - 1, 0)] - logs[last], logs[first] - logs[end - 1])
        near = (begin <= last + 1) & (end >= first)
        if beside:
            clear = np.where(near, clear, -np.inf)
        else:
            clear = np.where(near, clear, clear - np.maximum(gap, 0.0) * limit / 6)
    best = int(np.argmax(clear))
    if clear[best] < limit:
        return False
    totals = np.append(0.0, np.cumsum(rest[best : best + width]))
    counts = np.append(0, np.cumsum(~marked[best : best + width]))
    i, j = max(
        ((i, j) for i in range(width) for j in range(i + 1, width + 1) if counts[j] > counts[i]),
        key=lambda ends: (totals[ends[1]] - totals[ends[0]]) / math.sqrt(counts[ends[1]] - counts[ends[0]]),
    )
    marked[best + i : best + j] = True
    return True


def _rising_and_falling(values: Floats) -> Floats:
    """The nearest (l2) non-negative sequence that rises to one bin and falls after it."""
    fits = [
        np.concatenate([_falling(values[: top + 1][::-1])[::-1], _falling(values[top + 1 :])])
        for top in range(len(values))
    ]
    nearest: Floats = min(fits, key=lambda fit: float(((fit - values) ** 2).sum()))
    return np.maximum(nearest, 0.0)


def _falling(values: Floats) -> Floats:
    """Isotonic regression, decreasing: pool adjacent violators."""
    means: list[float] = []
    sizes: list[int] = []
    for value in values.tolist():
        means.append(value)
        sizes.append(1)
        while len(means) > 1 and means[-2] < means[-1]:
            size = sizes[-2] + sizes[-1]
            means[-2] = (means[-2] * sizes[-2] + means[-1] * sizes[-1]) / size
            sizes[-2] = size
            means.pop()
            sizes.pop()
    return np.repeat(np.array(means, dtype=np.float64), sizes)
