"""The columns that are asked for: counts, several items, groups; checked by the schema alone."""

from __future__ import annotations

import datetime
import decimal
import importlib
import json
import uuid

import duckdb
import ibis
import ibis.expr.datatypes as dt
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowdgram.errors import CrowdgramError, InvalidArgument, InvalidDomain, InvalidTable, PrivacyViolation
from crowdgram.tables import UNIT, CappedRows, count_rows, counts, open_rows, read_domain, read_joint_domain
from crowdgram.tables.engines import DuckEngine
from crowdgram.tables.kinds import plain_type
from crowdgram.tables.roles import GROUPS

from ..thorough import examples
from .cells import fetch_cells

SECRET = "zebra-4711"


def counted(source, domain, user="u", item="i", **more):
    rows = open_rows(source, user=user, item=item, **more)
    with rows.engine:
        if len(rows.names) == 1:
            found = read_domain(domain, rows.item_type, item=rows.names[0])
        else:
            found = read_joint_domain(domain, rows.item_types, rows.names)
        cells = fetch_cells(count_rows(rows, found))
    return sorted(zip(*(cells[name].to_pylist() for name in ("user", "idx", "n")), strict=True))


# --- columns of integers and strings, without Ibis

LETTERS = pa.Array.from_buffers(
    pa.string(), 5, [None, pa.py_buffer(np.array([0, 1, 2, 3, 4, 5], dtype=np.int32)), pa.py_buffer(b"aBb\xffa")]
)  # one of them is no text


def csv_of(table, folder):
    pyarrow.csv.write_csv(table, folder / "table.csv")
    return str(folder / "table.csv")


def json_of(table, folder):
    (folder / "table.jsonl").write_text("\n".join(json.dumps(row, default=str) for row in table.to_pylist()))
    return str(folder / "table.jsonl")


def parquet_of(table, folder):
    pyarrow.parquet.write_table(table, folder / "table.parquet")
    return str(folder / "table.parquet")


@pytest.mark.parametrize("given", [lambda table, _: table, parquet_of, csv_of, json_of], ids=lambda one: one.__name__)
@pytest.mark.parametrize(
    ("users", "items", "domain"),
    [
        (pa.array([1, 2, 2, None, 1]), pa.array(["x", "y", "x", "x", "x"]), ["x", "y"]),
        (pa.array([1, 2, 2, 3, 255], pa.uint8()), pa.array([1, -2, 1, None, 127], pa.int8()), [1, -2, 127]),
        (pa.array([2**64 - 1, 0, 0, 1, 1], pa.uint64()), pa.array(list("abcab"), pa.large_string()), ["a", "b", "c"]),
        (LETTERS, pa.array([1, 1, 2, 2, 1], pa.int32()), [1, 2]),
    ],
    ids=["integers", "small", "large", "no text"],
)
def test_plain_columns_are_counted_as_ibis_would_have_them(given, users, items, domain, tmp_path, monkeypatch):
    text = users is LETTERS and given in (csv_of, json_of)
    table = pa.table({"u": pa.array(list("aBbxa")) if text else users, "i": items})
    source, computed = given(table, tmp_path), []
    compute = importlib.import_module("crowdgram.tables.computed").compute
    monkeypatch.setattr("crowdgram.tables.computed.compute", lambda *a, **k: computed.append(1) or compute(*a, **k))
    plain = counted(source, domain)
    kinds = [str(kind) for kind in types_of(source)]
    assert not computed
    monkeypatch.setattr("crowdgram.tables.rows._plain", lambda *_: None)
    assert counted(source, domain) == plain
    assert [str(kind) for kind in types_of(source)] == kinds
    assert computed == [1, 1]


def types_of(source):
    rows = open_rows(source, user="u", item="i")
    rows.engine.close()
    return rows.item_types


@pytest.mark.parametrize("arrow", [pa.int8(), pa.int64(), pa.uint8(), pa.uint64(), pa.int32(), pa.uint16()], ids=str)
def test_plain_types_say_what_those_of_ibis_say(arrow):
    plain, other = plain_type(arrow), dt.DataType.from_pyarrow(arrow)
    assert (plain.lower, plain.upper) == (other.bounds.lower, other.bounds.upper)
    assert (str(plain), plain.to_pyarrow(), plain.is_integer()) == (str(other), other.to_pyarrow(), True)


