"""Several distributions side by side: the same items on one scale, distances, and where the farthest two differ."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any

from ..errors import InvalidArgument
from ..inference.distances import by_distance
from ..results.release import Release
from ..results.values import Quantity, is_other, values_of
from .numbers import decimals, interval, percent_of
from .pages.contexts import Row, bar, full_bar
from .selection import common_items
from .wording import number

__all__ = ["comparison"]

_ITEMS = 20
_DIFFERENCES = 5


def comparison(parts: Mapping[Any, Release], whole: int, heading: str, kind: str) -> dict[str, Any]:
    """What the template of a comparison is given. whole: how many there are, if `parts` are not all."""
    items = common_items(parts.values(), _ITEMS)
    listed = [set(own.items) for own in parts.values()]
    found = [
        [own.estimate(item) if item in has else None for own, has in zip(parts.values(), listed, strict=True)]
        for item in items
    ]
    full = full_bar(one for row in found for one in row if one is not None and not is_other(one.item))
    rows = []
    for item, row in zip(items, found, strict=True):
        cells: list[Row | None] = []
        for one in row:
            if one is None:
                cells.append(None)
                continue
            ends = one.probability, one.lower, one.upper
            drawn = None if is_other(item) else bar(*ends, full)
            cells.append(Row(item, percent_of(*ends), interval(*ends, "shares"), drawn))
        rows.append((item, cells))
    drawn_items = sum(not is_other(item) for item in items)
    every = sum(not is_other(item) for item in set().union(*listed))
    which = f"All {kind}" if len(parts) == whole else f"The {len(parts)} largest of {whole:,} {kind}"
    if kind != "groups" and len(parts) < whole:
        which = f"The first {len(parts)} of {whole:,} {kind}"
    most = f"the {drawn_items} of {every:,} items with the largest mean over them"
    what = "all items" if drawn_items == every else most
    first = next(iter(parts.values()))
    return {
        "heading": heading,
        "which": f"{which}, and {what}.",
        "level": f"{first.confidence:.0%} interval",
        "missing": any(None in cells for _, cells in rows),
        "groups": list(parts),
        "rows": rows,
        **_distances(parts),
    }


def _distances(parts: Mapping[Any, Release]) -> dict[str, Any]:
    try:
        found = {pair: parts[pair[0]].distance(parts[pair[1]]) for pair in combinations(parts, 2)}
    except InvalidArgument:  # they have different items, and no "other" to hold the rest
        return {"distances": None}
    groups = list(parts)
    pair = min(found, key=lambda pair: by_distance(found[pair]))
    first, second = parts[pair[0]], parts[pair[1]]
    return {
        "distances": [
            (group, [_distance(found[other, group]) for other in groups[:place]])
            for place, group in enumerate(groups)
            if place
        ],
        "pair": pair,
        "heads": first.item_columns,
        "differences": [(values_of(each.item), _difference(each)) for each in first.differences(second, _DIFFERENCES)],
    }


def _distance(quantity: Quantity) -> dict[str, Any]:
    far = min(quantity.value / 2, 1.0) if quantity.is_known else 0.0
    return {
        "value": number(quantity, 3),
        "interval": f"{quantity.lower:.3f} to {quantity.upper:.3f}",
        "sure": quantity.lower > 0,
        "far": round(10 * far),
    }


def _difference(each: Any) -> tuple[str, ...]:
    """An item in both, and the difference with its interval, in percentages of one number of digits."""
    places = decimals(each.lower, each.upper, abs(each.difference))
    both = (f"{100 * value:.{places}f}%" for value in (each.first, each.second))
    ends = f"{100 * each.lower:+.{places}f} to {100 * each.upper:+.{places}f}"
    return (*both, f"{100 * each.difference:+.{places}f}", ends)
