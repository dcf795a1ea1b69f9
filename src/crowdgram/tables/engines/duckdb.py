"""DuckDB as an engine: embedded, or as the caller connected it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import ibis
import ibis.expr.operations as ops
import pyarrow as pa

from ...errors import PrivacyViolation
from ..arrow import numbers_table
from ..scratch import make_scratch
from .base import Engine, fresh_name, function, shield
from .resources import current_resources
from .shapes import compile_by_shape

if TYPE_CHECKING:
    import ibis.expr.types as ir

__all__ = ["DuckEngine"]


_PLAIN = frozenset({pa.int64(), pa.string(), pa.large_string()})
"""Types of Arrow whose type in DuckDB is known without asking."""

_SETTINGS = {"TimeZone": "UTC", "Calendar": "gregorian"}


def _set(connection: Any, name: str, value: str) -> None:
    quoted = value.replace("'", "''")
    connection.execute(f"SET {name} = '{quoted}'")


class DuckEngine(Engine):
    """DuckDB, embedded by default. A connection of the user's has _SETTINGS until the end, so that the day of a moment
    with a time zone does not depend on the session.
    """

    package = "duckdb"
    TYPES: ClassVar[Mapping[str, Sequence[str]]] = {
        "integer": ("BIGINT",),
        "real": ("DOUBLE",),
        "string": ("VARCHAR",),
        "boolean": ("BOOLEAN",),
        "date": ("DATE",),
        "timestamp": ("TIMESTAMP",),
    }
    ROW_WISE = frozenset({"PROJECTION", "FILTER", "DUMMY_SCAN"})

    def __init__(self, backend: Any, on_close: Iterable[Callable[[], None]] = ()) -> None:
        names = ", ".join(f"current_setting('{name}')" for name in _SETTINGS)
        before = dict(zip(_SETTINGS, backend.con.execute(f"SELECT {names}").fetchall()[0], strict=True))
        other = {name: value for name, value in before.items() if value != _SETTINGS[name]}
        super().__init__(backend, [*(partial(_set, backend.con, *one) for one in other.items()), *on_close])
        for name in other:
            _set(backend.con, name, _SETTINGS[name])
        self._exact: Any = None
        self._text: set[str] = set()

    @classmethod
    def embedded(cls) -> DuckEngine:
        """A private in-memory database that spills, if it must, to a folder only this user can read.

        It may use what `current_resources` says.
        """
        given = current_resources()
        folder, remove = make_scratch(given.temp_directory)

        def start() -> DuckEngine:
            backend = ibis.duckdb.connect(
                temp_directory=folder,
                preserve_insertion_order=False,
                autoinstall_known_extensions=False,
                autoload_known_extensions=False,
                **given.settings,
            )

            def dispose() -> None:
                try:
                    backend.disconnect()
                finally:
                    remove()

            backend.raw_sql("SET enable_progress_bar = false")  # it would print to standard output
            # Of a stream it does not know how many rows come, and would put all of them into the hash table of a join.
            # The smaller table is on the right in all of our joins, where it belongs.
            backend.raw_sql("SET disabled_optimizers = 'build_side_probe_side'")
            return cls(backend, [dispose])

        try:
            engine = shield("starting", start)  # it may lack memory
        except BaseException:
            remove()
            raise
        engine.obeys, engine.whole = given, True
        return engine

    def exact(self, text: Any) -> Any:
        of = text.op()
        if isinstance(of, ops.Field) and isinstance(of.rel, ops.DatabaseTable) and of.rel.name in self._text:
            return text  # to look at it once more took a tenth of the time
        # Ibis has no COLLATE, but it can call a macro that has. The collation stays with the column in kept tables.
        # `encode` takes the bytes as they are, `decode` fails on those that are no text, and TRY makes a null of that.
        if self._exact is None:
            name = fresh_name().upper()  # as functions are written
            checked = "TRY(decode(encode(text::VARCHAR)))"
            self.backend.raw_sql(f'CREATE TEMP MACRO "{name}"(text) AS {checked} COLLATE "binary"')
            self._on_close.insert(0, lambda: self.backend.raw_sql(f'DROP MACRO "{name}"'))
            self._exact = function(name)
        return self._exact(text)

    def pattern(self, like: str) -> str:
        return like  # without ESCAPE, nothing escapes

    def hexadecimal(self, digits: Any) -> Any:
        return (ibis.literal("0x") + digits).cast("int64")

    def tried(self, value: Any) -> Any:
        return function("TRY", value.type())(value)

    def operators(self, table: ir.Table) -> Iterator[str]:
        query, connection = compile_by_shape(self.backend, table), self.backend.con
        # The connection may be the caller's: its setting is put back.
        before = connection.execute("SELECT current_setting('explain_output')").fetchone()[0]
        connection.execute("SET explain_output = 'all'")
        try:
            plans = dict(connection.execute(f"EXPLAIN (FORMAT json) {query}").fetchall())
        finally:
            connection.execute(f"SET explain_output = '{before}'")
        todo = json.loads(plans["logical_plan"])
        while todo:
            one = todo.pop()
            todo += one["children"]
            yield one["name"].strip()

    def with_text(self, table: ir.Table) -> ir.Table:
        """The same table, whose strings are known to be UTF-8, and have no collation: `exact` leaves them."""
        self._text.add(table.get_name())
        return table

    def register(self, data: Any) -> ir.Table:
        """Let DuckDB scan an Arrow object in place. It must leave the columns their names (`columns.all_or`)."""
        name = fresh_name()
        self.backend.con.register(name, data)
        self._on_close.insert(0, lambda: self.backend.con.unregister(name))
        table = self._table(name)
        if list(table.columns) != data.schema.names:
            raise PrivacyViolation(
                "the engine renamed columns, and may take one for another. This is a fault of Crowdgram: please report "
                "it. No row was read."
            )
        return table

    def _stop(self) -> None:
        # Without it, what other threads have begun would go on to the end of the table.
        self.backend.con.interrupt()

    def _create(self, name: str, table: ir.Table) -> None:
        # Ibis would create, insert and rename; in one statement DuckDB is a fifth faster.
        self.backend.con.execute(f'CREATE TEMP TABLE "{name}" AS {self._typed(table)}')

    def _kept_as(self, name: str, made_of: ir.Table, /) -> ir.Table:
        # Columns have the types that Ibis states: to ask for them takes as long as to make a small table.
        return ops.DatabaseTable(name, schema=made_of.schema(), source=self.backend).to_expr()

    def _uploaded_as(self, name: str, table: pa.Table, /) -> ir.Table:
        if not _PLAIN.issuperset(table.schema.types):
            return self._table(name)
        return ops.DatabaseTable(name, schema=ibis.Schema.from_pyarrow(table.schema), source=self.backend).to_expr()

    def exchange(self, table: ir.Table, users: ir.Table, rows: ir.Table, stage: str) -> None:
        """Exchange the rows of these users in a kept table for others. All three are kept tables."""
        name, leaving, coming = (one.get_name() for one in (table, users, rows))
        columns = ", ".join(f'"{column}"' for column in table.columns)

        def act() -> None:
            self.backend.con.execute(f'DELETE FROM "{name}" USING "{leaving}" AS u WHERE "{name}"."user" = u."user"')
            self.backend.con.execute(f'INSERT INTO "{name}" SELECT {columns} FROM "{coming}"')

        shield(stage, act, self._stop)

    def _plan(self, table: ir.Table) -> None:
        self.backend.con.execute(f"EXPLAIN {self._sql(table)}")

    def _fetch(self, table: ir.Table) -> pa.Table:
        # As Ibis does it, without the part of Ibis that loads pandas.
        found = self.backend.con.sql(self._typed(table)).to_arrow_table()
        schema = table.schema().to_pyarrow()
        return found if found.schema.equals(schema) else found.cast(schema)  # slow to load

    def _rows(self, query: str) -> pa.Table:
        return numbers_table(self.backend.con.execute(query).fetchnumpy())  # a relation would be planned twice

    def _types(self, table: ir.Table) -> dict[str, str]:
        return {row[0]: row[1] for row in self.backend.con.execute(f"DESCRIBE {self._sql(table)}").fetchall()}

    def _upload(self, name: str, table: pa.Table) -> None:
        source = fresh_name()
        self.backend.con.register(source, table)
        try:
            self.backend.con.execute(f'CREATE TEMP TABLE "{name}" AS SELECT * FROM "{source}"')
        finally:
            self.backend.con.unregister(source)
