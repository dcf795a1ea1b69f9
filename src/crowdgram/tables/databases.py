"""Tables in databases: DuckDB and SQLite files, PostgreSQL, and Spark's catalogue.

A DuckDB file is attached to the embedded engine, read-only, and a Spark table stays in Spark. From SQLite and
PostgreSQL the columns that are needed, and no others, are streamed into the embedded engine in batches: so the sums
are the same integers whatever the database, nothing is written there, and memory does not grow with the table.

No SQL of the caller is run: of a query, the table is opened by its name, and the rest is rebuilt (`queries`). What a
view computes, its database computes; whoever made the view is responsible for it.

Types come from the declared types of the columns. SQLite enforces none: a value of another type than its column
declares is read as missing. Errors name the database without user name or password, and never quote a row.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit, urlunsplit

import pyarrow as pa

from ..errors import InvalidArgument, InvalidTable, MissingDependency, UnreadableSource
from .arrow import UTF8, as_text
from .columns import MissingColumn, check_columns
from .engines import DuckEngine, Engine, fresh_name, shield
from .queries import read_query
from .row_wise import check_row_wise

if TYPE_CHECKING:
    import ibis.expr.types as ir

__all__ = [
    "ADDRESSES",
    "Database",
    "as_database",
    "asked_of",
    "is_address",
    "open_database",
    "open_ibis",
    "quoted",
    "resolved_kind",
]

T = TypeVar("T")

Name = tuple[str, ...]
"""A table's name: perhaps a database, perhaps a schema, and the name."""

BATCH = 50_000
"""Rows that are in memory at once on their way into the engine."""

_SCHEMES = {"duckdb": "duckdb", "sqlite": "sqlite", "postgresql": "postgres", "postgres": "postgres", "spark": "spark"}
_NAMED = [f"{scheme}:" for scheme in _SCHEMES if scheme != "postgres"]  # a shorter name for postgresql
ADDRESSES = f"{', '.join(_NAMED[:-1])} or {_NAMED[-1]}"
"""How addresses start, for errors."""
_FILES = (".duckdb", ".ddb", ".sqlite", ".sqlite3", ".db")
_STAGE = "reading the database"
_DUCKDB_TABLES = """
    SELECT s, t FROM (
        SELECT database_name AS d, schema_name AS s, table_name AS t FROM duckdb_tables() WHERE NOT internal
        UNION ALL SELECT database_name, schema_name, view_name FROM duckdb_views() WHERE NOT internal
    ) WHERE d = ? AND lower(s) = lower(?) AND lower(t) = lower(?)"""
"""Tables and views of the file, by name: none of the engine's own, which tell of its storage and settings."""
_ISO_DATE = "-".join("[0-9]" * digits for digits in (4, 2, 2))


@dataclass(frozen=True)
class Database:
    """A table of a database, by name, or what a query gives.

    address: `duckdb:///file.duckdb`, `sqlite:///file.db` (three slashes for a relative path, four for an absolute one),
    `postgresql://user@host/name`, `spark:`, or just the path of a DuckDB or SQLite file. The address may end in
    `?table=NAME` instead of `table`.
    """

    address: str = field(repr=False)
    table: str | None = None
    query: str | None = None

    def __post_init__(self) -> None:
        if not is_address(self.address):
            raise InvalidArgument(
                f"address: needs to be a DuckDB or SQLite file, or to start with {ADDRESSES}.",
                argument="address",
            )
        given = _options(self.address)
        for name in ("table", "query"):
            if name in given:
                if getattr(self, name) is not None:
                    raise InvalidArgument(
                        f"{name}: is given in the address and beside it. Give it once.", argument=name
                    )
                object.__setattr__(self, name, given[name])
        if (self.table is None) == (self.query is None):
            raise InvalidArgument(
                f"table: {self.shown} needs table or query, and not both. Give one.", argument="table"
            )

    @property
    def kind(self) -> str:
        return _kind(self.address) or ""

    @property
    def path(self) -> str | None:
        """The file, where there is one."""
        return _path(self.address) if self.kind in ("duckdb", "sqlite", "file") else None

    @property
    def shown(self) -> str:
        """The address without user name, password and options."""
        if self.path is not None:
            return repr(self.path)
        parts = urlsplit(self.address)
        host = (parts.hostname or "") + (f":{parts.port}" if _port(parts) else "")
        return repr(f"{parts.scheme}://{host}{parts.path}" if self.kind == "postgres" else f"{parts.scheme}:")


def is_address(source: object) -> bool:
    """Whether `source` is the address or the path of a database of a kind that we know."""
    return isinstance(source, str) and _kind(source) is not None


