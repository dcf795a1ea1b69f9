"""Tables in databases: the same counts from all of them, nothing written, and errors without rows or passwords."""

from __future__ import annotations

import datetime
import hashlib
import os
import sqlite3
import uuid
from pathlib import Path

import duckdb
import ibis
import pytest

import crowdgram
from crowdgram import Database
from crowdgram.errors import CrowdgramError, EngineFailure, InvalidArgument, InvalidTable, UnreadableSource
from crowdgram.tables import open_rows, read_domain, streams

from . import postgres
from .frames import frame_of
from .test_rows import counted
from .test_sources import assert_silent

SECRET = "zebra-4711"
DAY = datetime.date(2024, 2, 29)
A = uuid.UUID(int=5)
ROWS = [(f"u{k % 7}", f"i{(k * k) % 5}", k % 4, DAY + datetime.timedelta(k % 3), k % 2 == 0) for k in range(60)]
ROWS += [
    (None, "i1", 1, DAY, True),
    ("u1", None, 1, DAY, None),
    ("u1", "i1", None, None, None),
    ("o'brien", "é", 2, DAY, True),
]
DOMAIN = ["i4", "i0", "i1", "é"]
COLUMNS = "who text, what text, n integer, day date, ok boolean"


def fill(execute, many):
    execute(f"create table visits ({COLUMNS}, extra text)")
    many(ROWS)
    execute('create table "Odd Name" ("Who\'s" text, what text)')
    execute("insert into \"Odd Name\" values ('a', 'i1')")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("databases")
    lite = sqlite3.connect(folder / "v.db")
    fill(
        lite.execute,
        lambda rows: lite.executemany(
            "insert into visits values (?,?,?,?,?,'x')", [(*r[:3], r[3] and r[3].isoformat(), r[4]) for r in rows]
        ),
    )
    lite.commit()
    lite.close()
    with duckdb.connect(folder / "v.duckdb") as duck:
        fill(duck.execute, lambda rows: duck.executemany("insert into visits values (?,?,?,?,?,'x')", rows))
    return folder


@pytest.fixture(scope="session")
def server(postgres_server):
    import psycopg

    address = postgres.database(postgres_server, "databases")
    with psycopg.connect(address) as connection, connection.cursor() as cursor:
        fill(cursor.execute, lambda rows: cursor.executemany("insert into visits values (%s,%s,%s,%s,%s,'x')", rows))
        cursor.execute("create type mood as enum ('good', 'bad')")
        cursor.execute(
            "create table kinds (who bigint, id uuid, m mood, t timestamp, tz timestamptz, d date, q numeric, "
            "x float8, v varchar(9))"
        )
        cursor.executemany(
            "insert into kinds values (%s, %s, %s, %s, %s, %s, 1.5, 0.5, 'z')",
            [
                (1, A, "good", "2024-01-01 10:00", "2024-01-01 10:00+02", "2024-01-01"),
                (2, None, "bad", "infinity", "-infinity", "infinity"),
                (3, A, "bad", None, None, "0044-03-15 BC"),
            ],
        )
    return address


@pytest.fixture(params=["duckdb", "sqlite", "postgres"])
def address(request, files):
    if request.param == "postgres":
        return request.getfixturevalue("server")
    name = {"duckdb": "v.duckdb", "sqlite": "v.db"}[request.param]
    return f"{request.param}:///{files / name}"


def expected():
    rows = [(who, what, 1, day, ok) for who, what, _, day, ok in ROWS]
    found = {}
    for who, what, *_ in rows:
        if who is not None and what in DOMAIN:
            found[who, DOMAIN.index(what)] = found.get((who, DOMAIN.index(what)), 0) + 1
    return sorted((who, place, n) for (who, place), n in found.items())


def cells(source, domain=DOMAIN, **more):
    return counted(source, domain, **{"user": "who", "item": "what", **more})


@pytest.mark.slow
def test_the_same_counts_from_every_database(address):
    assert cells(Database(address, table="visits")) == expected()
    assert cells(f"{address}?table=visits") == expected()
    assert cells(Database(address, query="select who, what from visits where n >= 0 or n is null;")) == expected()
    one = "select v.who, what, 1 as many from visits v -- each row"
    assert cells(Database(address, query=one), count="many") == expected()


