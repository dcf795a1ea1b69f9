"""What cannot serve as a table is refused, or dropped, without quoting a row."""

from __future__ import annotations

import json
import warnings

import duckdb
import ibis
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
import pytest

from crowdgram.errors import CrowdgramError, EngineFailure, InvalidArgument, InvalidTable, UnreadableSource
from crowdgram.tables import count_rows, open_rows, read_domain

from .frames import frame_of
from .test_sources import (
    DOMAIN,
    ROWS,
    SECRET,
    arrow,
    assert_silent,
    counted,
    delimited,
    expected,
    fails,
    ibis_table,
    release,
    write_csv,
    write_parquet,
    write_tsv,
)


def test_the_search_for_secrets_finds_them():
    for plant in ("message", "cause", "context", "note"):
        error = ValueError(SECRET if plant == "message" else "x")
        if plant == "cause":
            error.__cause__ = ValueError(SECRET)
        if plant == "context":
            error.__context__ = ValueError(SECRET)
        if plant == "note":
            error.add_note(SECRET)
        with pytest.raises(AssertionError):
            assert_silent(error)


@pytest.mark.parametrize("role", ["who", "what"])
@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (pa.array([1.5, 2.0]), "float64"),
        (pa.array([b"a", b"b"]), "binary"),
        (pa.array([["a"], ["b"]]), "array"),
        (pa.array([1, 2]).cast(pa.decimal128(24, 2)), "decimal"),
        (pa.array([1, 2], pa.time64("us")), "time"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_types_that_cannot_serve(role, values, kind):
    table = pa.table({"who": [SECRET, SECRET], "what": [SECRET, SECRET]})
    table = table.set_column(table.column_names.index(role), role, values)
    fails(InvalidTable, table, {"who": "user", "what": "item"}[role], repr(role), kind, "integers, strings", "Cast")


def test_a_timestamp_may_be_an_item_but_not_a_user():
    """Engines round it, and users that merge are no longer the unit that is protected."""
    moments = pa.array([0, 1], pa.timestamp("ns"))
    fails(InvalidTable, pa.table({"who": moments, "what": [SECRET, SECRET]}), "user", "'who'", "timestamp")


def test_a_float_user_column_of_pandas_says_how_to_mend_it():
    frame = pd.DataFrame({"who": [1, None], "what": ["i1", SECRET]})
    fails(InvalidTable, frame, "'who'", "Int64")


def secret_sources(folder):
    """The same secret rows, in every kind of source."""
    table = pa.table({"who": [SECRET, "b"], "what": ["i1", SECRET]})
    pa.parquet.write_table(table, folder / "s.parquet")
    pl.from_arrow(table).write_csv(folder / "s.csv")
    pl.from_arrow(table).write_ndjson(folder / "s.jsonl")
    connection = duckdb.connect()
    connection.register("rows", table)
    return [
        *(folder / f"s.{suffix}" for suffix in ("parquet", "csv", "jsonl")),
        table,
        table.to_pandas(),
        pl.from_arrow(table),
        pl.from_arrow(table).lazy(),
        table.to_reader(),
        pa.dataset.dataset(table),
        connection.sql("select * from rows"),
        ibis.memtable(table.to_pandas()),
    ]


def test_a_missing_column_is_named(tmp_path):
    for source in secret_sources(tmp_path):
        if not str(source).endswith("jsonl"):  # JSON has no schema to find it missing in
            fails(InvalidTable, source, "'whom'", user="whom")


def test_a_csv_without_a_header_line_quotes_no_row(tmp_path):
    (tmp_path / "t.csv").write_text(f"{SECRET},i1\n{SECRET},i2\n")
    fails(InvalidTable, tmp_path / "t.csv", "'who'", "t.csv", "header")
    (tmp_path / "t.csv").write_text(f"{SECRET},{SECRET}\n{SECRET},i2\n")
    fails(InvalidTable, tmp_path / "t.csv", "t.csv", "column 1", "column 2")


@pytest.mark.slow
@pytest.mark.parametrize(
    "rows", ["", '{"who": "a", "what": "i1"}\n', '{"other": 1}\n', '3\n["x"]\n{"who": 1, "what":\n']
)
def test_json_keys_are_content(tmp_path, rows):
    """Which keys occur, and whether a line is whole, is up to the rows: neither decides over a release."""
    (tmp_path / "t.jsonl").write_text(rows)
    assert release(tmp_path / "t.jsonl").items == release(arrow()).items


def test_repeated_columns(tmp_path):
    fails(
        InvalidTable,
        pd.DataFrame([[SECRET, SECRET, "i1"]], columns=["who", "who", "what"]),
        "'who'",
        "more than once",
    )
    batch = pa.Table.from_arrays([pa.array([SECRET])] * 3, names=["who", "what", "what"])
    fails(InvalidTable, batch, "'what'", "more than once")
    (tmp_path / "t.csv").write_text(f"who,what,who\n{SECRET},i1,x\n")
    fails(InvalidTable, tmp_path / "t.csv", "column 1", "column 3")
    (tmp_path / "t.csv").write_text(f"who,what,\n{SECRET},i1,x\n")
    fails(InvalidTable, tmp_path / "t.csv", "column 3", "no name")


@pytest.mark.parametrize(("user", "item"), [("who", "who"), ("", "what"), ("who", None), (3, "what")])
def test_columns_that_are_not_two_names(user, item):
    with pytest.raises(InvalidArgument, match=r"user|item"):
        release(arrow(), user=user, item=item)


def test_columns_of_pandas_that_are_not_strings():
    fails(InvalidTable, pd.DataFrame({0: [SECRET], 1: ["i1"]}), "'0'", user="0", item="1")


@pytest.mark.parametrize("source", [None, 5, [("a", "i1")], {"who": ["a"]}, b"t.csv", object()])
def test_objects_that_are_no_table(source):
    fails(InvalidArgument, source, "table", type(source).__qualname__)


def test_a_column_is_no_table():
    for column in (arrow()["who"], arrow().to_pandas()["who"], ibis_table(None).who):
        with pytest.raises(InvalidArgument, match="table"):
            release(column)


def test_paths_that_cannot_be_read(tmp_path):
    (tmp_path / "t.xlsx").write_text(SECRET)
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "folder.parquet").mkdir()
    (tmp_path / "not.csv.gz").write_text(f"who,what\n{SECRET},i1\n")
    fails(UnreadableSource, tmp_path / "t.xlsx", "t.xlsx", ".parquet")
    fails(UnreadableSource, tmp_path / "none.csv", "none.csv", "is no file")
    fails(UnreadableSource, str(tmp_path / "none-*.csv"), "none-*.csv", "glob")
    fails(UnreadableSource, tmp_path / "empty.csv", "empty.csv", "header")
    fails(UnreadableSource, tmp_path, str(tmp_path), "folder", "*.parquet")
    fails(UnreadableSource, tmp_path / "folder.parquet", "folder.parquet", "folder")
    fails(UnreadableSource, tmp_path / "not.csv.gz", "not.csv.gz")


