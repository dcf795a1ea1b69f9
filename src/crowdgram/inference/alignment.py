"""Two releases over the same items, so that they can be compared item by item."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..errors import InvalidArgument
from ..results.marginals import sum_items
from ..results.release import Release
from ..results.values import Item, Other, values_of

__all__ = ["align", "unmatched_shares"]


def align(one: Release, two: Release) -> tuple[Release, Release]:
    """Both releases over the same items in the same order.

    If the lists differ and both have an item for all others, items that only one of them lists are counted there:
    how much that is says `unmatched_shares`.
    """
    if not isinstance(two, Release):
        raise InvalidArgument(f"other={two!r}: needs to be a Release; of a grouped one, a group.", argument="other")
    if one.weight != two.weight:
        raise InvalidArgument(
            f"weight={one.weight!r}, weight={two.weight!r}: both releases need the same weight, or they answer "
            "different questions.",
            argument="weight",
        )
    if one.confidence != two.confidence:
        raise InvalidArgument(
            f"confidence={one.confidence:g}, confidence={two.confidence:g}: both releases need the same confidence.",
            argument="confidence",
        )
    mine, theirs = ([_unnamed(item) for item in each.items] for each in (one, two))
    if mine == theirs:
        return one, two
    if not _same_kinds(one, two):
        raise InvalidArgument(
            "items: both releases need the same columns, of the same types. One is over "
            f"{_shown_kinds(one)}, the other over {_shown_kinds(two)}.",
            argument="items",
        )
    if set(mine) != set(theirs):
        if one.other is None or two.other is None:
            raise InvalidArgument(
                "items: both releases need the same items, or both an item for all others. Bring them to the same "
                "items by merged() (crowdgram export --merge), or release both with other='other' (--other other).",
                argument="items",
            )
        common = set(mine) & set(theirs)
        # Of two groups of one release one may have no item that the other has; of two releases, that is a mistake.
        if all(_is_rest(item) for item in common) and one.events is not two.events:
            raise InvalidArgument(
                "items: both releases need an item in common, or there is nothing to compare. Bring them to the same "
                "items by merged() (crowdgram export --merge).",
                argument="items",
            )
        one, two = (
            each if common == set(names) else _count_as_others(each, [name in common for name in names])
            for each, names in ((one, mine), (two, theirs))
        )
        mine = [_unnamed(item) for item in one.items]
        theirs = [_unnamed(item) for item in two.items]
    place = {item: number for number, item in enumerate(theirs)}
    return one, _reorder(two, [place[item] for item in mine])


def unmatched_shares(one: Release, two: Release) -> tuple[float, float]:
    """How much of each release is in items that only that one lists, so that `align` counts it as other items."""
    mine, theirs = ([_unnamed(item) for item in each.items] for each in (one, two))
    common = set(mine) & set(theirs)
    first, second = (
        float(each.probabilities[[name not in common for name in names]].sum())
        for each, names in ((one, mine), (two, theirs))
    )
    return first, second


def _kinds(release: Release) -> list[set[type]]:
    """The types of the listed values, by column; none is of a column in which nothing is listed."""
    columns = zip(*(values_of(item) for item in release.items), strict=True)
    return [{type(value) for value in column} - {Other} for column in columns]


def _same_kinds(one: Release, two: Release) -> bool:
    mine, theirs = _kinds(one), _kinds(two)
    return len(mine) == len(theirs) and all(not a or not b or a == b for a, b in zip(mine, theirs, strict=True))


def _shown_kinds(release: Release) -> str:
    kinds = (next(iter(found)).__name__ if found else "other" for found in _kinds(release))
    return ", ".join(f"{name} ({kind})" for name, kind in zip(release.item_columns, kinds, strict=True))


def _is_rest(item: Any) -> bool:
    """Whether an item of `_unnamed` stands for all others, or for those of a group."""
    return item == Other("") or (not isinstance(item[0], type) and Other("") in item)


def _reorder(release: Release, order: list[int]) -> Release:
    optional = ("sampling_errors", "measured", "other_errors", "noise_errors")
    arrays = ("probabilities", "standard_errors", "lower", "upper", *optional)
    found = {name: getattr(release, name) for name in arrays}
    moved: dict[str, Any] = {name: None if values is None else values[order] for name, values in found.items()}
    return replace(release, items=tuple(release.items[place] for place in order), **moved)


def _count_as_others(release: Release, kept: list[bool]) -> Release:
    """The release with all items that are not `kept` in its last, the other item."""
    items: list[Item] = [item for item, keep in zip(release.items, kept, strict=True) if keep]
    codes = np.cumsum(kept) - 1
    codes[~np.array(kept)] = len(items) - 1
    return sum_items(release, tuple(items), codes.astype(np.int64), release.item_columns, {"aligned": len(items)})


def _unnamed(item: Any) -> Any:
    """An item without the name that stands for all others: two releases may call them differently."""
    if isinstance(item, tuple):
        return tuple(_unnamed(value) for value in item)
    return Other("") if isinstance(item, Other) else (type(item), item)
