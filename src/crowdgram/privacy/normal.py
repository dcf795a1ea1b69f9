"""The tail and the quantiles of the normal law.

`scipy.special` has both, and takes longer to load than most releases take to run.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

from crowdgram.arrays import Floats

__all__ = ["chance_below", "erfcx", "quantile", "quantiles"]

# (1 + 2 x) erfcx(x) in Chebyshev polynomials of t = (x - 4) / (x + 4): coefficients by mpmath with 60 digits, which
# tests/privacy/test_normal.py computes anew. Those that are left out sum to less than 2^-54.
CENTRE = 4.0
COEFFICIENTS = (
    1.1774832005374486986,
    -0.0072607966203019004784,
    -0.081265123236184997858,
    0.060092128041222249997,
    -0.028753935580276660271,
    0.010595663363472860014,
    -0.0031369272945542642383,
    0.00074564943725361840431,
    -0.00013696965030100540681,
    1.7183861600300937113e-5,
    -7.1583646234503468633e-7,
    -2.4261399442449532014e-7,
    5.5765709395703564039e-8,
    -2.1057869513809494813e-9,
    -1.1717889351884956849e-9,
    1.909835517245668792e-10,
    1.4088717642088129665e-11,
    -6.9011083204808149553e-12,
    9.1679583641112932862e-14,
    2.1454508286554552991e-13,
    -1.4716575027010624224e-14,
    -6.6686751187704079242e-15,
    7.5045985098800830254e-16,
    2.2200930066663200355e-16,
    -3.1704898956330888357e-17,
)


def erfcx(x: Floats) -> Floats:
    """e^(x^2) erfc(x) = 2 e^(x^2) Phi(-sqrt(2) x), for x >= 0.

    Guarantee: within 2^-50 of it, relatively. Measured: within 2^-51 (tests/privacy/test_normal.py).

    Reference: Shepherd and Laframboise, "Chebyshev approximation of (1 + 2x) exp(x^2) erfc(x) in 0 <= x < infinity",
    Mathematics of Computation 36 (1981). The sum is Clenshaw's.
    """
    x = np.minimum(x, 1e300)  # so that infinity is no special case
    t = (x - CENTRE) / (x + CENTRE)
    twice = 2.0 * t
    above, found = np.zeros_like(t), np.full_like(t, COEFFICIENTS[-1])
    for coefficient in COEFFICIENTS[-2:0:-1]:
        above, found = found, twice * found - above + coefficient
    scaled: Floats = (t * found - above + COEFFICIENTS[0]) / (1.0 + 2.0 * x)
    return scaled


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
