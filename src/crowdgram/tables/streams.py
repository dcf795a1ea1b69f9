"""Rows of a database on their way into the embedded engine: the columns that are needed, in batches.

So memory does not grow with the table, and the sums are the same integers whatever the database.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from ..errors import InvalidArgument, InvalidTable, UnreadableSource
from .addresses import Name
from .arrow import UTF8, as_text
from .columns import all_or
from .engines import DuckEngine, Engine

if TYPE_CHECKING:
    from .engines.base import Table

__all__ = ["BATCH", "Check", "Column", "batches", "or_raise", "quoted", "selected", "stream", "wanted"]

T = TypeVar("T")

Check = Callable[[Sequence[str]], None]
"""Refuses a table by the names of all its columns."""

BATCH = 50_000
"""Rows that are in memory at once on their way into the engine."""


@dataclass(frozen=True)
class Column:
    """A column on its way: how it is selected, the Arrow type that it comes in, and what it is cast to then."""

    name: str
    sql: str
    arrow: pa.DataType
    cast: str | None = None


def stream(parts: Sequence[Column], batches: Iterable[pa.RecordBatch]) -> tuple[Engine, Table]:
    """The rows as a stream that the embedded engine reads once, batch by batch."""
    schema = _schema(parts)
    engine = DuckEngine.embedded()
    try:
        registered = engine.register(pa.RecordBatchReader.from_batches(schema, batches))
        if not any(part.cast for part in parts):
            return engine, registered
        table = engine.as_ibis(registered)
        return engine, table.mutate(**{part.name: table[part.name].try_cast(part.cast) for part in parts if part.cast})
    except BaseException:
        engine.close()
        raise


def _schema(parts: Sequence[Column]) -> pa.Schema:
    return pa.schema([(part.name, part.arrow) for part in parts])


def batches(
    parts: Sequence[Column], rows: Iterable[list[tuple[Any, ...]]], codec: str = UTF8
) -> Iterator[pa.RecordBatch]:
    for batch in rows:
        columns = zip(zip(*batch, strict=True), parts, strict=True)
        # Texts of more than 2 GiB come in chunks, of which a table makes batches.
        yield from pa.table(
            [_array(values, part.arrow, codec) for values, part in columns], _schema(parts)
        ).to_batches()


def _array(values: Sequence[Any], kind: pa.DataType, codec: str) -> pa.Array:
    return as_text(pa.array(values, pa.binary()), codec) if pa.types.is_string(kind) else pa.array(values, kind)


def selected(parts: Sequence[Column], source: str) -> str:
    return f"SELECT {', '.join(f'{part.sql} AS {quoted(part.name)}' for part in parts)} FROM {source}"


def wanted(declared: Sequence[tuple[str, str]], columns: Sequence[str] | None, check: Check) -> list[tuple[str, str]]:
    names = [name for name, _ in declared]
    check(names)
    chosen = all_or(columns, names)
    return [(name, kind) for name, kind in declared if name in chosen]


def quoted(name: Name | str) -> str:
    """A column's name, or the parts of a table's, as SQL identifiers."""
    return ".".join('"' + part.replace('"', '""') + '"' for part in ([name] if isinstance(name, str) else name))


def or_raise(call: Callable[[], T], instead: Exception) -> T:
    """Run `call`; whatever a database says against it is replaced by `instead`."""
    try:
        return call()
    except (InvalidArgument, InvalidTable, UnreadableSource):
        raise
    except Exception:  # noqa: BLE001 (its own words may quote rows or credentials)
        pass
    raise instead
