"""Parts and sums of a release: marginals, conditionals, merged items. Post-processing: no privacy is spent.

A part's probabilities are sums (and quotients) of the release's own, so that parts agree with the whole. Its errors
start from the shares as measured, and from how the errors of those hang together (`covariance`). A conditional share is
a ratio of sums, so the divisor of the release plays no part in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InvalidArgument
from .covariance import MEAN_ABSOLUTE, Floats, Measured, Places, noise_quantile

if TYPE_CHECKING:
    from .release import Item, Release

__all__ = ["conditional", "marginal", "summed", "widened", "within"]

LOST = 1.0
"""The predicted l1 error, at least, of a distribution that is not seen above its noise: half of the most it can be."""


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
    p = _sums(release.probabilities, codes, len(items))
    sums = Measured.of(release).summed(codes, len(items))
    part = _part(release, items, p / p.sum(), sums, columns, said)
    # Summing over items cannot add to the l1 error.
    return replace(part, predicted_l1_error=min(release.predicted_l1_error, part.predicted_l1_error))


def widened(release: Release) -> Release:
    """The release with intervals that stay wide where there is nothing but noise: all of [0, 1] if the whole is not
    seen above its noise, and no upper end below what noise alone reaches, as [0, 0] would be.
    """
    measured = Measured.of(release)
    if len(release) == 1 or release.measured is None:
        return release
    if not measured.is_seen(release.confidence):
        return replace(
            release,
            lower=np.zeros(len(release)),
            upper=np.ones(len(release)),
            predicted_l1_error=max(release.predicted_l1_error, LOST),
        )
    least = np.minimum(noise_quantile(release.confidence) * measured.independent(), 1.0)
    return replace(release, upper=np.maximum(release.upper, least))


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
    shares = _sums(release.probabilities[chosen], codes, len(items))
    share = float(shares.sum())
    q = shares / share if share > 0 else np.full(len(items), 1 / len(items))
    names = tuple(release.item_columns[place] for place in places)
    told = ", ".join(f"{name}={value}" for name, value in given.items())
    ratios = Measured.of(release).within(chosen, codes, len(items))
    return _part(release, items, q / q.sum(), ratios, names, {"given": told})


def _part(
    release: Release,
    items: tuple[Item, ...],
    probabilities: Floats,
    measured: Measured,
    columns: tuple[str, ...],
    said: Mapping[str, Any],
) -> Release:
    """A release over `items`, made of another one."""
    lower, upper = measured.ends(release.confidence)
    off = float(np.maximum(MEAN_ABSOLUTE * measured.full(), np.abs(probabilities - measured.x)).sum())
    if len(items) > 1 and not measured.is_seen(release.confidence):
        off = max(off, LOST)
    return replace(
        release,
        items=items,
        item_columns=columns,
        probabilities=probabilities,
        standard_errors=np.minimum(np.sqrt(measured.variances()), 1.0),
        lower=np.minimum(lower, probabilities),
        upper=np.maximum(upper, probabilities),
        predicted_l1_error=min(2.0, off),
        sampling_errors=None,
        measured=measured.x,
        noise_errors=np.sqrt(measured.noise),
        divisor=measured.divisor,
        other_errors=np.minimum(np.sqrt(measured.other), 1.0),
        parameters={**release.parameters, "items": len(items), **said},
    )


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


def _sums(values: Floats, codes: Places, size: int) -> Floats:
    return np.bincount(codes, weights=values, minlength=size).astype(np.float64)
