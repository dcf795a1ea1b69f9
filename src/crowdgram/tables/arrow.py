"""Arrow columns on their way into the engine: what it would fail on is null before it gets there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["as_text", "in_years", "is_foreign"]

_SECONDS = (-62_135_596_800, 253_402_300_799)
"""The first and the last second of the years 1 to 9999, counted from 1970."""


def as_text(values: pa.Array) -> pa.Array:
    """Bytes as strings; null where they are not UTF-8."""
    try:
        return values.cast(pa.string())
    except pa.ArrowInvalid:  # one of them is not
        return pa.array([_decoded(value) for value in values.to_pylist()], pa.string())


def _decoded(value: bytes | None) -> str | None:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return None


def is_foreign(kind: pa.DataType) -> bool:
    """Whether the engine fails on some values of this type, which reaches further than its own; lacks it; or, of
    nanoseconds in Parquet, takes some rows for infinite or not by what other rows hold.
    """
    if pa.types.is_timestamp(kind):
        return kind.unit in ("s", "ms", "ns")
    return bool(pa.types.is_date64(kind))


def in_years(data: Any, columns: Sequence[str]) -> Any:
    """A table, reader or dataset with its foreign timestamps in microseconds and dates in days; null outside the years
    1 to 9999. Of a dataset, these columns.
    """
    schema = data.schema
    if not any(is_foreign(field.type) for field in schema if field.name in columns):
        return data
    if not isinstance(data, pa.Table | pa.RecordBatchReader):
        data = data.scanner(columns=list(columns)).to_reader()
        schema = data.schema
    finer = pa.schema([pa.field(field.name, _finer(field.type)) for field in schema])
    if isinstance(data, pa.Table):
        return pa.table([_shifted(column) for column in data.columns], schema=finer)
    batches = (pa.record_batch([_shifted(one) for one in batch.columns], schema=finer) for batch in data)
    return pa.RecordBatchReader.from_batches(finer, batches)


def _finer(kind: pa.DataType) -> pa.DataType:
    if not is_foreign(kind):
        return kind
    return pa.date32() if pa.types.is_date64(kind) else pa.timestamp("us", kind.tz)


def _shifted(column: Any) -> Any:
    kind = column.type
    if not is_foreign(kind):
        return column
    if pa.types.is_timestamp(kind) and kind.unit == "ns":
        return column.cast(_finer(kind), safe=False)
    first, last = _SECONDS
    if pa.types.is_date64(kind) or kind.unit == "ms":
        first, last = first * 1000, last * 1000 + 999
    number = column.cast(pa.int64())
    inside = pc.and_(pc.greater_equal(number, first), pc.less_equal(number, last))
    return pc.if_else(inside, number, pa.scalar(None, pa.int64())).cast(kind).cast(_finer(kind), safe=False)