@pytest.mark.parametrize("arrow", [pa.float64(), pa.date32(), pa.bool_(), pa.decimal128(5, 0), pa.binary()], ids=str)
def test_all_other_types_are_left_to_ibis(arrow):
    assert plain_type(arrow) is None


# --- names that are not there


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"user": "usr"}, "user='usr': column 'usr' is not in the table"),
        ({"item": "produkt"}, "item='produkt'.*Did you mean 'product'"),
        ({"by": "regoin"}, "by='regoin'.*Did you mean 'region'"),
        ({"count": "m"}, "count='m'"),
        ({"where": "regn = 'north'"}, "where=\"regn = 'north'\".*'regn'.*Did you mean 'region'"),
        ({"where": 'region = "north"'}, "for text use single quotes: 'north'"),
        ({"item": "hour(ts)"}, "--item NAME=EXPRESSION"),
        ({"item": {"h": "hour(tz)"}}, "item\\['h'\\]='hour\\(tz\\)'.*'tz'"),
        ({"where": lambda t: t.regn == "north"}, "where: the table has no column 'regn'"),
        ({"where": lambda t: t["regn"] == "north"}, "where: the table has no column 'regn'"),
        ({"item": "price"}, "needs integers, strings, dates, timestamps, booleans or UUIDs"),
        ({"user": "price"}, "needs integers, strings, dates, booleans or UUIDs"),
    ],
)
def test_an_error_names_the_argument_and_what_comes_close(more, says):
    table = pa.table(
        {"user": [1], "product": ["x"], "region": ["north"], "ts": [datetime.datetime(2024, 1, 1)], "price": [1.5]}
    )
    with pytest.raises(CrowdgramError, match=says) as caught:
        open_rows(table, **{"user": "user", "item": "product", **more})
    assert type(caught.value) in (InvalidTable, InvalidArgument)


def test_a_header_line_that_may_be_a_row_is_not_quoted(tmp_path):
    (tmp_path / "t.csv").write_text(f"{SECRET},x\n1,y\n")
    for more in (
        {"user": SECRET[:-1], "item": "x"},
        {"user": "x", "item": "x2", "where": lambda t: t[SECRET[:-1]] == 1},
    ):
        with pytest.raises(CrowdgramError) as caught:
            open_rows(tmp_path / "t.csv", **more)
        assert SECRET not in str(caught.value)


def test_repeated_groups_are_called_groups():
    with pytest.raises(InvalidDomain, match=r"^groups: .*distinct groups"):
        read_domain(["a", "a"], dt.string, role=GROUPS)


# --- counted rows

TABLE = pa.table(
    {"u": ["a", "a", "b", "b", "c", "d"], "i": ["x", "x", "x", "y", "x", "y"], "n": [2, 3, 1, -4, 0, None]}
)
EXPECTED = [("a", 0, 5), ("b", 0, 1)]


@pytest.mark.parametrize("kind", [pa.int8(), pa.int32(), pa.int64(), pa.decimal128(20, 0)])
def test_counts_of_every_integer_type(kind):
    position = TABLE.column_names.index("n")
    source = TABLE.set_column(position, "n", TABLE["n"].cast(kind))
    assert counted(source, ["x", "y"], count="n") == EXPECTED


@pytest.mark.parametrize("kind", [pa.uint8(), pa.uint64()])
def test_counts_without_sign(kind):
    source = pa.table({"u": ["a", "b"], "i": ["x", "x"], "n": pa.array([3, 0], kind)})
    assert counted(source, ["x"], count="n") == [("a", 0, 3)]
    source = pa.table({"u": ["a"], "i": ["x"], "n": pa.array([2**64 - 1], pa.uint64())})
    assert counted(source, ["x"], count="n") == [("a", 0, counts.ROW_LIMIT)]


