"""One suite, every engine: DuckDB, Spark and the plain-Python reference give the same integers.

A pass of Spark takes a hundred times as long as one of DuckDB, however small the table. So it gets fewer tables and
fewer arguments, chosen such that each kind of query, of key and of extreme is among them; all of them if thorough.
"""

from __future__ import annotations

import datetime
from itertools import product

import numpy as np
import pyarrow as pa
import pytest

from crowdgram.tables import (
    MAX_BITS,
    MAX_MASS_SCALE,
    MAX_RADIUS,
    MAX_STRETCH,
    UNIT,
    Centre,
    Domain,
    concentration_sum,
    count_rows,
    distances,
    held_items,
    holdings,
    item_sets,
    l1_sum,
    open_rows,
    read_domain,
    read_joint_domain,
    rows_histogram,
    sampled_sum,
    tally,
    tally_rows,
)
from crowdgram.tables import counts as counts_module
from crowdgram.tables.expressions import evaluate
from crowdgram.tables.sources import open_source

from ..thorough import THOROUGH
from . import reference

EDGES = [1, 2, 3, 5, 8, 16, 40, 100, 1000]


def skewed():
    rng = np.random.default_rng(1)
    rows = []
    for user in range(60):
        m = int(np.ceil(rng.pareto(1.0) * 3)) + 1
        rows += [(user, int(i)) for i in rng.zipf(1.5, size=min(m, 400)) % 13]
    return rows, list(range(12))  # item 12 is outside the domain


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
    """All of the odd tables of integers in one."""
    tables = [extreme_integers(), repeated_rows(), nulls_and_strangers(), one_huge_user()]
    rows = [row for table, _ in tables for row in table]
    return rows, sorted({item for _, domain in tables for item in domain}, reverse=True)


CASES = [skewed, one_huge_user, repeated_rows, string_ids, nulls_and_strangers, empty, extreme_integers]


def on_engines(few, many=CASES):
    """Tables for DuckDB, and a few of them for Spark."""
    on_spark = many if THOROUGH else few
    given = [pytest.param("duckdb", case, id=f"duckdb-{case.__name__}") for case in many]
    given += [pytest.param("spark", case, id=f"spark-{case.__name__}", marks=pytest.mark.spark) for case in on_spark]
    return pytest.mark.parametrize(("opened", "case"), given, indirect=["opened"])


def as_arrow(rows, domain):
    kind = pa.string() if isinstance(domain[0], str) else pa.int64()
    return pa.table({"u": pa.array([r[0] for r in rows], kind), "i": pa.array([r[1] for r in rows], kind)})


@pytest.fixture(params=["duckdb", pytest.param("spark", marks=pytest.mark.spark)])
def opened(request):
    """rows, domain -> Rows in the engine under test."""
    engines = []

    def make(rows, domain, partitions=1):
        table = as_arrow(rows, domain)
        if request.param == "spark":
            session = request.getfixturevalue("spark")
            kind = "string" if isinstance(domain[0], str) else "bigint"
            table = session.createDataFrame(rows, f"u {kind}, i {kind}").repartition(partitions)
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


def tries_all(counts):
    return THOROUGH or counts.engine.backend.name == "duckdb"


def centre_for(items, bits=16):
    weights = 1.0 / np.arange(1, items + 1)
    coordinates = np.floor(weights / weights.sum() * 2**bits).astype(np.int64)
    return Centre(coordinates, np.arange(items, dtype=np.int64) % 7 + 1, bits)


def centres_for(items):
    """The origin, an uneven centre, the uniform one with the finest scales, and one that rounds to zero."""
    ones = np.ones(items, dtype=np.int64)
    uniform = Centre(ones * round(2**MAX_BITS / items), ones * 4, MAX_BITS)
    return Centre.origin(items), centre_for(items), uniform, Centre(0 * ones, ones, 9)


