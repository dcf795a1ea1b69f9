"""The second line behind the rules: an engine's plan that shows more than projections and filters is refused."""

from __future__ import annotations

import duckdb
import ibis
import pyarrow as pa
import pytest
from sqlglot import exp

from crowdgram import Database
from crowdgram.errors import PrivacyViolation
from crowdgram.tables import open_rows, sql_text
from crowdgram.tables.engines import DuckEngine
from crowdgram.tables.expressions import evaluate
from crowdgram.tables.roles import Role
from crowdgram.tables.row_wise import check_row_wise

from .frames import open_in_ibis

ROWS = {"u": ["a", "b"], "s": ["x", "y"], "n": [1, 2]}

BEYOND = {
    "a filter by an aggregate": (lambda t: t.filter(t.n == t.n.max()), "AGGREGATE, CROSS_PRODUCT", "Subquery"),
    "an item that is an aggregate": (lambda t: t.select("u", item=t.n.max()), "WINDOW", "Window"),
    "an aggregate": (lambda t: t.aggregate(n=t.n.max()), "AGGREGATE", "Aggregate"),
    "groups": (lambda t: t.group_by("u").aggregate(n=t.n.max()), "AGGREGATE", "Aggregate"),
    "rows of a query": (lambda t: t.filter(t.n.isin(t.filter(t.s == "x").n)), "COMPARISON_JOIN", "Subquery"),
    "a window": (lambda t: t.mutate(n=ibis.row_number()), "WINDOW", "Window"),
    "distinct": (lambda t: t.distinct(), "DISTINCT", "Aggregate|Distinct|Deduplicate"),
    "a sort": (lambda t: t.order_by("n"), "ORDER_BY", "Sort"),
    "a limit": (lambda t: t.limit(1), "LIMIT", "Limit"),
    "a sample": (lambda t: t.sample(0.5), "SAMPLE", "Sample"),
    "a union": (lambda t: t.union(t), "UNION", "Union"),
    "a join": (lambda t: t.join(t.view(), "n"), "COMPARISON_JOIN", "Join"),
    "rows of a list": (lambda t: t.select(n=ibis.array([1, 2]).unnest()), "UNNEST", "Generate"),
}
"""What no rule may build, and what it is called in the plans of DuckDB and of Spark."""


@pytest.fixture(params=["duckdb", pytest.param("spark", marks=pytest.mark.spark)])
def source(request):
    table = pa.table(ROWS)
    return table if request.param == "duckdb" else request.getfixturevalue("spark").createDataFrame(table)


@pytest.fixture
def opened(source):
    engine, table = open_in_ibis(source, None, "u")
    with engine:
        yield engine, table


def test_what_looks_beyond_a_row_is_seen(opened):
    engine, table = opened
    for what, (build, *names) in BEYOND.items():
        name = names[engine.name != "duckdb"]
        with pytest.raises(PrivacyViolation, match=f"plan of the query, the filter or the items holds .*({name})"):
            check_row_wise(engine, build(table), table, what)
    beside = engine.as_ibis(engine.upload(pa.table({"n": [1]}), "testing"))
    with pytest.raises(PrivacyViolation, match="holds"):
        check_row_wise(engine, beside, table, "another table")


@pytest.fixture
def lax(monkeypatch):
    """Rules with a hole: aggregates pass. DuckDB's TRY, which refuses them by itself, is left out."""
    monkeypatch.setattr(DuckEngine, "tried", lambda self, value: value)
    monkeypatch.setitem(sql_text._RULES, exp.Max, lambda self, tree: self.column(tree.this).max())


HOLES = [
    {"where": "n = max(n)"},
    {"item": {"top": "max(n) + 1"}},
    {"by": {"top": "max(n)"}},
    {"user": {"top": "max(n)"}},
]


@pytest.mark.parametrize("hole", HOLES)
def test_a_rule_with_a_hole_is_caught(source, lax, hole):
    with pytest.raises(PrivacyViolation, match="please report it"):
        open_rows(source, **{"user": "u", "item": "s", **hole})


