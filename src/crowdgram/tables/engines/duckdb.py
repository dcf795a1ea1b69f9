"""DuckDB as an engine: embedded, or as the caller connected it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa

from ...errors import PrivacyViolation
from ...interrupts import hold_interrupts
from ...shortage import check_room
from ..arrow import numbers_table
from ..relations import INTEGER, REAL, TEXT, Dialect, Relation, Value
from ..scratch import make_scratch
from .base import Engine, fresh_name, function, shield
from .resources import current_resources

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from .base import Table

__all__ = ["DuckEngine"]

_EXACT = 'TRY(decode(encode({}::VARCHAR))) COLLATE "binary"'
"""`encode` takes the bytes as they are, `decode` fails on those that are no text, and TRY makes a null of that. The
collation stays with the column in kept tables.
"""

_SETTINGS = {"TimeZone": "UTC", "Calendar": "gregorian"}

_ROOM = 320 * 2**20
"""Bytes of address space. With less of them DuckDB seldom comes through a release, and often crashes as it starts."""


def _set(connection: Any, name: str, value: str) -> None:
    quoted = value.replace("'", "''")
    connection.execute(f"SET {name} = '{quoted}'")


class DuckEngine(Engine):
    """DuckDB, embedded by default. A connection of the user's has _SETTINGS until the end, so that the day of a moment
    with a time zone does not depend on the session.
    """

    name = package = "duckdb"
    dialect = Dialect(
        quote='"',
        types={
            pa.int8(): "TINYINT",
            pa.int16(): "SMALLINT",
            pa.int32(): "INTEGER",
            INTEGER: "BIGINT",
            pa.uint8(): "UTINYINT",
            pa.uint16(): "USMALLINT",
            pa.uint32(): "UINTEGER",
            pa.uint64(): "UBIGINT",
            pa.float32(): "FLOAT",
            REAL: "DOUBLE",
            TEXT: "VARCHAR",
        },
        quotient="({} // {})",
        numbers="UNNEST(RANGE({}))",
        hexadecimal="CAST('0x' || {} AS BIGINT)",
    )
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
        """backend: of Ibis, or a connection of DuckDB."""
        self.con = getattr(backend, "con", backend)
        names = ", ".join(f"current_setting('{name}')" for name in _SETTINGS)
        before = dict(zip(_SETTINGS, self.con.execute(f"SELECT {names}").fetchall()[0], strict=True))
        other = {name: value for name, value in before.items() if value != _SETTINGS[name]}
        super().__init__(
            None if self.con is backend else backend,
            [*(partial(_set, self.con, *one) for one in other.items()), *on_close],
        )
        for name in other:
            _set(self.con, name, _SETTINGS[name])
        self._exact: Any = None
        self._text: set[str] = set()

    @classmethod
    def embedded(cls) -> DuckEngine:
        """A private in-memory database that spills, if it must, to a folder only this user can read.

        It may use what `current_resources` says.
        """
        given = current_resources()
        folder, remove = make_scratch(given.temp_directory)
        config = {
            "temp_directory": folder,
            "preserve_insertion_order": False,
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            **given.settings,
        }

        def start() -> DuckEngine:
            connection = duckdb.connect(config=config)

            def dispose() -> None:
                try:
                    connection.close()
                finally:
                    remove()

            connection.execute("SET enable_progress_bar = false")  # it would print to standard output
            connection.execute("SET python_enable_replacements = false")  # a variable of this process is no table
            # Of a stream it does not know how many rows come, and would put all of them into the hash table of a join.
            # The smaller table is on the right in all of our joins, where it belongs.
            connection.execute("SET disabled_optimizers = 'build_side_probe_side'")
            return cls(connection, [dispose])

        try:
            with hold_interrupts():
                import duckdb  # slow to load

            check_room(_ROOM)
            engine = shield("starting", start)  # it may lack memory
        except BaseException:
            remove()
            raise
        engine.obeys, engine.whole = given, True
        return engine

    @property
    def backend(self) -> Any:
        if self._backend is None:
            import ibis  # to load it takes longer than many a release

            self._backend = ibis.duckdb.from_connection(self.con)
        return self._backend

    def exact(self, text: Any) -> Any:
        import ibis.expr.operations as ops

        of = text.op()
        if isinstance(of, ops.Field) and isinstance(of.rel, ops.DatabaseTable) and of.rel.name in self._text:
            return text  # to look at it once more took a tenth of the time
        # Ibis has no COLLATE, but it can call a macro that has.
        if self._exact is None:
            name = fresh_name().upper()  # as functions are written
            self.con.execute(f'CREATE TEMP MACRO "{name}"(text) AS {_EXACT.format("text")}')
            self._on_close.insert(0, lambda: self.con.execute(f'DROP MACRO "{name}"'))
            self._exact = function(name)
        return self._exact(text)

    def plain_key(self, table: Relation, column: str) -> Value:
        """A column of integers or strings of an opened table, as `keys.key` has it."""
        value = table[column]
        if pa.types.is_integer(value.type):
            return value
        checked = value.sql if table.table_name in self._text else _EXACT.format(value.sql)
        return Value(checked, TEXT, self.dialect)

    def pattern(self, like: str) -> str:
        return like  # without ESCAPE, nothing escapes

    def tried(self, value: Any) -> Any:
        return function("TRY", value.type())(value)

    def operators(self, table: ir.Table) -> Iterator[str]:
        query, connection = self.backend.compile(table), self.con
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

    def with_text(self, table: Relation) -> Relation:
        """The same table, whose strings are known to be UTF-8, and have no collation: `exact` leaves them."""
        self._text.add(table.get_name())
        return table

    def view(self, query: str, types: Mapping[str, pa.DataType]) -> Relation:
        """A query of files, with these columns, that the engine binds now."""
        name = fresh_name()
        self.con.execute(f'CREATE TEMP VIEW "{name}" AS {query}')
        self._on_close.insert(0, lambda: self.con.execute(f'DROP VIEW "{name}"'))
        return Relation.named(self.dialect, name, types)

    def register(self, data: Any) -> Relation:
        """Let DuckDB scan an Arrow object in place. It must leave the columns their names (`columns.all_or`)."""
        name = fresh_name()
        self.con.register(name, data)
        self._on_close.insert(0, lambda: self.con.unregister(name))
        if [row[0] for row in self.con.execute(f'DESCRIBE SELECT * FROM "{name}"').fetchall()] != data.schema.names:
            raise PrivacyViolation(
                "the engine renamed columns, and may take one for another. This is a fault of Crowdgram: please report "
                "it. No row was read."
            )
        return Relation.named(self.dialect, name, {field.name: field.type for field in data.schema})

    def _stop(self) -> None:
        # Without it, what other threads have begun would go on to the end of the table.
        self.con.interrupt()

    def exchange(self, table: Relation, users: Relation, rows: Relation, stage: str) -> None:
        """Exchange the rows of these users in a kept table for others. All three are kept tables."""
        name, leaving, coming = table.source, users.source, rows.select(*table.columns).sql

        def act() -> None:
            self.con.execute(f'DELETE FROM {name} USING {leaving} AS u WHERE {name}."user" = u."user"')
            self.con.execute(f"INSERT INTO {name} {coming}")

        shield(stage, act, self._stop)

    def _plan(self, table: Table) -> None:
        self.con.execute(f"EXPLAIN {self._sql(table)}")

    def _fetch(self, table: Relation) -> pa.Table:
        if all(kind in (INTEGER, REAL) for kind in table.types.values()):
            return self._rows(table.typed())
        found = self.con.sql(table.typed()).to_arrow_table()
        schema = pa.schema(list(table.types.items()))
        return found if found.schema.equals(schema) else found.cast(schema)  # slow to load

    def _count_by_bin(self, values: Relation, edges: Sequence[str]) -> pa.Table:
        """By the engine's own histogram: to plan as many cases takes longer than to count users."""
        if len(edges) == 1:
            return super()._count_by_bin(values, edges)
        kind, above = ("BIGINT", str(2**63 - 1)) if values.types["value"] == INTEGER else ("DOUBLE", "'inf'")
        # Above all bounds are, as in a comparison by halving, also nulls and what is no number.
        bounded = f"CASE WHEN value <= {edges[-2]} THEN value ELSE {above} END"
        found = self.con.execute(
            "SELECT UNNEST(MAP_KEYS(bins)) AS bound, CAST(UNNEST(MAP_VALUES(bins)) AS BIGINT) AS total FROM (SELECT "
            f"HISTOGRAM(CAST({bounded} AS {kind}), CAST([{', '.join(edges[:-1])}] AS {kind}[])) AS bins "
            f"FROM {values.source} AS measured) AS counted"
        ).fetchnumpy()
        bounds = np.array([int(edge) if kind == "BIGINT" else float(edge) for edge in edges[:-1]])
        some = found["total"] > 0
        return numbers_table({"idx": np.searchsorted(bounds, found["bound"][some]), "total": found["total"][some]})

    def _rows(self, query: str) -> pa.Table:
        found = self.con.execute(query).fetchnumpy()  # a relation would be planned twice
        if any(type(values) is not np.ndarray and np.ma.is_masked(values) for values in found.values()):
            return pa.table(
                {name: pa.array(values.data, mask=np.ma.getmaskarray(values)) for name, values in found.items()}
            )
        return numbers_table(found)

    def _types(self, table: ir.Table) -> dict[str, str]:
        return {row[0]: row[1] for row in self.con.execute(f"DESCRIBE {self._sql(table)}").fetchall()}

    def _create(self, name: str, query: str) -> None:
        self.con.execute(f'CREATE TEMP TABLE "{name}" AS {query}')

    def _upload(self, name: str, table: pa.Table) -> None:
        source = fresh_name()
        self.con.register(source, table)
        try:
            self.con.execute(f'CREATE TEMP TABLE "{name}" AS SELECT * FROM "{source}"')
        finally:
            self.con.unregister(source)

    def _drop(self, name: str) -> None:
        self.con.execute(f'DROP TABLE IF EXISTS "{name}"')
