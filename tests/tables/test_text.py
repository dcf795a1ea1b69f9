"""Text that is not UTF-8: its row has no value there, and decides nothing else, whatever holds the table."""

from __future__ import annotations

import sqlite3
from functools import cache
from typing import Any

import duckdb
import ibis
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import dataset, parquet

from crowdgram.tables import Database
from crowdgram.tables.rows import open_rows

from ..thorough import THOROUGH

ODD = {
    "no start": b"\xff\xfe",
    "cut": b"caf\xc3",
    "surrogate": b"\xed\xa0\x80",
    "overlong": b"\xc0\x80",
    "beyond Unicode": b"behind some text that is plain \xf4\x90\x80\x80",
}
COLUMNS = ("user", "item", "other")


def as_strings(values: list[bytes], kind: pa.DataType | None = None) -> pa.Array:
    """Bytes as an Arrow column of strings, unchecked."""
    kind = kind or pa.string()
    held = pa.array(values, pa.large_binary() if kind == pa.large_string() else pa.binary())
    return pa.Array.from_buffers(kind, len(values), held.buffers())


def records(column: str | None, odd: bytes) -> list[tuple[bytes, ...]]:
    """5,000 rows of 50 users; row 7 has `odd` in that column."""
    rows = [[b"u%d" % (i % 50), b"i%d" % (i % 7), "ö€😀".encode()] for i in range(5_000)]
    if column is not None:
        rows[7][COLUMNS.index(column)] = odd
    return [tuple(row) for row in rows]


def arrow(rows: list[tuple[bytes, ...]], kind: pa.DataType | None = None) -> pa.Table:
    return pa.table(dict(zip(COLUMNS, (as_strings(list(one), kind) for one in zip(*rows, strict=True)), strict=True)))


def in_dictionary(table: pa.Table) -> pa.Table:
    places = pa.array(range(table.num_rows), pa.int32())
    return pa.table([pa.DictionaryArray.from_arrays(places, table[name].chunk(0)) for name in COLUMNS], list(COLUMNS))


def in_parquet(rows: list[tuple[bytes, ...]], folder: Any, *, use_dictionary: bool) -> str:
    path = str(folder / "t.parquet")
    parquet.write_table(arrow(rows), path, use_dictionary=use_dictionary)
    return path


def in_sqlite(rows: list[tuple[bytes, ...]], folder: Any) -> Database:
    with sqlite3.connect(folder / "t.sqlite") as file:
        file.execute('CREATE TABLE t ("user" TEXT, item TEXT, other TEXT)')
        file.executemany("INSERT INTO t VALUES (CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT))", rows)
    return Database(str(folder / "t.sqlite"), table="t")


def in_csv(rows: list[tuple[bytes, ...]], folder: Any) -> str:
    (folder / "t.csv").write_bytes(b"\n".join([b"user,item,other", *(b",".join(row) for row in rows), b""]))
    return str(folder / "t.csv")


def in_json_lines(rows: list[tuple[bytes, ...]], folder: Any) -> str:
    (folder / "t.jsonl").write_bytes(b"".join(b'{"user": "%b", "item": "%b", "other": "%b"}\n' % row for row in rows))
    return str(folder / "t.jsonl")


def in_duckdb(rows: list[tuple[bytes, ...]]) -> Any:
    connection = ibis.duckdb.connect()
    connection.con.register("t", arrow(rows))
    return connection.table("t")


def relation(rows: list[tuple[bytes, ...]]) -> Any:
    connection = duckdb.connect()
    connection.register("t", arrow(rows))
    return connection.table("t")


SOURCES: dict[str, Any] = {
    "arrow": lambda rows, _: arrow(rows),
    "arrow, large": lambda rows, _: arrow(rows, pa.large_string()),
    "arrow, dictionary": lambda rows, _: in_dictionary(arrow(rows)),
    "arrow, views": lambda rows, _: pa.table([one.cast(pa.string_view()) for one in arrow(rows).columns], COLUMNS),
    "arrow, reader": lambda rows, _: arrow(rows).to_reader(),
    "parquet": lambda rows, folder: in_parquet(rows, folder, use_dictionary=True),
    "parquet, plain": lambda rows, folder: in_parquet(rows, folder, use_dictionary=False),
    "dataset": lambda rows, folder: dataset.dataset(in_parquet(rows, folder, use_dictionary=True)),
    "pandas": lambda rows, _: arrow(rows).to_pandas(types_mapper=pd.ArrowDtype),
    "polars": lambda rows, _: pl.from_arrow(arrow(rows)),
    "sqlite": in_sqlite,
    "csv": in_csv,
    "json lines": in_json_lines,
    "ibis on duckdb": lambda rows, _: in_duckdb(rows),
    "relation": lambda rows, _: relation(rows),
}


def counted(source: Any, **options: Any) -> dict[Any, int]:
    """Rows by user and item, kept as a release keeps them: nulls too, as None."""
    rows = open_rows(source, user="user", item="item", **options)
    with rows.engine as engine:
        kept = engine.keep(rows.table.group_by("user", "item").agg(n=rows.table.count()), "counting")
        found = engine.fetch(kept, "counting").to_pylist()
    return {(row["user"], row["item"]): row["n"] for row in found}


