"""Entropy, distances and differences of releases, with how far noise may have moved them. No privacy is spent.

Noise makes a distribution look more uneven than it is, and two of them look farther apart: what is computed from noisy
shares as if they were exact is biased. So the values here are expectations under a prior fitted to all items
(`mechanisms.shrink.expected`), and the intervals do not rest on that prior. They rest on the shares as measured,
x_i = theta_i + noise of deviation s_i, where theta is the answer without noise, and on bounds for every theta:

Entropy, sum of h(theta_i) with h(t) = -t log t. Items above the noise count as measured, each off by about
    s_i |log(x_i / t)|, where t is the probability of the items that their mass would otherwise go to. The mass that
    they leave, M, is spread somehow over the others, none of which is above its upper end u_i: most evenly, theta_i =
    min(t, u_i); or as unevenly as can be, theta_i = u_i for the largest u_i until M is used up. Entropy is
    Schur-concave, so nothing lies outside.

l1 distance, sum of |theta_i - phi_i|. With tau_i^2 = s_i^2 + s'_i^2,

        |theta_i - phi_i|  <=  E |x_i - y_i|  <=  |theta_i - phi_i| + sqrt(2 / pi) tau_i

    (Jensen; the triangle inequality). Over the items above the noise in either release, that is all; the others add
    between nothing and all of the mass that is left in the two releases.

l2 distance: (x_i - y_i)^2 - tau_i^2 is unbiased.

Hellinger distance, sqrt(1 - sum of sqrt(theta_i phi_i)). Items above the noise in both count as measured, with
    E sqrt(x) = sqrt(theta) (1 - s^2 / (8 theta^2)) undone; the others add between nothing and, by Cauchy and Schwarz,
    the square root of the product of the masses that are left.

What else than noise the intervals of items allow for (`other_errors`) is taken to add up in the worst way.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from ..errors import InvalidArgument
from ..mechanisms import expected
from .parts import noise_quantile, summed
from .release import Difference, Other, Quantity

if TYPE_CHECKING:
    from .release import Item, Release

__all__ = ["Kind", "Of", "differences", "distance", "entropy"]

Floats = npt.NDArray[np.float64]
Of = Literal["table", "population"]
Kind = Literal["l1", "tv", "l2", "hellinger"]

ABOVE = 3.0
"""Standard deviations of noise above which an item is seen."""
_MEAN_ABSOLUTE = math.sqrt(2 / math.pi)
_TINY = 1e-12


@dataclass(frozen=True)
class _Shares:
    """Shares as measured, the deviations of their noise, what else they may be off by, and their upper ends."""

    x: Floats
    s: Floats
    other: Floats
    upper: Floats

    @property
    def seen(self) -> npt.NDArray[np.bool_]:
        return self.x > ABOVE * np.hypot(self.s, self.other)


def entropy(release: Release, base: float, of: Of) -> Quantity:
    """The entropy of the answer without noise, in units of log(base)."""
    if isinstance(base, bool) or not isinstance(base, (int, float)) or not (1 < base < math.inf):
        raise InvalidArgument(f"base={base!r}: needs to be a number above 1, such as 2 for bits.")
    shares, z = _shares(release, of), noise_quantile(release.confidence)
    seen = shares.seen
    x, s, other = shares.x[seen], shares.s[seen], shares.other[seen]
    if seen.all():
        total = float(x.sum())
        x, s, other = x / total, s / total, other / total
    measured = float(_h(x).sum() + (s**2 / (2 * x)).sum())
    left = max(0.0, 1 - float(x.sum()))
    caps = np.maximum(shares.upper[~seen], _TINY)
    if not len(caps) or left <= 0:
        level = math.exp(-min(measured, 700.0))
        ends = [(measured, level), (measured, level)]
    else:
        caps = np.minimum(caps * max(1.0, left / float(caps.sum())), 1.0)
        ends = [(measured + value, level) for value, level in (_least_even(caps, left), _most_even(caps, left))]
    errors = []
    for _, level in ends:
        pull = np.abs(np.log(x / level))
        errors.append((math.sqrt(float((pull**2 * s**2).sum())), float((pull * other).sum())))
    reaches = [z * math.hypot(*error) for error in errors]
    deviations = np.maximum(shares.s, _TINY)
    mass = max(float(expected(shares.x, deviations, _same).sum()), _TINY)
    value = float(expected(shares.x, deviations, _h).sum()) / mass + math.log(mass)
    most = math.log(len(release))
    return _quantity(
        value, max(errors)[0], ends[0][0] - reaches[0], ends[1][0] + reaches[1], most, release, unit=math.log(base)
    )


def distance(one: Release, two: Release, kind: Kind, of: Of) -> Quantity:
    """How far the answers without noise are from each other."""
    if kind not in get_args(Kind):
        raise InvalidArgument(f"kind={kind!r}: needs to be one of {', '.join(map(repr, get_args(Kind)))}.")
    one, two = aligned(one, two)
    a, b = _shares(one, of), _shares(two, of)
    z = noise_quantile(one.confidence)
    if kind == "l2":
        return _l2(a, b, z, one)
    if kind == "hellinger":
        return _hellinger(a, b, z, one, two)
    found = _l1(a, b, z, one)
    if kind == "l1":
        return found
    halves = (found.value / 2, found.standard_error / 2, found.lower / 2, found.upper / 2)
    return Quantity(*halves, found.confidence)


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
    x, y = (np.clip(_shares(each, "table").x, *each.intervals(of)) for each in (one, two))
    lower = np.minimum((x - y) - np.hypot(x - low_p, high_q - y), p - q)
    upper = np.maximum((x - y) + np.hypot(high_p - x, y - low_q), p - q)
    sure = np.maximum(np.maximum(lower, -upper), 0.0)
    errors = np.hypot(_shares(one, of).s, _shares(two, of).s)
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

    Where the lists differ and both have an item for all others, items that only one of them lists are counted there.
    """
    if one.weight != two.weight:
        raise InvalidArgument(
            f"weight={one.weight!r} and weight={two.weight!r} answer different questions. Compare releases of one."
        )
    if one.confidence != two.confidence:
        raise InvalidArgument(f"confidence is {one.confidence:g} in one release and {two.confidence:g} in the other.")
    mine, theirs = ([_unnamed(item) for item in each.items] for each in (one, two))
    if mine == theirs:
        return one, two
    if set(mine) != set(theirs):
        if one.other is None or two.other is None:
            raise InvalidArgument(
                "the releases are over different items. Bring them to the same ones by merged(), or release both with "
                "an item for all others (other='other')."
            )
        common = set(mine) & set(theirs)
        one, two = (
            each if common == set(names) else _with_rest(each, [name in common for name in names])
            for each, names in ((one, mine), (two, theirs))
        )
        mine = [_unnamed(item) for item in one.items]
        theirs = [_unnamed(item) for item in two.items]
    place = {item: number for number, item in enumerate(theirs)}
    return one, _reordered(two, [place[item] for item in mine])


