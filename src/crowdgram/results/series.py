"""Releases of one question at several times, in their order: shares over time, with intervals. Costs no privacy."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..errors import InvalidArgument
from .release import Release
from .values import Item, Measure

if TYPE_CHECKING:
    import matplotlib.figure

__all__ = ["Series", "SeriesPoint"]


@dataclass(frozen=True)
class SeriesPoint:
    """One item at one time.

    value: its share, or its count, with an interval from `lower` to `upper`. change: the value minus that of the time
    before, with an interval of its own. All are None if the item is not listed at that time; those of the change
    also if it was not listed at the time before, and at the first.
    """

    item: Item
    label: str
    value: float | None
    lower: float | None
    upper: float | None
    change: float | None
    change_lower: float | None
    change_upper: float | None


class Series:
    """Releases of one question at several times.

        Series({"October": october, "November": november})
        Series([october, november])  # named by the periods of their ledger

    releases: a mapping of labels to releases, in the order of time; or a list of releases that were charged to periods.
    All need the same weight and confidence and items of the same types. If the lists of items differ, which is usual if
    they were found, all need an item for the others; an item has no value at a time at which it is not listed. Of
    releases by groups, give one group of each.
    """

    def __init__(self, releases: Mapping[str, Release] | Iterable[Release]) -> None:
        named = dict(releases) if isinstance(releases, Mapping) else _by_period(releases)
        self.labels: tuple[str, ...] = tuple(named)
        self.releases: tuple[Release, ...] = tuple(named.values())
        self._check()

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        return f"<Series of {len(self)} releases, {self.labels[0]!r} to {self.labels[-1]!r}>"

    def items(self, n: int = 6) -> list[Item]:
        """The n listed items with the largest mean share over all times, largest first."""
        from ..inference.over_time import largest_items

        return largest_items(self, n)

    def points(
        self, items: Sequence[Item] | None = None, *, n: int = 6, measure: Measure = "shares"
    ) -> list[SeriesPoint]:
        """Each item at each time, with its interval and its change since the time before. Costs no privacy.

        items: which; the n largest if they are not given. `pandas.DataFrame(series.points())` is a frame of them. Each
        interval holds at the level of the releases by itself: of many changes that are none, some will seem to be.
        """
        from ..inference.over_time import points

        return points(self, items, n, measure)

    def plot(
        self, items: Sequence[Item] | None = None, *, n: int = 6, measure: Measure = "shares"
    ) -> matplotlib.figure.Figure:
        """Draw items over time with their intervals as bands; the arguments are those of `points`."""
        from ..present.over_time import plot_series

        return plot_series(self, items, n, measure)

    def to_csv(
        self,
        path: str | os.PathLike[str],
        items: Sequence[Item] | None = None,
        *,
        n: int = 6,
        measure: Measure = "shares",
        overwrite: bool = False,
    ) -> None:
        """Write the points as CSV, whole or not at all. overwrite: also over a file that is there."""
        from ..export.series_table import write_series_csv

        write_series_csv(self.points(items, n=n, measure=measure), self.releases[0].heads, path, overwrite=overwrite)

    def to_html(
        self,
        path: str | os.PathLike[str],
        items: Sequence[Item] | None = None,
        *,
        n: int = 6,
        measure: Measure = "shares",
        title: str | None = None,
        overwrite: bool = False,
    ) -> None:
        """Write a page to read in a browser, whole or not at all: one file that loads nothing."""
        from ..present.series_page import write_series_html

        write_series_html(self, path, items, n, measure, title, overwrite=overwrite)

    def _check(self) -> None:
        from ..inference.over_time import check_series

        check_series(self)


def _by_period(releases: Iterable[Release]) -> dict[str, Release]:
    """Releases by the periods that they were charged to."""
    given = list(releases)
    periods = [getattr(one, "parameters", {}).get("period") for one in given]
    if not all(isinstance(one, str) for one in periods) or len(set(periods)) < len(periods):
        raise InvalidArgument(
            "releases: need a period each, and each another, to be named by it. Give labels: Series({'October': "
            "october, 'November': november}).",
            argument="releases",
        )
    return dict(zip(map(str, periods), given, strict=True))
