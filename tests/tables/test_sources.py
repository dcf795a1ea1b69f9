"""Whatever a user has becomes the same counts, and nothing of it stays on disk."""

from __future__ import annotations

import gzip
import json
import os
import stat
import tempfile
from collections import Counter
from pathlib import Path

import duckdb
import ibis
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
import pytest

import crowdgram
from crowdgram.errors import CrowdgramError, EngineFailure, InvalidTable, UnreadableSource
from crowdgram.tables import count_rows, open_rows, read_domain

from .frames import frame_of

SECRET = "zebra-4711"
ROWS = [(f"u{k % 7}", f"i{(k * k) % 5}") for k in range(60)] + [("01", "i1"), ("1", "i1"), ("1", "i1")]
DOMAIN = ["i4", "i0", "i1"]  # i2 and i3 are outside


def expected(rows=ROWS):
    found = Counter((user, DOMAIN.index(item)) for user, item in rows if item in DOMAIN)
    return sorted((user, place, n) for (user, place), n in found.items())


def counted(source, user="who", item="what", domain=DOMAIN):
    """The counts per (user, item) that a release would work with."""
    rows = open_rows(source, user=user, item=item)
    with rows.engine as engine:
        counts = count_rows(rows, read_domain(domain, rows.item_type))
        cells = engine.fetch(counts.cells, "testing")
    return sorted(zip(*(cells[name].to_pylist() for name in ("user", "idx", "n")), strict=True))


def release(source, user="who", item="what", **more):
    return crowdgram.release(source, **{"user": user, "item": item, "epsilon": 1.0, "domain": DOMAIN, **more})


def arrow():
    users, items = zip(*ROWS, strict=True)
    return pa.table({"what": items, "extra": range(len(ROWS)), "who": users})


def delimited(rows=ROWS, delimiter=","):
    lines = [("what", "extra", "who"), *((item, "x", user) for user, item in rows)]
    return "".join(delimiter.join(line) + "\n" for line in lines)


def chain(error):
    """Every exception that a traceback of `error` would show, and all that it would print of it."""
    seen, todo = [], [error]
    while todo:
        one = todo.pop()
        if one is not None and one not in seen:
            seen.append(one)
            todo += [one.__cause__, one.__context__]
    return seen


def assert_silent(error, secret=SECRET):
    for one in chain(error):
        for text in (str(one), repr(one), *map(str, getattr(one, "__notes__", ()))):
            assert secret not in text


def fails(kind, source, *names, **more):
    with pytest.raises(kind) as caught:
        release(source, **more)
    assert isinstance(caught.value, CrowdgramError)
    assert_silent(caught.value)
    for name in names:
        assert name in str(caught.value)


# --- the same counts from everything


def write_csv(folder):
    path = folder / "t.csv"
    path.write_text(delimited())
    return path


def write_csv_gz(folder):
    path = folder / "t.csv.gz"
    path.write_bytes(gzip.compress(delimited().encode()))
    return path


def write_tsv(folder):
    path = folder / "t.TSV"
    path.write_text(delimited(delimiter="\t"))
    return str(path)


def write_csv_with_bom(folder):
    path = folder / "t.csv"
    path.write_bytes(b"\xef\xbb\xbf" + delimited().replace("\n", "\r\n").encode())
    return path


def write_parquet(folder):
    path = folder / "t.parquet"
    pa.parquet.write_table(arrow(), path)
    return path


def write_json_lines(folder):
    path = folder / "t.jsonl"
    path.write_text("".join(json.dumps({"who": user, "n": 1, "what": item}) + "\n" for user, item in ROWS))
    return path


def write_json_array(folder):
    path = folder / "t.json"
    path.write_text(json.dumps([{"who": user, "what": item} for user, item in ROWS]))
    return path


def write_several_csv(folder):
    for part in range(3):
        (folder / f"part-{part}.csv").write_text(delimited(ROWS[part::3]))
    return str(folder / "part-*.csv")


def write_several_parquet(folder):
    for part in range(2):
        (folder / f"day={part}").mkdir()
        pa.parquet.write_table(
            arrow().slice(part * 30, 30 if part == 0 else None), folder / f"day={part}" / "x.parquet"
        )
    return folder / "**" / "*.parquet"


def duckdb_relation(folder):
    connection = duckdb.connect()
    connection.register("rows", arrow())
    return connection.sql("select * from rows")


