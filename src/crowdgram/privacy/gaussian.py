"""The Gaussian privacy curve, in closed form and rounded to the safe side.

A Gaussian mechanism of sensitivity D and standard deviation s has mu = D/s, several of them have
mu^2 = sum of mu_t^2, and

    delta(epsilon) = Phi(-epsilon/mu + mu/2) - e^epsilon Phi(-epsilon/mu - mu/2)

exactly (Balle and Wang, arXiv 1805.06530, Theorem 8; Dong, Roth and Su, arXiv 1905.02383, Corollaries 2.13
and 3.3).
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy.special import erfcx, ndtr

from crowdgram.arrays import Floats
from crowdgram.errors import InvalidArgument

__all__ = ["gaussian_delta", "gaussian_deltas", "gaussian_epsilon", "gaussian_mu"]

# Below this mu the two terms of the curve are too close to subtract; the curve of SMALLEST_MU bounds it
# there.
SMALLEST_MU = 1e-6
# Where exp(-a^2/2) would leave the normal doubles, this is the bound.
SMALLEST_DELTA = 1e-300
# A curve beyond this mu promises nothing: delta(100) > 1 - 1e-300.
LARGEST_MU = 1e6


def gaussian_delta(mu: float, epsilon: float) -> float:
    """An upper bound on the delta of Gaussian noise, for epsilon >= 0.

    Formula: Phi(-epsilon/mu + mu/2) - e^epsilon Phi(-epsilon/mu - mu/2),
    where mu = sqrt(sum of (sensitivity/standard deviation)^2).

    Guarantee: at least the true value, and above it by a relative 2^-36 + 2^-43/mu (1.3e-10 at mu = 1e-3),
    for mu >= 1e-6 and values above 1e-300. Smaller mu are bounded by the curve of mu = 1e-6 and
    by delta(epsilon) <= delta(0) <= mu/sqrt(2 pi).
    """
    if not (epsilon >= 0.0 and math.isfinite(epsilon)):
        raise InvalidArgument(f"epsilon={epsilon!r}: needs to be a finite number, at least 0.", argument="epsilon")
    if not mu >= 0.0:
        raise InvalidArgument(f"mu={mu!r}: needs to be a number, at least 0.", argument="mu")
    return float(gaussian_deltas(mu, np.array([float(epsilon)]))[0])


def gaussian_deltas(mu: float, epsilons: Floats) -> Floats:
    """`gaussian_delta` for many epsilons, which may be negative.

    Formula for negative ones: delta(-e) = 1 - e^-e + e^-e delta(e), because the curve is symmetric in the two
    tables.
    """
    if mu == 0.0:
        return np.maximum(-np.expm1(np.minimum(epsilons, 0.0)), 0.0)
    if mu > LARGEST_MU:
        return np.ones_like(epsilons)
    upper = _curve(max(mu, SMALLEST_MU), np.abs(epsilons))
    if mu < SMALLEST_MU:
        upper = np.minimum(upper, 0.39895 * mu)  # mu/sqrt(2 pi) = 0.398942... mu
    below = epsilons < 0.0
    if below.any():
        e = np.minimum(epsilons, 0.0)
        upper = np.where(below, (-np.expm1(e) + np.exp(e) * upper) * (1.0 + 2.0**-50), upper)
    return np.minimum(upper, 1.0)


def _curve(mu: float, epsilons: Floats) -> Floats:
    """The curve for epsilon >= 0 and SMALLEST_MU <= mu <= LARGEST_MU, inflated by its margin.

    With a, b = -epsilon/mu +- mu/2, e^epsilon phi(b) = phi(a), so both terms share the factor phi(a):
    delta = phi(a) sqrt(pi/2) (erfcx(-a/sqrt 2) - erfcx(-b/sqrt 2)), which does not cancel the large powers of
    e. For a > 0 the first term is Phi(a) >= 1/2 itself.

    The margin: errors of a few units u = 2^-53 in a enter exp(-a^2/2) as a^2 u < 2^-42, and errors of a few u
    in erfcx enter the difference as u |a|/mu < 2^-47/mu at |a| < 38. Measured
    (tests/privacy/test_gaussian.py): far below.
    """
    scaled = epsilons / mu
    a = mu / 2.0 - scaled
    half_density = 0.5 * np.exp(-0.5 * a * a)
    second = erfcx((mu / 2.0 + scaled) / math.sqrt(2.0))
    above = a > 0.0
    if above.any():
        left = half_density * (erfcx(-np.minimum(a, 0.0) / math.sqrt(2.0)) - second)
        curve = np.where(above, ndtr(a) - half_density * second, left)
    else:  # as a rule: a > 0 is epsilon < mu^2/2
        curve = half_density * (erfcx(-a / math.sqrt(2.0)) - second)
    margin = 2.0**-36 + 2.0**-43 / mu
    inflated: Floats = np.maximum(curve * (1.0 + margin), SMALLEST_DELTA)
    return inflated


def gaussian_epsilon(mu: float, delta: float) -> float:
    """The smallest epsilon for which `gaussian_delta(mu, epsilon) <= delta`, rounded up; infinite if delta is
    0.

    Guarantee: Gaussian noise of this mu is (epsilon, delta)-differentially private; the value is re-checked
    through `gaussian_delta` before it is returned.
    """
    _check_delta(delta)
    if mu == 0.0 or gaussian_delta(mu, 0.0) <= delta:
        return 0.0
    if delta < SMALLEST_DELTA or mu > LARGEST_MU:
        return math.inf
    high = 1.0
    while gaussian_delta(mu, high) > delta:
        high *= 2.0
    low = 0.0
    while (middle := 0.5 * (low + high)) not in (low, high):
        low, high = (low, middle) if gaussian_delta(mu, middle) <= delta else (middle, high)
    return high


@lru_cache(maxsize=256)
def gaussian_mu(epsilon: float, delta: float) -> float:
    """The largest mu for which `gaussian_delta(mu, epsilon) <= delta`, rounded down; 0 if there is none
    (delta = 0).

    Guarantee: Gaussian noise of any mu up to this is (epsilon, delta)-differentially private; the value is
    re-checked through `gaussian_delta` before it is returned.
    """
    _check_delta(delta)
    if delta < SMALLEST_DELTA:
        return 0.0
    high = 1.0
    while gaussian_delta(high, epsilon) <= delta:
        high *= 2.0
    low = 0.0
    while (middle := 0.5 * (low + high)) not in (low, high):
        low, high = (middle, high) if gaussian_delta(middle, epsilon) <= delta else (low, middle)
    return low


def _check_delta(delta: float) -> None:
    if not 0.0 <= delta < 1.0:
        raise InvalidArgument(f"delta={delta!r}: needs to be at least 0 and below 1.", argument="delta")
