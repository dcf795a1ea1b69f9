"""What the embedded engine may use: limits reach it, others are refused, and bad ones fail before all else."""

from __future__ import annotations

import os

import duckdb
import pyarrow as pa
import pytest

import crowdgram
from crowdgram.errors import EngineFailure, InvalidArgument
from crowdgram.tables.engines import DuckDB, DuckEngine
from crowdgram.tables.engines.resources import current_resources

TABLE = pa.table({"user": [str(one) for one in range(200)], "item": ["a", "b"] * 100})
ASKED = {"user": "user", "item": "item", "epsilon": 1.0, "domain": ["a", "b"], "mechanism": "laplace"}
SETTINGS = ("memory_limit", "threads", "temp_directory", "perfect_ht_threshold")


def settings(connection):
    names = ", ".join(f"current_setting('{name}')" for name in SETTINGS)
    return dict(zip(SETTINGS, connection.execute(f"SELECT {names}").fetchone(), strict=True))


def test_limits_reach_the_engine(tmp_path):
    with DuckDB(memory_limit="500MB", threads=3, temp_directory=tmp_path), DuckEngine.embedded() as engine:
        found = settings(engine.backend.con)
        [scratch] = tmp_path.iterdir()
        assert scratch.stat().st_mode & 0o777 == 0o700
        assert found["memory_limit"] == "476.8 MiB"
        assert found["threads"] == 3
        assert found["temp_directory"] == str(scratch)
        assert found["perfect_ht_threshold"] == 12  # arrays for each thread would need too much of it
    assert not list(tmp_path.iterdir())


def test_without_limits_there_are_a_few_threads(own_database):
    with DuckEngine.embedded() as engine:
        found = settings(engine.backend.con)
    assert found["threads"] == max(os.cpu_count(), 4)
    assert found["perfect_ht_threshold"] == 20


def test_the_innermost_holds():
    outer, inner = DuckDB(threads=2), DuckDB(memory_limit="2GiB")
    with outer:
        with inner:
            assert current_resources() == inner
        with pytest.raises(KeyError), inner:
            raise KeyError
        assert current_resources() == outer
    assert not current_resources()


def test_a_release_within_limits(tmp_path):
    with crowdgram.DuckDB(memory_limit="200MB", threads=1, temp_directory=tmp_path):
        assert crowdgram.release(TABLE, **ASKED).items == ("a", "b")
        assert crowdgram.reach(TABLE, user="user", item="item", epsilon=1.0, domain=["a", "b"]).items == ("a", "b")
    assert not list(tmp_path.iterdir())


def test_a_connection_of_the_caller_is_left_as_it_is(tmp_path):
    connection = duckdb.connect()
    connection.register("visits", TABLE)
    connection.execute("CREATE TABLE kept AS SELECT * FROM visits")
    connection.execute("SET threads = 2")
    before = settings(connection)
    path = tmp_path / "ledger"
    ledger = crowdgram.Ledger.create(path, epsilon=1, delta=1e-6)
    import ibis

    table = ibis.duckdb.from_connection(connection).table("kept")
    with (
        crowdgram.DuckDB(threads=1),
        pytest.raises(InvalidArgument, match=r"table: is worked on in duckdb as you connected it.*threads=1"),
    ):
        crowdgram.release(table, ledger=ledger, **ASKED)
    assert not ledger.history()
    crowdgram.release(table, **ASKED)
    assert settings(connection) == before


@pytest.mark.parametrize("bad", ["4", "4 apples", "-4GB", "", "50%", "99MB", "1KiB", 4, None.__class__])
def test_bad_sizes_are_refused(bad):
    with pytest.raises(InvalidArgument, match=r"^memory_limit=.*needs to be"):
        DuckDB(memory_limit=bad)


@pytest.mark.parametrize("good", ["100MB", "4GB", "0.5 gib", "1.5TB", " 900000KB "])
def test_good_sizes_are_taken_by_the_engine(good):
    with DuckDB(memory_limit=good), DuckEngine.embedded() as engine:
        assert settings(engine.backend.con)["memory_limit"].endswith("iB")


@pytest.mark.parametrize("bad", [0, -1, 1025, 2.0, "2", True])
def test_bad_threads_are_refused(bad):
    with pytest.raises(InvalidArgument, match=r"^threads=.*from 1 to 1024"):
        DuckDB(threads=bad)


def test_bad_folders_are_refused(tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    for bad in (tmp_path / "missing", file, 7, ""):
        with pytest.raises(InvalidArgument, match=r"^temp_directory=.*a folder that exists"):
            DuckDB(temp_directory=bad)


def test_an_engine_that_cannot_start_leaves_nothing(tmp_path, monkeypatch):
    """Too little memory for the engine itself: no row was read, and it is no surprise to be reported."""

    def full(*_):
        raise duckdb.OutOfMemoryException("Allocation failure")

    monkeypatch.setattr(DuckEngine, "__init__", full)
    with DuckDB(temp_directory=tmp_path), pytest.raises(EngineFailure, match=r"while starting.*there is memory"):
        crowdgram.release(TABLE, **ASKED)
    assert list(tmp_path.iterdir()) == []


def test_too_little_memory_is_said(monkeypatch):
    def full(*_):
        raise MemoryError("Unable to allocate 914872635 bytes")

    monkeypatch.setattr("crowdgram.tables.count_rows", full)  # a fault of the engine
    with pytest.raises(EngineFailure, match=r"^there is too little memory for this release") as caught:
        crowdgram.release(TABLE, **ASKED)
    assert "914872635" not in str(caught.value)
