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

from ..arrays import Floats
from ..errors import MissingDependency
from ..escaping import guarded_cell
from ..results.grouped import GroupedRelease, parts_of
from ..results.grouped_reach import GroupedReach
from ..results.groups import places_of
from ..results.reach import FIGURES, Reach
from ..results.release import Release
from ..results.values import Measure, Other, Value, check_measure, unlisted, values_of
from ..shortage import is_shortage
from .writing import write_whole

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

__all__ = ["columns", "to_arrow", "to_pandas", "to_polars", "write_csv", "write_csv_table", "write_parquet"]

_NAMES: dict[Measure, str] = {"shares": "probability", "counts": "count"}
_ERRORS = ("standard_error", "lower", "upper")


def to_arrow(release: Release | GroupedRelease | Reach | GroupedReach, measure: Measure = "shares") -> pyarrow.Table:
    """An Arrow table."""
    import pyarrow as pa

    return pa.table(columns(release, measure))


def to_pandas(
    release: Release | GroupedRelease | Reach | GroupedReach, measure: Measure = "shares"
) -> pandas.DataFrame:
    """A pandas frame, in which integers and booleans stay what they are if one is missing."""
    library = _library("pandas")
    kept = columns(release, measure)
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


def to_polars(
    release: Release | GroupedRelease | Reach | GroupedReach, measure: Measure = "shares"
) -> polars.DataFrame:
    """A polars frame."""
    frame: polars.DataFrame = _library("polars").DataFrame(columns(release, measure))
    return frame


def write_csv(
    release: Release | GroupedRelease | Reach | GroupedReach,
    path: str | os.PathLike[str],
    measure: Measure = "shares",
    *,
    overwrite: bool = False,
) -> None:
    """Write the distribution as CSV, whole or not at all.

    A spreadsheet takes some texts for formulas: those have a quote before them (`guarded_cell`). JSON and frames hold
    names exactly.
    """
    write_csv_table(to_arrow(release, measure), path, overwrite=overwrite)


