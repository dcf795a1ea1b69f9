"""Queries: expressions of one row over one table, the same in every database; whatever else is refused."""

from __future__ import annotations

import sqlite3

import duckdb
import ibis
import pytest
import sqlglot

from crowdgram import Database
from crowdgram.errors import CrowdgramError, InvalidArgument, InvalidTable, UnreadableSource
from crowdgram.tables import open_rows
from crowdgram.tables.queries import read_query
from crowdgram.tables.roles import WHERE
from crowdgram.tables.sql_text import parse

from . import postgres
from .frames import frame_of

ROWS = [("a", "x", 1), ("a", "y", 2), ("b", "X", 3), (None, "x", 4), ("c", None, None)]
MADE = "create table visits (who text, what text, n integer)"


def fill(execute):
    execute(MADE)
    for who, what, n in ROWS:
        values = ", ".join("null" if value is None else repr(value) for value in (who, what, n))
        execute(f"insert into visits values ({values})")
    execute("create view heavy as select who, max(what) as what from visits group by who")


@pytest.fixture(scope="session")
def server(postgres_server):
    import psycopg

    address = postgres.database(postgres_server, "queries")
    with psycopg.connect(address) as connection:
        fill(connection.execute)
        connection.execute("create sequence numbers")
        # As an extension would bring it: there may be none to install.
        connection.execute("create view sizes as select relname::text as who, reltuples as what from pg_class")
        connection.execute(
            "insert into pg_depend select 'pg_class'::regclass, 'sizes'::regclass, 0, 'pg_extension'::regclass, "
            "oid, 0, 'e' from pg_extension"
        )
    return address


@pytest.fixture
def catalogue(spark):
    frame_of(spark, ROWS, "who string, what string, n bigint").createOrReplaceTempView("visits")
    yield "spark:"
    spark.catalog.dropTempView("visits")


@pytest.fixture(
    params=[
        "duckdb",
        "sqlite",
        "postgres",
        pytest.param("spark", marks=pytest.mark.spark),
    ]
)
def address(request, tmp_path):
    if request.param == "spark":
        return request.getfixturevalue("catalogue")
    if request.param == "postgres":
        return request.getfixturevalue("server")
    if request.param == "duckdb":
        with duckdb.connect(tmp_path / "v.duckdb") as duck:
            fill(duck.execute)
        return f"duckdb:///{tmp_path / 'v.duckdb'}"
    lite = sqlite3.connect(tmp_path / "v.db")
    fill(lite.execute)
    lite.commit()
    lite.close()
    return f"sqlite:///{tmp_path / 'v.db'}"


def found(address, query, **more):
    rows = open_rows(Database(address, query=query), **{"user": "who", "item": "what", **more})
    with rows.engine:
        table = rows.engine.fetch(rows.table, "testing")
    made = zip(table["user"].to_pylist(), table["item"].to_pylist(), strict=True)
    return sorted(made, key=lambda pair: (pair[0] or "", str(pair[1])))


ASKED = {
    "select who, what from visits": [(None, "x"), ("a", "x"), ("a", "y"), ("b", "X"), ("c", None)],
    "select * from visits where n > 1;": [(None, "x"), ("a", "y"), ("b", "X")],
    "select visits.* from visits where visits.n = 1": [("a", "x")],
    "select v.who, lower(v.what) as what from visits as v where v.who is not null -- all": [
        ("a", "x"), ("a", "y"), ("b", "x"), ("c", None),
    ],
    "SELECT what AS who, n * 2 AS what FROM visits WHERE n / 2 < 1": [("x", 2)],
    'select "who", case when n + 9223372036854775805 is null then \'big\' else \'fits\' end as what from "visits"': [
        (None, "big"), ("a", "fits"), ("a", "fits"), ("b", "big"), ("c", "big"),
    ],
    "from visits where who = 'b'": [("b", "X")],
    "select *, n as m from visits where n in (3)": [("b", "X")],
}  # fmt: skip


@pytest.mark.slow
def test_the_same_rows_of_every_database(address):
    for query, rows in ASKED.items():
        assert found(address, query) == rows, query
    assert found(address, "select who, n as m from visits where n = 1", item="m") == [("a", 1)]
    assert found(address, "select who, what, n + 1 as m from visits where n = 1", count="m") == [("a", "x")]


