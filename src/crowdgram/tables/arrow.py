"""Arrow columns on their way into the engine: what it would fail on is null before it gets there.

Columns are first as their values are: a dictionary or a run of equal values is a way to store them, and no type of its
own. So one rule holds for a type however it is stored, and whoever made the table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..arrays import Integers
from ..errors import InvalidTable
from .columns import all_or, check_columns

__all__ = [
    "UTF8",
    "as_text",
    "check_fragments",
    "check_users",
    "flat",
    "has_foreign_moments",
    "holds_text",
    "in_years",
    "integers",
    "is_foreign",
    "numbers_table",
    "string_column",
]

UTF8 = "utf-8"

_SECONDS = (-62_135_596_800, 253_402_300_799)
"""The first and the last second of the years 1 to 9999, counted from 1970."""

_KNOWN = ("arrow.uuid", "arrow.json")
"""Extensions that the engine tells apart by itself."""

_LARGE = {
    pa.string(): pa.large_string(),
    pa.string_view(): pa.large_string(),
    pa.binary(): pa.large_binary(),
    pa.binary_view(): pa.large_binary(),
}
"""Written out, what a dictionary holds once may be more than the 2 GiB that a chunk of the small types can hold."""


def numbers_table(columns: Mapping[str, npt.NDArray[Any]]) -> pa.Table:
    """A table of columns of numbers. `pa.array` would load pandas, which takes longer than many a release."""
    made = []
    for values in columns.values():
        if type(values) is not np.ndarray and np.ma.is_masked(values):  # `np.ma` is slow to load
            raise ValueError("nulls in a column of numbers")
        whole = np.ascontiguousarray(values)
        made.append(pa.Array.from_buffers(pa.from_numpy_dtype(whole.dtype), len(whole), [None, pa.py_buffer(whole)]))
    return pa.Table.from_arrays(made, names=list(columns))


def integers(column: pa.ChunkedArray) -> Integers:
    """The integers of a column without nulls; `to_numpy` would load pandas too."""
    if column.null_count:
        raise ValueError("nulls in a column of sums")
    parts = [np.zeros(0, dtype=np.int64)]
    whole = column if column.type == pa.int64() else column.cast(pa.int64())  # `cast` is slow to load
    for chunk in whole.chunks:
        parts.append(np.frombuffer(chunk.buffers()[1], np.int64, len(chunk), 8 * chunk.offset))
    return np.concatenate(parts)


def string_column(values: Sequence[str]) -> pa.Array:
    """Strings as a column; in the same way, and for the same reason, as `numbers_table`."""
    encoded = [value.encode() for value in values]
    ends = np.fromiter(accumulate(map(len, encoded), initial=0), np.int64, len(encoded) + 1)
    small = ends[-1] < 2**31
    buffers = [None, pa.py_buffer(ends.astype(np.int32) if small else ends), pa.py_buffer(b"".join(encoded))]
    return pa.Array.from_buffers(pa.string() if small else pa.large_string(), len(encoded), buffers)


def as_text(values: pa.Array, codec: str = UTF8) -> pa.Array:
    """Bytes as strings; null if they are no text in this encoding, which Python knows by this name."""
    if codec == UTF8:
        try:
            text = values.view(pa.string())  # `cast` would do the same, and is slow to load
            text.validate(full=True)
            return text
        except pa.ArrowInvalid:  # one of them is not
            pass
    return pa.array([_decoded(value, codec) for value in values.to_pylist()], pa.string())


def _decoded(value: bytes | None, codec: str) -> str | None:
    try:
        return None if value is None else value.decode(codec)
    except UnicodeDecodeError:
        return None


def check_users(schema: pa.Schema, user: str) -> None:
    """Refuse a type of the user column whose values engines do not tell apart: users would merge."""
    if user in schema.names and pa.types.is_date64(_stored(schema.field(user).type)):
        raise InvalidTable(
            f"user={user!r}: has type date64, whose parts of a day engines drop, so that users would merge. Cast it to "
            "date32.",
            column=user,
        )


def check_fragments(dataset: Any, columns: Sequence[str]) -> None:
    """Refuse a dataset of which a file has one of these columns in another type than the dataset: a cast could merge
    users, or fail on a row. The types of text files are guessed from rows.
    """
    from pyarrow.dataset import UnionDataset

    # A dataset with a filter does not show its fragments, but a union of it does.
    for fragment in UnionDataset(dataset.schema, [dataset]).get_fragments():
        if type(getattr(fragment, "format", None)).__name__ in ("CsvFileFormat", "JsonFileFormat"):
            raise InvalidTable(
                "table: is a dataset of text files, whose types are guessed from rows. Give the paths of the files."
            )
        stored = fragment.physical_schema
        for name in columns:
            if name not in stored.names:
                continue  # it is null there, or comes from the name of a folder
            check_columns(stored.names, [name])
            here, there = stored.field(name).type, dataset.schema.field(name).type
            if here != there:
                raise InvalidTable(
                    f"column {name!r}: has type {here} in a file of the dataset, and {there} in the dataset. All files "
                    "need one type.",
                    column=name,
                )


def is_foreign(kind: pa.DataType) -> bool:
    """Whether the engine fails on some values of this type, which reaches further than its own; lacks it; or, of
    nanoseconds in Parquet, takes some rows for infinite or not by what other rows hold. Or whether it is another
    type, stored in its own way.
    """
    if pa.types.is_timestamp(kind):
        return bool(kind.unit in ("s", "ms", "ns"))
    return bool(pa.types.is_date64(kind) or pa.types.is_null(kind) or _is_opaque(kind) or _stored(kind) != kind)


def _is_opaque(kind: pa.DataType) -> bool:
    """Whether nothing can be asked of a value of this type but whether it is null. Then no more of it reaches the
    engine, which fails on some: a map that repeats a key, a duration of many years.
    """
    return bool(pa.types.is_nested(kind) or pa.types.is_duration(kind) or pa.types.is_interval(kind))


def holds_text(kind: pa.DataType) -> bool:
    """Whether values of this type are strings, in which there may be bytes that are no text."""
    return any(is_one(kind) for is_one in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view))


def has_foreign_moments(kind: pa.DataType) -> bool:
    """Whether values of this type are moments that reach further than the engine's own, or hold such."""
    kind = _stored(kind)
    if pa.types.is_nested(kind):
        return any(has_foreign_moments(kind.field(place).type) for place in range(kind.num_fields))
    return pa.types.is_timestamp(kind) and is_foreign(kind)


