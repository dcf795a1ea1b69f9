"""Anything a user has becomes a table in an engine: one of Ibis if it came from there, or needs it.

Types come from the schema, never from the values.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ..errors import InvalidArgument, InvalidTable, PrivacyViolation, UnreadableSource
from .addresses import Database, as_database, is_address, resolved_kind
from .arrow import check_fragments, check_users, flat, holds_text, in_years
from .columns import all_or, check_columns, listed
from .databases import asked_of, open_database, open_ibis
from .delimited import Csv
from .engines import (
    ENGINES,
    DuckEngine,
    Engine,
    Spark,
    current_spark,
    engine_for,
    fresh_name,
    hold_settings,
    running_session,
    shield,
    start_session,
)
from .stored_files import CSV_SUFFIXES, JSON_SUFFIXES, PARQUET_SUFFIXES, TEXT_SUFFIXES, open_files
from .streams import Check, quoted

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from .engines.base import Table

__all__ = ["Placed", "is_text", "open_source"]

_BATCH, _TEXT = 2**11, 2**20
"""Rows of a DuckDB relation that are handed over at once, and the bytes that each text of them is below."""


_RENAMING = ("duckdb", "sqlite")
"""Ibis backends that rename one of two columns whose names differ by case only, without a word."""


@dataclass(frozen=True)
class Placed:
    """A table already in an engine; audits use it to hand in their `CachingEngine`."""

    engine: Engine
    table: Table


def open_source(source: object, columns: Sequence[str] | None, user: str) -> tuple[Engine, Table]:
    """An engine and a table that has at least `columns`; None asks for all of them. No row is read.

    `source`: a path or glob of CSV, Parquet or JSON files, or a list of these, or `Csv`; a database; a pandas, polars,
    pyarrow, DuckDB, Spark or Ibis table. `user`: the user column; empty if users are computed. The caller closes the
    engine.
    """
    if isinstance(source, Placed):
        check_columns(list(source.table.columns), columns)
        return source.engine, source.table
    spark = current_spark()
    if spark is not None and isinstance(source, str | os.PathLike | list | tuple):
        return _open_in_spark(source, spark, columns, user)
    database = as_database(source)
    if spark is not None and (database is None or database.kind != "spark") and not _is_spark_frame(source):
        raise _not_for_spark(source)
    if database is not None:
        if database.kind == "spark":
            return _open_spark_table(database, columns, user, spark)
        return open_database(database, columns, user)
    form = source if isinstance(source, Csv) else None
    paths = _paths(source if form is None else form.path)
    if paths is not None:
        return open_files(paths, columns, user, form=form)
    module, kind = type(source).__module__.split(".")[0], type(source).__name__
    if module == "ibis":
        import ibis

        if not isinstance(source, ibis.Table):
            raise _not_a_table(source)
        check_columns(list(source.columns), columns)
        backend = shield("opening the Ibis table", lambda: ibis.get_backend(source))
        if backend.name in _RENAMING:
            _check_apart(source)
        if backend.name in ENGINES:
            return engine_for(backend), source
        wanted = all_or(columns, source.columns)
        chosen = source.select(*wanted)
        return open_ibis(backend, chosen, user) or _open_arrow(_stream(backend, chosen), user, wanted)
    if module == "pyspark":
        return _open_spark(source, columns)
    if module == "pandas" and kind == "DataFrame":
        names = list(source.columns)  # type: ignore[attr-defined]
        check_columns(names, columns)
        wanted = _without_merged(source, columns, all_or(columns, names), user)
        return _open_arrow(_from_pandas(source, wanted), user, wanted)
    if module == "polars" and kind in ("DataFrame", "LazyFrame"):
        names = list(source.collect_schema().names())  # type: ignore[attr-defined]
        check_columns(names, columns)
        wanted = all_or(columns, names)
        frame = source.select(list(wanted))  # type: ignore[attr-defined]
        whole = lambda: (frame.collect() if kind == "LazyFrame" else frame).to_arrow()  # noqa: E731
        return _open_arrow(shield("reading the polars frame", whole), user, wanted)
    if module in ("duckdb", "_duckdb") and kind == "DuckDBPyRelation":
        names = shield("opening the relation", lambda: list(source.columns))  # type: ignore[attr-defined]
        check_columns(names, columns)
        related = shield("opening the relation", lambda: _related(source, names, columns))
        return _open_arrow(related, user, related.schema.names)
    if isinstance(source, pa.RecordBatch):
        source = pa.Table.from_batches([source])
    dataset = module == "pyarrow" and "Dataset" in kind and hasattr(source, "scanner")
    if isinstance(source, (pa.Table, pa.RecordBatchReader)) or dataset:
        arrow: Any = source
        names = list(arrow.schema.names)
        check_columns(names, columns)
        wanted = flat(arrow.schema, columns) if dataset else all_or(columns, names)
        if dataset:
            shield("opening the dataset", lambda: check_fragments(arrow, wanted))
        return _open_arrow(arrow, user, wanted)
    raise _not_a_table(source)


def _check_apart(table: ir.Table) -> None:
    """Refuse an Ibis table made of one in which the backend would take a column for another, by their names."""
    import ibis.expr.operations as ops

    for relation in table.op().find(ops.Relation):
        names = list(relation.schema.names)
        odd = [name for name in names if name not in all_or(None, names)]
        if odd:
            raise InvalidTable(
                f"table: the Ibis table is made of one with the columns {listed(odd)}, and engines do not tell columns "
                "apart whose names differ by case only, are empty or hold a null character. Rename them.",
                column=odd[0],
            )


def _related(relation: Any, names: Sequence[str], columns: Sequence[str] | None) -> pa.RecordBatchReader:
    """The rows of a DuckDB relation, as a stream that is scanned once: the counts are materialised in that one scan.

    DuckDB fails to hand over a batch with more than 2 GiB of text. So batches are small, and longer texts are missing.
    Columns are taken by their places: over a relation, DuckDB renames those whose names differ by case only.
    """
    schema = relation.limit(0).to_arrow_table().rename_columns(list(names)).schema
    parts = []
    for name in flat(schema, columns):
        column, kind = f"#{names.index(name) + 1}", schema.field(name).type
        size = f"strlen({column}::VARCHAR)" if holds_text(kind) else f"octet_length({column}::BLOB)"
        limited = holds_text(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
        value = f"CASE WHEN {size} < {_TEXT} THEN {column} END" if limited else column
        parts.append(f"{value} AS {quoted(name)}")
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
    if current_spark() is not None:
        return False
    database = as_database(source)
    if database is not None:
        return resolved_kind(database) == "sqlite"
    paths = _paths(source)
    return paths is not None and all(path.lower().endswith(TEXT_SUFFIXES) for path in paths)


def _paths(source: object) -> list[str] | None:
    """The path, or the list of paths, that a source is; None for any other."""
    given: Any = source if isinstance(source, (list, tuple)) else [source]
    if not given or not all(isinstance(one, (str, os.PathLike)) for one in given):
        return None
    return [os.fspath(one) for one in given]


def _not_a_table(source: object) -> InvalidArgument:
    kinds = "/".join(kind[0] for kind in (CSV_SUFFIXES, PARQUET_SUFFIXES, JSON_SUFFIXES))
    return InvalidArgument(
        f"table: is a {type(source).__module__}.{type(source).__qualname__}, and needs to be a path or glob of {kinds} "
        "files, a database, or a pandas, polars, pyarrow, DuckDB, Spark or Ibis table.",
        argument="table",
    )


def _open_arrow(data: Any, user: str, columns: Sequence[str]) -> tuple[Engine, Table]:
    check_users(data.schema, user)
    data = in_years(data, columns)
    engine = DuckEngine.embedded()
    try:
        return engine, engine.register(data)
    except BaseException as error:
        engine.close()
        if isinstance(error, PrivacyViolation) or not isinstance(error, Exception):
            raise
        # else it has a type that the engine does not know
    kinds = ", ".join(sorted({str(field.type) for field in data.schema}))
    raise InvalidTable(f"table: has columns of the types {kinds}, not all of which can be read. Cast them first.")


def _from_pandas(frame: Any, columns: Sequence[str]) -> pa.Table:
    """The columns in Arrow, typed by their dtype alone: columns of Python objects become strings."""
    return shield("reading the pandas frame", lambda: pa.table({name: _from_series(frame[name]) for name in columns}))


def _from_series(series: Any) -> Any:
    if not _of_objects(series.dtype):
        return pa.Array.from_pandas(series)
    return pa.array([_text(value) for value in series.astype(object)], type=pa.string())


def _of_objects(dtype: Any) -> bool:
    return str(dtype) == "object" or getattr(dtype, "storage", "pyarrow") == "python"


def _without_merged(frame: Any, asked: Sequence[str] | None, columns: Sequence[str], user: str) -> list[str]:
    """The columns without categories of Python objects, which are refused if they are asked for.

    To make them, pandas puts the first value it meets for every other that it takes for equal: 7 for 7.0, and before
    pandas 3 "a\\0b" for "a". So one user's value could become another's, and users be merged, before they are here.
    That cannot be seen in the column, and an error that depends on its values would tell of rows: the type decides.
    """
    kinds = {name: getattr(frame[name].dtype, "categories", None) for name in columns}
    merged = [name for name, kind in kinds.items() if kind is not None and _of_objects(kind.dtype)]
    for name in merged:
        if name in (asked or (user,)):
            raise InvalidTable(
                f"column {name!r}: has pandas categories of Python objects, of which pandas may have taken several for "
                "one, so that users or items would merge. Give the column as it was before it had categories, or make "
                "them of text in Arrow: .astype('string[pyarrow]').astype('category').",
                column=name,
            )
    return [name for name in columns if name not in merged]


def _text(value: object) -> str | None:
    """A Python object as a string; None for what is missing, has no text or none that UTF-8 can hold."""
    try:
        text = str(value)
    except Exception:  # noqa: BLE001 (an integer of more than 4300 digits, a list of lists of lists)
        return None
    if value is None or (text in ("nan", "NaT", "<NA>") and not isinstance(value, str)):
        return None
    return None if any("\ud800" <= char <= "\udfff" for char in text) else text


def _open_spark(frame: Any, columns: Sequence[str] | None) -> tuple[Engine, Table]:
    if not hasattr(frame, "createOrReplaceTempView"):
        raise _not_a_table(frame)
    check_columns(list(frame.columns), columns)
    import ibis

    session = frame.sparkSession
    name = fresh_name()
    # Connecting changes settings of the session, which is the user's: put them back at the end.
    put_back = hold_settings(session)
    try:
        backend = ibis.pyspark.connect(session)
    except BaseException:
        put_back()
        raise
    engine = engine_for(backend, [put_back, lambda: session.catalog.dropTempView(name)])
    try:
        frame.createOrReplaceTempView(name)
        return engine, engine.backend.table(name)
    except BaseException:
        engine.close()
        raise


def _is_spark_frame(source: object) -> bool:
    module = type(source).__module__.split(".")[0]
    if module == "ibis":
        import ibis

        return isinstance(source, ibis.Table) and bool(
            shield("opening the Ibis table", lambda: ibis.get_backend(source)).name == "pyspark"
        )
    return module == "pyspark"


def _not_for_spark(source: object) -> InvalidArgument:
    shown = repr(source) if isinstance(source, str) else f"a {type(source).__module__}.{type(source).__qualname__}"
    return InvalidArgument(
        f"table: is {shown}, and in Spark needs to be a path or glob of Parquet files, the name of a table of Spark's "
        "catalogue, or a Spark data frame. Convert text files to Parquet first: Spark reads them by rules of its own.",
        argument="table",
    )


def _open_in_spark(
    source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    spark: Spark,
    columns: Sequence[str] | None,
    user: str,
) -> tuple[Engine, Table]:
    """Parquet files, if there is a slash in the path or it ends like one; else a table of the catalogue, by name."""
    if isinstance(source, str) and is_address(source):
        database = as_database(source)
        if database is None or database.kind != "spark":
            raise _not_for_spark(database)
        return _open_spark_table(database, columns, user, spark)
    paths = _paths(source)
    if paths is None:
        raise _not_for_spark(source)
    if any(path.lower().endswith(TEXT_SUFFIXES) for path in paths):
        raise _not_for_spark(paths[0])
    if isinstance(source, str) and "/" not in source and not source.lower().endswith(PARQUET_SUFFIXES):
        return _open_spark_table(Database("spark:", table=source), columns, user, spark)
    frame, session = None, spark.session()
    with contextlib.suppress(Exception):  # Spark's own words are long, and may quote paths and data
        frame = session.read.options(**_PARQUET).parquet(*(_spark_path(session, path) for path in paths))
    if frame is None:
        raise UnreadableSource(
            f"table={paths[0]!r}: cannot be read by Spark as Parquet. Check the path, which every machine of the "
            "cluster has to reach, and that all files have one schema."
        )
    return _open_spark(frame, columns)


def _spark_path(session: Any, path: str) -> str:
    """A relative path as this process understands it, if Spark's files are those of this machine: Java stays in the
    folder in which it was started.
    """
    local = str(session.sparkContext._jsc.hadoopConfiguration().get("fs.defaultFS")).startswith("file:")
    return os.path.abspath(path) if local and not re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", path) else path


_PARQUET = {
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
    "mergeSchema": "true",
    "recursiveFileLookup": "true",
}
"""Old dates are read as they are, where Spark might fail on them. All files agree on types, which would otherwise be
those of any one. Names of folders are no columns: their types would be guessed from the names.
"""


def _open_spark_table(
    database: Database, columns: Sequence[str] | None, user: str, spark: Spark | None = None
) -> tuple[Engine, Table]:
    """A table or query of Spark's catalogue, in the session that is running or else in one of its own."""
    running = running_session()
    own = spark is None and running is None
    session = spark.session() if spark is not None else running or start_session(None)

    def open_table(name: tuple[str, ...], needed: Sequence[str] | None, check: Check) -> tuple[Engine, Table]:
        frame, exact = None, ".".join(f"`{part.replace('`', '``')}`" for part in name)
        with contextlib.suppress(Exception):  # Spark's own words are long, and may quote paths and data
            # Not a path that stands for a table (`binaryFile`.`/data`): a row of it may be made of all users' rows.
            frame = session.table(exact) if session.catalog.tableExists(exact) else None
        if frame is None:
            raise UnreadableSource(
                f"table={'.'.join(name)!r}: is not in Spark's catalogue. Check the name and the catalogue."
            )
        check(list(frame.columns))
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
