"""Failing is an outcome: every mechanism, source and option releases every table, neighbours and extremes included.

A mechanism meets every option, source and table in some release, and a table every option and source. An option meets
one source at least of each family: in memory, files, databases. All combinations are tried if thorough.
Users lie on either side of 2^20 rows, where counts begin to be divided. No figure is looked at here, only whether there
is a release.
"""

from __future__ import annotations

import json
import sqlite3
import warnings
from collections import Counter
from contextlib import closing
from itertools import product

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest

import crowdgram
from crowdgram import Database
from crowdgram.releases import registry
from crowdgram.tables import ROW_LIMIT, count_rows, known_counts, open_rows, read_domain
from crowdgram.tables.engines import DuckEngine

from ..thorough import THOROUGH

ITEMS, GROUPS = ["a", "b", "c"], ["x", "y"]
MECHANISMS = list(registry.MECHANISMS)
PUBLIC = {"domain": ITEMS, "delta": 1e-6}
OPTIONS = {
    "rows as they are": PUBLIC,
    "count": PUBLIC | {"count": "n"},
    "count, users": PUBLIC | {"count": "n", "weight": "users"},
    "count, replace": PUBLIC | {"count": "n", "adjacency": "replace"},
    "count, replace, users": PUBLIC | {"count": "n", "adjacency": "replace", "weight": "users"},
    "count, groups": PUBLIC | {"count": "n", "by": "g", "groups": GROUPS},
    "count, columns": {"delta": 1e-6, "count": "n", "item": ["what", "g"], "domain": {"what": ITEMS, "g": GROUPS}},
    "count, filter": PUBLIC | {"count": "n", "where": "g = 'x'"},
    "count, pure": {"domain": ITEMS, "delta": 0.0, "count": "n"},
    "computed users": PUBLIC | {"user": {"who": "lower(trim(who))"}, "count": "n", "where": "g <> 'z'"},
    "computed users, found groups": {"delta": 1e-6, "user": {"made": "left(who, 2)"}, "by": "g"},
    "bins": {"delta": 1e-6, "item": {"size": crowdgram.Bins("n", [0, 2, 4, 2**20])}, "other": "rest"},
    "bins, columns": {"delta": 1e-6, "item": ["what", {"size": crowdgram.Bins("n", [1, 3.5])}], "count": "n"},
    "count, other": PUBLIC | {"count": "n", "other": "rest", "domain": ["a"]},
    "found": {"delta": 1e-6, "count": "n"},
    "found, replace, users": {"delta": 1e-6, "count": "n", "adjacency": "replace", "weight": "users"},
    "found groups": {"delta": 1e-6, "count": "n", "by": "g"},
    "found columns": {"delta": 1e-6, "count": "n", "item": ["what", "g"]},
}
LACKING = {
    "gaussian": {"count, pure"},
    "paper": {"count, pure", "bins, columns", *(name for name in OPTIONS if "found" in name)},
}

CROWD = [(f"u{number % 30}", ITEMS[number % 3], GROUPS[number % 2], 1 + number % 4) for number in range(120)]
TABLES = {
    "a crowd": CROWD,
    "a user below the limit": [*CROWD, ("new", "a", "x", ROW_LIMIT - 1), ("new", "b", "y", 1)],
    "a user above the limit": [*CROWD, ("new", "a", "x", ROW_LIMIT), ("new", "b", "y", 1)],
    "a user far above it": [*CROWD, *[("new", item, "x", 2**62) for item in ITEMS], ("new", "a", "y", -(2**62))],
    "nobody": [("u", "a", "x", None), ("u", "b", "y", 0)],
    "a user alone": [("u", "a", "x", 1)],
}


def arrow(rows):
    names = ("who", "what", "g", "n")
    types = (pa.string(), pa.string(), pa.string(), pa.int64())
    return pa.table({name: pa.array([row[j] for row in rows], types[j]) for j, name in enumerate(names)})


def written(table, folder, suffix):
    path = folder / f"t.{suffix}"
    if suffix == "csv":
        table.to_pandas().astype({"n": "Int64"}).to_csv(path, index=False)
    elif suffix == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    elif suffix == "parquet":
        pa.parquet.write_table(table, path)
    elif suffix == "sqlite":
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("create table t (who text, what text, g text, n integer)")
            connection.executemany(
                "insert into t values (?, ?, ?, ?)", [tuple(row.values()) for row in table.to_pylist()]
            )
            connection.commit()
        return Database(str(path), table="t")
    elif suffix == "duckdb":
        with duckdb.connect(path) as connection:
            connection.register("given", table)
            connection.execute("create table t as select * from given")
        return Database(str(path), table="t")
    return path


