"""The public domain: every way to give it, in the type of the item column, and what is refused."""

from __future__ import annotations

from pathlib import Path

import ibis
import ibis.expr.datatypes as dt
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest

from crowdgram.errors import InvalidArgument, InvalidDomain, InvalidTable, UnreadableSource
from crowdgram.tables import kinds, read_domain

ITEMS = ["b", "a", "c"]


def read(domain, kind=dt.string, **more):
    return list(read_domain(domain, kind, **more).items)


@pytest.mark.parametrize(
    "domain",
    [
        ITEMS,
        tuple(ITEMS),
        (item for item in ITEMS),
        np.array(ITEMS),
        [np.str_(item) for item in ITEMS],
        pd.Series(ITEMS),
        pd.Series(ITEMS, dtype="category"),
        pd.Index(ITEMS),
        pl.Series(ITEMS),
        pa.array(ITEMS),
        pa.chunked_array([ITEMS[:1], ITEMS[1:]]),
        pa.array(ITEMS).dictionary_encode(),
        pa.table({"x": ITEMS})["x"],
    ],
    ids=lambda domain: f"{type(domain).__module__}.{type(domain).__name__}",
)
def test_lists_and_columns_of_strings(domain):
    found = read(domain)
    assert found == ITEMS
    assert {type(item) for item in found} == {str}


@pytest.mark.parametrize(
    "domain",
    [
        [3, 1, 2],
        np.array([3, 1, 2], dtype=np.uint8),
        list(np.array([3, 1, 2])),
        pd.Series([3, 1, 2], dtype="Int64"),
        pl.Series([3, 1, 2]),
        pa.array([3, 1, 2]),
        ["3", " 1 ", "+2"],
    ],
    ids=lambda domain: f"{type(domain).__module__}.{type(domain).__name__}",
)
def test_lists_and_columns_of_integers(domain):
    found = read(domain, dt.int32)
    assert found == [3, 1, 2]
    assert {type(item) for item in found} == {int}


def test_ranges():
    assert read(range(2, 5), dt.int64) == [2, 3, 4]
    assert read(range(2, 5)) == ["2", "3", "4"]


def test_an_ibis_column():
    backend = ibis.duckdb.connect()
    backend.raw_sql("create table catalogue as select * from (values ('b'), ('a'), ('c')) as t(code)")
    assert sorted(read(backend.table("catalogue").code)) == sorted(ITEMS)
    assert sorted(read(backend.table("catalogue").code.upper())) == ["A", "B", "C"]


def test_order_is_kept_and_is_the_place_in_the_release():
    domain = read_domain(ITEMS, dt.string)
    assert domain.items == tuple(ITEMS)
    assert len(domain) == 3


# --- files


@pytest.mark.parametrize(
    "content",
    [b"b\na\nc\n", b"b\r\na\r\nc", b"\xef\xbb\xbfb\na\nc\n", b"\nb\n\na\nc\n\n"],
    ids=["LF", "CRLF", "BOM", "blank"],
)
@pytest.mark.parametrize("kind", [str, Path])
def test_a_text_file_has_an_item_a_line(tmp_path, content, kind):
    (tmp_path / "items.txt").write_bytes(content)
    assert read(kind(tmp_path / "items.txt")) == ITEMS


def test_lines_are_not_trimmed(tmp_path):
    (tmp_path / "items").write_text(" b\na,c\n#d\n")
    assert read(tmp_path / "items") == [" b", "a,c", "#d"]


def test_a_text_file_of_integers(tmp_path):
    (tmp_path / "items.txt").write_text("3\n-1\n2\n")
    assert read(tmp_path / "items.txt", dt.int64) == [3, -1, 2]
    assert read(tmp_path / "items.txt") == ["3", "-1", "2"]


def tables(folder):
    table = pa.table({"name": ["x", "y", "z"], "code": ITEMS})
    pa.parquet.write_table(table, folder / "t.parquet")
    pl.from_arrow(table).write_csv(folder / "t.csv")
    pl.from_arrow(table).write_ndjson(folder / "t.jsonl")
    return [folder / name for name in ("t.parquet", "t.csv", "t.jsonl")]


def test_a_column_of_a_file_by_name(tmp_path):
    for path in tables(tmp_path):
        assert sorted(read((path, "code"))) == sorted(ITEMS)
        assert sorted(read((str(path), "name"))) == ["x", "y", "z"]


def test_a_column_of_a_file_by_the_items_name(tmp_path):
    for path in tables(tmp_path):
        assert sorted(read(path, item="code")) == sorted(ITEMS)


def test_the_only_column_of_a_file(tmp_path):
    pa.parquet.write_table(pa.table({"whatever": [3, 1]}), tmp_path / "one.parquet")
    assert sorted(read(tmp_path / "one.parquet", dt.int16)) == [1, 3]
    assert sorted(read(tmp_path / "one.parquet")) == ["1", "3"]
    (tmp_path / "one.csv").write_text("whatever\n3\n1\n")
    assert sorted(read(tmp_path / "one.csv", dt.int16)) == [1, 3]


def test_a_packed_file_in_a_pair(tmp_path):
    pd.DataFrame({"code": ITEMS, "name": ITEMS}).to_csv(tmp_path / "t.csv.gz", index=False)
    assert sorted(read((str(tmp_path / "t.csv.gz"), "code"))) == sorted(ITEMS)


def test_a_file_with_several_columns_needs_a_name(tmp_path):
    for path in tables(tmp_path):
        with pytest.raises(InvalidArgument, match="'name', 'code'"):
            read(path, item="item")
        with pytest.raises(InvalidTable, match="'nope'"):
            read((path, "nope"))


