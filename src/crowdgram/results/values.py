"""The small values that a release is made of: items, estimates, quantities."""

from __future__ import annotations

import datetime
import math
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np

from ..arrays import Floats
from ..errors import InvalidArgument, UnknownItem

__all__ = [
    "Difference",
    "Item",
    "ItemCount",
    "ItemCounts",
    "ItemEstimate",
    "Measure",
    "Other",
    "Quantity",
    "Value",
    "check_measure",
    "columns_of",
    "fault_of_column",
    "is_other",
    "is_unlisted",
    "label",
    "same_values",
    "texts_of",
    "types_of",
    "unlisted",
    "values_of",
    "whole_days",
]


@dataclass(frozen=True)
class Other:
    """The one item that stands for all items that are not listed.

    Not a string, so that no item of the table can be taken for it: `Other("other") != "other"`. Its name is unlike
    that of every listed item. With several item columns it stands in each of them, or in all but that of the groups.
    """

    name: str

    def __str__(self) -> str:
        return self.name

    @classmethod
    def apart_from(cls, items: Iterable[object], name: str) -> Other:
        """An item of this name, with a star or more to it if a listed item, or a value of one, is called so."""
        taken = set()
        for item in items:
            taken |= {label(item), *map(str, values_of(item))}
        while name in taken:
            name += "*"
        return cls(name)


Value = int | str | bool | datetime.date | datetime.datetime | uuid.UUID | Other
Measure = Literal["shares", "counts"]
"""What is shown of an item: its share, or how often it is in the table."""
Item = Value | tuple[Value, ...]
"""A value of the item column; a tuple of values if there are several columns."""


@dataclass(frozen=True)
class ItemEstimate:
    """One item of a release."""

    item: Item
    probability: float
    standard_error: float
    lower: float
    upper: float


@dataclass(frozen=True)
class Quantity:
    """A number computed from a release, such as its entropy, for the answer without noise.

    value: what it is likely to be; not what the noisy probabilities give as they stand, which is biased; nan if it
    could be anything. lower, upper: an interval at level `confidence`, which covers the table's own answer. If much
    is lost in noise it is far wider than chance alone would make it: it holds all that the lost items may be.
    """

    value: float
    lower: float
    upper: float
    confidence: float

    def __float__(self) -> float:
        return self.value

    @property
    def is_known(self) -> bool:
        """Whether there is anything to say: if not, the value is nan, and the interval all that is possible."""
        return not math.isnan(self.value)


@dataclass(frozen=True)
class Difference:
    """One item of two releases: its probability in the first and in the second, and first minus second, with errors."""

    item: Item
    first: float
    second: float
    difference: float
    standard_error: float
    lower: float
    upper: float


@dataclass(frozen=True)
class ItemCount:
    """How often one item is in the table."""

    item: Item
    count: float
    standard_error: float
    lower: float
    upper: float


@dataclass(frozen=True, eq=False)
class ItemCounts:
    """How often each item is in the table: its share times the total, with errors that allow for both together.

    items: in the order of the release. of: "rows", or "users", each of whom is divided over their items as their rows
    are. row_bound: rows of one user that count at most; None if all do. total: of all items. lower, upper: intervals at
    level `confidence`, for the counts of the table itself; each by itself, or all at once if that was asked for.
    """

    items: tuple[Item, ...]
    counts: Floats
    standard_errors: Floats
    lower: Floats
    upper: Floats
    confidence: float
    of: str
    row_bound: int | None
    total: Quantity

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[ItemCount]:
        """The items with their counts, in their order."""
        return (self._at(place) for place in range(len(self)))

    def top(self, n: int = 10) -> list[ItemCount]:
        """The n items with the largest counts, largest first."""
        if isinstance(n, bool) or not isinstance(n, int) or n < 0:
            raise InvalidArgument(f"n={n!r}: needs to be a whole number of at least 0.", argument="n")
        return [self._at(int(place)) for place in np.argsort(-self.counts, kind="stable")[:n]]

    def estimate(self, item: Item) -> ItemCount:
        """One item with its count."""
        if item not in self._places:
            raise UnknownItem(f"item={item!r}: needs to be one of the release's items.", item=item, argument="item")
        return self._at(self._places[item])

    @property
    def about(self) -> str:
        """What is counted, in a sentence."""
        if self.of == "users":
            return (
                "Counts are of users, each of whom is divided over their items as their rows are: an item's count is "
                "not the number of users who have it."
            )
        if self.row_bound is None:
            return "Counts are of all rows, by estimate; users too few to be seen may hold more."
        rows = "row" if self.row_bound == 1 else "rows"
        return (
            f"Counts are of rows, of which each user has at most {self.row_bound:,} {rows}: users with more are scaled "
            "down to that."
        )

    @cached_property
    def _places(self) -> dict[Item, int]:
        return {item: place for place, item in enumerate(self.items)}

    def _at(self, place: int) -> ItemCount:
        arrays = (self.counts, self.standard_errors, self.lower, self.upper)
        return ItemCount(self.items[place], *(float(values[place]) for values in arrays))


