"""What an engine is: where intermediate results are kept, fetched and dropped.

Relational work is written once, in Ibis. What differs between engines is how a table is kept for the next pass and
dropped after the last one, how text is compared byte by byte, and what a plan looks like. An engine's own error message
may quote rows, so it never leaves this file: `shield` swaps it for one that speaks of the stage alone.
"""

from __future__ import annotations

import logging
import sys
import threading
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import ibis
import ibis.expr.datatypes as dt
import ibis.expr.operations as ops
import pyarrow as pa
import sqlglot

from ...errors import CrowdgramError, EngineFailure, InvalidArgument
from ...interrupts import catch_interrupts
from .resources import DuckDB, current_resources
from .shapes import compile_by_shape, fresh_name

if TYPE_CHECKING:
    import ibis.expr.types as ir

__all__ = ["Engine", "fresh_name", "function", "shield"]

T = TypeVar("T")


def shield(stage: str, call: Callable[[], T], stop: Callable[[], object] | None = None) -> T:
    """Run `call`; an engine's error becomes an `EngineFailure` that names the stage and quotes nothing.

    Unless it was told to stop by a signal: then what the signal's handler raised. `stop` ends what the engine does.
    """
    with catch_interrupts(stop) as raised:
        try:
            with _silent():
                return call()
        except (CrowdgramError, ImportError):
            raise
        except Exception:  # noqa: BLE001 (engines raise anything; message and type may depend on rows)
            pass
    # Raised outside the handler, so that the original is not attached as the context either.
    if raised:
        raise raised[-1].with_traceback(None)
    raise EngineFailure(
        f"the engine failed while {stage}. Its own message is withheld because it may quote rows. "
        "Check that every file is whole and well formed, and that there is memory and disk space to work in.",
        stage=str(stage),
    )


_here = threading.local()
_SPARK_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")


@contextmanager
def _silent() -> Iterator[None]:
    """Keep an engine's words to itself: PySpark writes every error to standard error, values and all."""
    if "pyspark" in sys.modules:
        from pyspark.logger import PySparkLogger

        for name in _SPARK_LOGGERS:
            logger = PySparkLogger.getLogger(name)
            if _unless_working not in logger.filters:
                logger.addFilter(_unless_working)
    before = getattr(_here, "working", False)
    _here.working = True
    try:
        with warnings.catch_warnings():
            # How often an engine warns tells how often it was asked, which may depend on rows.
            warnings.simplefilter("ignore")
            yield
    finally:
        _here.working = before


def _unless_working(_: logging.LogRecord) -> bool:
    """Let a record through unless it comes from a thread in which an engine works for us."""
    return not getattr(_here, "working", False)


