"""The simple mechanisms: what they spend, and how far they are off. Chance of a false alarm: below 1e-6 a test."""

from __future__ import annotations

import math

import numpy as np
import pytest

from crowdgram.privacy import GaussianEvent, LaplaceEvent, epsilon_spent
from crowdgram.synth import Crowd
from crowdgram.tables import UNIT

from ..thorough import combined
from .crowds import answers, assert_valid, counted_crowd, run, run_on

CROWD = Crowd(users=3000, rows=8, items=6, tail=0.5, differ=0.2, seed=4)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mechanism", "weight", "adjacency", "cap"),
    combined(["laplace", "gaussian", "sample-one"], ["rows", "users"], ["add-remove", "replace"], [None, 20]),
)
def test_all_of_the_budget_is_spent(mechanism, weight, adjacency, cap):
    made = run_on(CROWD, mechanism, weight=weight, adjacency=adjacency, max_rows_per_user=cap)
    assert_valid(made, 6)
    gaussian = mechanism == "gaussian"
    kind = GaussianEvent if gaussian else LaplaceEvent
    last = made.events[-1]
    assert isinstance(last, kind)
    factor = 1 if adjacency == "add-remove" else math.sqrt(2) if gaussian else 2
    assert last.sensitivity == pytest.approx(factor * UNIT)
    spent = epsilon_spent(made.events, 1e-6 if gaussian else 0.0)
    assert spent <= 1.0
    if gaussian and weight == "rows" and cap is None:
        assert spent > 0.95  # what was reserved for a second look, or for concentration, stays unspent
    else:
        assert spent == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize(("weight", "cap", "looks"), [("users", None, False), ("rows", 8, False), ("rows", None, True)])
def test_what_is_known_is_not_bought(weight, cap, looks):
    made = run_on(CROWD, "laplace", weight=weight, max_rows_per_user=cap)
    assert bool(made.spent_on("users by rows")) is looks
    assert len(made.spent_on("number of users")) == looks
    assert len(made.events) == len(made.spent_on("users by rows")) + looks + 1


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize("weight", ["rows", "users"])
def test_the_answer_is_that_of_the_table(mechanism, weight):
    """A crowd so large beside its noise that l1 errors are about 0.005 (Laplace) and 0.02 (Gaussian)."""
    with counted_crowd(CROWD) as counts:
        cap = int(CROWD.rows * 4) if weight == "rows" else None
        made = run(counts, mechanism, weight=weight, max_rows_per_user=cap)
    truth = answers(CROWD.table(), 6)
    error = np.abs(made.estimate.probabilities - truth[weight]).sum()
    assert error < 0.2
    assert error < 20 * made.estimate.predicted_l1_error + 0.01


def test_one_row_each_is_sampled():
    """With one row a user there is nothing to sample, and the answer is the table's."""
    crowd = Crowd(users=5000, rows=1, items=3, seed=2)
    made = run_on(crowd, "sample-one", weight="users")
    assert np.abs(made.estimate.probabilities - answers(crowd.table(), 3)["users"]).sum() < 0.05
