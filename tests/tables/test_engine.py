"""Engines: their errors stay inside, and what they keep is dropped."""

from __future__ import annotations

import importlib.metadata
import math

import ibis
import ibis.expr.datatypes as dt
import numpy as np
import pyarrow as pa
import pytest

from crowdgram.errors import EngineFailure, InvalidDomain
from crowdgram.synth import Crowd
from crowdgram.tables import UsersByRows, read_domain
from crowdgram.tables.engines import ENGINES, DuckEngine, Engine, engine_for, shield
from crowdgram.tables.engines.spark import _SETTINGS
from crowdgram.tables.sources import open_source
from crowdgram.tables.statistics.histograms import bin_of, user_histogram

from ..mechanisms.crowds import counted_crowd
from .frames import frame_of

SECRET = "zebra-4711"


def fail(error):
    raise error


@pytest.mark.parametrize("kind", [ValueError, KeyError, OSError, MemoryError, StopIteration, AssertionError])
def test_the_shield_hides_the_original_completely(kind):
    original = kind(SECRET)
    original.add_note(SECRET)
    original.__cause__ = ValueError(SECRET)
    with pytest.raises(EngineFailure) as caught:
        shield("counting sheep", lambda: fail(original))
    error = caught.value
    assert error.__cause__ is None
    assert error.__context__ is None
    assert not getattr(error, "__notes__", [])
    assert SECRET not in str(error) + repr(error)
    assert "counting sheep" in str(error)
    assert kind.__name__ not in str(error)


def test_the_shield_hides_an_engines_own_words():
    with DuckEngine.embedded() as engine:
        bad = engine.as_ibis(engine.upload(pa.table({"x": [SECRET]}), "testing")).mutate(x=ibis._.x.cast("int64"))
        for act in (lambda: engine.keep(bad, "keeping"), lambda: engine.fetch(bad, "fetching")):
            with pytest.raises(EngineFailure) as caught:
                act()
            assert SECRET not in repr(caught.value)
            assert caught.value.__context__ is None


@pytest.mark.parametrize(
    "error", [InvalidDomain("public words", argument="domain"), ImportError("no pandas"), KeyboardInterrupt()]
)
def test_the_shield_lets_through_what_is_ours_or_no_failure(error):
    with pytest.raises(type(error)) as caught:
        shield("counting sheep", lambda: fail(error))
    assert caught.value is error


def test_the_shield_passes_results():
    assert shield("adding", lambda: 5) == 5


@pytest.mark.parametrize("name", ["duckdb", pytest.param("spark", marks=pytest.mark.spark)])
def test_bins_end_at_their_edges_to_the_last_bit(name, request):
    made = np.random.default_rng(7)
    reals = np.unique(np.concatenate([[0.1, 1e22, 2.0**53 + 2], 10.0 ** made.uniform(-12, 20, 40)])).tolist()
    wholes = np.unique(made.integers(1, 2**52, 40)).tolist()
    around = {
        float: [math.nextafter(edge, to) for edge in reals for to in (-math.inf, edge, math.inf)],
        int: [edge + step for edge in wholes for step in (-1, 0, 1)],
    }
    if name == "duckdb":
        opened = DuckEngine.embedded()
    else:
        opened = engine_for(ibis.pyspark.connect(request.getfixturevalue("spark")))
    with opened as engine:
        for edges, values in ((reals, around[float]), (wholes, around[int]), (wholes[:1], around[int])):
            table = engine.upload(pa.table({"x": values}), "testing")
            expected = np.bincount([bin_of(value, edges) for value in values], minlength=len(edges))
            assert user_histogram(engine, table, table.x, edges).tolist() == expected.tolist()


def test_the_last_bin_has_all_that_is_below_no_edge():
    """Also nulls and what is no number: whichever way the engine counts, a user is in one bin."""
    with DuckEngine.embedded() as engine:
        reals = engine.upload(pa.table({"x": [0.5, 3.0, math.inf, math.nan, None, -math.inf]}), "testing")
        assert user_histogram(engine, reals, reals.x, [1.0, 2.0, 3.0, 4.0]).tolist() == [2, 0, 1, 3]
        wholes = engine.upload(pa.table({"x": pa.array([0, 3, 2**63 - 1, None, -(2**63)])}), "testing")
        assert user_histogram(engine, wholes, wholes.x, [1, 2, 3, 4]).tolist() == [2, 0, 1, 2]
        nobody = engine.upload(pa.table({"x": pa.array([], pa.int64())}), "testing")
        assert user_histogram(engine, nobody, nobody.x, [1, 2, 3]).tolist() == [0, 0, 0]


