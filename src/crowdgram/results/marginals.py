"""Parts and sums of a release: marginals, conditionals, merged items. Post-processing: no privacy is spent.

A part's probabilities are sums (and quotients) of the release's own, so that parts agree with the whole. Its errors
start from the shares as measured, and from how the errors of those hang together (`covariance`). A conditional share is
a ratio of sums, so the divisor of the release plays no part in it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arrays import Floats, Integers
from ..errors import InvalidArgument
from ..mechanisms.estimate import Total
from .covariance import MEAN_ABSOLUTE, Measured, noise_quantile, sum_by_code
from .values import Item, Quantity, unlisted, values_of

if TYPE_CHECKING:
    from .release import Release

__all__ = ["conditional", "conditional_at", "marginal", "missed_share", "sum_items", "widen_intervals"]

LOST = 1.0
"""The predicted l1 error, at least, of a distribution that is not seen above its noise: half of the most it can be."""


def marginal(release: Release, columns: Sequence[str]) -> Release:
    """The distribution over some of the item columns."""
    places = _column_places(release, columns)
    if places == list(range(len(release.item_columns))):
        return release
    items, codes = _distinct_values(release, places, np.arange(len(release)))
    return sum_items(release, items, codes, tuple(columns), {"marginal": ", ".join(columns)})


def sum_items(
    release: Release, items: tuple[Item, ...], codes: Integers, columns: tuple[str, ...], said: Mapping[str, Any]
) -> Release:
    """The distribution over `items`, each the sum of those items of the release whose code is its place."""
    p = sum_by_code(release.probabilities, codes, len(items))
    sums = Measured.of(release).sums(codes, len(items))
    part = _part(release, items, p / p.sum(), sums, columns, said)
    # Summing over items cannot add to the l1 error.
    return replace(part, predicted_l1_error=min(release.predicted_l1_error, part.predicted_l1_error))


def widen_intervals(release: Release) -> Release:
    """The release with intervals that stay wide if there is nothing but noise: all of [0, 1] if the whole is not
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


def missed_share(release: Release) -> Quantity | None:
    """The share of all that belongs to items which are not listed; None if there is no item for them."""
    missed = np.array(unlisted(release.items), dtype=np.int64)
    if not missed.any():
        return None
    place = int(np.argmax(missed))
    if missed.sum() > 1:
        release, place = sum_items(release, ("listed", "missed"), missed, ("item",), {}), 1
    ends = float(release.lower[place]), float(release.upper[place])
    return Quantity(float(release.probabilities[place]), *ends, release.confidence)


def conditional(release: Release, columns: Sequence[str], given: Mapping[str, Any]) -> Release:
    """The distribution over `columns` among the items whose other columns are as `given`."""
    if not given:
        raise InvalidArgument(
            "given={}: needs a column and its value, as in conditional('page', country='DE').", argument="given"
        )
    fixed = dict(zip(_column_places(release, list(given)), given.values(), strict=True))
    chosen = [
        place
        for place, item in enumerate(release.items)
        if all(values_of(item)[column] == value for column, value in fixed.items())
    ]
    if not chosen:
        raise InvalidArgument(
            f"given={dict(given)!r}: needs values that at least one item of this release has.", argument="given"
        )
    return conditional_at(release, columns, given, np.array(chosen, dtype=np.int64))


def conditional_at(release: Release, columns: Sequence[str], given: Mapping[str, Any], chosen: Integers) -> Release:
    """The distribution over `columns` among the items at `chosen`: those whose other columns are as `given`."""
    places = _column_places(release, columns or [name for name in release.item_columns if name not in given])
    if set(given) & {release.item_columns[place] for place in places}:
        raise InvalidArgument(
            f"columns={list(columns)!r}, given={dict(given)!r}: a column can be in one of them only.",
            argument="columns",
        )
    items, codes = _distinct_values(release, places, chosen)
    shares = sum_by_code(release.probabilities[chosen], codes, len(items))
    share = float(shares.sum())
    q = shares / share if share > 0 else np.full(len(items), 1 / len(items))
    names = tuple(release.item_columns[place] for place in places)
    told = ", ".join(f"{name}={value}" for name, value in given.items())
    measured = Measured.of(release)
    ratios = measured.ratios(chosen, codes, len(items))
    part = _part(release, items, q / q.sum(), ratios, names, {"given": told})
    return replace(part, users=None, total=_total_of_part(release, measured, chosen))


def _total_of_part(release: Release, measured: Measured, chosen: Integers) -> Total | None:
    """The total of the chosen items. Their sum is their divisor, so it has that noise; its bias is an error of its own.
    How many users have a part of it is not known.
    """
    total = release.total
    if total is None:
        return None
    by = measured.sum_of(chosen)
    bias = math.sqrt(float(measured.other[chosen].sum())) / by if total.biased else 0.0
    return replace(total, value=total.value * by, error=math.hypot(total.error, bias))


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


def _column_places(release: Release, columns: Sequence[str]) -> list[int]:
    for name in columns:
        if name not in release.item_columns:
            raise InvalidArgument(
                f"columns={list(columns)!r}: {name!r} needs to be one of the item columns of this release, which are "
                f"{', '.join(map(repr, release.item_columns))}.",
                argument="columns",
            )
    if not columns or len(set(columns)) < len(columns):
        raise InvalidArgument(
            f"columns={list(columns)!r}: needs at least one column, and each once.", argument="columns"
        )
    return [release.item_columns.index(name) for name in columns]


def _distinct_values(release: Release, places: Sequence[int], chosen: Integers) -> tuple[tuple[Any, ...], Integers]:
    """The distinct values of some columns, in order of appearance, and which of them each chosen item has."""
    codes: dict[Any, int] = {}
    found = np.empty(len(chosen), dtype=np.int64)
    for number, place in enumerate(chosen.tolist()):
        values = values_of(release.items[place])
        value = tuple(values[one] for one in places)
        found[number] = codes.setdefault(value, len(codes))
    return tuple(value if len(places) > 1 else value[0] for value in codes), found
