"""One suite, every engine: DuckDB, Spark and plain Python give the same integers.

A pass of Spark takes a hundred times as long as one of DuckDB, however small the table. So it gets fewer tables and
fewer arguments, chosen such that each kind of query, of key and of extreme is among them; all of them if thorough.
"""

from __future__ import annotations

import datetime
import gc
import importlib
import pkgutil
from itertools import product

import ibis
import numpy as np
import pytest

import crowdgram.tables
from crowdgram.tables import (
    HALF_BINS,
    MAX_BITS,
    MAX_STRETCH,
    UNIT,
    Bins,
    CappedRows,
    Centre,
    Domain,
    ItemReach,
    SampledRow,
    Tally,
    UsersByHalf,
    UsersByRows,
    WeightedSets,
    count_rows,
    distances,
    find_presence,
    held_items,
    item_sets,
    open_rows,
    read_domain,
    read_joint_domain,
    tally_rows,
    user_totals,
)
from crowdgram.tables import counts as counts_module
from crowdgram.tables.expressions import evaluate
from crowdgram.tables.roles import WHERE
from crowdgram.tables.statistics import OneUser, Statistic, item_set_of
from crowdgram.tables.statistics.centred import sum_levels
from crowdgram.tables.statistics.user_totals import held_items_of, user_totals_of

from ..thorough import THOROUGH
from .cells import fetch_cells
from .frames import arrow_of, frame_of, open_in_ibis
from .reference import placed, present, total, users_of
from .statistics import EDGES, REACHED, centre_for, measures, of_counts, of_distances, of_presence, of_sets, of_totals


def skewed():
    rng = np.random.default_rng(1)
    rows = []
    for user in range(60):
        m = int(np.ceil(rng.pareto(1.0) * 3)) + 1
        rows += [(user, int(i)) for i in rng.zipf(1.5, size=min(m, 400)) % 13]
    rows += [(60, item) for item in range(40)]  # so many that no item may have all of the user's weight
    return rows, list(range(12))  # items from 12 on are outside the domain


def one_huge_user():
    rows = [(0, i % 7) for i in range(5000)] + [(u, u % 3) for u in range(1, 20)]
    return rows, list(range(7))


def repeated_rows():
    return [(5, 1)] * 17 + [(6, 1)] * 17 + [(6, 2)] * 3 + [(7, 3)], [1, 2, 3]


def string_ids():
    names = ["ann", "Ann", "ann ", "änn", "a\u0308nn", "", "o'brien", 'q"x', "user;--", "名前"]
    rows = [(names[(3 * i) % 10], f"item-{i % 4}") for i in range(57)]
    return rows, ["item-3", "item-0", "item-1", "item-2", "never seen"]


def nulls_and_strangers():
    return [(1, None), (None, 2), (None, None), (1, 2), (2, 99), (3, 2)], [1, 2]


def empty():
    return [], [1, 2, 3]


def extreme_integers():
    big = 2**63 - 1
    return [(big, big), (-big - 1, big), (0, -big - 1), (0, 0)], [big, -big - 1, 0]


def odd_integers():
    """All of the odd tables of integers in one, and the skewed one beside them, by users of its own."""
    rows, domain = skewed()
    beside = [(user + 1000, item) for user, item in rows], domain
    tables = [extreme_integers(), repeated_rows(), nulls_and_strangers(), one_huge_user(), beside]
    rows = [row for table, _ in tables for row in table]
    return rows, sorted({item for _, domain in tables for item in domain}, reverse=True)


TABLES = [skewed, string_ids, odd_integers, empty]
CASES = [skewed, one_huge_user, repeated_rows, string_ids, nulls_and_strangers, empty, extreme_integers]


def on_engines(few, many=CASES):
    """Tables for DuckDB, and a few of them for Spark."""
    on_spark = many if THOROUGH else few
    given = [pytest.param("duckdb", case, id=f"duckdb-{case.__name__}") for case in many]
    given += [pytest.param("spark", case, id=f"spark-{case.__name__}", marks=pytest.mark.spark) for case in on_spark]
    return pytest.mark.parametrize(("opened", "case"), given, indirect=["opened"])


@pytest.fixture(params=["duckdb", pytest.param("spark", marks=pytest.mark.spark)])
def opened(request, own_database):
    """rows, domain -> Rows in the engine under test."""
    engines, session = [], request.getfixturevalue("spark") if request.param == "spark" else None

    def make(rows, domain, partitions=1):
        kind = "string" if isinstance(domain[0], str) else "bigint"
        table = arrow_of(rows, f"u {kind}, i {kind}")
        if session is not None:
            table = session.createDataFrame(table).repartition(partitions)
        found = open_rows(table, user="u", item="i")
        engines.append(found.engine)
        return found

    yield make
    for engine in engines:
        engine.close()


