"""Items put together by a mapping: pages into sections, words into stems, products into kinds. No privacy is spent."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InvalidArgument
from .marginals import sum_items
from .values import Item, Other, fault_of_column, is_unlisted, values_of

if TYPE_CHECKING:
    from .release import Release

__all__ = ["merge_items", "merge_within_groups"]


def merge_items(
    release: Release, mapping: Mapping[Any, Any] | Callable[[Any], Any], other: str | None, column: str | None
) -> Release:
    """The release over what `mapping` makes of its items; its errors are those of sums."""
    _check_names(other, column)
    mapped = _map_items(release.items, mapping, other)
    listed = list(dict.fromkeys(target for target in mapped if target is not _Rest))
    columns = _columns(release.item_columns, listed, column)
    items: tuple[Item, ...] = tuple(listed)
    if len(listed) < len(set(mapped)):
        rest = Other.apart_from(listed, _name(release, other))
        items = (*listed, rest if len(columns) == 1 else (rest,) * len(columns))
    place: dict[Any, int] = {target: number for number, target in enumerate(listed)}
    codes = np.array([place.get(target, len(listed)) for target in mapped], dtype=np.int64)
    return sum_items(release, items, codes, columns, {"merged_from": len(release)})


def merge_within_groups(
    joint: Release, mapping: Mapping[Any, Any] | Callable[[Any], Any], other: str | None, column: str | None
) -> Release:
    """The joint release of groups over what `mapping` makes of the items in each.

    What has no item any more is the group's own other item; rows of no group stay the last.
    """
    _check_names(other, column)
    pairs: Any = joint.items
    own = [pair[1] if len(pair) == 2 else pair[1:] for pair in pairs]
    distinct = tuple(dict.fromkeys(own))
    became = dict(zip(distinct, _map_items(distinct, mapping, other), strict=True))
    listed = list(dict.fromkeys(target for target in became.values() if target is not _Rest))
    columns = (joint.item_columns[0], *_columns(joint.item_columns[1:], listed, column))
    rest = None
    if _Rest in became.values():
        groups = [pair[0] for pair in pairs if not isinstance(pair[0], Other)]
        rest = Other.apart_from((*listed, *groups), _name(joint, other))
    wide = len(columns) - 1
    places: dict[Any, tuple[int, Any]] = {}
    for pair, item in zip(pairs, own, strict=True):
        target, group = became[item], pair[0]
        if isinstance(group, Other):
            places[pair] = (2, (rest,) * (1 + wide))
        elif target is _Rest:
            places[pair] = (1, (group, *[rest] * wide))
        else:
            places[pair] = (0, (group, *values_of(target)))
    # Listed pairs first, then each group's own other item, then that of no group.
    items = tuple(item for _, item in sorted(dict.fromkeys(places.values()), key=lambda found: found[0]))
    number = {item: place for place, item in enumerate(items)}
    codes = np.array([number[places[pair][1]] for pair in pairs], dtype=np.int64)
    return sum_items(joint, items, codes, columns, {"merged_from": len(joint)})


def _check_names(other: object, column: object) -> None:
    if other is not None and (not isinstance(other, str) or not other.strip()):
        raise InvalidArgument(
            f"other={other!r}: needs to be a name for the item that stands for all others, or None.", argument="other"
        )
    if column is not None and (not isinstance(column, str) or not column):
        raise InvalidArgument(f"column={column!r}: needs to be a name, or None.", argument="column")


def _name(release: Release, other: str | None) -> str:
    """The name of the other item: as given, or that of the one that is there."""
    name = other or next((str(value) for value in values_of(release.items[-1]) if isinstance(value, Other)), None)
    if name is None:
        raise InvalidArgument(
            "mapping: needs to give every item of the release a new one. Name one for the rest, as in other='other'.",
            argument="mapping",
        )
    return name


class _Rest:
    """Stands for the other item until it has a name."""


def _map_items(items: Sequence[Any], mapping: Any, other: str | None) -> list[Any]:
    """What each item becomes; _Rest for the other item."""
    return [_Rest if target is None else _plain(target) for target in _targets(items, mapping, other)]


def _targets(items: Sequence[Any], mapping: Any, other: str | None) -> list[Any]:
    if isinstance(mapping, Mapping):
        known = set(items)
        for item in mapping:
            if item not in known:
                raise InvalidArgument(
                    f"mapping: its item {item!r} needs to be one of the release's items.", argument="mapping"
                )
        # Numbers or dates of which some get names are names from then on.
        named = bool(mapping) and all(target is None or isinstance(target, str) for target in mapping.values())
        return [
            mapping[item]
            if item in mapping
            else None
            if other is not None or is_unlisted(item)
            else str(item)
            if named and not isinstance(item, tuple)
            else item
            for item in items
        ]
    if not callable(mapping):
        raise InvalidArgument(
            f"mapping={mapping!r}: needs to be a mapping or a function of an item.", argument="mapping"
        )
    return [None if is_unlisted(item) else mapping(item) for item in items]


def _columns(names: tuple[str, ...], items: list[Any], column: str | None) -> tuple[str, ...]:
    """The columns of the new items: checks that they are all of one form and type."""
    sizes = {len(item) if isinstance(item, tuple) else 1 for item in items}
    own = len(names)
    if len(sizes) > 1 or not sizes <= {1, own} or (column is not None and sizes == {own} != {1}):
        needed = "values" if own == 1 else f"values, or tuples of {own} values"
        raise InvalidArgument(
            f"mapping: all items need to become {needed}. What is not in it stays as it is, unless other names an item "
            "for the rest.",
            argument="mapping",
        )
    for values in zip(*(values_of(item) for item in items), strict=True):
        fault = fault_of_column(values)
        if fault is not None:
            raise InvalidArgument(f"mapping: all items need to become {fault}.", argument="mapping")
    if not sizes or (sizes == {1} and own > 1):
        return (column or "item",)
    return names if column is None else (column,)


def _plain(target: Any) -> Any:
    """A target as Python has it; numpy's scalars are not items."""
    if isinstance(target, Other):
        raise InvalidArgument(
            "mapping: an item cannot become an Other. Map it to None, and name it by other.", argument="mapping"
        )
    return target.item() if isinstance(target, np.generic) else target
