"""Points of a series as CSV."""

from __future__ import annotations

import os
from collections.abc import Sequence

from ..results.series import SeriesPoint
from ..results.values import values_of
from .tabular import write_csv_table

__all__ = ["write_series_csv"]

_FIGURES = ("value", "lower", "upper", "change", "change_lower", "change_upper")


def write_series_csv(
    points: Sequence[SeriesPoint], heads: Sequence[str], path: str | os.PathLike[str], *, overwrite: bool = False
) -> None:
    """A row for each point: the item's columns, the label, and the figures; what is missing is empty."""
    import pyarrow as pa

    names = [[str(value) for value in values_of(one.item)] for one in points]
    texts = [*zip(*names, strict=True), [one.label for one in points]]
    figures = [[getattr(one, figure) for one in points] for figure in _FIGURES]
    columns = [
        *(pa.array(list(text), pa.string()) for text in texts),
        *(pa.array(one, pa.float64()) for one in figures),
    ]
    write_csv_table(pa.Table.from_arrays(columns, [*heads, "label", *_FIGURES]), path, overwrite=overwrite)