def _reordered(release: Release, order: list[int]) -> Release:
    arrays = ("probabilities", "standard_errors", "lower", "upper", "sampling_errors", "measured", "other_errors")
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
    difference, tau = a.x - b.x, np.hypot(a.s, b.s)
    seen = a.seen | b.seen
    found = float(np.abs(difference[seen]).sum())
    error = math.sqrt(float((tau[seen] ** 2).sum()))
    other = float((a.other + b.other).sum())
    lower = found - _MEAN_ABSOLUTE * float(tau[seen].sum()) - z * math.hypot(error, other)
    left = 0.0
    if not seen.all():
        # What is left moves with the seen items: one of x and y counts twice there, the other not at all.
        left = max(0.0, 1 - float(a.x[seen].sum())) + max(0.0, 1 - float(b.x[seen].sum()))
        error = 2 * math.sqrt(
            float(np.where(difference > 0, b.s, a.s)[seen] @ np.where(difference > 0, b.s, a.s)[seen])
        )
    upper = found + left + z * math.hypot(error, other)
    value = float(expected(difference, np.maximum(tau, _TINY), np.abs, signed=True).sum())
    return _quantity(value, error, lower, upper, 2.0, release)


def _l2(a: _Shares, b: _Shares, z: float, release: Release) -> Quantity:
    difference, tau = a.x - b.x, np.hypot(a.s, b.s)
    squares = difference**2 - tau**2
    square = float(squares.sum())
    # The square of noise has variance 2 tau^4 if it is Gaussian, 5 tau^4 if it is Laplace noise.
    error = math.sqrt(float((4 * np.maximum(squares, 0.0) * tau**2 + 5 * tau**4).sum()))
    other = z * float(np.linalg.norm(a.other + b.other))
    lower, upper = (math.sqrt(max(square + side * z * error, 0.0)) for side in (-1, 1))
    value = math.sqrt(max(square, 0.0))
    return _quantity(value, min(error / (2 * value) if value > 0 else math.inf, math.sqrt(error)), lower - other,
                     upper + other, math.sqrt(2), release)  # fmt: skip