def test_counts_in_text_files(tmp_path):
    """Text has no types: what is not written as a whole number counts for nothing, and nothing fails."""
    values = ["2", " 3 ", "+4", "", "-1", "1.5", "1e3", "x", SECRET, "0", "9" * 29, "007", "3.0", "+4.000", "3.", ".0"]
    values += ["3.01", "0.0", "9" * 29 + ".0", "1.0.0", "-3.0"]
    lines = "".join(f"u{k:02},x,{value}\n" for k, value in enumerate(values))
    (tmp_path / "t.csv").write_text("u,i,n\n" + lines)
    found = [("u00", 0, 2), ("u01", 0, 3), ("u02", 0, 4), ("u10", 0, counts.ROW_LIMIT), ("u11", 0, 7)]
    found += [("u12", 0, 3), ("u13", 0, 4), ("u18", 0, counts.ROW_LIMIT)]
    assert counted(tmp_path / "t.csv", ["x"], count="n") == found
    (tmp_path / "t.jsonl").write_text(
        '{"u": "a", "i": "x", "n": 5}\n{"u": "b", "i": "x", "n": 1.5}\n{"u": "c", "i": "x"}\n'
    )
    assert counted(tmp_path / "t.jsonl", ["x"], count="n") == [("a", 0, 5)]


@pytest.mark.parametrize(
    "values",
    [
        pa.array([1.0, 2.0]),
        pa.array(["1", SECRET]),
        pa.array([True, False]),
        pa.array([decimal.Decimal("1.5"), None]),
        pa.array([0, 1], pa.date32()),
    ],
    ids=lambda values: str(values.type),
)
def test_counts_that_are_no_whole_numbers_are_refused_by_the_schema(values):
    source = pa.table({"u": ["a", "b"], "i": ["x", "x"], "n": values})
    with pytest.raises(InvalidTable, match=r"^count='n':.*whole numbers") as caught:
        counted(source, ["x"], count="n")
    assert SECRET not in str(caught.value)
    with pytest.raises(InvalidTable, match="Int64"):
        counted(pd.DataFrame({"u": ["a"], "i": ["x"], "n": [1.0]}), ["x"], count="n")


def test_shares_survive_large_counts():
    """Bytes instead of visits: a user over the limit is divided down, and keeps the proportions."""
    source = pa.table({"u": ["a", "a"], "i": ["x", "y"], "n": [3 * 2**33, 2**33]})
    found = {place: n for _, place, n in counted(source, ["x", "y"], count="n")}
    assert found[0] + found[1] <= counts.ROW_LIMIT
    assert found[0] == 3 * found[1] > counts.ROW_LIMIT // 2


one_user = st.lists(
    st.tuples(st.integers(0, 3), st.one_of(st.integers(-(2**63), 2**63 - 1), st.integers(-2, 9), st.none())), max_size=6
)


@pytest.mark.slow
@examples(6)
@given(st.dictionaries(st.sampled_from("abc"), one_user, max_size=3), one_user, st.integers(1, 2**20))
def test_counted_rows_keep_the_bound(crowd, own, row_cap):
    """Adding a user with any counts whatever moves the sum by at most UNIT."""

    def total(users):
        rows = [(user, item, n) for user, cells in users.items() for item, n in cells]
        columns = (
            pa.array([row[j] for row in rows], kind) for j, kind in enumerate((pa.string(), pa.int64(), pa.int64()))
        )
        opened = open_rows(pa.table(dict(zip("uin", columns, strict=True))), user="u", item="i", count="n")
        with opened.engine:
            return count_rows(opened, read_domain(range(4), opened.item_type)).sum(CappedRows(row_cap)).values

    change = total({**crowd, "new": own}) - total(crowd)
    assert (change >= 0).all()
    assert change.sum() <= UNIT


def test_squares_are_those_of_the_limited_counts():
    source = pa.table({"u": ["a", "a", "b"], "i": ["x", "y", "y"], "n": [2**40, 2**39, 3]})
    rows = open_rows(source, user="u", item="i", count="n")
    with rows.engine as engine:
        made = count_rows(rows, read_domain(["x", "y"], rows.item_type))
        users = engine.fetch(made.users.select("rows", "squares", user=made.names), "testing").to_pylist()
    limit = counts.ROW_LIMIT
    x, y = 2 * limit // 3, limit // 3
    assert sorted(users, key=lambda one: one["user"]) == [
        {"user": "a", "rows": x + y, "squares": x**2 + y**2},
        {"user": "b", "rows": 3, "squares": 9},
    ]


# --- several item columns

