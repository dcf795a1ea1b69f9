"""Anything a user has becomes an Ibis table of two columns, `user` and `item`.

Types come from the schema, never from the values. Text files carry no types, so users and items read from CSV or
JSON are strings, always: guessing from the values would let one user's rows decide how all others are read ("01"
and "1" are two users in a column of strings and one in a column of integers).
"""

from __future__ import annotations

import csv
import glob
import gzip
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ibis
import pyarrow as pa
from pyarrow import parquet

from ..errors import InvalidArgument, InvalidTable, MissingDependency, UnreadableSource
from .engine import DuckEngine, Engine, engine_for, fresh_name, shielded

if TYPE_CHECKING:
    import ibis.expr.datatypes as dt
    import ibis.expr.types as ir

__all__ = ["Rows", "open_rows", "read_column"]

CSV_SUFFIXES = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
JSON_SUFFIXES = (".json", ".jsonl", ".ndjson", ".json.gz", ".jsonl.gz", ".ndjson.gz")
PARQUET_SUFFIXES = (".parquet", ".pq")
_SPARK_SETTINGS = ("spark.sql.session.timeZone", "spark.sql.mapKeyDedupPolicy")
SUFFIXES = CSV_SUFFIXES + JSON_SUFFIXES + PARQUET_SUFFIXES


@dataclass(frozen=True)
class Rows:
    """The private rows: an engine, and in it a table with the columns `user` and `item`.

    A row may stand for several: then the table has a column `n` that says for how many.
    """

    engine: Engine
    table: ir.Table

    @property
    def keys(self) -> tuple[str, ...]:
        """The item columns."""
        return ("item",)

    @property
    def counted(self) -> bool:
        return "n" in self.table.columns

    @property
    def item_type(self) -> dt.DataType:
        return self.table.schema()["item"]


def open_rows(source: object, *, user: str, item: str) -> Rows:
    """Open `source` and check its two columns by the schema alone. No row is read.

    `source`: a path or glob of CSV, Parquet or JSON files; a pandas, polars, pyarrow, DuckDB, Spark or Ibis table.
    The caller closes `rows.engine`.
    """
    for name, value in (("user", user), ("item", item)):
        if not isinstance(value, str) or not value:
            raise InvalidArgument(f"{name}={value!r}: needs the name of a column, a non-empty string.")
    if user == item:
        raise InvalidArgument(f"user and item are both {user!r}: they need to be two different columns.")
    engine, table = _open(source, (user, item))
    try:
        schema = table.schema()
        _check_type("user", user, schema[user])
        _check_type("item", item, schema[item])
        return Rows(engine, table.select(user=table[user], item=table[item]))
    except BaseException:
        engine.close()
        raise


def read_column(path: str | os.PathLike[str], column: str | None, preferred: str) -> list[Any]:
    """All values of one column of a *public* file (a domain). Its content may appear in errors.

    `column=None`: the column named `preferred` if there is one, else the only column.
    """
    engine, table = _open_files(os.fspath(path), () if column is None else (column,), public=True)
    with engine:
        names = list(table.columns)
        if column is None:
            if preferred in names:
                column = preferred
            elif len(names) == 1:
                column = names[0]
            else:
                raise InvalidArgument(
                    f"domain={os.fspath(path)!r} has the columns {_listed(names)}: say which one holds the items "
                    "(domain=(path, column), or --domain-column)."
                )
        values = engine.fetch(table.select(table[column]), "reading the domain")
    return list(values.column(0).to_pylist())


def _open(source: object, columns: Sequence[str]) -> tuple[Engine, ir.Table]:
    """An engine and a table that has at least `columns` (all columns of a file if none are named)."""
    if isinstance(source, (str, os.PathLike)):
        return _open_files(os.fspath(source), columns)
    module, kind = type(source).__module__.split(".")[0], type(source).__name__
    if module == "ibis":
        if not isinstance(source, ibis.Table):
            raise _not_a_table(source)
        _check_columns(list(source.columns), columns)
        return engine_for(shielded("opening the Ibis table", lambda: ibis.get_backend(source))), source
    if module == "pyspark":
        return _open_spark(source, columns)
    if module == "pandas" and kind == "DataFrame":
        _check_columns(list(source.columns), columns)  # type: ignore[attr-defined]
        return _open_arrow(_from_pandas(source, columns))
    if module == "polars" and kind in ("DataFrame", "LazyFrame"):
        names = source.collect_schema().names()  # type: ignore[attr-defined]
        _check_columns(list(names), columns)
        frame = source.select(list(columns))  # type: ignore[attr-defined]
        return _open_arrow(
            shielded("reading the polars frame", lambda: (frame.collect() if kind == "LazyFrame" else frame).to_arrow())
        )
    if module in ("duckdb", "_duckdb") and kind == "DuckDBPyRelation":
        _check_columns(shielded("opening the relation", lambda: list(source.columns)), columns)  # type: ignore[attr-defined]
        quoted = ", ".join('"' + c.replace('"', '""') + '"' for c in columns)
        # A stream that is scanned once; the counts are materialised in that one scan.
        project: Any = source.project  # type: ignore[attr-defined]
        return _open_arrow(shielded("opening the relation", lambda: project(quoted).to_arrow_reader()))
    if isinstance(source, pa.RecordBatch):
        source = pa.Table.from_batches([source])
    if isinstance(source, (pa.Table, pa.RecordBatchReader)) or (module == "pyarrow" and "Dataset" in kind):
        arrow: Any = source
        _check_columns(list(arrow.schema.names), columns)
        return _open_arrow(arrow.select(list(columns)) if isinstance(arrow, pa.Table) else arrow)
    raise _not_a_table(source)


