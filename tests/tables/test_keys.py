"""Who is one user and what is one item: told apart as the table has them, by every engine."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import duckdb
import ibis
import pyarrow as pa
import pytest

import crowdgram
from crowdgram import Database
from crowdgram.errors import InvalidTable
from crowdgram.tables import count_rows, open_rows, read_domain, tally_rows

from .cells import fetch_cells
from .frames import frame_of

COLLATED = {"nocase": ("HeLLo", "hello"), "noaccent": ("Zoë", "Zoe"), "nfc": ("Zoe\u0308", "Zo\u00eb")}


def tallied(source, **more):
    """(user, items..., n) of the rows that would be counted."""
    rows = open_rows(source, **{"user": "who", "item": "what", **more})
    with rows.engine as engine:
        found = engine.fetch(tally_rows(rows).table, "testing")
    return sorted(zip(*(found[name].to_pylist() for name in ("user", *rows.keys, "n")), strict=True))


def placed(source, domain):
    """(user, place in the domain, n)."""
    rows = open_rows(source, user="who", item="what")
    with rows.engine:
        cells = fetch_cells(count_rows(rows, read_domain(domain, rows.item_type)))
    return sorted(zip(*(cells[name].to_pylist() for name in ("user", "idx", "n")), strict=True))


@pytest.fixture(params=["file", "connection", "default collation"])
def collated(request, tmp_path):
    """A function that makes a table whose columns have a collation."""
    opened = []

    def make(collation, rows):
        declared = "" if request.param == "default collation" else f" collate {collation}"
        path = tmp_path / "t.duckdb"
        with duckdb.connect(path) as connection:
            connection.execute(f"create table t (who varchar{declared}, what varchar{declared}, g varchar{declared})")
            connection.register("rows", pa.table(dict(zip("abc", zip(*rows, strict=True), strict=True))))
            connection.execute("insert into t select a, b, c from rows")
        if request.param == "file":
            return Database(str(path), table="t")
        opened.append(ibis.duckdb.connect(path))
        if not declared:
            opened[0].raw_sql(f"set default_collation = '{collation}'")
        return opened[0].table("t")

    yield make
    for backend in opened:
        backend.disconnect()


@pytest.mark.slow
@pytest.mark.parametrize("collation", COLLATED)
def test_a_collation_merges_no_users_items_or_groups(collated, collation):
    one, other = COLLATED[collation]
    rows = [(who, what, g) for who in (one, other) for what in (one, other) for g in (one, other)]
    source = collated(collation, rows)
    assert tallied(source, by="g") == sorted((who, g, what, 1) for who, what, g in rows)
    assert placed(source, [one]) == sorted([(one, 0, 2), (other, 0, 2)])
    assert tallied(source, where=f"what = '{one}'") == sorted([(one, one, 2), (other, one, 2)])
    computed = tallied(source, item={"twice": "what || what"}, where=f"who <> '{other}'")
    assert computed == sorted([(one, one * 2, 2), (one, other * 2, 2)])


@pytest.mark.slow
def test_the_spelling_of_one_user_is_not_released(collated):
    rows = [("victim", "HeLLo", "x"), *((f"u{j}", "hello", "x") for j in range(2000))]
    made = crowdgram.release(
        collated("nocase", rows), user="who", item="what", epsilon=1.0, delta=1e-6, mechanism="gaussian"
    )
    assert [str(item) for item in made.items] == ["hello", "other"]


@pytest.mark.spark
@pytest.mark.parametrize(
    ("collation", "one", "other"), [("UTF8_LCASE", "HeLLo", "hello"), ("UNICODE_AI", "Zoë", "Zoe")]
)
def test_a_collation_of_spark_merges_nothing(spark, collation, one, other):
    if int(spark.version.split(".")[0]) < 4:
        pytest.skip("Spark before version 4 has no collations")
    rows = [(who, what) for who in (one, other) for what in (one, other)]
    frame = frame_of(spark, rows, "who string, what string").selectExpr(
        f"who collate {collation} as who", f"what collate {collation} as what"
    )
    assert tallied(frame) == sorted((who, what, 1) for who, what in rows)
    assert tallied(frame, where=f"what = '{one}'") == sorted([(one, one, 1), (other, one, 1)])
    assert placed(frame, [one]) == sorted([(one, 0, 1), (other, 0, 1)])


def sqlite_table(path, columns, rows):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"create table t ({columns})")
        connection.executemany(f"insert into t values ({', '.join('?' * len(rows[0]))})", rows)
        connection.commit()
    return Database(str(path), table="t")


def test_numbers_in_an_untyped_column_of_sqlite_are_their_text_to_the_last_digit(tmp_path):
    close = 0.1 + 2**-53
    assert close != 0.1
    source = sqlite_table(tmp_path / "t.db", "who, what text", [(0.1, "a"), (close, "a"), (7, "a"), ("7", "a")])
    assert sorted(n for _, _, n in tallied(source)) == [1, 1, 2]  # 7 and "7" read the same


def test_users_that_are_dates_of_sqlite_have_one_spelling(tmp_path):
    rows = [("2024-01-01", "a"), ("2024-1-1", "b"), (" 2024-01-01", "c"), ("2024-01-01 00:00", "d"), ("x", "e")]
    source = sqlite_table(tmp_path / "t.db", "who date, what text", rows)
    assert [(str(who), what) for who, what, _ in tallied(source)] == [("2024-01-01", "a")]
    swapped = sqlite_table(tmp_path / "s.db", "what date, who text", rows)
    assert len(tallied(swapped)) > 1  # items may have several


def test_parts_of_a_day_are_no_users():
    moments = pa.array([0, 86_400_000, None], pa.int64()).cast(pa.date64())
    with pytest.raises(InvalidTable, match="date64"):
        tallied(pa.table({"who": moments, "what": ["a", "b", "c"]}))
    assert len(tallied(pa.table({"what": moments, "who": ["a", "b", "c"]}))) == 2
