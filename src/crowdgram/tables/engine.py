"""The engine that holds a table: where intermediate results are kept, fetched and dropped.

Relational work is written once, in Ibis. What differs between engines is only how a table is kept for the next
pass and dropped after the last one; that is all this file knows. An engine's own error message may quote rows, so
it never leaves this file: `shielded` swaps it for one that speaks of the stage alone.
"""

from __future__ import annotations

import logging
import sys
import threading
import uuid
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

import ibis
import ibis.expr.datatypes as dt
import pyarrow as pa
import sqlglot

from ..errors import CrowdgramError, EngineFailure
from ..interrupts import noted
from .scratch import make_scratch

if TYPE_CHECKING:
    import ibis.expr.types as ir

__all__ = ["DuckEngine", "Engine", "SparkEngine", "engine_for", "fresh_name", "shielded"]

T = TypeVar("T")

_SETTINGS = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.variable.substitute": "false",
}


def shielded(stage: str, call: Callable[[], T], stop: Callable[[], object] | None = None) -> T:
    """Run `call`; an engine's error becomes an `EngineFailure` that names the stage and quotes nothing.

    Unless it was told to stop by a signal: then what the signal's handler raised. `stop` ends what the engine does.
    """
    with noted(stop) as raised:
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


class Engine:
    """Any Ibis backend. Use as a context manager: all that was kept is dropped at the end."""

    TYPES: Mapping[str, Sequence[str]] = {}
    """What the engine calls the types of `row_functions`."""

    def __init__(self, backend: Any, on_close: Iterable[Callable[[], None]] = ()) -> None:
        self.backend = backend
        self._kept: list[str] = []
        self._on_close = list(on_close)

    def __enter__(self) -> Engine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def name(self) -> str:
        return str(self.backend.name)

    def keep(self, table: ir.Table, stage: str) -> ir.Table:
        """Compute `table` once and keep the result for later passes, its integers in the types that Ibis states.

        Engines sum in wider types than Ibis believes, and Ibis leaves out a cast that it believes to change nothing.
        """
        name = fresh_name()
        shielded(stage, lambda: self._create(name, table), self._stop)
        self._kept.append(name)
        return shielded(stage, lambda: self._table(name))

    def upload(self, table: pa.Table, stage: str) -> ir.Table:
        """Put a small public table (the domain, a centre) beside the private one."""
        name = fresh_name()
        shielded(stage, lambda: self._upload(name, table), self._stop)
        self._kept.append(name)
        return shielded(stage, lambda: self._table(name))

    def drop(self, table: ir.Table) -> None:
        """Drop a kept table before the end."""
        name = table.get_name()
        if name in self._kept:
            self._kept.remove(name)
            self._drop(name)

    def fetch(self, table: ir.Table, stage: str) -> pa.Table:
        """Collect a result; callers fetch nothing larger than the domain, or than a tally by item and times."""
        return shielded(stage, lambda: self._fetch(table), self._stop)

    def check(self, table: ir.Table, stage: str) -> None:
        """Have the engine plan how it would compute `table`, by the schema alone: no row is read.

        What it cannot find or bind fails here, before a release is paid for.
        """
        shielded(stage, lambda: self._plan(table), self._stop)

    def exact(self, text: Any) -> Any:
        """A column of strings that are compared code point by code point, whatever collation the column has; null where
        they are not UTF-8.

        Under another collation "a" and "A" may be one key, and which of them stands for it is up to the rows. Engines
        do not hold Arrow, Parquet and Spark to UTF-8 when they read, but fail on other text at some later point.
        """
        return text

    def pattern(self, like: str) -> str:
        """A pattern of LIKE in which a backslash is a character like any other."""
        return like

    def tried(self, value: Any) -> Any:
        """The value, or null if the engine cannot compute it for a row: a second line behind `row_functions`."""
        return value

    def gives(self, table: ir.Table, types: Mapping[str, str], stage: str) -> bool:
        """Whether the engine itself says that the columns of `table` have these types, by the names of TYPES."""
        found = shielded(stage, lambda: self._types(table), self._stop)
        return all(found[name] in self.TYPES[kind] for name, kind in types.items())

    def on_close(self, act: Callable[[], None]) -> None:
        """Have `act` done at the end, after all else."""
        self._on_close.append(act)

    def close(self) -> None:
        """Drop all that was kept. Errors are passed over: the connection may be gone already."""
        for name in reversed(self._kept):
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

    def _stop(self) -> None:
        """End what the engine is doing for us, as soon as it can."""

    def _table(self, name: str) -> ir.Table:
        return self.backend.table(name)

    def _sql(self, table: ir.Table) -> str:
        """The SQL of a table whose memtables, if it has any, the engine then knows."""
        self.backend._register_in_memory_tables(table)
        return str(self.backend.compile(table))

    def _typed(self, table: ir.Table) -> str:
        """The SQL of a table whose integers have the types of its schema, by casts that Ibis does not see."""
        dialect, mapper = self.backend.dialect, self.backend.compiler.type_mapper
        columns = []
        for name, dtype in table.schema().items():
            quoted = sqlglot.to_identifier(name, quoted=True).sql(dialect)
            columns.append(f"CAST({quoted} AS {mapper.to_string(dtype)}) AS {quoted}" if dtype.is_integer() else quoted)
        return f"SELECT {', '.join(columns)} FROM ({self._sql(table)}) AS kept"

    def _plan(self, table: ir.Table) -> None:
        self._sql(table)

    def _fetch(self, table: ir.Table) -> pa.Table:
        return self.backend.to_pyarrow(table)

    def _types(self, table: ir.Table) -> dict[str, str]:
        raise NotImplementedError

    def _create(self, name: str, table: ir.Table) -> None:
        self.backend.raw_sql(f'CREATE TEMP TABLE "{name}" AS {self._typed(table)}')

    def _upload(self, name: str, table: pa.Table) -> None:
        self.backend.create_table(name, ibis.memtable(table), temp=True)

    def _drop(self, name: str) -> None:
        self.backend.raw_sql(f'DROP TABLE IF EXISTS "{name}"')


