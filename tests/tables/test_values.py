"""No value that a row may hold makes a release fail: what an engine cannot take is missing, like a null."""

from __future__ import annotations

import datetime
import sqlite3
from contextlib import closing

import duckdb
import ibis
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
import pytest

from crowdgram import Database
from crowdgram.errors import InvalidTable
from crowdgram.tables import open_rows, streams, tally_rows
from crowdgram.tables.arrow import in_years

from ..thorough import THOROUGH
from . import postgres
from .test_keys import tallied

DAY = datetime.datetime(2024, 2, 29)
UNITS = [("s", None), ("s", "UTC"), ("ms", None), ("ms", "Asia/Tokyo"), ("us", None), ("us", "UTC"), ("ns", None)]
EXPRESSIONS = [
    "date_trunc('week', what) = '2024-02-26'",
    "date_trunc('year', what) = '2024-01-01'",
    "year(what) = 2024",
    "strftime(what, '%Y-%m-%d') = '2024-02-29'",
    "isodow(what) = 4",
    "cast(what as date) = '2024-02-29'",
    "cast(what as text) <> ''",
    "what > '2020-01-01'",
]


def moments(unit, zone):
    """Two users with an ordinary moment, and some with the farthest that the type has."""
    day = (
        int((DAY - datetime.datetime(1970, 1, 1)).total_seconds())
        * {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    )
    values = [day, day, 2**62, -(2**62), 2**63 - 1, -(2**63) + 1, None]
    kind = pa.timestamp(unit, zone)
    return pa.table({"who": [f"u{j}" for j in range(len(values))], "what": pa.array(values, pa.int64()).cast(kind)})


def ordinary(found):
    """Those of the two users, by whom and when."""
    return [(who, what) for who, what, _ in found if who in ("u0", "u1")]


def parquet(table, folder):
    pa.parquet.write_table(table, folder / "t.parquet")
    return folder / "t.parquet"


ARROW = {
    "table": lambda table, folder: table,
    "reader": lambda table, folder: table.to_reader(),
    "dataset": lambda table, folder: pa.dataset.dataset(table),
    "parquet": parquet,
    "polars": lambda table, folder: pl.from_arrow(table),
}


@pytest.mark.slow
@pytest.mark.parametrize("make", ARROW.values(), ids=ARROW)
@pytest.mark.parametrize(("unit", "zone"), UNITS)
def test_moments_beyond_what_the_engine_holds_are_missing(make, unit, zone, tmp_path):
    if make in (ARROW["polars"], ARROW["parquet"]) and unit == "s":
        return  # they have no such type
    source = make(moments(unit, zone), tmp_path)
    expected = [("u0", DAY), ("u1", DAY)]
    found = tallied(source)
    assert ordinary(found) == expected
    assert len(found) == 2 if unit != "ns" else len(found) > 2
    assert ordinary(tallied(make(moments(unit, zone), tmp_path), where=EXPRESSIONS[0])) == expected


def test_years_of_pandas():
    days = np.array(["2024-02-29", "300000-01-01"], dtype="datetime64[s]")
    frame = pd.DataFrame({"who": ["u0", "u1"], "what": pd.Series(days)})
    assert frame.what.dtype == "datetime64[s]"
    assert ordinary(tallied(frame)) == [("u0", DAY)]


DUCKDB_TYPES = ["TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", "TIMESTAMP", "TIMESTAMPTZ", "DATE"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", DUCKDB_TYPES)
def test_moments_of_duckdb(kind, tmp_path):
    """Each type meets half of the expressions, and each of them three types; all if thorough."""
    with duckdb.connect(tmp_path / "t.duckdb") as connection:
        connection.execute(f"create table t (who varchar, what {kind})")
        connection.execute("insert into t values ('u0', '2024-02-29'), ('u1', '2024-02-29')")
        connection.execute("insert into t values ('z', 'infinity'), ('z', '-infinity')")
        if kind in ("TIMESTAMP_S", "TIMESTAMP_MS"):
            connection.register("far", moments(kind[10:].lower(), None).slice(2))
            connection.execute("insert into t select * from far")
        elif kind != "TIMESTAMP_NS":
            connection.execute("insert into t values ('z', '290309-12-22 (BC)'), ('z', '294246-01-10')")
    source = Database(str(tmp_path / "t.duckdb"), table="t")
    assert len(tallied(source)) == 2
    for where in EXPRESSIONS if THOROUGH else EXPRESSIONS[DUCKDB_TYPES.index(kind) % 2 :: 2]:
        assert [who for who, _, _ in tallied(source, where=where)] == ["u0", "u1"], where


@pytest.mark.slow
def test_dates_in_text(tmp_path):
    far = ["290309-12-22 (BC)", "5877642-06-25 (BC)", "5881580-07-10", "infinity", "-infinity", "0000-01-01", "x"]
    (tmp_path / "t.csv").write_text("who,what\nu0,2024-02-29\n" + "".join(f"z,{one}\n" for one in far))
    for kind in ("date", "timestamp"):
        for unit in ("week", "month", "year"):
            item = {"then": f"date_trunc('{unit}', cast(what as {kind}))"}
            assert [who for who, _, _ in tallied(tmp_path / "t.csv", item=item)] == ["u0"]


# --- what can be asked whether it is null, and nothing else


def odd_maps():
    repeated = pa.MapArray.from_arrays([0, 1, 3], ["k", "k", "k"], [1, 2, 3])
    bytes_ = pa.array([b"k", b"\xff"], pa.binary())
    broken = pa.MapArray.from_arrays([0, 1, 2], pa.Array.from_buffers(pa.string(), 2, bytes_.buffers()), [1, 2])
    return {"map that repeats a key": repeated, "map with a key that is no text": broken}


OPAQUE = {
    **odd_maps(),
    "duration": pa.array([0, 2**62], pa.int64()).cast(pa.duration("s")),
    "list of durations": pa.array([[0], [2**62]], pa.list_(pa.int64())).cast(pa.list_(pa.duration("s"))),
    "list of maps": pa.ListArray.from_arrays([0, 1, 2], odd_maps()["map that repeats a key"]),
    "struct of maps": pa.StructArray.from_arrays([odd_maps()["map that repeats a key"]], ["m"]),
    "union of maps": pa.UnionArray.from_sparse(
        pa.array([0, 0], pa.int8()), [odd_maps()["map that repeats a key"], pa.array([1, 2])]
    ),
    "views in a list": pa.array([["a"], ["b"]], pa.large_list(pa.string_view())),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", OPAQUE)
@pytest.mark.parametrize("through", ["table", "reader", "pandas"])
def test_only_whether_it_is_null_is_asked_of_a_value_of_another_type(kind, through):
    column = pa.chunked_array([OPAQUE[kind], pa.nulls(1, OPAQUE[kind].type)])
    table = pa.table({"who": ["u0", "z", "u1"], "what": ["i", "i", "i"], "other": column})
    if "union" in kind and through == "pandas":
        pytest.skip("pandas has no unions")
    if "union" in kind:
        table = table.slice(0, 2)  # its nulls are those of its parts
    made = {
        "table": lambda: table,
        "reader": table.to_reader,
        "pandas": lambda: table.to_pandas(types_mapper=pd.ArrowDtype),
    }[through]
    assert [who for who, _, _ in tallied(made(), where="other is not null")] == ["u0", "z"]
    if "union" not in kind:
        assert [who for who, _, _ in tallied(made(), where="other is null")] == ["u1"]
    with pytest.raises(InvalidTable, match="needs integers"):
        tallied(made(), item="other")


@pytest.mark.parametrize("through", ["parquet", "parquet of numbers", "dataset", "relation"])
def test_lists_and_their_like_are_not_read_from_files(through, tmp_path):
    """Where they hold more than 2 GiB, they would fail."""
    whos = [0, 1] if "numbers" in through else ["u0", "u1"]
    table = pa.table({"who": whos, "what": whos, "other": [[1], None], "more": [{"a": "x"}, None], "n": [1, 2]})
    if through == "relation":
        source = duckdb.connect().from_arrow(table)
    else:
        source = parquet(table, tmp_path)
        source = pa.dataset.dataset(source) if through == "dataset" else source
    for name in ("other", "more"):
        with pytest.raises(InvalidTable, match=f"column '{name}': has type .* needs single values"):
            tallied(source, where=f"{name} is null")
    assert [who for who, _, _ in tallied(source, where=ibis._.n > 1)] == whos[1:]


def test_python_objects_without_a_text_are_missing():
    nested: list[object] = []
    for _ in range(100_000):
        nested = [nested]
    frame = pd.DataFrame({"who": pd.Series(["u0", 10**5000, nested, "u1"], dtype=object), "what": "i"})
    assert [who for who, _, _ in tallied(frame)] == ["u0", "u1"]
    while nested:
        nested = nested.pop()  # Python would free it by recursion


# --- more text than the small types of Arrow can hold


def test_text_of_databases_that_comes_in_chunks_is_whole(monkeypatch):
    """As Arrow cuts what has more than 2 GiB. A patch stands for it: the arrays themselves need 20 s of CPU time."""
    whole = streams._array

    def cut(values, kind, codec):
        made = whole(values, kind, codec)
        return pa.chunked_array([made[:3], made[3:]]) if len(set(values)) > 1 else made

    monkeypatch.setattr(streams, "_array", cut)
    parts = [streams.Column(name, name, pa.string()) for name in ("who", "other")]
    found = list(streams.batches(parts, [[(b"u0", f"x{number}".encode()) for number in range(5)]]))
    assert [batch.num_rows for batch in found] == [3, 2]
    assert pa.Table.from_batches(found).to_pydict() == {"who": ["u0"] * 5, "other": ["x0", "x1", "x2", "x3", "x4"]}


@pytest.mark.slow
@pytest.mark.skipif(not THOROUGH, reason="thorough only: the tests beside it hold its parts")
@pytest.mark.parametrize("kind", ["sqlite", "runs", "dictionary", "dictionary of views", "relation"])
def test_more_than_two_gigabytes_of_text(kind, tmp_path):
    """Through the engine, from sources of all kinds."""
    rows, long = 2_150, 10**6
    if kind == "sqlite":
        with closing(sqlite3.connect(tmp_path / "t.db")) as connection:
            connection.execute("create table once (text)")
            connection.execute("insert into once values (?)", ["y" * long])
            connection.commit()
            numbers = f"with recursive r(k) as (select 1 union all select k + 1 from r where k <= {rows})"
            text = "case k when 1 then 'x' else text end"
            connection.execute(
                f"create view t as {numbers} select 'u0' as who, 'i' as what, {text} as other from r, once"
            )
        source = Database(str(tmp_path / "t.db"), table="t")
    elif kind == "relation":
        text = f"case range when 0 then 'x' else repeat('y', {long}) end"
        source = duckdb.connect().sql(f"select 'u0' as who, 'i' as what, {text} as other from range({rows + 1})")
    else:
        values = pa.array(["x", "y" * long], pa.string_view() if "views" in kind else pa.string())
        if kind == "runs":
            other = pa.RunEndEncodedArray.from_arrays(pa.array([1, rows + 1], pa.int32()), values)
        else:
            other = pa.DictionaryArray.from_arrays(pa.array([0] + [1] * rows, pa.int32()), values)
        source = pa.table({"who": ["u0"] * (rows + 1), "what": ["i"] * (rows + 1), "other": other})
    assert tallied(source, where="other <> ''") == [("u0", "i", rows + 1)]


@pytest.mark.parametrize("kind", [pa.string(), pa.string_view(), pa.large_string()], ids=str)
@pytest.mark.parametrize("stored", ["dictionary", "runs"])
def test_what_is_stored_once_is_written_out_in_types_that_hold_more(stored, kind):
    values, places = pa.array(["x", "y"], kind), pa.array([0, 1], pa.int32())
    make = {
        "dictionary": lambda: pa.DictionaryArray.from_arrays(places, values),
        "runs": lambda: pa.RunEndEncodedArray.from_arrays(pa.array([1, 2], pa.int32()), values),
    }
    found = in_years(pa.table({"other": make[stored]()}), ["other"])["other"]
    assert found.type == pa.large_string()
    assert found.to_pylist() == ["x", "y"]


# --- databases that do not hold values to a type


@pytest.mark.slow
@pytest.mark.parametrize("through", ["file", "ibis"])
@pytest.mark.parametrize(
    ("column", "odd"),
    [
        ("what text", "cast(x'ff41' as text)"),
        ("what date", "'hello'"),
        ("what date", "'290309-12-22 (BC)'"),
        ("what timestamp", "'9999999-01-01'"),
        ("what integer", "'hello'"),
        ("what boolean", "'hello'"),
    ],
)
def test_values_of_sqlite_that_are_not_what_the_column_says(tmp_path, through, column, odd):
    usual = {"date": "'2024-02-29'", "timestamp": "'2024-02-29'"}.get(column.split()[1], "1")
    with closing(sqlite3.connect(tmp_path / "t.db")) as connection:
        connection.execute(f"create table t (who text, {column}, n decimal(10, 2))")
        connection.execute(f"insert into t values ('u0', {usual}, 1.5), ('z', {odd}, 1.5), ('u1', {usual}, 'x')")
        connection.execute(f"insert into t values (cast(x'ff' as text), {usual}, 1e40)")
        connection.commit()
    backend = ibis.sqlite.connect(tmp_path / "t.db")
    source = backend.table("t") if through == "ibis" else Database(str(tmp_path / "t.db"), table="t")
    assert [who for who, _, _ in tallied(source)] == ["u0", "u1"]
    assert [who for who, _, _ in tallied(source, where="n > 1")] == ["u0"]
    assert backend.con.execute("select 'still text'").fetchone() == ("still text",)
    backend.disconnect()


@pytest.fixture(scope="session")
def server(postgres_server):
    return postgres.database(postgres_server, "values_in_zones")


@pytest.mark.slow
@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "America/New_York"])
def test_values_of_postgres_that_others_cannot_hold(server, zone):
    import psycopg

    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"alter database values_in_zones set timezone = '{zone}'")
    with psycopg.connect(server) as connection:
        connection.execute("drop table if exists far")
        connection.execute("create table far (who text, d date, t timestamp, tz timestamptz, n numeric)")
        connection.execute("insert into far values ('u0', '2024-02-29', '2024-02-29', '2024-02-29 00:00+00', 5)")
        for n, far in enumerate(["infinity", "-infinity", "4000-01-01 BC", "20000-01-01", "0001-01-01", "9999-12-31"]):
            amount = ["1e400", "1e-400", "NaN", "Infinity", "-1e400", "0"][n]
            connection.execute("insert into far values ('z', %s, %s, %s, %s)", (far, far, far, amount))
        # The first and the last moment that Python has; in the server's zone they are in other years.
        connection.execute(
            "insert into far (who, tz) values ('z', '0001-01-01 00:00+00'), ('z', '9999-12-31 23:59+00')"
        )
    backend = ibis.connect(server)
    try:
        for source in (Database(server, table="far"), backend.table("far")):
            for item, most in (("d", 3), ("t", 3), ("tz", 5)):
                found = tallied(source, item=item)
                assert ("u0", DAY.date() if item == "d" else DAY, 1) in found
                assert len(found) <= most
            assert ("u0", DAY.date(), 1) in tallied(source, item="d", where="n > 1")
        assert backend.con.info.transaction_status.name == "IDLE"  # the caller's connection is as it was
    finally:
        backend.disconnect()


@pytest.mark.spark
def test_moments_of_spark(spark):
    near = spark.sql("select 'u0' as who, timestamp_ntz'2024-02-29' as what")
    far = [
        spark.sql(f"select 'z' as who, cast(timestamp_micros({sign}9223372036854775807) as timestamp_ntz) as what")
        for sign in ("", "-")
    ]
    frame = near.union(far[0]).union(far[1])
    for one in (frame, frame.selectExpr("who", "cast(what as timestamp) as what")):
        assert tallied(one) == [("u0", DAY, 1)]
        verdicts = " and ".join(f"({where})" for where in EXPRESSIONS)
        assert tallied(one, where=verdicts) == [("u0", DAY, 1)]


def test_no_row_is_needed_for_any_of_it():
    """Types are told by the schema: an empty table goes the same way."""
    rows = open_rows(moments("ms", "UTC").slice(0, 0), user="who", item="what")
    with rows.engine as engine:
        assert engine.fetch(tally_rows(rows).table, "testing").num_rows == 0
