"""Throw odd input at Crowdgram: a valid release or a clear error, nothing else, and never a hang.

    python bench/fuzz.py [--cases 20000] [--seed 0] [--only KIND]

Kinds: arguments, domains, saved files, CSV, JSON, Parquet files, tables of odd schemas, databases, expressions,
shapes (counts, groups, several columns, items that are found), and outcomes: expressions over extreme rows, which may
fail on none of them and give each row a value that no other row decides over. Every case is made from the seed and its
number, so a failure can be run again: `--only KIND --seed S --first N --cases 1`. Exits with 1 if a case ended in
anything but a release or a CrowdgramError, took longer than TIMEOUT seconds, or said a value of the table (SECRETS).
"""

from __future__ import annotations

import argparse
import datetime
import decimal
import gzip
import inspect
import json
import random
import signal
import sqlite3
import sys
import tempfile
import time
import traceback
import uuid
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet
from hostile import HOSTILE

import crowdgram
from crowdgram import releases
from crowdgram.errors import CrowdgramError
from crowdgram.tables import open_rows
from crowdgram.tables.expressions import evaluate
from crowdgram.tables.roles import WHERE
from crowdgram.tables.sources import open_source

TIMEOUT = 30

SECRETS = ("s3cret", 914872635)
"""Values of tables that no message may hold."""

unsanitized: Any = inspect.unwrap(releases.release)

ODD: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2**31, 2**63, 2**64, -(2**70), 0.0, 1.0, -1.0, 1e-300, 1e300, float("nan"),
    float("inf"), "", "1", "-1", b"x", [], {}, (), set(), object(), [1, 1], ["a", None], [[1]], {"a": 1}, range(3),
    1j,
    decimal.Decimal("1.5"), datetime.date(2024, 1, 1), uuid.UUID(int=1), np.float32(1), np.int64(1), np.array([1, 2]),
    np.array([[1]]), Path("/nonexistent"), "/nonexistent.csv", "/", ".", "*.csv", crowdgram,
)  # fmt: skip


class Hang(BaseException):
    """A case took too long. No error handler may swallow it."""


@contextmanager
def patience(seconds: int) -> Iterator[None]:
    """Raise `Hang` after so many seconds."""

    def give_up(*_: object) -> None:
        raise Hang

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def tiny() -> pa.Table:
    return pa.table({"user": ["a", "a", "b"], "item": ["x", "y", "x"]})


def checked(made: crowdgram.Release, items: list[Any] | None = None) -> None:
    """Whether a release is one: a distribution over its items, with intervals around it."""
    p = made.probabilities
    assert abs(float(p.sum()) - 1) < 1e-6
    assert np.all(np.isfinite(p))
    assert np.all(p >= 0)
    assert np.all(made.lower <= p + 1e-9)
    assert np.all(p - 1e-9 <= made.upper)
    assert items is None or list(made.items) == items
    repr(made), made._repr_html_(), made.top(3)


def release(table: object, **changes: Any) -> crowdgram.Release:
    usual = {
        "user": "user",
        "item": "item",
        "epsilon": 1.0,
        "domain": ["x", "y"],
        "mechanism": "laplace",
        "weight": "users",
    }
    # Unsanitized, so that an error nobody foresaw is seen as what it is.
    return unsanitized(table, **(usual | changes))


def arguments(rng: random.Random, _: Path) -> None:
    """Arguments of the wrong kind, one to three at a time."""
    names = [
        "user", "item", "epsilon", "delta", "domain", "adjacency", "weight", "mechanism", "max_rows_per_user",
        "rounds", "prior",
        "progress", "table",
    ]  # fmt: skip
    odd = {name: rng.choice(ODD + HOSTILE) for name in rng.sample(names, rng.choice([1, 1, 2, 3]))}
    if "rounds" in odd:
        odd["mechanism"] = crowdgram.Adaptive(rounds=odd.pop("rounds"))
    if "prior" in odd:
        given, form = odd.pop("prior"), rng.randrange(3)
        odd["mechanism"] = crowdgram.Auto(
            prior=[given, {"x": given}, {given: 1.0} if _hashable(given) else given][form]
        )
    checked(release(odd.pop("table", tiny()), **odd))