FAMILIES = [
    {"arrow", "pandas", "categories", "polars", "relation"},
    {"csv", "jsonl", "parquet"},
    {"sqlite", "duckdb"},
]
SOURCES = {
    "arrow": lambda table, folder: table,
    "pandas": lambda table, folder: table.to_pandas().astype({"n": "Int64"}),
    "categories": lambda table, folder: (
        table.to_pandas().astype({"n": "Int64", "what": "string[pyarrow]"}).astype({"what": "category"})
    ),
    "polars": lambda table, folder: pl.from_arrow(table),
    "relation": lambda table, folder: duckdb.connect().from_arrow(table),
    **{
        kind: lambda table, folder, kind=kind: written(table, folder, kind)
        for kind in ("csv", "jsonl", "parquet", "sqlite", "duckdb")
    },
}


def available(mechanism, option):
    return option not in LACKING.get(mechanism, ())


def pairs_of(option, source, mechanism, table):
    """What meets in one release, of what must meet in some."""
    family = next(j for j, names in enumerate(FAMILIES) if source in names)
    with_option = {(option, mechanism), (option, table), (option, family)}
    return with_option | {(mechanism, source), (mechanism, table), (source, table)}


def covering():
    """Few of all cases, in which every pair meets: option by option, and then what is left."""
    pairs = {case: pairs_of(*case) for case in everything()}
    left, used = set().union(*pairs.values()), Counter()
    for option in [*OPTIONS, None]:
        cases = [case for case in pairs if option in (case[0], None)]
        while any(option in (pair[0], None) for pair in left):
            best = max(cases, key=lambda case: (len(pairs[case] & left), -used[case[1]]))
            left -= pairs[best]
            used[best[1]] += 1
            yield best


def everything():
    return (each for each in product(OPTIONS, SOURCES, MECHANISMS, TABLES) if available(each[2], each[0]))


GRID = sorted(everything() if THOROUGH else covering())


def failure(option, source, mechanism, rows):
    """What came instead of a release, if anything."""
    arguments = {"user": "who", "item": "what", "epsilon": 1.0, "mechanism": mechanism, **OPTIONS[option]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            crowdgram.release(source(arrow(rows)), **arguments)
        except Exception as error:  # noqa: BLE001 (whatever it is, it is not a release)
            return error
    return None


@pytest.mark.slow
@pytest.mark.parametrize("option", OPTIONS)
def test_every_source_and_mechanism_releases_every_table_under_every_option(option, tmp_path):
    failed = {}
    for number, (_, source, mechanism, name) in enumerate(each for each in GRID if each[0] == option):
        folder = tmp_path / str(number)
        folder.mkdir()
        error = failure(option, lambda table: SOURCES[source](table, folder), mechanism, TABLES[name])  # noqa: B023
        if error is not None:
            failed[source, mechanism, name] = error
    assert failed == {}


def test_all_that_must_meet_does():
    met = [pairs_of(*case) for case in GRID]
    assert set().union(*met) == set().union(*(pairs_of(*case) for case in everything()))
    assert len(GRID) == len(set(GRID))


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize(
    ("option", "mechanism", "name"),
    product(
        ["count", "computed users", "bins"],
        ["auto", "paper", "sample-one"],
        ["a user below the limit", "a user above the limit"],
    )
    if THOROUGH
    else [
        ("count", "auto", "a user below the limit"),
        ("computed users", "sample-one", "a user above the limit"),
        ("bins", "laplace", "a user above the limit"),
    ],
)
def test_spark_releases_neighbours(option, mechanism, name, spark):
    assert failure(option, spark.createDataFrame, mechanism, TABLES[name]) is None


@pytest.mark.parametrize("name", TABLES)
def test_counts_have_the_same_types_whatever_the_table_holds(name):
    rows = open_rows(arrow(TABLES[name]), user="who", item="what", count="n")
    with rows.engine as engine:
        counts = count_rows(rows, read_domain(ITEMS, rows.item_type))
        for table, columns in ((counts.cells, ("idx", "n")), (counts.users, ("rows", "squares"))):
            kinds = dict(
                engine.backend.con.execute(
                    f'SELECT column_name, column_type FROM (DESCRIBE "{table.get_name()}")'
                ).fetchall()
            )
            assert [kinds[column] for column in columns] == ["BIGINT", "BIGINT"]


def test_counts_are_divided_by_the_same_queries_whatever_the_table_holds(monkeypatch):
    seen = []
    for rows in (1, ROW_LIMIT, ROW_LIMIT + 1):
        said = []
        with DuckEngine.embedded() as engine:
            keep, exchange = engine.keep, engine.exchange
            # watches on the queries that are made
            monkeypatch.setattr(
                engine, "keep", lambda table, stage, keep=keep, said=said: said.append(stage) or keep(table, stage)
            )
            monkeypatch.setattr(
                engine, "exchange", lambda *all, exchange=exchange, said=said: said.append("exchange") or exchange(*all)
            )
            cells = pa.table({"user": [1, 2], "idx": [0, 1], "n": pa.array([rows, 3], pa.int64())})
            known_counts(engine, cells, 2)
        seen.append(said)
    assert seen[0] == seen[1] == seen[2]
    assert len(seen[0]) > 3
