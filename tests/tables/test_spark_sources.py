"""Paths and tables of the catalogue in Spark, and where its rows are while a release is made."""

from __future__ import annotations

import re
import threading

import pyarrow as pa
import pytest
from pyarrow import parquet
from typer.testing import CliRunner

import crowdgram
from crowdgram.cli.app import app
from crowdgram.errors import EngineFailure, InvalidArgument, UnreadableSource
from crowdgram.tables import CappedRows, Centre, count_rows, distances, open_rows, read_domain
from crowdgram.tables.engines import resources

from .cells import fetch_cells

ITEMS = ["a", "b", "c"]
ROWS = [(user, ITEMS[(user * place) % 3]) for user in range(12) for place in range(1 + user % 4)]


@pytest.fixture
def stored(tmp_path):
    """Two Parquet files in folders whose names look like a column."""
    for part in (0, 1):
        folder = tmp_path / f"who={part}"
        folder.mkdir()
        rows = ROWS[part::2]
        table = {"who": pa.array([r[0] for r in rows], pa.int64()), "what": pa.array([r[1] for r in rows])}
        parquet.write_table(pa.table(table), folder / "rows.parquet")
    return tmp_path


def views(spark):
    return {row.viewName for row in spark.sql("SHOW VIEWS").collect()}


def cells_of(source):
    rows = open_rows(source, user="who", item="what")
    with rows.engine:
        found = fetch_cells(count_rows(rows, read_domain(ITEMS, rows.item_type)))
    return sorted(zip(*(found.column(name).to_pylist() for name in ("user", "idx", "n")), strict=True))


def rows_of(source):
    """The rows that are opened: one pass, where to count them takes several."""
    rows = open_rows(source, user="who", item="what")
    with rows.engine:
        found = rows.engine.fetch(rows.table, "looking")
    return sorted(zip(found.column("user").to_pylist(), found.column("item").to_pylist(), strict=True))


@pytest.mark.spark
def test_paths_and_names_are_opened_in_spark(spark, stored, monkeypatch):
    before, counted = views(spark), cells_of(str(stored / "*" / "*.parquet"))
    assert sum(n for _, _, n in counted) == len(ROWS)
    expected = sorted(ROWS)
    assert rows_of(str(stored / "*" / "*.parquet")) == expected
    spark.read.parquet(*(str(path) for path in stored.rglob("*.parquet"))).createOrReplaceTempView("visits")
    try:
        with crowdgram.Spark():
            assert cells_of(str(stored)) == counted
            assert rows_of(str(stored)) == expected
            assert rows_of(str(stored / "*" / "*.parquet")) == expected
            assert rows_of([stored / "who=0", stored / "who=1"]) == expected
            monkeypatch.chdir(stored)  # Java does not follow
            assert rows_of(["who=0", "who=1/rows.parquet"]) == expected
            assert rows_of("visits") == expected
            assert rows_of("spark:?table=visits") == expected
            assert rows_of(spark.table("visits")) == expected
            for wrong in ("nothere", "spark:?table=nothere", str(stored / "nothere.parquet")):
                with pytest.raises(UnreadableSource, match="nothere"):
                    cells_of(wrong)
            for wrong in ("visits.csv", "rows.jsonl.gz", "sqlite:///x.db?table=y", pa.table({"who": [1]}), 3):
                with pytest.raises(InvalidArgument, match="in Spark needs to be"):
                    cells_of(wrong)
        assert spark.sparkContext._jsc.sc().isStopped() is False  # the session was the caller's
    finally:
        spark.catalog.dropTempView("visits")
    assert not spark.sparkContext._jsc.getPersistentRDDs()
    assert views(spark) == before


@pytest.mark.spark
def test_spark_refuses_files_of_two_types(spark, tmp_path):
    for name, kind in (("a", pa.int64()), ("b", pa.string())):
        who = pa.array([1], pa.int64()).cast(kind)
        parquet.write_table(pa.table({"who": who, "what": ["a"]}), tmp_path / f"{name}.parquet")
    with crowdgram.Spark(), pytest.raises(UnreadableSource, match="one schema"):
        cells_of(str(tmp_path))


@pytest.mark.spark
def test_another_master_than_that_of_the_running_spark_is_refused(spark, stored):
    with crowdgram.Spark(spark.conf.get("spark.master")):
        assert rows_of(str(stored)) == sorted(ROWS)
    with crowdgram.Spark("spark://elsewhere:7077"), pytest.raises(InvalidArgument, match="elsewhere"):
        cells_of(str(stored))


