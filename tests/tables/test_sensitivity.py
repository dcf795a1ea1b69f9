"""Neighbouring tables: every bounded sum moves by no more than it states, in exact integers."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from crowdgram.tables import (
    GAIN,
    MAX_MASS_SCALE,
    MAX_RADIUS,
    UNIT,
    Centre,
    concentration_sum,
    count_rows,
    distances,
    held_items,
    holdings,
    item_sets,
    l1_sum,
    largest_part,
    open_rows,
    read_domain,
    rows_histogram,
    sampled_sum,
    tally,
    tally_rows,
)

from ..thorough import examples
from . import reference

ITEMS = 5
EDGES = [1, 2, 4, 9, 30, 100]
IN_PYTHON = examples(100, 4000)

# One user's rows: a count for each item of the domain, and one item outside it.
user_rows = st.dictionaries(st.integers(0, ITEMS), st.sampled_from([1, 1, 2, 3, 7, 50, 400]), max_size=ITEMS + 1)
crowds = st.dictionaries(st.integers(-3, 3), user_rows, max_size=5)
centres = st.tuples(
    st.one_of(st.just([0] * ITEMS), st.lists(st.integers(0, 2**12 // ITEMS), min_size=ITEMS, max_size=ITEMS)),
    st.one_of(st.just([1] * ITEMS), st.lists(st.integers(1, 512), min_size=ITEMS, max_size=ITEMS)),
).map(lambda pair: Centre(np.array(pair[0]), np.array(pair[1]), 12))
all_radii = st.lists(st.one_of(st.integers(1, 9), st.integers(1, MAX_RADIUS)), min_size=1, max_size=6, unique=True)
all_radii = st.one_of(all_radii.map(sorted), st.sampled_from([[1, 2, 3], [MAX_RADIUS - 1, MAX_RADIUS]]))
mass_scales = st.one_of(st.sampled_from([0, 1, MAX_MASS_SCALE]), st.integers(0, MAX_MASS_SCALE))


def opened(crowd):
    rows = [(u, i) for u, cell in crowd.items() for i, n in cell.items() for _ in range(n)]
    table = pa.table({"u": pa.array([r[0] for r in rows], pa.int64()), "i": pa.array([r[1] for r in rows], pa.int64())})
    return open_rows(table, user="u", item="i")


def counted(crowd):
    rows = opened(crowd)
    return count_rows(rows, read_domain(range(ITEMS), rows.item_type))


@st.composite
def neighbours(draw):
    """Two tables that differ in all rows of one user, and whether that user is in both (replaced) or in one."""
    crowd = draw(crowds)
    user = draw(st.integers(-3, 3))
    with_user, without = {**crowd, user: draw(user_rows)}, {u: c for u, c in crowd.items() if u != user}
    if draw(st.booleans()):
        return with_user, {**without, user: draw(user_rows)}, True
    return with_user, without, False


def moved(one, other):
    change = [int(a) - int(b) for a, b in zip(one, other, strict=True)]
    return sum(abs(c) for c in change), sum(c * c for c in change)


def length(vector, norm):
    """The l1 norm, or the square of the l2 norm, in integers."""
    return sum(abs(x) for x in vector) if norm == "l1" else sum(x * x for x in vector)


def widths(radii):
    return [high - low for low, high in pairwise([0, *radii])]


@pytest.mark.slow
@examples(12)
@given(neighbours(), st.integers(1, 500), centres, all_radii, st.integers(1, 30), mass_scales)
def test_no_sum_moves_further_than_its_bound(pair, row_cap, centre, radii, unit_bits, mass_scale):
    one, other, replaced = pair
    times = 2 if replaced else 1
    a, b = counted(one), counted(other)
    with a.engine, b.engine:
        for sums in (
            (l1_sum(a, row_cap), l1_sum(b, row_cap)),
            (sampled_sum(a, "salt", row_cap), sampled_sum(b, "salt", row_cap)),
            (concentration_sum(a, row_cap), concentration_sum(b, row_cap)),
        ):
            l1, l2_squared = moved(*sums)
            assert l1 <= times * UNIT
            assert l2_squared <= times * UNIT**2  # sqrt(2) UNIT when replaced: the vectors are non-negative
        assert moved(rows_histogram(a, EDGES), rows_histogram(b, EDGES))[0] <= times
        for against, factor in ((centre, times**2), (Centre.origin(ITEMS), times)):
            for norm in ("l1", "l2"):
                near, far = distances(a, against, norm), distances(b, against, norm)
                sums = [each.levels(radii, row_cap, 2**unit_bits, mass_scale) for each in (near, far)]
                for here, there, width in zip(*sums, widths(radii), strict=True):
                    l1, l2_squared = moved(here.vector(), there.vector())
                    assert (l1 <= times * width) if norm == "l1" else (l2_squared <= factor * width**2)
                    assert abs(here.total_weight - there.total_weight) <= 2**unit_bits
            edges = [2.0**j for j in range(0, 60, 4)]
            assert moved(near.histogram(edges, row_cap), far.histogram(edges, row_cap))[0] <= times


@pytest.mark.slow
@examples(8)
@given(neighbours(), st.integers(1, 60))
def test_a_user_changes_the_tallies_of_few_items_by_one(pair, rows):
    one, other, replaced = pair
    a, b = counted(one), counted(other)
    with a.engine, b.engine:
        near, far = tally(a, rows, "salt"), tally(b, rows, "salt")
    change = np.abs(near.tails() - far.tails())
    assert change.max() <= 1
    assert (change.sum(axis=1) > 0).sum() <= min(ITEMS, (2 if replaced else 1) * rows)
    assert np.abs(near.seen() - far.seen()).sum() <= (2 if replaced else 1) * rows


def test_the_tallies_bound_is_reached():
    one, other = counted({1: {0: 1, 1: 1}, 2: {4: 9}}), counted({1: {2: 1, 3: 1}, 2: {4: 9}})
    with one.engine, other.engine:
        change = np.abs(tally(one, 2, "s").tails() - tally(other, 2, "s").tails())
    assert (change.sum(axis=1) > 0).tolist() == [True, True, True, True, False]


def test_a_user_below_the_rows_takes_no_part_and_nobody_is_counted_at_zero():
    crowd = counted({1: {0: 3}, 2: {0: 2}, 3: {1: 5, 2: 1}})
    with crowd.engine:
        tails = tally(crowd, 3, "s").tails()
    assert tails[0].tolist() == [0, 1, 1, 1, 0]
    assert (tails[:, 0] == 0).all()
    assert tails[1:3, 1:].sum() == 3


def set_sums(crowd, gains, most):
    """The sum over sets of items, by item; zero for an item that nobody has."""
    rows = opened(crowd)
    with rows.engine:
        sets = item_sets(tally_rows(rows), "salt", most)
        placed = rows.engine.fetch(sets.places, "looking").to_pydict()
        given = np.zeros(sets.items, dtype=np.int64)
        for item, idx in zip(placed["item"], placed["idx"], strict=True):
            given[idx] = gains[item]
        totals = sets.sum(given)
        found = [0] * len(gains)
        for item, idx in zip(placed["item"], placed["idx"], strict=True):
            found[item] = int(totals[idx])
        return found


@pytest.mark.slow
@examples(8)
@given(
    neighbours(),
    st.lists(st.one_of(st.just(0), st.integers(1, GAIN)), min_size=ITEMS + 1, max_size=ITEMS + 1),
    st.integers(1, ITEMS + 1),
)
def test_sets_of_items_move_no_further_than_their_bound(pair, gains, most):
    one, other, replaced = pair
    _, l2_squared = moved(set_sums(one, gains, most), set_sums(other, gains, most))
    assert l2_squared <= (2 if replaced else 1) * UNIT**2  # the vectors are non-negative


def held_sums(crowd, most, row_cap):
    """The sum over what users hold, by item, zero for an item that nobody has; and users by items and by rows."""
    rows = opened(crowd)
    with rows.engine:
        tallied = tally_rows(rows)
        users, held = holdings(tallied), held_items(tallied, "salt", most)
        places, totals = held.sum(row_cap)
        value, by_item = dict(zip(places.tolist(), totals.tolist(), strict=True)), [0] * (ITEMS + 1)
        for item, place in held.named(places).items():
            by_item[item] = value[place]
        assert all(value.values())
        return by_item, users.by_size(EDGES), users.by_rows(EDGES)


@pytest.mark.slow
@examples(4)
@given(neighbours(), st.integers(1, ITEMS + 1), st.sampled_from([1, 3, 400]))
def test_what_users_hold_moves_no_further_than_its_bound(pair, most, row_cap):
    one, other, replaced = pair
    times = 2 if replaced else 1
    (sums, *histograms), (far, *others) = held_sums(one, most, row_cap), held_sums(other, most, row_cap)
    assert moved(sums, far)[0] <= times * UNIT
    assert sum(a != b for a, b in zip(sums, far, strict=True)) <= times * most
    for a, b in zip(histograms, others, strict=True):
        assert moved(a, b)[0] <= times


def test_what_users_hold_reaches_its_bound():
    sums, *_ = held_sums({1: {0: 3, 1: 2, 2: 7, 3: 1, 4: 1}}, 2, 1)
    assert UNIT - 12 < sum(sums) <= UNIT
    assert sum(x > 0 for x in sums) == 2


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
    part = reference.set_part(range(len(gains)), gains)
    assert sum(x * x for x in part.values()) <= UNIT**2
    assert max(part.values(), default=0) <= largest_part(len(gains))
    if len(set(gains)) == 1 and gains[0]:
        assert sum(x * x for x in part.values()) > 0.999 * UNIT**2  # and wastes little of it


huge_rows = st.lists(st.one_of(st.integers(0, 9), st.integers(0, 2**17)), min_size=ITEMS, max_size=ITEMS).filter(
    lambda counts: 0 < sum(counts) <= reference.ROW_LIMIT
)


@pytest.mark.slow
@IN_PYTHON
@given(huge_rows, st.integers(0, 24), all_radii, st.integers(1, 2**20), st.integers(0, 30), mass_scales, st.data())
def test_every_level_keeps_its_width_under_cancellation(counts, bits, radii, row_cap, unit_bits, mass_scale, data):
    """Centres next to the user's own shares, where the three terms of the squared distance cancel."""
    rows = sum(counts)
    own = [min(max(n * 2**bits // rows + data.draw(st.integers(-2, 1)), 0), 2**bits) for n in counts]
    stretches = data.draw(st.lists(st.integers(1, 512), min_size=ITEMS, max_size=ITEMS))
    centre = Centre(np.array(own), np.array(stretches), bits)
    cell = {j: n for j, n in enumerate(counts) if n}
    for norm in ("l1", "l2"):
        levels = reference.levels_of_user(cell, rows, centre, norm, radii, row_cap, 2**unit_bits, mass_scale)
        for level, width in zip(levels, widths(radii), strict=True):
            assert length(level, norm) <= (width if norm == "l1" else width**2)


@IN_PYTHON
@given(huge_rows, centres, mass_scales)
def test_distances_make_up_for_more_rounding_than_there_is(counts, centre, mass_scale):
    """d_u >= ||(g(u), B m_u)|| (1 + 5 2^-53), in exact arithmetic."""
    cell, rows = {j: n for j, n in enumerate(counts) if n}, sum(counts)
    exact, above = reference.extended(cell, rows, centre, mass_scale), 1 + 5 * Fraction(1, 2**53)
    for norm, power in (("l1", 1), ("l2", 2)):
        found = Fraction(reference.distance(cell, rows, centre, norm, mass_scale))
        assert found**power >= length(exact, norm) * above**power


@pytest.mark.slow
@IN_PYTHON
@given(huge_rows, centres, all_radii, st.integers(1, 2**20), st.integers(0, 30), mass_scales)
@example([1, 0, 0, 0, 0], Centre.origin(ITEMS), [1, 2, 3], 1, 30, 0)
@example([2**20, 0, 0, 0, 0], Centre.origin(ITEMS), [2**30 - 1, 2**30], 1, 30, MAX_MASS_SCALE)
def test_all_levels_of_a_user_are_the_vector_clipped_at_the_last_radius(
    counts, centre, radii, row_cap, unit_bits, mass_scale
):
    """sum_j W_uj is min(w_u, R / d_u), less the fraction that each level rounds down; and no level exceeds w_u, which
    keeps totals in 64 bits.
    """
    cell, rows, unit = {j: n for j, n in enumerate(counts) if n}, sum(counts), 2**unit_bits
    for norm in ("l1", "l2"):
        weights = reference.level_weights(cell, rows, centre, norm, radii, row_cap, unit, mass_scale)
        base = unit // max(rows, row_cap)
        whole = min(base, radii[-1] / reference.distance(cell, rows, centre, norm, mass_scale))
        assert whole - len(radii) - 1e-3 <= sum(weights) <= whole + 1e-3
        assert max(weights) * rows <= unit


@IN_PYTHON
@given(huge_rows, st.one_of(st.integers(1, 9), st.integers(1, 2**20)))
def test_concentration_keeps_its_bound_and_is_a_mean_of_squares(counts, row_cap):
    rows, squares = sum(counts), sum(n * n for n in counts)
    one, rest = reference.concentration(squares, rows, row_cap)
    assert one >= 0
    assert rest >= 0
    assert one + rest <= UNIT
    weight = min(rows, row_cap) ** 2 / row_cap**2
    assert abs(one + rest - weight * UNIT) <= 1
    assert abs(one - weight * squares / rows**2 * UNIT) <= 1


def test_concentration_reaches_its_bound_where_rounding_could_exceed_it():
    """All rows of one item: both numbers are the same quotient, for caps whose square does not divide a power of 2."""
    for row_cap in (3, 7, 1000, 2**20 - 1):
        for rows in (1, 2, row_cap - 1, row_cap, row_cap + 1, 2**20):
            one, rest = reference.concentration(rows**2, rows, row_cap)
            assert rest == 0
            assert one == UNIT * min(rows, row_cap) ** 2 // row_cap**2


@pytest.mark.slow
@IN_PYTHON
@given(huge_rows, st.integers(1, 2**20), st.integers(5, 30), st.integers(1, 5))
def test_clipping_is_tight(counts, row_cap, unit_bits, count):
    """The bound is not bought by throwing weight away: a clipped user keeps the radius but for a rounding a level."""
    cell = {j: n for j, n in enumerate(counts) if n}
    rows = sum(counts)
    centre = Centre.origin(ITEMS)
    norm = sum(n * n for n in counts) ** 0.5
    full = 2**unit_bits // max(rows, row_cap)
    radii = sorted({int(full * norm / 2 * (j + 1) / count) for j in range(count)} - {0})
    assume(radii)
    levels = reference.levels_of_user(cell, rows, centre, "l2", radii, row_cap, 2**unit_bits)
    together = length(np.array(levels, dtype=object).sum(axis=0), "l2") ** 0.5
    assert radii[-1] - len(radii) * norm * (1 + 1e-9) <= together <= radii[-1]


def test_the_suite_notices_a_bound_that_is_too_small():
    """Its power: two users at the bound move a sum by all of it, and each level by all of its width."""
    one, other = counted({1: {0: 400}, 2: {1: 3}}), counted({1: {2: 400}, 2: {1: 3}})
    with one.engine, other.engine:
        l1, _ = moved(l1_sum(one, 1), l1_sum(other, 1))
        assert l1 > 2 * UNIT * 0.999
        centre = Centre(np.full(ITEMS, 2**12 // ITEMS), np.ones(ITEMS, dtype=np.int64), 12)
        radii = [2**38, 2**39, 2**40]
        for norm in ("l1", "l2"):
            sums = [distances(counts, centre, norm).levels(radii, 1) for counts in (one, other)]
            for here, there, width in zip(*sums, widths(radii), strict=True):
                l1, l2_squared = moved(here.vector(), there.vector())
                assert l1 > 1.2 * width if norm == "l1" else l2_squared > 1.2 * width**2
    spread, alone = counted({1: dict.fromkeys(range(ITEMS), 1)}), counted({1: {0: 400}})
    with spread.engine, alone.engine:
        l1, _ = moved(concentration_sum(spread, 1), concentration_sum(alone, 1))
        assert l1 == pytest.approx(2 * (1 - 1 / ITEMS) * UNIT)


@pytest.mark.slow
@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("bits", [0, 4, 12, 24])
@pytest.mark.parametrize("mass_scale", [0, 3, MAX_MASS_SCALE])
def test_a_centre_that_rounds_to_zero_keeps_the_radius(bits, norm, mass_scale):
    """With bits > 0 it is not the origin: deviations are then 2^bits times the counts."""
    zeros = np.zeros(ITEMS, dtype=np.int64)
    one = counted({1: {0: 10}})
    with one.engine:
        for radii in ([1, 2, 3], [2**10], [2**40, MAX_RADIUS]):
            near = distances(one, Centre(zeros, zeros + 1, bits), norm)
            for level, width in zip(near.levels(radii, 1, UNIT, mass_scale), widths(radii), strict=True):
                assert length(level.vector(), norm) <= (width if norm == "l1" else width**2)


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
        distances(counts, Centre.origin(ITEMS)).levels(**{"radii": [5], "row_cap": 1, **bad})


@pytest.mark.parametrize("bad", [{"bits": 25}, {"stretches": 513}, {"stretches": 0}, {"coordinates": -1}])
def test_limits_of_a_centre(bad):
    zeros = np.zeros(2, dtype=np.int64)
    parts = {"bits": bad.get("bits", 3), "stretches": zeros + bad.get("stretches", 1)}
    with pytest.raises(ValueError):
        Centre(zeros + bad.get("coordinates", 0), **parts)
