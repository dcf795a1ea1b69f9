"""Reach by groups: how many users have each item in each group, and how many users each group has.

A user who is in many groups counts in each of them. All of it is one release over pairs of a group and an item, with
one guarantee. Users overlap, so neither items nor groups sum to the number of users.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InvalidArgument, UnknownItem
from ..privacy import Event, Guarantee
from .reach import Reach, ReachedItem
from .values import Other, Quantity, Value

if TYPE_CHECKING:
    import dp_accounting
    import pandas
    import polars
    import pyarrow

    from ..privacy import Ledger, LedgerHead

__all__ = ["GroupedReach"]

_SHOWN = 20


@dataclass(frozen=True)
class GroupedReach(Mapping[Value, Reach]):
    """A reach for each group, under one guarantee for all of them together.

        grouped["DE"].top(3)
        grouped["DE"].users

    joint: the reach over (group, item) that all of it is made of. group_users: how many users each group has, in the
    order of `groups`.
    """

    joint: Reach
    group_users: tuple[Quantity, ...]

    def __post_init__(self) -> None:
        if len(self.joint.item_columns) < 2:
            raise InvalidArgument(
                f"joint={self.joint!r}: needs at least two item columns, of which the first holds the groups.",
                argument="joint",
            )
        if self.joint.predicted_errors is None or len(self.group_users) != len(self.groups):
            raise InvalidArgument(
                f"group_users: needs a number of users for each of {len(self.groups)} groups, not "
                f"{len(self.group_users)}, and joint needs predicted_errors.",
                argument="group_users",
            )

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

    @property
    def parameters(self) -> Mapping[str, Any]:
        """How it was made; public."""
        return self.joint.parameters

    @property
    def ledger_head(self) -> LedgerHead | None:
        """Where the ledger stood when it was charged; None without one."""
        return self.joint.ledger_head

    @property
    def predicted_l1_error(self) -> float:
        """Of the counts of all pairs of a group and an item; a group's own is `grouped[group].predicted_l1_error`."""
        return self.joint.predicted_l1_error

    @property
    def users(self) -> Quantity:
        """How many users the table has, each once, in however many groups."""
        return self.joint.users

    @property
    def left_out(self) -> Quantity | None:
        """How many users the bound on one user's pairs takes off a pair that all users have; see `Reach`."""
        return self.joint.left_out

    @cached_property
    def groups(self) -> tuple[Value, ...]:
        """The groups, in the order in which they were given, or of their values if they were found."""
        return tuple(group for group in self._places if not isinstance(group, Other))

    @cached_property
    def too_little(self) -> tuple[Value, ...]:
        """The groups that are mostly noise; see `Reach.too_little`."""
        return tuple(group for group in self if self[group].too_little)

    def __getitem__(self, group: Value) -> Reach:
        if group not in self:
            shown = ", ".join(repr(one) for one in self.groups[:_SHOWN]) or "none"
            more = f" and {len(self) - _SHOWN} more" if len(self) > _SHOWN else ""
            raise UnknownItem(
                f"group={group!r}: needs to be one of the release's groups, which are {shown}{more}.",
                argument="group",
                item=group,
            )
        if group not in self._parts:
            self._parts[group] = self._part(group)
        return self._parts[group]

    def __contains__(self, group: object) -> bool:
        return group in self._places and not isinstance(group, Other)

    def __iter__(self) -> Iterator[Value]:
        return iter(self.groups)

    def __len__(self) -> int:
        return len(self.groups)

    def __repr__(self) -> str:
        return f"<GroupedReach by {self.by!r}: {len(self)} groups of {self.joint!r}>"

    def top(self, n: int = 10) -> dict[Value, list[ReachedItem]]:
        """Of each group, the n items that most of its users have."""
        return {group: self[group].top(n) for group in self}

    def to_arrow(self) -> pyarrow.Table:
        """A table with a row for each group and item: the group, its number of users, then the item as in `Reach`."""
        from ..export.tabular import to_arrow

        return to_arrow(self)

    def to_pandas(self) -> pandas.DataFrame:
        """A data frame with a row for each group and item."""
        from ..export.tabular import to_pandas

        return to_pandas(self)

    def to_polars(self) -> polars.DataFrame:
        """A data frame with a row for each group and item."""
        from ..export.tabular import to_polars

        return to_polars(self)

    def to_dp_event(self, *, without_thresholds: bool = False) -> dp_accounting.DpEvent:
        """All groups together as one dp_accounting event; see `Release.to_dp_event`."""
        return self.joint.to_dp_event(without_thresholds=without_thresholds)

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write it as JSON, whole or not at all. overwrite: also over a file that is there."""
        from ..export import save

        save(self, path, overwrite=overwrite)

    def to_csv(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the table of `to_arrow` as CSV, whole or not at all. overwrite: also over a file that is there."""
        from ..export import write_csv

        write_csv(self, path, overwrite=overwrite)

    def to_parquet(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the table of `to_arrow` as Parquet, whole or not at all. overwrite: also over a file that is there."""
        from ..export import write_parquet

        write_parquet(self, path, overwrite=overwrite)

    def to_html(self, path: str | os.PathLike[str], *, title: str | None = None, overwrite: bool = False) -> None:
        """Write a page to read in a browser, whole or not at all: one file that loads nothing.

        overwrite: also over a file that is there.
        """
        from ..present.report import write_html

        write_html(self, path, title, overwrite=overwrite)

    def facts(self, *, ledger: Ledger | None = None) -> dict[str, Any]:
        """What a reviewer asks for, for all groups together, as plain values; see `Release.facts`."""
        from ..present.facts import facts

        return facts(self, ledger)

    def _repr_html_(self) -> str:
        from ..present.reach import groups_view

        return groups_view(self)

    @cached_property
    def places(self) -> dict[Value, tuple[int, ...]]:
        """Where in the joint reach each group's items are; last, those of no group that was found."""
        return {group: tuple(found) for group, found in self._places.items()}

    @cached_property
    def _parts(self) -> dict[Value, Reach]:
        """Those that were asked for so far."""
        return {}

    @cached_property
    def _places(self) -> dict[Value, list[int]]:
        pairs: Any = self.joint.items
        # If groups have an item of their own, those are in the order of the groups.
        found: dict[Value, list[int]] = {pair[0]: [] for pair in pairs if isinstance(pair[1], Other)}
        for place, pair in enumerate(pairs):
            found.setdefault(pair[0], []).append(place)
        return found

    def _part(self, group: Value) -> Reach:
        joint, places = self.joint, np.array(self._places[group], dtype=np.int64)
        pairs: Any = [joint.items[place] for place in places]
        assert joint.predicted_errors is not None
        errors, users = joint.predicted_errors[places], self.group_users[self.groups.index(group)]
        return replace(
            joint,
            items=tuple(pair[1] if len(pair) == 2 else pair[1:] for pair in pairs),
            item_columns=joint.item_columns[1:],
            **{name: getattr(joint, name)[places] for name in ("counts", "standard_errors", "lower", "upper")},
            users=users,
            predicted_errors=errors,
            predicted_l1_error=float(errors.sum()),
        )
