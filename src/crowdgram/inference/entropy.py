"""Entropy, sum of h(theta_i) with h(t) = -t log t, and its interval.

If M is the mass of the items that are not seen above the noise,

    H = h(M) + h(1 - M) + (1 - M) H_seen + M H_unseen.

H_seen is as measured, with E h(x) = h(theta) - s^2 / (2 theta) undone; it is made of ratios, so the divisor plays no
part in it. M is off by the error of the sum over the seen. M is spread somehow over the unseen, none of which is above
an upper end u_i: most evenly, theta_i = min(t, u_i); or as unevenly as can be, theta_i = u_i for the largest u_i until
M is used up. Entropy is Schur-concave, so nothing lies outside.
"""

from __future__ import annotations

import math

import numpy as np

from ..arrays import Booleans, Floats
from ..errors import InvalidArgument
from ..mechanisms import expected
from ..results.covariance import noise_quantile
from ..results.release import Release
from ..results.values import Quantity
from .intervals import Of
from .shares import SQUARES, TINY, Shares, length, quantity, shares_of, unknown

__all__ = ["entropy"]


def entropy(release: Release, base: float, of: Of) -> Quantity:
    """The entropy of the answer without noise, in units of log(base)."""
    if isinstance(base, bool) or not isinstance(base, (int, float)) or not (1 < base < math.inf):
        raise InvalidArgument(f"base={base!r}: needs to be a number above 1, such as 2 for bits.", argument="base")
    shares, z = shares_of(release, of), noise_quantile(release.confidence)
    most, unit = math.log(len(release)), math.log(base)
    if not shares.known:
        return unknown(most, release, unit)
    seen = shares.seen
    middle, error = _entropy_of_seen(shares, seen)
    left = 1 - float(shares.x[seen].sum())
    off = z * shares.measured.deviation(seen.astype(np.float64))
    if seen.all() or not seen.any():
        masses = [0.0 if seen.all() else 1.0]
    else:
        masses = [min(max(left + shift, 0.0), 1.0) for shift in (0.0, -off, off)]
    known = [(1 - mass) * middle + float(_h(np.array([1 - mass])).sum()) for mass in masses]
    lows = [part + _least_even(shares.upper[~seen], mass) for part, mass in zip(known, masses, strict=True)]
    highs = [part + _most_even(shares.reach[~seen], mass) for part, mass in zip(known, masses, strict=True)]
    reach = z * (1 - masses[0]) * error
    deviations = np.maximum(shares.s, TINY)
    total = max(float(expected(shares.x, deviations, _same).sum()), TINY)
    value = float(expected(shares.x, deviations, _h).sum()) / total + math.log(total)
    lower = lows[0] - math.hypot(lows[0] - min(lows), reach)
    upper = highs[0] + math.hypot(max(highs) - highs[0], reach)
    return quantity(value, lower, upper, most, release, unit)


def _entropy_of_seen(shares: Shares, seen: Booleans) -> tuple[float, float]:
    """The entropy among the seen items, in nats, and its error."""
    if not seen.any():
        return 0.0, 0.0
    total = float(shares.x[seen].sum())
    x, s = shares.x[seen] / total, shares.s[seen] / total
    lost = s**2 / (2 * x)
    found = float((_h(x) + lost).sum())
    pull = np.abs(np.log(x) + found)
    # Where all are alike the first order vanishes. What is left is the scatter of squares; and items that are seen only
    # because noise raised them, which makes the correction itself doubtful.
    noise = math.hypot(length(pull * s), length(math.sqrt(SQUARES) * lost))
    return found, math.hypot(noise, float(lost.sum()))


def _least_even(caps: Floats, mass: float) -> float:
    """The least entropy of `mass` spread over items of at most `caps`."""
    if not len(caps) or mass <= 0:
        return 0.0
    largest = np.sort(_room(caps, mass))[::-1]
    return float(_h(np.clip(mass - (np.cumsum(largest) - largest), 0.0, largest)).sum())


def _most_even(caps: Floats, mass: float) -> float:
    """The greatest entropy of `mass` spread over items of at most `caps`."""
    if not len(caps) or mass <= 0:
        return 0.0
    ordered = np.sort(_room(caps, mass))
    # With the level at the i-th cap, the items below are full and the others at the level.
    held = np.cumsum(ordered) - ordered + ordered * np.arange(len(ordered), 0, -1)
    place = min(int(np.searchsorted(held, mass)), len(ordered) - 1)
    level = (mass - float(ordered[:place].sum())) / (len(ordered) - place)
    return float(_h(np.minimum(ordered, level)).sum())


def _room(caps: Floats, mass: float) -> Floats:
    """Caps that can hold the mass, all raised alike if they could not."""
    caps = np.maximum(caps, TINY)
    return caps * max(1.0, mass / float(caps.sum()))


def _h(t: Floats) -> Floats:
    found: Floats = -t * np.log(np.maximum(t, 1e-300))
    return found


def _same(t: Floats) -> Floats:
    return t