@pytest.fixture
def counted(opened):
    """rows, domain -> Counts in the engine under test."""

    def make(rows, domain, partitions=1):
        found = opened(rows, domain, partitions)
        return count_rows(found, read_domain(domain, found.item_type))

    return make


def statistics_in(base=Statistic):
    """All statistics of the library, but for those that only others are made of. (An audit has broken ones.)"""
    for module in pkgutil.walk_packages(crowdgram.tables.__path__, "crowdgram.tables."):
        importlib.import_module(module.name)
    found, left = set(), [base]
    while left:
        one = left.pop()
        left += one.__subclasses__()
        if one.__module__.startswith("crowdgram.tables.") and not one.__abstractmethods__:
            found.add(one)
    return found


def test_every_statistic_is_in_the_list():
    assert statistics_in() == {type(statistic) for statistic, _ in REACHED}


def test_a_statistic_that_is_not_in_the_list_would_be_found():
    class Forgotten(CappedRows):
        __module__ = "crowdgram.tables.forgotten"

    assert statistics_in() == {type(statistic) for statistic, _ in REACHED} | {Forgotten}
    del Forgotten
    gc.collect()  # or other tests find it too


@pytest.mark.slow
@on_engines(TABLES[1:], TABLES)
def test_every_statistic_is_the_sum_of_its_users_integer_for_integer(opened, case, request):
    """By a public domain; and, on Spark for one of the tables, compiled and over all items that occur, and for another
    in several partitions, with the rows the other way round.
    """
    if "spark-string_ids" in request.node.name:
        request.getfixturevalue("compiled")
    rows, domain = case()
    found = opened(rows[::-1], domain, partitions=5) if case is odd_integers else opened(rows, domain)
    every = THOROUGH or found.engine.name == "duckdb"
    users = users_of(rows)
    check_counts(count_rows(found, read_domain(domain, found.item_type)), placed(users, domain), every)
    presence = find_presence(found, read_domain(domain, found.item_type))
    for statistic in of_presence(len(domain), every):
        assert presence.sum(statistic).vector() == total(statistic, present(users, domain)), statistic
    for most, row_cap in [(1, 1), (3, 400), (1000, 5)] if every else [(3, 5)] * (case is string_ids):
        check_found(tally_rows(found), users, most, row_cap, every)


def check_counts(counts, users, every):
    for statistic in of_counts(counts.items, every):
        found = counts.sum(statistic)
        assert found.vector() == total(statistic, users), statistic
        if isinstance(statistic, Tally):
            assert found.takers == sum(user.rows >= statistic.rows for user in users)
    for centre, norm in measures(counts.items, every)[: None if users else 1]:
        measured = distances(counts, centre, norm)
        histograms, levels = of_distances(centre, norm, every)
        for statistic in histograms:
            assert measured.sum(statistic).vector() == total(statistic, users), statistic
        for statistic, found in zip(levels, sum_levels(measured, levels), strict=True):
            assert found.vector() == total(statistic, users), statistic
            assert len(found.values) == counts.items + 1
        measured.drop()


def check_found(tallied, users, most, row_cap, every):
    """Statistics of users whose items nobody has listed: how the engine numbers items is its own affair."""
    totals = user_totals(tallied)
    for statistic in of_totals():
        assert totals.sum(statistic).vector() == total(statistic, map(user_totals_of, users)), statistic
    totals.drop()

    held = held_items(tallied, "salt", most)
    expected = total(CappedRows(row_cap), [held_items_of(user, "salt", most) for user in users])
    places, sums = held.sum(row_cap)
    value, named = dict(zip(places.tolist(), sums.values.tolist(), strict=True)), held.named(places)
    assert list(named) == sorted(expected)  # and no item that nobody holds
    assert {item: value[place] for item, place in named.items()} == expected
    held.drop()

    sets = item_sets(tallied, "salt", most)
    limited = [item_set_of(user, "salt", most) for user in users]
    items = sorted({item for user in limited for item in user.counts})
    place = place_in(sets)
    assert sorted(place) == items
    renamed = [OneUser(user.name, {place[item]: 1 for item in user.counts}) for user in limited]
    for statistic in of_sets(sets.items, every):
        assert sets.sum(statistic).vector() == total(statistic, renamed), statistic
    some = items[::2]
    assert sets.named(np.array([place[item] for item in reversed(some)], dtype=np.int64)) == some
    sets.drop()


def place_in(sets):
    """The place of each item, by its value."""
    found = sets.engine.fetch(sets.places, "looking").to_pydict()
    names = zip(*(found[key] for key in sets.keys), strict=True)
    return dict(zip((name if len(name) > 1 else name[0] for name in names), found["idx"], strict=True))