@pytest.mark.slow
def test_filters_counts_and_dates(address):
    source = Database(address, table="visits")
    found = cells(source, [DAY, "2024-03-01"], item="day", where="ok and n > 1", count="n")
    summed = {}
    for who, _, n, day, ok in ROWS:
        if ok and n and n > 1 and who is not None and day in (DAY, datetime.date(2024, 3, 1)):
            key = who, 0 if day == DAY else 1
            summed[key] = summed.get(key, 0) + n
    assert {(who, place): n for who, place, n in found} == summed
    assert len(cells(source, [True, False], item="ok")) > 5


@pytest.mark.slow
def test_batches(address, monkeypatch):
    monkeypatch.setattr(streams, "BATCH", 7)  # a limit that a small table reaches
    assert cells(Database(address, table="visits")) == expected()


def test_odd_names(address):
    assert cells(Database(address, table="Odd Name"), ["i1"], user="Who's") == [("a", 0, 1)]


def test_a_whole_release_leaves_the_database_as_it_was(address, files):
    def state():
        return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files.iterdir()}

    before = state()
    made = crowdgram.release(Database(address, table="visits"), user="who", item="what", epsilon=1.0, domain=DOMAIN)
    assert made.items == tuple(DOMAIN)
    assert state() == before


@pytest.mark.parametrize("column", ["nothere", "WHO"])
def test_a_missing_column(address, column):
    with pytest.raises(InvalidTable, match=column):
        cells(Database(address, table="visits"), user=column)


def test_a_table_that_is_not_there(address):
    with pytest.raises(UnreadableSource, match="'nothere'") as caught:
        cells(Database(address, table="nothere"))
    assert_silent(caught.value, "tiger-0815")
    with pytest.raises(InvalidArgument, match="query") as caught:
        cells(Database(address, query="select who, nothere as what from visits"))
    assert_silent(caught.value, "tiger-0815")


def test_a_view_that_fails_on_a_row_quotes_nothing(tmp_path):
    """The database's own words are withheld, like an engine's."""
    with duckdb.connect(tmp_path / "v.duckdb") as duck:
        duck.execute(f"create table visits as select 'a' as who, '{SECRET}' as what")
        duck.execute("create view failing as select who, cast(what as integer) as what from visits")
    source = Database(str(tmp_path / "v.duckdb"), table="failing")
    with pytest.raises(EngineFailure) as caught:
        crowdgram.release(source, user="who", item="what", epsilon=1.0, domain=[1, 2])
    assert_silent(caught.value, SECRET)


# --- addresses


@pytest.mark.parametrize(
    ("address", "more", "words"),
    [
        ("v.csv", {"table": "x"}, "address"),
        ("mysql://host/x", {"table": "x"}, "address"),
        (5, {"table": "x"}, "address"),
        ("v.db", {}, "table or query"),
        ("v.db", {"table": "x", "query": "select 1"}, "not both"),
        ("v.db?table=x", {"table": "y"}, "and beside it"),
        ("postgresql://me:tiger-0815@host/x", {}, "'postgresql://host/x'"),
    ],
)
def test_addresses_that_cannot_serve(address, more, words):
    with pytest.raises(InvalidArgument, match=words) as caught:
        Database(address, **more)
    assert "tiger" not in str(caught.value)


def test_a_password_is_not_shown():
    one = Database("postgresql://me:tiger-0815@host:99/x?table=t&sslmode=require")
    assert "tiger" not in repr(one) + str(one) + one.shown
    assert one.shown == "'postgresql://host:99/x'"
    assert (one.table, one.query) == ("t", None)


def test_paths_of_files(files, monkeypatch):
    monkeypatch.chdir(files)
    for source in ("sqlite:///v.db?table=visits", "v.db?table=visits", "duckdb:///v.duckdb?table=main.visits"):
        assert cells(source) == expected()
    assert cells(Database("v.db", "visits")) == expected()
    with pytest.raises(InvalidArgument, match="needs the name of a table"):
        cells("v.db")
    with pytest.raises(InvalidArgument, match="needs the name of a table"):
        cells(Path("v.duckdb"))


