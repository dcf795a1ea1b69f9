"""Rows of one period: half-open, by the row alone, and without failing on any."""

from __future__ import annotations

import datetime
from datetime import date, timedelta

import duckdb
import ibis
import pyarrow as pa
import pytest

from crowdgram.errors import InvalidArgument, InvalidTable
from crowdgram.tables import Database, Within, count_rows, open_rows, read_domain

from .cells import fetch_cells
from .frames import frame_of

NOVEMBER = Within("day", date(2026, 11, 1), date(2026, 12, 1))
DAYS = [date(2026, 10, 25) + timedelta(days=k) for k in range(45)]
ENDS = ["2026-10-31 23:59:59.999999", "2026-11-01 00:00:00", "2026-11-30 23:59:59.999999", "2026-12-01 00:00:00"]
ODD = [
    None,
    "",
    "never",
    "12:30:00",
    "T12:30",
    "2026-11-03T10:00:00+09:00",
    "2026-11-03 10:00Z",
    "2026-11",
    "2026-11-31",
    "-5-11-01",
    "99999-11-01",
    "1e9",
    "2026-11-03; drop",
    "infinity",
]


def kept(table, **more):
    """The items of the rows that are read."""
    rows = open_rows(table, user="u", item="i", **{"within": NOVEMBER, **more})
    with rows.engine as engine:
        return sorted(engine.fetch(rows.table, "testing")["item"].to_pylist())


def table(days, kind):
    return pa.table({"u": [str(k) for k in range(len(days))], "i": range(len(days)), "day": pa.array(days, kind)})


def expected(days):
    return [k for k, day in enumerate(days) if day is not None and date(2026, 11, 1) <= day < date(2026, 12, 1)]


def moments(days):
    return [datetime.datetime(day.year, day.month, day.day, 23, 59, 59) for day in days]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (DAYS, pa.date32()),
        *((moments(DAYS), pa.timestamp(unit)) for unit in ("s", "ms", "us", "ns")),
        (moments(DAYS), pa.timestamp("us", "UTC")),
        ([str(day) for day in DAYS], pa.string()),
        ([f"{day}T23:59:59" for day in DAYS], pa.string()),
    ],
    ids=lambda given: str(given) if isinstance(given, pa.DataType) else "",
)
def test_dates_timestamps_and_text(values, kind):
    assert kept(table(values, kind)) == expected(DAYS)


def test_the_ends_are_half_open():
    stamps = [datetime.datetime.fromisoformat(text) for text in ENDS]
    assert kept(table(stamps, pa.timestamp("us"))) == kept(table(ENDS, pa.string())) == [1, 2]


def test_a_zone_is_taken_in_utc():
    berlin = pa.array(moments([date(2026, 10, 31), date(2026, 11, 30)]), pa.timestamp("us", "UTC"))
    assert kept(table(berlin.cast(pa.timestamp("us", "Europe/Berlin")), None)) == [1]  # 1 November there


def test_the_zone_of_a_session_moves_no_row():
    connection = ibis.duckdb.connect()
    connection.raw_sql("CREATE TABLE v AS SELECT 'u' AS u, 1 AS i, TIMESTAMPTZ '2026-10-31 20:00:00+00' AS day")
    connection.raw_sql("SET TimeZone = 'Asia/Tokyo'")
    connection.raw_sql("SET Calendar = 'buddhist'")
    assert kept(connection.table("v")) == []
    october = Within("day", date(2026, 10, 1), date(2026, 11, 1))
    assert kept(connection.table("v"), within=october) == [1]
    settings = connection.con.execute("SELECT current_setting('TimeZone'), current_setting('Calendar')").fetchone()
    assert settings == ("Asia/Tokyo", "buddhist")


def test_what_is_no_moment_is_of_no_period():
    assert kept(table(ODD, pa.string())) == []
    assert kept(table([None, date(2026, 11, 3)], pa.date32())) == [1]
    far = pa.array([0, 2**31 - 1, -(2**31), 20760], pa.int32()).cast(pa.date32())
    assert kept(table(far, None)) == [3]


def test_a_text_file(tmp_path):
    lines = "".join(f"u{k},{k},{day}\n" for k, day in enumerate([*DAYS, "", "x", '"""2026-11-03"'], start=100))
    (tmp_path / "t.csv").write_text(f"u,i,day\n{lines}")
    assert kept(str(tmp_path / "t.csv")) == [str(100 + k) for k in expected(DAYS)]


@pytest.mark.parametrize(
    "where",
    ["i % 2 = 0", lambda t: t.i % 2 == 0, None, "i > 5 or null"],
    ids=["text", "function", "none", "with null"],
)
def test_beside_a_filter(where):
    found = expected(DAYS)
    if where is not None:
        found = [k for k in found if (k > 5 if where == "i > 5 or null" else k % 2 == 0)]
    assert kept(table(DAYS, pa.date32()), where=where) == found