def as_they_are(rows):
    return rows


def check_other(opened, rows, domain, listed):
    """Rows outside the list count as if they had one item of their own, whether they were tallied first or not."""
    merged = [(u, None if i is None else listed.index(i) if i in listed else len(listed)) for u, i in rows]
    expected = total(CappedRows(3), placed(users_of(merged), range(len(listed) + 1)))
    for prepare in (as_they_are, tally_rows):
        found = prepare(opened(rows, domain, 2))
        counts = count_rows(found, Domain(tuple(listed), found.item_types, other=True))
        assert counts.sum(CappedRows(3)).vector() == expected


def test_a_user_has_the_other_item_once(opened):
    """However many items outside the list a user has, and whether rows were tallied first or not."""
    rows, domain = skewed()
    merged = [(u, None if i is None else i if i in domain[:2] else "other") for u, i in rows]
    expected = total(ItemReach(2, "l2", 2**20), present(users_of(merged), [*domain[:2], "other"]))
    for prepare in (as_they_are, tally_rows):
        found = prepare(opened(rows, domain, 2))
        presence = find_presence(found, Domain(tuple(domain[:2]), found.item_types, other=True))
        assert presence.sum(ItemReach(2, "l2", 2**20)).vector() == expected


def test_rows_outside_the_domain_are_the_other_item(opened):
    rows, domain = skewed()
    check_other(opened, rows, domain, domain[:2])


@pytest.mark.slow
@pytest.mark.parametrize("opened", ["duckdb"], indirect=True)
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.__name__)
def test_the_other_item_for_many_tables(opened, case):
    rows, domain = case()
    for listed in (domain[:2], []):
        check_other(opened, rows, domain, listed)


# --- rows that are counted already, several item columns, and filters


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
        found = fetch_cells(counts).to_pydict()
        users = engine.fetch(counts.users.select("rows", name=counts.names), "testing").to_pydict()
    assert dict(zip(zip(found["user"], found["idx"], strict=True), found["n"], strict=True)) == cells_of(expected)
    assert dict(zip(users["name"], users["rows"], strict=True)) == {user.name: user.rows for user in expected}


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
    with made.engine:
        counts = count_rows(made, read_joint_domain(domain, made.item_types, made.names))
        found = fetch_cells(counts).to_pydict()
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
        with made.engine:
            counts = count_rows(prepare(made), Domain(tuple(pairs), made.item_types, other, groups))
            found = fetch_cells(counts).to_pydict()
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
    # Spark made a moment of today of the first, and of the first day of the year of the second.
    "cast(strftime(t, '%H:%M') as timestamp) is null": lambda a, b, s, t: True,
    "cast(strftime(t, '%Y') as date) is null and cast(strftime(t, '%Y-%m') as timestamp) is null": lambda a, b, s, t: (
        True
    ),
    "cast(strftime(t, '%Y-%m-%d') as date) = '2024-03-03'": lambda a, b, s, t: (t.month, t.day) == (3, 3),
    "cast(strftime(t, '%Y-%m-%d %H:%M') as timestamp) = t": lambda a, b, s, t: True,
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


@pytest.mark.slow
def test_filters_are_the_same_on_every_engine(table_of, request):
    if "spark" in request.node.name:
        request.getfixturevalue("compiled")
    texts = ["x1", "x", "y", "/a/b", "12", "1.9", "Z", "a\\E(+", "1|2\\"]
    rows = [(k, k % 11, k % 5 - 1, texts[k % 9], MOMENTS[k % 59]) for k in range(495)]
    engine, table = open_in_ibis(table_of("u bigint, a bigint, b bigint, s string, t timestamp_ntz", rows), None, "u")
    with engine:
        verdicts = {f"v{j}": evaluate(text, engine, table, WHERE) for j, text in enumerate(EXPRESSIONS)}
        found = engine.fetch(table.select("u", **verdicts).order_by("u"), "testing")
    for j, (text, python) in enumerate(EXPRESSIONS.items()):
        kept = [bool(value) for value in found[f"v{j}"].to_pylist()]
        assert kept == [bool(python(*row[1:])) for row in rows], text
        assert any(kept)


@pytest.mark.parametrize(
    "opened",
    ["duckdb", *([pytest.param("spark", marks=pytest.mark.spark)] if THOROUGH else [])],  # of Spark, see odd_integers
    indirect=True,
)
def test_partitions_and_row_order_cannot_matter(counted):
    rows, domain = skewed()
    check_counts(counted(rows[::-1], domain, partitions=5), placed(users_of(rows), domain), every=False)


