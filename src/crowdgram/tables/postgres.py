"""PostgreSQL: a server, or a connection of the caller, whose rows are streamed into the embedded engine.

Types are the server's own. Errors name the database without user name or password.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ..errors import MissingDependency, UnreadableSource
from ..shortage import is_shortage
from . import streams
from .addresses import Database, Name, no_table, without_options
from .arrow import UTF8
from .engines import Engine, fresh_name
from .streams import Check, Column, batches, or_raise, quoted, selected, stream, wanted

if TYPE_CHECKING:
    from .engines.base import Table

__all__ = ["borrowed_columns", "borrowed_rows", "open_postgres", "postgres_column"]

_AS_STORED = "SQL_ASCII"
"""The encoding of a client that gets text as the server's bytes. To convert them, server and driver would fail on some:
no server holds text to all that its encoding leaves out.
"""


def open_postgres(
    database: Database, name: Name, columns: Sequence[str] | None, _: str, check: Check
) -> tuple[Engine, Table]:
    try:
        import psycopg
    except ImportError as error:
        if is_shortage(error):
            raise
        raise MissingDependency(
            "psycopg is not installed: pip install 'crowdgram[postgres]'.", name="psycopg"
        ) from None

    address = without_options(database.address)

    def connect(encoding: str) -> Any:
        connection = psycopg.connect(address, connect_timeout=10, client_encoding=encoding)
        connection.read_only = True
        return connection

    with closing(_connect(lambda: connect("UTF8"), database)) as connection:
        described = _postgres_columns(connection, database, name)
        unknown = (
            f"address={database.shown}: is in an encoding that Python does not know. Copy the table to one in UTF8."
        )
        codec = or_raise(lambda: _codec(connection), UnreadableSource(unknown))
    parts = [postgres_column(name, kind) for name, kind in wanted(described, columns, check)]

    def rows() -> Iterator[list[tuple[Any, ...]]]:
        with closing(connect(_AS_STORED)) as own:
            yield from _fetch(own, selected(parts, quoted(name)).encode(codec))

    return stream(parts, batches(parts, rows(), codec))


def _codec(connection: Any) -> str:
    """What Python calls the encoding of the server; the connection is in it from here on."""
    server = connection.info.parameter_status("server_encoding")
    if server == _AS_STORED:
        return UTF8
    connection.execute("SELECT set_config('client_encoding', %s, true)", (server,))
    return str(connection.info.encoding)


def _fetch(connection: Any, query: bytes) -> Iterator[list[tuple[Any, ...]]]:
    # Not by the driver's own named cursor, which reads the query as ASCII if the client has no encoding.
    name = fresh_name()
    with connection.cursor(binary=True) as cursor:
        cursor.execute(f"DECLARE {name} NO SCROLL CURSOR FOR ".encode() + query)
        while batch := cursor.execute(f"FETCH {streams.BATCH} FROM {name}", prepare=False).fetchall():
            yield batch
        cursor.execute(f"CLOSE {name}")


def borrowed_rows(connection: Any, query: bytes) -> Iterator[list[tuple[Any, ...]]]:
    """On a connection of the caller, which is left as it was."""
    with _in_encoding(connection, _AS_STORED):
        yield from _fetch(connection, query)


def borrowed_columns(connection: Any, source: str) -> tuple[list[tuple[str, str]], str]:
    with _in_encoding(connection, "UTF8"):
        return _describe(connection, source), _codec(connection)


@contextmanager
def _in_encoding(connection: Any, encoding: str) -> Iterator[None]:
    before = connection.info.parameter_status("client_encoding")
    choose = "SELECT set_config('client_encoding', %s, true)"
    with connection.transaction():
        connection.execute(choose, (encoding,))
        yield
        connection.execute(choose, (before,))


def _connect(connect: Callable[[], Any], database: Database) -> Any:
    # The driver's words hold the user's name and the host's address: only what they are about is passed on.
    reason = ""
    try:
        return connect()
    except Exception as error:  # noqa: BLE001
        reason = str(error)
    if "password" in reason or "authentication" in reason:
        what = "it refuses the user name or password"
    elif "does not exist" in reason:
        what = "it has no such database or user"
    else:
        what = "no server answers there"
    raise UnreadableSource(f"address={database.shown}: cannot be opened, as {what}. Check the address.")


def _postgres_columns(connection: Any, database: Database, name: Name) -> list[tuple[str, str]]:
    """Names and types, as the server describes a query without running it for any row."""
    missing = no_table(database, name)
    # Not the tables and views of the server and of its extensions, nor sequences: made of all users' rows.
    asked = (
        "SELECT relnamespace::regnamespace::text FROM pg_class WHERE oid = to_regclass(%s) AND relkind IN "
        "('r', 'p', 'v', 'm', 'f') AND NOT EXISTS (SELECT 1 FROM pg_depend WHERE classid = 'pg_class'::regclass "
        "AND objid = pg_class.oid AND deptype = 'e')"
    )
    found = or_raise(lambda: connection.execute(asked, (quoted(name),)).fetchone(), missing)
    if found is None or found[0].startswith(("pg_", "information_schema")):
        raise missing
    return or_raise(lambda: _describe(connection, quoted(name)), missing)


def _describe(connection: Any, source: str) -> list[tuple[str, str]]:
    cursor = connection.execute(f"SELECT * FROM {source} LIMIT 0")
    codes = [column.type_code for column in cursor.description]
    found = connection.execute("SELECT oid::int8, typname FROM pg_type WHERE oid = ANY(%s)", (codes,)).fetchall()
    names = dict(found)
    return [(column.name, names[column.type_code]) for column in cursor.description]


def postgres_column(name: str, kind: str) -> Column:
    column = quoted(name)
    if kind in ("int2", "int4", "int8"):
        return Column(name, f"{column}::int8", pa.int64())
    if kind == "bool":
        return Column(name, column, pa.bool_())
    if kind == "date":
        return Column(name, _finite(column), pa.date32())
    if kind == "timestamp":
        return Column(name, _finite(column), pa.timestamp("us"))
    if kind == "timestamptz":
        return Column(name, _finite(f"({column} AT TIME ZONE 'UTC')"), pa.timestamp("us"))
    if kind == "uuid":
        return Column(name, f"{column}::text", pa.string(), "uuid")
    if kind == "numeric":
        return Column(name, f"{column}::text", pa.string(), "float64")  # the server refuses to make 1e400 a float
    if kind in ("float4", "float8"):
        return Column(name, f"{column}::float8", pa.float64())
    return Column(name, f"{column}::text", pa.string())  # text of any kind, enums


def _finite(moment: str) -> str:
    """Null if Python has no such date."""
    return f"CASE WHEN {moment} >= '0001-01-01' AND {moment} < '10000-01-01' THEN {moment} END"
