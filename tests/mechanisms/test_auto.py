"""The choice between plain noise and rounds, and what each of them spends.

Crowds are made so that the choice is clear; where a profile's noise could still upset it, once in five hundred
releases, the majority of three decides: one false alarm in 80,000. The third is made only if the first two differ.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from crowdgram.privacy import GaussianEvent, LaplaceEvent, check, epsilon_spent
from crowdgram.privacy.gaussian import gaussian_mu
from crowdgram.synth import Crowd

from ..thorough import combined, each
from .crowds import answers, assert_valid, counted, counted_crowd, run, run_on

pytestmark = pytest.mark.slow

ALIKE = Crowd(users=4000, rows=100, items=200, seed=1)
"""Identical users with many rows: rounds pay."""
SINGLE = Crowd(users=20_000, rows=5, items=12, differ=0.999, seed=2)
"""Users with one item each: nothing to centre."""
EVERY_WAY = list(itertools.product(["rows", "users"], ["add-remove", "replace"]))


def is_laplace(made):
    return made.estimate.parameters.get("branch") == "laplace"


def up_to_three(make, verdict):
    """Releases, and whether the verdict on most of three is yes."""
    made = [make(), make()]
    if verdict(made[0]) != verdict(made[1]):
        made.append(make())
    return made, sum(map(verdict, made)) >= 2


def test_the_majority_of_three():
    for verdicts in itertools.product([True, False], repeat=3):
        drawn = iter(verdicts)
        assert up_to_three(lambda drawn=drawn: next(drawn), bool)[1] == (sum(verdicts) >= 2)


@pytest.fixture(scope="module")
def alike():
    with counted(ALIKE.table(), ALIKE.items) as counts:
        yield counts


@pytest.mark.parametrize(("weight", "adjacency"), EVERY_WAY)
def test_users_who_agree_get_rounds(alike, weight, adjacency):
    made, laplace = up_to_three(lambda: run(alike, weight=weight, adjacency=adjacency), is_laplace)
    for one in made:
        assert_valid(one, 200)
    assert not laplace


@pytest.mark.parametrize(
    ("weight", "adjacency", "delta"), combined(["rows", "users"], ["add-remove", "replace"], [1e-6, 0.0])
)
def test_users_with_one_item_each_get_laplace_noise(weight, adjacency, delta):
    with counted_crowd(SINGLE) as counts:
        made, laplace = up_to_three(lambda: run(counts, weight=weight, adjacency=adjacency, delta=delta), is_laplace)
    for one in made:
        assert_valid(one, 12)
    assert laplace
    for one in made:
        if is_laplace(one):
            assert all(isinstance(event, LaplaceEvent) for event in one.events)
            assert epsilon_spent(one.events, 0.0) == pytest.approx(1.0, abs=1e-12)
            assert epsilon_spent(one.events, 0.0) <= 1.0


@pytest.mark.parametrize(
    ("mechanism", "weight", "adjacency", "epsilon"),
    combined(["auto", "adaptive"], ["rows", "users"], ["add-remove", "replace"], [0.3, 4.0]),
)
def test_rounds_spend_all_that_the_looks_leave(mechanism, weight, adjacency, epsilon):
    crowd = Crowd(users=3000, rows=60, items=40, seed=3)
    made = run_on(crowd, mechanism, weight=weight, adjacency=adjacency, epsilon=epsilon)
    assert_valid(made, 40)
    assert epsilon_spent(made.events, 1e-6) <= epsilon
    if any(isinstance(event, GaussianEvent) for event in made.events):
        # A look is charged as randomised response of its epsilon, which is a little worse than Laplace noise.
        assert epsilon_spent(made.events, 1e-6) == pytest.approx(epsilon, rel=1e-2)
        assert made.spending._phase.remaining_mu(1) < 1e-3 * gaussian_mu(epsilon, 1e-6)
    else:
        assert epsilon_spent(made.events, 0.0) == pytest.approx(epsilon, rel=1e-12)


@pytest.mark.parametrize(("mechanism", "adjacency"), each(["auto", "adaptive"], ["add-remove", "replace"]))
def test_a_pure_budget_is_spent_purely(mechanism, adjacency):
    made = run_on(Crowd(users=3000, rows=60, items=40, seed=3), mechanism, delta=0.0, adjacency=adjacency)
    assert_valid(made, 40)
    assert all(isinstance(event, LaplaceEvent) for event in made.events)
    assert 1 - 1e-8 <= epsilon_spent(made.events, 0.0) <= 1.0


@pytest.mark.parametrize(("rounds", "delta"), each([1, 2, 3, 5], [0.0, 1e-6]))
def test_as_many_rounds_as_were_asked_for(rounds, delta):
    made = run_on(Crowd(users=2000, rows=30, items=10, seed=3), "adaptive", rounds=rounds, delta=delta)
    assert_valid(made, 10)
    assert made.estimate.parameters["rounds"] == rounds
    for number in range(1, rounds + 1):
        assert len(made.spent_on(f"round {number}: users by distance")) == 1
        assert made.spent_on(f"round {number}: level 1")
    assert not made.spent_on(f"round {rounds + 1}")


def test_each_round_is_asked_about_every_item(alike):
    made = run(alike, "adaptive")
    levels = [event for event in made.events if "level" in event.purpose]
    assert levels
    assert all(event.dimension == 201 for event in levels)  # and one for the mass


def test_rounds_beat_plain_noise_where_users_agree(alike):
    """Measured means: 0.014 and 0.043. One release of rounds in fifty reaches 0.03; three in a row, one in 100,000."""
    truth = answers(ALIKE.table(), 200)["rows"]
    errors = {
        name: [np.abs(run(alike, name, max_rows_per_user=100).estimate.probabilities - truth).sum() for _ in range(3)]
        for name in ("adaptive", "laplace", "gaussian")
    }
    ours = min(errors["adaptive"])
    assert ours < 0.5 * np.mean(errors["laplace"])
    assert ours < 0.5 * np.mean(errors["gaussian"])


def test_a_cap_that_is_given_is_kept():
    made = run_on(Crowd(users=2000, rows=30, items=10, seed=3), "adaptive", max_rows_per_user=17)
    assert made.estimate.parameters["max_rows_per_user"] == 17


def test_sampling_errors_shrink_with_the_crowd():
    """Ten times the users, a third of the sampling error; what users differ by is found within a factor of two."""
    small, large = (
        run_on(Crowd(users=users, rows=20, items=8, differ=0.3, seed=5)).estimate for users in (3000, 30_000)
    )
    ratio = np.median(small.sampling_errors / large.sampling_errors)
    assert 1.6 < ratio < 6.4


@pytest.mark.parametrize("differ", [0.0, 0.7])
def test_a_small_crowd_gets_rounds_only_if_it_agrees(differ):
    """300 users of 20 items, alike or very different: of nine releases each, 8 or 9 and at most 2 were rounds.

    At least three of nine must be rounds if users agree, and at least two something else if not: no more are made once
    that is sure.
    """
    crowd = Crowd(users=300, rows=100, items=20, differ=differ, seed=6)
    left = 3 if differ == 0 else 2
    with counted_crowd(crowd) as counts:
        for _ in range(9):
            made = run(counts)
            check(made.events, made.guarantee)
            left -= ("rounds" in made.estimate.parameters) == (differ == 0)
            if not left:
                break
    assert not left


def test_a_plain_finish_spends_all():
    crowd = Crowd(users=4000, rows=30, items=10, tail=1.5, differ=0.8, seed=7)
    with counted_crowd(crowd) as counts:
        plain = next(one for one in (run(counts) for _ in range(3)) if is_laplace(one))
    assert sum(event.sensitivity / event.scale for event in plain.events) == pytest.approx(1.0, rel=1e-6)