def test_a_query_gives_no_two_columns_names_that_are_alike(address):
    alike = "names that differ by case only, 'who' and 'WHO'"
    for query, two in (
        ("select *, n as who from visits", "the name 'who'"),
        ('select *, n as "WHO" from visits', alike),
        ('select *, n as "WHO" from visits where n = 1', alike),
        ('select what, who, n as "WHO" from visits', alike),
    ):
        for user in ("who", "WHO"):
            with pytest.raises(InvalidArgument, match=f"query=.*gives two columns {two}"):
                found(address, query, user=user)


def test_a_column_that_is_called_as_a_filter_might_be(address):
    query = 'select who, what, n > 1 as "Kept", n as kept_0 from visits where n = 1'
    assert found(address, query) == [("a", "x")]


ACROSS = [
    "select who, main.max(what) as what from visits",
    "select who, system.main.max(what) as what from visits",
    "select who, pg_catalog.max(what) as what from visits",
    "select who, pg_catalog.string_agg(what, ',') as what from visits",
    "select who, system.builtin.max(what) as what from visits",
    "select v.who, s.x as what from visits v, (select main.max(what) as x from visits) s",
    "select v.who, s.x as what from visits v, (select pg_catalog.max(what) as x from visits) s",
    "select v.who, s.x as what from visits v, (select system.builtin.max(what) as x from visits) s",
    "select who, what.max() as what from visits",
    "select who, what from query('select who, max(what) over () as what from visits')",
    "select who, what from query_table('visits')",
    "select min as who, max as what from (summarize visits)",
    "summarize visits",
    "describe visits",
    "select who, what from visits where rowid < 3",
    "select a.who, b.what from visits a positional join visits b",
    "select a.who, b.what from visits a asof join visits b on a.n >= b.n",
    "select 1 as who, max(what) as what from visits group by all",
    "select who, what from visits group by who, what",
    "select who, what, sum(n) as n from visits group by who, what",
    "select who, max(what) as what from visits group by 1",
    "select who, max(what) as what from visits",
    "select who, what, max(n) as unused from visits",
    "select who, my_aggregate(what) as what from visits",
    "select who, mine(n) filter (where n > 1) as what from visits",
    "select who, what from visits having count(*) > 1",
    "select distinct who, what from visits",
    "select distinct on (what) who, what from visits",
    "select who, what from visits limit 10",
    "select who, what from visits offset 1",
    "select who, what from visits fetch first 3 rows only",
    "select who, what from visits tablesample bernoulli (10)",
    "select who, what from visits using sample 3",
    "select who, what from visits order by random()",
    "select who, what from visits order by n",
    "select who, row_number() over (partition by who) as what from visits",
    "select who, what from visits qualify row_number() over () = 1",
    "select who, max(what) over w as what from visits window w as ()",
    "select who, what from visits where what in (select what from visits)",
    "select who, what from visits where exists (select 1 from visits where n > 3)",
    "select who, what from visits where n > (select 1)",
    "select who, (select max(what) from visits) as what from visits",
    "select who, array(select what from visits) as what from visits",
    "select v.who, l.what from visits v, lateral (select max(what) as what from visits) l",
    "select v.who, l.what from visits v cross join lateral (select what from visits where n > v.n) l",
    "select who, what from visits join catalogue using (what)",
    "select who, what from visits natural join catalogue",
    "select a.who, b.what from visits a, visits b",
    "select who, what from visits semi join visits b using (what)",
    "select who, what from visits union all select who, what from visits",
    "select who, what from visits union select who, what from visits",
    "select who, what from visits except select who, what from visits where n = 1",
    "select who, what from visits intersect select who, what from visits",
    "with w as (select who, what from visits) select who, what from w",
    "with recursive w as (select who, what from visits union all select who, what from w) select who, what from w",
    "select who, what from (select who, what from visits) s",
    "(select who, what from visits)",
    "select who, what from (visits)",
    "values ('a', 'x')",
    "pivot visits on what using count(*)",
    "select who, what from visits pivot (max(n) for what in ('x'))",
    "select who, what from visits unpivot (n for x in (n))",
    "select who, unnest(['x', 'y']) as what from visits",
    "select who, columns(*) as what from visits",
    "select * exclude (n) from visits",
    "select * replace ('x' as what) from visits",
    "select * like 'w%' from visits",
    "select other.* from visits",
    "select who, other.what from visits",
    "select who, what.field as what from visits",
    "select lower(who) as who, what from visits",
    "select 'a' as who, what from visits",
    "select case when n > 1 then 'a' else who end as who, what from visits",
    "select who, what from visits v(a, b, c)",
    "select who, what from visits for update",
    "select who, what from visits at (version => 1)",
    "select who, what from only visits",
    "select who, what into other from visits",
    "select who, what from 'visits.csv'",
    "select who, what from read_csv('/etc/passwd')",
    "select who, what from ?",
    "select who, what",
    "select who, upper(what) from visits",
    "select who, what, n as what from visits",
    "select *, lower(what) as what from visits",
    "select who, what from visits where n",
    "select who, what from visits where random() < 0.5",
    "select who, getenv('HOME') as what from visits",
    "select who, error(what) as what from visits",
    "select who, what from visits; select 1",
    "with gone as (delete from visits returning *) select who, what from gone",
    "delete from visits",
    "insert into visits values (1)",
    "drop table visits",
    "copy visits to 'x'",
    "create table x as select 1",
    "vacuum",
    "selec who",
    "",
]  # fmt: skip


