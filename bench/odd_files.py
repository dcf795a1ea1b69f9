"""Odd CSV, JSON and Parquet files and databases for the fuzzer."""

from __future__ import annotations

import gzip
import json
import random
import sqlite3
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet
from hostile import HOSTILE
from odd_values import ODD, SECRETS, checked, noise, release, tiny

import crowdgram


def csv_files(rng: random.Random, folder: Path) -> None:
    """CSV that is quoted badly, ragged, of odd encodings, without a header, or of one column."""
    cells = [*HOSTILE, *map(str, SECRETS), "x", "y", "a", "b", "", '"', '""', '"x', 'x"y', "\x00"]
    name = rng.choice(["t.csv", "t.csv", "t.csv", "t.tsv", "t.csv.gz"])
    sep = rng.choice([",", ";", "\t", "|"]) if rng.random() < 0.1 else "\t" if name == "t.tsv" else ","
    header = rng.choice(
        [
            "user,item",
            "user,item",
            "user,item",
            "item,user,more",
            "user",
            "user,user,item",
            "",
            '"user,item',
            "user,item,",
            "\ufeffuser,item",
        ]
    )
    lines = [header.replace(",", sep)]
    for _ in range(rng.randrange(30)):
        lines.append(sep.join(quoted(rng, rng.choice(cells)) for _ in range(rng.choice([2, 2, 2, 1, 3, 0]))))
    data = (
        rng.choice(["\n", "\n", "\r\n", "\r"])
        .join(lines)
        .encode(rng.choice(["utf-8"] * 8 + ["utf-16", "latin-1"]), "replace")
    )
    path = folder / name
    data += noise(rng)
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") and rng.random() < 0.7 else data)
    source: Any = path
    if rng.random() < 0.2:
        encoding = rng.choice(["utf-8", "latin-1", "cp1252", "ascii", *ODD, *HOSTILE])
        source = crowdgram.Csv(path, rng.choice([sep, None, *",;|^\\ ", *ODD]), encoding)
    checked(release(source), ["x", "y"])


def quoted(rng: random.Random, text: str) -> str:
    how = rng.randrange(4)
    if how == 0:
        return '"' + text.replace('"', '""') + '"'
    return '"' + text if how == 1 and rng.random() < 0.3 else text


def json_files(rng: random.Random, folder: Path) -> None:
    """JSON lines or arrays with odd records, or cut short."""
    values = [*HOSTILE, *SECRETS, "x", "y", 1, 1.5, None, True, [], {}, ["x"], {"a": 1}, 2**70, 1e308]
    records: list[Any] = []
    for _ in range(rng.randrange(20)):
        keys = rng.choice([["user", "item"]] * 4 + [["user"], ["item", "user", "z"], [], ["USER", "item"]])
        records.append({key: rng.choice(values) for key in keys} if rng.random() < 0.9 else rng.choice(values))
    text = "\n".join(map(json.dumps, records)) if rng.random() < 0.5 else json.dumps(records)
    data = text.encode(errors="surrogatepass")
    if rng.random() < 0.3:
        data = data[: rng.randrange(len(data) + 1)]
    path = folder / rng.choice(["t.json", "t.jsonl", "t.ndjson"])
    path.write_bytes(data + noise(rng))
    checked(release(path), ["x", "y"])


def parquet_files(rng: random.Random, folder: Path) -> None:
    """Parquet with bytes changed or missing."""
    path = folder / "t.parquet"
    pyarrow.parquet.write_table(tiny(), path)
    data = bytearray(path.read_bytes())
    for _ in range(rng.randrange(0, 12)):
        data[rng.randrange(len(data))] = rng.randrange(256)
    path.write_bytes(bytes(data[: rng.choice([len(data), len(data), rng.randrange(len(data))])]))
    checked(release(path), ["x", "y"])