@pytest.mark.parametrize("name", ["none.db", "text.db", "text.duckdb", "."])
def test_files_that_are_no_databases(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    for odd in ("text.db", "text.duckdb"):
        Path(odd).write_text(SECRET * 100)
    for source in (
        f"sqlite:///{name}?table=x",
        f"duckdb:///{name}?table=x",
        Database("none.db" if name == "." else name, "x"),
    ):
        with pytest.raises(UnreadableSource) as caught:
            cells(source)
        assert_silent(caught.value)
    assert sorted(os.listdir()) == ["text.db", "text.duckdb"]


def test_a_server_that_is_not_there():
    pytest.importorskip("psycopg")
    with pytest.raises(UnreadableSource, match="no server answers") as caught:
        cells("postgresql://me:tiger-0815@127.0.0.1:1/x?table=visits")
    assert_silent(caught.value, "tiger-0815")


def test_without_psycopg(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "psycopg", None)
    with pytest.raises(CrowdgramError, match=r"crowdgram\[postgres\]"):
        cells("postgresql://127.0.0.1:1/x?table=visits")


# --- what only some databases do


def test_wrong_credentials_of_postgres(server):
    for wrong, words in (
        (server.replace("tiger-0815", "lion-99"), "user name or password"),
        (f"{server}-nothere", "no such database"),
    ):
        with pytest.raises(UnreadableSource, match=words) as caught:
            cells(Database(wrong, table="visits"))
        for secret in ("tiger-0815", "lion-99", "keeper"):
            assert_silent(caught.value, secret)


@pytest.mark.slow
def test_postgres_types(server):
    source = Database(server, table="public.kinds")
    for item, domain, found in [
        ("id", [A], [(1, 0, 1), (3, 0, 1)]),
        ("m", ["good", "bad"], [(1, 0, 1), (2, 1, 1), (3, 1, 1)]),
        ("t", ["2024-01-01T10:00"], [(1, 0, 1)]),
        ("tz", ["2024-01-01T08:00"], [(1, 0, 1)]),
        ("d", ["2024-01-01"], [(1, 0, 1)]),
        ("v", ["z"], [(1, 0, 1), (2, 0, 1), (3, 0, 1)]),
    ]:
        assert cells(source, domain, item=item) == found
    for item in ("q", "x"):
        with pytest.raises(InvalidTable, match="float64"):
            cells(source, ["1"], item=item)


def test_postgres_is_read_in_a_read_only_transaction(server):
    """Even a function that writes, which no parser can see, writes nothing."""
    import psycopg

    with psycopg.connect(server) as connection:
        connection.execute("create table log (x int)")
        connection.execute(
            "create function sly() returns text language sql as 'insert into log values (1) returning ''i1'''"
        )
        connection.execute("create view sly_view as select who, sly() as what from visits")
    with pytest.raises(CrowdgramError):
        crowdgram.release(
            Database(server, table="sly_view"),
            user="who",
            item="what",
            epsilon=1.0,
            domain=["i1", "i2"],
        )
    with psycopg.connect(server) as connection:
        assert connection.execute("select count(*) from log").fetchone() == (0,)


def test_sqlite_values_of_another_type_than_declared_are_missing(tmp_path):
    lite = sqlite3.connect(tmp_path / "v.db")
    lite.execute("create table t (who integer, what text, d date, b boolean, x real)")
    lite.executemany(
        "insert into t values (?, ?, ?, ?, ?)",
        [
            (1, "a", "2024-02-29", 1, 1),
            ("x", "a", "nonsense", 5, 1),
            (2.5, "a", None, 0, 1),
            (3, b"a", 7, "x", 1),
            (4, 7, "2024-02-29", 1, 1),
        ],
    )
    lite.commit()
    lite.close()
    source = Database(str(tmp_path / "v.db"), "t")
    assert cells(source, ["a", "7"]) == [(1, 0, 1), (4, 1, 1)]
    assert cells(source, [DAY], item="d") == [(1, 0, 1), (4, 0, 1)]
    assert cells(source, [True, False], item="b") == [(1, 0, 1), (4, 0, 1)]
    with pytest.raises(InvalidTable, match="float64"):
        cells(source, ["1"], item="x")


def test_sqlite_text_that_is_not_utf8_is_missing_and_fails_nothing(tmp_path):
    lite = sqlite3.connect(tmp_path / "v.db")
    lite.execute("create table t (who text, what text)")
    lite.execute("insert into t values ('u', 'a'), (cast(x'ff61' as text), 'a'), ('v', cast(x'eda080' as text))")
    lite.commit()
    lite.close()
    assert cells(Database(str(tmp_path / "v.db"), "t"), ["a"]) == [("u", 0, 1)]
    assert cells(Database(str(tmp_path / "v.db"), query="select * from t"), ["a"]) == [("u", 0, 1)]


@pytest.mark.slow
@pytest.mark.parametrize("order", ["le", "be"])
def test_sqlite_text_that_is_not_utf16_is_missing_and_merges_nobody(order, tmp_path):
    """SQLite itself makes one text of half a character, and what comes after it."""
    codec, path = f"utf-16-{order}", tmp_path / "v.db"
    lite = sqlite3.connect(path)
    lite.execute(f"pragma encoding = 'UTF-16{order}'")
    lite.execute("create table t (who text, what text, d date)")
    rows = [("QQ", "a", "2024-02-29"), ("\U00010041", "a", b"2024-02-29"), ("e\0", "a", "2024-2-29")]
    lite.executemany("insert into t values (?, ?, ?)", rows)
    lite.commit()
    lite.close()
    path.write_bytes(path.read_bytes().replace("QQ".encode(codec), "\ud800A".encode(codec, "surrogatepass")))
    backend = ibis.sqlite.connect(path)
    try:
        for source in (Database(str(path), "t"), backend.table("t")):
            assert cells(source, ["a"]) == [("e\0", 0, 1), ("\U00010041", 0, 1)]
            assert cells(source, ["a"], user="d") == [(DAY, 0, 1)]
    finally:
        backend.disconnect()


def test_columns_of_postgres_that_are_alike(server):
    import psycopg

    with psycopg.connect(server) as connection:
        connection.execute('create table alike as select 1 as "ID", 2 as id, 3 as id_1, 5 as what')
    backend = ibis.connect(server)
    try:
        for source in (Database(server, "alike"), backend.table("alike")):
            for where in (None, ibis._.what > 0):
                assert cells(source, [5], user="id_1", where=where) == [(3, 0, 1)]
    finally:
        backend.disconnect()


def test_a_schema_that_is_not_there(files):
    for name in ("v.db", "v.duckdb"):
        with pytest.raises(UnreadableSource, match=r"no table 'elsewhere\.visits'"):
            cells(Database(str(files / name), "elsewhere.visits"))


def test_no_row_is_read_before_the_engine_asks(files, monkeypatch):
    """Opening looks at the schema only: what is wrong with the domain is said before."""
    rows = open_rows(Database(str(files / "v.db"), "visits"), user="who", item="what")
    with rows.engine, pytest.raises(CrowdgramError, match="domain"):
        read_domain([], rows.item_type)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_an_ibis_table_of_another_database_is_streamed(kind, files, request):
    if kind == "sqlite":
        backend = ibis.sqlite.connect(files / "v.db")
    else:
        backend = ibis.connect(request.getfixturevalue("server"))
    table = backend.table("visits")
    try:
        assert cells(table) == expected()
        assert cells(table.filter(table.n >= 0), where=ibis._.n >= 0) == cells(
            Database(str(files / "v.db"), "visits"), where="n >= 0"
        )
    finally:
        backend.disconnect()


@pytest.mark.spark
def test_a_table_of_spark(spark):
    frame_of(spark, [(r[0], r[1]) for r in ROWS], "who string, what string").createOrReplaceTempView("visits")
    try:
        assert cells(Database("spark:", table="visits")) == expected()
        with pytest.raises(UnreadableSource, match="'nothere'"):
            cells("spark:?table=nothere")
        with pytest.raises(InvalidArgument, match="query="):
            cells(Database("spark:", query="select who, nothere as what from visits"))
        with pytest.raises(InvalidArgument, match="LIMIT"):
            cells(Database("spark:", query="select who, what from visits limit 3"))
    finally:
        spark.catalog.dropTempView("visits")
