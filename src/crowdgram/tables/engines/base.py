"""What an engine is: where intermediate results are kept, fetched and dropped.

Relational work is written once: what users bring in Ibis, what statistics ask in `relations`. What differs between
engines is a `Dialect` of SQL, how a table is kept for the next pass and dropped after the last one, how text is
compared byte by byte, and what a plan looks like. An engine's own error message may quote rows, so it never leaves this
file: `shield` swaps it for one that speaks of the stage alone.
"""

from __future__ import annotations

import sys
import threading
import uuid
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, TypeVar

import pyarrow as pa

from ...errors import CrowdgramError, EngineFailure, InvalidArgument
from ...interrupts import catch_interrupts
from ..relations import INTEGER, Dialect, Relation
from .resources import DuckDB, current_resources

if TYPE_CHECKING:
    import logging

    import ibis.expr.datatypes as dt
    import ibis.expr.types as ir

    Table: TypeAlias = ir.Table | Relation

__all__ = ["Engine", "fresh_name", "function", "shield"]

T = TypeVar("T")


def fresh_name() -> str:
    return f"crowdgram_{uuid.uuid4().hex}"


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
    """Where tables are worked on. Use as a context manager: all that was kept is dropped at the end.

    A table is one of Ibis, which a user's is made of, or a `Relation`, which all that is kept is.
    """

    name: ClassVar[str]
    """Of the Ibis backend."""

    package: ClassVar[str]
    """The Python package whose version a release records."""

    dialect: ClassVar[Dialect]
    """How its SQL is written."""

    TYPES: ClassVar[Mapping[str, Sequence[str]]]
    """What the engine calls the types of `row_functions`."""

    ROW_WISE: ClassVar[frozenset[str]]
    """Operators of its plans that look at one row at a time, and the one row that they start from."""

    def __init__(self, backend: Any, on_close: Iterable[Callable[[], None]] = ()) -> None:
        self._backend = backend
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
    def backend(self) -> Any:
        """The Ibis backend, for what users bring."""
        return self._backend

    def as_ibis(self, table: Table) -> ir.Table:
        """A table of Ibis, or one that was opened, kept or uploaded, as one of Ibis."""
        return self.backend.table(table.get_name()) if isinstance(table, Relation) else table

    def relation(self, table: Table) -> Relation:
        """The query that Ibis writes for a table, whose memtables the engine then knows."""
        if isinstance(table, Relation):
            return table
        types = {name: dtype.to_pyarrow() for name, dtype in table.schema().items()}
        return Relation(self.dialect, f"({self._sql(table)})", types)

    def check_resources(self) -> None:
        """Refuse to go on if the caller limits the embedded engine, and the table is in another one."""
        asked = current_resources()
        if asked and self.obeys != asked:
            raise InvalidArgument(
                f"table: is worked on in {self.package} as you connected it, which {asked!r} does not reach. Set the "
                "options of that engine, and leave these out.",
                argument="table",
            )

    def keep(self, table: Table, stage: str) -> Relation:
        """Compute `table` once and keep the result for later passes, its numbers in the types that it states.

        Engines sum in wider types.
        """
        name = fresh_name()

        def create() -> Relation:
            query = self.relation(table)
            self._create(name, query.typed())
            return Relation.named(self.dialect, name, query.types)

        kept = shield(stage, create, self._stop)
        self._kept.append(name)
        return kept

    def upload(self, table: pa.Table, stage: str) -> Relation:
        """Put a small public table (the domain, a centre) beside the private one."""
        name = fresh_name()
        shield(stage, lambda: self._upload(name, table), self._stop)
        self._kept.append(name)
        return Relation.named(self.dialect, name, {field.name: field.type for field in table.schema})

    def holds(self, table: Table) -> bool:
        """Whether `table` is one that was kept or uploaded, as it is."""
        return isinstance(table, Relation) and table.table_name in self._kept

    def drop(self, table: Table) -> None:
        """Drop a kept table before the end."""
        if self.holds(table):
            name = table.get_name()
            self._kept.remove(name)
            self._drop(name)

    def gather_users(self, table: Relation, _stage: str, /) -> Relation:
        """The same rows, those of each `user` in one place, if the engine works in several places: what is kept of
        them, and made of that by `user`, stays there, so that later passes move no rows.
        """
        return table

    def fetch(self, table: Table, stage: str) -> pa.Table:
        """Collect a result; callers fetch nothing larger than the domain, or than a tally by item and times."""
        return shield(stage, lambda: self._fetch(self.relation(table)), self._stop)

    def count_by_bin(self, values: Relation, edges: Sequence[float], stage: str) -> pa.Table:
        """How many rows of `values`, a table of one number `value`, are in (edges[j-1], edges[j]], as (idx, total).

        The last bin is open; empty ones are left out. Each row is placed by halving.
        """
        whole = values.types["value"] == INTEGER
        written = [str(int(edge)) if whole else f"{float(edge):.17e}" for edge in edges]
        return shield(stage, lambda: self._count_by_bin(values, written), self._stop)

    def check(self, table: Table, stage: str) -> None:
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

    def _sql(self, table: Table) -> str:
        """The SQL of a table whose memtables, if it has any, the engine then knows."""
        if isinstance(table, Relation):
            return table.sql
        self.backend._register_in_memory_tables(table)
        return str(self.backend.compile(table))

    @abstractmethod
    def _plan(self, table: Table) -> None:
        """Have the engine plan `table`, not only Ibis: it fails on what the engine cannot find or bind."""

    @abstractmethod
    def _fetch(self, table: Relation) -> pa.Table:
        """All rows, in the types that the table states."""

    def _count_by_bin(self, values: Relation, edges: Sequence[str]) -> pa.Table:
        def place(first: int, last: int) -> str:
            if first == last:
                return str(first)
            middle = (first + last) // 2
            below, above = place(first, middle), place(middle + 1, last)
            return f"CASE WHEN value <= {edges[middle]} THEN {below} ELSE {above} END"

        binned = f"SELECT {place(0, len(edges) - 1)} AS idx FROM {values.source} AS measured"
        return self._rows(
            f"SELECT CAST(idx AS BIGINT) AS idx, COUNT(*) AS total FROM ({binned}) AS binned GROUP BY idx"
        )

    @abstractmethod
    def _rows(self, query: str) -> pa.Table:
        """What a query gives, in the engine's own types."""

    @abstractmethod
    def _types(self, table: ir.Table) -> dict[str, str]:
        """The types of the columns, as the engine calls them."""

    @abstractmethod
    def _create(self, name: str, query: str) -> None:
        """Keep what a query gives."""

    @abstractmethod
    def _upload(self, name: str, table: pa.Table) -> None: ...

    @abstractmethod
    def _drop(self, name: str) -> None: ...


def function(name: str, dtype: dt.DataType | str = "string") -> Any:
    """A function of the engine, of one value and of its type, that Ibis does not know."""
    import ibis

    def value(value: Any) -> Any:
        raise NotImplementedError

    return ibis.udf.scalar.builtin(value, name=name, signature=((dtype,), dtype))
