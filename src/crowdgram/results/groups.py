"""What results by groups have in common: one joint result over (group, item), and a part of it for each group."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar, cast

from ..errors import InvalidArgument, UnknownItem
from ..privacy import Event, Guarantee
from .reach import Reach
from .release import Release
from .values import Other, Value

if TYPE_CHECKING:
    import dp_accounting

    from ..privacy import Ledger, LedgerHead

__all__ = ["Grouped", "part_of", "places_of"]

Part = TypeVar("Part", Release, Reach)

_SHOWN = 20


class Grouped(Mapping[Value, Part]):
    """A frozen value over groups, of which the classes that are made of it are dataclasses. joint: the result over
    (group, item) that all of it is made of.
    """

    joint: Part

    def __post_init__(self) -> None:
        if len(self.joint.item_columns) < 2:
            raise InvalidArgument(
                f"joint={self.joint!r}: needs at least two item columns, of which the first holds the groups.",
                argument="joint",
            )

    @abstractmethod
    def _part(self, group: Value) -> Part:
        """The result of one group."""

    @property
    def by(self) -> str:
        """The column of groups."""
        return self.joint.item_columns[0]

    @property
    def guarantee(self) -> Guarantee:
        """The promise for all groups together."""
        return self.joint.guarantee

    @property
    def ledger_head(self) -> LedgerHead | None:
        """Where the ledger stood when the release was charged; None without one."""
        return self.joint.ledger_head

    @property
    def events(self) -> tuple[Event, ...]:
        """Every draw of noise, for all groups together."""
        return self.joint.events

    @property
    def parameters(self) -> Mapping[str, Any]:
        """How it was made; public."""
        return self.joint.parameters

    @cached_property
    def groups(self) -> tuple[Value, ...]:
        """The groups, in the order in which they were given, or of their values if they were found."""
        return tuple(group for group in self._places if not isinstance(group, Other))

    @cached_property
    def too_little(self) -> tuple[Value, ...]:
        """The groups that are mostly noise; see `too_little` of a group's own result."""
        return tuple(group for group in self if self[group].too_little)

    def __getitem__(self, group: Value) -> Part:
        if group not in self:
            shown = ", ".join(repr(one) for one in self.groups[:_SHOWN]) or "none"
            more = f" and {len(self) - _SHOWN} more" if len(self) > _SHOWN else ""
            raise UnknownItem(
                f"group={group!r}: needs to be one of the release's groups, which are {shown}{more}.",
                argument="group",
                item=group,
            )
        return self._part_of(group)

    def __contains__(self, group: object) -> bool:
        return group in self._places and not isinstance(group, Other)

    def __iter__(self) -> Iterator[Value]:
        return iter(self.groups)

    def __len__(self) -> int:
        return len(self.groups)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} by {self.by!r}: {len(self)} groups of {self.joint!r}>"

    def to_dp_event(self, *, without_thresholds: bool = False) -> dp_accounting.DpEvent:
        """All groups together as one dp_accounting event; see `Release.to_dp_event`."""
        return self.joint.to_dp_event(without_thresholds=without_thresholds)

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write it as JSON, whole or not at all. overwrite: also over a file that is there."""
        from ..export import save

        save(cast(Any, self), path, overwrite=overwrite)

    def facts(self, *, ledger: Ledger | None = None) -> dict[str, Any]:
        """What a reviewer asks for, for all groups together, as plain values; see `Release.facts`."""
        from ..present.facts import facts

        return facts(cast(Any, self), ledger)

    def _part_of(self, group: Value) -> Part:
        if group not in self._parts:
            self._parts[group] = self._part(group)
        return self._parts[group]

    @cached_property
    def _parts(self) -> dict[Value, Part]:
        """Those that were asked for so far."""
        return {}

    @cached_property
    def _places(self) -> dict[Value, list[int]]:
        """Where in the joint result each group's items are: found once, not once for each group. Last are those of no
        group that was found.
        """
        pairs: Any = self.joint.items
        # If groups have an item of their own, those are in the order of the groups.
        found: dict[Value, list[int]] = {pair[0]: [] for pair in pairs if isinstance(pair[1], Other)}
        for place, pair in enumerate(pairs):
            found.setdefault(pair[0], []).append(place)
        return found


def places_of(grouped: Grouped[Part]) -> dict[Value, list[int]]:
    """Where in the joint result each group's items are; last, those of no group that was found."""
    return grouped._places


def part_of(grouped: Grouped[Part], group: Value) -> Part:
    """The result of a group, or of what is in no group that was found."""
    return grouped._part_of(group)
