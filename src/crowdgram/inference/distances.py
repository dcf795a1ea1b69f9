"""Entropy, distances and differences of releases, with how far noise may have moved them. No privacy is spent.

Noise makes a distribution look more uneven than it is, and two of them look farther apart: what is computed from noisy
shares as if they were exact is biased. So the values here are expectations under a prior fitted to all items
(`mechanisms.shrink.expected`), and the intervals do not rest on that prior. They rest on the shares as measured, x_i =
theta_i + an error of deviation s_i, where theta is the table's own answer, and on bounds for every theta. Errors are
noise, the bias of clipping, and the common divisor; sums of items are as uncertain as `covariance` says.

Entropy, sum of h(theta_i) with h(t) = -t log t. If M is the mass of the items that are not seen above the noise,

        H = h(M) + h(1 - M) + (1 - M) H_seen + M H_unseen.

    H_seen is as measured, with E h(x) = h(theta) - s^2 / (2 theta) undone; it is made of ratios, so the divisor plays
    no part in it. M is off by the error of the sum over the seen. M is spread somehow over the unseen, none of which is
    above an upper end u_i: most evenly, theta_i = min(t, u_i); or as unevenly as can be, theta_i = u_i for the largest
    u_i until M is used up. Entropy is Schur-concave, so nothing lies outside.

l1 distance, sum of |theta_i - phi_i|. With tau_i^2 = s_i^2 + s'_i^2,

        |theta_i - phi_i|  <=  E |x_i - y_i|  <=  |theta_i - phi_i| + sqrt(2 / pi) tau_i

    (Jensen; the triangle inequality). Over the items that both releases together put above the noise, that is all:
    their mean, by inverse variance, says nothing of their difference. The others add between nothing and all of the
    mass that is left in the two releases; or, if that is less, what they seem to differ by.

l2 distance: (x_i - y_i)^2 - tau_i^2 is unbiased.

Where a release is not seen above its own noise, nothing is known: the value is nan, and the interval all that can be.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import NormalDist
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from ..errors import InvalidArgument
from ..mechanisms import expected
from ..privacy import LaplaceEvent
from ..results.covariance import MEAN_ABSOLUTE, Measured, noise_quantile
from ..results.marginals import summed
from ..results.release import Difference, Item, Other, Quantity, Release

__all__ = ["Kind", "Of", "differences", "distance", "entropy", "folded"]

Floats = npt.NDArray[np.float64]
Of = Literal["table", "population"]
Kind = Literal["l1", "tv", "l2"]

FALSE = 0.01
"""Chance that noise alone makes any item seen."""
_SQUARES = 5.0
"""Variance of the square of noise, in tau^4: 2 if it is Gaussian, 5 if it is Laplace noise."""
_TINY = 1e-12


@dataclass(frozen=True)
class _Shares:
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
    def seen(self) -> npt.NDArray[np.bool_]:
        """Items that are there, and not noise."""
        return self.x > self.above * self.s

    @property
    def reach(self) -> Floats:
        """Upper ends for all items at once."""
        return np.minimum(np.maximum(self.x, 0.0) + self.above * self.measured.full(), 1.0)


def entropy(release: Release, base: float, of: Of) -> Quantity:
    """The entropy of the answer without noise, in units of log(base)."""
    if isinstance(base, bool) or not isinstance(base, (int, float)) or not (1 < base < math.inf):
        raise InvalidArgument(f"base={base!r}: needs to be a number above 1, such as 2 for bits.")
    shares, z = _shares(release, of), noise_quantile(release.confidence)
    most, unit = math.log(len(release)), math.log(base)
    if not shares.known:
        return _unknown(most, release, unit)
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
    deviations = np.maximum(shares.s, _TINY)
    total = max(float(expected(shares.x, deviations, _same).sum()), _TINY)
    value = float(expected(shares.x, deviations, _h).sum()) / total + math.log(total)
    lower = lows[0] - math.hypot(lows[0] - min(lows), reach)
    upper = highs[0] + math.hypot(max(highs) - highs[0], reach)
    return _quantity(value, lower, upper, most, release, unit)


def _entropy_of_seen(shares: _Shares, seen: npt.NDArray[np.bool_]) -> tuple[float, float]:
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
    noise = math.hypot(_length(pull * s), _length(math.sqrt(_SQUARES) * lost))
    return found, math.hypot(noise, float(lost.sum()))


def distance(one: Release, two: Release, kind: Kind, of: Of) -> Quantity:
    """How far the answers without noise are from each other."""
    if kind not in get_args(Kind):
        raise InvalidArgument(f"kind={kind!r}: needs to be one of {', '.join(map(repr, get_args(Kind)))}.")
    one, two = aligned(one, two)
    a, b = _shares(one, of), _shares(two, of)
    z = noise_quantile(one.confidence)
    if not (a.known and b.known):
        return _unknown({"l1": 2.0, "tv": 1.0, "l2": math.sqrt(2)}[kind], one)
    if kind == "l2":
        return _l2(a, b, z, one)
    found = _l1(a, b, z, one)
    if kind == "l1":
        return found
    return Quantity(found.value / 2, found.lower / 2, found.upper / 2, found.confidence)


def differences(one: Release, two: Release, n: int, of: Of) -> list[Difference]:
    """The items whose probabilities differ most: first those whose interval is farthest from zero.

    The interval of a difference is made of the intervals of its two parts, which are independent (Zou and Donner 2008,
    "MOVER"): from the middle value, the reaches add up by squares.
    """
    if isinstance(n, bool) or not isinstance(n, int) or n < 0:
        raise InvalidArgument(f"n={n!r}: needs to be a whole number of at least 0.")
    one, two = aligned(one, two)
    p, q = one.probabilities, two.probabilities
    (low_p, high_p), (low_q, high_q) = one.intervals(of), two.intervals(of)
    x, y = (np.clip(Measured.of(each).x, *each.intervals(of)) for each in (one, two))
    lower = np.minimum((x - y) - np.hypot(x - low_p, high_q - y), p - q)
    upper = np.maximum((x - y) + np.hypot(high_p - x, y - low_q), p - q)
    sure = np.maximum(np.maximum(lower, -upper), 0.0)
    errors = np.hypot(_standard_errors(one, of), _standard_errors(two, of))
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


def aligned(one: Release, two: Release) -> tuple[Release, Release]:
    """Both releases over the same items in the same order.

    Where the lists differ and both have an item for all others, items that only one of them lists are counted there:
    how much that is says `folded`.
    """
    if not isinstance(two, Release):
        raise InvalidArgument(f"other={two!r}: needs to be a Release; of a grouped one, a group.")
    if one.weight != two.weight:
        raise InvalidArgument(
            f"weight={one.weight!r} and weight={two.weight!r} answer different questions. Both need the same."
        )
    if one.confidence != two.confidence:
        raise InvalidArgument(f"confidence is {one.confidence:g} in one release and {two.confidence:g} in the other.")
    mine, theirs = ([_unnamed(item) for item in each.items] for each in (one, two))
    if mine == theirs:
        return one, two
    if not _same_kinds(one, two):
        raise InvalidArgument(
            f"the releases are over different items: of {_shown_kinds(one)} in one, of {_shown_kinds(two)} in the "
            "other. Both need the same columns, of the same types."
        )
    if set(mine) != set(theirs):
        if one.other is None or two.other is None:
            raise InvalidArgument(
                "the releases are over different items. Bring them to the same ones by merged() (crowdgram export "
                "--merge), or release both with an item for all others (other='other', --other other)."
            )
        common = set(mine) & set(theirs)
        # Of two groups of one release one may have no item that the other has; of two releases, that is a mistake.
        if all(_is_rest(item) for item in common) and one.events is not two.events:
            raise InvalidArgument(
                "the releases are over different items: none is in both, so there is nothing to compare. Bring them to "
                "the same ones by merged() (crowdgram export --merge)."
            )
        one, two = (
            each if common == set(names) else _with_rest(each, [name in common for name in names])
            for each, names in ((one, mine), (two, theirs))
        )
        mine = [_unnamed(item) for item in one.items]
        theirs = [_unnamed(item) for item in two.items]
    place = {item: number for number, item in enumerate(theirs)}
    return one, _reordered(two, [place[item] for item in mine])


def folded(one: Release, two: Release) -> tuple[float, float]:
    """How much of each release is in items that only that one lists, so that `aligned` counts it as other items."""
    mine, theirs = ([_unnamed(item) for item in each.items] for each in (one, two))
    common = set(mine) & set(theirs)
    first, second = (
        float(each.probabilities[[name not in common for name in names]].sum())
        for each, names in ((one, mine), (two, theirs))
    )
    return first, second


def _kinds(release: Release) -> list[set[type]]:
    """The types of the listed values, by column; none is of a column in which nothing is listed."""
    rows: Any = release.items if len(release.item_columns) > 1 else [(item,) for item in release.items]
    return [{type(value) for value in column} - {Other} for column in zip(*rows, strict=True)]


def _same_kinds(one: Release, two: Release) -> bool:
    mine, theirs = _kinds(one), _kinds(two)
    return len(mine) == len(theirs) and all(not a or not b or a == b for a, b in zip(mine, theirs, strict=True))


def _shown_kinds(release: Release) -> str:
    kinds = (next(iter(found)).__name__ if found else "other" for found in _kinds(release))
    return ", ".join(f"{name} ({kind})" for name, kind in zip(release.item_columns, kinds, strict=True))


def _is_rest(item: Any) -> bool:
    """Whether an item of `_unnamed` stands for all others, or for those of a group."""
    return item == Other("") or (not isinstance(item[0], type) and Other("") in item)


def _reordered(release: Release, order: list[int]) -> Release:
    optional = ("sampling_errors", "measured", "other_errors", "noise_errors")
    arrays = ("probabilities", "standard_errors", "lower", "upper", *optional)
    found = {name: getattr(release, name) for name in arrays}
    moved: dict[str, Any] = {name: None if values is None else values[order] for name, values in found.items()}
    return replace(release, items=tuple(release.items[place] for place in order), **moved)


def _with_rest(release: Release, kept: list[bool]) -> Release:
    """The release with all items that are not `kept` in its last, the other item."""
    items: list[Item] = [item for item, keep in zip(release.items, kept, strict=True) if keep]
    codes = np.cumsum(kept) - 1
    codes[~np.array(kept)] = len(items) - 1
    return summed(release, tuple(items), codes.astype(np.int64), release.item_columns, {"aligned": len(items)})


def _unnamed(item: Any) -> Any:
    """An item without the name that stands for all others: two releases may call them differently."""
    if isinstance(item, tuple):
        return tuple(_unnamed(value) for value in item)
    return Other("") if isinstance(item, Other) else (type(item), item)


def _l1(a: _Shares, b: _Shares, z: float, release: Release) -> Quantity:
    difference = a.x - b.x
    own, tau = np.maximum(np.hypot(a.s, b.s), _TINY), np.hypot(a.measured.full(), b.measured.full())
    # By inverse variance, so that the mean is not correlated with the difference: which items are seen then does not
    # depend on how far apart they happen to lie.
    mean, deviation = (a.x * b.s**2 + b.x * a.s**2) / own**2, a.s * b.s / own
    seen = mean > max(a.above, b.above) * deviation
    found, everything = float(np.abs(difference[seen]).sum()), float(np.abs(difference).sum())
    lower = found - MEAN_ABSOLUTE * float(tau[seen].sum()) - z * _of_l1(a, b, seen)
    upper = everything + z * _of_l1(a, b, np.full(len(seen), True))
    if not seen.all():
        left = [max(0.0, 1 - float(each.x[seen].sum())) for each in (a, b)]
        # In found + left, one of x and y counts twice, the other not at all.
        twice = [np.where(seen & less, 2.0, 0.0) for less in (difference <= 0, difference > 0)]
        error = math.hypot(a.measured.deviation(twice[0]), b.measured.deviation(twice[1]))
        upper = min(upper, found + sum(left) + z * error)
    value = float(expected(difference, np.maximum(tau, _TINY), np.abs, signed=True).sum())
    return _quantity(value, lower, upper, 2.0, release)


def _of_l1(a: _Shares, b: _Shares, which: npt.NDArray[np.bool_]) -> float:
    """The deviation of the sum of |x - y| over some items: that of a linear function, where signs are clear; and where
    they are not, what each item adds by itself and all by their divisor.
    """
    signs = np.where(which, np.sign(a.x - b.x), 0.0)
    clear = math.hypot(a.measured.deviation(signs), b.measured.deviation(signs))
    common = [float(np.clip(each.x[which], 0.0, 1.0).sum()) * each.measured.spread for each in (a, b)]
    return max(clear, math.hypot(_length(a.s[which]), _length(b.s[which]), *common))


def _l2(a: _Shares, b: _Shares, z: float, release: Release) -> Quantity:
    difference, tau = a.x - b.x, np.hypot(a.measured.full(), b.measured.full())
    squares = difference**2 - tau**2
    square = float(squares.sum())
    slope = 2 * np.sign(difference) * np.sqrt(np.maximum(squares, 0.0))
    own = math.sqrt(_SQUARES) * _length(np.hypot(a.s, b.s) ** 2)
    common = [math.sqrt(2) * _length(np.clip(each.x, 0.0, 1.0)) ** 2 * each.measured.spread**2 for each in (a, b)]
    error = math.hypot(a.measured.deviation(slope), b.measured.deviation(slope), own, *common)
    lower, upper = (math.sqrt(max(square + side * z * error, 0.0)) for side in (-1, 1))
    return _quantity(math.sqrt(max(square, 0.0)), lower, upper, math.sqrt(2), release)


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
    """Caps that can hold the mass, all raised alike where they could not."""
    caps = np.maximum(caps, _TINY)
    return caps * max(1.0, mass / float(caps.sum()))


def _shares(release: Release, of: Of) -> _Shares:
    _, upper = release.intervals(of)  # refuses what cannot be asked
    one = FALSE / len(release)
    laplace = isinstance(release.events[-1], LaplaceEvent) if release.events else False
    above = -math.log(2 * one) / math.sqrt(2) if laplace else -NormalDist().inv_cdf(one)
    measured = Measured.of(release, population=of == "population")
    return _Shares(measured, upper, above, len(release) == 1 or measured.is_seen(release.confidence))


def _standard_errors(release: Release, of: Of) -> Floats:
    if of == "table" or release.sampling_errors is None:
        return release.standard_errors
    return np.hypot(release.standard_errors, release.sampling_errors)


def _quantity(value: float, lower: float, upper: float, most: float, release: Release, unit: float = 1.0) -> Quantity:
    lower, upper = min(max(lower, 0.0), most), min(max(upper, 0.0), most)
    if most > 0 and lower <= 0 and upper >= most:
        return _unknown(most, release, unit)
    value = min(max(value, lower), upper)
    return Quantity(value / unit, lower / unit, upper / unit, release.confidence)


def _unknown(most: float, release: Release, unit: float = 1.0) -> Quantity:
    return Quantity(math.nan, 0.0, most / unit, release.confidence)


def _length(values: Floats) -> float:
    return float(np.linalg.norm(values))


def _h(t: Floats) -> Floats:
    found: Floats = -t * np.log(np.maximum(t, 1e-300))
    return found


def _same(t: Floats) -> Floats:
    return t
