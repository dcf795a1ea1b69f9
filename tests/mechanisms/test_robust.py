"""Whatever the table and the request, a release is valid, keeps its guarantee and raises no warning.

How near the answers are is not asked here: most of these tables are too small to say anything.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from crowdgram.synth import Crowd

from ..thorough import THOROUGH, combined
from .crowds import assert_valid, counted, counted_crowd, run, run_on, table_of

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("error::RuntimeWarning")]

MECHANISMS = ["auto", "adaptive"]
SIZES = [
    (1, 1, 2),
    (1, 1000, 3),
    (2, 10, 20),
    (50, 1, 1000),
    (50, 10, 2),
    (1000, 10, 3),
    (1000, 1, 20),
    (3000, 20, 300),
]
WAYS = list(itertools.product(["rows", "users"], ["add-remove", "replace"]))
SOME_WAYS = WAYS if THOROUGH else WAYS[::3]


@pytest.mark.parametrize(("mechanism", "size", "delta", "way"), combined(MECHANISMS, SIZES, [1e-6, 0.0], SOME_WAYS))
def test_sizes(mechanism, size, delta, way):
    (users, rows, items), (weight, adjacency) = size, way
    crowd = Crowd(users=users, rows=rows, items=items, differ=0.3, seed=7)
    made = run_on(crowd, mechanism, weight=weight, adjacency=adjacency, delta=delta)
    assert_valid(made, items)


@pytest.mark.parametrize(
    ("mechanism", "epsilon", "delta", "shape"),
    combined(MECHANISMS, [0.05, 10.0], [0.0, 1e-12, 1e-4], [(1.5, 0.0, 1), (0.0, 0.9, 0), (1.5, 0.9, 3)]),
)
def test_budgets_and_shapes(mechanism, epsilon, delta, shape):
    tail, differ, zipf = shape
    crowd = Crowd(users=800, rows=12, items=30, tail=tail, differ=differ, zipf=zipf, seed=8)
    with counted_crowd(crowd) as counts:
        weight, adjacency = WAYS[0] if mechanism == "auto" else WAYS[3]
        made = run(counts, mechanism, weight=weight, adjacency=adjacency, epsilon=epsilon, delta=delta)
        assert_valid(made, 30)


@pytest.mark.parametrize(
    ("cap", "mechanism", "weight", "delta"), combined([1, 12, 2**20], MECHANISMS, ["rows", "users"], [1e-6, 0.0])
)
def test_caps_that_are_given(cap, mechanism, weight, delta):
    crowd = Crowd(users=800, rows=12, items=30, tail=1.5, seed=8)
    assert_valid(run_on(crowd, mechanism, weight=weight, max_rows_per_user=cap, delta=delta), 30)


@pytest.mark.parametrize(("rounds", "users", "delta"), combined([1, 2, 4, 12], [1, 800], [1e-6, 0.0]))
def test_rounds_that_are_given(rounds, users, delta):
    made = run_on(Crowd(users=users, rows=12, items=30, seed=8), "adaptive", rounds=rounds, delta=delta)
    assert_valid(made, 30)


def test_many_items():
    assert_valid(run_on(Crowd(users=300, rows=20, items=20_000, seed=9)), 20_000)


@pytest.mark.parametrize(
    ("mechanism", "weight", "users"), combined([*MECHANISMS, "laplace", "gaussian"], ["rows", "users"], [1, 3000])
)
def test_one_item_has_all_the_rows(mechanism, weight, users):
    table = table_of(np.repeat(np.arange(users), 10), np.full(10 * users, 3))
    with counted(table, 50) as counts:
        made = run(counts, mechanism, weight=weight)
    assert_valid(made, 50)
    if users > 1:  # noise of less than a percent: 1e-6 is far away
        assert made.estimate.probabilities[3] > 0.9


@pytest.mark.parametrize(("mechanism", "weight", "delta"), combined(MECHANISMS, ["rows", "users"], [1e-6, 0.0]))
def test_a_domain_of_one_item(mechanism, weight, delta):
    made = run_on(Crowd(users=200, rows=5, items=1, seed=1), mechanism, weight=weight, delta=delta)
    assert_valid(made, 1)
    assert made.estimate.probabilities.tolist() == [1.0]


@pytest.mark.parametrize(("mechanism", "weight", "delta"), combined(MECHANISMS, ["rows", "users"], [1e-6, 0.0]))
def test_nearly_all_rows_are_outside_the_domain(mechanism, weight, delta):
    """One user of a thousand has rows that count."""
    users, items = np.repeat(np.arange(1000), 4), np.full(4000, 77)
    items[:4] = [0, 1, 1, 2]
    with counted(table_of(users, items), 5) as counts:
        assert_valid(run(counts, mechanism, weight=weight, delta=delta), 5)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_no_row_is_inside_the_domain(mechanism):
    with counted(table_of([1, 2, 3], [9, 9, 9]), 5) as counts:
        assert_valid(run(counts, mechanism), 5)
