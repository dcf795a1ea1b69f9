"""Tables in databases: DuckDB and SQLite files, PostgreSQL, and Spark's catalogue.

A DuckDB file is attached to the embedded engine, read-only, and a Spark table stays in Spark. From SQLite and
PostgreSQL the columns that are needed, and no others, are streamed into the embedded engine in batches: so the sums
are the same integers whatever the database, nothing is written there, and memory does not grow with the table.

No SQL of the caller is run: of a query, the table is opened by its name, and the rest is rebuilt (`queries`). What a
view computes, its database computes; whoever made the view is responsible for it. Errors never quote a row.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..errors import InvalidArgument, UnreadableSource
from .addresses import Database, Name, existing_file, no_table, resolved_kind
from .columns import MissingColumn, check_columns
from .engines import DuckEngine, Engine, fresh_name, shield
from .postgres import borrowed_columns, borrowed_rows, open_postgres, postgres_column
from .sqlite import declared_type, lite_batches, open_sqlite, sqlite_column
from .streams import Check, batches, or_raise, quoted, selected, stream

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from .engines.base import Table

__all__ = ["asked_of", "open_database", "open_ibis"]

_STAGE = "reading the database"
_DUCKDB_TABLES = """
    SELECT s, t FROM (
        SELECT database_name AS d, schema_name AS s, table_name AS t FROM duckdb_tables() WHERE NOT internal
        UNION ALL SELECT database_name, schema_name, view_name FROM duckdb_views() WHERE NOT internal
    ) WHERE d = ? AND lower(s) = lower(?) AND lower(t) = lower(?)"""
"""Tables and views of the file, by name: none of the engine's own, which tell of its storage and settings."""


def open_database(database: Database, columns: Sequence[str] | None, user: str) -> tuple[Engine, Table]:
    """An engine and a table that has at least `columns`. No row is read before the engine asks for it."""
    openers = {"duckdb": _open_duckdb, "sqlite": open_sqlite, "postgres": open_postgres}
    opener = openers[resolved_kind(database)]
    return asked_of(database, columns, user, lambda name, needed, check: opener(database, name, needed, user, check))


def asked_of(
    database: Database,
    columns: Sequence[str] | None,
    user: str,
    opener: Callable[[Name, Any, Check], tuple[Engine, Table]],
) -> tuple[Engine, Table]:
    """The table, or what the query asks of its table, which `opener` opens by its name if the names of all its columns
    pass a check.
    """
    if database.query is None:
        name = tuple((database.table or "").split("."))
        _check_name("table", database.table, name)
        return opener(name, columns, lambda names: check_columns(names, columns))
    from .queries import read_query
    from .row_wise import check_row_wise

    query = read_query(database.query, user)
    _check_name("query", database.query, query.table)
    needed = query.needed(columns)

    def check(names: Sequence[str]) -> None:
        query.check_star(names)
        check_columns(names, needed)

    try:
        engine, table = opener(query.table, needed, check)
    except MissingColumn as error:
        if error.column in (columns or ()):
            raise
        said = str(error)
    else:
        try:
            opened = engine.as_ibis(table)
            asked = query.apply(engine, opened)
            check_row_wise(engine, asked, opened, "opening the table")
            return engine, asked
        except BaseException:
            engine.close()
            raise
    raise InvalidArgument(f"query={database.query!r}: {said}", argument="query")


def open_ibis(backend: Any, table: ir.Table, user: str) -> tuple[Engine, Table] | None:
    """An Ibis table on SQLite or PostgreSQL, read like a table of these databases; None for other backends.

    Ibis' own way to Arrow fails on values that do not fit the schema, so that a row decides over a release.
    """
    if backend.name not in ("sqlite", "postgres"):
        return None
    query = shield(_STAGE, lambda: _compile(backend, table))
    if backend.name == "postgres":
        described, codec = shield(_STAGE, lambda: borrowed_columns(backend.con, query))
        parts = [postgres_column(name, kind) for name, kind in described]
        rows = borrowed_rows(backend.con, selected(parts, query).encode(codec))
        return stream(parts, batches(parts, rows, codec))
    parts = [sqlite_column(name, declared_type(dtype), user) for name, dtype in table.schema().items()]
    # A connection to SQLite belongs to its thread, and the engine reads in others: so the rows are read here.
    read = shield(_STAGE, lambda: list(lite_batches(parts, backend.con, query)))
    return stream(parts, read)


def _check_name(argument: str, given: str | None, name: Name) -> None:
    if not all(re.fullmatch(r"[^\x00\"]+", part) for part in name):
        raise InvalidArgument(
            f"{argument}={given!r}: needs the name of a table, or of a schema and a table.", argument=argument
        )


def _open_duckdb(
    database: Database, name: Name, _columns: Sequence[str] | None, _user: str, check: Check
) -> tuple[Engine, Table]:
    path = existing_file(database)
    missing = no_table(database, name)
    engine = DuckEngine.embedded()
    try:
        connection = engine.con
        attached = fresh_name()
        file = path.replace("'", "''")
        or_raise(
            lambda: connection.execute(f"ATTACH '{file}' AS \"{attached}\" (READ_ONLY)"),
            UnreadableSource(f"address={database.shown}: cannot be opened. It is not a DuckDB file, or it is in use."),
        )
        engine.before_close(lambda: connection.execute(f'DETACH "{attached}"'))
        # The file is not made the default: names of functions would be looked up there first, among its macros.
        listed = attached, (name[-2] if len(name) > 1 else "main"), name[-1]
        found = (
            or_raise(lambda: connection.execute(_DUCKDB_TABLES, listed).fetchall(), missing) if len(name) < 3 else []
        )
        if len(found) != 1:
            raise missing
        view = fresh_name()
        exact = quoted((attached, *found[0]))
        or_raise(lambda: connection.execute(f'CREATE TEMP VIEW "{view}" AS SELECT * FROM {exact}'), missing)
        table = engine.backend.table(view)
        check(list(table.columns))
        return engine, table
    except BaseException:
        engine.close()
        raise


def _compile(backend: Any, table: ir.Table) -> str:
    """An Ibis table as a subquery; what it needs of the caller's memory is put in place first."""
    backend._run_pre_execute_hooks(table)
    return f"({backend.compile(table)}) AS crowdgram_query"
