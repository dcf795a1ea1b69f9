"""Points of a series as CSV."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Sequence

from ..escaping import guarded_cell
from ..results.series import SeriesPoint
from ..results.values import values_of
from .writing import write_whole

__all__ = ["write_series_csv"]

_FIGURES = ("value", "lower", "upper", "change", "change_lower", "change_upper")


def write_series_csv(
    points: Sequence[SeriesPoint], heads: Sequence[str], path: str | os.PathLike[str], *, overwrite: bool = False
) -> None:
    """A row for each point: the item's columns, the label, and the figures; what is missing is empty.

    What a spreadsheet would take for a formula has a quote before it, as in `write_csv`.
    """
    target = io.StringIO()
    lines = csv.writer(target, lineterminator="\n")
    lines.writerow([*map(guarded_cell, heads), "label", *_FIGURES])
    for one in points:
        names = [guarded_cell(str(value)) for value in (*values_of(one.item), one.label)]
        lines.writerow([*names, *(getattr(one, figure) for figure in _FIGURES)])
    write_whole(path, target.getvalue(), overwrite=overwrite)