LEVELS = [
    ([12345], 3, 2**20, 0),
    ([2**40, 2**42, 2**44, 2**44 + 1], 1, 2**30, 0),
    ([1, 2, 3], 1, 2**30, 1),
    ([2**30, 2**36, MAX_RADIUS - 1, MAX_RADIUS], 1000, 2**28, 3 * 2**20 + 1),
    ([2**45, MAX_RADIUS], 1, 2**30, MAX_MASS_SCALE),
]
"""Radii, row cap, unit and the scale of the mass."""


def measures(items, all_of_them):
    """Centres with a norm, the levels and the units to measure with."""
    if all_of_them:
        return [(*pair, LEVELS, (2**14, 2**30)) for pair in product(centres_for(items), ("l1", "l2"))]
    fine = centre_for(items, MAX_BITS)
    return [(centre_for(items), "l1", LEVELS[::2], [2**14]), (fine, "l2", LEVELS[1::2], [2**30])]


@pytest.mark.slow
@on_engines([skewed, string_ids, odd_integers, empty], [*CASES, odd_integers])
def test_every_sum_is_the_reference_integer_for_integer(counted, case):
    rows, domain = case()
    counts, expected = counted(rows, domain), reference.ReferenceCounts(rows, domain)
    every = tries_all(counts)
    for cap in (1, 3, 1000) if every else (3,):
        assert l1_sum(counts, cap).tolist() == reference.l1_sum(expected, cap)
    for cap in (1, 3, 1000, counts_module.ROW_LIMIT) if every else (3, counts_module.ROW_LIMIT):
        assert concentration_sum(counts, cap).tolist() == reference.concentration_sum(expected, cap)
    assert rows_histogram(counts, EDGES).tolist() == reference.rows_histogram(expected, EDGES)
    for cap in (1, 4) if every else (4,):
        assert sampled_sum(counts, "salt", cap).tolist() == reference.sampled_sum(expected, "salt", cap)
    for rows_per_user in (1, 4, 17) if every else (4,):
        found = tally(counts, rows_per_user, "salt")
        pairs = zip(zip(found.idx.tolist(), found.times.tolist(), strict=True), found.users.tolist(), strict=True)
        assert dict(pairs) == reference.tally(expected, rows_per_user, "salt")
        assert found.takers == sum(rows >= rows_per_user for rows in expected.rows.values())
    for centre, norm, levels, units in measures(len(domain), every):
        measured = distances(counts, centre, norm)
        for radii, cap, unit, mass_scale in levels:
            found = [level.vector() for level in measured.levels(radii, cap, unit, mass_scale)]
            assert found == reference.levels(expected, centre, norm, radii, cap, unit, mass_scale)
        edges = [2.0**j for j in range(10, 60, 3)]
        for unit in units:
            found = measured.histogram(edges, 2, unit).tolist()
            assert found == reference.distance_histogram(expected, centre, norm, edges, 2, unit)
        measured.drop()


def by_item(sets, totals):
    """The totals of an item at its name: how items are numbered is the engine's own affair."""
    placed = sets.engine.fetch(sets.places, "looking").to_pydict()
    return {item: int(totals[idx]) for item, idx in zip(placed["item"], placed["idx"], strict=True)}


def check_sets(rows, most, *gains):
    """Sets of items in the engine against the reference, for gains by the item's number."""
    expected = reference.item_sets(rows[0], "salt", most)
    sets = item_sets(tally_rows(rows[1]), "salt", most)
    items = sorted({item for held in expected.values() for item in held})
    placed = by_item(sets, np.arange(sets.items))
    assert placed.keys() == set(items)
    for gain in gains:
        named = {item: gain(j) for j, item in enumerate(items)}
        given = np.zeros(sets.items, dtype=np.int64)
        for item, idx in placed.items():
            given[idx] = named[item]
        assert {item: int(total) for item, total in by_item(sets, sets.sum(given)).items()} == reference.set_sum(
            expected, named
        )
    some = items[::2]
    assert sets.named(np.array([placed[item] for item in reversed(some)], dtype=np.int64)) == some
    sets.drop()


