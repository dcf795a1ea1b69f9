"""The tail and the quantiles of the normal law.

`scipy.special` has both, and takes longer to load than most releases take to run.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

from crowdgram.arrays import Floats

__all__ = ["chance_below", "erfcx", "quantile", "quantiles"]

# (1 + 2 x) erfcx(x) as a polynomial in t = (x - 4) / (x + 4), from t^0 on: the Chebyshev series, cut off where the rest
# sums to less than 2^-54, in powers of t. Computed by mpmath with 60 digits, and anew by tests/privacy/test_normal.py.
CENTRE = 4.0
COEFFICIENTS = (
    1.2329951186255525103,
    -0.13962111684056229158,
    0.01537965210261960398,
    0.068097054254669087836,
    -0.10103906603630055418,
    0.093732834999094408127,
    -0.066330365812186977035,
    0.037167515526555670195,
    -0.016197734059799266246,
    0.0050319700676574889191,
    -7.5777326137309563255e-4,
    -1.9925714661091188377e-4,
    1.5062149001240472209e-4,
    -2.439774642243641636e-5,
    -1.1221287012353485006e-5,
    5.7066044148957334682e-6,
    2.9197333779630121467e-7,
    -8.2109390425605679861e-7,
    7.7469927270179419308e-8,
    1.0633855618594883689e-7,
    -2.0560649275699201702e-8,
    -1.2346866043823528614e-8,
    3.169588191564817232e-9,
    9.3117449782325727902e-10,
    -2.6595996902426894072e-10,
)
FEW_NUMBERS = 8
"""Numbers up to which a loop over them is quicker than numpy."""


def erfcx(x: Floats) -> Floats:
    """e^(x^2) erfc(x) = 2 e^(x^2) Phi(-sqrt(2) x), for x >= 0.

    Guarantee: within 2^-50 of it, relatively: the absolute values of the coefficients sum to 1.8, and the polynomial is
    at least 1, so that Horner's scheme loses a few units of 2^-53 only (tests/privacy/test_normal.py).

    Reference: Shepherd and Laframboise, "Chebyshev approximation of (1 + 2x) exp(x^2) erfc(x) in 0 <= x < infinity",
    Mathematics of Computation 36 (1981).
    """
    x = np.minimum(x, 1e300)  # so that infinity is no special case
    t = (x - CENTRE) / (x + CENTRE)
    if t.size <= FEW_NUMBERS:
        scaled = np.array([_polynomial(one) for one in t.ravel().tolist()]).reshape(t.shape)
    else:
        scaled = np.full_like(t, COEFFICIENTS[-1])
        for coefficient in COEFFICIENTS[-2::-1]:
            scaled *= t
            scaled += coefficient
    found: Floats = scaled / (1.0 + 2.0 * x)
    return found


def _polynomial(t: float) -> float:
    total = 0.0
    for coefficient in reversed(COEFFICIENTS):
        total = total * t + coefficient
    return total


def quantile(chance: float) -> float:
    """What a standard normal variable stays below with this chance, which is above 0 and below 1."""
    return NormalDist().inv_cdf(chance)


def quantiles(chances: Floats) -> Floats:
    """`quantile` of each."""
    inverse = NormalDist().inv_cdf
    return np.array([inverse(chance) for chance in chances.tolist()])


def chance_below(x: float) -> float:
    """The chance that a standard normal variable stays below x."""
    return 0.5 * math.erfc(-x / math.sqrt(2.0))