@cache
def counted_whole() -> dict[Any, int]:
    """The same rows, if all of them have text."""
    return counted(arrow(records(None, b"")))


def without_the_odd(column: str, places: dict[Any, int]) -> dict[Any, int]:
    """What is expected of row 7, of the pair (u7, i0), if `column` has no value there."""
    left = {**places, ("u7", "i0"): places["u7", "i0"] - 1}
    if column == "other":
        return left
    return {**left, ((None, "i0") if column == "user" else ("u7", None)): 1}


def few(kind: str, column: str) -> list[bytes]:
    """Two of the odd texts, such that every source meets each of them in some column; all if thorough."""
    odd, start = list(ODD.values()), list(SOURCES).index(kind) + 2 * COLUMNS.index(column)
    return odd if THOROUGH else [odd[start % 5], odd[(start + 1) % 5]]


@pytest.mark.slow
@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("kind", SOURCES)
def test_text_that_is_not_utf8_is_missing(kind, column, tmp_path):
    options = {"where": "other <> 'x'"} if column == "other" else {}
    whole = counted_whole()
    for place, odd in enumerate(few(kind, column)):
        folder = tmp_path / str(place)
        folder.mkdir()
        found = counted(SOURCES[kind](records(column, odd), folder), **options)
        expected = without_the_odd(column, whole)
        if kind == "json lines":  # the whole record is left out: what it holds is no JSON
            found = {pair: n for pair, n in found.items() if None not in pair}
            expected = {pair: n for pair, n in expected.items() if None not in pair}
        assert found == expected


@pytest.mark.parametrize("column", COLUMNS)
def test_text_inside_expressions(column):
    """Functions of text are reached by text alone."""
    source = arrow(records(column, b"\xff\xfe"))
    found = counted(source, where="upper(other) is not null and length(other) > 0 and right(other, 1) <> 'x'")
    assert found == without_the_odd(column, counted_whole())


@pytest.mark.spark
@pytest.mark.parametrize("column", COLUMNS if THOROUGH else ["user"])
def test_text_that_is_not_utf8_on_spark(column, tmp_path, spark):
    options = {"where": "other <> 'x'"} if column == "other" else {}
    frame = spark.read.parquet(in_parquet(records(column, b"\xff\xfe"), tmp_path, use_dictionary=True))
    assert counted(frame, **options) == without_the_odd(column, counted_whole())


# --- PostgreSQL: the server's bytes, in its own encoding

ENCODINGS = {
    "UTF8": b"\xff",
    "SQL_ASCII": b"\xff",
    "WIN1252": b"\x81",
    "EUC_JP": b"\xad\xa1",
    "EUC_KR": b"\xfe\xa1",
}
"""Bytes that a server of this encoding can hold and that are no text in it; in UTF8, by a cast without a function."""


@pytest.mark.slow
@pytest.mark.parametrize("client", [None, "LATIN1"])
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_text_of_postgres_that_its_encoding_leaves_out_is_missing(postgres_server, encoding, client, monkeypatch):
    import psycopg

    name = f"text_{encoding.lower()}"
    address = f"{postgres_server.rpartition('/')[0]}/{name}"
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f"drop database if exists {name}")
        options = f"encoding '{encoding}' template template0 lc_collate 'C' lc_ctype 'C'"
        connection.execute(f"create database {name} {options}")
    with psycopg.connect(address, client_encoding="SQL_ASCII") as connection:
        connection.execute('create table t ("user" text, item text)')
        connection.execute("insert into t values ('a', 'i'), ('b', 'i')")
        if encoding == "UTF8":
            connection.execute("create cast (bytea as text) without function")
            connection.execute("insert into t values ('\\xff'::bytea::text, 'i')")
        else:
            connection.execute(b"insert into t values ('%b', 'i')" % ENCODINGS[encoding])
    if client is not None:
        monkeypatch.setenv("PGCLIENTENCODING", client)
    expected = {("a", "i"): 1, ("b", "i"): 1, (None, "i"): 1}
    assert counted(Database(address, table="t")) == expected
    if encoding == "SQL_ASCII" or (client and encoding != "UTF8"):
        return  # Ibis itself cannot read these
    backend = ibis.connect(address)
    try:
        before = backend.con.info.parameter_status("client_encoding")
        with backend.con.transaction():
            assert counted(backend.table("t")) == expected
            assert backend.con.info.parameter_status("client_encoding") == before
    finally:
        backend.disconnect()


def test_names_and_texts_of_postgres_in_another_encoding(postgres_server):
    import psycopg

    address = f"{postgres_server.rpartition('/')[0]}/latin"
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute("drop database if exists latin")
        connection.execute("create database latin encoding 'LATIN1' template template0 lc_collate 'C' lc_ctype 'C'")
    with psycopg.connect(address, client_encoding="UTF8") as connection:
        connection.execute('create table "größe" ("user" text, item text, "wörter" text)')
        connection.execute("insert into \"größe\" values ('é', 'ü', 'ß'), ('e', 'ü', 'x')")
    assert counted(Database(address, table="größe"), where="\"wörter\" = 'ß'") == {("é", "ü"): 1}