@pytest.mark.slow
def test_whatever_else_is_refused(address):
    for query in ACROSS:
        with pytest.raises(CrowdgramError) as caught:
            pytest.fail(f"{query}: {found(address, query)}")
        assert isinstance(caught.value, (InvalidArgument, InvalidTable, UnreadableSource)), query
        assert "visits" not in query or "query=" in str(caught.value) or "Check the name" in str(caught.value), query


def test_a_refusal_says_what_to_do():
    for query in ("select who, what from visits group by all", "select who, what from a join b using (who)"):
        with pytest.raises(InvalidArgument, match=r"query=.*GROUP BY|a join") as caught:
            read_query(query, "who")
        assert "make a view" in str(caught.value)
        assert "does not check what a view computes" in str(caught.value)


def test_a_view_is_read_as_it_is(address):
    """What a view does is for its maker to answer: an aggregate in one is not looked for."""
    if address == "spark:":
        return
    assert found(address, "select who, what from heavy where who = 'a'") == [("a", "y")]


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("duckdb", ["duckdb_tables", "duckdb_settings", "pg_catalog.pg_class", "information_schema.tables", "address"]),
        (
            "sqlite",
            ["sqlite_master", "sqlite_schema", "pragma_table_list", "json_each", "temp.visits", "a.main.visits"],
        ),
        ("postgres", ["pg_stats", "pg_catalog.pg_class", "pg_stat_user_tables", "information_schema.tables"]),
        ("postgres", ["numbers", "public.numbers", "sizes"]),
    ],
)
@pytest.mark.parametrize("form", ["table", "query"])
def test_the_databases_own_tables_are_none(kind, names, form, tmp_path, request):
    """They tell of rows, such as how many there are, and none of theirs belongs to a user."""
    if kind == "postgres":
        address = request.getfixturevalue("server")
    else:
        address = f"{kind}:///{tmp_path / 'v.db'}"
        execute = duckdb.connect(tmp_path / "v.db") if kind == "duckdb" else sqlite3.connect(tmp_path / "v.db")
        with execute:
            fill(execute.execute)
        execute.close()
    for name in names:
        given = {"table": name} if form == "table" else {"query": f"select * from {name}"}
        with pytest.raises(UnreadableSource, match="has no table"):
            open_rows(Database(address, **given), user="who", item="what")


@pytest.mark.parametrize("form", ["table", "query"])
@pytest.mark.parametrize("name", ["sqlite_stat1", "SQLITE_STAT1", "sqlite_sequence", "ft", "ft_data", "voc"])
def test_tables_that_sqlite_keeps_are_none(name, form, tmp_path):
    """Statistics, sequences, virtual tables and what these keep their contents in: made of all users' rows."""
    made = sqlite3.connect(tmp_path / "v.db")
    with made:
        fill(made.execute)
        made.execute("create table numbered (id integer primary key autoincrement, who text)")
        made.execute("insert into numbered (who) values ('a')")
        made.execute("create index quick on numbered (who)")
        made.execute("create table ftp (who text, what text)")  # begins like a virtual one, and is a table
        made.execute("create virtual table ft using fts5(who, what)")
        made.execute("create virtual table voc using fts5vocab(ft, row)")
        made.execute("analyze")
    made.close()
    address = f"sqlite:///{tmp_path / 'v.db'}"
    given = {"table": name} if form == "table" else {"query": f"select * from {name}"}
    with pytest.raises(UnreadableSource, match="has no table"):
        open_rows(Database(address, **given), user="who", item="what")
    open_rows(Database(address, table="ftp"), user="who", item="what").engine.close()