@pytest.mark.spark
def test_the_command_works_in_spark(spark, stored, tmp_path):
    (tmp_path / "items.txt").write_text("a\nb\nc\n")
    common = ["--user", "who", "--item", "what", "--domain", str(tmp_path / "items.txt"), "--epsilon", "50", "--quiet"]
    out = tmp_path / "release.json"
    asked = [
        "release",
        str(stored / "*" / "*.parquet"),
        "--engine",
        "spark",
        *common,
        "--mechanism",
        "laplace",
        "-o",
        str(out),
    ]
    result = CliRunner().invoke(app, asked)
    assert result.exit_code == 0, result.output
    assert "pyspark" in crowdgram.load(out).versions
    for more, said in (
        (["--memory-limit", "4GB"], "--memory-limit"),
        (["--table", "x"], "--table"),
        (["--delimiter", ";"], "--delimiter"),
    ):
        result = CliRunner().invoke(app, [*asked, *more, "--force"])
        assert (result.exit_code, said in result.output) == (2, True)
    result = CliRunner().invoke(app, ["release", "-", "--engine", "spark", *common, "-o", str(tmp_path / "other.json")])
    assert (result.exit_code, "'-'" in result.output) == (2, True)


def test_a_master_needs_spark(tmp_path):
    asked = ["release", "x.parquet", "--user", "a", "--item", "b", "--epsilon", "1", "-o", str(tmp_path / "out.json")]
    result = CliRunner().invoke(app, [*asked, "--master", "yarn"])
    assert (result.exit_code, "--engine spark" in result.output) == (2, True)


@pytest.mark.parametrize("master", ["", 3, "sc://host"])
def test_masters_that_are_no_address(master):
    with pytest.raises(InvalidArgument, match="master="):
        crowdgram.Spark(master)


def test_an_engine_is_that_of_the_innermost_block():
    assert resources.current_spark() is None
    with crowdgram.Spark("local[2]") as spark:
        assert resources.current_spark() is spark
        assert resources.current_resources() == crowdgram.DuckDB()  # public files are read there
        with crowdgram.DuckDB(threads=1):
            assert resources.current_spark() is None
        seen = []
        thread = threading.Thread(target=lambda: seen.append(resources.current_spark()))
        thread.start()
        thread.join()
        assert seen == [None]
    assert resources.current_spark() is None
    assert repr(crowdgram.Spark()) == "Spark()"


def test_a_session_of_its_own_is_quiet_and_stopped(monkeypatch):
    """Without Java: what Spark would be told, and that the session ends with the block."""
    told, stopped = {}, []

    class Builder:
        def appName(self, _):  # noqa: N802
            return self

        def config(self, name, value):
            told[name] = value
            return self

        def master(self, address):
            told["master"] = address
            return self

        def getOrCreate(self):  # noqa: N802
            if told.get("master") == "broken":
                raise RuntimeError("SECRET")
            return type("Session", (), {"stop": lambda _: stopped.append(True)})()

    sql = pytest.importorskip("pyspark.sql")
    monkeypatch.setattr(sql.SparkSession, "builder", Builder())
    monkeypatch.setattr(resources, "running_session", lambda: None)
    with crowdgram.Spark("yarn") as spark:
        spark.session()
        assert not stopped
    assert stopped == [True]
    assert told.pop("master") == "yarn"
    assert told == resources._QUIET
    with crowdgram.Spark("broken") as spark, pytest.raises(EngineFailure, match="broken") as failed:
        spark.session()
    assert "SECRET" not in str(failed.value)
    assert failed.value.__context__ is None


CLUSTER = {
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.autoBroadcastJoinThreshold": "-1",  # nothing private is small enough to be sent everywhere
    "spark.sql.shuffle.partitions": "5",
}


def exchanges(spark, query):
    """By which columns the plan of a query moves rows; what is cached was computed before, and is a leaf of it."""
    found, todo = [], [spark.sql(query)._jdf.queryExecution().executedPlan().initialPlan()]
    while todo:
        one = todo.pop()
        todo += [one.children().apply(place) for place in range(one.children().size())]
        if str(one.nodeName()) == "Exchange":
            found.append(re.findall(r"(\w+)#", str(one.outputPartitioning().toString())))
    return found


@pytest.mark.spark
def test_spark_moves_the_rows_of_users_once(spark):
    before = {name: spark.conf.get(name) for name in CLUSTER}
    for name, value in CLUSTER.items():
        spark.conf.set(name, value)
    moved = []
    try:
        rows = open_rows(spark.createDataFrame(ROWS, "who bigint, what string"), user="who", item="what")
        with rows.engine as engine:
            kept, fetched = engine._create, engine._rows
            engine._create = lambda name, query: (moved.append(exchanges(spark, query)), kept(name, query))
            engine._rows = lambda query: (moved.append(exchanges(spark, query)), fetched(query))[1]
            counts = count_rows(rows, read_domain(ITEMS, rows.item_type))
            first = len(moved)
            assert sorted(moved[0]) == [["user"], ["user", "idx"]]
            counts.sum(CappedRows(2))
            distances(counts, Centre.origin(3)).levels([10, 100], 1, 8)
            assert engine._parts == 2
        assert first == 2
        later = [columns for one in moved[1:] for columns in one]
        assert ["idx"] in later
        assert not [columns for columns in later if "user" in columns]
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)
