"""Whatever a user has becomes the same counts; what cannot serve is refused without quoting a row."""

from __future__ import annotations

import gzip
import json
import os
import stat
import tempfile
import warnings
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
from crowdgram.errors import CrowdgramError, EngineFailure, InvalidArgument, InvalidTable, UnreadableSource
from crowdgram.tables import count_rows, open_rows, read_domain

from .cells import fetch_cells
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
    with rows.engine:
        counts = count_rows(rows, read_domain(domain, rows.item_type))
        cells = fetch_cells(counts)
    return sorted(zip(*(cells[name].to_pylist() for name in ("user", "idx", "n")), strict=True))


def release(source, user="who", item="what", **more):
    return crowdgram.release(source, **{"user": user, "item": item, "epsilon": 1.0, "domain": DOMAIN, **more})


def arrow():
    users, items = zip(*ROWS, strict=True)
    return pa.table({"what": items, "extra": range(len(ROWS)), "who": users})


def delimited(rows=ROWS, delimiter=","):
    lines = [("what", "extra", "who"), *((item, "x", user) for user, item in rows)]
    return "".join(delimiter.join(line) + "\n" for line in lines)


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


in_arrow = {"who": "string[pyarrow]", "what": "string[pyarrow]"}  # categories of Python objects are refused
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
    "pandas categories": lambda folder: (
        arrow().to_pandas().astype(in_arrow).astype(dict.fromkeys(in_arrow, "category"))
    ),
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
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        assert counted(frame) == expected()
        secret = frame_of(spark, [(SECRET, "i1")], "who string, what string")
        fails(EngineFailure, secret.selectExpr("cast(raise_error(who) as string) as who", "what"), "counting rows")
        with pytest.raises(InvalidTable, match="'who'"):
            release(frame.selectExpr("1.5D as who", "what"))
        assert [table.name for table in spark.catalog.listTables()] == []
        assert spark.conf.get("spark.sql.session.timeZone") == "Asia/Tokyo"
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


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


@pytest.mark.parametrize("suffix", ["csv", "parquet", "jsonl"])
@pytest.mark.parametrize("users", [["a", "b"], [1, 2]])
def test_a_path_that_begins_like_an_address_is_itself(tmp_path, monkeypatch, suffix, users):
    """`file:/there/t` is read in the folder `file:`, and not at /there."""
    other, own = tmp_path / "there", tmp_path / f"file:{tmp_path}" / "there"
    for folder, item in ((other, "i2"), (own, "i1")):
        folder.mkdir(parents=True)
        frame = pl.DataFrame({"who": users, "what": [item, item]})
        {"csv": frame.write_csv, "parquet": frame.write_parquet, "jsonl": frame.write_ndjson}[suffix](
            folder / f"t.{suffix}"
        )
    monkeypatch.chdir(tmp_path)
    found = counted(f"file:{other}/t.{suffix}")
    assert [item for _, item, _ in found] == [DOMAIN.index("i1")] * 2


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


# --- what cannot serve


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


def fails(kind, source, *names, **more):
    with pytest.raises(kind) as caught:
        release(source, **more)
    assert isinstance(caught.value, CrowdgramError)
    assert_silent(caught.value)
    for name in names:
        assert name in str(caught.value)


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
    monkeypatch.setattr("crowdgram.tables.counts.ROW_LIMIT", limit)  # one that small users reach
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


@pytest.mark.parametrize("more", [{}, {"where": lambda t: t["what"].notnull()}], ids=["plain", "ibis"])
def test_every_parquet_file_is_searched_for_columns_that_are_alike(tmp_path, more):
    files = [str(tmp_path / f"{name}.parquet") for name in "ab"]
    two = pa.array([1, 2])
    pa.parquet.write_table(pa.table({"who": two, "what": two}), files[0])
    for name in ("WHO", "who"):
        pa.parquet.write_table(pa.table([two] * 3, names=[name, "who", "what"]), files[1])
        fails(InvalidTable, files, files[1], "column 'who' twice, or another that differs from it by case", **more)
    pa.parquet.write_table(pa.table([two] * 4, names=["A", "a", "what", "who"]), files[1])
    assert counted(files, domain=[1, 2]) == [(1, 0, 2), (2, 1, 2)]


