"""What all results over items have in common: fields that are checked and compared, and items in their order."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, cast, overload

import numpy as np

from ..errors import InvalidArgument, UnknownItem
from ..privacy import Event, Guarantee, ThresholdEvent, to_dp_event
from .values import Item, is_other, same_values, texts_of, types_of, whole_days

if TYPE_CHECKING:
    import dp_accounting
    import matplotlib.axes
    import matplotlib.figure

__all__ = ["Result", "check_number"]


class Result:
    """A frozen value over items, of which the classes that are made of it are dataclasses."""

    items: tuple[Item, ...]
    guarantee: Guarantee
    events: tuple[Event, ...]
    item_columns: tuple[str, ...]

    _figures: ClassVar[tuple[str, ...]]
    """The columns of frames beside those of the items."""

    def __post_init__(self) -> None:
        for name, values in self._fields():
            if isinstance(values, np.ndarray):
                if len(values) != len(self.items):
                    raise InvalidArgument(
                        f"{name}: needs a value for each of {len(self.items)} items, not {len(values)}.", argument=name
                    )
                values.flags.writeable = False

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, type(self)):
            return NotImplemented
        pairs = zip(self._fields(), other._fields(), strict=True)
        same = all(same_values(mine, theirs) for (_, mine), (_, theirs) in pairs)
        return same and types_of(self.items) == types_of(other.items)

    __hash__ = None  # type: ignore[assignment]

    def __len__(self) -> int:
        return len(self.items)

    def __contains__(self, item: object) -> bool:
        """Whether an item is listed."""
        try:
            return item in self._places
        except TypeError:  # not hashable
            return False

    def __iter__(self) -> Iterator[Item]:
        """The items, in their order."""
        return iter(self.items)

    @property
    def heads(self) -> tuple[str, ...]:
        """The names of the item columns in tables and pictures. One that is called like a figure is "item" there."""
        one = self.item_columns[0]
        return ("item",) if len(self.item_columns) == 1 and one in self._figures else self.item_columns

    @property
    def other(self) -> Item | None:
        """The item that stands for all that are not listed, if there is one. With several columns, a tuple of `Other`.

        It is the last one. With groups, each group may have another such item of its own.
        """
        return self.items[-1] if self.items and is_other(self.items[-1]) else None

    @property
    def threshold_delta(self) -> float:
        """The part of delta that was for finding the items; 0 if the domain was public."""
        return math.fsum(event.delta for event in self.events if isinstance(event, ThresholdEvent))

    def texts(self, item: Item) -> tuple[str, ...]:
        """The values of an item in words. In a column in which all times are midnight, the days."""
        return texts_of(item, self._whole_days)

    def to_dp_event(self, *, without_thresholds: bool = False) -> dp_accounting.DpEvent:
        """The release as a dp_accounting event, to compose with other releases of the same users.

        The event's noise multipliers are for this release's adjacency; compose it with events of the same adjacency.
        "auto" and "adaptive" choose what to draw as they go, so compose their events by Renyi accounting against a
        budget fixed beforehand (dp_accounting's RdpAccountant), which holds for choices made on the way. Items that
        were found in the table cost `threshold_delta`, which dp_accounting cannot express: add it to the accountant's
        delta yourself, and say so by `without_thresholds`.
        """
        return to_dp_event(self.events, without_thresholds=without_thresholds)

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write it as JSON, whole or not at all. overwrite: also over a file that is there."""
        from ..export import save

        save(cast(Any, self), path, overwrite=overwrite)

    @overload
    def plot(
        self, n: int = 20, *, truth: Mapping[Any, float] | None = None, ax: None = None
    ) -> matplotlib.figure.Figure: ...
    @overload
    def plot(self, n: int = 20, *, truth: Mapping[Any, float] | None = None, ax: matplotlib.axes.Axes) -> None: ...
    def plot(
        self, n: int = 20, *, truth: Mapping[Any, float] | None = None, ax: matplotlib.axes.Axes | None = None
    ) -> matplotlib.figure.Figure | None:
        """Draw the n most common items with their intervals; `truth` adds public values to compare with.

        Returns a figure, which a notebook shows and `savefig` writes. With `ax`, it draws there and returns nothing.
        """
        from ..present.plots import plot

        return plot(cast(Any, self), n, truth, ax)

    def _fields(self) -> list[tuple[str, Any]]:
        return [(one.name, getattr(self, one.name)) for one in fields(cast(Any, self))]

    @cached_property
    def _places(self) -> dict[Item, int]:
        return {item: place for place, item in enumerate(self.items)}

    @cached_property
    def _whole_days(self) -> tuple[bool, ...]:
        return whole_days(self.items)

    def _place(self, item: Item) -> int:
        try:
            return self._places[item]
        except (KeyError, TypeError):
            raise UnknownItem(
                f"item={item!r}: needs to be one of the release's items.", argument="item", item=item
            ) from None


def check_number(n: object) -> None:
    """Refuse what is no number of items to show."""
    if isinstance(n, bool) or not isinstance(n, int) or n < 0:
        raise InvalidArgument(f"n={n!r}: needs to be a whole number of at least 0.", argument="n")
