"""Neighbouring tables: every statistic moves by what one user adds, and that is within its bound, in exact integers."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowdgram import Database
from crowdgram.tables import (
    GAIN,
    MAX_MASS_SCALE,
    MAX_RADIUS,
    ROW_LIMIT,
    UNIT,
    CappedRows,
    Centre,
    ItemReach,
    RootOfItems,
    SampledRow,
    Tally,
    UsersByHalf,
    UsersByItems,
    UsersByRows,
    WeightedSets,
    count_rows,
    distances,
    find_presence,
    held_items,
    item_sets,
    open_rows,
    read_domain,
    tally_rows,
    user_totals,
)
from crowdgram.tables.statistics import (
    OneUser,
    UsersByDistance,
    held_items_of,
    item_set_of,
    user_totals_of,
)
from crowdgram.tables.statistics.centred import sum_levels

from ..thorough import THOROUGH, examples
from . import postgres
from .reference import placed, present, users_of
from .statistics import DISTANCE_EDGES, EDGES, levels

ITEMS = 5
IN_PYTHON = examples(100, 4000)

# Rows of an item: few, about the limit of all rows of a user, and beyond it.
numbers = st.one_of(
    st.sampled_from([1, 1, 2, 3, 7, 50, 400]), st.sampled_from([2**17, ROW_LIMIT - 1, ROW_LIMIT, 2**40])
)
# One user's rows: a number for each item of the domain, and one item outside it.
user_rows = st.dictionaries(st.integers(0, ITEMS), numbers, max_size=ITEMS + 1)
crowds = st.dictionaries(st.integers(-3, 3), user_rows, max_size=5)
stretches = st.one_of(st.just([1] * ITEMS), st.lists(st.integers(1, 512), min_size=ITEMS, max_size=ITEMS))
centres = st.tuples(
    st.one_of(st.just([0] * ITEMS), st.lists(st.integers(0, 2**12 // ITEMS), min_size=ITEMS, max_size=ITEMS)),
    stretches,
    st.just(12),
).map(lambda parts: Centre(np.array(parts[0]), np.array(parts[1]), parts[2]))
all_radii = st.lists(st.one_of(st.integers(1, 9), st.integers(1, MAX_RADIUS)), min_size=1, max_size=6, unique=True)
all_radii = st.one_of(all_radii.map(sorted), st.sampled_from([[1, 2, 3], [MAX_RADIUS - 1, MAX_RADIUS]]))
mass_scales = st.one_of(st.sampled_from([0, 1, MAX_MASS_SCALE]), st.integers(0, MAX_MASS_SCALE))
row_caps = st.one_of(st.integers(1, 9), st.integers(1, ROW_LIMIT))
all_gains = st.lists(st.one_of(st.just(0), st.integers(1, GAIN)), min_size=ITEMS + 1, max_size=ITEMS + 1)


@st.composite
def statistics(draw, centre=None):
    """Every statistic, with parameters of any size: of counts, of distances from a centre, of totals, and of sets."""
    row_cap, unit, against = draw(row_caps), 2 ** draw(st.integers(0, 30)), draw(centres) if centre is None else centre
    radii, mass_scale = draw(all_radii), draw(mass_scales)
    edges = sorted(draw(st.sets(st.integers(1, 2**21), min_size=1, max_size=4)))
    counts = [CappedRows(row_cap), SampledRow(row_cap, "salt"), UsersByHalf(ITEMS, 1, row_cap), UsersByRows(edges)]
    counts += [Tally(rows, "salt") for rows in (ROW_LIMIT, draw(st.integers(1, 60)))]
    measured = []
    for norm in ("l1", "l2"):
        measured += levels(against, norm, radii, row_cap, unit, mass_scale)
        measured.append(UsersByDistance(against, norm, row_cap, unit, DISTANCE_EDGES))
    totals = [UsersByRows(EDGES), RootOfItems(draw(st.integers(2, 20)))]
    bound, books = draw(st.integers(1, ITEMS + 1)), draw(st.integers(0, UNIT - 3 * ITEMS))
    groups = tuple(draw(st.lists(st.integers(-1, 3), min_size=ITEMS, max_size=ITEMS)))
    reached = [ItemReach(bound, norm, books, of) for norm in ("l1", "l2") for of in ((), groups)]
    presence = [UsersByItems(edges), *reached]
    return counts, measured, totals, [WeightedSets(np.array(draw(all_gains)))], presence


def short(tried, users):
    """Those for which no copies of many rows have to be sorted by their digests."""
    long = any(user.rows > 2**12 for user in users)
    return [one for one in tried if not (long and isinstance(one, Tally) and one.rows < ROW_LIMIT)]


def check_bound(statistic, vector, bound=None):
    """That what one user adds is within the bound that the statistic states."""
    bound, values = bound or statistic.bound, vector.values()
    assert all(type(value) is int for value in values)
    assert length(values, bound.norm) <= (bound.size if bound.norm == "l1" else bound.size**2), statistic
    assert not bound.non_negative or min(values, default=0) >= 0, statistic
    assert bound.entries is None or sum(map(bool, values)) <= bound.entries, statistic


def length(vector, norm):
    """The l1 norm, or the square of the l2 norm, in integers."""
    return sum(abs(x) for x in vector) if norm == "l1" else sum(x * x for x in vector)


def difference(one, other):
    """one - other, without zeros."""
    keys = one.keys() | other.keys()
    return {key: value for key in keys if (value := one.get(key, 0) - other.get(key, 0))}


def opened(crowd, store=lambda table: table):
    """Tables of rows that count for many, wherever `store` puts them."""
    rows = [(user, item, n) for user, cell in crowd.items() for item, n in cell.items()]
    columns = {name: pa.array([row[j] for row in rows], pa.int64()) for j, name in enumerate(("u", "i", "n"))}
    return open_rows(store(pa.table(columns)), user="u", item="i", count="n")


def counted(crowd):
    rows = opened(crowd)
    return count_rows(rows, read_domain(range(ITEMS), rows.item_type))


def engine_sums(crowd, tried, most, row_cap, store=lambda table: table):
    """The sum of every statistic, by the engine; those over items that nobody listed by the items' values."""
    counts_statistics, measured, totals_statistics, sets_statistics, presence_statistics = tried
    # A server's rows are streamed, once: each way to read them has a table of its own.
    rows, again, listed = (opened(crowd, store) for _ in range(3))
    with rows.engine, again.engine, listed.engine:
        counts = count_rows(rows, read_domain(range(ITEMS), rows.item_type))
        sums = [counts.sum(statistic).vector() for statistic in counts_statistics]
        near = {norm: distances(counts, measured[0].centre, norm) for norm in ("l1", "l2")}
        for norm, view in near.items():
            own = [statistic for statistic in measured if statistic.norm == norm]
            sums += [level.vector() for level in sum_levels(view, own[:-1])]
            sums.append(view.sum(own[-1]).vector())
        tallied = tally_rows(again)
        totals, held, sets = user_totals(tallied), held_items(tallied, "salt", most), item_sets(tallied, "salt", most)
        sums += [totals.sum(statistic).vector() for statistic in totals_statistics]
        places, found = held.sum(row_cap)
        assert found.bound.entries == most
        of_place = {place: item for item, place in held.named(places).items()}
        sums.append({of_place[place]: int(value) for place, value in zip(places, found.values, strict=True)})
        items = again.engine.fetch(sets.places, "looking").to_pydict()
        of_item = dict(zip(items["idx"], items["item"], strict=True))
        for statistic in sets_statistics:
            by_place = WeightedSets(np.array([statistic.gains[of_item[j]] for j in range(sets.items)], dtype=np.int64))
            sums.append({of_item[j]: value for j, value in sets.sum(by_place).vector().items()})
        presence = find_presence(listed, read_domain(range(ITEMS), listed.item_type))
        sums += [presence.sum(statistic).vector() for statistic in presence_statistics]
    return sums