def flat(schema: pa.Schema, columns: Sequence[str] | None) -> list[str]:
    """The columns to read, of a file or a query; None for all, without lists, maps and the like: if these hold more
    than 2 GiB, Arrow and DuckDB fail to hand them over.
    """
    nested = [field.name for field in schema if pa.types.is_nested(_stored(field.type))]
    if columns is None:
        return [name for name in all_or(None, schema.names) if name not in nested]
    for name in columns:
        if name in nested:
            raise InvalidTable(
                f"column {name!r}: has type {schema.field(name).type}, and needs single values, in files, datasets and "
                "relations. Make a column of what you need of it.",
                column=name,
            )
    return list(columns)


def in_years(data: Any, columns: Sequence[str]) -> Any:
    """These columns of a table, reader or dataset, and no others, as their values are: foreign timestamps in
    microseconds and dates in days; null outside the years 1 to 9999; of lists, durations and the like, whether they are
    null. No row is read of a reader or a dataset.
    """
    names, schema = list(columns), data.schema
    if names == schema.names and not any(is_foreign(field.type) for field in schema):
        return data
    finer = pa.schema([pa.field(name, _finer(schema.field(name).type)) for name in names])
    if isinstance(data, pa.Table):
        return pa.table([_shifted(data.column(name)) for name in names], schema=finer)

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in data if isinstance(data, pa.RecordBatchReader) else data.scanner(columns=names).to_batches():
            yield pa.record_batch([_shifted(batch.column(name)) for name in names], schema=finer)

    return pa.RecordBatchReader.from_batches(finer, batches())


