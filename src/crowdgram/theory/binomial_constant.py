"""The best constant in Theorem 5's lower bound: measured, and for any one m proved by computation.

The paper's proof gives 1/350. The ratio distance / scale (see `binomial_distance`) has its least value for m rows near
mp = 1.46 with q one deviation above p; it falls with m to 0.63415... in the Poisson limit. `MEASURED_CONSTANT` is that
value rounded down. What is known of it: docs/theory.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy

from ..arrays import Floats
from .binomial_distance import binomial_distance, distance_scale, poisson_distance, tail_start
from .ranges import OutOfRange, real, whole

__all__ = ["MEASURED_CONSTANT", "Least", "least_ratio", "limit_ratio", "lower_bound_holds"]


MEASURED_CONSTANT = 0.634
"""Below every ratio measured (see `least_ratio`) and below their limit, 0.634151..."""

_MOST_PROVED = 10**5
_SHORT = 0.1
_MARGIN = 1e-9  # far above the rounding of a distance


@dataclass(frozen=True)
class Least:
    """The least ratio found, and where."""

    ratio: float
    p: float
    q: float


def least_ratio(m: int, points: int = 400) -> Least:
    """The least distance / scale over a grid for this m, then refined.

    The grid: `points` values of p <= 1/2 even in arcsin(sqrt(p)) and as many even in p up to min(1/2, 5/m); q on either
    side of p, at 13 fractions of 1/a from 1e-6 to 1, where a |p-q| is the scale. (Beyond 1/a the scale stays 1 and the
    distance grows.) Larger p mirror these. Then p is refined, with q at the grid's fraction.
    """
    whole("The measured constant of Theorem 5", "m", m, 1)
    p = np.unique(
        np.concatenate(
            [np.sin(np.linspace(0, math.pi / 4, points + 1)[1:]) ** 2, np.linspace(0, min(0.5, 5 / m), points + 1)]
        )
    )
    best = (math.inf, 0.0, 0.0)
    for fraction in (*np.geomspace(1e-6, 1, 13), -1e-3, -0.1, -0.5, -1.0):
        ratios = _ratio(m, p, fraction)
        at = int(np.argmin(ratios))
        best = min(best, (float(ratios[at]), float(p[at]), float(fraction)))
    _, middle, fraction = best
    span = 5 * max(1 / m, math.sqrt(middle * (1 - middle) / m)) / math.sqrt(points)
    fine = np.clip(np.linspace(middle - span, middle + span, 2001), 0.0, 0.5)
    ratios = _ratio(m, fine, fraction)
    at = int(np.argmin(ratios))
    return Least(float(ratios[at]), float(fine[at]), float(fine[at] + fraction / _steepness(m, fine[at])))


def limit_ratio() -> Least:
    """The least ratio in the limit of many rows with mp = L fixed: Poisson(L) against Poisson(L + sqrt(L)), L >= 1.

    p and q of the answer are the two means. Below L = 1 the ratio is at least that at 1, above 4 at least 0.68.
    """
    grid = np.linspace(1.0, 4.0, 3001)
    start = int(np.argmin(_limit(grid)))
    found = scipy.optimize.minimize_scalar(
        lambda mean: float(_limit(np.float64(mean))),
        bounds=(grid[max(start - 1, 0)], grid[start + 1]),
        method="bounded",
        options={"xatol": 1e-10},
    )
    mean = min((float(found.x), *grid[start - 1 : start + 2].tolist()), key=lambda x: float(_limit(np.float64(x))))
    return Least(float(_limit(np.float64(mean))), mean, mean + math.sqrt(mean))


def lower_bound_holds(m: int, constant: float, most_cells: int = 4_000_000) -> bool:
    """Whether distance >= constant * scale for this m and *all* p, q in [0, 1], decided by computation.

    By symmetry p <= 1/2. Let a(p) = min(m, sqrt(m / (p(1-p)))), d = |p-q| and f = a(p) d, so that the scale is
    min(f, 1). The pairs (p, f) are covered by cells, on each of which a bound below the ratio is computed; cells where
    it falls short are cut in four, until none is left (True) or a corner of one breaks the bound (False). The bounds,
    for p from p1 to p2:

    - f from f1 to f2, or any f >= f1 if f2 = 1: moving p and q apart never brings the binomials closer, and p + f1/a(p)
      and p - f1/a(p) grow with p; so the ratio is at least distance(p2, p1 + f1/a(p1)) / f2 upwards, and
      distance(p1, p2 - f1/a(p2)) / f2 downwards.
    - f at most 0.1: the distance is at least 2 d times the least density of Beta(t, m-t+1) between p and q, for any t,
      and that density has one peak, so its least value lies at an end.

    Numbers are floating point, with a margin of 1e-9 against a rounding that is far below. Raises `OutOfRange` if more
    than `most_cells` would be needed: the constant is then too near the truth to tell.
    """
    theorem = "The computed proof of Theorem 5's constant"
    whole(theorem, "m", m, 1, _MOST_PROVED)
    real(theorem, "constant", constant, 0.0, 2.0)
    edges = np.linspace(0, math.pi / 4, max(8, math.ceil(16 * math.sqrt(m))) + 1)
    fractions = np.geomspace(_SHORT, 1.0, 12)
    fractions[-1] = 1.0
    for side in (1, -1):
        thin = np.stack([edges[:-1], edges[1:]])
        cells = np.stack([one.ravel() for one in _pairs(edges, fractions)])
        examined = 0
        while thin.size or cells.size:
            examined += thin.shape[1] + cells.shape[1]
            if examined > most_cells:
                raise OutOfRange(f"{theorem} needs a constant further from the least ratio than {constant:g}.")
            if np.any(_ratio(m, np.sin(cells[0]) ** 2, side * cells[3]) < constant):
                return False
            thin = thin[:, _bound_short(m, thin, side) < constant + _MARGIN]
            thin = _halved(thin)
            cells = _quartered(cells[:, _bound(m, cells, side) < constant + _MARGIN])
    return True


def _steepness(m: int, p: npt.ArrayLike) -> Floats:
    p = np.asarray(p, dtype=np.float64)
    with np.errstate(divide="ignore"):
        steepness: Floats = np.minimum(m, np.sqrt(m / (p * (1 - p))))
    return steepness


def _ratio(m: int, p: npt.ArrayLike, fraction: npt.ArrayLike) -> Floats:
    """Distance over scale at q = p + fraction / a(p); infinite where there is no such q."""
    p = np.asarray(p, dtype=np.float64)
    q = p + np.asarray(fraction) / _steepness(m, p)
    there = (q >= 0) & (q <= 1) & (q != p)
    q = np.where(there, q, p)
    scale = np.where(there, distance_scale(m, p, q), 1.0)
    return np.where(there, binomial_distance(m, p, q) / scale, np.inf)


def _limit(mean: npt.ArrayLike) -> Floats:
    mean = np.asarray(mean, dtype=np.float64)
    return poisson_distance(mean, mean + np.sqrt(mean))


def _pairs(edges: Floats, fractions: Floats) -> tuple[Floats, ...]:
    low, first = np.meshgrid(edges[:-1], fractions[:-1], indexing="ij")
    high, second = np.meshgrid(edges[1:], fractions[1:], indexing="ij")
    return low, high, first, second


def _bound(m: int, cells: Floats, side: int) -> Floats:
    """Below every ratio of a cell (angle from, angle to, f1, f2); infinite where a cell holds no pair."""
    p1, p2 = np.sin(cells[0]) ** 2, np.sin(cells[1]) ** 2
    if side > 0:
        near, far = p2, p1 + cells[2] / _steepness(m, p1)
        empty = far > 1
        close = far <= near
    else:
        near, far = p1, p2 - cells[2] / _steepness(m, p2)
        empty = far < 0
        close = far >= near
    apart = binomial_distance(m, near, np.where(empty | close, near, far))
    return np.where(empty, np.inf, apart / cells[3])


def _bound_short(m: int, cells: Floats, side: int) -> Floats:
    """Below every ratio with f at most 0.1, for p in a cell (angle from, angle to)."""
    p1, p2 = np.sin(cells[0]) ** 2, np.sin(cells[1]) ** 2
    low = p1 if side > 0 else np.maximum(p1 - _SHORT / _steepness(m, p1), 0.0)
    high = np.minimum(p2 + _SHORT / _steepness(m, p2), 1.0) if side > 0 else p2
    start = tail_start(m, low, high)
    least: Floats = np.zeros_like(low)
    for t in (start - 1, start, start + 1):
        inside = np.clip(t, 1, m)
        ends = np.minimum(
            scipy.stats.beta.pdf(low, inside, m - inside + 1), scipy.stats.beta.pdf(high, inside, m - inside + 1)
        )
        least = np.maximum(least, ends)
    return 2 * least / _steepness(m, p1)


def _halved(cells: Floats) -> Floats:
    middle = cells.mean(axis=0)
    return np.concatenate([np.stack([cells[0], middle]), np.stack([middle, cells[1]])], axis=1)


def _quartered(cells: Floats) -> Floats:
    angle, fraction = (cells[0] + cells[1]) / 2, (cells[2] + cells[3]) / 2
    lower = [np.stack([cells[0], angle, *ends]) for ends in ((cells[2], fraction), (fraction, cells[3]))]
    upper = [np.stack([angle, cells[1], *ends]) for ends in ((cells[2], fraction), (fraction, cells[3]))]
    return np.concatenate([*lower, *upper], axis=1)
