"""Reach by groups: how many users have each item in each group, and how many users each group has.

A user who is in many groups counts in each of them. All of it is one release over pairs of a group and an item, with
one guarantee. Users overlap, so neither items nor groups sum to the number of users.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InvalidArgument
from .groups import Grouped
from .reach import Reach, ReachedItem, ReachOutput
from .values import Quantity, Value

if TYPE_CHECKING:
    import matplotlib.figure

__all__ = ["GroupedReach"]


@dataclass(frozen=True, repr=False)
class GroupedReach(ReachOutput, Grouped[Reach]):
    """A reach for each group, under one guarantee for all of them together.

        grouped["DE"].top(3)
        grouped["DE"].users

    joint: the reach over (group, item) that all of it is made of. group_users: how many users each group has, in the
    order of `groups`.
    """

    joint: Reach
    group_users: tuple[Quantity, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.joint.predicted_errors is None or len(self.group_users) != len(self.groups):
            raise InvalidArgument(
                f"group_users: needs a number of users for each of {len(self.groups)} groups, not "
                f"{len(self.group_users)}, and joint needs predicted_errors.",
                argument="group_users",
            )

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

    def top(self, n: int = 10) -> dict[Value, list[ReachedItem]]:
        """Of each group, the n items that most of its users have."""
        return {group: self[group].top(n) for group in self}

    def plot(self, n: int = 10, *, groups: Sequence[Value] | None = None) -> matplotlib.figure.Figure:
        """Draw the users of n items in every group, a panel for each group, all on one scale, with intervals.

        The items are those that most users have in the groups that are drawn. groups: which to draw; without it the 12
        with most users. Returns a figure, which a notebook shows and `savefig` writes.
        """
        from ..present.plots import plot_groups

        return plot_groups(self, n, groups)

    def _repr_html_(self) -> str:
        from ..present.reach import groups_view

        return groups_view(self)

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
