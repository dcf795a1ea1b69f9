"""SQLite: a file, or a connection of the caller, whose rows are streamed into the embedded engine.

Types come from the declared types of the columns. SQLite enforces none: a value of another type than its column
declares is read as missing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pyarrow as pa

from ..errors import UnreadableSource
from . import streams
from .addresses import Database, Name, existing_file, no_table
from .arrow import UTF8
from .engines import Engine
from .streams import Check, Column, batches, or_raise, quoted, selected, stream, wanted

if TYPE_CHECKING:
    import sqlite3

    from .engines.base import Table

__all__ = ["declared_type", "lite_batches", "open_sqlite", "sqlite_column"]

_ISO_DATE = "-".join("[0-9]" * digits for digits in (4, 2, 2))


def open_sqlite(
    database: Database, name: Name, columns: Sequence[str] | None, user: str, check: Check
) -> tuple[Engine, Table]:
    import sqlite3  # most tables are not in it

    path = existing_file(database)
    wrong = UnreadableSource(
        f"address={database.shown}: cannot be opened. It is not an SQLite file, or it cannot be read."
    )
    address = f"file:{quote(os.path.abspath(path))}?mode=ro"

    def connect() -> sqlite3.Connection:
        return sqlite3.connect(address, uri=True, check_same_thread=False)

    connection = or_raise(connect, wrong)
    with closing(connection):
        or_raise(lambda: connection.execute("SELECT count(*) FROM sqlite_master").fetchone(), wrong)
        declared = _sqlite_columns(connection, database, name)
    parts = [sqlite_column(name, kind, user) for name, kind in wanted(declared, columns, check)]

    def rows() -> Iterator[pa.RecordBatch]:
        with closing(connect()) as own:
            yield from lite_batches(parts, own, quoted(name))

    return stream(parts, rows())


def lite_batches(parts: Sequence[Column], connection: sqlite3.Connection, source: str) -> Iterator[pa.RecordBatch]:
    """The rows of a table or subquery. Texts come as the bytes that are stored: SQLite does not hold them to its
    encoding, Python's own conversion would fail, and SQLite's from UTF-16 makes one text of two.
    """
    # A query of a table: before the first one, a connection has not looked at the file.
    letter = connection.execute("SELECT CAST('a' AS BLOB), count(*) FROM sqlite_master").fetchone()[0]
    codec = {b"a": UTF8, b"a\0": "utf-16-le", b"\0a": "utf-16-be"}[letter]
    cursor = connection.execute(selected(parts, source))
    yield from batches(parts, iter(lambda: cursor.fetchmany(streams.BATCH), []), codec)


def _sqlite_columns(connection: sqlite3.Connection, database: Database, name: Name) -> list[tuple[str, str]]:
    """Names and declared types."""
    missing = no_table(database, name)
    if name not in ((name[-1],), ("main", name[-1])):
        raise missing
    # Not what SQLite has for tables of its own (its list of them, statistics, sequences), which are made of all users'
    # rows; nor virtual tables, which may be aggregates, and what these keep their contents in.
    virtual = "coalesce(upper({}.sql), '') LIKE 'CREATE VIRTUAL%'"
    listed = (
        "SELECT 1 FROM main.sqlite_master t WHERE t.type IN ('table', 'view') AND t.name = ? COLLATE NOCASE "
        f"AND lower(substr(t.name, 1, 7)) <> 'sqlite_' AND NOT {virtual.format('t')} "
        f"AND NOT EXISTS (SELECT 1 FROM main.sqlite_master v WHERE {virtual.format('v')} "
        "AND lower(substr(t.name, 1, length(v.name) + 1)) = lower(v.name) || '_')"
    )
    if not or_raise(lambda: connection.execute(listed, (name[-1],)).fetchall(), missing):
        raise missing
    asked = "SELECT name, type FROM pragma_table_xinfo(?, 'main')"  # PRAGMA takes no parameters, but its function does
    return or_raise(lambda: connection.execute(asked, (name[-1],)).fetchall(), missing)


def sqlite_column(name: str, declared: str, user: str) -> Column:
    """By the rules of SQLite's column affinity, and what people write for dates and booleans."""
    column, kind = quoted(name), declared.upper()
    integer = f"CASE typeof({column}) WHEN 'integer' THEN {column} END"
    # Two floats that differ in the 16th digit are one as text; quoted, they are two.
    text = f"CASE typeof({column}) WHEN 'real' THEN quote({column}) WHEN 'blob' THEN NULL ELSE {column} END"
    text = f"CAST(CAST({text} AS TEXT) AS BLOB)"
    if "INT" in kind:
        return Column(name, integer, pa.int64())
    if "BOOL" in kind:
        return Column(name, f"CASE WHEN {column} IN (0, 1) THEN {integer} END", pa.int64(), "boolean")
    if kind == "DATE":
        # Users are told apart by the text: it must be the only one for its date.
        strict = f"CASE WHEN {column} GLOB '{_ISO_DATE}' THEN {text} END"
        return Column(name, strict if name == user else text, pa.string(), "date")
    if kind.startswith(("DATETIME", "TIMESTAMP")):
        return Column(name, text, pa.string(), "timestamp(6)")
    if any(part in kind for part in ("REAL", "FLOA", "DOUB", "DEC", "NUM")):
        return Column(name, f"CASE WHEN typeof({column}) IN ('integer', 'real') THEN {column} + 0.0 END", pa.float64())
    return Column(name, text, pa.string())


def declared_type(dtype: Any) -> str:
    """What SQLite would call a column of this Ibis type."""
    names = {"integer": "INTEGER", "boolean": "BOOLEAN", "date": "DATE", "timestamp": "TIMESTAMP", "floating": "REAL"}
    names["decimal"] = "REAL"
    return next((name for kind, name in names.items() if getattr(dtype, f"is_{kind}")()), "")