@on_engines([string_ids], [skewed, string_ids, empty])
def test_sets_of_items_are_the_reference_integer_for_integer(opened, case):
    rows, domain = case()
    check_sets((rows, opened(rows, domain, 3)), 3, lambda j: (j * 37) % 257)


@pytest.mark.slow
@pytest.mark.parametrize("opened", ["duckdb"], indirect=True)
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.__name__)
@pytest.mark.parametrize("most", [2, 1000])
def test_sets_of_items_for_many_gains(opened, case, most):
    rows, domain = case()
    gains = (lambda _: 256, lambda j: (j * 37) % 257, lambda j: 64 if j % 3 else 0, lambda _: 0)
    check_sets((rows, opened(rows, domain)), most, *gains)


def test_what_users_hold_is_the_reference_integer_for_integer(opened):
    rows, domain = skewed()
    check_held(rows, opened(rows, domain, 3), 2, 5)


@pytest.mark.slow
@pytest.mark.parametrize("opened", ["duckdb"], indirect=True)
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.__name__)
@pytest.mark.parametrize(("most", "row_cap"), [(1, 1), (3, 400)])
def test_what_users_hold_in_every_case(opened, case, most, row_cap):
    rows, domain = case()
    check_held(rows, opened(rows, domain), most, row_cap)


def check_held(rows, opened, most, row_cap):
    tallied = tally_rows(opened)
    whole = reference.held_items(rows, "salt", 10**6)
    users = holdings(tallied)
    assert users.by_rows(EDGES).tolist() == reference.histogram([sum(c.values()) for c in whole.values()], EDGES)
    assert users.by_size(EDGES).tolist() == reference.histogram([len(c) for c in whole.values()], EDGES)
    users.drop()
    expected = reference.held_sum(reference.held_items(rows, "salt", most), row_cap)
    held = held_items(tallied, "salt", most)
    places, totals = held.sum(row_cap)
    value = dict(zip(places.tolist(), totals.tolist(), strict=True))
    named = held.named(places)
    assert list(named) == sorted(expected)  # and no item that nobody holds
    assert {item: value[place] for item, place in named.items()} == expected
    held.drop()


def as_they_are(rows):
    return rows


def check_other(opened, rows, domain, listed):
    """Rows outside the list count as if they had one item of their own, whether they were tallied first or not."""
    merged = [(u, None if i is None else listed.index(i) if i in listed else len(listed)) for u, i in rows]
    expected = reference.l1_sum(reference.ReferenceCounts(merged, range(len(listed) + 1)), 3)
    for prepare in (as_they_are, tally_rows):
        found = prepare(opened(rows, domain, 2))
        counts = count_rows(found, Domain(tuple(listed), found.item_types, other=True))
        assert l1_sum(counts, 3).tolist() == expected


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
    kinds = {"string": pa.string(), "bigint": pa.int64(), "timestamp_ntz": pa.timestamp("us")}
    kinds |= {"date": pa.date32(), "boolean": pa.bool_()}

    def make(schema, rows):
        if request.param == "spark":
            return request.getfixturevalue("spark").createDataFrame(rows, schema).repartition(3)
        fields = [pair.split() for pair in schema.split(", ")]
        columns = zip(fields, zip(*rows, strict=True), strict=True)
        return pa.table({name: pa.array(values, kinds[kind]) for (name, kind), values in columns})

    return make