def tables_of(backend):
    return sorted(name for (name,) in backend.con.execute("select table_name from duckdb_tables()").fetchall())


@pytest.fixture
def backend():
    backend = ibis.duckdb.connect()
    backend.raw_sql("create table theirs as select 1 as x")
    yield backend
    backend.disconnect()


def test_kept_tables_are_dropped_on_close(backend):
    with engine_for(backend) as engine:
        assert isinstance(engine, DuckEngine)
        kept = engine.keep(backend.table("theirs").mutate(y=2), "keeping")
        placed = engine.upload(pa.table({"z": [1, 2]}), "placing")
        assert tables_of(backend) == sorted(["theirs", kept.get_name(), placed.get_name()])
        assert engine.fetch(kept, "fetching").to_pylist() == [{"x": 1, "y": 2}]
    assert tables_of(backend) == ["theirs"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_kept_tables_are_dropped_after_an_error(backend, error):
    def work():
        with engine_for(backend) as engine:
            engine.keep(backend.table("theirs"), "keeping")
            assert len(tables_of(backend)) == 2
            raise error

    with pytest.raises(error):
        work()
    assert tables_of(backend) == ["theirs"]


def test_what_an_own_database_keeps_goes_with_it():
    """It is not dropped, so the connection has to end, and the tables of another one stay."""
    one, other = DuckEngine.embedded(), DuckEngine.embedded()
    mine, theirs = (engine.upload(pa.table({"z": [1, 2]}), "placing") for engine in (one, other))
    one.close()
    with pytest.raises(EngineFailure):
        one.fetch(mine, "fetching")
    assert other.fetch(theirs, "fetching").num_rows == 2
    assert tables_of(other.backend) == [theirs.get_name()]
    other.close()


def test_engines_of_the_tests_share_a_database():
    """Or thousands of tests would start one each."""

    with DuckEngine.embedded() as one, DuckEngine.embedded() as other:
        one.con.execute("ATTACH ':memory:' AS seen_by_all")
        try:
            assert "seen_by_all" in str(other.con.execute("SHOW DATABASES").fetchall())
        finally:
            one.con.execute("DETACH seen_by_all")


def test_crowds_that_tests_keep_go_with_the_database(databases):
    """Or all tests of a crowd would fail after one that is run once more."""
    crowd = Crowd(users=20, rows=2, items=3, seed=1)
    for edges in ([1, 3], [2, 3]):  # what was asked before is remembered
        with counted_crowd(crowd) as counts:
            assert sum(counts.sum(UsersByRows(edges)).values) == 20
        databases.close()


@pytest.mark.parametrize(
    "column",
    [pa.array([1]), pa.array(["a"]), pa.array(["a"], pa.large_string()), pa.array([1], pa.int32()), pa.array([True])],
    ids=lambda column: str(column.type),
)
def test_an_uploaded_table_has_the_types_that_the_engine_gave_it(column):
    with DuckEngine.embedded() as engine:
        table = pa.table({"x": column})
        placed = engine.upload(table, "placing")
        assert engine.fetch(placed, "fetching").equals(table)
        assert engine.fetch(engine.as_ibis(placed), "fetching").to_pylist() == table.to_pylist()


def test_a_table_can_be_dropped_before_the_end(backend):
    with engine_for(backend) as engine:
        first = engine.keep(backend.table("theirs"), "keeping")
        second = engine.keep(backend.table("theirs"), "keeping")
        engine.drop(first)
        assert tables_of(backend) == sorted(["theirs", second.get_name()])


def test_only_what_was_kept_can_be_dropped(backend):
    with engine_for(backend) as engine:
        engine.drop(backend.table("theirs"))
    assert tables_of(backend) == ["theirs"]


def test_closing_twice_and_after_the_connection_is_gone():
    engine = DuckEngine.embedded()
    engine.upload(pa.table({"x": [1]}), "placing")
    engine.backend.disconnect()
    engine.close()
    engine.close()


def test_every_act_on_closing_is_done_though_one_fails(backend):
    done = []
    engine = DuckEngine(backend, [lambda: done.append(1), lambda: fail(RuntimeError("gone")), lambda: done.append(2)])
    engine.close()
    assert done == [1, 2]


@pytest.mark.parametrize(
    "method", ["exact", "pattern", "operators", "_create", "_drop", "_fetch", "_plan", "_rows", "_types", "_upload"]
)
def test_an_engine_that_forgets_something_cannot_be_made(method, backend):
    forgetful = type("Forgetful", (DuckEngine,), {method: getattr(Engine, method)})
    with pytest.raises(TypeError, match=method):
        forgetful(backend)


@pytest.mark.parametrize("kind", ENGINES.values())
def test_an_engine_says_which_package_it_is(kind):
    assert importlib.metadata.version(kind.package)
    assert kind.TYPES
    assert kind.ROW_WISE


def test_a_public_list_may_be_in_a_database_that_is_no_engine():
    backend = ibis.sqlite.connect()
    backend.raw_sql("create table list (x integer)")
    backend.raw_sql("insert into list values (3), (1)")
    assert backend.name not in ENGINES
    assert read_domain(backend.table("list").x, dt.int64).items == (3, 1)
    backend.disconnect()


@pytest.mark.spark
def test_a_public_list_in_spark_leaves_the_settings_of_the_session(spark):
    backend, name = ibis.pyspark.connect(spark), "spark.sql.variable.substitute"
    found = spark.conf.get(name)
    spark.conf.set(name, "true")
    frame_of(spark, [(3,), (1,)], "x bigint").createOrReplaceTempView("listed")
    try:
        before = {name: spark.conf.get(name) for name in _SETTINGS}
        assert before != _SETTINGS
        assert sorted(read_domain(backend.table("listed").x, dt.int64).items) == [1, 3]
        assert {name: spark.conf.get(name) for name in _SETTINGS} == before
    finally:
        spark.catalog.dropTempView("listed")
        spark.conf.set(name, found)


@pytest.mark.spark
@pytest.mark.parametrize("last", [0, 1])
def test_settings_of_a_session_of_spark_hold_until_the_last_engine_is_closed(spark, last):
    """Of two releases at once, the first to end takes ANSI mode from neither the other nor, at the end, the user."""
    users = {name: {"true": "false", "false": "true"}.get(value, "Asia/Tokyo") for name, value in _SETTINGS.items()}
    found = {name: spark.conf.get(name) for name in _SETTINGS}
    try:
        for name, value in users.items():
            spark.conf.set(name, value)
        frame = frame_of(spark, [(1, 2)], "user bigint, idx bigint")
        engines = [open_source(frame, ["user", "idx"], "user")[0] for _ in range(2)]
        engines.pop(1 - last).close()
        assert {name: spark.conf.get(name) for name in _SETTINGS} == _SETTINGS
        engines.pop().close()
        assert {name: spark.conf.get(name) for name in _SETTINGS} == users
    finally:
        for name, value in found.items():
            spark.conf.set(name, value)


def test_the_embedded_engine_reads_no_extension_from_the_network():
    with DuckEngine.embedded() as engine:
        found = "select name, value from duckdb_settings() where name like 'auto%_known_extensions'"
        settings = dict(engine.backend.con.execute(found).fetchall())
    assert settings == {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}


ADAPTIVE = {
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.shuffle.partitions": "20",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
}


@pytest.mark.spark
def test_spark_fits_kept_tables_to_their_size_and_sends_public_ones_everywhere(spark):
    """With adaptive execution, as it is by default: a small table has not as many partitions as a shuffle, and a public
    table is sent to every machine, whatever Spark thinks of its size.
    """
    before = {name: spark.conf.get(name) for name in (*ADAPTIVE, *_SETTINGS)}
    for name, value in ADAPTIVE.items():
        spark.conf.set(name, value)
    try:
        frame = frame_of(spark, [(user, user % 3) for user in range(60)], "user bigint, idx bigint")
        engine, table = open_source(frame, ["user", "idx"], "user")
        with engine:
            cells = engine.keep(table.group_by("user", "idx").agg(n=table.count()), "counting")
            assert engine._frames[cells.get_name()].rdd.getNumPartitions() < 20
            listed = engine.upload(pa.table({"idx": [0, 1, 2], "place": [2, 1, 0]}), "placing")
            joined = cells.inner_join(listed, "idx")
            plan = spark.sql(engine._sql(joined))._jdf.queryExecution().executedPlan().toString()
            assert "BroadcastHashJoin" in plan
            assert engine.fetch(joined.agg(x=joined.place.sum()), "adding")["x"].to_pylist() == [60]
        assert {name: spark.conf.get(name) for name in _SETTINGS} == {name: before[name] for name in _SETTINGS}
        assert not spark.sparkContext._jsc.getPersistentRDDs()
    finally:
        for name in ADAPTIVE:
            spark.conf.set(name, before[name])
