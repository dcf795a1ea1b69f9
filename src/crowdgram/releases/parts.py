"""Parts and sums of a release: marginals, conditionals, merged items. Post-processing: no privacy is spent.

A part's probabilities are sums (and quotients) of the release's own, so that parts agree with the whole. Its errors
start from the shares as measured, x_i = true share + noise of variance v_i, independent over items but for the
common divisor. Let a sum over A of them be x_A, and V_A the sum of their variances. To first order in the noise

    x_A / x_all       has variance  ((1 - r)^2 V_A + r^2 (V_all - V_A)) / x_all^2,    r = x_A / x_all;
    q = x_j / x_A     is where  x_j - q x_A,  of variance  (1 - q)^2 V_j + q^2 (V_A - V_j),  is centred at zero.

The interval of a conditional holds every q for which x_j - q x_A is within its own reach of zero (Fieller 1954): it
stays honest where x_A itself is lost in noise, and is then all of [0, 1]. Predicted bias may add up within A, but not
beyond half of all of it, since it sums to zero over all items.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..errors import InvalidArgument

if TYPE_CHECKING:
    from .release import Item, Release

__all__ = ["conditional", "marginal", "noise_quantile", "summed", "within"]

Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]

_MEAN_ABSOLUTE = math.sqrt(2 / math.pi)


@dataclass(frozen=True)
class _Sums:
    """Sums over groups of items: of probabilities, measured shares, variances of noise, and other errors."""

    probabilities: Floats
    measured: Floats
    variances: Floats
    other: Floats


def marginal(release: Release, columns: Sequence[str]) -> Release:
    """The distribution over some of the item columns."""
    places = _places(release, columns)
    if places == list(range(len(release.item_columns))):
        return release
    items, codes = _grouped(release, places, np.arange(len(release)))
    return summed(release, items, codes, tuple(columns), {"marginal": ", ".join(columns)})


def summed(
    release: Release, items: tuple[Item, ...], codes: Places, columns: tuple[str, ...], said: Mapping[str, Any]
) -> Release:
    """The distribution over `items`, each the sum of those items of the release whose code is its place."""
    sums = _sums(release, codes, np.arange(len(release)), len(items))
    all_variance = float(sums.variances.sum())
    all_measured = _above_noise(float(sums.measured.sum()), all_variance)
    r = sums.measured / all_measured
    inside = np.clip(r, 0.0, 1.0)
    variance = (1 - inside) ** 2 * sums.variances + inside**2 * (all_variance - sums.variances)
    errors = np.sqrt(np.maximum(variance, 0.0)) / all_measured
    other = np.minimum(sums.other, _all_other(release) / 2)
    reach = noise_quantile(release.confidence) * np.hypot(errors, other)
    p = sums.probabilities / sums.probabilities.sum()
    off = np.maximum(_MEAN_ABSOLUTE * np.hypot(errors, other), np.abs(p - r))
    return replace(
        release,
        items=items,
        item_columns=columns,
        probabilities=p,
        standard_errors=errors,
        lower=np.minimum(np.clip(r - reach, 0.0, 1.0), p),
        upper=np.maximum(np.clip(r + reach, 0.0, 1.0), p),
        # Summing over items cannot add to the l1 error.
        predicted_l1_error=min(release.predicted_l1_error, float(off.sum())),
        sampling_errors=None,
        measured=r,
        other_errors=other,
        parameters={**release.parameters, "items": len(items), **said},
    )


def conditional(release: Release, columns: Sequence[str], given: Mapping[str, Any]) -> Release:
    """The distribution over `columns` among the items whose other columns are as `given`."""
    if not given:
        raise InvalidArgument("given is empty: name a column and its value, as in conditional('page', country='DE').")
    fixed = dict(zip(_places(release, list(given)), given.values(), strict=True))
    chosen = [
        place
        for place, item in enumerate(release.items)
        if all(item[column] == value for column, value in fixed.items())  # type: ignore[index]
    ]
    if not chosen:
        raise InvalidArgument(f"given={dict(given)!r} is not in the domain of this release.")
    return within(release, columns, given, np.array(chosen, dtype=np.int64))


def within(release: Release, columns: Sequence[str], given: Mapping[str, Any], chosen: Places) -> Release:
    """The distribution over `columns` among the items at `chosen`: those whose other columns are as `given`."""
    places = _places(release, columns or [name for name in release.item_columns if name not in given])
    if set(given) & {release.item_columns[place] for place in places}:
        raise InvalidArgument(
            f"columns={list(columns)!r} and given={dict(given)!r} overlap: a column can be in one only."
        )
    items, codes = _grouped(release, places, chosen)
    sums = _sums(release, codes, chosen, len(items))
    z = noise_quantile(release.confidence)
    x, x_all = sums.measured, float(sums.measured.sum())
    v, v_all = sums.variances, float(sums.variances.sum())
    share = float(sums.probabilities.sum())
    q = sums.probabilities / share if share > 0 else np.full(len(items), 1 / len(items))
    low, high = _fieller(x, x_all, v, v_all, z)
    seen = _above_noise(x_all, v_all)
    errors = np.minimum(np.sqrt(np.maximum((1 - q) ** 2 * v + q**2 * (v_all - v), 0.0)) / seen, 1.0)
    everything = _all_other(release) / 2
    other = (np.minimum(sums.other, everything) + q * min(float(sums.other.sum()), everything)) / seen
    middle, half = (low + high) / 2, np.hypot((high - low) / 2, z * other)
    off = np.maximum(_MEAN_ABSOLUTE * np.hypot(errors, other), np.abs(q - np.clip(x / seen, 0.0, 1.0)))
    names = [release.item_columns[place] for place in places]
    said = ", ".join(f"{name}={value}" for name, value in given.items())
    return replace(
        release,
        items=items,
        item_columns=tuple(names),
        probabilities=q / q.sum(),
        standard_errors=errors,
        lower=np.minimum(np.clip(middle - half, 0.0, 1.0), q),
        upper=np.maximum(np.clip(middle + half, 0.0, 1.0), q),
        predicted_l1_error=min(2.0, float(off.sum())),
        sampling_errors=None,
        measured=x / seen,
        other_errors=np.minimum(other, 1.0),
        parameters={**release.parameters, "items": len(items), "given": said},
    )


def _fieller(x: Floats, x_all: float, v: Floats, v_all: float, z: float) -> tuple[Floats, Floats]:
    """Ends of {q in [0, 1]: (x - q x_all)^2 <= z^2 ((1 - q)^2 v + q^2 (v_all - v))}, a quadratic inequality in q."""
    a = x_all**2 - z**2 * v_all
    if a <= 0 or x_all <= 0:
        return np.zeros_like(x), np.ones_like(x)
    b, c = x * x_all - z**2 * v, x**2 - z**2 * v
    root = np.sqrt(np.maximum(b**2 - a * c, 0.0))
    return np.clip((b - root) / a, 0.0, 1.0), np.clip((b + root) / a, 0.0, 1.0)


def _above_noise(total: float, variance: float) -> float:
    """A divisor that is not lost in its own noise: where it is, the parts must not be blown up."""
    return max(total, math.sqrt(variance), 1e-300)


def noise_quantile(confidence: float) -> float:
    """What noise keeps to at level `confidence`, in standard deviations: the wider of Laplace and Gaussian.

    A sum of independent Laplace variables lies between the two.
    """
    return max(NormalDist().inv_cdf((1 + confidence) / 2), -math.log(1 - confidence) / math.sqrt(2))


def _places(release: Release, columns: Sequence[str]) -> list[int]:
    for name in columns:
        if name not in release.item_columns:
            raise InvalidArgument(
                f"column {name!r} is not an item column of this release, which has "
                f"{', '.join(map(repr, release.item_columns))}."
            )
    if not columns or len(set(columns)) < len(columns):
        raise InvalidArgument(f"columns={list(columns)!r}: name at least one column, and each once.")
    return [release.item_columns.index(name) for name in columns]


def _grouped(release: Release, places: Sequence[int], chosen: Places) -> tuple[tuple[Any, ...], Places]:
    """The distinct values of some columns, in order of appearance, and which of them each chosen item has."""
    several = len(release.item_columns) > 1
    codes: dict[Any, int] = {}
    found = np.empty(len(chosen), dtype=np.int64)
    for number, place in enumerate(chosen.tolist()):
        item: Any = release.items[place]
        value = tuple(item[one] for one in places) if several else (item,)
        found[number] = codes.setdefault(value, len(codes))
    return tuple(value if len(places) > 1 else value[0] for value in codes), found


def _sums(release: Release, codes: Places, chosen: Places, size: int) -> _Sums:
    measured = release.probabilities if release.measured is None else release.measured
    other = np.zeros(len(release)) if release.other_errors is None else release.other_errors

    def summed(values: Floats) -> Floats:
        return np.bincount(codes, weights=values[chosen], minlength=size).astype(np.float64)

    parts = (release.probabilities, measured, release.standard_errors**2, other)
    return _Sums(*(summed(part) for part in parts))


def _all_other(release: Release) -> float:
    return 0.0 if release.other_errors is None else float(release.other_errors.sum())