def _stored(kind: pa.DataType) -> pa.DataType:
    """The type of the values of a dictionary, of runs, or of an extension that engines do not know."""
    values = kind
    while not _is_plain(values):
        values = values.storage_type if isinstance(values, pa.BaseExtensionType) else values.value_type
    return _large(values) if values != kind else values


def _is_plain(kind: pa.DataType) -> bool:
    if isinstance(kind, pa.BaseExtensionType):
        return kind.extension_name in _KNOWN
    return not (pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind))


def _plain(column: Any) -> Any:
    """The values of a dictionary, of runs, or of an extension that engines do not know."""
    while not _is_plain(kind := column.type):
        if isinstance(kind, pa.BaseExtensionType):
            column = column.cast(kind.storage_type)
        elif isinstance(column, pa.ChunkedArray):
            column = pa.chunked_array([_written_out(chunk) for chunk in column.chunks], _large(kind.value_type))
        else:
            column = _written_out(column)
    return column


def _large(kind: pa.DataType) -> pa.DataType:
    return _LARGE.get(kind, kind)


def _written_out(values: pa.Array) -> pa.Array:
    """The values of a dictionary or of runs, one for each row."""
    import pyarrow.compute as pc  # slow to load, and few tables need it

    large = _large(values.type.value_type)
    if not pa.types.is_run_end_encoded(values.type):
        return (
            values.cast(large)
            if large == values.type.value_type
            else values.dictionary.cast(large).take(values.indices)
        )
    runs = pa.RunEndEncodedArray.from_arrays(values.run_ends, values.values.cast(large))
    return pc.run_end_decode(runs.slice(values.offset, len(values)))


def _finer(kind: pa.DataType) -> pa.DataType:
    kind = _stored(kind)
    if pa.types.is_null(kind):
        return pa.string()  # without any value it has no type; as strings it serves like any other empty column
    if not is_foreign(kind):
        return kind
    if _is_opaque(kind):
        return _there_or_not(kind).type
    return pa.date32() if pa.types.is_date64(kind) else pa.timestamp("us", kind.tz)


def _shifted(column: Any) -> Any:
    column = _plain(column)
    kind = column.type
    if not is_foreign(kind):
        return column
    import pyarrow.compute as pc

    if _is_opaque(kind):
        return _there_or_not(kind).take(column.is_null().cast(pa.int8()))
    if pa.types.is_null(kind) or (pa.types.is_timestamp(kind) and kind.unit == "ns"):
        return (column if pa.types.is_null(kind) else _microseconds(column)).cast(_finer(kind))
    first, last = _SECONDS
    if pa.types.is_date64(kind) or kind.unit == "ms":
        first, last = first * 1000, last * 1000 + 999
    number = column.cast(pa.int64())
    inside = pc.and_(pc.greater_equal(number, first), pc.less_equal(number, last))
    return pc.if_else(inside, number, pa.scalar(None, pa.int64())).cast(kind).cast(_finer(kind), safe=False)


def _microseconds(column: Any) -> Any:
    """Nanoseconds rounded down, before 1970 as after: a moment belongs to one month."""
    import pyarrow.compute as pc

    number = column.cast(pa.int64())
    nearer = pc.divide(number, 1000)  # to zero
    return pc.subtract(nearer, pc.less(number, pc.multiply(nearer, 1000)).cast(pa.int64()))


def _there_or_not(kind: pa.DataType) -> pa.Array:
    """A value of an opaque type, and a null; of bytes if Arrow cannot make one of that type."""
    value: Any = [None] * kind.list_size if pa.types.is_fixed_size_list(kind) else []
    if pa.types.is_struct(kind):
        value = {}
    elif not pa.types.is_nested(kind):
        value = 0 if pa.types.is_duration(kind) else (0, 0, 0)
    try:
        return pa.array([value, None], kind).take(pa.array([0, 1]))
    except pa.ArrowException:  # unions, and what holds extensions or views
        return pa.array([b"", None], pa.binary())
