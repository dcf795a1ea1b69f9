"""Files of CSV, JSON and Parquet as a table of the embedded engine; and the columns of public files.

Text files carry no types, so users and items read from CSV or JSON are strings, always: guessing from the values would
let one user's rows decide how all others are read ("01" and "1" are two users in a column of strings and one in a
column of integers).
"""

from __future__ import annotations

import contextlib
import glob
import gzip
import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import pyarrow as pa

from ..errors import InvalidArgument, InvalidTable, MissingDependency, UnreadableSource
from .arrow import check_users, flat, has_foreign_moments, holds_text, in_years, is_foreign
from .columns import all_or, check_columns, listed
from .delimited import Csv, delimited, read_header
from .engines import DuckEngine, Engine
from .relations import TEXT, Relation
from .roles import TABLE, Role

__all__ = [
    "CSV_SUFFIXES",
    "JSON_SUFFIXES",
    "PARQUET_SUFFIXES",
    "SUFFIXES",
    "TEXT_SUFFIXES",
    "open_files",
    "read_column",
    "read_columns",
]

T = TypeVar("T")

CSV_SUFFIXES = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
JSON_SUFFIXES = (".json", ".jsonl", ".ndjson", ".json.gz", ".jsonl.gz", ".ndjson.gz")
PARQUET_SUFFIXES = (".parquet", ".pq")
SUFFIXES = CSV_SUFFIXES + JSON_SUFFIXES + PARQUET_SUFFIXES
TEXT_SUFFIXES = CSV_SUFFIXES + JSON_SUFFIXES
_PACKED = (".zst", ".bz2", ".xz", ".lz4", ".zip", ".br", ".7z")
_SMALL = 2**23
"""Bytes of Parquet files that are read one after another, without the threads of a dataset."""


def open_files(
    given: Sequence[str], columns: Sequence[str] | None, user: str | None, role: Role = TABLE, form: Csv | None = None
) -> tuple[Engine, Relation]:
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


def read_columns(path: str | os.PathLike[str], columns: Sequence[str], role: Role) -> list[tuple[Any, ...]]:
    """The values of several columns of a *public* file (a joint domain), row by row."""
    engine, table = open_files([os.fspath(path)], columns, None, role)
    with engine:
        values = engine.fetch(table.select(*columns), "reading the domain")
    return list(zip(*(values.column(name).to_pylist() for name in columns), strict=True))


def read_column(path: str | os.PathLike[str], column: str | None, preferred: str, role: Role) -> list[Any]:
    """All values of one column of a *public* file (a domain). Its content may appear in errors.

    `column=None`: the column named `preferred` if there is one, else the only column.
    """
    engine, table = open_files([os.fspath(path)], () if column is None else (column,), None, role)
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
        values = engine.fetch(table.select(column), "reading the domain")
    return list(values.column(0).to_pylist())


@dataclass(frozen=True)
class _File:
    """A file, and how a message may call it: a name that a glob found is not shown, as it may be that of a user.

    head: how a message about it begins. name: what it is called inside one.
    """

    path: str
    head: str
    name: str


def _check_packed(path: str, role: Role) -> None:
    """Refuse a file that is compressed in a way that is not read, by its name."""
    packed = next((one for one in _PACKED if path.lower().endswith(one)), None)
    if packed is not None:
        raise UnreadableSource(
            f"{role}={path!r}: is compressed as {packed}, and text files are read as they are or as .gz. Unpack it, "
            "or compress it by gzip."
        )


