"""The small values that a release is made of: items, estimates, quantities."""

from __future__ import annotations

import datetime
import math
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

__all__ = [
    "Difference",
    "Item",
    "ItemEstimate",
    "Other",
    "Quantity",
    "Value",
    "is_other",
    "is_unlisted",
    "label",
    "values_of",
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


def values_of(item: Any) -> tuple[Any, ...]:
    """The values of an item, one for each item column."""
    return item if isinstance(item, tuple) else (item,)


def is_other(item: Item) -> bool:
    """Whether an item stands for all that are not listed."""
    return all(isinstance(value, Other) for value in values_of(item))


def is_unlisted(item: Item) -> bool:
    """Whether an item stands for all that are not listed, of the whole or of a group."""
    return any(isinstance(value, Other) for value in values_of(item))


def label(item: object) -> str:
    """An item in words."""
    values = values_of(item)
    return str(values[0]) if all(isinstance(value, Other) for value in values) else ", ".join(map(str, values))