class DuckEngine(Engine):
    """DuckDB, embedded by default."""

    TYPES: Mapping[str, Sequence[str]] = {
        "integer": ("BIGINT",),
        "real": ("DOUBLE",),
        "string": ("VARCHAR",),
        "boolean": ("BOOLEAN",),
        "date": ("DATE",),
        "timestamp": ("TIMESTAMP",),
    }

    def __init__(self, backend: Any, on_close: Iterable[Callable[[], None]] = ()) -> None:
        super().__init__(backend, on_close)
        self._exact: Any = None

    @classmethod
    def embedded(cls) -> DuckEngine:
        """A private in-memory database that spills, if it must, to a folder only this user can read."""
        folder, remove = make_scratch()
        try:
            backend = ibis.duckdb.connect(
                temp_directory=folder,
                preserve_insertion_order=False,
                autoinstall_known_extensions=False,
                autoload_known_extensions=False,
            )
            backend.raw_sql("SET enable_progress_bar = false")  # it would print to standard output
        except BaseException:
            remove()
            raise

        def dispose() -> None:
            try:
                backend.disconnect()
            finally:
                remove()

        return cls(backend, [dispose])

    def exact(self, text: Any) -> Any:
        # Ibis has no COLLATE, but it can call a macro that has. The collation stays with the column in kept tables.
        # `encode` takes the bytes as they are, `decode` fails on those that are no text, and TRY makes a null of that.
        if self._exact is None:
            name = fresh_name()
            checked = "TRY(decode(encode(text::VARCHAR)))"
            self.backend.raw_sql(f'CREATE TEMP MACRO "{name}"(text) AS {checked} COLLATE "binary"')
            self._on_close.insert(0, lambda: self.backend.raw_sql(f'DROP MACRO "{name}"'))
            self._exact = _function(name)
        return self._exact(text)

    def tried(self, value: Any) -> Any:
        return _function("TRY", value.type())(value)

    def register(self, data: object) -> ir.Table:
        """Let DuckDB scan an Arrow object in place."""
        name = fresh_name()
        self.backend.con.register(name, data)
        self._on_close.insert(0, lambda: self.backend.con.unregister(name))
        return self._table(name)

    def _stop(self) -> None:
        # Without it, what other threads have begun would go on to the end of the table.
        self.backend.con.interrupt()

    def _create(self, name: str, table: ir.Table) -> None:
        # Ibis would create, insert and rename; in one statement DuckDB is a fifth faster.
        self.backend.con.execute(f'CREATE TEMP TABLE "{name}" AS {self._typed(table)}')

    def exchange(self, table: ir.Table, users: ir.Table, rows: ir.Table, stage: str) -> None:
        """Exchange the rows of these users in a kept table for others. All three are kept tables."""
        name, leaving, coming = (one.get_name() for one in (table, users, rows))
        columns = ", ".join(f'"{column}"' for column in table.columns)

        def act() -> None:
            self.backend.con.execute(f'DELETE FROM "{name}" USING "{leaving}" AS u WHERE "{name}"."user" = u."user"')
            self.backend.con.execute(f'INSERT INTO "{name}" SELECT {columns} FROM "{coming}"')

        shielded(stage, act, self._stop)

    def _plan(self, table: ir.Table) -> None:
        self.backend.con.execute(f"EXPLAIN {self._sql(table)}")

    def _types(self, table: ir.Table) -> dict[str, str]:
        return {row[0]: row[1] for row in self.backend.con.execute(f"DESCRIBE {self._sql(table)}").fetchall()}

    def _upload(self, name: str, table: pa.Table) -> None:
        source = fresh_name()
        self.backend.con.register(source, table)
        try:
            self.backend.con.execute(f'CREATE TEMP TABLE "{name}" AS SELECT * FROM "{source}"')
        finally:
            self.backend.con.unregister(source)


