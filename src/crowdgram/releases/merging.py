"""Items put together by a mapping: pages into sections, words into stems, products into kinds. No privacy is spent."""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InvalidArgument
from .parts import summed
from .release import Item, Other

if TYPE_CHECKING:
    from .release import Release

__all__ = ["merged"]

_TYPES = (bool, int, str, datetime.datetime, datetime.date, uuid.UUID)


def merged(
    release: Release, mapping: Mapping[Any, Any] | Callable[[Any], Any], other: str | None, column: str | None
) -> Release:
    """The release over what `mapping` makes of its items; its errors are those of sums."""
    if other is not None and (not isinstance(other, str) or not other.strip()):
        raise InvalidArgument(f"other={other!r}: needs to be a name for the item that stands for all others, or None.")
    if column is not None and (not isinstance(column, str) or not column):
        raise InvalidArgument(f"column={column!r}: needs to be a name, or None.")
    mapped: list[Any] = [_Rest if target is None else _plain(target) for target in _targets(release, mapping, other)]
    listed = list(dict.fromkeys(target for target in mapped if target is not _Rest))
    columns = _columns(release, listed, column)
    items: tuple[Item, ...] = tuple(listed)
    if len(listed) < len(set(mapped)):
        name = other or next((str(value) for value in _values(release.items[-1]) if isinstance(value, Other)), None)
        if name is None:
            raise InvalidArgument(
                "mapping gives no item for some items of the release. Name one for them, as in other='other'."
            )
        rest = Other.apart_from(listed, name)
        items = (*listed, rest if len(columns) == 1 else (rest,) * len(columns))
    place: dict[Any, int] = {target: number for number, target in enumerate(listed)}
    codes = np.array([place.get(target, len(listed)) for target in mapped], dtype=np.int64)
    return summed(release, items, codes, columns, {"merged": len(items)})


class _Rest:
    """Stands for the other item until it has a name."""


def _targets(release: Release, mapping: Any, other: str | None) -> list[Any]:
    """What each item becomes; None for the other item."""
    if isinstance(mapping, Mapping):
        known = set(release.items)
        for item in mapping:
            if item not in known:
                raise InvalidArgument(f"mapping has the item {item!r}, which is not in the domain of this release.")
        return [
            mapping[item] if item in mapping else None if other is not None or _is_other(item) else item
            for item in release.items
        ]
    if not callable(mapping):
        raise InvalidArgument(f"mapping={mapping!r}: needs to be a mapping or a function of an item.")
    return [None if _is_other(item) else mapping(item) for item in release.items]


def _columns(release: Release, items: list[Any], column: str | None) -> tuple[str, ...]:
    """The columns of the new items: checks that they are all of one form and type."""
    sizes = {len(item) if isinstance(item, tuple) else 1 for item in items}
    own = len(release.item_columns)
    if len(sizes) > 1 or not sizes <= {1, own} or (column is not None and sizes == {own} != {1}):
        needed = "values" if own == 1 else f"values, or tuples of {own} values"
        raise InvalidArgument(
            f"mapping: all items need to become {needed}. What is not in it stays as it is, unless other names an item "
            "for the rest."
        )
    for values in zip(*(_values(item) for item in items), strict=True):
        kinds = {type(value) for value in values}
        if len(kinds) > 1 or not kinds <= set(_TYPES):
            found = ", ".join(sorted(kind.__name__ for kind in kinds))
            raise InvalidArgument(
                f"mapping: all items need to become values of one type, but there are {found}. Items are integers, "
                "strings, booleans, dates, timestamps or UUIDs."
            )
    if not sizes or (sizes == {1} and own > 1):
        return (column or "item",)
    return release.item_columns if column is None else (column,)


def _plain(target: Any) -> Any:
    """A target as Python has it; numpy's scalars are not items."""
    if isinstance(target, Other):
        raise InvalidArgument("mapping: an item cannot become an Other. Map it to None, and name it by other.")
    return target.item() if isinstance(target, np.generic) else target


def _is_other(item: Any) -> bool:
    return any(isinstance(value, Other) for value in _values(item))


def _values(item: Any) -> tuple[Any, ...]:
    return item if isinstance(item, tuple) else (item,)
