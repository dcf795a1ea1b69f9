"""The l1 distance of two binomials with equal m, exactly, and the paper's bounds on it (Theorem 5).

    >>> round(float(binomial_distance(1, 0.25, 0.75)), 12)
    1.0

The likelihood ratio of Bin(m, q) to Bin(m, p), p < q, grows with x. So the set where Bin(m, q) has more mass is
{x >= t}, and the distance is twice a difference of two tails: no sum over m + 1 outcomes.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import scipy
from scipy import special

from ..arrays import Floats, Integers
from .ranges import OutOfRange

__all__ = [
    "MOST_ROWS",
    "PAPER_CONSTANT",
    "binomial_distance",
    "distance_bounds",
    "distance_scale",
    "poisson_distance",
    "tail_start",
]


PAPER_CONSTANT = 1 / 350
"""The constant of Theorem 5's lower bound as its proof has it (Lemmas 6 to 8 of the paper)."""

MOST_ROWS = 10**12
"""Up to here the relative error of a distance was checked to stay below 1e-9."""

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)
_SMALL = 0.05
_LEAST = 1e-300
"""Below, the density of a Beta law overflows while it is computed."""
_LARGE, _ROUND = 10**7, 10**4
"""From so many rows on, and so many on both sides of the tail's start, its density is worked out here."""
_DEVIATIONS, _PIECES = 12.0, 8
"""A Beta law of at least _ROUND on both sides has less than 1e-30 beyond so many deviations of its mean."""


def binomial_distance(m: npt.ArrayLike, p: npt.ArrayLike, q: npt.ArrayLike) -> Floats:
    """sum_x |Bin(m, p)(x) - Bin(m, q)(x)|, a number from 0 to 2. Arguments broadcast.

    With p < q and t as in `tail_start` it is 2 (Pr[Bin(m, q) >= t] - Pr[Bin(m, p) >= t]). Where the two tails nearly
    agree the difference would cancel; there it is taken as 2 times the integral from p to q of the density of
    Beta(t, m - t + 1), which is the derivative of the tail, by 16 Gauss-Legendre nodes: on so short a piece the
    density is all but a polynomial of low degree. So it is for very many rows, in pieces and with a density of our own:
    SciPy before 1.17 is off by 2e-8 of it at 1e9 rows, and by 3e-5 at 1e12.
    """
    rows, one, other = _checked(m, p, q)
    low, high = np.minimum(one, other), np.maximum(one, other)
    start = tail_start(rows, low, high).astype(np.float64)
    rest = rows - start + 1.0
    mass = np.asarray(special.betainc(start, rest, high) - special.betainc(start, rest, low))
    large = (rows >= _LARGE) & (np.minimum(start, rest) >= _ROUND) & (low < high)
    near = (mass < _SMALL) & (low < high) & ~large
    if large.any():
        mass[large] = _mass_between(rows[large], start[large], low[large], high[large])
    if near.any():
        width = (high - low)[near] / 2
        at = np.maximum(low[near] + width * (1 + _NODES[:, None]), _LEAST)
        density = scipy.stats.beta.pdf(at, start[near], rest[near])
        mass[near] = width * (_WEIGHTS @ density)
    distance: Floats = 2 * np.clip(mass, 0.0, 1.0)
    return np.where(low == high, 0.0, distance)


def _mass_between(rows: Floats, start: Floats, low: Floats, high: Floats) -> Floats:
    """The mass of Beta(start, rows - start + 1) from low to high, by _PIECES times 16 nodes where there is any."""
    mean = start / (rows + 1)
    deviation = np.sqrt(mean * (1 - mean) / rows)
    first = np.maximum(low, mean - _DEVIATIONS * deviation)
    width = (np.minimum(high, mean + _DEVIATIONS * deviation) - first) / _PIECES
    pieces = np.add.outer(np.arange(_PIECES), (1 + _NODES) / 2).reshape(-1, 1)
    density = _density(rows, start, first + width * pieces)
    mass: Floats = width / 2 * (np.tile(_WEIGHTS, _PIECES) @ density)
    return mass


def _density(rows: Floats, start: Floats, x: Floats) -> Floats:
    """The density of Beta(start, rows - start + 1) at x, rows * Bin(rows - 1, x)(start - 1), by its saddle point.

    Formula: Bin(n, x)(k) = sqrt(n / (2 pi k (n-k))) exp(s(n) - s(k) - s(n-k) - n x D(k / (n x)) - n (1-x) D((n-k) / (n
    (1-x)))), where: s(n) = log n! - log(sqrt(2 pi n) (n/e)^n) = 1/(12 n) - 1/(360 n^3) + ..., D(1 + e) = (1 + e) log(1
    + e) - e. Reference: Loader, "Fast and accurate computation of binomial probabilities" (2000).
    """
    n, k = rows - 1, start - 1
    off = k - n * x
    here, beside = off / (n * x), -off / (n * (1 - x))
    exponent = _error(n) - _error(k) - _error(n - k) - n * x * _divergence(here) - n * (1 - x) * _divergence(beside)
    density: Floats = rows * np.sqrt(n / (2 * np.pi * k * (n - k))) * np.exp(exponent)
    return density