@pytest.mark.parametrize("suffix", ["parquet"])
def test_damaged_files(tmp_path, suffix):
    path = tmp_path / f"t.{suffix}"
    path.write_bytes(b"PAR1" + SECRET.encode() * 10 + b'{"who": PAR1')
    fails(UnreadableSource, path, path.name)


def test_a_cut_parquet_file(tmp_path):
    table = pa.table({"who": [SECRET] * 1000, "what": ["i1"] * 1000})
    pa.parquet.write_table(table, tmp_path / "t.parquet")
    whole = (tmp_path / "t.parquet").read_bytes()
    (tmp_path / "t.parquet").write_bytes(whole[: len(whole) // 2])
    fails(UnreadableSource, tmp_path / "t.parquet", "t.parquet")


def test_files_with_different_headers(tmp_path):
    (tmp_path / "a.csv").write_text(f"who,what\n{SECRET},i1\n")
    (tmp_path / "b.csv").write_text(f"what,who\ni1,{SECRET}\n")
    fails(UnreadableSource, str(tmp_path / "*.csv"), "*.csv", "header")
    fails(UnreadableSource, [tmp_path / "a.csv", tmp_path / "b.csv"], "b.csv", "header")


@pytest.mark.slow
def test_lines_that_cannot_be_parsed_are_dropped(tmp_path):
    whole = "who,what\n" + "a,i1\n" * 3
    for extra in (f"{SECRET},i1,{SECRET}\n", f'"{SECRET},i1\n', SECRET + "\n", "x" * 3_000_000 + ",i1\n"):
        (tmp_path / "t.csv").write_text(whole + extra)
        assert release(tmp_path / "t.csv").items == release(arrow()).items


@pytest.mark.slow
@pytest.mark.parametrize(
    "line",
    [b"i1,x,me\rtoo\n", b"i1,x,me\r\n", b'"i1"y,x,me\n', b'i1,x,"me"too\n', b"i1,\xff\xfe,me\n", b"\xff,\xff,\xff\n"],
)
@pytest.mark.parametrize("place", [1, 30])
def test_an_odd_line_takes_no_other_line_with_it(tmp_path, line, place):
    lines = delimited().encode().splitlines(keepends=True)
    (tmp_path / "odd.csv").write_bytes(b"".join([*lines[:place], line, *lines[place:]]))
    found = counted(str(tmp_path / "odd.csv"))
    assert [cell for cell in found if not cell[0].startswith("me")] == expected()


def test_half_characters_in_pandas_strings_are_missing():
    strings = pd.StringDtype("python")
    frame = pd.DataFrame(
        {"who": pd.Series(["a", "b"], dtype=strings), "what": pd.Series(["i1", "\ud800"], dtype=strings)}
    )
    assert counted(frame) == [("a", 2, 1)]


@pytest.mark.parametrize("limit", [2, 2**20])
def test_engines_do_not_warn_more_often_for_heavy_users(monkeypatch, limit):
    """How often DuckDB is asked depends on whether a user has more rows than the limit; how often it warns may not."""
    monkeypatch.setattr("crowdgram.tables.counts.ROW_LIMIT", limit)
    opened = open_rows(arrow(), user="who", item="what")
    with opened.engine, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        count_rows(opened, read_domain(DOMAIN, opened.item_type))
    assert not caught


def test_parquet_files_must_agree_on_types(tmp_path):
    for name, kind in (("a", pa.int32()), ("b", pa.float64())):
        pa.parquet.write_table(
            pa.table({"who": pa.array([1, 2], kind), "what": ["i1", "i2"]}), tmp_path / f"{name}.parquet"
        )
    fails(InvalidTable, str(tmp_path / "*.parquet"), "*.parquet", "'who'", "type")


def test_parquet_files_that_lack_a_column(tmp_path):
    for name, columns in (("a", ["who", "what"]), ("b", ["who"])):
        pa.parquet.write_table(arrow().select(columns), tmp_path / f"{name}.parquet")
    fails(InvalidTable, str(tmp_path / "*.parquet"), "*.parquet", "no column 'what'")


def folder_of_users(folder, suffix, bad):
    """A file for each user, named after them; one of them, last, is bad."""
    for name in ("alice", "bob"):
        table = pa.table({"who": [name], "what": ["i1"]})
        if suffix == "parquet":
            pa.parquet.write_table(table, folder / f"{name}.parquet")
        else:
            text = {"csv": f"who,what\n{name},i1\n", "json": json.dumps([{"who": name, "what": "i1"}])}[suffix]
            (folder / f"{name}.{suffix}").write_text(text)
    place = folder / f"{SECRET}.{suffix}"
    if bad == "folder":
        place.mkdir()
    elif bad == "link to nothing":
        place.symlink_to(folder / "nowhere")
    elif bad == "types":
        pa.parquet.write_table(pa.table({"who": [1.5], "what": ["i1"]}), place)
    elif bad == "columns":
        pa.parquet.write_table(pa.table({"who": ["x"]}), place)
    else:
        place.write_text(bad)


@pytest.mark.parametrize(
    ("suffix", "bad"),
    [
        ("csv", "folder"),
        ("csv", "link to nothing"),
        ("csv", "what,who\ni1,x\n"),
        ("csv", ""),
        ("parquet", "no parquet"),
        ("parquet", "types"),
        ("parquet", "columns"),
        ("json", '{"who": "x"}\n{"who": "y"}\n'),
    ],
)
@pytest.mark.parametrize("first", [True, False])
def test_no_message_names_a_file_that_a_glob_found(suffix, bad, first, tmp_path):
    folder_of_users(tmp_path, suffix, bad)
    if first:  # before all others in order
        (tmp_path / f"{SECRET}.{suffix}").rename(tmp_path / f"a-{SECRET}.{suffix}")
    with pytest.raises(CrowdgramError) as caught:
        release(str(tmp_path / f"*.{suffix}"))
    assert not isinstance(caught.value, EngineFailure)
    for name in (SECRET, "alice", "bob"):
        assert_silent(caught.value, name)


def test_no_message_names_a_file_that_two_globs_found(tmp_path):
    (tmp_path / f"{SECRET}.csv").write_text("who,what\nx,i1\n")
    fails(UnreadableSource, [tmp_path / "*.csv", tmp_path / "z*.csv"], "more than once", "z*.csv")
    fails(InvalidTable, str(tmp_path / "*.csv"), "'where'", "*.csv", item="where")


def test_lists_of_files_that_do_not_go_together(tmp_path):
    one, other = write_csv(tmp_path), write_parquet(tmp_path)
    fails(UnreadableSource, [one, other], "another kind")
    fails(UnreadableSource, [one, write_tsv(tmp_path)], "another kind")
    fails(UnreadableSource, [one, str(one)], "more than once")
    fails(UnreadableSource, [one, tmp_path / "none.csv"], "is no file")
    fails(InvalidArgument, [], "list")
    fails(InvalidArgument, [one, 3], "list")


def test_a_large_memtable():
    """Above what an engine would take in one batch."""
    users, items = list(range(70_000)), ["a", "b"] * 35_000
    table = ibis.memtable(pd.DataFrame({"who": users, "what": items}))
    assert len(counted(table, domain=["a", "b"])) == 70_000


@pytest.mark.spark
def test_a_memtable_beside_a_spark_table(spark):
    frame_of(spark, ROWS, "who string, what string").createOrReplaceTempView("crowdgram_test_rows")
    names = ibis.memtable({"what": DOMAIN})
    assert counted(ibis.pyspark.connect(spark).table("crowdgram_test_rows").semi_join(names, "what")) == expected()


def test_what_cannot_be_found_fails_while_the_table_is_opened():
    table = ibis_table(None)
    ibis.get_backend(table).raw_sql("drop table visits")
    fails(EngineFailure, table, "opening the table")


def test_queries_of_the_user_that_fail_quote_nothing():
    table = pa.table({"who": [SECRET], "what": ["i1"]})
    connection = duckdb.connect()
    connection.register("rows", table)
    fails(EngineFailure, connection.sql("select who::int as who, what from rows"), "relation")
    fails(EngineFailure, pl.from_arrow(table).lazy().with_columns(pl.col("who").cast(pl.Int64)), "polars")
    backend = ibis_table(None)
    fails(EngineFailure, backend.mutate(who=(backend.what + SECRET).cast("int64")), "counting rows")


@pytest.mark.slow
@pytest.mark.parametrize("odd", [SECRET, 1, 2**80, 2.5, None, "lone \ud800", float("nan")])
def test_object_columns_are_strings_whatever_they_hold(odd):
    frame = pd.DataFrame({"who": [odd, "b"], "what": ["i1", "i1"]}, dtype=object)
    assert release(frame).items == release(arrow()).items