def _hellinger(a: _Shares, b: _Shares, z: float, one: Release, two: Release) -> Quantity:
    seen = a.seen & b.seen
    x, y, s, t = a.x[seen], b.x[seen], a.s[seen], b.s[seen]
    if seen.all():
        x, s, y, t = x / x.sum(), s / x.sum(), y / y.sum(), t / y.sum()
    root = np.sqrt(x * y)
    common = float((root * (1 + s**2 / (8 * x**2)) * (1 + t**2 / (8 * y**2))).sum())
    shift = common / 2 if seen.all() else 0.0
    by_x, by_y = np.sqrt(y / x) / 2 - shift, np.sqrt(x / y) / 2 - shift
    # Where both are alike, the first order vanishes and what is left is the scatter of squares.
    squares = 5 * ((s**2 / x**2 + t**2 / y**2) * root / 8) ** 2
    error = math.sqrt(float((by_x**2 * s**2 + by_y**2 * t**2 + squares).sum()))
    other = float((np.abs(by_x) * a.other[seen] + np.abs(by_y) * b.other[seen]).sum())
    reach = z * math.hypot(error, other)
    rest = 0.0
    if not seen.all():
        left = [1 - float(v.sum()) + z * math.sqrt(float((w**2).sum())) for v, w in ((x, s), (y, t))]
        rest = math.sqrt(min(max(left[0], 0.0), 1.0) * min(max(left[1], 0.0), 1.0))
        rest = min(rest, float(np.sqrt(a.upper[~seen] * b.upper[~seen]).sum()))
    likely = float(np.sqrt(one.probabilities[~seen] * two.probabilities[~seen]).sum())
    lower, value, upper = (
        math.sqrt(min(max(1 - affinity, 0.0), 1.0))
        for affinity in (common + rest + reach, common + likely, common - reach)
    )
    return _quantity(
        value, error / (2 * value) if value > math.sqrt(error) else math.sqrt(error), lower, upper, 1.0, one
    )


def _least_even(caps: Floats, mass: float) -> tuple[float, float]:
    """The least entropy of `mass` spread over items of at most `caps`, and the last item's probability."""
    largest = np.sort(caps)[::-1]
    before = np.cumsum(largest) - largest
    filled = np.clip(mass - before, 0.0, largest)
    level = float(filled[filled > 0][-1])
    return float(_h(filled).sum()), max(level, _TINY)


def _most_even(caps: Floats, mass: float) -> tuple[float, float]:
    """The greatest entropy of `mass` spread over items of at most `caps`, and the level that it fills them to."""
    ordered = np.sort(caps)
    # With the level at the i-th cap, the items below are full and the others at the level.
    held = np.cumsum(ordered) - ordered + ordered * np.arange(len(ordered), 0, -1)
    place = min(int(np.searchsorted(held, mass)), len(ordered) - 1)
    level = (mass - float(ordered[:place].sum())) / (len(ordered) - place)
    return float(_h(np.minimum(ordered, level)).sum()), max(level, _TINY)


def _shares(release: Release, of: Of) -> _Shares:
    _, upper = release.intervals(of)  # refuses what cannot be asked
    x = release.probabilities if release.measured is None else release.measured
    other = np.zeros(len(release)) if release.other_errors is None else release.other_errors
    errors = release.standard_errors
    if of == "population" and release.sampling_errors is not None:
        errors = np.hypot(errors, release.sampling_errors)
    return _Shares(x, errors, other, upper)


def _quantity(
    value: float, error: float, lower: float, upper: float, most: float, release: Release, unit: float = 1.0
) -> Quantity:
    lower, upper = min(max(lower, 0.0), most), min(max(upper, 0.0), most)
    value = min(max(value, lower), upper)
    return Quantity(value / unit, error / unit, lower / unit, upper / unit, release.confidence)


def _h(t: Floats) -> Floats:
    found: Floats = -t * np.log(np.maximum(t, 1e-300))
    return found


def _same(t: Floats) -> Floats:
    return t
