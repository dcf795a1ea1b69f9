"""How much users differ, told from two noisy histograms over halves of the items."""

from __future__ import annotations

import numpy as np
import pytest

from crowdgram.mechanisms.pilot_queries import HALVES, pilot_reserves
from crowdgram.mechanisms.tastes import TASTES, Tastes, Weighing, look_at_tastes, part_for_tastes
from crowdgram.planning.shapes import Shape, zipf_shares
from crowdgram.planning.simulation import simulate
from crowdgram.privacy import EXACT, Guarantee, Spending

from ..samplers import Scripted, exact

NOISELESS = Scripted(laplace_by=exact)


def looked_at(taste, users=4000, rows=50, items=40, sampler=NOISELESS):
    """What looks tell of a crowd in which users have this taste, and the events."""
    crowd = simulate(Shape(users, rows, zipf_shares(items, 1.0), 0.0, taste), seed=3)
    guarantee = Guarantee(1.0, 1e-6)
    looks = Spending(guarantee, sampler=sampler).open().looks(pilot_reserves(guarantee, items, rows=True))
    by_rows = np.array([float(rows)]), np.array([float(users)])
    weighing = Weighing((float(users), users / 30), rows, by_rows)
    first = look_at_tastes(crowd, looks, items, weighing, Tastes.prior(items))
    return look_at_tastes(crowd, looks, items, weighing, first), looks.events


@pytest.mark.parametrize("taste", [0.01, 0.1, 0.5])
def test_a_taste_is_told_to_a_factor_of_two(taste):
    """The grid's steps are a factor of 1.8, and the urn's law is not quite beta for 50 rows."""
    found, _ = looked_at(taste)
    mean = float(np.exp(found.weights @ np.log(found.tastes * (1 - found.strange) + found.strange)))
    assert taste / 2 < mean < 2 * taste


def test_chance_is_no_taste():
    """Users of 5 rows who draw from one distribution are far from it, by chance alone."""
    found, _ = looked_at(0.0, rows=5)
    assert found.mean_distance < 0.03


def test_users_of_one_item_are_strangers_or_have_the_largest_taste():
    found, _ = looked_at(0.95, rows=200)
    assert found.mean_distance > 0.5


def test_users_who_agree_are_told_from_those_who_do_not_with_noise():
    """10,000 users. In 40 tries of each the largest distance was 0.0023 if they agree, and the least 0.36 if not."""
    agree, apart = (looked_at(taste, users=10_000, rows=100, items=20, sampler=EXACT)[0] for taste in (0.0, 0.5))
    assert agree.mean_distance < 0.15 < apart.mean_distance


def test_looks_cost_less_the_more_users_there_are_and_no_more_than_was_reserved():
    for users, rows in ((100, 20), (40_000, 4)):
        _, events = looked_at(0.1, users=users, rows=rows)
        spent = [event.sensitivity / event.scale for event in events]
        assert len(spent) == len(HALVES)
        assert max(spent) == pytest.approx(min(0.015, 1.3 / np.sqrt(users)), rel=1e-6)


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_a_look_costs_more_if_it_is_worth_more_up_to_what_it_needs_and_what_was_set_aside(epsilon):
    guarantee, few, many = Guarantee(epsilon, 1e-6), Weighing((200.0, 20.0)), Weighing((1e6, 1e3))
    assert part_for_tastes(guarantee, 20, few) == 0.015
    assert part_for_tastes(guarantee, 20, few, worth=0.05) == 0.05
    needed = 1.3 / np.sqrt(200) / epsilon
    assert part_for_tastes(guarantee, 20, few, worth=0.9) == pytest.approx(min(needed, HALVES[0].most(20)))
    assert part_for_tastes(guarantee, 20, many, worth=0.9) == pytest.approx(0.0013 / epsilon)
    assert part_for_tastes(guarantee, 1000, few, worth=0.9) == 0.015


def test_the_posterior_is_one():
    found, _ = looked_at(0.1)
    assert found.weights.sum() == pytest.approx(1.0)
    assert set(found.tastes) <= set(TASTES)
    assert 1 / 40 <= found.square < 1
