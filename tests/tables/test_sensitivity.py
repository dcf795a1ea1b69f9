"""Neighbouring tables: every statistic moves by what one user adds, and that is within its bound, in exact integers."""

from __future__ import annotations

import itertools
import uuid
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from crowdgram import Database
from crowdgram.errors import PrivacyViolation
from crowdgram.tables import (
    GAIN,
    HALF_BINS,
    MAX_BITS,
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
    largest_part,
    open_rows,
    read_domain,
    tally_rows,
    user_totals,
)
from crowdgram.tables.statistics import (
    Level,
    OneUser,
    UsersByDistance,
    half_of_items,
    item_set_of,
)
from crowdgram.tables.statistics.centred import sum_levels
from crowdgram.tables.statistics.user_totals import held_items_of, user_totals_of

from ..thorough import THOROUGH, examples
from .reference import placed, present, users_of
from .statistics import DISTANCE_EDGES, EDGES, REACHED, levels

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
        yield lambda table: session.createDataFrame(table).repartition(3)
        return
    import psycopg

    address = request.getfixturevalue("postgres_server")
    with psycopg.connect(address, autocommit=True) as connection:

        def put(table):
            name = f"rows_{uuid.uuid4().hex}"
            connection.execute(f"CREATE TABLE {name} (u bigint, i bigint, n bigint)")
            with connection.cursor() as cursor:
                cursor.executemany(
                    f"INSERT INTO {name} VALUES (%s, %s, %s)", [*zip(*table.to_pydict().values(), strict=True)]
                )
            return Database(address, table=name)

        yield put


