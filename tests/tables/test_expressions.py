"""Expressions of one row: what they give, and that nothing that looks beyond a row gets through."""

from __future__ import annotations

import datetime
import functools

import ibis
import pyarrow as pa
import pytest
from ibis import _

from crowdgram.errors import CrowdgramError, InvalidArgument, InvalidTable
from crowdgram.tables import open_rows
from crowdgram.tables.expressions import _RULES

from .frames import open_in_ibis

SECRET = "zebra-4711"
ROWS = {
    "u": ["a", "b", "c", "d"],
    "n": [1, 0, -(2**63), None],
    "x": [0.5, float("nan"), 1e308, None],
    "s": ["12", SECRET, "2024-02-30", None],
    "d": [datetime.date(2024, 1, 31), datetime.date(1, 1, 1), datetime.date(9999, 12, 31), None],
    "t": [datetime.datetime(2024, 1, 31, 23, 59), datetime.datetime(1970, 1, 1), None, None],
    "ok": [True, False, None, True],
    "My Col": [1, 2, 3, 4],
}


def table():
    return pa.table(ROWS)


@functools.cache
def shared():
    """One engine for many expressions."""
    return open_in_ibis(table(), None, "u")


@pytest.fixture(scope="module", autouse=True)
def closed():
    yield
    shared()[0].close()
    shared.cache_clear()  # tests of this file need not follow each other


def kept(where, source=None):
    """The users whose rows a filter keeps."""
    source = shared()[1] if source is None else source
    rows = open_rows(source, user="u", item="s", where=where)
    found = sorted(rows.engine.fetch(rows.table, "testing")["user"].to_pylist())
    if rows.engine.backend is not shared()[0].backend:
        rows.engine.close()
    return found


@pytest.mark.parametrize(
    ("where", "users"),
    [
        ("ok", "ad"),
        ("not ok", "b"),
        ("ok is not true", "bc"),
        ("ok or n = 0", "abd"),
        ("s is null", "d"),
        ("s is distinct from '12'", "bcd"),
        ("n in (0, 1)", "ab"),
        ("n not in (0, 1)", "c"),
        ("n between 0 and 5", "ab"),
        ("n = '1'", "a"),
        ("n > '-1'", "ab"),
        ("d >= '2024-01-31'", "ac"),
        ("t < '2024-01-31 23:59:30' and t > date '2000-01-01'", "a"),
        ("d = date_trunc('day', t)", "a"),
        ("t = '2024-02-01 01:59+02:00'", "a"),
        ('"My Col" > 2', "cd"),
        ("greatest(n, 0) = 0", "bcd"),
        ("if(ok, 'y', 'n') = 'y'", "ad"),
        ("concat(s, '!') = '!'", "d"),
        ("s || '!' is null", "d"),
        ("s ilike 'ZEBRA%'", "b"),
        ("round(x) = 1 or floor(x) is null", "abcd"),
        ("true", "abcd"),
        ("null", ""),
        ("ok -- a comment", "ad"),
    ],
)
def test_filters(where, users):
    assert kept(where) == list(users)


@pytest.mark.slow
@pytest.mark.parametrize(
    "where",
    [
        "n + 1 > 0",
        "n - 1 < 0",
        "-n > 0",
        "abs(n) > 0",
        "n * n > 0",
        "n * 9223372036854775807 > 0",
        "1 / n > 0",
        "1 % n > 0",
        "1 // n > 0",
        "x * x > 0",
        "x / 0 > 0",
        "floor(x * 1e300) > 0",
        "cast(s as bigint) > 0",
        "cast(s as double) > 0",
        "cast(s as date) > '2000-01-01'",
        "cast(s as timestamp) > '2000-01-01'",
        "cast(s as boolean)",
        "date_trunc('year', d) > '2000-01-01'",
        "cast(d as timestamp) > '2000-01-01'",
        "split_part(s, '-', 9) = ''",
        "substring(s, 100, 5) = ''",
    ],
)
def test_no_row_makes_an_expression_fail(where):
    """Whether a release comes out must not depend on the rows: what cannot be computed is null."""
    kept(where)


