"""A simulated crowd gives the sums that a table of the same users gives, and is drawn as its shape says."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from crowdgram.errors import InvalidArgument
from crowdgram.mechanisms import Auto, Laplace
from crowdgram.planning.shapes import TAIL_PRESETS, TASTE_PRESETS, Shape, number_of, zipf_shares
from crowdgram.planning.simulation import MOST_DRAWS, Crowd, run_mechanism, simulate
from crowdgram.privacy import Guarantee
from crowdgram.tables import CappedRows, Centre, RowsByStratum, SampledRow, UsersByHalf, UsersByRows
from crowdgram.tables.statistics import Level, OneUser, UsersByDistance
from crowdgram.tables.statistics.centred import distances

COUNTS = np.array([[3, 0, 1, 0], [0, 2, 0, 0], [5, 1, 7, 40], [1, 0, 0, 0], [2, 2, 2, 2]])
USERS = [OneUser(u, {i: int(n) for i, n in enumerate(row) if n}) for u, row in enumerate(COUNTS)]
CENTRE = Centre(np.array([400, 300, 200, 124]), np.array([4, 4, 5, 7]), 10)


def crowd(times=1.0):
    return Crowd(sparse.csr_matrix(COUNTS.astype(float)), np.full(len(COUNTS), times))


def summed(statistic, size):
    total = np.zeros(size)
    for user in USERS:
        for place, value in statistic.of_user(user).items():
            total[place] += value
    return total


@pytest.mark.parametrize(
    ("statistic", "size"),
    [
        (CappedRows(1), 4),
        (CappedRows(6), 4),
        (RowsByStratum(6, 4, (1, 2)), 12),
        (UsersByHalf(4, 0, 1), 66),
        (UsersByHalf(4, 1, 6), 66),
        (UsersByRows((1, 2, 4, 100)), 4),
    ],
)
def test_sums_are_those_of_the_users(statistic, size):
    found = crowd().sum(statistic)
    assert found.bound == statistic.bound
    assert found.values == pytest.approx(summed(statistic, size), rel=1e-6, abs=len(USERS))
    assert crowd(3.0).sum(statistic).values == pytest.approx(3 * found.values, rel=1e-6, abs=3 * len(USERS))


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_users_are_measured_as_an_engine_does(norm):
    view = distances(crowd(), CENTRE, norm)
    assert view.distance == pytest.approx([CENTRE.distance(user, norm) for user in USERS], rel=1e-9)
    edges = [1e5, 2e6, 1e7, 1e12]
    statistic = UsersByDistance(CENTRE, norm, 8, 2**10, edges)
    assert view.histogram(edges, 8, 2**10).values.tolist() == summed(statistic, 4).tolist()
    radii = [2**20, 2**21, 2**23]
    levels = view.levels(radii, 8, 2**10, 300)
    for low, high, found in zip([0, *radii], radii, levels, strict=False):
        level = Level(CENTRE, norm, 8, 2**10, low, high, 300)
        assert found.bound == level.bound
        # A weight may be rounded to the next whole number: one unit of one user's vector.
        assert found.values == pytest.approx(summed(level, 5), rel=1e-6, abs=2e6)
        assert abs(np.array(found.values)).max() > 1e5
    view.drop()


def test_a_statistic_that_is_not_simulated_is_refused():
    with pytest.raises(TypeError, match="SampledRow is not simulated"):
        crowd().sum(SampledRow(1, "salt"))


def test_the_answer_is_by_rows_or_by_users():
    rows = COUNTS.sum(axis=0) / COUNTS.sum()
    users = (COUNTS / COUNTS.sum(axis=1, keepdims=True)).mean(axis=0)
    assert crowd().answer("rows") == pytest.approx(rows)
    assert crowd(2.5).answer("users") == pytest.approx(users)


@pytest.mark.parametrize("rows", [1, 1.5, 3, 40, 900])
@pytest.mark.parametrize("tails", TAIL_PRESETS.values())
def test_users_have_so_many_rows_on_average(rows, tails):
    shape = Shape(100, rows, zipf_shares(5, 1), tails, 0.0)
    drawn = shape.rows_at((np.arange(50_000) + 0.5) / 50_000)
    assert drawn.mean() == pytest.approx(rows, rel=0.03)
    assert drawn.min() >= 1
    assert (drawn == np.rint(drawn)).all()
    if tails == 0:
        assert drawn.max() - drawn.min() <= 1
    elif rows >= 40 and tails < 2:  # n users weigh as much as n / exp(sigma^2)
        assert (drawn**2).mean() / drawn.mean() ** 2 == pytest.approx(np.exp(tails**2), rel=0.15)


@pytest.mark.parametrize(("users", "rows", "items"), [(3000, 12, 40), (3000, 80, 20), (200_000, 80, 20)])
@pytest.mark.parametrize("tastes", TASTE_PRESETS.values())
def test_a_crowd_is_as_its_shape_says(users, rows, items, tastes):
    """Rows drawn one by one, counts drawn at once, and users who stand for many."""
    shape = Shape(users, rows, zipf_shares(items, 1), 0.5, tastes)
    made = simulate(shape)
    assert made.weights.sum() == pytest.approx(users)
    assert made.by_user.nnz <= 2 * MOST_DRAWS
    assert (made.weights == 1).all() == (users == 3000)
    assert made.rows @ made.weights / users == pytest.approx(rows, rel=0.05)
    assert abs(made.answer("rows") - shape.shares).sum() < 0.15
    several = made.rows > 1
    pairs = (made.squares - made.rows)[several] / (made.rows * (made.rows - 1))[several]
    square = float((shape.shares**2).sum())
    agree = (pairs @ made.weights[several] / made.weights[several].sum() - square) / (1 - square)
    assert agree == pytest.approx(tastes, abs=0.03)


def test_heavy_users_are_among_those_who_stand_for_many():
    shape = Shape(1_000_000, 300, zipf_shares(1000, 1), 2.0, 0.0)
    made = simulate(shape)
    assert len(made.rows) < 5000
    assert made.rows.max() > 20_000
    assert made.weights.min() < 0.1 * made.weights.max()


@pytest.mark.slow
def test_a_run_is_the_same_with_the_same_seed():
    made = simulate(Shape(500, 10, zipf_shares(8, 1), 0.5, 0.1))
    again, other = (simulate(Shape(500, 10, zipf_shares(8, 1), 0.5, 0.1), seed) for seed in (0, 1))
    assert (made.by_user != again.by_user).nnz == 0
    assert made.rows.tolist() != other.rows.tolist()
    runs = [run_mechanism(made, Auto(), Guarantee(1.0, 1e-6), "rows", seed=seed).probabilities for seed in (3, 3, 4)]
    assert runs[0].tolist() == runs[1].tolist()
    assert runs[0].tolist() != runs[2].tolist()


def test_noise_is_as_large_as_that_of_a_release():
    """The standard error that Laplace noise reports, against errors of 60 runs with 40 items: within a tenth."""
    made = simulate(Shape(2000, 5, np.full(40, 1 / 40), 0.0, 0.0))
    runs = [run_mechanism(made, Laplace(), Guarantee(0.5), "users", seed=seed) for seed in range(60)]
    off = np.array([one.measured - made.answer("users") for one in runs])
    assert off.std() == pytest.approx(np.mean([one.standard_errors for one in runs]), rel=0.1)


@pytest.mark.parametrize("value", ["odd", -0.1, 3.5, True, None, [1]])
def test_a_preset_or_a_number_is_needed(value):
    with pytest.raises(InvalidArgument, match=r"tails=.*'alike', 'typical', 'very different', or a number from 0 to 3"):
        number_of("tails", value, TAIL_PRESETS)
    assert (
        number_of("tastes", "very-different", TASTE_PRESETS)
        == number_of("tastes", "very different", TASTE_PRESETS)
        == 0.5
    )
    assert number_of("tastes", 0.25, TASTE_PRESETS) == 0.25