def ibis_table(folder):
    backend = ibis.duckdb.connect()
    backend.con.register("incoming", arrow())
    backend.raw_sql("create table visits as select * from incoming")
    backend.con.unregister("incoming")
    return backend.table("visits")


SOURCES = {
    "csv": write_csv,
    "csv.gz": write_csv_gz,
    "tsv": write_tsv,
    "csv with BOM and CRLF": write_csv_with_bom,
    "parquet": write_parquet,
    "json lines": write_json_lines,
    "json array": write_json_array,
    "glob of csv": write_several_csv,
    "glob of parquet": write_several_parquet,
    "pandas": lambda folder: arrow().to_pandas(),
    "pandas object": lambda folder: arrow().to_pandas().astype(object),
    "pandas categories": lambda folder: arrow().to_pandas().astype({"who": "category", "what": "category"}),
    "polars": lambda folder: pl.from_arrow(arrow()),
    "polars lazy": lambda folder: pl.from_arrow(arrow()).lazy(),
    "polars categories": lambda folder: pl.from_arrow(arrow()).with_columns(pl.col("who").cast(pl.Categorical)),
    "arrow table": lambda folder: arrow(),
    "arrow batch": lambda folder: arrow().combine_chunks().to_batches()[0],
    "arrow reader": lambda folder: arrow().to_reader(max_chunksize=7),
    "arrow dataset": lambda folder: pa.dataset.dataset(arrow()),
    "duckdb relation": duckdb_relation,
    "ibis table": ibis_table,
    "list of csv": lambda folder: [write_several_csv(folder).replace("*", str(part)) for part in range(3)],
    "list of globs": lambda folder: [write_several_csv(folder).replace("*", part) for part in ("[01]", "2")],
    "ibis memtable of pandas": lambda folder: ibis.memtable(arrow().to_pandas()),
    "ibis memtable of arrow": lambda folder: ibis.memtable(arrow()),
    "ibis memtable, filtered": lambda folder: ibis.memtable(arrow()).filter(ibis._.extra >= 0),
    "ibis memtable, mutated": lambda folder: ibis.memtable(arrow().to_pandas()).mutate(extra=ibis._.extra + 1),
    "ibis expression": lambda folder: (lambda t: t.filter(t.extra >= 0))(ibis_table(folder)),
}


@pytest.mark.slow
@pytest.mark.parametrize("make", SOURCES.values(), ids=SOURCES.keys())
def test_every_source_gives_the_same_counts(make, tmp_path):
    assert counted(make(tmp_path)) == expected()


@pytest.mark.spark
def test_spark_gives_the_same_counts_quotes_no_row_and_keeps_nothing(spark):
    frame = frame_of(spark, ROWS, "who string, what string")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    assert counted(frame) == expected()
    secret = frame_of(spark, [(SECRET, "i1")], "who string, what string")
    fails(EngineFailure, secret.selectExpr("cast(raise_error(who) as string) as who", "what"), "counting rows")
    with pytest.raises(InvalidTable, match="'who'"):
        release(frame.selectExpr("1.5D as who", "what"))
    assert [table.name for table in spark.catalog.listTables()] == []
    assert spark.conf.get("spark.sql.session.timeZone") == "Asia/Tokyo"


def test_quoted_line_breaks_commas_and_quotes(tmp_path):
    (tmp_path / "t.csv").write_text('"who",what\n"a\nb, ""c""",i1\n"a\nb, ""c""",i1\nd,"i4"\n')
    assert counted(tmp_path / "t.csv") == [('a\nb, "c"', 2, 2), ("d", 0, 1)]


def test_text_ids_are_strings(tmp_path):
    (tmp_path / "t.csv").write_text("who,what\n01,1\n1,1\n1.0,01\n")
    assert counted(tmp_path / "t.csv", domain=["1", "01"]) == [("01", 0, 1), ("1", 0, 1), ("1.0", 1, 1)]
    (tmp_path / "t.jsonl").write_text('{"who": "01", "what": 1}\n{"who": 1, "what": "1"}\n')
    assert counted(tmp_path / "t.jsonl", domain=["1"]) == [("01", 0, 1), ("1", 0, 1)]


def test_empty_fields_are_missing(tmp_path):
    (tmp_path / "t.csv").write_text('who,what\n,i1\na,\n"",i1\na,i1\n')
    assert counted(tmp_path / "t.csv") == [("a", 2, 1)]


