"""Results as tables, a row for each item (of each group): Arrow, pandas and polars frames, CSV and Parquet files."""

from __future__ import annotations

import importlib
import io
import json
import os
import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import MissingDependency
from ..escaping import guarded_cell
from ..results.grouped import GroupedRelease, parts_of
from ..results.release import Release
from ..results.values import Other, Value, is_unlisted, values_of
from .writing import write_whole

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

__all__ = ["columns", "to_arrow", "to_pandas", "to_polars", "write_csv", "write_parquet"]

_FIGURES = ("probability", "standard_error", "lower", "upper")


def to_arrow(release: Release | GroupedRelease) -> pyarrow.Table:
    """An Arrow table."""
    import pyarrow as pa

    return pa.table(columns(release))


def to_pandas(release: Release | GroupedRelease) -> pandas.DataFrame:
    """A pandas frame, in which integers and booleans stay what they are if one is missing."""
    library = _library("pandas")
    kept = columns(release)
    for name, values in kept.items():
        if not isinstance(values, list) or None not in values:
            continue
        present = {type(value) for value in values} - {type(None)}
        if present == {bool}:
            kept[name] = library.array(values, dtype="boolean")
        elif present == {int}:
            largest = max(value for value in values if value is not None)
            kept[name] = library.array(values, dtype="Int64" if largest < 2**63 else "UInt64")
    frame: pandas.DataFrame = library.DataFrame(kept)
    return frame


def to_polars(release: Release | GroupedRelease) -> polars.DataFrame:
    """A polars frame."""
    frame: polars.DataFrame = _library("polars").DataFrame(columns(release))
    return frame


def write_csv(release: Release | GroupedRelease, path: str | os.PathLike[str]) -> None:
    """Write the distribution as CSV, whole or not at all.

    A spreadsheet takes some texts for formulas: those have a quote before them (`guarded_cell`). JSON and frames hold
    names exactly.
    """
    import pyarrow as pa
    from pyarrow import csv

    table = to_arrow(release)
    for place, field in enumerate(table.schema):
        if pa.types.is_string(field.type):
            texts = table.column(place).to_pylist()
            cells = [None if text is None else guarded_cell(text) for text in texts]
            table = table.set_column(place, field.name, pa.array(cells, pa.string()))
    table = table.rename_columns([guarded_cell(name) for name in table.column_names])
    target = io.BytesIO()
    csv.write_csv(table, target)
    write_whole(path, target.getvalue())


def write_parquet(release: Release | GroupedRelease, path: str | os.PathLike[str]) -> None:
    """Write the distribution as Parquet, whole or not at all.

    The guarantee goes with it, in words and as numbers, in the metadata of the file.
    """
    from pyarrow import parquet

    joint = release.joint if isinstance(release, GroupedRelease) else release
    about = {
        "crowdgram.guarantee": json.dumps(joint.guarantee.to_dict()),
        "crowdgram.sentence": joint.guarantee.sentence(),
        "crowdgram.weight": joint.weight,
        "crowdgram.confidence": repr(joint.confidence),
    }
    target = io.BytesIO()
    parquet.write_table(to_arrow(release).replace_schema_metadata(about), target)
    write_whole(path, target.getvalue())


def columns(release: Release | GroupedRelease) -> dict[str, Any]:
    """The columns of a frame by name: item columns, then figures. By groups, the group and its share come first.

    In a column of strings the other item has its name; elsewhere it is missing. `is_other`, which is there only if
    there are such items, says which they are.
    """
    return _columns_by_group(release) if isinstance(release, GroupedRelease) else _columns(release)


def _columns(release: Release) -> dict[str, Any]:
    rows = [values_of(item) for item in release.items]
    others = np.array([is_unlisted(item) for item in release.items])
    return {
        **{name: _column(values) for name, values in zip(release.heads, zip(*rows, strict=True), strict=True)},
        "probability": np.array(release.probabilities),
        "standard_error": np.array(release.standard_errors),
        "lower": np.array(release.lower),
        "upper": np.array(release.upper),
        **({"is_other": others} if others.any() else {}),
    }


def _columns_by_group(grouped: GroupedRelease) -> dict[str, Any]:
    """A row for each item of the joint release, by group; the rows of all groups that were not found come last."""
    joint, parts = _columns(grouped.joint), parts_of(grouped)
    order = [place for _, places, _ in parts for place in places]
    figures = [_columns(own) for _, _, own in parts]
    shares = [[grouped.shares.probability(group)] * len(places) for group, places, _ in parts]
    by, *items = ([joint[name][place] for place in order] for name in grouped.joint.item_columns)
    return {
        grouped.by: by,
        "share": [share for own in shares for share in own],
        **dict(zip(grouped.joint.item_columns[1:], items, strict=True)),
        **{name: [value for own in figures for value in own[name].tolist()] for name in _FIGURES},
        **({"is_other": [bool(joint["is_other"][place]) for place in order]} if "is_other" in joint else {}),
    }


def _column(values: Sequence[Value]) -> list[Any]:
    """Values as frames take them: UUIDs are text."""
    texts = all(isinstance(value, (str, Other)) for value in values)
    return [
        (value.name if texts else None)
        if isinstance(value, Other)
        else str(value)
        if isinstance(value, uuid.UUID)
        else value
        for value in values
    ]


def _library(name: str) -> Any:
    """A library that Crowdgram can do without, or an error that says how to get it."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise MissingDependency(f"{name} is not installed: pip install 'crowdgram[{name}]'.", name=name) from None