def _error(n: Floats) -> Floats:
    """What Stirling's formula leaves out of log n!, for n of at least _ROUND - 1."""
    return 1 / (12 * n) - 1 / (360 * n**3)


def _divergence(e: Floats) -> Floats:
    """(1 + e) log(1 + e) - e; by its series where the difference would cancel."""
    series = e * e * (1 / 2 - e * (1 / 6 - e * (1 / 12 - e * (1 / 20 - e * (1 / 30 - e * (1 / 42 - e / 56))))))
    return np.where(np.abs(e) < 0.01, series, (1 + e) * np.log1p(e) - e)


def tail_start(m: npt.ArrayLike, p: npt.ArrayLike, q: npt.ArrayLike) -> Integers:
    """The least t, from 1 to m, such that Bin(m, q)(x) > Bin(m, p)(x) for all x >= t; p <= q.

    x log(q/p) > (m - x) log((1-p)/(1-q)), solved for x. Rounding can move t by one only where both have the same mass
    at t, up to rounding: the distance does not notice.
    """
    rows, low, high = _checked(m, p, q)
    gap = high - low
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        # log(high/low): each form where it neither cancels nor overflows.
        up = np.where(gap < low, np.log1p(gap / low), np.log(high) - np.log(low))
        down = -np.log1p(-gap / (1 - low))
        level = np.where(np.isinf(down), 1.0, down / (up + down))
    start: Integers = np.clip(np.floor(rows * np.nan_to_num(level)) + 1, 1, rows).astype(np.int64)
    return start


def distance_scale(m: npt.ArrayLike, p: npt.ArrayLike, q: npt.ArrayLike) -> Floats:
    """min(m |p-q|, sqrt(m) |p-q| / sqrt(p(1-p)), 1): Theorem 5 says that the distance is of this order.

    It is not symmetric: p is the one under the root.
    """
    rows, one, other = _checked(m, p, q)
    gap = np.abs(one - other)
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = np.sqrt(rows) * gap / np.sqrt(one * (1 - one))
    scale: Floats = np.minimum(np.minimum(rows * gap, np.where(gap == 0, 0.0, spread)), 1.0)
    return scale


def distance_bounds(
    m: npt.ArrayLike, p: npt.ArrayLike, q: npt.ArrayLike, constant: float = PAPER_CONSTANT
) -> tuple[Floats, Floats]:
    """Theorem 5: constant * scale <= distance <= 2 * scale, with `distance_scale`, for all m >= 1 and p, q in [0, 1].

    The upper bound's proof quotes Pinsker for l1 as sqrt(D/2), which is the bound on total variation; l1 <= sqrt(2 D)
    gives sqrt(2) for the middle term, and 2 covers it. The lower bound holds for constant = 1/350 by the paper's proof
    and for `binomial_constant.proved_constant(m)` by computation.
    """
    scale = distance_scale(m, p, q)
    return constant * scale, 2 * scale


def poisson_distance(mean: npt.ArrayLike, other: npt.ArrayLike) -> Floats:
    """The l1 distance of two Poisson laws: the limit of `binomial_distance(m, mean/m, other/m)` for large m."""
    low = np.minimum(np.asarray(mean, dtype=np.float64), other)
    high = np.maximum(np.asarray(mean, dtype=np.float64), other)
    if not (np.all(low >= 0) and np.all(np.isfinite(high))):
        raise OutOfRange("the Poisson distance needs means of at least 0, and finite.")
    with np.errstate(divide="ignore", invalid="ignore"):
        level = np.nan_to_num((high - low) / np.log(high / low))
    start = np.floor(level) + 1
    mass: Floats = special.gammainc(start, high) - special.gammainc(start, low)
    return 2 * np.clip(mass, 0.0, 1.0)


def _checked(m: npt.ArrayLike, p: npt.ArrayLike, q: npt.ArrayLike) -> tuple[Floats, Floats, Floats]:
    rows, one, other = (np.asarray(value, dtype=np.float64) for value in np.broadcast_arrays(m, p, q))
    if not np.all((rows >= 1) & (rows <= MOST_ROWS) & (rows == np.floor(rows))):
        raise OutOfRange(f"Theorem 5 needs m to be a whole number from 1; distances are computed up to {MOST_ROWS:g}.")
    if not np.all((one >= 0) & (one <= 1) & (other >= 0) & (other <= 1)):
        raise OutOfRange("Theorem 5 needs p and q from 0 to 1.")
    return rows, one, other