def test_files_that_cannot_be_read(tmp_path):
    (tmp_path / "binary.txt").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "bad.parquet").write_bytes(b"PAR1")
    for path, message in [
        (tmp_path / "none.txt", "No such file"),
        (tmp_path / "none.csv", "is no file"),
        (tmp_path, "directory"),
        (tmp_path / "binary.txt", "UTF-8"),
        (tmp_path / "bad.parquet", "Parquet"),
    ]:
        with pytest.raises(UnreadableSource, match=message) as caught:
            read(path)
        assert path.name in str(caught.value)


def test_a_text_file_has_no_columns(tmp_path):
    (tmp_path / "items.txt").write_text("a\n")
    with pytest.raises(InvalidArgument, match="'code'"):
        read((tmp_path / "items.txt", "code"))


# --- what is refused


def test_nothing_is_no_domain():
    with pytest.raises(InvalidDomain, match=r"domain: is a NoneType.*needs to be a list"):
        read(None)


@pytest.mark.parametrize("domain", [[], (), np.array([]), pd.Series([], dtype=str), iter([])])
def test_an_empty_domain(domain):
    with pytest.raises(InvalidDomain, match="domain: is empty"):
        read(domain)


def test_an_empty_file(tmp_path):
    (tmp_path / "items.txt").write_text("\n\n")
    with pytest.raises(InvalidDomain, match="domain: is empty"):
        read(tmp_path / "items.txt")


@pytest.mark.parametrize(
    ("domain", "kind", "named"),
    [
        (["a", "b", "a"], dt.string, "'a'"),
        ([1, 2, 1], dt.int64, "1"),
        (["1", "01"], dt.int64, "1"),
        ([1, "1"], dt.string, "'1'"),
    ],
)
def test_repeats_are_named(domain, kind, named):
    with pytest.raises(InvalidDomain, match=f"domain: holds {named} more than once"):
        read(domain, kind)


@pytest.mark.parametrize("value", [1.0, np.float64(2), True, np.True_, None, b"a", ["a"], float("nan"), pd.NA])
@pytest.mark.parametrize("kind", [dt.string, dt.int64])
def test_values_of_another_type_are_named(value, kind):
    with pytest.raises(InvalidDomain, match="domain: holds") as caught:
        read([value], kind)
    assert ("integers" if kind.is_integer() else "strings") in str(caught.value)


@pytest.mark.parametrize("text", ["a", "", "1.0", "1e3", "1_000", "0x1", "9" * 40])
def test_text_that_is_no_integer(text):
    with pytest.raises(InvalidDomain, match="domain: holds"):
        read([text], dt.int64)


@pytest.mark.parametrize(
    ("value", "kind"),
    [(128, dt.int8), (-1, dt.uint64), (2**31, dt.int32), ("-9223372036854775809", dt.int64)],
)
def test_integers_out_of_range_are_named(value, kind):
    with pytest.raises(InvalidDomain, match=f"domain: holds {value}.*{kind}"):
        read([value], kind)


def test_the_ends_of_a_range_fit():
    assert read([2**63 - 1, -(2**63)], dt.int64) == [2**63 - 1, -(2**63)]
    assert read([2**64 - 1], dt.uint64) == [2**64 - 1]


def test_text_that_is_not_unicode():
    with pytest.raises(InvalidDomain, match="Unicode"):
        read(["\ud800"])


@pytest.mark.parametrize(
    "domain",
    [
        5,
        np.int64(5),
        b"ab",
        {"a": 1},
        pd.DataFrame({"zebra": ["a"]}),
        pl.DataFrame({"x": ["zebra"]}),
        pa.table({"x": ["zebra"]}),
        ibis.memtable({"x": ["zebra"]}),
    ],
    ids=lambda domain: type(domain).__name__,
)
def test_things_that_are_no_list_of_items(domain):
    """A whole table is refused without its content: by mistake it may be the private one."""
    with pytest.raises(InvalidDomain, match=f"domain: is a {type(domain).__name__}") as caught:
        read(domain)
    assert "zebra" not in str(caught.value)


@pytest.mark.parametrize("dtype", [dt.int64, dt.int8, dt.uint64, dt.string])
@pytest.mark.parametrize(
    "values",
    [
        [],
        ["1", "2"],
        ["1", "+2", " 3 "],
        ["1", "2\n3"],
        ["1_0"],
        ["٣"],
        ["", "a"],
        [1, 2],
        [1, "2"],
        [True, 1],
        [-1, 300],
        [2**63],
        ["9" * 31],
        ["a", "\ud800"],
        [np.int64(4), 5],
        [None],
    ],
)
def test_all_at_once_is_one_after_another(values, dtype):
    """Plain lists are converted in bulk: to the same values, or with the same error."""

    def outcome(act):
        try:
            return act(), None
        except InvalidDomain as error:
            return None, str(error)

    role = kinds.DOMAIN
    bulk = outcome(lambda: kinds.convert_all(values, dtype, role, "item"))
    assert bulk == outcome(lambda: tuple(kinds.convert(value, dtype, role, "item") for value in values))
    if bulk[0] and (dtype.is_string() or (min(bulk[0]) >= -(2**63) and max(bulk[0]) < 2**63)):
        column = kinds.arrow_keys(bulk[0], dtype)
        assert column.to_pylist() == list(bulk[0])
        assert column.type in (dtype.to_pyarrow(), pa.string())
