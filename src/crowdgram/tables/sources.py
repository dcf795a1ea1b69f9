"""Anything a user has becomes an Ibis table in an engine.

Types come from the schema, never from the values. Text files carry no types, so users and items read from CSV or
JSON are strings, always: guessing from the values would let one user's rows decide how all others are read ("01"
and "1" are two users in a column of strings and one in a column of integers).
"""

from __future__ import annotations

import contextlib
import glob
import gzip
import os
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import ibis
import pyarrow as pa
from pyarrow import parquet

from ..errors import InvalidArgument, InvalidTable, MissingDependency, UnreadableSource
from .addresses import Database, as_database, resolved_kind
from .arrow import check_users, flat, holds_text, in_years, is_foreign
from .columns import check_columns, listed
from .databases import asked_of, open_database, open_ibis
from .delimited import Csv, delimited, read_header
from .engines import ENGINES, DuckEngine, Engine, engine_for, fresh_name, shield
from .roles import TABLE, Role
from .streams import quoted

if TYPE_CHECKING:
    import ibis.expr.types as ir

__all__ = ["SUFFIXES", "Placed", "is_text", "open_source", "read_column", "read_columns"]

CSV_SUFFIXES = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
JSON_SUFFIXES = (".json", ".jsonl", ".ndjson", ".json.gz", ".jsonl.gz", ".ndjson.gz")
PARQUET_SUFFIXES = (".parquet", ".pq")
_SPARK_SETTINGS = ("spark.sql.session.timeZone", "spark.sql.mapKeyDedupPolicy")
SUFFIXES = CSV_SUFFIXES + JSON_SUFFIXES + PARQUET_SUFFIXES
_BATCH, _TEXT = 2**11, 2**20
"""Rows of a DuckDB relation that are handed over at once, and the bytes that each text of them is below."""
_SMALL = 2**23
"""Bytes of Parquet files that are read one after another, without the threads of a dataset."""


@dataclass(frozen=True)
class Placed:
    """A table already in an engine; audits use it to hand in their `CachingEngine`."""

    engine: Engine
    table: ir.Table


def open_source(source: object, columns: Sequence[str] | None, user: str) -> tuple[Engine, ir.Table]:
    """An engine and a table that has at least `columns`; None asks for all of them. No row is read.

    `source`: a path or glob of CSV, Parquet or JSON files, or a list of these, or `Csv`; a database; a pandas, polars,
    pyarrow, DuckDB, Spark or Ibis table. `user`: the user column; empty if users are computed. The caller closes the
    engine.
    """
    if isinstance(source, Placed):
        check_columns(list(source.table.columns), columns)
        return source.engine, source.table
    database = as_database(source)
    if database is not None:
        if database.kind == "spark":
            return _open_spark_table(database, columns, user)
        return open_database(database, columns, user)
    form = source if isinstance(source, Csv) else None
    paths = _paths(source if form is None else form.path)
    if paths is not None:
        return _open_files(paths, columns, user, form=form)
    module, kind = type(source).__module__.split(".")[0], type(source).__name__
    if module == "ibis":
        if not isinstance(source, ibis.Table):
            raise _not_a_table(source)
        check_columns(list(source.columns), columns)
        backend = shield("opening the Ibis table", lambda: ibis.get_backend(source))
        if backend.name in ENGINES:
            return engine_for(backend), source
        chosen = source.select(*_all_or(columns, source.columns))
        return open_ibis(backend, chosen, user) or _open_arrow(_stream(backend, chosen), user)
    if module == "pyspark":
        return _open_spark(source, columns)
    if module == "pandas" and kind == "DataFrame":
        names = list(source.columns)  # type: ignore[attr-defined]
        check_columns(names, columns)
        return _open_arrow(_from_pandas(source, _all_or(columns, names)), user)
    if module == "polars" and kind in ("DataFrame", "LazyFrame"):
        names = list(source.collect_schema().names())  # type: ignore[attr-defined]
        check_columns(names, columns)
        frame = source.select(list(_all_or(columns, names)))  # type: ignore[attr-defined]
        whole = lambda: (frame.collect() if kind == "LazyFrame" else frame).to_arrow()  # noqa: E731
        return _open_arrow(shield("reading the polars frame", whole), user)
    if module in ("duckdb", "_duckdb") and kind == "DuckDBPyRelation":
        names = shield("opening the relation", lambda: list(source.columns))  # type: ignore[attr-defined]
        check_columns(names, columns)
        return _open_arrow(shield("opening the relation", lambda: _related(source, columns)), user)
    if isinstance(source, pa.RecordBatch):
        source = pa.Table.from_batches([source])
    if isinstance(source, (pa.Table, pa.RecordBatchReader)) or (module == "pyarrow" and "Dataset" in kind):
        arrow: Any = source
        names = list(arrow.schema.names)
        check_columns(names, columns)
        wanted = flat(arrow.schema, columns) if "Dataset" in kind else list(_all_or(columns, names))
        return _open_arrow(arrow.select(wanted) if isinstance(arrow, pa.Table) else arrow, user, wanted)
    raise _not_a_table(source)