@pytest.mark.parametrize("name", ["a[1].csv", "a*.csv", "a?.csv"])
def test_a_file_named_like_a_pattern_is_itself(tmp_path, name):
    (tmp_path / name).write_text("who,what\nme,i1\n")
    (tmp_path / "a1.csv").write_text("who,what\nother,i1\n")
    assert counted(tmp_path / name) == [("me", 2, 1)]


@pytest.mark.parametrize("suffix", ["csv", "parquet", "jsonl"])
def test_a_folder_named_like_a_partition_hides_no_column(tmp_path, suffix):
    folder = tmp_path / "who=everybody"
    folder.mkdir()
    frame = pl.DataFrame({"who": ["a", "b"], "what": ["i1", "i1"]})
    {"csv": frame.write_csv, "parquet": frame.write_parquet, "jsonl": frame.write_ndjson}[suffix](
        folder / f"t.{suffix}"
    )
    assert counted(folder / f"t.{suffix}") == [("a", 2, 1), ("b", 2, 1)]


def test_integers_of_all_widths():
    for kind in (pa.int8(), pa.uint16(), pa.int64(), pa.uint64()):
        table = pa.table({"who": pa.array([1, 1, 2], kind), "what": pa.array([3, 3, 4], kind)})
        assert counted(table, domain=[4, 3]) == [(1, 1, 2), (2, 0, 1)]


@pytest.mark.parametrize(
    "frame", [pd.DataFrame({"who": [], "what": []}, dtype=object), pl.DataFrame({"who": [], "what": []})]
)
def test_an_empty_frame_without_types_is_an_empty_table(frame):
    assert counted(frame) == []


def test_a_users_own_connection_is_left_as_it_was():
    table = ibis_table(None)
    backend = ibis.get_backend(table)

    def names():
        views = "select view_name from duckdb_views() where not internal"
        found = backend.con.execute(f"select table_name from duckdb_tables() union all {views}").fetchall()
        return sorted(row[0] for row in found)

    before = names()
    assert before == ["visits"]
    release(table)
    assert names() == before
    with pytest.raises(EngineFailure):
        release(table.mutate(who=table.who.cast("int64")))
    assert names() == before
    assert backend.con.execute("select count(*) from visits").fetchone() == (len(ROWS),)  # and still open


def test_a_duckdb_connection_is_left_as_it_was():
    relation = duckdb_relation(None)
    release(relation)
    assert len(relation.fetchall()) == len(ROWS)


# --- nothing stays on disk


@pytest.fixture
def scratch(tmp_path, monkeypatch, own_database):
    """Where the engine's temporary folders go."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def test_temporary_folders_are_private_and_removed(scratch):
    modes = []

    def look(stage):
        modes.extend(stat.S_IMODE(os.stat(one).st_mode) for one in scratch.iterdir() if stage == "estimating")

    release(arrow(), progress=look)
    assert modes == [0o700]
    assert list(scratch.iterdir()) == []


@pytest.mark.parametrize("moment", ["opening", "domain", "counting", "progress"])
def test_temporary_folders_are_removed_after_a_failure(scratch, tmp_path, moment):
    if moment == "opening":
        (tmp_path / "t.parquet").write_bytes(b"PAR1")
        with pytest.raises(UnreadableSource):
            release(tmp_path / "t.parquet")
    if moment == "domain":
        with pytest.raises(CrowdgramError):
            release(arrow(), domain=[])
    if moment == "counting":
        pa.parquet.write_table(pa.table({"who": ["a"] * 1000, "what": ["i1"] * 1000}), tmp_path / "t.parquet")
        broken = bytearray((tmp_path / "t.parquet").read_bytes())
        broken[4:60] = b"?" * 56  # the footer is whole, so the damage shows only when rows are read
        (tmp_path / "t.parquet").write_bytes(broken)
        with pytest.raises(EngineFailure):
            release(tmp_path / "t.parquet")
    if moment == "progress":

        def stop(stage):
            if stage == "estimating":
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            release(arrow(), progress=stop)
    assert list(scratch.iterdir()) == []


def test_a_path_may_be_relative(tmp_path, monkeypatch):
    write_csv(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert counted("t.csv") == counted(Path("t.csv")) == expected()
