"""Users that are computed: a user is a value of an expression of one row."""

from __future__ import annotations

import datetime
import json
import sqlite3
from contextlib import closing

import ibis
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import crowdgram
from crowdgram import Bins, Database
from crowdgram.errors import CrowdgramError, InvalidArgument, InvalidTable
from crowdgram.tables import count_rows, open_rows, read_domain

from ..thorough import examples
from .cells import fetch_cells

NAMES = [" Ann", "ann ", "ANN", "bob", None, "Bob", "", "Ünal", "ünal"]
TABLE = pa.table({"who": NAMES, "what": list("aabbabbab"), "n": list(range(1, 10)), "x": [k / 2 for k in range(9)]})
OWN = {"customer": "lower(trim(who))"}


def cells(source, user, domain=("a", "b"), **more):
    """(user, item) -> rows, of items by their places in the domain."""
    rows = open_rows(source, user=user, item="what", **more)
    with rows.engine:
        found = fetch_cells(count_rows(rows, read_domain(domain, rows.item_type))).to_pydict()
    return dict(zip(zip(found["user"], found["idx"], strict=True), found["n"], strict=True))


FOUND = {("ann", 0): 2, ("ann", 1): 1, ("bob", 1): 2, ("", 1): 1, ("ünal", 0): 1, ("ünal", 1): 1}


@pytest.mark.parametrize(
    "user",
    [OWN, {"who": "lower(trim(who))"}, {"what": ibis._.who.strip().lower()}, {"c": lambda t: t.who.strip().lower()}],
)
def test_rows_with_one_value_are_one_users(user):
    assert cells(TABLE, user) == FOUND


def test_rows_whose_expression_is_null_are_dropped():
    assert cells(TABLE, {"c": "case when n > 2 then lower(trim(who)) end"}, where="n < 8") == {
        ("ann", 1): 1,
        ("bob", 1): 2,
        ("", 1): 1,
    }


@pytest.mark.parametrize("kind", ["csv", "jsonl", "sqlite", "query"])
def test_in_files_and_databases(tmp_path, kind):
    path = tmp_path / f"t.{'sqlite' if kind == 'query' else kind}"
    if kind == "csv":
        lines = [f'"{"" if who is None else who}","{what}"\n' for who, what in zip(NAMES, TABLE["what"], strict=True)]
        path.write_text("who,what\n" + "".join(lines))
    elif kind == "jsonl":
        path.write_text(
            "".join(json.dumps({"who": row["who"], "what": row["what"]}) + "\n" for row in TABLE.to_pylist())
        )
    else:
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("create table t (who text, what text)")
            rows = [(row["who"], row["what"]) for row in TABLE.to_pylist()]
            connection.executemany("insert into t values (?, ?)", rows)
            connection.commit()
    source = path
    if kind in ("sqlite", "query"):
        asked = {"table": "t"} if kind == "sqlite" else {"query": "select what, who from t"}
        source = Database(str(path), **asked)
    # An empty field of a text file is missing.
    expected = {cell: n for cell, n in FOUND.items() if kind != "csv" or cell[0]}
    assert cells(source, OWN) == expected


@pytest.mark.parametrize(
    ("user", "says"),
    [
        ({}, "user={}: needs one name with one expression"),
        ({"a": "who", "b": "what"}, "needs one name with one expression"),
        ({"": "who"}, "user='': needs the name"),
        ({"c": 7}, r"user\['c'\]: is a int"),
        ({"c": Bins("n", [0, 5])}, r"user\['c'\]: is a Bins"),
        ({"c": "max(who)"}, r"user\['c'\]='max\(who\)': .*one row"),
        ({"c": "lower(whom)"}, r"user\['c'\]='lower\(whom\)': column 'whom' is not in the table"),
        ({"c": "x * 2"}, "user='c': has type float64, and needs integers, strings, dates, booleans or UUIDs"),
        ({"c": "cast('2024-01-01' as timestamp)"}, "user='c': has type timestamp"),
        ({"c": "null"}, "user='c': has type null"),
        ("lower(who)", r"user='lower\(who\)': .*An expression needs a name: {'name': 'lower\(who\)'}.*--user"),
    ],
)
def test_what_is_refused_before_a_row_is_read(user, says):
    with pytest.raises(CrowdgramError, match=says) as caught:
        open_rows(TABLE, user=user, item="what")
    assert isinstance(caught.value, InvalidArgument | InvalidTable)


def test_the_name_of_an_expression_is_no_column():
    """It may be that of any column: of the item, of the count, or of one that the table has."""
    assert cells(TABLE, {"what": "lower(trim(who))"}) == FOUND
    assert cells(TABLE, {"n": "lower(trim(who))"}, count="n")["ann", 0] == 3
    assert cells(TABLE, {"not there": "lower(trim(who))"}) == FOUND


def test_a_computed_date_of_a_type_that_is_refused_as_a_column():
    """The unit of privacy is the value of the expression, so nothing merges after it."""
    days = pa.array([datetime.datetime(2024, 1, 1, 7), datetime.datetime(2024, 1, 1, 9)], pa.timestamp("us"))
    table = pa.table({"t": days, "what": ["a", "a"]})
    with pytest.raises(InvalidTable, match="has type timestamp"):
        open_rows(table, user="t", item="what")
    assert cells(table, {"day": "cast(t as date)"}) == {(datetime.date(2024, 1, 1), 0): 2}


texts = st.one_of(st.none(), st.sampled_from(["a", " A", "b", "B ", "ß", "İ", "\x00", "a\u0301"]), st.text(max_size=3))
rows = st.lists(st.tuples(texts, st.sampled_from("abc")), max_size=12)
EXPRESSIONS = ["lower(trim(who))", "left(upper(who), 1)", "length(who) % 2", "who = 'a'", "coalesce(who, 'nobody')"]


@pytest.mark.slow
@given(crowd=rows, expression=st.sampled_from(EXPRESSIONS), data=st.data())
@examples(12, 1000)
def test_neighbours_differ_in_one_users_cells(crowd, expression, data):
    """Take away all rows with one value of the expression: the cells of all other values stay."""

    def found(some):
        kinds = {"who": pa.string(), "what": pa.string()}
        columns = zip(*some, strict=True) if some else ([], [])
        table = pa.table({name: pa.array(one, kinds[name]) for name, one in zip(kinds, columns, strict=True)})
        return cells(table, {"made": expression})

    def made(some):
        """The user of each row, alone, by the items that stand for their places: one question for all rows."""
        places = [str(place) for place in range(len(some))]
        table = pa.table({"who": pa.array([who for who, _ in some], pa.string()), "what": places})
        users = {place: user for user, place in cells(table, {"made": expression}, domain=places)}
        return [users.get(place) for place in range(len(some))]

    whole = found(crowd)
    if not whole:
        return
    gone = data.draw(st.sampled_from(sorted({user for user, _ in whole}, key=repr)))
    kept = [row for row, user in zip(crowd, made(crowd), strict=True) if user != gone]
    assert found(kept) == {cell: n for cell, n in whole.items() if cell[0] != gone}


def test_a_release_with_all_that_can_be_asked():
    asked = {"where": "n > 1", "count": "n", "by": {"low": "n < 5"}, "groups": [True, False]}
    made = crowdgram.release(TABLE, user=OWN, item="what", domain=["a", "b"], epsilon=1e2, mechanism="laplace", **asked)
    assert made.groups == (True, False)