def added(rows, tried, most, row_cap):
    """What one user adds to each of `engine_sums`, in plain Python: statistic, vector."""
    counts_statistics, measured, totals_statistics, sets_statistics, presence_statistics = tried
    users = users_of([(*row, n) for row, n in rows.items()], counted=True)
    limited = placed(users, range(ITEMS), counted=True)
    views = [
        *((statistic, limited) for statistic in [*counts_statistics, *measured]),
        *((statistic, map(user_totals_of, users)) for statistic in totals_statistics),
        (CappedRows(row_cap), [held_items_of(user, "salt", most) for user in users]),
        *((statistic, [item_set_of(user, "salt", most) for user in users]) for statistic in sets_statistics),
        *((statistic, present(users, range(ITEMS))) for statistic in presence_statistics),
    ]
    return [(statistic, statistic.of_user(*seen) if (seen := list(each)) else {}) for statistic, each in views]


def rows_of(user, cell):
    return {(user, item): n for item, n in cell.items()}


@pytest.mark.slow
@examples(6, 90)
@given(
    crowds, st.integers(-3, 3), user_rows, st.one_of(st.just({}), user_rows), statistics(), st.integers(1, ITEMS + 1)
)
def test_neighbouring_tables_differ_by_what_one_user_adds(crowd, user, rows, others, tried, most):
    """A user is added or removed, or has other rows: every sum changes by exactly what the user adds, then and now,
    and that is within the bound.
    """
    counts_statistics, *rest = tried
    everybody = [OneUser(0, cell) for cell in (*crowd.values(), rows, others)]
    row_cap = counts_statistics[0].row_cap
    tried = short(counts_statistics, everybody), *rest
    sums = [engine_sums({**crowd, user: cell}, tried, most, row_cap) for cell in (rows, others)]
    parts = [added(rows_of(user, cell), tried, most, row_cap) for cell in (rows, others)]
    for one, other, (statistic, now), (_, then) in zip(*sums, *parts, strict=True):
        assert difference(one, other) == difference(now, then), statistic
        check_bound(statistic, now)
        check_bound(statistic, then)