@pytest.mark.parametrize(
    "where",
    [
        "count(*) > 1",
        "n > avg(n)",
        "max(n) = n",
        "row_number() over () < 3",
        "lag(n) over (order by d) = n",
        "sum(n) over (partition by s) > 3",
        "n in (select n from other)",
        "exists (select 1)",
        "n = (select max(n) from other)",
        "n > any(select 1)",
        "n = all(select 1)",
        "random() < 0.5",
        "uuid() is null",
        "nextval('x') > 0",
        "current_setting('x') = ''",
        "getvariable('x') = 1",
        "read_text('/etc/passwd') = s",
        "error(s)",
        "regexp_matches(s, '(')",
        "list_sum([n]) > 1",
        "s[1] = 'a'",
        "unnest([1, 2]) = n",
        "select 1",
        "select n from t",
        "drop table t",
        "copy t to 'x'",
        "pragma version",
        "n as m",
        "*",
        "t.n = 1",
        "columns(*) = 1",
        "n; n",
        "n =",
        "n = 1)",
        "",
        "   ",
        "-- nothing",
        "'",
        "n between 1",
        "n between symmetric 5 and 1",
        "round(x, 2) = 1",
        "n > 1 limit 3",
        "case when",
        "trim(both 'x' from s) = s",
        "s like s",
        "strftime(d, '%c') = ''",
        "strftime(d, s) = ''",
        "date_trunc('century', d) = d",
        "substring(s, n) = s",
        "substring(s, 0) = s",
        "cast(s as integer[]) is null",
        "$1 = n",
        "n = ?",
    ],
)
def test_what_is_refused(where):
    with pytest.raises(CrowdgramError, match="where") as caught:
        kept(where)
    assert isinstance(caught.value, (InvalidArgument, InvalidTable))


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("n", "true or false"),
        ("s > 3", "Cast"),
        ("ok and n", "Cast"),
        ("n + s > 1", "s is string"),
        ("year(s) = 2024", "s is string"),
        ("d > 'yesterday'", "'yesterday'"),
        ("n > 'many'", "'many'"),
        ("t = '0001-01-01T00:00:00+23:59'", "+23:59"),
        ("t = '9999-12-31T23:59:59-23:59'", "-23:59"),
        ("n > ''", "''"),
        ("cast(x as bigint) = 1", "Cast"),
        ("lower(n) = 'a'", "n is int64"),
        ("case when ok then 1 else 'x' end = 1", "Cast"),
    ],
)
def test_types_that_do_not_fit_are_said_before_a_row_is_read(where, words):
    with pytest.raises(InvalidArgument, match="where") as caught:
        kept(where)
    assert words in str(caught.value)


def test_a_column_that_is_not_there():
    with pytest.raises(InvalidTable, match="'nothere'"):
        kept("nothere = 1")
    with pytest.raises(InvalidTable, match="Did you mean 'n'"):
        kept("N = 1")


def test_only_rules_translate():
    """The whitelist is the table of rules: no rule is for a node that looks beyond a row."""
    from sqlglot import exp

    across = (exp.AggFunc, exp.Window, exp.Query, exp.Anonymous, exp.Command, exp.UDTF)
    assert not [node for node in _RULES if issubclass(node, across)]
    assert len(_RULES) > 40


@pytest.mark.slow
def test_a_long_filter():
    assert kept(" or ".join(f"n = {k}" for k in range(2, 800)) + " or n = 1") == ["a"]
    with pytest.raises(InvalidArgument):
        kept("(" * 3000 + "ok" + ")" * 3000)


# --- Ibis expressions


@pytest.mark.parametrize(
    "where",
    [_.n > 0, lambda t: t.n > 0, lambda t: t["n"] == 1, lambda t: t.s.cast("int64") == 12, _.s.cast("int64") > 0],
    ids=range(5),
)
def test_ibis_filters(where):
    assert kept(where) == ["a"]


def test_an_expression_of_the_ibis_table_itself():
    source = ibis.memtable(table())
    assert kept(source.n > 0, source) == ["a"]


@ibis.udf.scalar.python
def own(x: int) -> int:
    return x


OTHER = ibis.memtable({"n": [1]})