QUERIES = ["select u, s from t where n = max(n)", "select u, max(s) as s from t"]


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_through_a_hole_is_caught(tmp_path, lax, query):
    given = pa.table(ROWS)  # noqa: F841 (DuckDB finds it by its name)
    with duckdb.connect(tmp_path / "t.duckdb") as connection:
        connection.execute("create table t as select * from given")
    with pytest.raises(PrivacyViolation, match="please report it"):
        open_rows(Database(str(tmp_path / "t.duckdb"), query=query), user="u", item="s")


@pytest.mark.spark
@pytest.mark.parametrize("query", QUERIES)
def test_a_query_through_a_hole_is_caught_on_spark(spark, lax, query):
    spark.createDataFrame(pa.table(ROWS)).createOrReplaceTempView("t")
    try:
        with pytest.raises(PrivacyViolation, match="please report it"):
            open_rows(Database("spark:", query=query), user="u", item="s")
    finally:
        spark.catalog.dropTempView("t")


def test_constants_reach_the_engine_as_they_are(opened):
    """Nothing in a constant ends it: what came after it would be SQL that no rule has seen."""
    engine, table = opened
    parts = [
        "'",
        '"',
        "`",
        "\\",
        "\\047",
        "\\u0027",
        "${x}",
        "{x}",
        "--",
        "/*",
        "*/",
        ";",
        "\n",
        "%s",
        ":x",
        "?",
        "\u2028",
    ]
    pairs = "".join(one + other for one in parts for other in parts)
    words = [pairs + end for end in ("'", "\\", "${x}", "--", "/*")]
    quoted = lambda word: "'" + word.replace("'", "''") + "'"  # noqa: E731
    made = {f"c{n}": evaluate(quoted(word), engine, table, Role("item")) for n, word in enumerate(words)}
    found = engine.fetch(table.filter(table.n == 1).select(**made), "testing").to_pylist()
    assert list(found[0].values()) == words


def test_what_the_opened_table_computes_is_its_makers(opened):
    """An aggregate for each user is lawful in a view or an Ibis table, and not looked at."""
    table = opened[1]
    tops = table.group_by("u").aggregate(s=table.s.max())
    rows = open_rows(tops, user="u", item="s", where="s <> 'AGGREGATE' and u in ('a', 'b')")
    with rows.engine as engine:
        assert engine.fetch(rows.table, "testing")["item"].to_pylist()


def test_plans_are_made_without_columns_types_and_settings_in_the_way():
    """Columns of types that nothing is computed with; and a connection of the caller keeps its settings."""
    connection = ibis.duckdb.connect()
    connection.con.execute("set explain_output = 'optimized_only'")
    odd = {
        "l": "[1]",
        "st": "{'x': 1}",
        "m": "map {1: 2}",
        "b": "'1'::bit",
        "ti": "time '12:00'",
        "iv": "interval 1 day",
    }
    odd |= {"bl": "'x'::blob", "h": "1::hugeint", "d": "1.5::decimal(4, 2)", "e": "'e'::enum('e')", "id": "uuid()"}
    made = ", ".join(f"{value} as {name}" for name, value in odd.items())
    connection.con.execute(f"create table t as select 'a' as u, {made}")
    where = " and ".join(f"{name} is not null" for name in odd)
    rows = open_rows(connection.table("t"), user="u", item="e", where=where)
    with rows.engine:
        assert rows.engine.fetch(rows.table, "testing").to_pylist() == [{"user": "a", "item": "e"}]
    assert connection.con.execute("select current_setting('explain_output')").fetchone() == ("optimized_only",)


def test_a_join_of_the_caller_is_theirs():
    """Ibis would merge what is built over a join into it; what the caller joined is not part of the plan."""
    backend = ibis.duckdb.connect()
    backend.raw_sql("create table visits as select 'u' as who, 'a' as what")
    joined = backend.table("visits").semi_join(ibis.memtable({"what": ["a"]}), "what")
    with open_rows(joined, user="who", item={"up": "upper(what)"}, where="who = 'u'").engine:
        pass
