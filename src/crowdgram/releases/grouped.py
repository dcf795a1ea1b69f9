"""One distribution for each group, out of one release over (group, item).

A user may be in many groups: all of their rows are bounded together, as one contribution to the joint distribution, so
the budget is spent once, however many groups there are. A group's distribution is the joint one, given the group.

With weight "rows" that is the share of the group's rows. With weight "users" each user's one unit of weight is spread
over the groups as their rows are, so that a user counts in a group by the share of their rows that is there.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InvalidArgument
from ..privacy import Event, Guarantee
from .parts import within
from .release import Release, Value, optional_library, plain

if TYPE_CHECKING:
    import dp_accounting
    import pandas
    import polars
    import pyarrow

__all__ = ["GroupedRelease"]


@dataclass(frozen=True)
class GroupedRelease(Mapping[Value, Release]):
    """A release for each group, under one guarantee for all of them together.

        grouped["DE"].top(3)
        grouped.shares.estimate("DE")

    joint: the release over (group, item) that all of it is made of.
    """

    joint: Release

    def __post_init__(self) -> None:
        if len(self.joint.item_columns) < 2:
            raise InvalidArgument("a grouped release needs a column of groups and at least one of items.")

    @property
    def by(self) -> str:
        """The column of groups."""
        return self.joint.item_columns[0]

    @property
    def guarantee(self) -> Guarantee:
        """The promise for all groups together."""
        return self.joint.guarantee

    @property
    def events(self) -> tuple[Event, ...]:
        """Every draw of noise, for all groups together."""
        return self.joint.events

    @cached_property
    def groups(self) -> tuple[Value, ...]:
        """The groups, in the order in which they were given."""
        return tuple(self._places)

    @cached_property
    def shares(self) -> Release:
        """How large each group is: the distribution over groups."""
        return self.joint.marginal(self.by)

    def __getitem__(self, group: Value) -> Release:
        if group not in self._made:
            if group not in self._places:
                raise KeyError(group)
            self._made[group] = within(self.joint, (), {self.by: group}, np.array(self._places[group], dtype=np.int64))
        return self._made[group]

    def __iter__(self) -> Iterator[Value]:
        return iter(self.groups)

    def __len__(self) -> int:
        return len(self.groups)

    def __repr__(self) -> str:
        return f"<GroupedRelease by {self.by!r}: {len(self)} groups of {self.joint!r}>"

    def to_arrow(self) -> pyarrow.Table:
        """A table with a row for each group and item: the group's share, then the item's probability in it."""
        import pyarrow as pa

        return pa.table(self._columns())

    def to_pandas(self) -> pandas.DataFrame:
        """A data frame with a row for each group and item."""
        frame: pandas.DataFrame = optional_library("pandas").DataFrame(self._columns())
        return frame

    def to_polars(self) -> polars.DataFrame:
        """A data frame with a row for each group and item."""
        frame: polars.DataFrame = optional_library("polars").DataFrame(self._columns())
        return frame

    def to_dp_event(self) -> dp_accounting.DpEvent:
        """All groups together as one dp_accounting event; see `Release.to_dp_event`."""
        return self.joint.to_dp_event()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the release as JSON, whole or not at all."""
        from .files import save

        save(self, path)

    @cached_property
    def _made(self) -> dict[Value, Release]:
        return {}

    @cached_property
    def _places(self) -> dict[Value, list[int]]:
        """Where in the joint release each group's items are: found once, not once for each group."""
        found: dict[Value, list[int]] = {}
        for place, item in enumerate(self.joint.items):
            found.setdefault(item[0], []).append(place)  # type: ignore[index]
        return found

    def _columns(self) -> dict[str, Any]:
        columns: dict[str, list[Any]] = {}
        for group, share in zip(self.groups, self.shares.probabilities.tolist(), strict=True):
            own = self[group]
            part = {self.by: [plain(group)] * len(own), "share": [share] * len(own), **own.columns(named=True)}
            for name, values in part.items():
                columns.setdefault(name, []).extend(values)
        return columns