def _hashable(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def domains(rng: random.Random, folder: Path) -> None:
    """Lists, files and columns that are not quite a domain."""
    from crowdgram.tables import read_domain

    kind = open_types(rng)
    pool = HOSTILE + ODD if rng.random() < 0.5 else HOSTILE
    values = [rng.choice(pool) for _ in range(rng.randrange(6))]
    form = rng.randrange(6)
    domain: Any = values
    if form == 1:
        domain = folder / rng.choice(["d.txt", "d.csv", "d.json", "d"])
        domain.write_bytes("\n".join(map(str, values)).encode(errors="surrogatepass") + noise(rng))
    elif form == 2:
        domain = (v for v in values)
    elif form == 3:
        domain = np.array([str(v) for v in values])
    elif form == 4:
        domain = rng.choice(ODD)
    elif form == 5:
        domain = pa.array([str(v).encode(errors="replace").decode() for v in values])
    read = read_domain(domain, kind, item="item")
    assert len(set(read.items)) == len(read.items) > 0


def open_types(rng: random.Random) -> Any:
    """The item type of a table of strings or of integers."""
    if not _TYPES:
        for values in (["x"], [1]):
            rows = open_rows(pa.table({"user": ["a"], "item": values}), user="user", item="item")
            with rows.engine:
                _TYPES.append(rows.item_type)
    return rng.choice(_TYPES)


_TYPES: list[Any] = []


def saved(rng: random.Random, folder: Path) -> None:
    """A saved release with a few bytes or values changed."""
    if not _SAVED:
        path = folder / "good.json"
        release(tiny()).save(path)
        _SAVED.append(path.read_text())
    text = _SAVED[0]
    if rng.random() < 0.4:
        data = bytearray(text.encode())
        for _ in range(rng.randrange(1, 8)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        raw = bytes(data[: rng.choice([len(data), rng.randrange(len(data))])])
    else:
        document = json.loads(text)
        for _ in range(rng.randrange(1, 4)):
            spoil(rng, document)
        raw = json.dumps(document, default=str).encode()
    path = folder / "r.json"
    path.write_bytes(raw)
    checked(crowdgram.load(path))


_SAVED: list[str] = []


def spoil(rng: random.Random, node: Any) -> None:
    """Change, drop or add something somewhere in a JSON document."""
    while isinstance(node, (dict, list)) and node:
        key = rng.choice(list(node)) if isinstance(node, dict) else rng.randrange(len(node))
        if isinstance(node[key], (dict, list)) and node[key] and rng.random() < 0.6:
            node = node[key]
            continue
        act = rng.randrange(4)
        if act == 0:
            del node[key]
        elif act == 1 and isinstance(node, dict):
            node[rng.choice(HOSTILE)] = rng.choice(HOSTILE)
        elif act == 2:
            node[key] = rng.choice([-1, 1e999, 2**70, None, True, [], {}, [[]], "", *HOSTILE[:8]])
        else:
            node[key] = [node[key]] * rng.randrange(4)
        return


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


def schemas(rng: random.Random, _: Path) -> None:
    """Tables with columns of every type, odd names, repeated names, or no rows."""
    kinds = [
        pa.string(), pa.large_string(), pa.int8(), pa.int64(), pa.uint64(), pa.float64(), pa.bool_(), pa.date32(),
        pa.null(), pa.timestamp("us"), pa.binary(), pa.list_(pa.int64()), pa.struct([("a", pa.int64())]),
        pa.decimal128(10, 2), pa.dictionary(pa.int32(), pa.string()), pa.duration("s"), pa.time64("us"), pa.float16(),
        pa.string_view(), pa.map_(pa.string(), pa.int64()), pa.binary(4), pa.decimal256(50, 3),
        pa.month_day_nano_interval(),
    ]  # fmt: skip
    rows = rng.randrange(4)
    names = [rng.choice(["user", "item", "User", " user", *HOSTILE]) for _ in range(rng.randrange(3))]
    names = rng.sample([*names, "user", "item"], len(names) + 2)
    columns = [
        pa.nulls(rows, rng.choice(kinds[:4] if name in ("user", "item") and rng.random() < 0.5 else kinds))
        for name in names
    ]
    table = pa.Table.from_arrays(columns, names=names)
    if rng.random() < 0.3:
        form = rng.randrange(3)
        table = (
            table.to_pandas()
            if form == 0
            else table.to_batches()[0]
            if form == 1 and table.num_rows
            else table.to_reader()
        )
    domain: list[Any] = rng.choice([["x", "y"], [1, 2], ["1"], [rng.choice(HOSTILE)]])
    checked(release(table, domain=domain, user=rng.choice(["user", *names]), item=rng.choice(["item", *names])))


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


def wide(rng: random.Random) -> pa.Table:
    """A table with a column of most types, whose values are secret."""
    rows = rng.randrange(1, 9)
    text = ["x", "y", "", "s3cret", "12", "s3cret 2024-01-01", "\u00fc" * 3, None, *HOSTILE[:40]]
    whole = [0, 1, 2, -1, 914872635, 2**31, 2**62, 2**63 - 1, -(2**63), None]
    real = [0.0, 1.5, -1e308, 914872635.5, float("nan"), float("inf"), 5e-324, None]
    moments = [
        datetime.datetime(2024, 2, 29, 23, 59),
        datetime.datetime(1, 1, 1),
        datetime.datetime(9999, 12, 31),
        None,
    ]

    def some(values: list[Any], kind: pa.DataType) -> pa.Array:
        return pa.array([rng.choice(values) for _ in range(rows)], kind)

    return pa.table(
        {
            "user": some(["s3cret a", "s3cret b", "c", None], pa.string()),
            "item": some(["x", "y", "s3cret"], pa.string()),
            "text": some(text, pa.string()),
            "whole": some(whole, pa.int64()),
            "small": some([0, 1, 127, -128, None], pa.int8()),
            "real": some(real, pa.float64()),
            "flag": some([True, False, None], pa.bool_()),
            "day": some([None if m is None else m.date() for m in moments], pa.date32()),
            "moment": some(moments, pa.timestamp("us")),
            "price": some([decimal.Decimal("914872635.25"), decimal.Decimal(0), None], pa.decimal128(18, 2)),
            "raw": some([b"s3cret", None], pa.binary()),
        }
    )


def expressions(rng: random.Random, _: Path) -> None:
    """Filters, computed items and users, and bins, some of which do not fit or are no expressions at all."""
    depth = rng.randrange(4)
    asked: dict[str, Any] = {"where": grown(rng, "truth", depth) if rng.random() < 0.9 else rng.choice(HOSTILE)}
    kind = rng.choice(["number", "text", "date", "truth"])
    domain: list[Any] | None = ["x", "y"]
    if rng.random() < 0.3:
        asked["user"] = {"made": grown(rng, rng.choice(["number", "text", "date", "truth"]), depth)}
    if rng.random() < 0.2:
        edges = rng.choice([[0, 1], [-1e308, -1, 0.5, 2**53, 1e308], range(200), *ODD])
        asked["item"], domain = {"made": crowdgram.Bins(grown(rng, "number", depth), edges)}, None
    elif rng.random() < 0.6:
        asked["item"] = {"made": grown(rng, kind, depth)}
        domain = {"number": [1, 2], "text": ["x", "y"], "date": ["2024-01-01"], "truth": [True, False]}[kind]
    table: Any = wide(rng)
    if rng.random() < 0.2:
        table = table.drop_columns(["raw"]).to_pandas()
    checked(release(table, domain=domain, **asked))


WILD = (
    "text", "whole", "real", "flag", "day", "moment", "price", "raw", "user", "missing", "0", "1e308", "''", "NULL",
    "9223372036854775807", "DATE '2024-01-01'", "INTERVAL 1 DAY", "*", "count(*)", "random()", "now()", "(SELECT 1)",
    "?", "$1", "x'00'", "'[('", "t.text", '"text"', "sum(whole)", "row_number() OVER ()", "error(text)", "raw[1]",
    "text -- ", "1; 2", "((1)", "hash(text)", "strptime(text, text)", "chr(whole)", "repeat(text, whole)",
    "EXISTS (SELECT 1)", "text COLLATE NOCASE", "1 << whole", "lpad(text, whole, text)", "date_trunc(text, day)",
)  # fmt: skip
TYPED = {
    "number": (
        "whole", "small", "price", "1", "-1", "7", "9223372036854775807", "{number} + {number}",
        "{number} - {number}",
        "{number} * {number}", "{number} / {number}", "{number} % {number}", "{number} // {number}", "-{number}",
        "abs({number})", "round({number}, 2)", "floor({number})", "sqrt({number})", "ln({number})", "length({text})",
        "power({number}, {number})", "CAST({text} AS INTEGER)", "TRY_CAST({text} AS INTEGER)", "real",
        "CAST({number} AS DECIMAL(4, 2))", "CAST({number} AS TINYINT)", "year({date})", "extract(month FROM {date})",
        "coalesce({number}, {number})", "nullif({number}, {number})", "greatest({number}, {number})",
        "CASE WHEN {truth} THEN {number} ELSE {number} END",
    ),
    "text": (
        "text", "item", "'x'", "''", "lower({text})", "upper({text})", "trim({text})",
        "replace({text}, {text}, {text})",
        "substring({text}, {number}, {number})", "left({text}, {number})", "concat({text}, {text})",
        "{text} || {text}",
        "CAST({number} AS TEXT)", "CAST({date} AS TEXT)", "split_part({text}, {text}, {number})",
        "coalesce({text}, 'x')",
        "regexp_replace({text}, {text}, {text})", "strftime({date}, '%Y-%m')", "CASE WHEN {truth} THEN {text} END",
        "CASE {text} WHEN {text} THEN {text} ELSE {text} END",
    ),
    "date": (
        "day", "moment", "date_trunc('month', {date})", "DATE '2024-01-01'", "CAST({text} AS DATE)",
        "CAST({date} AS DATE)",
        "TRY_CAST({text} AS DATE)", "{date} + INTERVAL 1 DAY", "{date} - INTERVAL 999999 YEAR",
        "coalesce({date}, day)",
    ),
    "truth": (
        "flag", "true", "{number} = {number}", "{number} < {number}", "{text} = {text}", "{text} LIKE {text}",
        "NOT {truth}",
        "{text} IN ('x', {text})", "{number} BETWEEN {number} AND {number}", "{truth} AND {truth}",
        "{truth} OR {truth}",
        "{date} < {date}", "{number} IS NULL", "regexp_matches({text}, {text})", "starts_with({text}, {text})",
        "{number} IN (1, 2)", "{text} IS NOT NULL",
    ),
}  # fmt: skip


def grown(rng: random.Random, kind: str, depth: int) -> str:
    """An expression of a kind, so many shapes deep; now and then a part of it is something else."""
    if rng.random() < 0.04:
        return rng.choice(WILD)
    shapes = [shape for shape in TYPED[kind] if depth > 0 or "{" not in shape]
    shape = rng.choice(shapes)
    for _ in range(shape.count("{")):
        part = shape[shape.index("{") + 1 : shape.index("}")]
        shape = shape.replace("{" + part + "}", grown(rng, part, depth - 1), 1)
    return shape


EXTREME: dict[str, tuple[pa.DataType, tuple[Any, ...]]] = {
    "whole": (pa.int64(), (2**62, -(2**62), 2**63 - 1, -(2**63), 2**52 + 1, -(2**31), -1, 0, 1, 7, None)),
    "small": (pa.int8(), (127, -128, 0, -1, 3, None)),
    "real": (
        pa.float64(),
        (float("nan"), float("inf"), -float("inf"), 1e308, -1e308, 5e-324, -0.0, 0.5, 2.0**63, -(2.0**52), None),
    ),
    "text": (
        pa.string(),
        (
            "", " ", "x", "12", "-7", "9" * 18, "9" * 19, "1" * 400, "-9223372036854775808", "nan", "-inf", "1e999",
            "0x10", "1_0", "true", "2024-02-29", "2024-02-30", "0000-01-01", "99999-01-01", "infinity", "-infinity",
            "290309-12-22 (BC)", "2024-02-29 25:00", "2024-01-01 00:00:00+99", "epoch", "24:00", "a\\E(b", "[(", "%_\\",
            "\u0130\u00df\ufb03", "e\u0301", "\U0001f600", "x" * 300_000, "\u00fc" * 70_000, None,
        ),
    ),
    "flag": (pa.bool_(), (True, False, None)),
    "day": (
        pa.date32(),
        (datetime.date(1, 1, 1), datetime.date(9999, 12, 31), datetime.date(1969, 2, 28), datetime.date(2024, 2, 29)),
    ),
    "moment": (
        pa.timestamp("us"),
        (
            datetime.datetime(1, 1, 1),
            datetime.datetime(9999, 12, 31, 23, 59, 59, 999999),
            datetime.datetime(1969, 12, 31, 23, 59, 59, 999999),
            datetime.datetime(2024, 2, 29),
            None,
        ),
    ),
}  # fmt: skip
"""Columns with the values at which functions fail, if they do."""


def extreme(rng: random.Random, rows: int = 80) -> pa.Table:
    """Rows of extreme values: each is there, in company that is drawn."""
    made: dict[str, pa.Array] = {"user": pa.array([f"u{k}" for k in range(rows)])}
    for name, (kind, values) in EXTREME.items():
        column = [*values, *(rng.choice(values) for _ in range(rows - len(values)))]
        made[name] = pa.array(rng.sample(column, rows), kind)
    return pa.table(made)


SOUND = {
    "whole": (
        "whole", "small", "0", "1", "-1", "3", "4611686018427387904", "9223372036854775807", "{whole} + {whole}",
        "{whole} - {whole}", "{whole} * {whole}", "{whole} // {whole}", "{whole} % {whole}", "-({whole})",
        "abs({whole})", "length({text}) * 0 + 4611686018427387904", "length({text})", "floor({real})", "ceil({real})",
        "round({real})", "floor({whole})", "cast({text} as bigint)", "cast({truth} as integer)", "year({moment})",
        "extract(quarter from {date})", "isodow({date})", "dayofweek({moment})", "second({moment})", "hour({moment})",
        "coalesce({whole}, {whole})", "nullif({whole}, {whole})", "greatest({whole}, {whole})",
        "case when {truth} then {whole} else {whole} end", "if({truth}, {whole}, null)", "null + {whole}",
    ),
    "real": (
        "real", "0.5", "1e308", "-1e308", "5e-324", "0.0", "{real} + {real}", "{real} - {whole}", "{whole} * {real}",
        "{whole} / {whole}", "{real} / {real}", "-({real})", "abs({real})", "cast({text} as double)",
        "cast({whole} as double)", "nullif({whole}, {real})", "nullif({real}, {whole})", "coalesce({whole}, {real})",
        "least({whole}, {real})", "case when {truth} then {whole} else {real} end",
    ),
    "text": (
        "text", "'x'", "''", "'\\'", "lower({text})", "upper({text})", "trim({text})", "concat({text}, {text})",
        "{text} || {text}", "{text} || {text} || {text}", "cast({whole} as text)", "cast({real} as text)",
        "cast({date} as text)", "cast({moment} as text)", "cast({truth} as text)", "left({text}, 999999999)",
        "right({text}, 999999999)", "substring({text}, 999999999, 999999999)", "substring({text}, 2)",
        "split_part({text}, '-', 2)", "split_part({text}, '\\E(', 1)", "split_part({text}, '.', 999999999)",
        "split_part({text}, 'x', 3)", "strftime({date}, 'T%Y''%j')", "strftime({moment}, '%y-%m-%d %H:%M:%S')",
        "coalesce({text}, {text})", "nullif({text}, {text})", "case {text} when {text} then {text} end",
    ),
    "date": (
        "day", "date '9999-12-31'", "cast({text} as date)", "cast({moment} as date)", "date_trunc('week', {date})",
        "date_trunc('year', {date})", "coalesce({date}, {date})", "greatest({date}, {date})",
    ),
    "moment": (
        "moment", "cast({text} as timestamp)", "cast({date} as timestamp)", "date_trunc('hour', {moment})",
        "date_trunc('week', {moment})", "date_trunc('second', {date})", "coalesce({date}, {moment})",
        "nullif({moment}, {date})",
    ),
    "truth": (
        "flag", "true", "null", "{whole} = {whole}", "{real} < {whole}", "{text} <= {text}", "{date} < {moment}",
        "not ({truth})", "({truth}) and ({truth})", "({truth}) or ({truth})", "{text} like '%\\_x'",
        "{text} ilike '\\%'", "{whole} in (1, {whole}, 0.5)", "{text} in ('x', {text})",
        "{whole} between {whole} and {real}",
        "{text} is null", "({truth}) is not true", "({whole} is not distinct from {whole}) = ({truth})",
        "({truth}) is distinct from ({truth})", "starts_with({text}, {text})", "ends_with({text}, {text})",
        "contains({text}, {text})", "cast({text} as boolean)", "cast({whole} as boolean)", "day > '2024-02-01'",
    ),
}  # fmt: skip
"""Shapes of expressions that may be used, by the type of what they give."""


def sound(rng: random.Random, kind: str, depth: int) -> str:
    """An expression of a kind of allowed pieces only, at most so many shapes deep."""
    shapes = [shape for shape in SOUND[kind] if depth > 0 or "{" not in shape]
    # Shapes without parts are half of the leaves only: else most expressions would be shallow.
    deep = [shape for shape in shapes if "{" in shape]
    shape = rng.choice(deep if deep and rng.random() < 0.8 else shapes)
    for _ in range(shape.count("{")):
        part = shape[shape.index("{") + 1 : shape.index("}")]
        inner = sound(rng, part, depth - 1)
        shape = shape.replace("{" + part + "}", inner if inner.isidentifier() else f"({inner})", 1)
    return shape


def same_outcomes(tables: list[Any], texts: list[str]) -> None:
    """Compute the expressions for each table, the first of which has all rows: none fails, and a row has one value.

    For the first table without the engine's TRY: the functions that expressions are made of may not need it.
    """
    known: dict[str, dict[str, Any]] = {}
    for number, given in enumerate(tables):
        engine, table = open_source(given, None, "user")
        if number == 0:
            engine.tried = lambda value: value  # type: ignore[method-assign]
        with engine:
            made = {f"v{k}": evaluate(text, engine, table, WHERE) for k, text in enumerate(texts)}
            try:
                found = engine.fetch(table.select("user", **made), "testing").to_pylist()
            except CrowdgramError:
                raise AssertionError(f"table {number}: one of {texts} fails on some row") from None
        for row in found:
            values = {name: repr(value) for name, value in row.items()}
            assert known.setdefault(row["user"], values) == values, (texts, number, row["user"])
        assert number > 0 or len(found) == len(known)


def outcomes(rng: random.Random, _: Path) -> None:
    """Expressions over extreme rows, over half of them, over one and over none."""
    whole = extreme(rng)
    tables = [whole, whole.slice(0, 40), whole.slice(rng.randrange(80), 1), whole.slice(0, 0)]
    kinds = [rng.choice(list(SOUND)) for _ in range(3)]
    same_outcomes(tables, [sound(rng, kind, rng.randrange(1, 5)) for kind in kinds])


def shapes(rng: random.Random, _: Path) -> None:
    """Counts, groups, several columns and items that are found, of columns that may not fit, with odd lists."""

    def mostly(values: list[Any], odd: tuple[Any, ...] = ODD) -> Any:
        return rng.choice(values if rng.random() < 0.93 else odd)

    lists: dict[str, list[Any]] = {
        "item": ["x", "y"],
        "text": ["x", "y", "12"],
        "whole": [0, 1, 2],
        "small": [0, 1, 127],
        "flag": [True, False],
        "day": [datetime.date(2024, 2, 29), "0001-01-01"],
        "moment": ["2024-02-29"],
        "real": [1.5],
        "raw": [b"x"],
    }
    names = list(lists)
    usual = names[:6]
    chosen = rng.sample(usual, rng.choice([1, 1, 1, 2, 3]))
    domain: Any = lists[chosen[0]] if len(chosen) == 1 else {name: lists[name] for name in chosen}
    if rng.random() < 0.4:
        domain = mostly([None, "discover"])
    elif len(chosen) > 1 and rng.random() < 0.3:
        domain = [tuple(lists[name][0] for name in chosen)]
    asked: dict[str, Any] = {
        "item": mostly([chosen if len(chosen) > 1 else chosen[0]], (*ODD, *names, ["item", "item"])),
        "domain": mostly([domain]),
        "delta": rng.choice([1e-6] * 8 + [0.0, 1e-100]),
        "mechanism": rng.choice(["laplace", "laplace", "laplace", "gaussian", "sample-one", "auto", "adaptive"]),
    }
    if rng.random() < 0.4:
        asked["count"] = mostly(["whole", "small"], (*ODD, *names))
    if rng.random() < 0.4:
        by = rng.choice([name for name in usual if name not in chosen])
        asked["by"] = mostly([by, by, {"made": grown(rng, "text", 1)}], (*ODD, *names))
        asked["groups"] = mostly([None, "discover", lists[by], ["x", "y"]])
    if rng.random() < 0.3:
        asked["other"] = mostly(["other", "x"], (*ODD, *HOSTILE))
    if rng.random() < 0.1:
        asked[rng.choice(["domain", "groups"])] = crowdgram.Discover(rng.choice([0.5, 0.001, 0.999, *ODD]))
    if rng.random() < 0.1:
        asked["where"] = grown(rng, "truth", 1)
    made: Any = release(wide(rng), **asked)
    made = made.joint if isinstance(made, crowdgram.GroupedRelease) else made
    checked(made)
    assert not any(str(secret) in repr(made.items) for secret in SECRETS)


def reaches(rng: random.Random, _: Path) -> None:
    """Users by item, of columns that may not fit, with odd bounds."""

    def mostly(values: list[Any]) -> Any:
        return rng.choice(values if rng.random() < 0.95 else ODD)

    lists: dict[str, list[Any]] = {"item": ["x", "y"], "whole": [0, 1, 2], "flag": [True, False], "real": [1.5]}
    names = list(lists)
    item = rng.choice(names[:3] if rng.random() < 0.9 else names)
    asked: dict[str, Any] = {
        "item": mostly([item]),
        "domain": mostly([None, lists[item], lists[item]]),
        "epsilon": mostly([1.0, 0.1]),
        "delta": mostly([1e-6] * 6 + [0.0, 1e-100]),
        "adjacency": mostly(["add-remove", "replace"]),
        "max_items_per_user": mostly([None, None, 1, 3, 10**9]),
    }
    if rng.random() < 0.3:
        asked["count"] = rng.choice(["whole", "small", *names, *ODD])
    if rng.random() < 0.3:
        asked["other"] = rng.choice(["other", "x", *ODD, *HOSTILE])
    if rng.random() < 0.2:
        asked["where"] = grown(rng, "truth", 1)
    if rng.random() < 0.3:
        by = rng.choice(names[:3])
        asked |= {"by": mostly([by]), "groups": mostly([None, lists[by], lists[by]])}
    found = crowdgram.reach(wide(rng), user="user", **asked)
    made = found.joint if isinstance(found, crowdgram.GroupedReach) else found
    assert (made.lower <= made.counts + 1e-9).all()
    assert (made.counts <= made.upper + 1e-9).all()
    assert made.users.lower <= made.users.value <= made.users.upper
    assert not any(str(secret) in repr(made.items) for secret in SECRETS)


def noise(rng: random.Random) -> bytes:
    """Nothing, mostly; else a few bytes of any kind."""
    return rng.randbytes(rng.randrange(1, 20)) if rng.random() < 0.1 else b""


KINDS: dict[str, Callable[[random.Random, Path], None]] = {
    "arguments": arguments,
    "domains": domains,
    "saved": saved,
    "csv": csv_files,
    "json": json_files,
    "parquet": parquet_files,
    "schemas": schemas,
    "databases": databases,
    "expressions": expressions,
    "shapes": shapes,
    "reach": reaches,
    "outcomes": outcomes,
}


def run(kind: str, seed: int, number: int, folder: Path) -> str | None:
    """One case: the error's name, None for a release, and what went wrong as an AssertionError."""
    rng = random.Random(f"{kind}-{seed}-{number}")
    try:
        with patience(TIMEOUT), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            KINDS[kind](rng, folder)
    except CrowdgramError as error:
        if not str(error).strip():
            raise AssertionError(f"{kind} {number}: an error without a message") from error
        if any(str(secret) in str(error) for secret in SECRETS):
            raise AssertionError(f"{kind} {number}: a message with a value of the table: {error}") from error
        return type(error).__name__
    except Hang:
        raise AssertionError(f"{kind} {number}: still running after {TIMEOUT} s") from None
    except BaseException as error:
        raise AssertionError(f"{kind} {number}: {traceback.format_exc()}") from error
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--only", choices=sorted(KINDS))
    options = parser.parse_args()
    started, wrong = time.monotonic(), 0
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        for kind in [options.only] if options.only else KINDS:
            ended: Counter[str] = Counter()
            for number in range(
                options.first, options.first + max(1, options.cases // (1 if options.only else len(KINDS)))
            ):
                try:
                    ended[run(kind, options.seed, number, Path(folder)) or "release"] += 1
                except AssertionError as error:
                    wrong += 1
                    print(error, file=sys.stderr)
            print(f"{kind}: " + ", ".join(f"{count} {name}" for name, count in ended.most_common()), flush=True)
    print(f"{wrong} cases ended wrongly; {time.monotonic() - started:.0f} s")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