def databases(rng: random.Random, folder: Path) -> None:
    """SQLite and DuckDB files: odd types and names, values of other types than declared, queries, spoilt bytes."""
    path = folder / rng.choice(["t.db", "t.sqlite", "t.duckdb"])
    path.unlink(missing_ok=True)
    name = rng.choice(["t", "t", "t", "two words", "select", "t.u", *HOSTILE])
    columns = rng.choice([["user", "item"]] * 6 + [["user", "item", "n"], ["USER", "item"], ["user"], ["a b", "item"]])
    lite = not path.name.endswith("duckdb")
    kinds = SQLITE_TYPES if lite else DUCKDB_TYPES
    declared = [rng.choice(kinds if rng.random() < 0.5 else kinds[:3]) for _ in columns]
    try:
        (_sqlite if lite else _duckdb)(rng, path, name, columns, declared)
    except (sqlite3.Error, duckdb.Error, UnicodeEncodeError, OverflowError, ValueError):
        return  # not a table that could be made
    if rng.random() < 0.15:
        data = bytearray(path.read_bytes())
        for _ in range(rng.randrange(1, 40)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        path.write_bytes(bytes(data[: rng.choice([len(data), rng.randrange(len(data))])]))
    form = rng.randrange(4)
    address = str(path) if form else f"{rng.choice(['sqlite', 'duckdb'])}:///{path}"
    if form == 1:
        database = crowdgram.Database(address, query=rng.choice(QUERIES).format(t=name.replace("{", "")))
    elif form == 2:
        database = crowdgram.Database(address, table=rng.choice([name, "main." + name, rng.choice(HOSTILE), ""]))
    else:
        database = crowdgram.Database(address, table=name)
    extra = {"count": "n"} if "n" in columns else {}
    domain: list[Any] = rng.choice([["x", "y"], ["x", "y"], [1, 2]])
    checked(release(database, domain=domain, user=columns[0], item=columns[-1 if not extra else 1], **extra))


SQLITE_TYPES = (
    "TEXT", "INTEGER", "", "REAL", "BLOB", "NUMERIC", "VARCHAR(3)", "DATE", "DATETIME", "BOOLEAN", "DECIMAL(10,2)",
    "UUID", "JSON", "odd type", "INT UNSIGNED", "BIGINT",
)  # fmt: skip


DUCKDB_TYPES = (
    "VARCHAR", "INTEGER", "BIGINT", "HUGEINT", "UHUGEINT", "DOUBLE", "BLOB", "DATE", "TIMESTAMP", "TIMESTAMPTZ",
    "TIME",
    "BOOLEAN", "DECIMAL(38,2)", "UUID", "INTEGER[]", "STRUCT(a INTEGER)", "MAP(VARCHAR, INTEGER)", "INTERVAL", "BIT",
    "UNION(a INTEGER, b VARCHAR)", "INTEGER[2]", "UTINYINT", "TIMESTAMP_NS", "JSON",
)  # fmt: skip


QUERIES = (
    'SELECT * FROM "{t}"', 'SELECT user, item FROM "{t}" WHERE item <> 0', "SELECT 1", "", ";", "SELECT",
    "DROP TABLE t",
    'SELECT user, lower(item) AS item FROM "{t}"', 'SELECT user, item, count(*) AS n FROM "{t}" GROUP BY user, item',
    'SELECT user, max(item) AS item FROM "{t}"', 'SELECT user, item FROM "{t}" LIMIT 1',
    "SELECT 'u' AS user, 1/0 AS item",
    'SELECT user, CAST(item AS INTEGER) AS item FROM "{t}"', 'SELECT a.user, b.item FROM "{t}" a, "{t}" b',
    'WITH w AS (SELECT * FROM "{t}") SELECT * FROM w', "SELECT user, item FROM read_csv('/etc/passwd')", "ATTACH 'x'",
    'SELECT user, user FROM "{t}"', 'SELECT user AS user, item AS user FROM "{t}"', "VALUES (1, 2)", "SELECT \x00",
    'SELECT user, error(item) AS item FROM "{t}"', 'SELECT user, json_extract(item, item) AS item FROM "{t}"',
    'SELECT user, abs(-9223372036854775808) AS item FROM "{t}"', "PRAGMA table_info(t)",
    "SELECT user, item FROM missing",
    "SELECT user, getenv('HOME') AS item FROM \"{t}\"", "SELECT user, item FROM \"{t}\" ORDER BY random()",
)  # fmt: skip


CELLS: tuple[Any, ...] = (
    *SECRETS, *SECRETS, "x", "y", "x", "y", 1, 2, None, 1.5, -1, 0, 2**63 - 1, b"s3cret", "2024-01-01", "true", "",
    float("nan"),
    "00000000-0000-0000-0000-000000000001", "{}", "[1]",
)  # fmt: skip


def _sqlite(rng: random.Random, path: Path, name: str, columns: list[str], declared: list[str]) -> None:
    quoted = ['"' + column.replace('"', '""') + '"' for column in columns]
    with sqlite3.connect(path) as connection:
        connection.text_factory = bytes
        table = '"' + name.replace('"', '""') + '"'
        kinds = ", ".join(f"{column} {kind}" for column, kind in zip(quoted, declared, strict=True))
        connection.execute(f"CREATE TABLE {table} ({kinds})")
        marks = ", ".join("?" for _ in columns)
        for _ in range(rng.randrange(12)):
            row = [rng.choice(CELLS if rng.random() < 0.8 else HOSTILE) for _ in columns]
            connection.execute(f"INSERT INTO {table} VALUES ({marks})", row)
        if rng.random() < 0.1:  # text that is not UTF-8
            connection.execute(f"INSERT INTO {table} ({quoted[0]}) VALUES (CAST(x'ff733363726574' AS TEXT))")
    connection.close()


def _duckdb(rng: random.Random, path: Path, name: str, columns: list[str], declared: list[str]) -> None:
    quoted = ['"' + column.replace('"', '""') + '"' for column in columns]
    with duckdb.connect(str(path)) as connection:
        table = '"' + name.replace('"', '""') + '"'
        kinds = ", ".join(f"{column} {kind}" for column, kind in zip(quoted, declared, strict=True))
        connection.execute(f"CREATE TABLE {table} ({kinds})")
        casts = ", ".join(f"TRY_CAST(? AS {kind})" for kind in declared)
        for _ in range(rng.randrange(12)):
            row = [rng.choice(CELLS if rng.random() < 0.8 else HOSTILE) for _ in columns]
            connection.execute(f"INSERT INTO {table} VALUES ({casts})", row)