def neighbours(store, others):
    """A user is added, or has other rows. On Spark if thorough: that its sums are those of `of_user`, and that it
    divides a user of more rows than count, is in the conformance suite.
    """
    name = "add-remove" if others == {} else "replace"
    return pytest.param(store, others, id=f"{store}-{name}", marks=[pytest.mark.spark] * (store == "spark"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("store", "others"),
    [
        neighbours(store, others)
        for store, others in itertools.product(("spark", "postgres"), ({}, LIGHT))
        if THOROUGH or store != "spark"
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


@pytest.mark.slow
@IN_PYTHON
@given(user_rows, st.integers(0, MAX_BITS), st.integers(1, ITEMS + 1), st.data())
def test_no_user_adds_more_than_the_bound(rows, bits, most, data):
    """Of every statistic; against any centre, and one that is next to the user's own shares, where the three terms of
    the squared distance cancel.
    """
    users = placed([OneUser(7, rows)], range(ITEMS), counted=True)
    own = None
    if users and data.draw(st.booleans()):
        near = [
            users[0].counts.get(j, 0) * 2**bits // users[0].rows + data.draw(st.integers(-2, 1)) for j in range(ITEMS)
        ]
        own = Centre(np.clip(near, 0, 2**bits), np.array(data.draw(stretches)), bits)
    tried = data.draw(statistics(own))
    tried = short(tried[0], users), *tried[1:]
    for statistic, vector in added(rows_of(7, rows), tried, most, tried[0][0].row_cap):
        check_bound(statistic, vector)
    held = held_items_of(OneUser(7, rows), "salt", most)
    assert len(held.counts) <= most
    assert held.rows <= ROW_LIMIT


@pytest.mark.parametrize(("statistic", "user"), REACHED, ids=lambda one: type(one).__name__)
def test_every_bound_is_reached(statistic, user):
    """The power of the tests: a bound that were smaller by a hundredth would fail."""
    vector, bound = statistic.of_user(user), statistic.bound
    check_bound(statistic, vector)
    assert length(vector.values(), bound.norm) >= (0.99 * bound.size) ** (1 if bound.norm == "l1" else 2)
    assert bound.entries is None or sum(map(bool, vector.values())) == bound.entries


def test_a_sum_that_is_bounded_in_l2_only_is_not_for_laplace_noise():
    assert WeightedSets(np.array([1])).bound.l2 == UNIT
    with pytest.raises(PrivacyViolation):
        WeightedSets(np.array([1])).bound.l1  # noqa: B018


@pytest.mark.slow
def test_a_tally_of_a_user_with_many_rows():
    """The draw itself, which takes too long to be part of every example."""
    statistic, cell = Tally(3, "salt"), {0: 2**16, 2: 2**15 - 1, 4: 2**15}
    counts = counted({1: cell})
    with counts.engine:
        found = counts.sum(statistic)
    assert found.takers == 1
    assert found.vector() == statistic.of_user(OneUser(1, cell))


@pytest.mark.slow
@examples(4)
@given(crowds.map(lambda crowd: {u: {i: min(n, 50) for i, n in cell.items()} for u, cell in crowd.items()}), st.data())
def test_a_user_changes_the_tails_of_few_items_by_one(crowd, data):
    """`Tallies.tails` and `seen`, which are made of the tally, under both adjacencies."""
    rows, replaced = data.draw(st.integers(1, 60)), data.draw(st.booleans())
    small = st.dictionaries(st.integers(0, ITEMS), st.integers(1, 50), max_size=ITEMS + 1)
    others = {u: cell for u, cell in crowd.items() if u != 0}
    pair = {**others, 0: data.draw(small)}, {**others, 0: data.draw(small)} if replaced else others
    near, far = (tallied(each, rows) for each in pair)
    change = np.abs(near.tails() - far.tails())
    assert change.max() <= 1
    assert (change.sum(axis=1) > 0).sum() <= min(ITEMS, (2 if replaced else 1) * rows)
    assert np.abs(near.seen() - far.seen()).sum() <= (2 if replaced else 1) * rows


def tallied(crowd, rows):
    counts = counted(crowd)
    with counts.engine:
        return counts.sum(Tally(rows, "salt"))


def test_the_tails_bound_is_reached():
    one, other = (tallied({1: cell, 2: {4: 9}}, 2) for cell in ({0: 1, 1: 1}, {2: 1, 3: 1}))
    change = np.abs(one.tails() - other.tails())
    assert (change.sum(axis=1) > 0).tolist() == [True, True, True, True, False]


def test_a_user_below_the_rows_takes_no_part_and_nobody_is_counted_at_zero():
    tails = tallied({1: {0: 3}, 2: {0: 2}, 3: {1: 5, 2: 1}}, 3).tails()
    assert tails[0].tolist() == [0, 1, 1, 1, 0]
    assert (tails[:, 0] == 0).all()
    assert tails[1:3, 1:].sum() == 3


@pytest.mark.slow
@IN_PYTHON
@given(st.dictionaries(st.integers(0, 40), st.integers(1, 1000), min_size=1, max_size=30), st.integers(1, 6), st.data())
def test_tickets_are_shares_in_the_mean(cell, most, data):
    """Over all starts, every item gets exactly its share of the tickets; and never more than one away from it."""
    total = sum(cell.values())
    up_to = before = 0
    item = data.draw(st.sampled_from(sorted(cell)))
    for each in sorted(cell):
        before, up_to = up_to, up_to + cell[each]
        if each == item:
            break
    tickets = [(most * up_to + h) // total - (most * before + h) // total for h in range(total)]
    assert sum(tickets) == most * cell[item]
    assert all(abs(one * total - most * cell[item]) < total for one in tickets)


@IN_PYTHON
@given(st.lists(st.one_of(st.just(0), st.integers(1, GAIN)), min_size=1, max_size=1024))
def test_one_set_keeps_its_norm_and_its_largest_part(gains):
    statistic = WeightedSets(np.array(gains))
    part = statistic.of_user(OneUser(7, dict.fromkeys(range(len(gains)), 1)))
    check_bound(statistic, part)
    assert max(part.values(), default=0) <= largest_part(len(gains))
    if len(set(gains)) == 1 and gains[0]:
        assert sum(x * x for x in part.values()) > 0.999 * UNIT**2  # and wastes little of it


heavy_users = (
    st.lists(st.one_of(st.integers(0, 9), st.integers(0, 2**17)), min_size=ITEMS, max_size=ITEMS)
    .filter(any)
    .map(lambda counts: OneUser(7, {j: n for j, n in enumerate(counts) if n}))
)


@IN_PYTHON
@given(heavy_users, centres, mass_scales)
def test_distances_make_up_for_more_rounding_than_there_is(user, centre, mass_scale):
    """d_u >= ||(g(u), B m_u)|| (1 + 5 2^-53), in exact arithmetic."""
    exact, above = [*centre.deviation(user), mass_scale * user.rows], 1 + 5 * Fraction(1, 2**53)
    for norm, power in (("l1", 1), ("l2", 2)):
        (level,) = levels(centre, norm, [1], 1, UNIT, mass_scale)
        assert Fraction(level.distance_of(user)) ** power >= length(exact, norm) * above**power


@pytest.mark.slow
@IN_PYTHON
@given(heavy_users, centres, all_radii, st.integers(1, 2**20), st.integers(0, 30), mass_scales)
@example(OneUser(7, {0: 1}), Centre.origin(ITEMS), [1, 2, 3], 1, 30, 0)
@example(OneUser(7, {0: 2**20}), Centre.origin(ITEMS), [2**30 - 1, 2**30], 1, 30, MAX_MASS_SCALE)
def test_all_levels_of_a_user_are_the_vector_clipped_at_the_last_radius(
    user, centre, radii, row_cap, unit_bits, mass_scale
):
    """sum_j W_uj is min(w_u, R / d_u), less the fraction that each level rounds down; and no level exceeds w_u, which
    keeps totals in 64 bits.
    """
    unit = 2**unit_bits
    for norm in ("l1", "l2"):
        each = levels(centre, norm, radii, row_cap, unit, mass_scale)
        weights = [level.weight_of(user) for level in each]
        whole = min(unit // max(user.rows, row_cap), radii[-1] / each[0].distance_of(user))
        assert whole - len(radii) - 1e-3 <= sum(weights) <= whole + 1e-3
        assert max(weights) * user.rows <= unit


@IN_PYTHON
@given(heavy_users, row_caps)
def test_a_user_is_in_the_bin_of_what_lies_in_a_half(user, row_cap):
    ((place, weight),) = UsersByHalf(ITEMS, 0, row_cap).of_user(user).items()
    inside = Fraction(sum(n for item, n in user.counts.items() if half_of_items(ITEMS, 0)[item]), user.rows)
    low, high = (Fraction(each, HALF_BINS) for each in (place - 1, place))
    assert inside == 0 if place == 0 else inside == 1 if place == HALF_BINS + 1 else low <= inside < high
    assert weight == UNIT * min(user.rows, row_cap) // row_cap


@pytest.mark.parametrize("items", [1, 2, 3, 10, 1001])
def test_halves_are_halves(items):
    for number in range(2):
        assert half_of_items(items, number).sum() == (items + 1) // 2


def test_halves_follow_no_order():
    """Neighbours are in one half as often as not, and two halves share half of their items (six deviations)."""
    first, second = (half_of_items(10_000, number) for number in range(2))
    for other in (first[1:], second[:-1]):
        assert abs((first[: len(other)] == other).mean() - 0.5) < 0.03


@pytest.mark.slow
@IN_PYTHON
@given(heavy_users, st.integers(1, 2**20), st.integers(5, 30), st.integers(1, 5))
def test_clipping_is_tight(user, row_cap, unit_bits, count):
    """The bound is not bought by throwing weight away: a clipped user keeps the radius but for a rounding a level."""
    norm = sum(n * n for n in user.counts.values()) ** 0.5
    full = 2**unit_bits // max(user.rows, row_cap)
    radii = sorted({int(full * norm / 2 * (j + 1) / count) for j in range(count)} - {0})
    assume(radii)
    weight = sum(level.weight_of(user) for level in levels(Centre.origin(ITEMS), "l2", radii, row_cap, 2**unit_bits))
    assert radii[-1] - len(radii) * norm * (1 + 1e-9) <= weight * norm <= radii[-1] * (1 + 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("bad", "named"),
    [
        ({"radii": []}, "radii"),
        ({"radii": [0, 1]}, "radii"),
        ({"radii": [2, 2]}, "radii"),
        ({"radii": [3, 2]}, "radii"),
        ({"radii": [MAX_RADIUS + 1]}, "radii"),
        ({"row_cap": 0}, "row_cap"),
        ({"unit": 0}, "unit"),
        ({"unit": 2 * UNIT}, "unit"),
        ({"mass_scale": -1}, "mass_scale"),
        ({"mass_scale": MAX_MASS_SCALE + 1}, "mass_scale"),
    ],
)
def test_levels_outside_the_limits_are_refused(bad, named):
    counts = counted({1: {0: 1}})
    with counts.engine, pytest.raises(ValueError, match=named):
        distances(counts, Centre.origin(ITEMS)).levels(**{"radii": [5], "row_cap": 1, "unit": UNIT, **bad})


@pytest.mark.parametrize("bad", [{"bits": 25}, {"stretches": 513}, {"stretches": 0}, {"coordinates": -1}])
def test_limits_of_a_centre(bad):
    zeros = np.zeros(2, dtype=np.int64)
    parts = {"bits": bad.get("bits", 3), "stretches": zeros + bad.get("stretches", 1)}
    with pytest.raises(ValueError):
        Centre(zeros + bad.get("coordinates", 0), **parts)


@pytest.mark.parametrize("size", [20, 40, 62])
@pytest.mark.parametrize("bits", [0, 7, MAX_BITS])
def test_levels_are_exact_beyond_64_bits(size, bits):
    """Some entries are computed in 64 bits, and others are not: it depends on their size."""
    made = np.random.default_rng(size + bits)
    coordinates = made.integers(0, 2**bits // 40 + 1, 40)
    level = Level(Centre(coordinates, 2 ** made.integers(0, 10, 40), bits), "l2", 1, UNIT, 0, 5, MAX_MASS_SCALE)
    for sums in (made.integers(0, 2**size, 40), np.full(40, 2**size - 1), np.zeros(40, dtype=np.int64)):
        total = sum(sums.tolist())
        terms = zip(sums.tolist(), coordinates.tolist(), level.centre.stretches.tolist(), strict=True)
        expected = [s * (2**bits * t - c * total) for t, c, s in terms]
        assert level.totals(sums).values == [*expected, MAX_MASS_SCALE * total]
