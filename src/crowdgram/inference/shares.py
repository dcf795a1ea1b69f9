"""Shares as measured, and what is common to all that is inferred from them.

Noise makes a distribution look more uneven than it is, and two of them look farther apart: what is computed from noisy
shares as if they were exact is biased. So values are expectations under a prior fitted to all items
(`mechanisms.shrink.expected`), and intervals do not rest on that prior. They rest on the shares as measured, x_i =
theta_i + an error of deviation s_i, where theta is the table's own answer, and on bounds for every theta. Errors are
noise, the bias of clipping, and the common divisor; sums of items are as uncertain as `results.covariance` says.

If a release is not seen above its own noise, nothing is known: the value is nan, and the interval all that can be.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist

import numpy as np

from ..arrays import Booleans, Floats
from ..privacy import LaplaceEvent
from ..results.covariance import Measured
from ..results.release import Release
from ..results.values import Quantity
from .intervals import Of, intervals

__all__ = ["SQUARES", "TINY", "Shares", "length", "quantity", "shares_of", "unknown"]

FALSE = 0.01
"""Chance that noise alone makes any item seen."""
SQUARES = 5.0
"""Variance of the square of noise, in tau^4: 2 if it is Gaussian, 5 if it is Laplace noise."""
TINY = 1e-12


@dataclass(frozen=True)
class Shares:
    """Shares as measured, and their upper ends.

    above: the standard deviations that no noise among all items is likely to reach. known: whether the whole is seen
    above its noise.
    """

    measured: Measured
    upper: Floats
    above: float
    known: bool

    @property
    def x(self) -> Floats:
        return self.measured.x

    @cached_property
    def s(self) -> Floats:
        """What moves each share by itself: all but the divisor, which is common to all."""
        return self.measured.independent()

    @property
    def seen(self) -> Booleans:
        """Items that are there, and not noise."""
        return self.x > self.above * self.s

    @property
    def reach(self) -> Floats:
        """Upper ends for all items at once."""
        return np.minimum(np.maximum(self.x, 0.0) + self.above * self.measured.full(), 1.0)


def shares_of(release: Release, of: Of) -> Shares:
    """The shares of a release, for its table or for the population."""
    _, upper = intervals(release, of)  # refuses what cannot be asked
    one = FALSE / len(release)
    laplace = isinstance(release.events[-1], LaplaceEvent) if release.events else False
    above = -math.log(2 * one) / math.sqrt(2) if laplace else -NormalDist().inv_cdf(one)
    measured = Measured.of(release, population=of == "population")
    return Shares(measured, upper, above, len(release) == 1 or measured.is_seen(release.confidence))


def quantity(value: float, lower: float, upper: float, most: float, release: Release, unit: float = 1.0) -> Quantity:
    """A quantity that lies in [0, most], in units of `unit`; unknown if its interval is all of that."""
    lower, upper = min(max(lower, 0.0), most), min(max(upper, 0.0), most)
    if most > 0 and lower <= 0 and upper >= most:
        return unknown(most, release, unit)
    value = min(max(value, lower), upper)
    return Quantity(value / unit, lower / unit, upper / unit, release.confidence)


def unknown(most: float, release: Release, unit: float = 1.0) -> Quantity:
    """A quantity that may be anything in [0, most], in units of `unit`."""
    return Quantity(math.nan, 0.0, most / unit, release.confidence)


def length(values: Floats) -> float:
    """The root of the sum of squares."""
    return float(np.linalg.norm(values))