def write_csv_table(table: pyarrow.Table, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Write an Arrow table as CSV, whole or not at all, with no text that a spreadsheet takes for a formula."""
    import pyarrow as pa
    from pyarrow import csv

    for place, field in enumerate(table.schema):
        if pa.types.is_string(field.type):
            texts = table.column(place).to_pylist()
            cells = [None if text is None else guarded_cell(text) for text in texts]
            table = table.set_column(place, field.name, pa.array(cells, pa.string()))
    table = table.rename_columns([guarded_cell(name) for name in table.column_names])
    target = io.BytesIO()
    csv.write_csv(table, target)
    write_whole(path, target.getvalue(), overwrite=overwrite)


def write_parquet(
    release: Release | GroupedRelease | Reach | GroupedReach,
    path: str | os.PathLike[str],
    measure: Measure = "shares",
    *,
    overwrite: bool = False,
) -> None:
    """Write the distribution as Parquet, whole or not at all.

    The guarantee goes with it, in words and as numbers, in the metadata of the file.
    """
    from pyarrow import parquet

    joint = release.joint if isinstance(release, GroupedRelease | GroupedReach) else release
    about = {
        "crowdgram.guarantee": json.dumps(joint.guarantee.to_dict()),
        "crowdgram.sentence": joint.guarantee.sentence(),
        "crowdgram.confidence": repr(joint.confidence),
    }
    if isinstance(joint, Reach):
        about["crowdgram.measure"] = "users who have each item"
    else:
        about["crowdgram.weight"] = joint.weight
        about["crowdgram.measure"] = measure if measure == "shares" else joint.counts().about
    target = io.BytesIO()
    parquet.write_table(to_arrow(release, measure).replace_schema_metadata(about), target)
    write_whole(path, target.getvalue(), overwrite=overwrite)


def columns(release: Release | GroupedRelease | Reach | GroupedReach, measure: Measure = "shares") -> dict[str, Any]:
    """The columns of a frame by name: item columns, then figures. By groups, the group and its share come first.

    In a column of strings the other item has its name; elsewhere it is missing. `is_other`, which is there only if
    there are such items, says which they are. measure: "shares", or "counts", with the group's total instead of its
    share. A reach has no measure: its columns are users and shares.
    """
    if isinstance(release, Reach):
        return _columns_of_reach(release)
    if isinstance(release, GroupedReach):
        return _columns_of_grouped_reach(release)
    check_measure(measure)
    if isinstance(release, GroupedRelease):
        return _columns_by_group(release, measure)
    return _columns(release, measure)


def _columns(release: Release, measure: Measure) -> dict[str, Any]:
    return _with_items(release, _figures(release, measure))


def _columns_of_reach(reach: Reach) -> dict[str, Any]:
    arrays = (reach.counts, reach.standard_errors, reach.lower, reach.upper, reach.shares, *reach.share_intervals)
    return _with_items(reach, {name: np.array(each) for name, each in zip(FIGURES[:-1], arrays, strict=True)})


def _columns_of_grouped_reach(grouped: GroupedReach) -> dict[str, Any]:
    """A row for each item of the joint reach, by group; users of no group that was found come last.

    Shares are of the users of the group. Of no group there is no number of users, and shares are missing.
    """
    groups = places_of(grouped)
    joint, order = _columns_of_reach(grouped.joint), [place for own in groups.values() for place in own]
    users: list[float | None] = []
    shares: dict[str, list[float | None]] = {name: [] for name in ("share", "share_lower", "share_upper")}
    for group, places in groups.items():
        part = grouped.get(group)
        found = (None,) * 3 if part is None else (part.shares, *part.share_intervals)
        users += [None if part is None else part.users.value] * len(places)
        for name, values in zip(shares, found, strict=True):
            shares[name] += [None] * len(places) if values is None else values.tolist()
    by, *items = grouped.joint.item_columns
    return {
        by: [joint[by][place] for place in order],
        "group_users": users,
        **{name: [joint[name][place] for place in order] for name in items},
        **{name: [float(joint[name][place]) for place in order] for name in FIGURES[:4]},
        **shares,
        **({"is_other": [bool(joint["is_other"][place]) for place in order]} if "is_other" in joint else {}),
    }


def _with_items(release: Release | Reach, figures: dict[str, Floats]) -> dict[str, Any]:
    rows = [values_of(item) for item in release.items]
    others = np.array(unlisted(release.items))
    return {
        **{name: _column(values) for name, values in zip(release.heads, zip(*rows, strict=True), strict=True)},
        **figures,
        **({"is_other": others} if others.any() else {}),
    }


def _figures(release: Release, measure: Measure) -> dict[str, Floats]:
    if measure == "counts":
        counts = release.counts()
        found = (counts.counts, counts.standard_errors, counts.lower, counts.upper)
    else:
        found = (release.probabilities, release.standard_errors, release.lower, release.upper)
    return {name: np.array(values) for name, values in zip((_NAMES[measure], *_ERRORS), found, strict=True)}


def _columns_by_group(grouped: GroupedRelease, measure: Measure) -> dict[str, Any]:
    """A row for each item of the joint release, by group; the rows of all groups that were not found come last."""
    joint, parts = _columns(grouped.joint, measure), parts_of(grouped)
    order = [place for _, places, _ in parts for place in places]
    figures = [_figures(own, measure) for _, _, own in parts]
    of_all = dict(zip(grouped.shares.items, _figures(grouped.shares, measure)[_NAMES[measure]].tolist(), strict=True))
    shares = [[of_all[group]] * len(places) for group, places, _ in parts]
    by, *items = ([joint[name][place] for place in order] for name in grouped.joint.item_columns)
    return {
        grouped.by: by,
        "share" if measure == "shares" else "total": [share for own in shares for share in own],
        **dict(zip(grouped.joint.item_columns[1:], items, strict=True)),
        **{name: [value for own in figures for value in own[name].tolist()] for name in figures[0]},
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
    except ImportError as error:
        if is_shortage(error):
            raise
        raise MissingDependency(f"{name} is not installed: pip install 'crowdgram[{name}]'.", name=name) from None