CROWD = {-1: {0: 3, 4: 1}, 0: {5: 7}, 2: {0: 1, 1: 1, 2: 1, 3: 1, 4: 1}, 3: {2: 400}}
HEAVY, LIGHT = {0: ROW_LIMIT - 1, 1: 2**40, 5: 2}, {3: 1, 4: 7}
CENTRE = Centre(np.array([800, 100, 0, 7, 819]), np.array([1, 2, 3, 512, 1]), 12)
TRIED = (
    [CappedRows(7), SampledRow(7, "salt"), UsersByHalf(ITEMS, 0, 7), UsersByRows(EDGES), Tally(ROW_LIMIT, "salt")],
    [
        one
        for norm in ("l1", "l2")
        for one in (
            *levels(CENTRE, norm, [9, 2**30, MAX_RADIUS], 7, 2**20, 3),
            UsersByDistance(CENTRE, norm, 7, 2**20, DISTANCE_EDGES),
        )
    ],
    [UsersByRows(EDGES), RootOfItems(16)],
    [WeightedSets(np.array([GAIN, 1, 3, 0, 9, GAIN // 2]))],
    [UsersByItems([1, 3]), *(ItemReach(2, norm, 2**26, of) for norm in ("l1", "l2") for of in ((), (0, 0, 1, -1, 2)))],
)


@pytest.fixture
def store(request):
    """Puts a table into another engine, or on a server."""
    if request.param == "spark":
        session = request.getfixturevalue("spark")
        yield lambda table: session.createDataFrame(table.to_pandas()).repartition(3)
        return
    if why := postgres.missing():
        pytest.skip(why)
    import psycopg

    with postgres.server() as address, psycopg.connect(address, autocommit=True) as connection:
        numbers = itertools.count()

        def put(table):
            name = f"rows_{next(numbers)}"
            connection.execute(f"CREATE TABLE {name} (u bigint, i bigint, n bigint)")
            with connection.cursor() as cursor:
                cursor.executemany(
                    f"INSERT INTO {name} VALUES (%s, %s, %s)", [*zip(*table.to_pydict().values(), strict=True)]
                )
            return Database(address, table=name)

        yield put


def neighbours(store, others):
    """A user is added, or has other rows. On Spark, whose sums are those of `of_user` in the conformance suite, the
    first is enough; both if thorough.
    """
    name = "add-remove" if others == {} else "replace"
    return pytest.param(store, others, id=f"{store}-{name}", marks=[pytest.mark.spark] * (store == "spark"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("store", "others"),
    [
        neighbours(store, others)
        for store, others in itertools.product(("spark", "postgres"), ({}, LIGHT))
        if THOROUGH or store != "spark" or others == {}
    ],
    indirect=["store"],
)
def test_neighbours_on_other_engines_and_servers_differ_by_what_one_user_adds(store, others):
    """As above, on Spark and PostgreSQL: the same exact integers for a user of more rows than count."""
    sums = [engine_sums({**CROWD, 1: cell}, TRIED, 4, 7, store) for cell in (HEAVY, others)]
    parts = [added(rows_of(1, cell), TRIED, 4, 7) for cell in (HEAVY, others)]
    for one, other, (statistic, now), (_, then) in zip(*sums, *parts, strict=True):
        assert difference(one, other) == difference(now, then), statistic
        check_bound(statistic, now)
        check_bound(statistic, then)