def _related(relation: Any, columns: Sequence[str] | None) -> pa.RecordBatchReader:
    """The rows of a DuckDB relation, as a stream that is scanned once: the counts are materialised in that one scan.

    DuckDB fails to hand over a batch with more than 2 GiB of text. So batches are small, and longer texts are missing.
    """
    schema = relation.limit(0).to_arrow_table().schema
    parts = []
    for name in flat(schema, columns):
        column, kind = quoted(name), schema.field(name).type
        size = f"strlen({column}::VARCHAR)" if holds_text(kind) else f"octet_length({column}::BLOB)"
        limited = holds_text(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
        parts.append(f"CASE WHEN {size} < {_TEXT} THEN {column} END AS {column}" if limited else column)
    return relation.project(", ".join(parts)).to_arrow_reader(_BATCH)


def _stream(backend: Any, table: ir.Table) -> pa.RecordBatchReader:
    """The rows of an Ibis table, batch by batch, asked for when the engine reads them."""
    schema = table.schema().to_pyarrow()

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in backend.to_pyarrow_batches(table):
            yield batch.cast(schema)

    return pa.RecordBatchReader.from_batches(schema, batches())


def is_text(source: object) -> bool:
    """Whether strings of `source` may stand for numbers, as it has no types to say so.

    Text files have none, and a column of SQLite may be declared without one.
    """
    if isinstance(source, Csv):
        return True
    database = as_database(source)
    if database is not None:
        return resolved_kind(database) == "sqlite"
    paths = _paths(source)
    return paths is not None and all(path.lower().endswith(CSV_SUFFIXES + JSON_SUFFIXES) for path in paths)


def _paths(source: object) -> list[str] | None:
    """The path, or the list of paths, that a source is; None for any other."""
    given: Any = source if isinstance(source, (list, tuple)) else [source]
    if not given or not all(isinstance(one, (str, os.PathLike)) for one in given):
        return None
    return [os.fspath(one) for one in given]


def read_columns(path: str | os.PathLike[str], columns: Sequence[str], role: Role) -> list[tuple[Any, ...]]:
    """The values of several columns of a *public* file (a joint domain), row by row."""
    engine, table = _open_files([os.fspath(path)], columns, None, role)
    with engine:
        values = engine.fetch(table.select(*columns), "reading the domain")
    return list(zip(*(values.column(name).to_pylist() for name in columns), strict=True))


def _all_or(columns: Sequence[str] | None, available: Sequence[object]) -> Sequence[str]:
    return [name for name in available if isinstance(name, str)] if columns is None else columns


def read_column(path: str | os.PathLike[str], column: str | None, preferred: str, role: Role) -> list[Any]:
    """All values of one column of a *public* file (a domain). Its content may appear in errors.

    `column=None`: the column named `preferred` if there is one, else the only column.
    """
    engine, table = _open_files([os.fspath(path)], () if column is None else (column,), None, role)
    with engine:
        names = list(table.columns)
        if column is None:
            if preferred in names:
                column = preferred
            elif len(names) == 1:
                column = names[0]
            else:
                raise InvalidArgument(
                    f"{role}={os.fspath(path)!r}: has the columns {listed(names)}. Say which one holds the items: "
                    f"{role}=(path, column){', or --domain-column' if role.argument == 'domain' else ''}.",
                    argument=role.argument,
                )
        values = engine.fetch(table.select(table[column]), "reading the domain")
    return list(values.column(0).to_pylist())


def _not_a_table(source: object) -> InvalidArgument:
    return InvalidArgument(
        f"table: is a {type(source).__module__}.{type(source).__qualname__}, and needs to be a path or glob of "
        f"{'/'.join(SUFFIXES[:1] + PARQUET_SUFFIXES[:1] + JSON_SUFFIXES[:1])} files, a database, or a pandas, polars, "
        "pyarrow, DuckDB, Spark or Ibis table.",
        argument="table",
    )


def _open_arrow(data: Any, user: str, columns: Sequence[str] | None = None) -> tuple[Engine, ir.Table]:
    check_users(data.schema, user)
    data = in_years(data, data.schema.names if columns is None else columns)
    engine = DuckEngine.embedded()
    try:
        return engine, engine.register(data)
    except Exception:  # noqa: BLE001 (of a type that the engine does not know)
        engine.close()
    except BaseException:
        engine.close()
        raise
    kinds = ", ".join(sorted({str(field.type) for field in data.schema}))
    raise InvalidTable(f"table: has columns of the types {kinds}, not all of which can be read. Cast them first.")


def _from_pandas(frame: Any, columns: Sequence[str]) -> pa.Table:
    """The columns in Arrow, typed by their dtype alone: columns of Python objects become strings."""
    return shield("reading the pandas frame", lambda: pa.table({name: _from_series(frame[name]) for name in columns}))


def _from_series(series: Any) -> Any:
    dtype = series.dtype.categories.dtype if hasattr(series.dtype, "categories") else series.dtype
    if str(dtype) != "object" and getattr(dtype, "storage", "pyarrow") != "python":
        return pa.Array.from_pandas(series)
    return pa.array([_text(value) for value in series.astype(object)], type=pa.string())


def _text(value: object) -> str | None:
    """A Python object as a string; None for what is missing, has no text or none that UTF-8 can hold."""
    try:
        text = str(value)
    except Exception:  # noqa: BLE001 (an integer of more than 4300 digits, a list of lists of lists)
        return None
    if value is None or (text in ("nan", "NaT", "<NA>") and not isinstance(value, str)):
        return None
    return None if any("\ud800" <= char <= "\udfff" for char in text) else text


def _open_spark(frame: Any, columns: Sequence[str] | None) -> tuple[Engine, ir.Table]:
    if not hasattr(frame, "createOrReplaceTempView"):
        raise _not_a_table(frame)
    check_columns(list(frame.columns), columns)
    session = frame.sparkSession
    before = {name: session.conf.get(name, None) for name in _SPARK_SETTINGS}
    name = fresh_name()

    def restore() -> None:
        for setting, value in before.items():
            if value is not None:
                session.conf.set(setting, value)

    # Connecting changes settings of the session, which is the user's: put them back at the end.
    on_close = [restore, lambda: session.catalog.dropTempView(name)]
    engine = engine_for(ibis.pyspark.connect(session), on_close)
    try:
        frame.createOrReplaceTempView(name)
        return engine, engine.backend.table(name)
    except BaseException:
        engine.close()
        raise


def _open_spark_table(database: Database, columns: Sequence[str] | None, user: str) -> tuple[Engine, ir.Table]:
    """A table or query of Spark's catalogue, in the session that is running or else in one of its own."""
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise MissingDependency("pyspark is not installed: pip install 'crowdgram[spark]'.", name="pyspark") from None
    own = SparkSession.getActiveSession() is None
    session = shield("starting Spark", lambda: SparkSession.builder.appName("crowdgram").getOrCreate())

    def open_table(name: tuple[str, ...], needed: Sequence[str] | None) -> tuple[Engine, ir.Table]:
        frame, exact = None, ".".join(f"`{part.replace('`', '``')}`" for part in name)
        with contextlib.suppress(Exception):  # Spark's own words are long, and may quote paths and data
            # Not a path that stands for a table (`binaryFile`.`/data`): a row of it may be made of all users' rows.
            frame = session.table(exact) if session.catalog.tableExists(exact) else None
        if frame is None:
            raise UnreadableSource(
                f"table={'.'.join(name)!r}: is not in Spark's catalogue. Check the name and the catalogue."
            )
        return _open_spark(frame, needed)

    try:
        engine, table = asked_of(database, columns, user, open_table)
    except BaseException:
        if own:
            session.stop()
        raise
    if own:
        engine.on_close(session.stop)
    return engine, table


@dataclass(frozen=True)
class _File:
    """A file, and how a message may call it: a name that a glob found is not shown, as it may be that of a user.

    head: how a message about it begins. name: what it is called inside one.
    """

    path: str
    head: str
    name: str


def _open_files(
    given: Sequence[str], columns: Sequence[str] | None, user: str | None, role: Role = TABLE, form: Csv | None = None
) -> tuple[Engine, ir.Table]:
    """One table of all files: paths and globs, of one kind. `user`: as in `open_source`; None for a public file.
    `form`: how to read text files, if not by their names alone.
    """
    suffixes = [_suffix(path, role) if form is None else _csv_suffix(path, form, role) for path in given]
    kinds = [next(kind for kind in (CSV_SUFFIXES, JSON_SUFFIXES, PARQUET_SUFFIXES) if one in kind) for one in suffixes]
    for path, kind, suffix in zip(given, kinds, suffixes, strict=True):
        if kind is not kinds[0] or (".tsv" in suffix) != (".tsv" in suffixes[0]):
            raise UnreadableSource(
                f"{role}={path!r}: is of another kind than {given[0]!r}, and all files need to be of one."
            )
    files = [file for one, suffix in zip(given, suffixes, strict=True) for file in _found(one, suffix, role)]
    paths = [file.path for file in files]
    if len(set(paths)) < len(paths):
        again = next(file for place, file in enumerate(files) if file.path in paths[:place])
        raise UnreadableSource(f"{again.head} is listed more than once, so its rows would be. List it once.")
    engine = DuckEngine.embedded()
    try:
        return engine, _scan(engine, files, suffixes[0], columns, user, form or Csv(given))
    except BaseException:
        engine.close()
        raise


def _suffix(path: str, role: Role) -> str:
    suffix = next((s for s in sorted(SUFFIXES, key=len, reverse=True) if path.lower().endswith(s)), None)
    if suffix is not None:
        return suffix
    if os.path.isdir(path):
        raise UnreadableSource(
            f"{role}={path!r}: is a folder. Give a glob of its files, such as {path.rstrip('/') + '/*.parquet'!r}."
        )
    raise UnreadableSource(
        f"{role}={path!r}: is of an unknown kind, and needs a name that ends in one of {', '.join(SUFFIXES)}."
    )


def _csv_suffix(path: str, form: Csv, role: Role) -> str:
    """The suffix that says how a file is read that is said to be CSV, whatever its name."""
    name = path.lower()
    if name.endswith(JSON_SUFFIXES + PARQUET_SUFFIXES):
        raise UnreadableSource(
            f"{role}={path!r}: is no CSV by its name, so it has no delimiter and no encoding. Leave them out."
        )
    return ".tsv" if form.delimiter is None and name.removesuffix(".gz").endswith(".tsv") else ".csv"


def _found(given: str, suffix: str, role: Role) -> list[_File]:
    """The files that a path or glob stands for, in order."""
    if os.path.exists(given):
        files = [_File(given, f"{role}={given!r}:", repr(given))]
    else:
        found = sorted(glob.glob(given, recursive=True))
        head, name = f"{role}={given!r}: a file that matches it", f"a file that matches {given!r}"
        files = [_File(path, head, name) for path in found]
    if not files:
        raise UnreadableSource(f"{role}={given!r}: is no file, and no file matches it as a glob. Check the path.")
    for file in files:
        if os.path.isdir(file.path):
            if file.path != given:
                raise UnreadableSource(f"{role}={given!r}: matches a folder. Give a glob that matches files alone.")
            hint = given.rstrip("/") + "/*" + suffix
            raise UnreadableSource(f"{role}={given!r}: is a folder. Give a glob of its files, such as {hint!r}.")
        if not os.path.isfile(file.path) or not os.access(file.path, os.R_OK):
            raise UnreadableSource(f"{file.head} cannot be read. Check the path and its permissions.")
    return files


def _scan(
    engine: DuckEngine, files: list[_File], suffix: str, columns: Sequence[str] | None, user: str | None, form: Csv
) -> ir.Table:
    # DuckDB takes every path for a pattern, and a folder named `user=7` for a column that hides the file's own.
    paths, first = [file.path for file in files], files[0]
    exact = [glob.escape(path) for path in paths]
    plain = {"hive_partitioning": False}
    if suffix in PARQUET_SUFFIXES:
        table: ir.Table = _readable(first, "Parquet", lambda: engine.backend.read_parquet(exact, **plain))
        check_columns(list(table.columns), columns)
        schema = _check_same_types(files, _all_or(columns, list(table.columns)))
        wanted = flat(schema, columns or None)  # none by name: whoever asks looks for the right one
        if user is not None:
            check_users(schema, user)
        stored = [schema.field(name).type for name in wanted]
        if any(is_foreign(kind) or holds_text(kind) for kind in stored):
            # The engine's own reader would fail on a moment that it cannot hold, and on text that is not UTF-8.
            return engine.register(in_years(_stored_rows(paths, schema, wanted), wanted))
        return table.select(*wanted)
    if suffix in JSON_SUFFIXES:
        if user is None:
            found = _readable(first, "JSON", lambda: engine.backend.read_json(exact, **plain))
            check_columns(list(found.columns), columns)
            keys = dict.fromkeys(found.columns, "VARCHAR")
            return _readable(first, "JSON", lambda: engine.backend.read_json(exact, columns=keys, **plain))
        if columns is None:
            raise InvalidArgument(
                "table: JSON has no schema to build an Ibis expression on. Give the expression as SQL text.",
                argument="table",
            )
        # JSON has no schema, and its keys are content: they are not looked at. A key that is not there is null.
        kinds = {_json_format(path) for path in paths}
        if len(kinds) > 1:
            raise UnreadableSource("table: the files mix JSON arrays and JSON lines. Use one of them.")
        options: dict[str, Any] = {"format": kinds.pop(), "records": "true", **plain}
        if options["format"] == "newline_delimited":
            options["ignore_errors"] = True
        as_text = dict.fromkeys(columns, "VARCHAR")
        return _readable(first, "JSON", lambda: engine.backend.read_json(exact, columns=as_text, **options))
    delimiter = form.delimiter or ("\t" if ".tsv" in suffix else ",")
    header = _header(files, delimiter, form.encoding)
    check_columns(header, columns, text=first.name)
    read = header if user is None else _all_or(columns, header)
    # Not by the engine's own reader: it starts in the middle of a file, and one user's text can mislead it there.
    return engine.register(delimited(paths, delimiter, header, read, form.encoding))


def _stored_rows(paths: Sequence[str], schema: pa.Schema, wanted: Sequence[str]) -> Any:
    """Parquet files as Arrow. Datasets load pandas, which takes longer than to read small files one after another."""
    if sum(os.path.getsize(path) for path in paths) > _SMALL:
        from pyarrow import dataset

        return dataset.dataset(paths, format="parquet", schema=schema)

    def batches() -> Iterator[pa.RecordBatch]:
        for path in paths:
            with parquet.ParquetFile(path) as file:
                for batch in file.iter_batches(columns=list(wanted)):
                    yield pa.record_batch([batch.column(name) for name in wanted], schema=chosen)

    chosen = pa.schema([schema.field(name) for name in wanted])
    return pa.RecordBatchReader.from_batches(chosen, batches())


def _check_same_types(files: list[_File], columns: Sequence[str]) -> pa.Schema:
    """The schema, by the files' metadata. All must agree on the columns' types: a cast could merge users."""
    schemas = [_readable(file, "Parquet", partial(parquet.read_schema, file.path)) for file in files]
    for name in columns:
        for file, schema in zip(files, schemas, strict=True):
            if name not in schema.names:
                raise InvalidTable(
                    f"{file.head} has no column {name!r}, which others have. All files need it.", column=name
                )
            if schema.field(name).type != schemas[0].field(name).type:
                raise InvalidTable(
                    f"{file.head} has column {name!r} in another type than others. All files need one type.",
                    column=name,
                )
    return schemas[0]


def _json_format(path: str) -> str:
    """A JSON array or JSON lines, by the file's first character."""
    opener: Any = gzip.open if path.lower().endswith(".gz") else open
    try:
        with opener(path, "rb") as file:
            start = file.read(4096).removeprefix(b"\xef\xbb\xbf").lstrip()
    except OSError:
        start = b""
    return "array" if start.startswith(b"[") else "newline_delimited"


def _readable(file: _File, kind: str, read: Any) -> Any:
    try:
        return read()
    except MissingDependency:
        raise
    except Exception:  # noqa: BLE001 (the engine's own message may quote the file's content)
        pass
    raise UnreadableSource(f"{file.head} cannot be read as {kind}. Check that it is a whole {kind} file.")


def _header(files: list[_File], delimiter: str, encoding: str) -> list[str]:
    headers = []
    for file in files:
        found = None
        with contextlib.suppress(OSError, EOFError, zlib.error):
            found = read_header(file.path, delimiter, encoding)
        if found is None:
            raise UnreadableSource(f"{file.head} cannot be read as CSV. It needs text with a header line.")
        headers.append(found)
    header = headers[0]
    for file, other in zip(files, headers, strict=True):
        if other != header:
            raise UnreadableSource(f"{file.head} has other columns than others. All files need the same header.")
    # By place, not by name: in a file that lacks a header line the names would be the first row.
    for place, name in enumerate(header, start=1):
        if not name or header.index(name) + 1 < place:
            what = (
                f"repeats column {header.index(name) + 1} as column {place}"
                if name
                else f"has no name for column {place}"
            )
            raise InvalidTable(f"{files[0].head} its header line {what}, and columns need names of their own.")
    return header
