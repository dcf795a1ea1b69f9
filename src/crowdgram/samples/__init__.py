"""A public table of real people, to learn with: diaries of the American Time Use Survey.

It comes with the package, so that examples need no network. `README.md` beside it has its source and licence.

    >>> Diaries().table().column_names
    ['person', 'activity', 'quarter_hours']
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet

from ..synth import write_table

__all__ = ["Diaries"]

_FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Diaries:
    """One day each of 10,000 people: which activities, and for how many quarters of an hour.

    Columns `person`, `activity` and `quarter_hours`. Its figures may be shown, because the survey is public.
    Source: American Time Use Survey 2003-2016, U.S. Bureau of Labor Statistics; in the public domain.
    """

    PEOPLE = 10_000

    def table(self) -> pa.Table:
        """The whole table in memory."""
        return pyarrow.parquet.read_table(_FOLDER / "diaries.parquet")

    def activities(self) -> list[str]:
        """The public list of activities, which is the survey's and not the table's: one of it occurs in no diary."""
        return (_FOLDER / "activities.txt").read_text(encoding="utf-8").splitlines()

    def average_day(self) -> dict[str, float]:
        """The exact answer, without privacy: the average person's share of each activity, in the order of the list."""
        table = self.table()
        people = table.group_by("person").aggregate([("quarter_hours", "sum")])
        hours = dict(zip(people["person"].to_pylist(), people["quarter_hours_sum"].to_pylist(), strict=True))
        shares = dict.fromkeys(self.activities(), 0.0)
        for person, activity, quarters in zip(*table.to_pydict().values(), strict=True):
            shares[activity] += quarters / hours[person]
        return {activity: share / len(hours) for activity, share in shares.items()}

    def write(
        self,
        path: str | os.PathLike[str],
        domain: str | os.PathLike[str] | None = None,
        *,
        overwrite: bool = False,
    ) -> int:
        """Write the table, as Parquet or CSV by its suffix, and return its number of rows.

        domain: if given, a text file with one activity a line. overwrite: whether files that are there are replaced;
        it is an error otherwise.
        """
        return write_table(self.table(), path, self.activities(), domain, overwrite=overwrite)