def as_database(source: object) -> Database | None:
    """`source` as a database, if it is the address of one."""
    if isinstance(source, Database):
        return source
    scheme = re.match(r"([A-Za-z][A-Za-z0-9+.-]*)://", source) if isinstance(source, str) else None
    if scheme is not None and not is_address(source):
        # Not the rest of it, which may hold a password.
        raise InvalidArgument(
            f"table: is an address that starts with {scheme[0]!r}, and needs to be a path, or to start with "
            f"{ADDRESSES}.",
            argument="table",
        )
    if isinstance(source, str) and (_kind(source) not in (None, "file") or _options(source)):
        return Database(source)
    if isinstance(source, (str, os.PathLike)) and _kind(os.fspath(source)) == "file":
        raise InvalidArgument(
            f"table={os.fspath(source)!r}: is a database, and needs the name of a table. Give it with "
            "crowdgram.Database(path, table=...), '?table=NAME' after the path, or --table.",
            argument="table",
        )
    return None


def open_database(database: Database, columns: Sequence[str] | None, user: str) -> tuple[Engine, ir.Table]:
    """An engine and a table that has at least `columns`. No row is read before the engine asks for it."""
    openers = {"duckdb": _open_duckdb, "sqlite": _open_sqlite, "postgres": _open_postgres}
    opener = openers[resolved_kind(database)]
    return asked_of(database, columns, user, lambda name, needed: opener(database, name, needed, user))


def asked_of(
    database: Database, columns: Sequence[str] | None, user: str, opener: Callable[[Name, Any], tuple[Engine, ir.Table]]
) -> tuple[Engine, ir.Table]:
    """The table, or what the query asks of its table, which `opener` opens by its name."""
    if database.query is None:
        name = tuple((database.table or "").split("."))
        _check_name("table", database.table, name)
        return opener(name, columns)
    query = read_query(database.query, user)
    _check_name("query", database.query, query.table)
    try:
        engine, table = opener(query.table, query.needed(columns))
    except MissingColumn as error:
        if error.column in (columns or ()):
            raise
        said = str(error)
    else:
        try:
            asked = query.apply(engine, table)
            check_row_wise(engine, asked, table, "opening the table")
            return engine, asked
        except BaseException:
            engine.close()
            raise
    raise InvalidArgument(f"query={database.query!r}: {said}", argument="query")


def _check_name(argument: str, given: str | None, name: Name) -> None:
    if not all(re.fullmatch(r"[^\x00\"]+", part) for part in name):
        raise InvalidArgument(
            f"{argument}={given!r}: needs the name of a table, or of a schema and a table.", argument=argument
        )


def open_ibis(backend: Any, table: ir.Table, user: str) -> tuple[Engine, ir.Table] | None:
    """An Ibis table on SQLite or PostgreSQL, read like a table of these databases; None for other backends.

    Ibis' own way to Arrow fails on values that do not fit the schema, so that a row decides over a release.
    """
    if backend.name not in ("sqlite", "postgres"):
        return None
    query = shield(_STAGE, lambda: _compile(backend, table))
    if backend.name == "postgres":
        described, codec = shield(_STAGE, lambda: _borrowed_columns(backend.con, query))
        parts = [_postgres_column(name, kind) for name, kind in described]
        rows = _borrowed_rows(backend.con, _selected(parts, query).encode(codec))
        return _stream(parts, _batches(parts, rows, codec))
    parts = [_sqlite_column(name, _declared(dtype), user) for name, dtype in table.schema().items()]
    # A connection to SQLite belongs to its thread, and the engine reads in others: so the rows are read here.
    batches = shield(_STAGE, lambda: list(_batches(parts, _lite_rows(backend.con, _selected(parts, query)))))
    return _stream(parts, batches)


def resolved_kind(database: Database) -> str:
    """Which database it is; for a bare path, by the file's first bytes."""
    return _sniff(database) if database.kind == "file" else database.kind


# --- DuckDB


