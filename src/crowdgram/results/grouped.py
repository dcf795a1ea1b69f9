"""One distribution for each group, out of one release over (group, item).

A user may be in many groups: all of their rows are bounded together, as one contribution to the joint distribution, so
the budget is spent once, however many groups there are. A group's distribution is the joint one, given the group.

With weight "rows" that is the share of the group's rows. With weight "users" each user's one unit of weight is spread
over the groups as their rows are, so that a user counts in a group by the share of their rows that is there.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from .groups import Grouped, part_of, places_of
from .marginals import conditional_at
from .merge import merge_within_groups
from .release import Release
from .values import ItemEstimate, Measure, Quantity, Value

if TYPE_CHECKING:
    import matplotlib.figure
    import pandas
    import polars
    import pyarrow


__all__ = ["GroupedRelease", "parts_of"]


@dataclass(frozen=True, repr=False)
class GroupedRelease(Grouped[Release]):
    """A release for each group, under one guarantee for all of them together.

        grouped["DE"].top(3)
        grouped.shares.estimate("DE")

    joint: the release over (group, item) that all of it is made of.
    """

    joint: Release

    @property
    def mechanism(self) -> str:
        """How the release was made."""
        return self.joint.mechanism

    @property
    def weight(self) -> str:
        """What is asked: "rows" or "users"."""
        return self.joint.weight

    @property
    def predicted_l1_error(self) -> float:
        """Of the shares of all pairs of a group and an item; a group's own is `grouped[group].predicted_l1_error`."""
        return self.joint.predicted_l1_error

    @property
    def missed(self) -> Quantity | None:
        """The share of all, over all groups together, that belongs to items which are not listed."""
        return self.joint.missed

    @property
    def users(self) -> Quantity | None:
        """How many users the table has, each once, in however many groups; None if that is unknown."""
        return self.joint.users

    @property
    def rows(self) -> Quantity | None:
        """How many rows of all groups count; None if that is unknown. A group's own are `grouped[group].rows`."""
        return self.joint.rows

    @cached_property
    def shares(self) -> Release:
        """How large each group is: the distribution over groups.

        If groups were found, its last item is an `Other`, for the rows of all groups that were not: they are part of
        the whole, and of no group.
        """
        return self.joint.marginal(self.by)

    def top(self, n: int = 10) -> dict[Value, list[ItemEstimate]]:
        """The n most probable items of each group, most probable first."""
        return {group: self[group].top(n) for group in self}

    def distances(self, kind: Literal["l1", "tv", "l2"] = "l1") -> dict[tuple[Value, Value], Quantity]:
        """How far each pair of groups is from each other, with intervals; the farthest pair first. Costs no privacy.

            grouped.distances()["DE", "FR"]
            grouped["DE"].differences(grouped["FR"])  # in which items

        In each pair the groups are in the order of `groups`. Pairs that surely differ come before those that may not,
        and those of which nothing is known come last.
        If items were found in the table, those that only one group of a pair has are part of its "other" there.
        """
        from ..inference.distances import distances

        return distances(self, kind)

    def entropy(self, *, base: float = 2.0) -> dict[Value, Quantity]:
        """The entropy of each group's distribution, with intervals; see `Release.entropy`. Costs no privacy."""
        return {group: self[group].entropy(base=base) for group in self}

    def merged(
        self,
        mapping: Mapping[Any, Any] | Callable[[Any], Any],
        *,
        other: str | None = None,
        column: str | None = None,
    ) -> GroupedRelease:
        """The same groups over items put together, as by `Release.merged`. Costs no privacy.

            grouped.merged({"apple": "fruit", "pear": "fruit"})

        What becomes None, or is left out if `other` is given, is part of each group's own "other".
        """
        return GroupedRelease(merge_within_groups(self.joint, mapping, other, column))

    def to_arrow(self, *, measure: Measure = "shares") -> pyarrow.Table:
        """A table with a row for each group and item: the group's share, then the item's probability in it.

        measure: "shares", or "counts": the count of all items of the group, then that of the item.
        """
        from ..export.tabular import to_arrow

        return to_arrow(self, measure)

    def to_pandas(self, *, measure: Measure = "shares") -> pandas.DataFrame:
        """A data frame with a row for each group and item."""
        from ..export.tabular import to_pandas

        return to_pandas(self, measure)

    def to_polars(self, *, measure: Measure = "shares") -> polars.DataFrame:
        """A data frame with a row for each group and item."""
        from ..export.tabular import to_polars

        return to_polars(self, measure)

    def to_csv(self, path: str | os.PathLike[str], *, measure: Measure = "shares", overwrite: bool = False) -> None:
        """Write the table of `to_arrow` as CSV, whole or not at all. overwrite: also over a file that is there."""
        from ..export import write_csv

        write_csv(self, path, measure, overwrite=overwrite)

    def to_parquet(self, path: str | os.PathLike[str], *, measure: Measure = "shares", overwrite: bool = False) -> None:
        """Write the table of `to_arrow` as Parquet, whole or not at all. overwrite: also over a file that is there."""
        from ..export import write_parquet

        write_parquet(self, path, measure, overwrite=overwrite)

    def to_html(
        self,
        path: str | os.PathLike[str],
        *,
        title: str | None = None,
        measure: Measure = "shares",
        overwrite: bool = False,
    ) -> None:
        """Write a page to read in a browser, whole or not at all: the groups, compared and one by one.

        It is one file that loads nothing. It draws the most probable items of the largest groups, and lists all groups
        and items to search and sort. overwrite: also over a file that is there.
        """
        from ..present.report import write_html

        write_html(self, path, title, measure, overwrite=overwrite)

    def plot(self, n: int = 10, *, groups: Sequence[Value] | None = None) -> matplotlib.figure.Figure:
        """Draw n items in every group, a panel for each group, all on one scale, with intervals.

        The items are those with the largest mean probability over the groups that are drawn. groups: which to draw;
        without it the 12 largest. Returns a figure, which a notebook shows and `savefig` writes.
        """
        from ..present.plots import plot_groups

        return plot_groups(self, n, groups)

    def _repr_html_(self) -> str:
        from ..present.notebook import groups_view

        return groups_view(self)

    def _part(self, group: Value) -> Release:
        places = np.array(self._places[group], dtype=np.int64)
        return conditional_at(self.joint, (), {self.by: group}, places)


def parts_of(grouped: GroupedRelease) -> list[tuple[Value, list[int], Release]]:
    """Each group, where its items are in the joint release, and its own release.

    Last are the rows of all groups that were not found, if there is an item for them.
    """
    return [(group, places, part_of(grouped, group)) for group, places in places_of(grouped).items()]