class Engine(ABC):
    """A SQL backend of Ibis. Use as a context manager: all that was kept is dropped at the end."""

    package: ClassVar[str]
    """The Python package whose version a release records."""

    TYPES: ClassVar[Mapping[str, Sequence[str]]]
    """What the engine calls the types of `row_functions`."""

    ROW_WISE: ClassVar[frozenset[str]]
    """Operators of its plans that look at one row at a time, and the one row that they start from."""

    def __init__(self, backend: Any, on_close: Iterable[Callable[[], None]] = ()) -> None:
        self.backend = backend
        self._kept: list[str] = []
        self._on_close = list(on_close)
        self.obeys = DuckDB()
        self.whole = False  # whether the whole database is ours, and ends with the engine

    def __enter__(self) -> Engine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def name(self) -> str:
        return str(self.backend.name)

    def check_resources(self) -> None:
        """Refuse to go on if the caller limits the embedded engine, and the table is in another one."""
        asked = current_resources()
        if asked and self.obeys != asked:
            raise InvalidArgument(
                f"table: is worked on in {self.package} as you connected it, which {asked!r} does not reach. Set the "
                "options of that engine, and leave these out.",
                argument="table",
            )

    def keep(self, table: ir.Table, stage: str) -> ir.Table:
        """Compute `table` once and keep the result for later passes, its numbers in the types that Ibis states.

        Engines sum in wider types than Ibis believes, and Ibis leaves out a cast that it believes to change nothing.
        """
        name = fresh_name()
        shield(stage, lambda: self._create(name, table), self._stop)
        self._kept.append(name)
        return shield(stage, lambda: self._kept_as(name, table))

    def upload(self, table: pa.Table, stage: str) -> ir.Table:
        """Put a small public table (the domain, a centre) beside the private one."""
        name = fresh_name()
        shield(stage, lambda: self._upload(name, table), self._stop)
        self._kept.append(name)
        return shield(stage, lambda: self._uploaded_as(name, table))

    def holds(self, table: ir.Table) -> bool:
        """Whether `table` is one that was kept or uploaded, as it is."""
        return isinstance(table.op(), ops.DatabaseTable) and table.get_name() in self._kept

    def drop(self, table: ir.Table) -> None:
        """Drop a kept table before the end."""
        if self.holds(table):
            name = table.get_name()
            self._kept.remove(name)
            self._drop(name)

    def gather_users(self, table: ir.Table, _stage: str, /) -> ir.Table:
        """The same rows, those of each `user` in one place, if the engine works in several places: what is kept of
        them, and made of that by `user`, stays there, so that later passes move no rows.
        """
        return table

    def fetch(self, table: ir.Table, stage: str) -> pa.Table:
        """Collect a result; callers fetch nothing larger than the domain, or than a tally by item and times."""
        return shield(stage, lambda: self._fetch(table), self._stop)

    def count_by_bin(self, values: ir.Table, edges: Sequence[float], stage: str) -> pa.Table:
        """How many rows of `values`, a table of one number `value`, are in (edges[j-1], edges[j]], as (idx, total).

        The last bin is open; empty ones are left out. Each row is placed by halving. The text is written here because
        Ibis takes ten times as long to write dozens of comparisons as an engine takes to count a small table by them.
        """
        whole = values.schema()["value"].is_integer()
        written = [str(int(edge)) if whole else f"{float(edge):.17e}" for edge in edges]
        return shield(stage, lambda: self._count_by_bin(values, written), self._stop)

    def check(self, table: ir.Table, stage: str) -> None:
        """Have the engine plan how it would compute `table`, by the schema alone: no row is read.

        What it cannot find or bind fails here, before a release is paid for.
        """
        shield(stage, lambda: self._plan(table), self._stop)

    @abstractmethod
    def exact(self, text: Any) -> Any:
        """A column of strings that are compared code point by code point, whatever collation the column has; null where
        they are not UTF-8.

        Under another collation "a" and "A" may be one key, and which of them stands for it is up to the rows. Engines
        do not hold Arrow, Parquet and Spark to UTF-8 when they read, but fail on other text at some later point.
        """

    @abstractmethod
    def pattern(self, like: str) -> str:
        """A pattern of LIKE in which a backslash is a character like any other."""

    @abstractmethod
    def hexadecimal(self, digits: Any) -> Any:
        """The integer, below 2^63, that a column of hexadecimal digits writes."""

    def tried(self, value: Any) -> Any:
        """The value, or null if the engine cannot compute it for a row: a second line behind `row_functions`."""
        return value

    def gives(self, table: ir.Table, types: Mapping[str, str], stage: str) -> bool:
        """Whether the engine itself says that the columns of `table` have these types, by the names of TYPES."""
        found = shield(stage, lambda: self._types(table), self._stop)
        return all(found[name] in self.TYPES[kind] for name, kind in types.items())

    @abstractmethod
    def operators(self, table: ir.Table) -> Iterator[str]:
        """Every operator of the engine's plan of `table`, as it is before the engine simplifies it. No row is read."""

    def before_close(self, act: Callable[[], None]) -> None:
        """Have `act` done at the end, while there is a connection."""
        self._on_close.insert(0, act)

    def on_close(self, act: Callable[[], None]) -> None:
        """Have `act` done at the end, after all else."""
        self._on_close.append(act)

    def close(self) -> None:
        """Drop all that was kept, unless it goes with the database. Errors are passed over: the connection may be gone
        already.
        """
        for name in [] if self.whole else reversed(self._kept):
            try:
                self._drop(name)
            except Exception:  # noqa: BLE001
                continue
        self._kept.clear()
        for act in self._on_close:
            try:
                act()
            except Exception:  # noqa: BLE001
                continue
        self._on_close.clear()

    def _stop(self) -> None:  # noqa: B027 (there may be nothing to do)
        """End what the engine is doing for us, as soon as it can."""

    def _table(self, name: str) -> ir.Table:
        return self.backend.table(name)

    def _uploaded_as(self, name: str, _table: pa.Table, /) -> ir.Table:
        """The table that `_upload` made of one in memory."""
        return self._table(name)

    def _kept_as(self, name: str, _made_of: ir.Table, /) -> ir.Table:
        """The table that `_create` made of another one."""
        return self._table(name)

    def _sql(self, table: ir.Table) -> str:
        """The SQL of a table whose memtables, if it has any, the engine then knows."""
        return compile_by_shape(self.backend, table, register=True)

    def _typed(self, table: ir.Table) -> str:
        """The SQL of a table whose numbers have the types of its schema, by casts that Ibis does not see."""
        dialect, mapper = self.backend.dialect, self.backend.compiler.type_mapper
        columns = [_cast(name, dtype, dialect, mapper) for name, dtype in table.schema().items()]
        return f"SELECT {', '.join(columns)} FROM ({self._sql(table)}) AS kept"

    @abstractmethod
    def _plan(self, table: ir.Table) -> None:
        """Have the engine plan `table`, not only Ibis: it fails on what the engine cannot find or bind."""

    def _fetch(self, table: ir.Table) -> pa.Table:
        return self.backend.to_pyarrow(table)

    def _count_by_bin(self, values: ir.Table, edges: Sequence[str]) -> pa.Table:
        def place(first: int, last: int) -> str:
            if first == last:
                return str(first)
            middle = (first + last) // 2
            below, above = place(first, middle), place(middle + 1, last)
            return f"CASE WHEN value <= {edges[middle]} THEN {below} ELSE {above} END"

        binned = f"SELECT {place(0, len(edges) - 1)} AS idx FROM ({self._sql(values)}) AS measured"
        return self._rows(
            f"SELECT CAST(idx AS BIGINT) AS idx, COUNT(*) AS total FROM ({binned}) AS binned GROUP BY idx"
        )

    @abstractmethod
    def _rows(self, query: str) -> pa.Table:
        """What a query gives, in the engine's own types."""

    @abstractmethod
    def _types(self, table: ir.Table) -> dict[str, str]:
        """The types of the columns, as the engine calls them."""

    def _create(self, name: str, table: ir.Table) -> None:
        self.backend.raw_sql(f'CREATE TEMP TABLE "{name}" AS {self._typed(table)}')

    def _upload(self, name: str, table: pa.Table) -> None:
        self.backend.create_table(name, ibis.memtable(table), temp=True)

    def _drop(self, name: str) -> None:
        self.backend.raw_sql(f'DROP TABLE IF EXISTS "{name}"')


@lru_cache(maxsize=256)  # there are few, and every pass has some of them
def _cast(name: str, dtype: dt.DataType, dialect: Any, mapper: Any) -> str:
    """A column, as SQL; a number in its type."""
    quoted = sqlglot.to_identifier(name, quoted=True).sql(dialect)
    return f"CAST({quoted} AS {mapper.to_string(dtype)}) AS {quoted}" if dtype.is_numeric() else quoted


def function(name: str, dtype: dt.DataType = dt.string) -> Any:
    """A function of the engine, of one value and of its type, that Ibis does not know."""

    def value(value: Any) -> Any:
        raise NotImplementedError

    return ibis.udf.scalar.builtin(value, name=name, signature=((dtype,), dtype))