JOINT = pa.table({"u": ["a", "a", "b", "b"], "c": ["DE", "DE", "FR", None], "p": [1, 1, 2, 1]})
CELLS = [("a", 0, 2), ("b", 3, 1)]
PAIRS = [("DE", 1), ("DE", 2), ("FR", 1), ("FR", 2)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "domain",
    [
        PAIRS,
        [list(pair) for pair in PAIRS],
        iter(PAIRS),
        {"c": ["DE", "FR"], "p": [1, 2]},
        {"p": range(1, 3), "c": pd.Series(["DE", "FR"])},
        pd.DataFrame(PAIRS, columns=["c", "p"]),
        pl.DataFrame(PAIRS, schema=["c", "p"], orient="row"),
        pa.table({"p": [1, 2, 1, 2], "c": ["DE", "DE", "FR", "FR"]}),
    ],
    ids=lambda domain: type(domain).__name__,
)
def test_every_way_to_give_a_joint_domain(domain):
    assert counted(JOINT, domain, item=["c", "p"]) == CELLS


def test_joint_domains_from_files(tmp_path):
    (tmp_path / "pairs.csv").write_text("p,c,x\n1,DE,\n2,DE,\n1,FR,\n2,FR,\n")
    (tmp_path / "c.txt").write_text("DE\nFR\n")
    found = counted(JOINT, tmp_path / "pairs.csv", item=["c", "p"])
    assert [(user, n) for user, _, n in found] == [("a", 2), ("b", 1)]
    assert counted(JOINT, {"c": tmp_path / "c.txt", "p": [1, 2]}, item=["c", "p"]) == CELLS


@pytest.mark.parametrize(
    ("domain", "words"),
    [
        (None, "NoneType"),
        ([], "empty"),
        ([("DE", 1), ("DE", 1)], "more than once"),
        ([("DE", 1), ("DE",)], "tuples of 2"),
        (["DE"], "tuples of 2"),
        ([("DE", "x")], "'x'"),
        ([("DE", 2.5)], "2.5"),
        ({"c": ["DE"]}, "needs one for each"),
        ({"c": ["DE"], "p": [1], "q": [1]}, "needs one for each"),
        ({"c": ["DE", "DE"], "p": [1]}, r"domain\['c'\]: holds 'DE' more than once"),
        ({"c": [], "p": [1]}, r"domain\['c'\]: is empty"),
        (JOINT, "no others"),
        (5, "int"),
        ("pairs.txt", "CSV"),
        ({"c": [f"c{k}" for k in range(4000)], "p": range(4000)}, "16000000 combinations"),
    ],
    ids=str,
)
def test_joint_domains_that_cannot_serve(domain, words):
    with pytest.raises(CrowdgramError, match=words):
        counted(JOINT, domain, item=["c", "p"])


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"item": []}, "item="),
        ({"item": ["c", "c"]}, "more than once"),
        ({"item": ["c", ""]}, "item="),
        ({"item": ["c", 3]}, "item="),
        ({"item": {}}, "item="),
        ({"item": ["c", "u"]}, "'u'"),
        ({"item": "c", "count": "c"}, "count"),
        ({"item": "c", "count": "u"}, "count"),
        ({"item": "c", "count": ""}, "count"),
        ({"item": "c", "count": 3}, "count"),
        ({"item": "c", "by": "c"}, "by='c': is item too"),
        ({"item": "c", "by": "u"}, "'u'"),
        ({"item": "c", "by": ["p", "c"]}, "one column"),
        ({"item": "c", "by": 4}, "by="),
        ({"item": ["c", {"lower": "p"}]}, "'lower'"),
        ({"item": ["c", "nothere"]}, "'nothere'"),
        ({"item": "c", "count": "nothere"}, "'nothere'"),
        ({"item": "c", "by": "nothere"}, "'nothere'"),
    ],
    ids=str,
)
def test_columns_that_cannot_serve(asked, words):
    with pytest.raises((InvalidArgument, InvalidTable), match=words):
        open_rows(JOINT, user="u", **asked)


@pytest.mark.parametrize("make", [pd.DataFrame, pa.table, pl.DataFrame], ids=["pandas", "arrow", "polars"])
def test_names_that_differ_by_case_only_are_ambiguous(make, tmp_path):
    source = make({"u": [SECRET], "Page": ["x"], "page": ["y"]})
    with pytest.raises(InvalidTable, match=r"'page': is ambiguous.*'Page'"):
        open_rows(source, user="u", item="page")
    with pytest.raises(InvalidTable, match="Did you mean 'u'"):
        open_rows(source, user="U", item="u")