def check_measure(measure: object) -> None:
    """Refuse what is no `Measure`."""
    if measure not in get_args(Measure):
        raise InvalidArgument(f"measure={measure!r}: needs to be 'shares' or 'counts'.", argument="measure")


def values_of(item: Any) -> tuple[Any, ...]:
    """The values of an item, one for each item column."""
    return item if isinstance(item, tuple) else (item,)


def columns_of(items: Sequence[Item]) -> list[Sequence[Any]]:
    """The values of each item column."""
    return list(zip(*items, strict=True)) if any(isinstance(item, tuple) for item in items[:1]) else [items]


def is_other(item: Item) -> bool:
    """Whether an item stands for all that are not listed."""
    return all(isinstance(value, Other) for value in values_of(item))


def is_unlisted(item: Item) -> bool:
    """Whether an item stands for all that are not listed, of the whole or of a group."""
    return any(isinstance(value, Other) for value in values_of(item))


def unlisted(items: Sequence[Item]) -> list[bool]:
    """`is_unlisted` of each. By the types of all first: there may be a million, and seldom one of them is."""
    if not any(Other in set(map(type, column)) for column in columns_of(items)):
        return [False] * len(items)
    return [is_unlisted(item) for item in items]


def label(item: object) -> str:
    """An item in words."""
    values = values_of(item)
    return str(values[0]) if all(isinstance(value, Other) for value in values) else ", ".join(map(str, values))


_TYPES = (bool, int, str, datetime.datetime, datetime.date, uuid.UUID)


def fault_of_column(values: Iterable[Any]) -> str | None:
    """What the values of one item column need to be and are not, in words; None if they are of one type, as a column of
    a table is. `Other` may be among them.
    """
    listed = [value for value in values if not isinstance(value, Other)]
    kinds = set(map(type, listed))
    if len(kinds) > 1 or not kinds <= set(_TYPES):
        found = ", ".join(sorted(kind.__name__ for kind in kinds))
        return (
            f"values of one type, but there are {found}. Items are integers, strings, booleans, dates, timestamps or "
            "UUIDs"
        )
    if kinds == {int} and (min(listed) < -(2**63) or max(listed) >= 2 ** (63 if min(listed) < 0 else 64)):
        return "integers of 64 bits, all with a sign or all without"
    if kinds == {datetime.datetime} and any(value.tzinfo is not None for value in listed):
        return "timestamps without a time zone, in UTC"
    try:
        "".join(listed if kinds == {str} else []).encode()
    except UnicodeEncodeError:
        return "text without lone surrogates"
    return None


def whole_days(items: Sequence[Item]) -> tuple[bool, ...]:
    """In which columns every time is midnight: those of date_trunc."""
    return tuple(
        # By the types first: there may be a million items.
        datetime.datetime not in set(map(type, column))
        or all(value.time() == datetime.time() for value in column if isinstance(value, datetime.datetime))
        for column in columns_of(items)
    )


def texts_of(item: Item, days: Iterable[bool]) -> tuple[str, ...]:
    """The values of an item in words. In a column of whole days, the days."""
    return tuple(
        str(value.date() if whole and isinstance(value, datetime.datetime) else value)
        for value, whole in zip(values_of(item), days, strict=True)
    )


def same_values(mine: Any, theirs: Any) -> bool:
    """Whether two fields of results are equal: arrays, or anything else."""
    if isinstance(mine, np.ndarray) or isinstance(theirs, np.ndarray):
        return np.array_equal(mine, theirs)
    return bool(mine == theirs)


def types_of(items: Iterable[Item]) -> list[list[type]]:
    """The types of all values of items: True and 1 are equal, but not the same item."""
    return [[type(value) for value in values_of(item)] for item in items]