def _not_a_table(source: object) -> InvalidArgument:
    return InvalidArgument(
        f"table is a {type(source).__module__}.{type(source).__qualname__}: needs a path or glob of "
        f"{'/'.join(SUFFIXES[:1] + PARQUET_SUFFIXES[:1] + JSON_SUFFIXES[:1])} files, or a pandas, polars, pyarrow, "
        "DuckDB, Spark or Ibis table."
    )


def _open_arrow(data: Any) -> tuple[Engine, ir.Table]:
    if isinstance(data, pa.Table):
        for position, field in enumerate(data.schema):
            if pa.types.is_dictionary(field.type) or pa.types.is_null(field.type):
                # A column without any value has no type; as strings it serves like any other empty column.
                plain = pa.string() if pa.types.is_null(field.type) else field.type.value_type
                data = data.set_column(position, field.name, data.column(position).cast(plain))
    engine = DuckEngine.embedded()
    try:
        return engine, engine.register(data)
    except BaseException:
        engine.close()
        raise


def _from_pandas(frame: Any, columns: Sequence[str]) -> pa.Table:
    """The columns in Arrow, typed by their dtype alone: columns of Python objects become strings."""
    return shielded("reading the pandas frame", lambda: pa.table({name: _from_series(frame[name]) for name in columns}))


def _from_series(series: Any) -> Any:
    dtype = series.dtype.categories.dtype if hasattr(series.dtype, "categories") else series.dtype
    if str(dtype) != "object":
        return pa.Array.from_pandas(series)
    return pa.array([_text(value) for value in series.astype(object)], type=pa.string())


def _text(value: object) -> str | None:
    """A Python object as a string; None for what is missing or is not text that UTF-8 can hold."""
    text = str(value)
    if value is None or (text in ("nan", "NaT", "<NA>") and not isinstance(value, str)):
        return None
    return None if any("\ud800" <= char <= "\udfff" for char in text) else text


def _open_spark(frame: Any, columns: Sequence[str]) -> tuple[Engine, ir.Table]:
    if not hasattr(frame, "createOrReplaceTempView"):
        raise _not_a_table(frame)
    _check_columns(list(frame.columns), columns)
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


def _open_files(path: str, columns: Sequence[str], *, public: bool = False) -> tuple[Engine, ir.Table]:
    suffix = next((s for s in sorted(SUFFIXES, key=len, reverse=True) if path.lower().endswith(s)), None)
    if suffix is None:
        if Path(path).is_dir():
            raise UnreadableSource(
                f"{path!r} is a folder. Give a glob of its files, such as {path.rstrip('/') + '/*.parquet'!r}."
            )
        raise UnreadableSource(
            f"{path!r}: unknown kind of file; needs a name that ends in one of {', '.join(SUFFIXES)}."
        )
    paths = [path] if Path(path).exists() else sorted(glob.glob(path, recursive=True))
    if not paths:
        raise UnreadableSource(f"{path!r}: no such file, and no file matches it as a glob. Check the path.")
    for one in paths:
        if os.path.isdir(one):
            raise UnreadableSource(
                f"{one!r} is a folder. Give a glob of its files, such as {one.rstrip('/') + '/*' + suffix!r}."
            )
        if not os.path.isfile(one) or not os.access(one, os.R_OK):
            raise UnreadableSource(f"{one!r} is not a file that can be read. Check the path and its permissions.")
    engine = DuckEngine.embedded()
    try:
        return engine, _scan(engine, paths, suffix, columns, public)
    except BaseException:
        engine.close()
        raise