def test_ambiguous_names_of_files_and_streams(tmp_path):
    table = pa.table({"u": [SECRET], "Page": ["x"], "page": ["y"]})
    (tmp_path / "t.csv").write_text(f"u,Page,page\n{SECRET},x,y\n")
    with pytest.raises(InvalidTable, match="ambiguous") as caught:
        open_rows(tmp_path / "t.csv", user="u", item="page")
    assert "'Page'" not in str(caught.value)  # a header line may be a row
    with pytest.raises(InvalidTable, match="ambiguous"):
        open_rows(table.to_reader(), user="u", item="page")


NOT_NULL = lambda t: t["i"].notnull()  # noqa: E731 (all columns are opened for it)
MADE_UP = [["ID", "id", "id_1"], ["", "x", "v0"], ["u\0x", "u"]]
"""Names of columns of which engines make that of the last, or cut to it, if all are handed over."""


def stored(table, path):
    pa.parquet.write_table(table, path)
    return path


def related(table):
    """A relation whose columns are called so, whatever DuckDB makes of them."""
    parts = (f'{values[0].as_py()} AS "{name}"' for name, values in zip(table.column_names, table.columns, strict=True))
    return duckdb.connect().sql(f"select {', '.join(parts)}")


@pytest.mark.slow
@pytest.mark.parametrize("names", MADE_UP, ids=str)
def test_no_column_is_read_in_the_place_of_another(names, tmp_path):
    table = pa.table([*([place] for place in range(len(names))), [5]], names=[*names, "i"])
    path = stored(table, tmp_path / "t.parquet")
    sources = [lambda: table, table.to_reader, lambda: path, lambda: pa.dataset.dataset(path), table.to_pandas]
    sources += [lambda: related(table)] if names[0] == "ID" else []
    for make in sources:
        for more in ({}, {"where": NOT_NULL}):
            assert counted(make(), [5], user=names[-1], **more) == [(len(names) - 1, 0, 1)]


def test_columns_of_text_files_that_are_alike_are_left_out_for_ibis(tmp_path):
    (tmp_path / "t.csv").write_text(f"ID,id,id_1,i\n{SECRET},x,y,5\n")
    assert counted(tmp_path / "t.csv", ["5"], user="id_1", where=NOT_NULL) == [("y", 0, 1)]
    for more in ({"user": "id"}, {"user": {"u": lambda t: t.id}}):
        with pytest.raises(CrowdgramError, match="differ by case only are left out") as caught:
            counted(tmp_path / "t.csv", ["5"], where=NOT_NULL, **more)
        assert "ID" not in str(caught.value)
    (tmp_path / "t.jsonl").write_text("{}")
    with pytest.raises(InvalidTable, match="'id': is ambiguous"):
        counted(tmp_path / "t.jsonl", ["5"], user="id", item="ID")


@pytest.mark.parametrize("names", MADE_UP, ids=str)
def test_ibis_tables_with_columns_that_are_alike_are_refused(names):
    table = ibis.memtable(pa.table([[1]] * (len(names) + 1), names=[*names, "i"]))
    for made in (table, table.select(names[-1], "i"), table.limit(3).filter(NOT_NULL)):
        with pytest.raises(InvalidTable, match=r"table: the Ibis table.*Rename them"):
            open_rows(made, user=names[-1], item="i")


def test_the_engine_may_not_rename_columns():
    with DuckEngine.embedded() as engine, pytest.raises(PrivacyViolation, match="renamed"):
        engine.register(pa.table({"ID": [1], "id": [2], "id_1": [3]}))


# --- types