@pytest.mark.parametrize(
    "where",
    [
        lambda t: t.n > t.n.mean(),
        lambda t: t.n.max() == 1,
        lambda t: t.count() > 1,
        lambda t: ibis.row_number() < 3,
        lambda t: t.n.lag() == 1,
        lambda t: t.n.sum().over(group_by="s") > 1,
        lambda t: t.n.isin(OTHER.n),
        lambda t: t.n.isin(t.filter(t.ok).n),
        lambda t: t.n == OTHER.n.as_scalar(),
        lambda t: OTHER.n == 1,
        lambda t: t.filter(t.ok).n == 1,
        lambda t: ibis.random() < 0.5,
        lambda t: own(t.n) == 1,
        lambda t: ibis.array([t.n]).unnest() == 1,
        lambda t: t.mutate(m=t.n.max()).m == 1,
        lambda t: t.rowid() < 3,
        lambda t: t.n,
        lambda t: t,
        lambda t: True,
        lambda t: t.nothere > 1,
        lambda t: 1 / 0 if False else t.s + t.n,
        5,
        b"ok",
        _.nothere == 1,
    ],
    ids=range(24),
)
def test_ibis_expressions_that_are_refused(where):
    with pytest.raises(InvalidArgument, match="where") as caught:
        kept(where)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    "where",
    [
        _.n == _.n.max().execute(),
        lambda t: t.n == t.n.max().execute(),
        lambda t: ibis.literal(bool(t.count().execute() > 3)),
        lambda t: t.n < t.n.count().to_pyarrow().as_py(),
        lambda t: 1 / 0 if t.n.max().execute() > 0 else t.n > 0,
        lambda t: t[f"v{t.s.max().execute()}"] == 1,
        _[_.s.max().execute()] == 1,
        lambda t: t.n > len(t.to_pandas()),
    ],
    ids=range(8),
)
def test_a_function_of_the_caller_gets_no_rows(where):
    """What it computes of rows would come back as a constant, or in the name of an error."""
    with pytest.raises(InvalidArgument, match="where") as caught:
        kept(where)
    assert SECRET not in str(caught.value)
    assert "2024-02-30" not in str(caught.value)
    assert "runs a query" in str(caught.value)


def test_json_needs_text(tmp_path):
    (tmp_path / "t.jsonl").write_text('{"u": "a", "s": "x", "n": "3"}\n{"u": "b", "s": "x", "n": "4"}\n')
    assert kept("cast(n as bigint) > 3", tmp_path / "t.jsonl") == ["b"]
    with pytest.raises(InvalidArgument, match="SQL text"):
        kept(_.n == "3", tmp_path / "t.jsonl")


def test_a_header_line_is_not_quoted(tmp_path):
    (tmp_path / "t.csv").write_text(f"u,s,{SECRET}\na,x,1\n")
    for where in (
        _.nothere == 1,
        lambda t: t["nothere"] == 1,
        lambda t: t.nothere == 1,
        "nothere = 1",
        f'"{SECRET[:-1]}" = 1',
    ):
        with pytest.raises(CrowdgramError) as caught:
            kept(where, tmp_path / "t.csv")
        assert SECRET not in str(caught.value)


# --- computed items


def items(item, **more):
    rows = open_rows(shared()[1], user="u", item=item, **more)
    found = rows.engine.fetch(rows.table, "testing")
    return rows, dict(zip(found["user"].to_pylist(), found["item"].to_pylist(), strict=True))


def test_time_buckets():
    rows, found = items({"month": "date_trunc('month', d)"})
    assert rows.names == ("month",)
    assert rows.item_type.is_date()
    assert found["a"] == datetime.date(2024, 1, 1)
    assert items({"hour": "date_trunc('hour', t)"})[1]["a"] == datetime.datetime(2024, 1, 31, 23)
    assert items({"month": "strftime(d, '%Y-%m')"})[1]["a"] == "2024-01"
    assert items({"day": _.d.day()})[1]["a"] == 31
    assert items({"weekday": "isodow(d)"}, where="n = 1")[1] == {"a": 3}


@pytest.mark.parametrize("item", [{"x": "x / 2"}, {"x": "null"}, {"x": "[n]"}, {"x": _.x}])
def test_computed_items_need_a_type_that_can_serve(item):
    with pytest.raises(CrowdgramError, match="item"):
        items(item)
