"""Attacks on arithmetic: what broke floating-point implementations must not move the integers that are released.

After Mironov, "On Significance of the Least Significant Bits for Differential Privacy" (2012); Casacuberta, Shoemate,
Vadhan and Wagaman, "Widespread Underestimation of Sensitivity in Differentially Private Libraries and How to Fix It"
(2022); Haney et al., "Precision-based Attacks and Interval Refining" (2022). Each attack is first shown to work on what
it was made for.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from crowdgram.audit.mutants import FLOAT_CAP, MECHANISM_MUTANTS
from crowdgram.errors import EngineFailure
from crowdgram.mechanisms.pilot_queries import HISTOGRAM_UNIT
from crowdgram.privacy.noise import MAX_SCALE, add_discrete_gaussian, add_discrete_laplace
from crowdgram.tables import (
    HALF_BINS,
    MAX_BITS,
    MAX_MASS_SCALE,
    MAX_RADIUS,
    MAX_STRETCH,
    ROW_LIMIT,
    UNIT,
    CappedRows,
    Centre,
    Counts,
    SampledRow,
    UsersByHalf,
    distances,
    known_counts,
)
from crowdgram.tables.engines import DuckEngine, engine_for
from crowdgram.tables.statistics.base import weighted_totals

FLOAT_PAIR = next(mutant.pairs[0] for mutant in MECHANISM_MUTANTS if mutant.broken.name == "float-sum")
RADII = [1, 2, 3, 2**35 + 1, MAX_RADIUS - 1, MAX_RADIUS]
WIDTHS = [high - low for low, high in pairwise([0, *RADII])]
SIZES = [2**31 - 1, 2**31, 2**31 + 1, 2**53 - 1, 2**53 + 1, 2**61 + 7]


def cells_of(users, order=None):
    cells = [(user, item, n) for user, rows in users.items() for item, n in rows.items()]
    if order is not None:
        cells = [cells[j] for j in order.permutation(len(cells))]
    return pa.table(
        {name: pa.array([cell[j] for cell in cells], pa.int64()) for j, name in enumerate(("user", "idx", "n"))}
    )


def counts_of(engine, users, items, order=None):
    return known_counts(engine, cells_of(users, order), items)


def capped(row_cap, items):
    return CappedRows(row_cap), SampledRow(row_cap, "salt"), UsersByHalf(items, 0, row_cap)


def single_precision(users):
    """What a naive sum of 32-bit floats makes of full users and small ones, in rows."""
    rows = np.array([sum(users[user].values()) for user in sorted(users)], dtype=np.float32)
    return int(np.cumsum(rows, dtype=np.float32)[-1])


def test_a_user_who_moves_a_float_sum_by_twice_the_bound_moves_ours_by_the_bound():
    assert single_precision(FLOAT_PAIR.first) - single_precision(FLOAT_PAIR.second) == 2 * FLOAT_CAP
    with DuckEngine.embedded() as one, DuckEngine.embedded() as other:
        with_user = counts_of(one, FLOAT_PAIR.first, 2).sum(CappedRows(FLOAT_CAP)).values
        without = counts_of(other, FLOAT_PAIR.second, 2).sum(CappedRows(FLOAT_CAP)).values
    assert (with_user - without).tolist() == [UNIT, 0]


def test_the_order_of_rows_moves_a_float_sum_and_not_ours():
    rng = np.random.default_rng(5)
    users = {u: {i: int(n) for i, n in enumerate(rng.integers(1, 3000, 7))} for u in range(300)}
    shares = np.concatenate([[1 / sum(rows.values())] * len(rows) for rows in users.values()])
    assert len({float(np.cumsum(rng.permutation(shares))[-1]) for _ in range(20)}) > 1
    centre = Centre(np.full(7, 2**20 // 7), 2 ** np.arange(7), 20)
    seen = set()
    for _ in range(3):
        with DuckEngine.embedded() as engine:
            counts = counts_of(engine, users, 7, rng)
            near = distances(counts, centre, "l2")
            seen.add(
                (
                    *(tuple(counts.sum(each).values.tolist()) for each in capped(100, counts.items)),
                    *(tuple(level.values) for level in near.levels([2**38, 2**40], 10, UNIT, 2**20)),
                    tuple(near.histogram([1e9, 1e12, 1e15], 10, UNIT).values.tolist()),
                )
            )
    assert len(seen) == 1


@pytest.mark.parametrize("bits", [30, 56])
@pytest.mark.parametrize("add", [add_discrete_gaussian, add_discrete_laplace])
def test_low_bits_of_the_noise_tell_nothing(add, bits):
    """The last three bits are uniform, whatever the value was: p-values above 1e-7 in four tests."""
    values = np.full(4000, 8 * 2**20, dtype=np.int64)  # low bits all zero
    seen = np.bincount(add(values, 2.0**bits) & 7, minlength=8)
    assert stats.chisquare(seen).pvalue > 1e-7


def test_low_bits_of_float_noise_would_tell():
    """Noise that is made in doubles and scaled has no low bits left at 2^56: the test above can fail."""
    made = np.random.default_rng(1).laplace(0.0, MAX_SCALE, 4000)
    large = np.abs(made) > 2.0**56
    seen = np.bincount(made[large].astype(np.int64) & 7, minlength=8)
    assert stats.chisquare(seen).pvalue < 1e-7


def sums_of(users):
    """By statistic, what is summed of these users, with and without a centre."""
    with DuckEngine.embedded() as engine:
        counts = counts_of(engine, users, 2)
        plain = [counts.sum(each).values for cap in (1, 5, ROW_LIMIT) for each in capped(cap, counts.items)]
        centre = Centre(np.array([2**23, 2**23]), np.array([1, MAX_STRETCH]), MAX_BITS)
        levels = {}
        for norm in ("l1", "l2"):
            near = distances(counts, centre, norm)
            for mass_scale in (0, MAX_MASS_SCALE):
                levels[norm, mass_scale] = [level.values for level in near.levels(RADII, 1, UNIT, mass_scale)]
    return plain, levels


CROWD = {user: {0: 2, 1: 3} for user in range(5)}


@pytest.fixture(scope="module")
def sums_of_the_crowd():
    return sums_of(CROWD)


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
def test_huge_counts_keep_the_bound(size, sums_of_the_crowd):
    """A user with `size` rows of one item beside three of another, in a crowd of ordinary users."""
    with_user, without = sums_of({**CROWD, 9: {0: size, 1: 3}}), sums_of_the_crowd
    for a, b in zip(with_user[0], without[0], strict=True):
        change = a - b
        assert change.min() >= 0
        assert 0.99 * UNIT < change.sum() <= UNIT
    for (norm, mass_scale), levels in with_user[1].items():
        for a, b, width in zip(levels, without[1][norm, mass_scale], WIDTHS, strict=True):
            change = [x - y for x, y in zip(a, b, strict=True)]
            assert length(change, norm) <= (width if norm == "l1" else width**2)


def length(vector, norm):
    """The l1 norm, or the square of the l2 norm, in integers."""
    return sum(abs(x) for x in vector) if norm == "l1" else sum(x * x for x in vector)


def test_a_user_with_more_rows_than_64_bits_count_still_weighs_one_user():
    with DuckEngine.embedded() as engine:
        counts = counts_of(engine, {1: {0: 2**62, 1: 2**62, 2: 2**62}}, 3)
        total = counts.sum(CappedRows(1)).values
    assert 0.99 * UNIT < total.sum() <= UNIT
    assert len(set(total.tolist())) == 1


@pytest.mark.slow
@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("bits", [3, 12, MAX_BITS])
def test_users_at_the_centre_whose_norm_cancels_keep_the_radius(norm, bits):
    """Counts that are m times the centre but for a row or two: ||g||^2 is what is left of terms 2^40 times as large."""
    items, rng = 8, np.random.default_rng(3)
    shares = rng.dirichlet(np.ones(items))
    centre = Centre(np.floor(shares * 2**bits).astype(np.int64), rng.integers(1, MAX_STRETCH + 1, items), bits)
    users = {}
    for user, rows in enumerate([64, 1000, 2**14, 2**19, 2**20 - 64] * 4):
        near = np.floor(shares * rows).astype(np.int64) + rng.integers(0, 2, items)
        users[user] = {j: int(n) for j, n in enumerate(near) if n}
    with DuckEngine.embedded() as engine:
        everyone = counts_of(engine, users, items)
        measured = engine.fetch(distances(everyone, centre, norm).table, "testing").to_pydict()
        found = dict(zip(measured["user"], measured["distance"], strict=True))
        alone = [counts_of(engine, {user: users[user]}, items) for user in (3, 4, 9)]
        for counts in alone:
            near = distances(counts, centre, norm)
            for mass_scale in (0, 1, MAX_MASS_SCALE):
                for level, width in zip(near.levels(RADII, 1, UNIT, mass_scale), WIDTHS, strict=True):
                    assert length(level.values, norm) <= (width if norm == "l1" else width**2)
    for user, rows in users.items():
        m, C, s = sum(rows.values()), centre.coordinates.tolist(), centre.stretches.tolist()
        exact = length([s[j] * (2**bits * rows.get(j, 0) - m * C[j]) for j in range(items)], norm)
        upper = Fraction(found[user])
        assert upper >= exact if norm == "l1" else upper**2 >= exact


def test_a_narrow_level_far_out_keeps_its_width_where_quotients_cancel():
    """h = 2^20 (1, 1): 25 h is longer than the width, by 0.009. R_2/d - R_1/d in doubles is 25 nevertheless."""
    low, high = 733930165228166, 733930202300926
    square, zeros = 2 * 4**20, np.zeros(2, dtype=np.int64)
    assert 25**2 * square > (high - low) ** 2
    with DuckEngine.embedded() as engine:
        near = distances(counts_of(engine, {1: {0: 1, 1: 1}}, 2), Centre(zeros, zeros + 1, 20), "l2")
        d = engine.fetch(near.table, "testing")["distance"][0].as_py()
        assert d**2 > square
        assert float(high) / d - float(low) / d >= 25  # the attack: this by itself would exceed the width
        _, level = near.levels([low, high], 1, UNIT)
    assert level.values == [24 * 2**20] * 2 + [0]
    assert length(level.values, "l2") <= (high - low) ** 2


def test_the_limits_of_size_hold_for_the_constants_as_they_are():
    """The table at the end of docs/proofs/bounded-sums.md, recomputed: nothing leaves 64 bits below 2^33 users."""
    people = 2**33 - 1
    top = 2**63
    scale, coordinate = MAX_STRETCH, 2**MAX_BITS
    assert UNIT * people < top
    assert HISTOGRAM_UNIT * people < top
    assert UNIT * ROW_LIMIT < 2**52  # SampledRow's product, divided in doubles by some engines
    assert scale**2 * ROW_LIMIT**2 < top
    assert scale**2 * coordinate * ROW_LIMIT < top
    assert scale * 2 * ROW_LIMIT * coordinate * 2 < top  # l1: |2^b N - m C| + m C for each item, and their sum
    assert MAX_RADIUS < 2**53  # an exact double
    assert MAX_MASS_SCALE * ROW_LIMIT <= 2**53  # so is a user's mass, times its scale
    assert scale * coordinate == MAX_MASS_SCALE
    assert HALF_BINS * ROW_LIMIT < 2**52  # UsersByHalf's, too
    assert UNIT * (people + 1) == top


def overflowing(engine):
    """Four users whose weighted sum is 2^62, 2^63 and far beyond."""
    counts = Counts(engine, engine.upload(cells_of({u: {0: 2**20} for u in range(4)}), "testing"), None, 1)
    users = pa.array(range(4), pa.int64())
    for bits in (40, 41, 62):
        columns = {"small": [1] * 4, "weight": [2**bits] * 4}
        weights = pa.table({"user": users, **{name: pa.array(each, pa.int64()) for name, each in columns.items()}})
        yield (
            bits,
            lambda weights=weights: [
                totals.tolist()
                for totals in weighted_totals(counts, engine.upload(weights, "testing"), ["small", "weight"], "summing")
            ],
        )


def test_a_sum_that_overflows_is_an_error_on_duckdb():
    with DuckEngine.embedded() as engine:
        for bits, total in overflowing(engine):
            if bits == 40:
                assert total() == [[2**22], [2**62]]
            else:
                with pytest.raises(EngineFailure):
                    total()


@pytest.mark.spark
def test_spark_keeps_the_bounds_and_does_not_wrap_even_if_the_session_would(spark, compiled, capfd):
    import ibis

    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        with engine_for(ibis.pyspark.connect(spark)) as engine:
            for bits, total in overflowing(engine):
                if bits == 40:
                    assert total() == [[2**22], [2**62]]
                else:
                    with pytest.raises(EngineFailure):
                        total()
            crowd = {user: {0: 2, 1: 3} for user in range(3)}
            for size in (2**53 + 1,):
                a, b = (counts_of(engine, users, 2) for users in ({**crowd, 9: {0: size, 1: 3}}, crowd))
                change = a.sum(CappedRows(5)).values - b.sum(CappedRows(5)).values
                assert 0.99 * UNIT < change.sum() <= UNIT
        assert spark.conf.get("spark.sql.ansi.enabled") == "false"  # as the user had it
        assert "ARITHMETIC_OVERFLOW" not in capfd.readouterr().err
    finally:
        spark.conf.set("spark.sql.ansi.enabled", before)