def test_counted_rows_of_joint_items_are_the_reference_integer_for_integer(table_of):
    rows, domain = counts_of_all_sizes()
    joint = [(user, None if None in item else tuple(item), n) for user, *item, n in rows]
    expected = reference.ReferenceCounts(joint, domain, counted=True)
    assert max(expected.rows.values()) > 2**19  # somebody is at the limit
    table = table_of("u string, c string, p bigint, d date, b boolean, t timestamp_ntz, n bigint", rows)
    made = open_rows(table, user="u", item=["c", "p", "d", "b", "t"], count="n")
    assert made.keys == ("item", "item_1", "item_2", "item_3", "item_4")
    with made.engine as engine:
        counts = count_rows(made, read_joint_domain(domain, made.item_types, made.names))
        found = engine.fetch(counts.cells, "testing").to_pydict()
        users = engine.fetch(counts.users, "testing").to_pydict()
    cells = {(user, j): n for user, cell in expected.cells.items() for j, n in cell.items()}
    assert dict(zip(zip(found["user"], found["idx"], strict=True), found["n"], strict=True)) == cells
    assert dict(zip(users["user"], users["rows"], strict=True)) == expected.rows


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
        expected = reference.ReferenceCounts(given, domain, counted=count is not None)
        made = open_rows(
            table_of("u string, c string, p bigint, n bigint", rows), user="u", item=["c", "p"], count=count
        )
        with made.engine as engine:
            counts = count_rows(prepare(made), Domain(tuple(pairs), made.item_types, other, groups))
            found = engine.fetch(counts.cells, "testing").to_pydict()
        cells = {(user, j): n for user, cell in expected.cells.items() for j, n in cell.items()}
        assert dict(zip(zip(found["user"], found["idx"], strict=True), found["n"], strict=True)) == cells


def test_sets_of_joint_items_of_all_types_on_every_engine(table_of):
    """Found items come back as the values that they are, in their order; rows that count for nothing hold no item."""
    rows, _ = counts_of_all_sizes()
    table = table_of("u string, c string, p bigint, d date, b boolean, t timestamp_ntz, n bigint", rows)
    made = open_rows(table, user="u", item=["c", "p", "d", "b", "t"], count="n")
    held = {(user, tuple(item)) for user, *item, n in rows if user and None not in item and n is not None and n > 0}
    expected = reference.item_sets(held, "salt", 1000)
    with made.engine:
        sets = item_sets(tally_rows(made), "salt", 1000)
        totals = sets.sum(np.full(sets.items, 256))
        items = sorted({item for _, item in held})
        assert sets.named(np.arange(sets.items)) == items
    assert sorted(totals.tolist()) == sorted(reference.set_sum(expected, dict.fromkeys(items, 256)).values())


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


def test_filters_are_the_same_on_every_engine(table_of):
    texts = ["x1", "x", "y", "/a/b", "12", "1.9", "Z", "a\\E(+", "1|2\\"]
    rows = [(k, k % 11, k % 5 - 1, texts[k % 9], MOMENTS[k % 59]) for k in range(495)]
    engine, table = open_source(table_of("u bigint, a bigint, b bigint, s string, t timestamp_ntz", rows), None, "u")
    with engine:
        verdicts = {f"v{j}": evaluate(text, engine, table, "where") for j, text in enumerate(EXPRESSIONS)}
        found = engine.fetch(table.select("u", **verdicts).order_by("u"), "testing")
    for j, (text, python) in enumerate(EXPRESSIONS.items()):
        kept = [bool(value) for value in found[f"v{j}"].to_pylist()]
        assert kept == [bool(python(*row[1:])) for row in rows], text
        assert any(kept)


def test_partitions_and_row_order_cannot_matter(counted):
    rows, domain = skewed()
    forward = counted(rows, domain, partitions=7)
    backward = counted(rows[::-1], domain, partitions=3)
    centre = centre_for(len(domain))
    assert l1_sum(forward, 5).tolist() == l1_sum(backward, 5).tolist()
    assert sampled_sum(forward, "s", 2).tolist() == sampled_sum(backward, "s", 2).tolist()
    for one, other in zip(*(vars(tally(counts, 3, "s")).values() for counts in (forward, backward)), strict=True):
        assert np.array_equal(one, other)
    one, other = distances(forward, centre), distances(backward, centre)
    for levels in zip(*(near.levels([99, 2**40], 2, UNIT, 7) for near in (one, other)), strict=True):
        assert levels[0].vector() == levels[1].vector()
    assert concentration_sum(forward, 4).tolist() == concentration_sum(backward, 4).tolist()


