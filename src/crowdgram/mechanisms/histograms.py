"""Reading noisy histograms of users: which bins are real, and what lies between.

Everything here is post-processing of bins to which noise of a known standard deviation was added.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["Crowding", "grown", "near", "spread_out", "unimodal", "visible"]

Floats = npt.NDArray[np.float64]

WINDOWS = (1, 2, 4, 8)
GROW = 2.0


@dataclass(frozen=True)
class Crowding:
    """A crowd as weighted points: `users[j]` of them with a distance of `size[j]` and a weight of `mass[j]` each."""

    users: Floats
    size: Floats
    mass: Floats

    @property
    def total_mass(self) -> float:
        return float((self.users * self.mass).sum())

    def mean_square(self) -> float:
        """The mean of size^2, by mass."""
        return float((self.users * self.mass * self.size**2).sum() / self.total_mass)


def visible(bins: Floats, deviation: float, threshold: float, alone: float = 1.0) -> Floats:
    """Keep the bins that stand out of the noise, alone or in a window of 2, 4 or 8; zero elsewhere.

    `threshold` is in standard deviations. Spread over a window, users who are in no bin enough can be seen together;
    a window is opened only where nothing was seen in it or beside it, so that the neighbours of a full bin do not
    come in with it. With `alone` above 1, what is seen far from most users must stand out by that factor more.
    """
    keep = np.zeros(len(bins), dtype=bool)
    cumulative = np.concatenate([[0.0], np.cumsum(bins)])
    for width in WINDOWS:
        limit = (threshold if width == 1 else max(0.85 * threshold, 4.0)) * deviation * np.sqrt(width)
        found = keep.copy()
        for first in range(len(bins) - width + 1):
            beside = keep[max(first - 1, 0) : first + width + 1]
            if cumulative[first + width] - cumulative[first] > limit and not beside.any():
                found[first : first + width] = True
        keep = found
    seen = np.where(keep, np.maximum(bins, 0.0), 0.0)
    return _without_strays(seen, alone * threshold * deviation) if alone > 1 else seen


def grown(bins: Floats, seen: Floats, deviation: float) -> Floats:
    """`seen`, and from its ends outwards as many bins as go on standing out, by a lower bar: next to real bins, real
    ones are likely.

    A bin joins if it, or it and the next one together, exceed GROW standard deviations.
    """
    keep = seen > 0
    for step in (1, -1):
        where = np.nonzero(keep)[0]
        place = int(where.max() if step == 1 else where.min()) + step
        while 0 <= place < len(bins):
            after = bins[place + step] if 0 <= place + step < len(bins) else 0.0
            if bins[place] <= GROW * deviation and bins[place] + after <= GROW * deviation * np.sqrt(2):
                break
            keep[place] = True
            place += step
    return np.where(keep, np.maximum(bins, 1e-9), 0.0)


def unimodal(bins: Floats) -> Floats:
    """The nearest (l2) histogram that rises to one bin and falls after it, without negative bins.

    Averaging along the slopes removes most of the noise where a crowd thins out, which is where clipping is decided.
    """
    fits = [
        np.concatenate([_falling(bins[: top + 1][::-1])[::-1], _falling(bins[top + 1 :])]) for top in range(len(bins))
    ]
    errors = [((fit - bins) ** 2).sum() for fit in fits]
    nearest: Floats = fits[int(np.argmin(errors))]
    return np.maximum(nearest, 0.0)


def near(bins: Floats, seen: Floats, reach: int) -> Floats:
    """`bins` within `reach` bins of what is `seen`; zero elsewhere."""
    where = np.nonzero(seen)[0]
    places = np.arange(len(bins))
    return np.where((places >= where.min() - reach) & (places <= where.max() + reach), bins, 0.0)


def spread_out(bins: Floats, edges: Floats, parts: int) -> tuple[Floats, Floats]:
    """Users and sizes, each bin spread evenly on the log scale over `parts` points. Edges are in constant ratio."""
    ratio = edges[1] / edges[0]
    inside = ratio ** ((np.arange(parts) + 0.5) / parts - 1)
    return np.repeat(bins / parts, parts), (edges[:, None] * inside[None, :]).ravel()


def _without_strays(seen: Floats, limit: float) -> Floats:
    """Drop groups of bins apart from the fullest group (more than two empty bins between) that do not reach `limit`."""
    places = np.nonzero(seen)[0]
    if len(places) == 0:
        return seen
    groups = np.split(places, np.nonzero(np.diff(places) > 3)[0] + 1)
    fullest = max(range(len(groups)), key=lambda j: float(seen[groups[j]].sum()))
    kept = np.zeros_like(seen)
    for j, group in enumerate(groups):
        if j == fullest or seen[group].sum() / np.sqrt(len(group)) > limit:
            kept[group] = seen[group]
    return kept


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