def _open_duckdb(database: Database, name: Name, columns: Sequence[str] | None, _: str) -> tuple[Engine, ir.Table]:
    path = _existing(database)
    missing = _no_table(database, name)
    engine = DuckEngine.embedded()
    try:
        connection = engine.backend.con
        attached = fresh_name()
        file = path.replace("'", "''")
        _or_raise(
            lambda: connection.execute(f"ATTACH '{file}' AS \"{attached}\" (READ_ONLY)"),
            UnreadableSource(f"address={database.shown}: cannot be opened. It is not a DuckDB file, or it is in use."),
        )
        engine.before_close(lambda: connection.execute(f'DETACH "{attached}"'))
        # The file is not made the default: names of functions would be looked up there first, among its macros.
        listed = attached, (name[-2] if len(name) > 1 else "main"), name[-1]
        found = (
            _or_raise(lambda: connection.execute(_DUCKDB_TABLES, listed).fetchall(), missing) if len(name) < 3 else []
        )
        if len(found) != 1:
            raise missing
        view = fresh_name()
        exact = quoted((attached, *found[0]))
        _or_raise(lambda: connection.execute(f'CREATE TEMP VIEW "{view}" AS SELECT * FROM {exact}'), missing)
        table = engine.backend.table(view)
        check_columns(list(table.columns), columns)
        return engine, table
    except BaseException:
        engine.close()
        raise


# --- SQLite


def _open_sqlite(database: Database, name: Name, columns: Sequence[str] | None, user: str) -> tuple[Engine, ir.Table]:
    path = _existing(database)
    wrong = UnreadableSource(
        f"address={database.shown}: cannot be opened. It is not an SQLite file, or it cannot be read."
    )
    address = f"file:{quote(os.path.abspath(path))}?mode=ro"

    def connect() -> sqlite3.Connection:
        return sqlite3.connect(address, uri=True, check_same_thread=False)

    connection = _or_raise(connect, wrong)
    with closing(connection):
        _or_raise(lambda: connection.execute("SELECT count(*) FROM sqlite_master").fetchone(), wrong)
        declared = _sqlite_columns(connection, database, name)
    parts = [_sqlite_column(name, kind, user) for name, kind in _wanted(declared, columns)]

    def rows() -> Iterator[list[tuple[Any, ...]]]:
        with closing(connect()) as own:
            yield from _lite_rows(own, _selected(parts, quoted(name)))

    return _stream(parts, _batches(parts, rows()))


def _lite_rows(connection: sqlite3.Connection, query: str) -> Iterator[list[tuple[Any, ...]]]:
    """Texts come as bytes: SQLite does not hold them to UTF-8, and Python's own conversion would fail."""
    before = connection.text_factory
    connection.text_factory = bytes
    try:
        cursor = connection.execute(query)
        while batch := cursor.fetchmany(BATCH):
            yield batch
    finally:
        connection.text_factory = before


def _sqlite_columns(connection: sqlite3.Connection, database: Database, name: Name) -> list[tuple[str, str]]:
    """Names and declared types."""
    missing = _no_table(database, name)
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
    if not _or_raise(lambda: connection.execute(listed, (name[-1],)).fetchall(), missing):
        raise missing
    asked = "SELECT name, type FROM pragma_table_xinfo(?, 'main')"  # PRAGMA takes no parameters, but its function does
    return _or_raise(lambda: connection.execute(asked, (name[-1],)).fetchall(), missing)


@dataclass(frozen=True)
class _Column:
    """A column on its way: how it is selected, the Arrow type that it comes in, and what it is cast to then."""

    name: str
    sql: str
    arrow: pa.DataType
    cast: str | None = None


def _sqlite_column(name: str, declared: str, user: str) -> _Column:
    """By the rules of SQLite's column affinity, and what people write for dates and booleans."""
    column, kind = quoted(name), declared.upper()
    integer = f"CASE typeof({column}) WHEN 'integer' THEN {column} END"
    # Two floats that differ in the 16th digit are one as text; quoted, they are two.
    text = f"CASE typeof({column}) WHEN 'real' THEN quote({column}) WHEN 'blob' THEN NULL ELSE {column} END"
    text = f"CAST({text} AS TEXT)"
    if "INT" in kind:
        return _Column(name, integer, pa.int64())
    if "BOOL" in kind:
        return _Column(name, f"CASE WHEN {column} IN (0, 1) THEN {integer} END", pa.int64(), "boolean")
    if kind == "DATE":
        # Users are told apart by the text: it must be the only one for its date.
        strict = f"CASE WHEN {column} GLOB '{_ISO_DATE}' THEN {column} END"
        return _Column(name, strict if name == user else text, pa.string(), "date")
    if kind.startswith(("DATETIME", "TIMESTAMP")):
        return _Column(name, text, pa.string(), "timestamp(6)")
    if any(part in kind for part in ("REAL", "FLOA", "DOUB", "DEC", "NUM")):
        return _Column(name, f"CASE WHEN typeof({column}) IN ('integer', 'real') THEN {column} + 0.0 END", pa.float64())
    return _Column(name, text, pa.string())