@pytest.mark.slow
@on_engines([skewed], [skewed, one_huge_user, empty])
@pytest.mark.parametrize("stretch", [1, MAX_STRETCH])
def test_an_even_centre_is_measured_without_a_pass_and_the_same_to_the_last_bit(counted, monkeypatch, case, stretch):
    """Distances from what is known of users, against those of a pass over the cells."""
    rows, domain = case()
    counts, ones = counted(rows, domain), np.ones(len(domain), dtype=np.int64)
    engine, placed = counts.engine, []
    upload = engine.upload
    monkeypatch.setattr(engine, "upload", lambda table, stage: placed.append(stage) or upload(table, stage))
    centres = [(0, 0), (0, MAX_BITS), (round(2**7 / len(domain)), 7), (2**MAX_BITS // 12, MAX_BITS)]
    for coordinate, bits in centres if tries_all(counts) else centres[3 if stretch > 1 else 0 :][:1]:
        centre = Centre(ones * coordinate, ones * stretch, bits)
        with monkeypatch.context() as without:
            without.setattr(Centre, "is_even", False)
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
        sums = [[level.vector() for level in each.levels([2**20, 2**40], 3, UNIT, 5)] for each in (passed, cheap)]
        assert sums[0] == sums[1]
        for each in (passed, cheap):
            each.drop()
    assert sum(rows_histogram(counts, EDGES)) == len(one)  # the users' own table is still there


def test_only_equal_coordinates_and_stretches_are_even():
    ones = np.ones(3, dtype=np.int64)
    assert Centre.origin(3).is_even
    assert Centre(ones * 5, ones * 7, 4).is_even
    assert not Centre(ones * 5, np.array([7, 7, 8]), 4).is_even
    assert not Centre(np.array([5, 4, 5]), ones * 7, 4).is_even


def test_a_user_over_the_row_limit_is_divided_down(counted, monkeypatch):
    monkeypatch.setattr(counts_module, "ROW_LIMIT", 50)
    monkeypatch.setattr(reference, "ROW_LIMIT", 50)
    rows, domain = one_huge_user()
    counts, expected = counted(rows, domain), reference.ReferenceCounts(rows, domain)
    assert max(expected.rows.values()) <= 50
    assert l1_sum(counts, 7).tolist() == reference.l1_sum(expected, 7)
    assert rows_histogram(counts, EDGES).tolist() == reference.rows_histogram(expected, EDGES)


def test_nothing_larger_than_the_domain_is_collected(counted, monkeypatch):
    rows, domain = skewed()
    counts = counted(rows, domain)
    sizes = []
    fetch = counts.engine.fetch

    def watched(table, stage):
        found = fetch(table, stage)
        sizes.append(found.num_rows)
        return found

    monkeypatch.setattr(counts.engine, "fetch", watched)
    l1_sum(counts, 1)
    sampled_sum(counts, "s", 2)
    rows_histogram(counts, EDGES)
    concentration_sum(counts, 2)
    distances(counts, centre_for(len(domain))).levels([99, 100, 1000], 2)
    assert len(sizes) == 5  # all levels in one pass
    assert max(sizes) <= max(len(domain), len(EDGES))


def test_limits_keep_every_product_in_64_bits():
    """The largest integers that an engine can meet, from the public limits alone."""
    largest_square, largest_centre = MAX_STRETCH**2, MAX_STRETCH**2 * 2**MAX_BITS
    assert largest_square * counts_module.ROW_LIMIT**2 < 2**63
    assert largest_centre * counts_module.ROW_LIMIT < 2**63
    assert UNIT * 2**33 <= 2**63
    assert UNIT * counts_module.ROW_LIMIT < 2**52  # exact where an engine divides in doubles
