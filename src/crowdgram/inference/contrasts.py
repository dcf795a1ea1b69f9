"""Differences and ratios of two items of a release, or of items of two releases, with intervals.

A difference is a linear function, whose variance `results.covariance` gives. The interval of a ratio holds every rho
for which x - rho y is within its own reach of zero (Fieller 1954): if y may be nothing, it has no upper end. In the
ratio of two items of one release the divisor cancels, and so does the error of the total.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..errors import InvalidArgument
from ..results.covariance import Measured, noise_quantile
from ..results.release import Release
from ..results.values import Item, Measure, Quantity, check_measure
from .counts import count_variances, needed_total
from .intervals import unseen_variance

__all__ = ["difference", "ratio"]


@dataclass(frozen=True)
class _Pair:
    """Two figures: as released, as measured, their variances, and their covariance."""

    released: tuple[float, float]
    measured: tuple[float, float]
    variances: tuple[float, float]
    covariance: float
    most: float
    known: bool


def difference(release: Release, item: Item, to: Item | None, other: Release | None, measure: Measure) -> Quantity:
    """The first figure minus the second."""
    pair = _pair(release, item, to, other, measure)
    z = noise_quantile(release.confidence)
    if not pair.known:
        return Quantity(math.nan, -pair.most, pair.most, release.confidence)
    value = pair.released[0] - pair.released[1]
    reach = z * math.sqrt(max(sum(pair.variances) - 2 * pair.covariance, 0.0))
    middle = pair.measured[0] - pair.measured[1]
    lower, upper = (min(max(end, -pair.most), pair.most) for end in (middle - reach, middle + reach))
    return Quantity(value, min(lower, value), max(upper, value), release.confidence)


def ratio(release: Release, item: Item, to: Item | None, other: Release | None, measure: Measure) -> Quantity:
    """The first figure over the second."""
    pair = _pair(release, item, to, other, measure)
    (x, y), (v, w), z = pair.measured, pair.variances, noise_quantile(release.confidence)
    a, b, c = y**2 - z**2 * w, x * y - z**2 * pair.covariance, x**2 - z**2 * v
    root = math.sqrt(max(b**2 - a * c, 0.0))
    lower, upper = 0.0, math.inf
    if pair.known and a > 0 and y > 0:
        lower, upper = max((b - root) / a, 0.0), max((b + root) / a, 0.0)
    elif pair.known and c > 0 and x > 0:  # below may be nothing; above is something
        lower = max(c / (b + root), 0.0) if b + root > 0 else 0.0
    if lower == 0.0 and math.isinf(upper):
        return Quantity(math.nan, lower, upper, release.confidence)
    above, below = pair.released
    value = above / below if below > 0 else math.inf
    if math.isinf(value) and not math.isinf(upper):
        value = upper
    return Quantity(value, min(lower, value), max(upper, value), release.confidence)


def _pair(release: Release, item: Item, to: Item | None, other: Release | None, measure: Measure) -> _Pair:
    check_measure(measure)
    if other is not None and not isinstance(other, Release):
        raise InvalidArgument(f"other={other!r}: needs to be a Release; of a grouped one, a group.", argument="other")
    if other is None and (to is None or to == item):
        raise InvalidArgument(f"to={to!r}: needs to be another item, or other a second release.", argument="to")
    if other is not None and (other.weight, other.confidence) != (release.weight, release.confidence):
        raise InvalidArgument("other: needs the weight and the confidence of the first release.", argument="other")
    second = item if to is None else to
    one, two = _figure(release, item, measure), _figure(release if other is None else other, second, measure)
    covariance, known = 0.0, one.known and two.known
    if other is None and measure == "shares":
        covariance = _shared(release, release.items.index(item), release.items.index(second))
    elif other is None:
        covariance = one.measured * two.measured * needed_total(release)[0].error ** 2
    most = 1.0 if measure == "shares" else math.inf
    return _Pair(
        released=(one.released, two.released),
        measured=(one.measured, two.measured),
        variances=(one.variance, two.variance),
        covariance=covariance,
        most=most,
        known=known,
    )


@dataclass(frozen=True)
class _Figure:
    released: float
    measured: float
    variance: float
    known: bool


def _figure(release: Release, item: Item, measure: Measure) -> _Figure:
    released = release.probability(item)  # refuses what is not there
    place, measured = release.items.index(item), Measured.of(release)
    x = float(measured.x[place])
    if measure == "counts":
        total = needed_total(release)[0]
        noise, more = count_variances(release, total)
        return _Figure(released * total.value, x * total.value, float(noise[place] + more[place]), True)
    variance = float(measured.full()[place]) ** 2 + unseen_variance(release)
    return _Figure(released, x, variance, len(release) == 1 or measured.is_seen(release.confidence))


def _shared(release: Release, i: int, j: int) -> float:
    """The covariance of two shares of one release: what the divisor is common to."""
    measured = Measured.of(release)
    p, own = np.clip(measured.x[[i, j]], 0.0, 1.0), measured.divisor.own
    pulled = own * (p[0] * measured.noise[j] + p[1] * measured.noise[i])
    return float(p[0] * p[1] * measured.spread**2 - pulled)