def _suffix(path: str, role: Role) -> str:
    suffix = next((s for s in sorted(SUFFIXES, key=len, reverse=True) if path.lower().endswith(s)), None)
    if suffix is not None:
        return suffix
    _check_packed(path, role)
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
    _check_packed(path, role)
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
) -> Relation:
    # DuckDB takes every path for a pattern, and a folder named `user=7` for a column that hides the file's own.
    # It and Arrow take a path that begins with a scheme, such as file:, for an address.
    paths, first = [os.path.abspath(file.path) for file in files], files[0]
    exact = f"[{', '.join(_quoted(glob.escape(path)) for path in paths)}], hive_partitioning = false"
    if suffix in PARQUET_SUFFIXES:
        schemas = _schemas(files)
        schema = schemas[0]
        check_columns(schema.names, columns)
        wanted = flat(schema, columns or None)  # none by name: whoever asks looks for the right one
        _check_same_types(files, schemas, wanted)
        if user is not None:
            check_users(schema, user)
        stored = [schema.field(name).type for name in wanted]
        apart = all(all_or(None, one.names) == one.names for one in schemas)
        strays = any(has_foreign_moments(field.type) for one in schemas for field in one)
        if strays or not apart or any(is_foreign(kind) or holds_text(kind) for kind in stored):
            # The engine's own reader would fail on a moment that it cannot hold, also in a column that nobody asked
            # for, whose statistics it plans with; and on text that is not UTF-8. It ignores the case of names.
            return engine.register(in_years(_stored_rows(paths, schema, wanted), wanted))
        chosen = ", ".join(engine.dialect.name(name) for name in wanted)
        query, types = f"SELECT {chosen} FROM read_parquet({exact})", dict(zip(wanted, stored, strict=True))
        return _readable(first, "Parquet", lambda: engine.view(query, types))
    if suffix in JSON_SUFFIXES:
        if user is None:
            asked = f"DESCRIBE SELECT * FROM read_json_auto({exact})"
            found = [row[0] for row in _readable(first, "JSON", lambda: engine.con.execute(asked).fetchall())]
            check_columns(found, columns)
            return _readable(first, "JSON", lambda: _json(engine, exact, found))
        if columns is None:
            raise InvalidArgument(
                "table: JSON has no schema to build an Ibis expression on. Give the expression as SQL text.",
                argument="table",
            )
        # JSON has no schema, and its keys are content: they are not looked at. A key that is not there is null.
        check_columns(columns, columns)
        kinds = {_json_format(path) for path in paths}
        if len(kinds) > 1:
            raise UnreadableSource("table: the files mix JSON arrays and JSON lines. Use one of them.")
        kind = kinds.pop()
        exact += f", format = '{kind}', records = 'true'"
        exact += ", ignore_errors = true" if kind == "newline_delimited" else ""
        # A string that is not UTF-8 is no JSON: the engine's reader passes over the record.
        return engine.with_text(_readable(first, "JSON", lambda: _json(engine, exact, columns)))
    delimiter = form.delimiter or ("\t" if ".tsv" in suffix else ",")
    header = _header(files, delimiter, form.encoding)
    check_columns(header, columns, text=first.name)
    read = all_or(columns or None if user is None else columns, header)
    # Not by the engine's own reader: it starts in the middle of a file, and one user's text can mislead it there.
    return engine.with_text(engine.register(delimited(paths, delimiter, header, read, form.encoding)))


def _json(engine: DuckEngine, files: str, columns: Sequence[str]) -> Relation:
    """These keys of JSON files, as strings. files: the arguments of the engine's reader."""
    keys = ", ".join(f"{engine.dialect.name(name)}: 'VARCHAR'" for name in columns)
    return engine.view(f"SELECT * FROM read_json_auto({files}, columns = {{{keys}}})", dict.fromkeys(columns, TEXT))


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _stored_rows(paths: Sequence[str], schema: pa.Schema, wanted: Sequence[str]) -> Any:
    """Parquet files as Arrow. Datasets load pandas, which takes longer than to read small files one after another."""
    from pyarrow import parquet

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


def _schemas(files: list[_File]) -> list[pa.Schema]:
    """The schema of each file, by its metadata. As `pyarrow.parquet.read_schema`, which loads all kinds of storage and
    takes some paths for addresses.
    """
    from pyarrow._parquet import ParquetReader

    def read(path: str) -> pa.Schema:
        reader = ParquetReader()
        reader.open(path)
        try:
            return reader.schema_arrow
        finally:
            reader.close()

    return [_readable(file, "Parquet", partial(read, file.path)) for file in files]


def _check_same_types(files: list[_File], schemas: list[pa.Schema], columns: Sequence[str]) -> None:
    """All must have these columns, each once, and agree on their types: a cast could merge users."""
    for name in columns:
        for file, schema in zip(files, schemas, strict=True):
            if name not in schema.names:
                raise InvalidTable(
                    f"{file.head} has no column {name!r}, which others have. All files need it.", column=name
                )
            if sum(other.casefold() == name.casefold() for other in schema.names) > 1:
                raise InvalidTable(
                    f"{file.head} has column {name!r} twice, or another that differs from it by case only. Rename one "
                    "of them.",
                    column=name,
                )
            if schema.field(name).type != schemas[0].field(name).type:
                raise InvalidTable(
                    f"{file.head} has column {name!r} in another type than others. All files need one type.",
                    column=name,
                )


def _json_format(path: str) -> str:
    """A JSON array or JSON lines, by the file's first character."""
    opener: Any = gzip.open if path.lower().endswith(".gz") else open
    try:
        with opener(path, "rb") as file:
            start = file.read(4096).removeprefix(b"\xef\xbb\xbf").lstrip()
    except OSError:
        start = b""
    return "array" if start.startswith(b"[") else "newline_delimited"


def _readable(file: _File, kind: str, read: Callable[[], T]) -> T:
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