def test_a_column_may_be_item_or_user_too():
    days = table(DAYS, pa.date32())
    for more in ({"item": "day"}, {"user": "day"}):
        rows = open_rows(days, **{"user": "u", "item": "i", **more}, within=NOVEMBER)
        with rows.engine as engine:
            assert engine.fetch(rows.table, "testing").num_rows == 30


@pytest.mark.slow
def test_rows_outside_the_period_change_nothing():
    """Neighbours that differ in another period only: the same integers, whatever the rows hold."""
    days = [str(day) for day in DAYS]

    def cells(extra):
        given = pa.table(
            {
                "u": [*(f"u{k % 7}" for k in range(45)), *(["u0", "new"] * len(extra))],
                "i": [*(k % 3 for k in range(45)), *([1, 2] * len(extra))],
                "day": pa.array([*days, *(extra * 2)], pa.string()),
            }
        )
        rows = open_rows(given, user="u", item="i", within=NOVEMBER)
        with rows.engine:
            counts = count_rows(rows, read_domain(range(3), rows.item_type))
            return sorted(map(str, fetch_cells(counts).to_pylist()))

    assert cells([*ODD, *ENDS[::3], "1970-01-01"]) == cells([])
    assert cells(["2026-11-03"]) != cells([])  # the comparison can see a row of the period


@pytest.mark.parametrize("kind", [pa.int64(), pa.float64(), pa.bool_(), pa.time64("us")], ids=str)
def test_columns_that_cannot_serve(kind):
    with pytest.raises(InvalidTable, match=r"period_column='day': has type .* needs dates or timestamps") as caught:
        kept(table([None], kind))
    assert caught.value.column == "day"


def test_a_column_that_is_not_there(tmp_path):
    days = table(DAYS, pa.date32())
    for more in ({}, {"where": ibis._.i > 1}):
        with pytest.raises(InvalidTable, match="period_column='date': column 'date' is not in the table"):
            kept(days, within=Within("date", NOVEMBER.start, NOVEMBER.end), **more)
    with pytest.raises(InvalidArgument, match="period_column"):
        kept(days, within=Within("", NOVEMBER.start, NOVEMBER.end))


@pytest.mark.spark
def test_the_same_rows_on_spark(spark):
    stamps = [datetime.datetime.fromisoformat(text) for text in ENDS]
    for values, kind in ((DAYS, "date"), (stamps, "timestamp_ntz"), ([str(day) for day in DAYS] + ENDS, "string")):
        frame = frame_of(spark, [(str(k), k, one) for k, one in enumerate(values)], f"u string, i bigint, day {kind}")
        arrow = {"date": pa.date32(), "timestamp_ntz": pa.timestamp("us"), "string": pa.string()}[kind]
        assert kept(frame) == kept(table(values, arrow))


@pytest.mark.slow
@pytest.mark.parametrize("address", [False, True])
def test_a_query_selects_the_column_as_it_is(tmp_path, address):
    """Under its name each query could give rows another date, so that one row was charged to any number of periods."""
    file = str(tmp_path / "t.duckdb")
    with duckdb.connect(file) as connection:
        connection.register("given", table(DAYS, pa.date32()))
        connection.execute("CREATE TABLE t AS SELECT *, day + 30 AS later FROM given")

    def asked(query):
        return f"duckdb:///{file}?query={query}" if address else Database(file, query=query)

    for query in ("SELECT * FROM t", "SELECT u, i, day FROM t", "SELECT u, i, t.day AS day FROM t AS t"):
        assert kept(asked(query)) == expected(DAYS)
    for query in ("later AS day", "date '2026-11-05' AS day", "coalesce(later, day) AS day", "t.later AS day"):
        with pytest.raises(InvalidArgument, match=r"'day': needs to be a column of the table.*of two periods"):
            kept(asked(f"SELECT u, i, {query} FROM t"))


def test_nanoseconds_are_rounded_down_wherever_they_are_read(tmp_path):
    """Or the last of October would be read with November in a database, and with October elsewhere."""
    ends = [1793491200 * 10**9 + rest for rest in (-1000, -999, -500, -1, 0, 1)]
    odd = [-1, -999, -1000, -1001, 2**63 - 2, -(2**63) + 10**14]
    moments = pa.array([*ends, *odd], pa.int64())
    stored = pa.table({"u": range(12), "i": range(12), "day": moments.cast(pa.timestamp("ns"))})
    with duckdb.connect(str(tmp_path / "all.duckdb")) as connection:
        connection.register("numbers", pa.table({"u": range(12), "i": range(12), "n": moments}))
        connection.execute("CREATE TABLE rows AS SELECT u, i, make_timestamp_ns(n) AS day FROM numbers")
    before = Within("day", date(1969, 12, 1), date(1970, 1, 1))
    for source in (stored, Database(f"duckdb:///{tmp_path}/all.duckdb", table="rows")):
        assert kept(source) == [4, 5]
        assert kept(source, within=before) == [6, 7, 8, 9]
