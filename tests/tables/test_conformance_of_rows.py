"""Rows that are counted already, several item columns, groups and filters: the same integers on every engine."""

from __future__ import annotations

import datetime
from itertools import product

import numpy as np
import pytest

from crowdgram.tables import (
    Bins,
    Domain,
    WeightedSets,
    count_rows,
    item_sets,
    open_rows,
    read_joint_domain,
    tally_rows,
)
from crowdgram.tables.expressions import evaluate
from crowdgram.tables.roles import WHERE
from crowdgram.tables.sources import open_source
from crowdgram.tables.statistics import OneUser, item_set_of

from ..thorough import THOROUGH
from .frames import arrow_of, frame_of
from .reference import placed, total, users_of
from .test_conformance import as_they_are, place_in

DAY, LATER = datetime.date(2024, 2, 29), datetime.date(2024, 3, 1)
NOON = datetime.datetime(2024, 2, 29, 12, 0, 0, 7)


def counts_of_all_sizes():
    """(user, country, page, day, whether, moment, n) and a domain of five item columns."""
    sizes = [1, 2, 7, 2**20 - 1, 2**20, 2**31, 2**40 - 1, 2**40 + 5, 2**53 + 1, 2**63 - 1]
    odd = [0, -1, -(2**63), None]
    rows = [(f"u{k % 4}", "DE", k % 3, DAY, True, NOON, n) for k, n in enumerate(sizes + odd)]
    days, truths = (DAY, LATER, None), (True, False)
    rows += [
        ("light", ("DE", "FR", None)[k % 3], k % 5, days[k % 4 % 3], truths[k % 2], NOON, k % 7) for k in range(90)
    ]
    rows += [("many", "FR", 1, LATER, False, NOON, 2**20 - 1)] * 50 + [
        ("many", "FR", 2, DAY, True, NOON, 2**39 + 3)
    ] * 50
    rows += [(None, "DE", 0, DAY, True, NOON, 3), ("u0", "DE", None, DAY, True, NOON, 3)]
    rows += [
        ("u0", "XX", 0, DAY, True, NOON, 2**60),
        ("u0", "DE", 0, DAY, True, None, 3),
        ("u0", "DE", 0, DAY, None, NOON, 3),
    ]
    return rows, list(product(("FR", "DE", "never"), (4, 0, 1, 2), (LATER, DAY), (False, True), (NOON,)))


@pytest.fixture(params=["duckdb", pytest.param("spark", marks=pytest.mark.spark)])
def table_of(request):
    """schema, rows -> a table that is worked on by the engine under test."""

    def make(schema, rows):
        if request.param == "spark":
            return frame_of(request.getfixturevalue("spark"), rows, schema).repartition(3)
        return arrow_of(rows, schema)

    return make


def test_counted_rows_of_joint_items_are_the_reference_integer_for_integer(table_of):
    rows, domain = counts_of_all_sizes()
    joint = [(user, None if None in item else tuple(item), n) for user, *item, n in rows]
    expected = placed(users_of(joint, counted=True), domain, counted=True)
    assert max(user.rows for user in expected) > 2**19  # somebody is at the limit
    table = table_of("u string, c string, p bigint, d date, b boolean, t timestamp_ntz, n bigint", rows)
    made = open_rows(table, user="u", item=["c", "p", "d", "b", "t"], count="n")
    assert made.keys == ("item", "item_1", "item_2", "item_3", "item_4")
    with made.engine as engine:
        counts = count_rows(made, read_joint_domain(domain, made.item_types, made.names))
        found = engine.fetch(counts.cells, "testing").to_pydict()
        users = engine.fetch(counts.users, "testing").to_pydict()
    assert dict(zip(zip(found["user"], found["idx"], strict=True), found["n"], strict=True)) == cells_of(expected)
    assert dict(zip(users["user"], users["rows"], strict=True)) == {user.name: user.rows for user in expected}


def cells_of(users):
    return {(user.name, place): n for user in users for place, n in user.counts.items()}


def computed_users():
    """(name, page, age, n), and the user of each name."""
    names = {
        " Ann": "ann",
        "ANN ": "ann",
        "b\u00d6b": "b\u00f6b",
        "B\u00f6B": "b\u00f6b",
        "": "",
        None: None,
        "Eve": "eve",
    }
    rows = [
        (name, page, age, n) for name in names for page in "ab" for age, n in ((-1, 2), (17, 3), (18, 2**40), (64, 1))
    ]
    return rows, names


