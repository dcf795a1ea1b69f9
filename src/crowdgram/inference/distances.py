"""Distances and differences of two releases, with intervals.

l1 distance, sum of |theta_i - phi_i|. With tau_i^2 = s_i^2 + s'_i^2,

        |theta_i - phi_i|  <=  E |x_i - y_i|  <=  |theta_i - phi_i| + sqrt(2 / pi) tau_i

    (Jensen; the triangle inequality). Over the items that both releases together put above the noise, that is all:
    their mean, by inverse variance, says nothing of their difference. The others add between nothing and all of the
    mass that is left in the two releases; or, if that is less, what they seem to differ by.

l2 distance: (x_i - y_i)^2 - tau_i^2 is unbiased.
"""

from __future__ import annotations

import math
from itertools import combinations
from typing import Literal, get_args

import numpy as np

from ..arrays import Booleans
from ..errors import InvalidArgument
from ..mechanisms import expected
from ..results.covariance import MEAN_ABSOLUTE, Measured, noise_quantile
from ..results.grouped import GroupedRelease
from ..results.release import Release
from ..results.values import Difference, Quantity, Value
from .alignment import align
from .intervals import Of, intervals, standard_errors
from .shares import SQUARES, TINY, Shares, length, quantity, shares_of, unknown

__all__ = ["DistanceKind", "by_distance", "differences", "distance", "distances"]

DistanceKind = Literal["l1", "tv", "l2"]


def distance(one: Release, two: Release, kind: DistanceKind, of: Of) -> Quantity:
    """How far the answers without noise are from each other."""
    if kind not in get_args(DistanceKind):
        raise InvalidArgument(
            f"kind={kind!r}: needs to be one of {', '.join(map(repr, get_args(DistanceKind)))}.", argument="kind"
        )
    one, two = align(one, two)
    a, b = shares_of(one, of), shares_of(two, of)
    z = noise_quantile(one.confidence)
    if not (a.known and b.known):
        return unknown({"l1": 2.0, "tv": 1.0, "l2": math.sqrt(2)}[kind], one)
    if kind == "l2":
        return _l2(a, b, z, one)
    found = _l1(a, b, z, one)
    if kind == "l1":
        return found
    return Quantity(found.value / 2, found.lower / 2, found.upper / 2, found.confidence)


def distances(grouped: GroupedRelease, kind: DistanceKind) -> dict[tuple[Value, Value], Quantity]:
    """The distance of each pair of groups, the farthest first."""
    found = {(one, two): distance(grouped[one], grouped[two], kind, "table") for one, two in combinations(grouped, 2)}
    return dict(sorted(found.items(), key=lambda pair: by_distance(pair[1])))


def by_distance(found: Quantity) -> tuple[bool, float, float]:
    """A key that sorts distances: first what surely differs, then what seems to, last what is unknown."""
    return not found.is_known, -found.lower, -found.value if found.is_known else 0.0


def differences(one: Release, two: Release, n: int, of: Of) -> list[Difference]:
    """The items whose probabilities differ most: first those whose interval is farthest from zero.

    The interval of a difference is made of the intervals of its two parts, which are independent (Zou and Donner 2008,
    "MOVER"): from the middle value, the reaches add up by squares.
    """
    if isinstance(n, bool) or not isinstance(n, int) or n < 0:
        raise InvalidArgument(f"n={n!r}: needs to be a whole number of at least 0.", argument="n")
    one, two = align(one, two)
    p, q = one.probabilities, two.probabilities
    (low_p, high_p), (low_q, high_q) = intervals(one, of), intervals(two, of)
    x, y = (np.clip(Measured.of(each).x, *intervals(each, of)) for each in (one, two))
    lower = np.minimum((x - y) - np.hypot(x - low_p, high_q - y), p - q)
    upper = np.maximum((x - y) + np.hypot(high_p - x, y - low_q), p - q)
    sure = np.maximum(np.maximum(lower, -upper), 0.0)
    errors = np.hypot(standard_errors(one, of), standard_errors(two, of))
    order = np.lexsort((-np.abs(p - q), -sure))[:n]
    return [
        Difference(
            one.items[place],
            float(p[place]),
            float(q[place]),
            float(p[place] - q[place]),
            float(errors[place]),
            float(lower[place]),
            float(upper[place]),
        )
        for place in order.tolist()
    ]


def _l1(a: Shares, b: Shares, z: float, release: Release) -> Quantity:
    difference = a.x - b.x
    own, tau = np.maximum(np.hypot(a.s, b.s), TINY), np.hypot(a.measured.full(), b.measured.full())
    # By inverse variance, so that the mean is not correlated with the difference: which items are seen then does not
    # depend on how far apart they happen to lie.
    mean, deviation = (a.x * b.s**2 + b.x * a.s**2) / own**2, a.s * b.s / own
    seen = mean > max(a.above, b.above) * deviation
    found, everything = float(np.abs(difference[seen]).sum()), float(np.abs(difference).sum())
    lower = found - MEAN_ABSOLUTE * float(tau[seen].sum()) - z * _l1_deviation(a, b, seen)
    upper = everything + z * _l1_deviation(a, b, np.full(len(seen), True))
    if not seen.all():
        left = [max(0.0, 1 - float(each.x[seen].sum())) for each in (a, b)]
        # In found + left, one of x and y counts twice, the other not at all.
        twice = [np.where(seen & less, 2.0, 0.0) for less in (difference <= 0, difference > 0)]
        error = math.hypot(a.measured.deviation(twice[0]), b.measured.deviation(twice[1]))
        upper = min(upper, found + sum(left) + z * error)
    value = float(expected(difference, np.maximum(tau, TINY), np.abs, signed=True).sum())
    return quantity(value, lower, upper, 2.0, release)


def _l1_deviation(a: Shares, b: Shares, which: Booleans) -> float:
    """The deviation of the sum of |x - y| over some items: that of a linear function, where signs are clear; and where
    they are not, what each item adds by itself and all by their divisor.
    """
    signs = np.where(which, np.sign(a.x - b.x), 0.0)
    clear = math.hypot(a.measured.deviation(signs), b.measured.deviation(signs))
    common = [float(np.clip(each.x[which], 0.0, 1.0).sum()) * each.measured.spread for each in (a, b)]
    return max(clear, math.hypot(length(a.s[which]), length(b.s[which]), *common))


def _l2(a: Shares, b: Shares, z: float, release: Release) -> Quantity:
    difference, tau = a.x - b.x, np.hypot(a.measured.full(), b.measured.full())
    squares = difference**2 - tau**2
    square = float(squares.sum())
    slope = 2 * np.sign(difference) * np.sqrt(np.maximum(squares, 0.0))
    own = math.sqrt(SQUARES) * length(np.hypot(a.s, b.s) ** 2)
    common = [math.sqrt(2) * length(np.clip(each.x, 0.0, 1.0)) ** 2 * each.measured.spread**2 for each in (a, b)]
    error = math.hypot(a.measured.deviation(slope), b.measured.deviation(slope), own, *common)
    lower, upper = (math.sqrt(max(square + side * z * error, 0.0)) for side in (-1, 1))
    return quantity(math.sqrt(max(square, 0.0)), lower, upper, math.sqrt(2), release)