A, B = uuid.UUID(int=5), uuid.UUID(int=2**127 + 7)
DAY, MOMENT = datetime.date(2024, 2, 29), datetime.datetime(2024, 2, 29, 23, 59, 59, 123456)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("values", "domain"),
    [
        (pa.array([True, False, True, None]), [True, "false"]),
        (pa.array([DAY, datetime.date(1, 1, 1), DAY, None]), [DAY, "0001-01-01"]),
        (pa.array([MOMENT, datetime.datetime(1970, 1, 1), MOMENT, None]), [MOMENT, "1970-01-01"]),
        (
            pa.array([MOMENT, datetime.datetime(1970, 1, 1), MOMENT, None], pa.timestamp("ns")),
            [pd.Timestamp(MOMENT), DAY],
        ),
        (pa.array([A.bytes, B.bytes, A.bytes, None], pa.uuid()), [A, str(B).upper()]),
        (pa.array(["x", "y", "x", None]).dictionary_encode(), ["x", "y"]),
        (pa.array([7, 8, 7, None]).dictionary_encode(), [7, 8]),
        (pa.array(["é", "e\u0301", "é", None]), ["é", "e\u0301"]),
        (pa.array(["x" * 1_000_000, "x" * 999_999 + "y", "x" * 1_000_000, None]), ["x" * 1_000_000, "y"]),
        (pa.array(["", " ", "", None]), ["", " "]),
        (pa.array([2**64 - 1, 0, 2**64 - 1, None], pa.uint64()), [2**64 - 1, 0]),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else "",
)
def test_items_of_every_type(values, domain):
    source = pa.table({"u": [1, 1, 2, 3], "i": values})
    found = counted(source, domain)
    assert found[0] == (1, 0, 1)
    assert found[-1] == (2, 0, 1)
    assert len(found) == (2 if domain[-1] in (DAY, "y") and len(str(domain[0])) > 9 else 3)


@pytest.mark.parametrize(
    "values",
    [
        pa.array([DAY, datetime.date(1, 1, 1), DAY]),
        pa.array([A.bytes, B.bytes, A.bytes], pa.uuid()),
        pa.array(["a", "b", "a"]).dictionary_encode(),
        pa.array(["é", "e\u0301", "é"]),
        pa.array([-1, 2**62, -1]),
        pa.array([True, False, True]),
    ],
    ids=lambda values: str(values.type),
)
def test_users_of_every_type(values):
    found = counted(pa.table({"u": values, "i": ["x", "x", "x"]}), ["x"])
    assert sorted(n for _, _, n in found) == [1, 2]


@pytest.mark.slow
def test_types_of_pandas_and_parquet(tmp_path):
    frame = pd.DataFrame(
        {
            "u": pd.Categorical(pd.array(["a", "b"], "string[pyarrow]")),
            "day": pd.to_datetime(["2024-01-01", "2024-01-02"]),
            "zoned": pd.to_datetime(["2024-01-01 01:00", "2024-01-02 00:00"]).tz_localize("Europe/Berlin"),
            "ok": pd.array([True, None], dtype="boolean"),
            "id": [A, B],
        }
    )
    assert counted(frame, pd.date_range("2024-01-01", periods=2), item="day") == [("a", 0, 1), ("b", 1, 1)]
    assert counted(frame, ["2024-01-01T00:00"], item="zoned") == [("a", 0, 1)]  # read in UTC
    assert counted(frame, [datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)], item="zoned") == [("a", 0, 1)]
    assert counted(frame, [False, True], item="ok") == [("a", 1, 1)]
    assert counted(frame, [str(A)], item="id") == [("a", 0, 1)]  # Python objects are strings
    table = pa.table({"u": ["a"], "i": pa.array([A.bytes], pa.uuid()), "d": pa.array([DAY])})
    pa.parquet.write_table(table, tmp_path / "t.parquet")
    assert counted(tmp_path / "t.parquet", [A]) == [("a", 0, 1)]
    assert counted(tmp_path / "t.parquet", [DAY], item="d") == [("a", 0, 1)]


@pytest.mark.parametrize(
    ("values", "domain", "words"),
    [
        (pa.array([True]), [1], "booleans"),
        (pa.array([True]), ["yes"], "booleans"),
        (pa.array([DAY]), ["29.2.2024"], "dates"),
        (pa.array([DAY]), ["2024-02-30"], "dates"),
        (pa.array([DAY]), [MOMENT], "dates"),
        (pa.array([DAY]), [20240229], "dates"),
        (pa.array([DAY]), [pd.NaT], "dates"),
        (pa.array([MOMENT]), ["noon"], "timestamps"),
        (pa.array([MOMENT]), [datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)], "timestamps"),
        (pa.array([A.bytes], pa.uuid()), ["5"], "UUIDs"),
        (pa.array([A.bytes], pa.uuid()), [5], "UUIDs"),
        (pa.array(["x"]), [DAY], "strings"),
        (pa.array([DAY]), ["2024-02-29", DAY], "more than once"),
    ],
    ids=str,
)
def test_domain_values_of_another_type(values, domain, words):
    with pytest.raises(InvalidDomain, match=words):
        counted(pa.table({"u": [1], "i": values}), domain)