class SparkEngine(Engine):
    """Spark through PySpark: kept tables are cached data frames behind temporary views.

    The session is the user's. Until the end it has _SETTINGS: ANSI mode, since without it a sum that leaves 64 bits
    would wrap around silently, and no bound would hold; constants read in the way in which Ibis writes them; and no
    settings put in place of `${name}`, which could hold a quote and end the constant.
    """

    TYPES: Mapping[str, Sequence[str]] = {
        "integer": ("bigint",),
        "real": ("double",),
        "string": ("string",),
        "boolean": ("boolean",),
        "date": ("date",),
        "timestamp": ("timestamp", "timestamp_ntz"),
    }

    def __init__(self, backend: Any, session: Any, on_close: Iterable[Callable[[], None]] = ()) -> None:
        before = {name: session.conf.get(name) for name in _SETTINGS}
        super().__init__(backend, [*on_close, *(partial(session.conf.set, *one) for one in before.items())])
        for name, value in _SETTINGS.items():
            session.conf.set(name, value)
        self._session = session
        self._frames: dict[str, Any] = {}

    def exact(self, text: Any) -> Any:
        # A cast, which takes off a collation; Ibis would leave out its own.
        return _function("try_validate_utf8")(_function("string")(text))

    def pattern(self, like: str) -> str:
        return like.replace("\\", "\\\\")  # it escapes, and in front of most characters it is an error

    def _create(self, name: str, table: ir.Table) -> None:
        self._hold(name, self._session.sql(self._typed(table)))

    def _plan(self, table: ir.Table) -> None:
        self._session.sql(self._sql(table))

    def _fetch(self, table: ir.Table) -> pa.Table:
        # Ibis goes by way of pandas, which fails on moments far from today and rounds integers that stand beside nulls.
        return self._session.sql(self._sql(table)).toArrow().cast(table.schema().to_pyarrow())

    def _types(self, table: ir.Table) -> dict[str, str]:
        return dict(self._session.sql(self._sql(table)).dtypes)

    def _upload(self, name: str, table: pa.Table) -> None:
        self._hold(name, self._session.createDataFrame(table.to_pandas()))

    def _hold(self, name: str, frame: Any) -> None:
        frame = frame.cache()
        frame.count()  # fills the cache now: the source is read once, and later passes all see the same rows
        frame.createOrReplaceTempView(name)
        self._frames[name] = frame

    def _drop(self, name: str) -> None:
        self._session.catalog.dropTempView(name)
        self._frames.pop(name).unpersist()


def engine_for(backend: Any, on_close: Sequence[Callable[[], None]] = ()) -> Engine:
    """The engine for an Ibis backend that the caller connected."""
    if backend.name == "duckdb":
        return DuckEngine(backend, on_close)
    if backend.name == "pyspark":
        return SparkEngine(backend, backend._session, on_close)
    return Engine(backend, on_close)


def _function(name: str, dtype: dt.DataType = dt.string) -> Any:
    """A function of the engine, of one value and of its type, that Ibis does not know."""

    def value(value: Any) -> Any:
        raise NotImplementedError

    return ibis.udf.scalar.builtin(value, name=name, signature=((dtype,), dtype))


def fresh_name() -> str:
    return f"crowdgram_{uuid.uuid4().hex}"