def test_computed_users_with_bins_counts_and_a_filter_are_the_reference_integer_for_integer(table_of):
    rows, names = computed_users()
    bins = Bins("age", [0, 18, 65])
    domain = list(product("ba", bins.names))
    known = [
        (names[name], None if age < 0 else (page, bins.names[age >= 18]), n)
        for name, page, age, n in rows
        if age != 64 or page == "a"
    ]
    expected = placed(users_of(known, counted=True), domain, counted=True)
    made = open_rows(
        table_of("who string, page string, age bigint, n bigint", rows),
        user={"customer": "lower(trim(who))"},
        item={"age": bins},
        by="page",
        count="n",
        where="age <> 64 or page = 'a'",
    )
    with made.engine as engine:
        counts = count_rows(made, read_joint_domain(domain, made.item_types, made.names))
        found = engine.fetch(counts.cells, "testing").to_pydict()
    assert dict(zip(zip(found["user"], found["idx"], strict=True), found["n"], strict=True)) == cells_of(expected)
    assert {user for user, _ in cells_of(expected)} == {"ann", "b\u00f6b", "", "eve"}


WAYS = list(product(("n", None), (as_they_are, tally_rows)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("table_of", "listed", "other", "ways"),
    [
        *(("duckdb", listed, other, WAYS) for listed, other in product((3, 0), (True, False))),
        pytest.param("spark", 3, True, WAYS if THOROUGH else [WAYS[0], WAYS[3]], marks=pytest.mark.spark),
    ],
    indirect=["table_of"],
)
def test_groups_have_an_item_of_their_own_on_every_engine(table_of, listed, other, ways):
    """Rows of a group whose item is not listed are the group's own item; tallied first or not, counted or not."""
    rows, _ = counts_of_all_sizes()
    rows = [(user, country, page, None if n is None else min(n, 9)) for user, country, page, *_, n in rows]
    pairs = [("FR", 1), ("DE", 0), ("DE", 2)][:listed]
    groups = ("DE", "FR", "never")
    for count, prepare in ways:
        domain = [*pairs, *groups, *(["other"] if other else [])]

        def place(pair, domain=domain):
            own = pair[0] if pair[0] in groups else "other"
            return None if None in pair else pair if pair in domain else own

        given = [(user, place((country, page)), n) for user, country, page, n in rows]
        expected = placed(users_of(given, count is not None), domain, count is not None)
        made = open_rows(
            table_of("u string, c string, p bigint, n bigint", rows), user="u", item=["c", "p"], count=count
        )
        with made.engine as engine:
            counts = count_rows(prepare(made), Domain(tuple(pairs), made.item_types, other, groups))
            found = engine.fetch(counts.cells, "testing").to_pydict()
        assert dict(zip(zip(found["user"], found["idx"], strict=True), found["n"], strict=True)) == cells_of(expected)


def test_sets_of_joint_items_of_all_types_on_every_engine(table_of):
    """Found items come back as the values that they are, in their order; rows that count for nothing hold no item."""
    rows, _ = counts_of_all_sizes()
    table = table_of("u string, c string, p bigint, d date, b boolean, t timestamp_ntz, n bigint", rows)
    made = open_rows(table, user="u", item=["c", "p", "d", "b", "t"], count="n")
    held = {(user, tuple(item)) for user, *item, n in rows if user and None not in item and n is not None and n > 0}
    limited = [item_set_of(user, "salt", 1000) for user in users_of(held)]
    with made.engine:
        sets = item_sets(tally_rows(made), "salt", 1000)
        place, statistic = place_in(sets), WeightedSets(np.full(sets.items, 256))
        assert sets.named(np.arange(sets.items)) == sorted({item for user in limited for item in user.counts})
        renamed = [OneUser(user.name, {place[item]: 1 for item in user.counts}) for user in limited]
        assert sets.sum(statistic).vector() == total(statistic, renamed)


# The same verdict for each row, on every engine: expressions with the Python that they stand for.
MOMENTS = [datetime.datetime(2024, 1 + k % 12, 1 + k % 28, k % 24, k % 60) for k in range(59)]
EXPRESSIONS = {
    "a > 3 and not (b = 2)": lambda a, b, s, t: a > 3 and b != 2,
    "a / b > 1.5": lambda a, b, s, t: b != 0 and a / b > 1.5,
    "a // b = 2 or a % b = 1": lambda a, b, s, t: b != 0 and (a // b == 2 or a % b == 1),
    "a * 4611686018427387904 is null": lambda a, b, s, t: a > 1,
    "(0 - a) * 4611686018427387904 is null": lambda a, b, s, t: a > 2,
    "a + 9223372036854775806 is null": lambda a, b, s, t: a > 1,
    "-(0 - a - 9223372036854775807) is null": lambda a, b, s, t: a > 0,
    "(a is not distinct from b) = (b > 1)": lambda a, b, s, t: (a == b) == (b > 1),
    "not (a is distinct from b) or nullif(a, 3.0) is null": lambda a, b, s, t: a in (b, 3),
    "coalesce(nullif(a, 3), 0.5) < 1": lambda a, b, s, t: a in (0, 3),
    "case when a > 3 then 1 else 2.5 end in (1, 7)": lambda a, b, s, t: a > 3,
    "s like 'a\\%' or s like '%\\' or s like '_x'": lambda a, b, s, t: s.startswith("a\\") or s.endswith("\\"),
    "split_part(s, '\\E(', 2) = '+'": lambda a, b, s, t: s == "a\\E(+",
    "split_part(s, '+', 2) = '' and split_part(s, '.', 2) = '9'": lambda a, b, s, t: s == "1.9",
    "split_part(s, '?', 1) = 'x' or split_part(s, '|', 2) = '2\\'": lambda a, b, s, t: s in ("x", "1|2\\"),
    "strftime(t, 'day %d''s T \\ %H') = 'day 03''s T \\ 02'": lambda a, b, s, t: (t.day, t.hour) == (3, 2),
    "s like 'x%' or s in ('/a/b', 'y')": lambda a, b, s, t: s.startswith("x") or s in ("/a/b", "y"),
    "cast(s as bigint) = 12": lambda a, b, s, t: s == "12",
    "cast(s as date) is null": lambda a, b, s, t: True,
    "split_part(s, '/', 3) = 'b'": lambda a, b, s, t: s == "/a/b",
    "substring(s, 1, 2) = 'x1' or right(s, 1) = 'b'": lambda a, b, s, t: s[:2] == "x1" or s[-1:] == "b",
    "length(upper(s) || 'é') = 3": lambda a, b, s, t: len(s) == 2,
    "coalesce(nullif(s, 'y'), 'n') = 'n'": lambda a, b, s, t: s == "y",
    "case when a > b then 'more' else 'less' end = 'more'": lambda a, b, s, t: a > b,
    "date_trunc('month', t) = '2024-03-01'": lambda a, b, s, t: t.month == 3,
    "strftime(t, '%Y-%m-%d %H') = '2024-01-01 00'": lambda a, b, s, t: t.strftime("%m-%d %H") == "01-01 00",
    "year(t) = 2024 and quarter(t) = 2 and hour(t) < 12": lambda a, b, s, t: 4 <= t.month <= 6 and t.hour < 12,
    "dayofweek(t) = 0 or isodow(t) = 1": lambda a, b, s, t: t.isoweekday() in (7, 1),
    "cast(t as date) between '2024-02-01' and '2024-02-29'": lambda a, b, s, t: t.month == 2,
    "floor(a / 2.0) = 2 and abs(0 - b) < 3": lambda a, b, s, t: a // 2 == 2 and abs(b) < 3,
}


def test_filters_are_the_same_on_every_engine(table_of, request):
    if "spark" in request.node.name:
        request.getfixturevalue("compiled")
    texts = ["x1", "x", "y", "/a/b", "12", "1.9", "Z", "a\\E(+", "1|2\\"]
    rows = [(k, k % 11, k % 5 - 1, texts[k % 9], MOMENTS[k % 59]) for k in range(495)]
    engine, table = open_source(table_of("u bigint, a bigint, b bigint, s string, t timestamp_ntz", rows), None, "u")
    with engine:
        verdicts = {f"v{j}": evaluate(text, engine, table, WHERE) for j, text in enumerate(EXPRESSIONS)}
        found = engine.fetch(table.select("u", **verdicts).order_by("u"), "testing")
    for j, (text, python) in enumerate(EXPRESSIONS.items()):
        kept = [bool(value) for value in found[f"v{j}"].to_pylist()]
        assert kept == [bool(python(*row[1:])) for row in rows], text
        assert any(kept)
