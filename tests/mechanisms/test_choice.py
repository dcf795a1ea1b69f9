"""The choice between Laplace noise and rounds, on simulated crowds with fixed seeds: nothing here fails by chance."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from crowdgram.adjacency import Adjacency
from crowdgram.mechanisms import Adaptive, Auto, Request
from crowdgram.mechanisms.choice import _Prices, allowance_for, prefer_rounds
from crowdgram.mechanisms.pilot import Pilot, look_at_crowd, look_at_rows_again
from crowdgram.mechanisms.pilot_queries import HALVES, ROWS_AGAIN
from crowdgram.mechanisms.row_bound import Disagreement
from crowdgram.mechanisms.tastes import Tastes, Weighing
from crowdgram.planning import simulation
from crowdgram.privacy import Guarantee, Spending

from ..samplers import Scripted, exact

GUARANTEE = Guarantee(1.0, 1e-6, Adjacency.ADD_REMOVE)
AGAIN = {query.purpose for query in ROWS_AGAIN}


def asked(weight="rows", max_rows_per_user=None):
    return Request(weight, max_rows_per_user, lambda _: None)


@pytest.fixture(scope="module")
def robots():
    """30,000 users with some 8 rows, and among them 150 with 300 to 3,000 rows of two items: four rows in ten."""
    rng = np.random.default_rng(1)
    robot = rng.random(30_000) < 0.005
    rows = np.where(robot, rng.integers(300, 3000, 30_000), np.exp(rng.normal(2, 0.8, 30_000)).astype(int) + 1)
    shares = 1 / np.arange(1.0, 41.0)
    own = np.zeros(40)
    own[[5, 9]] = 0.7, 0.3
    cells = [rng.multinomial(n, own if other else shares / shares.sum()) for n, other in zip(rows, robot, strict=True)]
    return simulation.Crowd(sparse.csr_matrix(np.array(cells, dtype=np.float64)), np.ones(30_000))


def run(crowd, seed):
    spending = Spending(GUARANTEE, sampler=simulation._Numpy(np.random.default_rng([seed, 1])))
    return Auto().run(crowd, spending.open(), asked()), spending.events


def test_heavy_users_in_doubt_are_looked_at_before_the_choice(robots):
    """Without the third look, 4 of these 10 releases take rounds, which miss the robots: errors of 0.3 to 0.5 where
    Laplace noise errs by 0.2.
    """
    truth = robots.answer("rows")
    made = [run(robots, seed) for seed in range(100, 110)]
    assert any(AGAIN & {event.purpose for event in events} for _, events in made)
    errors = [np.abs(estimate.probabilities - truth).sum() for estimate, _ in made]
    assert np.mean(errors) < 0.25
    assert sum(estimate.parameters["branch"] == "rounds" for estimate, _ in made) <= 2


def test_a_crowd_that_is_unlikely_does_not_hide_what_the_choice_costs_in_all_others():
    """One crowd of twenty has heavy users: Laplace noise is chosen for it, at 1.5 times the error in the others."""
    prices = _Prices(
        tastes=np.array([1.0]),
        crowds=np.array([0.95, 0.05]),
        plain=np.array([[0.0006, 0.5]]),
        rounds=np.array([[0.0004, 0.9]]),
        rounds_if_known=np.array([[0.0004, 0.9]]),
        model=None,
    )
    assert not prices.rounds_err_less
    assert prices.worth_of_rows < 0.15
    assert prices.worth_of_both == pytest.approx(1 - 1.5**-0.95)


def test_how_much_users_differ_is_looked_at_before_rows_are_again(robots):
    purposes = [[event.purpose for event in run(robots, seed)[1]] for seed in range(100, 106)]
    looked = [each for each in purposes if AGAIN & set(each)]
    assert looked
    for each in looked:
        assert min(each.index(purpose) for purpose in AGAIN & set(each)) > each.index(HALVES[0].purpose)


def test_only_a_choice_by_rows_over_known_items_lists_more_looks():
    """After a search for items all of the list is paid, whether it is drawn or not."""

    def listed(mechanism, request, items):
        return {reserve.purpose for reserve in mechanism.reserves(GUARANTEE, request, items)} & AGAIN

    assert listed(Auto(), asked(), 10) == AGAIN
    assert not listed(Auto(), asked(), None)
    assert not listed(Auto(), asked(weight="users"), 10)
    assert not listed(Auto(), asked(max_rows_per_user=5), 10)
    assert not listed(Adaptive(), asked(), 10)


def test_a_group_is_no_farther_from_the_crowd_than_its_users():
    """Users who draw from Dirichlet distributions around the crowd: their mean total variation, and what is said of
    it, which takes deviations for normal, and items to be alike.
    """
    rng = np.random.default_rng(3)
    for items, taste in ((10, 0.02), (80, 0.002), (80, 0.5)):
        shares = np.full(items, 1 / items)
        users = rng.dirichlet((1 - taste) / taste * shares, 4_000)
        measured = np.abs(users - shares).sum(axis=1).mean() / 2
        one = np.ones(1)
        tastes = Tastes(taste * one, 0 * one, one, square=1 / items, fits=one[None], squares=())
        assert measured <= 1.02 * tastes.apart(items)[0]
    assert Disagreement.prior(0.1).mean < 0.1 < Disagreement.prior().mean


def test_looks_that_leave_rounds_nothing_leave_laplace_noise(robots):
    """At a tiny delta the curve of large looks falls below what a double tells: mu is then taken to be 0."""
    guarantee = Guarantee(1.0, 1e-24, Adjacency.ADD_REMOVE)
    spending = Spending(guarantee, sampler=Scripted(laplace_by=exact)).open()
    looks = spending.looks(Auto().reserves(guarantee, asked(), 10))
    for event in sorted(looks.reserved, key=lambda event: event.scale):
        looks.laplace(event.purpose, [0], bound=event.sensitivity, epsilon=event.sensitivity / event.scale)
    assert allowance_for(looks, 10).total == 0.0
    pilot = Pilot(1, None, 1000.0, 1.0, Tastes.prior(10), Weighing((1000.0, 1.0)))
    assert prefer_rounds(robots, looks, pilot, 10) is None


def test_a_look_in_which_nobody_stands_out_is_not_believed(robots):
    def negative(values, _):
        return -100 * np.asarray(values)

    spending = Spending(GUARANTEE, sampler=Scripted(laplace_by=exact)).open()
    looks = spending.looks(Auto().reserves(GUARANTEE, asked(), 40))
    pilot = look_at_crowd(robots, looks, 40, asked())
    rows, weighing = pilot.rows, pilot.weighing
    again = Spending(GUARANTEE, sampler=Scripted(laplace_by=negative)).open()
    look_at_rows_again(robots, again.looks(Auto().reserves(GUARANTEE, asked(), 40)), pilot, ROWS_AGAIN[0], 0.05)
    assert pilot.sees_rows
    assert pilot.rows is rows
    assert pilot.weighing is weighing