def test_files_of_a_dataset_must_agree_with_it_on_types(tmp_path):
    def whole(*kinds, **more):
        for name, kind in zip("ab", kinds, strict=True):
            pa.parquet.write_table(
                pa.table({"who": pa.array([1, 2], kind), "what": ["i1", "i2"]}), tmp_path / f"{name}.parquet"
            )
        return pa.dataset.dataset(tmp_path, format="parquet", **more)

    narrow, wide = pa.int32(), pa.int64()
    sources = [whole(narrow, wide), whole(wide, wide, schema=pa.schema([("who", narrow), ("what", pa.string())]))]
    for source in [*sources, sources[0].filter(pa.dataset.field("what") == "i1")]:
        fails(InvalidTable, source, "'who': has type int64 in a file of the dataset, and int32 in the dataset")
    same = whole(wide, wide, schema=pa.schema([("who", wide), ("none", wide), ("what", pa.string())]))
    assert counted(same) == counted(same.filter(pa.dataset.field("what") == "i1")) == [(1, 2, 2)]
    assert counted(pa.dataset.dataset([same, pa.dataset.dataset(pa.table(same.to_table()))])) == [(1, 2, 4)]


def test_a_dataset_of_text_files_has_types_by_rows(tmp_path):
    (tmp_path / "t.csv").write_text(f"who,what\n{SECRET},i1\n")
    fails(InvalidTable, pa.dataset.dataset(tmp_path / "t.csv", format="csv"), "table: is a dataset of text files")


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
    try:
        assert counted(ibis.pyspark.connect(spark).table("crowdgram_test_rows").semi_join(names, "what")) == expected()
    finally:
        for name in ("crowdgram_test_rows", names.get_name()):  # the second by Ibis, which keeps it to the end
            spark.catalog.dropTempView(name)


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


@pytest.mark.parametrize("kind", [pa.timestamp("ms"), pa.timestamp("ms", "UTC"), pa.struct({"at": pa.timestamp("ms")})])
@pytest.mark.parametrize("far", [9_223_372_036_854_776, -9_223_372_036_854_776])
def test_a_moment_that_nobody_asked_for_decides_nothing(tmp_path, kind, far):
    """DuckDB plans with the smallest and the largest of all columns, and cannot hold these."""
    moments = pa.array([0, far], pa.int64()).cast(pa.timestamp("ms"))
    seen = pa.StructArray.from_arrays([moments], ["at"]) if pa.types.is_struct(kind) else moments.cast(kind)
    pa.parquet.write_table(pa.table({"u": [1, 2], "i": [3, 4], "seen": seen}), tmp_path / "a.parquet")
    rows = open_rows(str(tmp_path / "a.parquet"), user="u", item="i")
    with rows.engine as engine:
        assert sorted(engine.fetch(rows.table, "testing")["item"].to_pylist()) == [3, 4]


@pytest.mark.parametrize("name", ["t.csv.zst", "t.jsonl.zst", "t.CSV.BZ2", "t.tsv.xz", "t.zip"])
@pytest.mark.parametrize("form", [str, crowdgram.Csv], ids=["path", "Csv"])
def test_a_compression_that_is_not_read_is_named(name, form, tmp_path):
    (tmp_path / name).write_bytes(b"u,i\n1,a\n")
    packed = "." + name.rsplit(".", 1)[1].lower()
    with pytest.raises(UnreadableSource, match=f"is compressed as {packed}.*gzip"):
        open_rows(form(str(tmp_path / name)), user="u", item="i")