def _scan(engine: DuckEngine, paths: list[str], suffix: str, columns: Sequence[str], public: bool) -> ir.Table:
    # DuckDB takes every path for a pattern, and a folder named `user=7` for a column that hides the file's own.
    exact = [glob.escape(path) for path in paths]
    plain = {"hive_partitioning": False}
    if suffix in PARQUET_SUFFIXES:
        table: ir.Table = _readable(paths, "Parquet", lambda: engine.backend.read_parquet(exact, **plain))
        _check_columns(list(table.columns), columns)
        _check_same_types(paths, columns)
        return table
    if suffix in JSON_SUFFIXES:
        if public:
            found = _readable(paths, "JSON", lambda: engine.backend.read_json(exact, **plain))
            _check_columns(list(found.columns), columns)
            keys = dict.fromkeys(found.columns, "VARCHAR")
            return _readable(paths, "JSON", lambda: engine.backend.read_json(exact, columns=keys, **plain))
        # JSON has no schema, and its keys are content: they are not looked at. A key that is not there is null.
        kinds = {_json_format(path) for path in paths}
        if len(kinds) > 1:
            raise UnreadableSource(f"{paths[0]!r} and the other files mix JSON arrays and JSON lines: use one of them.")
        options: dict[str, Any] = {"format": kinds.pop(), "records": "true", **plain}
        if options["format"] == "newline_delimited":
            options["ignore_errors"] = True
        as_text = dict.fromkeys(columns, "VARCHAR")
        return _readable(paths, "JSON", lambda: engine.backend.read_json(exact, columns=as_text, **options))
    delimiter = "\t" if ".tsv" in suffix else ","
    header = _header(paths, delimiter)
    _check_columns(header, columns, text=paths[0])
    # Everything is said and nothing is sniffed: the dialect must not depend on the rows.
    return _readable(
        paths,
        "CSV",
        lambda: engine.backend.read_csv(
            exact,
            columns=dict.fromkeys(header, "VARCHAR"),
            auto_detect=False,
            header=True,
            delim=delimiter,
            quote='"',
            escape='"',
            nullstr="",
            ignore_errors=True,  # a line that cannot be parsed is dropped, like a null: no row decides over a release
            **plain,
        ),
    )


def _check_same_types(paths: list[str], columns: Sequence[str]) -> None:
    """All Parquet files must agree on the columns' types, by their metadata: a cast by the engine could merge users."""
    schemas = [_readable([path], "Parquet", partial(parquet.read_schema, path)) for path in paths]
    for name in columns:
        for path, schema in zip(paths, schemas, strict=True):
            if name not in schema.names or schema.field(name).type != schemas[0].field(name).type:
                raise InvalidTable(
                    f"{path!r} has column {name!r} in another type than {paths[0]!r}: they need one type."
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


def _readable(paths: list[str], kind: str, read: Any) -> Any:
    try:
        return read()
    except MissingDependency:
        raise
    except Exception:  # noqa: BLE001 (the engine's own message may quote the file's content)
        pass
    raise UnreadableSource(f"{paths[0]!r} cannot be read as {kind}. Check that it is a whole {kind} file.")


def _header(paths: list[str], delimiter: str) -> list[str]:
    headers = [_first_record(path, delimiter) for path in paths]
    header = headers[0]
    for path, other in zip(paths, headers, strict=True):
        if other != header:
            raise UnreadableSource(
                f"{path!r} has other columns than {paths[0]!r}: the files need one and the same header."
            )
    # By place, not by name: in a file that lacks a header line the names would be the first row.
    for place, name in enumerate(header, start=1):
        if not name or header.index(name) + 1 < place:
            what = (
                f"repeats column {header.index(name) + 1} as column {place}"
                if name
                else f"has no name for column {place}"
            )
            raise InvalidTable(f"the header line of {paths[0]!r} {what}: columns need names of their own.")
    return header


def _first_record(path: str, delimiter: str) -> list[str]:
    opener: Any = gzip.open if path.lower().endswith(".gz") else open
    try:
        with opener(path, "rt", encoding="utf-8-sig", newline="") as file:
            record = next(csv.reader(file, delimiter=delimiter), None)
    except (OSError, UnicodeDecodeError, csv.Error):
        record = None
    if record is None:
        raise UnreadableSource(f"{path!r} cannot be read as CSV: it needs UTF-8 text with a header line.")
    return record


def _check_columns(available: Sequence[object], wanted: Sequence[str], text: str | None = None) -> None:
    """Refuse a column that is missing or repeated. `text`: the text file that `available` was read from.

    What a text file has for names is not quoted: without a header line it is the first row, and a JSON key is content.
    """
    for name in wanted:
        if available.count(name) > 1:
            raise InvalidTable(f"column {name!r} occurs more than once in the table. Rename one of them.")
        if name not in available and text is not None:
            kind = "the keys of its records" if text.lower().endswith(JSON_SUFFIXES) else "its header line"
            raise InvalidTable(f"column {name!r} is not in {text!r}. Check {kind}: names need to match exactly.")
        if name not in available:
            raise InvalidTable(f"column {name!r} is not in the table, which has {_listed(available)}.")


def _check_type(role: str, column: str, dtype: dt.DataType) -> None:
    if dtype.is_integer() or dtype.is_string():
        return
    hint = (
        " (pandas turns integers with missing values into floats: use astype('Int64'))" if dtype.is_floating() else ""
    )
    raise InvalidTable(
        f"{role} column {column!r} has type {dtype}: {role}s need to be integers or strings. Cast it first{hint}."
    )


def _listed(names: Sequence[object], most: int = 20) -> str:
    shown = ", ".join(repr(name) for name in names[:most])
    return shown + (f" and {len(names) - most} more" if len(names) > most else "") if names else "no columns"