def _declared(dtype: Any) -> str:
    """What SQLite would call a column of this Ibis type."""
    names = {"integer": "INTEGER", "boolean": "BOOLEAN", "date": "DATE", "timestamp": "TIMESTAMP", "floating": "REAL"}
    names["decimal"] = "REAL"
    return next((name for kind, name in names.items() if getattr(dtype, f"is_{kind}")()), "")


# --- PostgreSQL


def _open_postgres(database: Database, name: Name, columns: Sequence[str] | None, _: str) -> tuple[Engine, ir.Table]:
    try:
        import psycopg
    except ImportError:
        raise MissingDependency(
            "psycopg is not installed: pip install 'crowdgram[postgres]'.", name="psycopg"
        ) from None

    address = _without_options(database.address)

    def connect(encoding: str) -> Any:
        connection = psycopg.connect(address, connect_timeout=10, client_encoding=encoding)
        connection.read_only = True
        return connection

    with closing(_connect(lambda: connect("UTF8"), database)) as connection:
        described = _postgres_columns(connection, database, name)
        unknown = (
            f"address={database.shown}: is in an encoding that Python does not know. Copy the table to one in UTF8."
        )
        codec = _or_raise(lambda: _codec(connection), UnreadableSource(unknown))
    parts = [_postgres_column(name, kind) for name, kind in _wanted(described, columns)]

    def rows() -> Iterator[list[tuple[Any, ...]]]:
        with closing(connect(_AS_STORED)) as own:
            yield from _fetch(own, _selected(parts, quoted(name)).encode(codec))

    return _stream(parts, _batches(parts, rows(), codec))


_AS_STORED = "SQL_ASCII"
"""The encoding of a client that gets text as the server's bytes. To convert them, server and driver would fail on some:
no server holds text to all that its encoding leaves out.
"""


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
        while batch := cursor.execute(f"FETCH {BATCH} FROM {name}", prepare=False).fetchall():
            yield batch
        cursor.execute(f"CLOSE {name}")


def _borrowed_rows(connection: Any, query: bytes) -> Iterator[list[tuple[Any, ...]]]:
    """On a connection of the caller, which is left as it was."""
    with _in_encoding(connection, _AS_STORED):
        yield from _fetch(connection, query)


def _borrowed_columns(connection: Any, source: str) -> tuple[list[tuple[str, str]], str]:
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
    missing = _no_table(database, name)
    # Not the tables and views of the server and of its extensions, nor sequences: made of all users' rows.
    asked = (
        "SELECT relnamespace::regnamespace::text FROM pg_class WHERE oid = to_regclass(%s) AND relkind IN "
        "('r', 'p', 'v', 'm', 'f') AND NOT EXISTS (SELECT 1 FROM pg_depend WHERE classid = 'pg_class'::regclass "
        "AND objid = pg_class.oid AND deptype = 'e')"
    )
    found = _or_raise(lambda: connection.execute(asked, (quoted(name),)).fetchone(), missing)
    if found is None or found[0].startswith(("pg_", "information_schema")):
        raise missing
    return _or_raise(lambda: _describe(connection, quoted(name)), missing)


def _describe(connection: Any, source: str) -> list[tuple[str, str]]:
    cursor = connection.execute(f"SELECT * FROM {source} LIMIT 0")
    codes = [column.type_code for column in cursor.description]
    found = connection.execute("SELECT oid::int8, typname FROM pg_type WHERE oid = ANY(%s)", (codes,)).fetchall()
    names = dict(found)
    return [(column.name, names[column.type_code]) for column in cursor.description]


def _postgres_column(name: str, kind: str) -> _Column:
    column = quoted(name)
    if kind in ("int2", "int4", "int8"):
        return _Column(name, f"{column}::int8", pa.int64())
    if kind == "bool":
        return _Column(name, column, pa.bool_())
    if kind == "date":
        return _Column(name, _finite(column), pa.date32())
    if kind == "timestamp":
        return _Column(name, _finite(column), pa.timestamp("us"))
    if kind == "timestamptz":
        return _Column(name, _finite(f"({column} AT TIME ZONE 'UTC')"), pa.timestamp("us"))
    if kind == "uuid":
        return _Column(name, f"{column}::text", pa.string(), "uuid")
    if kind == "numeric":
        return _Column(name, f"{column}::text", pa.string(), "float64")  # the server refuses to make 1e400 a float
    if kind in ("float4", "float8"):
        return _Column(name, f"{column}::float8", pa.float64())
    return _Column(name, f"{column}::text", pa.string())  # text of any kind, enums


def _finite(moment: str) -> str:
    """Null if Python has no such date."""
    return f"CASE WHEN {moment} >= '0001-01-01' AND {moment} < '10000-01-01' THEN {moment} END"


# --- shared