def test_the_order_of_a_connection_of_the_callers_own_cannot_matter():
    backend = ibis.duckdb.connect()
    backend.raw_sql("create table t as select i % 7 as who, i * i % 11 as what from range(60) t(i)")
    found = []
    for order in ("ASC", "DESC"):
        backend.raw_sql(f"set default_order = '{order}'")
        rows = open_rows(backend.table("t"), user="who", item="what")
        with rows.engine:
            counts = count_rows(rows, read_domain(list(range(11)), rows.item_types[0]))
            found.append([counts.sum(SampledRow(cap, "salt")).values.tolist() for cap in (1, 4)])
    backend.disconnect()
    assert found[0] == found[1]


@pytest.mark.slow
@on_engines([skewed], [skewed, one_huge_user, empty])
def test_an_even_centre_is_measured_without_a_pass_and_the_same_to_the_last_bit(counted, monkeypatch, case):
    """Distances from what is known of users, against those of a pass over the cells."""
    rows, domain = case()
    counts, ones = counted(rows, domain), np.ones(len(domain), dtype=np.int64)
    engine, placed = counts.engine, []
    upload = engine.upload
    # a watch on the passes that are made
    monkeypatch.setattr(engine, "upload", lambda table, stage: placed.append(stage) or upload(table, stage))
    centres = [(0, 0), (0, MAX_BITS), (round(2**7 / len(domain)), 7), (2**MAX_BITS // 12, MAX_BITS)]
    tried = list(product(centres, [1, MAX_STRETCH]))
    for (coordinate, bits), stretch in tried if THOROUGH or engine.name == "duckdb" else tried[-1:]:
        centre = Centre(ones * coordinate, ones * stretch, bits)
        with monkeypatch.context() as without:
            without.setattr(Centre, "is_even", False)  # the pass that an even centre does not need
            passed = distances(counts, centre)
        assert placed == ["placing the centre"]
        cheap = distances(counts, centre)
        assert placed == ["placing the centre"]  # and not again: there is nothing to place beside the cells
        placed.clear()
        one, other = (
            dict(zip(found["user"], zip(found["rows"], found["distance"], strict=True), strict=True))
            for found in (engine.fetch(each.table, "testing").to_pydict() for each in (passed, cheap))
        )
        assert one == other
        sums = [[level.values for level in each.levels([2**20, 2**40], 3, UNIT, 5)] for each in (passed, cheap)]
        assert sums[0] == sums[1]
        for each in (passed, cheap):
            each.drop()
    assert sum(counts.sum(UsersByRows(EDGES)).values) == len(one)  # the users' own table is still there


def test_only_equal_coordinates_and_stretches_are_even():
    ones = np.ones(3, dtype=np.int64)
    assert Centre.origin(3).is_even
    assert Centre(ones * 5, ones * 7, 4).is_even
    assert not Centre(ones * 5, np.array([7, 7, 8]), 4).is_even
    assert not Centre(np.array([5, 4, 5]), ones * 7, 4).is_even


def test_a_user_over_the_row_limit_is_divided_down(counted, monkeypatch):
    monkeypatch.setattr(counts_module, "ROW_LIMIT", 50)  # a limit that a small table reaches
    rows, domain = one_huge_user()
    counts, expected = counted(rows, domain), placed(users_of(rows), domain)
    assert max(user.rows for user in expected) <= 50
    for statistic in (CappedRows(7), UsersByRows(EDGES)):
        assert counts.sum(statistic).vector() == total(statistic, expected)


def test_nothing_larger_than_the_domain_is_collected(counted, monkeypatch):
    rows, domain = skewed()
    counts = counted(rows, domain)
    sizes = []

    def watched(collect):
        def collected(*asked):
            found = collect(*asked)
            sizes.append(found.num_rows)
            return found

        return collected

    for name in ("fetch", "count_by_bin"):
        # a watch on what leaves the engine
        monkeypatch.setattr(counts.engine, name, watched(getattr(counts.engine, name)))
    for statistic in (CappedRows(1), SampledRow(2, "s"), UsersByRows(EDGES), UsersByHalf(len(domain), 0, 2)):
        counts.sum(statistic)
    distances(counts, centre_for(len(domain))).levels([99, 100, 1000], 2, UNIT)
    assert len(sizes) == 5  # all levels in one pass
    assert max(sizes) <= max(len(domain), len(EDGES), HALF_BINS + 2)


def test_limits_keep_every_product_in_64_bits():
    """The largest integers that an engine can meet, from the public limits alone."""
    largest_square, largest_centre = MAX_STRETCH**2, MAX_STRETCH**2 * 2**MAX_BITS
    assert largest_square * counts_module.ROW_LIMIT**2 < 2**63
    assert largest_centre * counts_module.ROW_LIMIT < 2**63
    assert UNIT * 2**33 <= 2**63
    assert UNIT * counts_module.ROW_LIMIT < 2**52  # exact where an engine divides in doubles