def test_macros_of_the_file_replace_no_function(tmp_path):
    with duckdb.connect(tmp_path / "v.duckdb") as duck:
        fill(duck.execute)
        duck.execute("create macro lower(x) as x || 'mine'")
        duck.execute("create macro split_part(a, b, c) as (select max(who) from visits)")
        duck.execute("create macro length(x) as error('no')")
    query = "select who, lower(split_part(what, 'z', 1)) as what from visits where length(what) = 1 and n = 3"
    assert found(str(tmp_path / "v.duckdb"), query) == [("b", "x")]


def test_names_that_are_odd_and_columns_that_are_not_there(tmp_path):
    with duckdb.connect(tmp_path / "v.duckdb") as duck:
        duck.execute('create schema "my.own"')
        duck.execute('create table "my.own"."Odd.Name" as select 1 as "Who\'s", \'x\' as what, 1 as kept')
    address = str(tmp_path / "v.duckdb")
    query = 'select "Who\'s", kept, what from "my.own"."Odd.Name" where kept = 1'
    assert found(address, query, user="Who's") == [(1, "x")]
    with pytest.raises(InvalidArgument, match=r"query=.*'nothere'"):
        found(address, 'select "Who\'s", nothere as what from "my.own"."Odd.Name"', user="Who's")
    with pytest.raises(InvalidTable, match="user='who'"):
        found(address, 'select "Who\'s", what from "my.own"."Odd.Name"')
    with pytest.raises(UnreadableSource, match="no table 'nothere'"):
        found(address, "select who, what from nothere")


HALF = "\ud800"  # of a character


@pytest.mark.parametrize(
    ("role", "given"),
    [
        ("query", {"query": f"select who, what from visits where what = '{HALF}'"}),
        ("query", {"query": f'select who, what from visits -- "{HALF}"'}),
        ("where", {"where": f"what = '{HALF}'"}),
        (r"item\['x'\]", {"item": {"x": f"what || '{HALF}'"}}),
        ("where", {"where": lambda t: t.what == HALF}),
        ("where", {"where": ibis._.what.like(f"{HALF}%")}),
        ("item", {"item": {HALF: "what"}}),
        ("user", {"user": HALF}),
    ],
)
def test_half_a_character_is_refused_by_its_argument(role, given, tmp_path):
    with duckdb.connect(tmp_path / "v.duckdb") as duck:
        fill(duck.execute)
    with pytest.raises(InvalidArgument, match=rf"^{role}: holds .*\\ud800.*needs valid Unicode text"):
        found(str(tmp_path / "v.duckdb"), **{"query": "from visits", **given})


def test_text_that_does_not_parse_is_not_logged(caplog):
    for text in ("grant a b", "call foo(1)", "alter table visits foo bar"):
        with pytest.raises(InvalidArgument):
            read_query(text, "who")
        with pytest.raises(InvalidArgument):
            parse(text, WHERE)
    assert not caplog.records
    sqlglot.parse("grant a b")  # as the caller's own parsing is
    assert len(caplog.records) == 1


@pytest.mark.spark
@pytest.mark.parametrize("form", ["table", "query"])
def test_a_path_is_no_table_of_spark(form, spark, tmp_path):
    """One row for each file, with its length, which all users' rows decide over."""
    (tmp_path / "t").write_text("who,what\na,x\n")
    for kind in ("binaryFile", "text", "csv"):
        given = {"table": f"{kind}.{tmp_path}/t"} if form == "table" else {"query": f'from "{kind}"."{tmp_path}/t"'}
        with pytest.raises(UnreadableSource, match="is not in Spark"):
            open_rows(Database("spark:", **given), user="path", item="length")


@pytest.mark.spark
def test_settings_are_not_put_into_the_text_for_spark(catalogue, spark):
    """A setting that holds a quote would end the constant, and what follows would be read as SQL."""
    before = spark.conf.get("spark.sql.variable.substitute")  # an engine of a fixture may be open, and hold it
    spark.conf.set("spark.crowdgram.quote", "'")
    inside = "${spark.crowdgram.quote} || (select max(what) from visits) || ${spark.crowdgram.quote}"
    for text in (inside, "${env:HOME}", "${spark.app.name}"):
        assert found(catalogue, f"select who, '{text}' as what from visits where n = 1") == [("a", text)]
    spark.conf.unset("spark.crowdgram.quote")
    assert spark.conf.get("spark.sql.variable.substitute") == before