def _stream(parts: Sequence[_Column], batches: Iterable[pa.RecordBatch]) -> tuple[Engine, ir.Table]:
    """The rows as a stream that the embedded engine reads once, batch by batch."""
    schema = _schema(parts)
    engine = DuckEngine.embedded()
    try:
        table = engine.register(pa.RecordBatchReader.from_batches(schema, batches))
        return engine, table.mutate(**{part.name: table[part.name].try_cast(part.cast) for part in parts if part.cast})
    except BaseException:
        engine.close()
        raise


def _schema(parts: Sequence[_Column]) -> pa.Schema:
    return pa.schema([(part.name, part.arrow) for part in parts])


def _batches(
    parts: Sequence[_Column], rows: Iterable[list[tuple[Any, ...]]], codec: str = UTF8
) -> Iterator[pa.RecordBatch]:
    for batch in rows:
        columns = zip(zip(*batch, strict=True), parts, strict=True)
        # Texts of more than 2 GiB come in chunks, of which a table makes batches.
        yield from pa.table(
            [_array(values, part.arrow, codec) for values, part in columns], _schema(parts)
        ).to_batches()


def _array(values: Sequence[Any], kind: pa.DataType, codec: str) -> pa.Array:
    return as_text(pa.array(values, pa.binary()), codec) if pa.types.is_string(kind) else pa.array(values, kind)


def _selected(parts: Sequence[_Column], source: str) -> str:
    return f"SELECT {', '.join(f'{part.sql} AS {quoted(part.name)}' for part in parts)} FROM {source}"


def _compile(backend: Any, table: ir.Table) -> str:
    """An Ibis table as a subquery; what it needs of the caller's memory is put in place first."""
    backend._run_pre_execute_hooks(table)
    return f"({backend.compile(table)}) AS crowdgram_query"


def _or_raise(call: Callable[[], T], instead: Exception) -> T:
    """Run `call`; whatever a database says against it is replaced by `instead`."""
    try:
        return call()
    except (InvalidArgument, InvalidTable, UnreadableSource):
        raise
    except Exception:  # noqa: BLE001 (its own words may quote rows or credentials)
        pass
    raise instead


def _wanted(declared: Sequence[tuple[str, str]], columns: Sequence[str] | None) -> list[tuple[str, str]]:
    check_columns([name for name, _ in declared], columns)
    return [(name, kind) for name, kind in declared if columns is None or name in columns]


def _no_table(database: Database, name: Name) -> UnreadableSource:
    return UnreadableSource(
        f"address={database.shown}: has no table {'.'.join(name)!r} that may be read. Check the name."
    )


def quoted(name: Name | str) -> str:
    """A column's name, or the parts of a table's, as SQL identifiers."""
    return ".".join('"' + part.replace('"', '""') + '"' for part in ([name] if isinstance(name, str) else name))


def _kind(address: str) -> str | None:
    scheme, colon, _ = address.partition(":")
    if colon and scheme.lower() in _SCHEMES:
        return _SCHEMES[scheme.lower()]
    return "file" if address.partition("?")[0].lower().endswith(_FILES) else None


def _options(address: str) -> dict[str, str]:
    if _kind(address) is None:
        return {}
    found = dict(parse_qsl(address.partition("?")[2], keep_blank_values=True))
    return {name: found[name] for name in ("table", "query") if name in found}


def _without_options(address: str) -> str:
    parts = urlsplit(address)
    kept = [(name, value) for name, value in parse_qsl(parts.query) if name not in ("table", "query")]
    return urlunsplit(parts._replace(query=urlencode(kept)))


def _path(address: str) -> str:
    bare = address.partition("?")[0]
    if _kind(address) == "file":
        return bare
    rest = unquote(bare.partition(":")[2])
    return rest.removeprefix("///") if rest.startswith("///") else rest.removeprefix("//")


def _port(parts: Any) -> bool:
    try:
        return parts.port is not None
    except ValueError:
        return False


def _existing(database: Database) -> str:
    path = database.path or ""
    if not Path(path).is_file() or not os.access(path, os.R_OK):
        raise UnreadableSource(
            f"address={path!r}: is no file that can be read. In an address, three slashes start a relative path and "
            "four an absolute one."
        )
    return path


def _sniff(database: Database) -> str:
    """DuckDB or SQLite, by the file's first bytes."""
    with open(_existing(database), "rb") as file:
        start = file.read(16)
    if start.startswith(b"SQLite format 3\x00"):
        return "sqlite"
    if start[8:12] == b"DUCK":
        return "duckdb"
    raise UnreadableSource(f"address={database.shown}: is neither a DuckDB nor an SQLite database. Check the path.")
