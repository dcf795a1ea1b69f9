"""How the errors of a release's shares hang together: all that sums, ratios and distances need to know of them.

A share as measured is x_i = X_i / (own sum_j X_j + rest), with independent noise in the X_i. Relative to the divisor,
let e_i be that noise, of deviation n_i, and eta that of the rest, of deviation `error`. To first order

    x_i - theta_i = e_i - theta_i (own sum_j e_j + eta) + b_i,

where theta is the table's own answer and b_i the bias of clipping, which is taken to be independent over items: b_i^2
goes like theta_i (1 - theta_i), so the squares add up to no less than what an item of the summed share would have. It
sums to zero over all items, so a set has no more of it than all others together. A linear function sum_i g_i x_i, with
G = sum_i g_i theta_i, has the variance

    sum_i n_i^2 (g_i - own G)^2 + G^2 error^2 + sum_i g_i^2 b_i^2.

If the divisor is little more than its own noise, first order does not hold: intervals keep all theta for which X -
theta (own sum_j X_j + rest) is within its own reach of zero (Fieller 1954). If the divisor is not seen, that is all of
[0, 1].
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from ..arrays import Floats, Integers
from ..mechanisms.estimate import Divisor
from ..privacy import LaplaceEvent
from .values import Quantity

if TYPE_CHECKING:
    from .release import Release

__all__ = ["MEAN_ABSOLUTE", "Measured", "Quantiles", "noise_quantile", "number_of_users", "sum_by_code", "total_of"]

MEAN_ABSOLUTE = math.sqrt(2 / math.pi)


@dataclass(frozen=True, eq=False)
class Measured:
    """Shares as measured (x), the variances of their independent noise and of what else they may be off by, and their
    divisor. all_noise: the noise of all items that are in the divisor.
    """

    x: Floats
    noise: Floats
    other: Floats
    divisor: Divisor
    all_noise: float

    @classmethod
    def of(cls, release: Release, *, population: bool = False) -> Measured:
        """Of a release without such figures, its probabilities and standard errors. `population`: sampling is an error
        too, and adds up as bias does.
        """
        x = release.probabilities if release.measured is None else release.measured
        noise = release.standard_errors if release.noise_errors is None else release.noise_errors
        other = np.zeros(len(x)) if release.other_errors is None else release.other_errors**2
        if population and release.sampling_errors is not None:
            other = other + release.sampling_errors**2
        return cls(x, noise**2, other, release.divisor, float((noise**2).sum()))

    def sums(self, codes: Integers, size: int) -> Measured:
        """Over sets of items: the set that each item is in is its code."""
        x, noise, other = (sum_by_code(values, codes, size) for values in (self.x, self.noise, self.other))
        return Measured(x, noise, np.minimum(other, float(self.other.sum()) - other), self.divisor, self.all_noise)

    def ratios(self, chosen: Integers, codes: Integers, size: int) -> Measured:
        """Ratios of sets of the chosen items to all of the chosen. What the release was divided by does not matter for
        them: they are divided by their own sum, kept above its noise.
        """
        x, noise, other = (sum_by_code(values[chosen], codes, size) for values in (self.x, self.noise, self.other))
        square, by = float(noise.sum()), self.sum_of(chosen)
        q = np.clip(x / by, 0.0, 1.0)
        other = np.maximum(other * (1 - 2 * q) + q**2 * float(other.sum()), 0.0)
        return Measured(x / by, noise / by**2, other / by**2, Divisor(own=1.0), square / by**2)

    def sum_of(self, chosen: Integers) -> float:
        """The sum of the chosen shares, kept above its noise."""
        return max(float(self.x[chosen].sum()), math.sqrt(float(self.noise[chosen].sum())), 1e-100)

    @property
    def spread(self) -> float:
        """The standard deviation of the divisor, relative to it."""
        return math.hypot(self.divisor.own * math.sqrt(self.all_noise), self.divisor.error)

    def is_seen(self, confidence: float) -> bool:
        """Whether the divisor is more than its noise, at level `confidence`."""
        return noise_quantile(confidence) * self.spread < 1

    def variances(self) -> Floats:
        """Of the noise in each share, that of the divisor included."""
        p = np.clip(self.x, 0.0, 1.0)
        found: Floats = self.noise * (1 - 2 * self.divisor.own * p) + (p * self.spread) ** 2
        return np.maximum(found, 0.0)

    def independent(self) -> Floats:
        """Deviations of what moves each share by itself: noise and other errors, but not the divisor."""
        return np.sqrt(self.noise + self.other)

    def full(self) -> Floats:
        """Deviations of all that moves a share."""
        return np.sqrt(self.variances() + self.other)

    def deviation(self, g: Floats) -> float:
        """Of sum_i g_i x_i."""
        pull = float(g @ np.clip(self.x, 0.0, 1.0))
        square = float(self.noise @ g**2) - 2 * self.divisor.own * pull * float(self.noise @ g)
        return math.sqrt(max(square + (pull * self.spread) ** 2 + float(self.other @ g**2), 0.0))

    def ends(self, confidence: float) -> tuple[Floats, Floats]:
        """Intervals of the shares: {t in [0, 1]: (x - t)^2 <= z^2 (n^2 (1 - 2 own t) + t^2 spread^2)}, a quadratic
        inequality, widened by other errors. An upper end is never below what noise alone would reach.
        """
        z = noise_quantile(confidence)
        a = 1 - (z * self.spread) ** 2
        if a <= 0:
            return np.zeros_like(self.x), np.ones_like(self.x)
        b, c = self.x - z**2 * self.divisor.own * self.noise, self.x**2 - z**2 * self.noise
        root = np.sqrt(np.maximum(b**2 - a * c, 0.0))
        middle, half = b / a, np.hypot(root / a, z * np.sqrt(self.other))
        least = z * self.independent()
        return np.clip(middle - half, 0.0, 1.0), np.clip(np.maximum(middle + half, least), 0.0, 1.0)


@dataclass(frozen=True)
class Quantiles:
    """What errors keep to, in standard deviations: noise, by its shape, and all else, which is taken to be normal."""

    noise: float
    normal: float

    @classmethod
    def of(cls, release: Release, items: int = 1) -> Quantiles:
        """At the level of the release, for so many items at once: each at confidence^(1/items), which is exact if their
        errors are independent, and safe for normal errors that are not (Sidak 1967).
        """
        chance = -math.expm1(math.log(release.confidence) / items)
        normal = -NormalDist().inv_cdf(chance / 2)
        laplace = bool(release.events) and isinstance(release.events[-1], LaplaceEvent)
        return cls(-math.log(chance) / math.sqrt(2) if laplace else normal, normal)

    def reach(self, noise: Floats, other: Floats) -> Floats:
        """What errors with these variances keep to."""
        reached: Floats = np.hypot(self.noise * np.sqrt(noise), self.normal * np.sqrt(other))
        return reached


def total_of(release: Release) -> Quantity | None:
    """The total of a release; its interval allows for the divisor's noise and its own error. None if unknown."""
    total = release.total
    if total is None:
        return None
    spread = math.hypot(Measured.of(release).spread, total.error)
    reach = noise_quantile(release.confidence) * spread
    return Quantity(total.value, max(1 - reach, 0.0) * total.value, (1 + reach) * total.value, release.confidence)


def number_of_users(release: Release, measured: tuple[float, float] | None) -> Quantity | None:
    """How many users a whole table has: as measured, with a deviation; or the total, if each counts for one."""
    if measured is None:
        alike = release.weight == "users" or (release.total is not None and release.total.row_bound == 1)
        return total_of(release) if alike else None
    value, reach = max(measured[0], 0.0), noise_quantile(release.confidence) * measured[1]
    return Quantity(value, max(measured[0] - reach, 0.0), value + reach, release.confidence)


def noise_quantile(confidence: float) -> float:
    """What noise keeps to at level `confidence`, in standard deviations: the wider of Laplace and Gaussian.

    A sum of independent Laplace variables lies between the two.
    """
    return max(-NormalDist().inv_cdf((1 - confidence) / 2), -math.log(1 - confidence) / math.sqrt(2))


def sum_by_code(values: Floats, codes: Integers, size: int) -> Floats:
    """The sums of the values that have the code 0, 1, ..., size - 1."""
    return np.bincount(codes, weights=values, minlength=size).astype(np.float64)
