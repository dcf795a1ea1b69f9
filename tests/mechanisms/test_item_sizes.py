"""Users by their number of items: what noisy bins leave possible."""

from __future__ import annotations

import numpy as np
import pytest

from crowdgram.mechanisms.item_sizes import crowds_of_items
from crowdgram.mechanisms.noisy_bins import Bins

EDGES = np.array([1.0, 2.0, 3.0, 5.0, 8.0, 13.0, 19.0, 20.0])


def crowds(users, deviation):
    return crowds_of_items(Bins(np.array(users, float), np.full(len(EDGES), deviation), EDGES, laplace=True), 20)


def test_what_is_clear_is_believed():
    users = [5000, 4000, 3000, 100, 900, 10, 0, 700]
    found = crowds(users, 5.0)
    assert found.weights.sum() == pytest.approx(1)
    assert found.weights @ found.users == pytest.approx(users, rel=0.02, abs=8)


def test_bins_that_do_not_stand_out_say_something_together():
    """No bin is above two deviations. All are, together, and their middle is seen."""
    found = crowds([0, 20, 40, 50, 40, 20, 0, 0], 30.0)
    whole = float(found.weights @ found.users.sum(axis=1))
    assert 100 < whole < 260
    assert 3 < float(found.weights @ (found.users @ np.sqrt(found.least * found.most))) / whole < 9


def test_users_of_all_items_are_possible_beside_a_crowd():
    """What is clear in the last bin is no tail of the crowd in the first, and is not smoothed away."""
    found = crowds([300, 0, 0, 0, 0, 0, 0, 250], 25.0)
    mean = found.weights @ found.users
    assert mean[-1] == pytest.approx(250, abs=50)
    assert mean[2:-1].sum() < 60


def test_users_of_a_middling_number_of_items_are_possible_beside_a_crowd_of_one_item_each():
    """What is clear in the middle is no tail of the crowd in the first bin either."""
    found = crowds([1300, 0, 0, 0, 234, 0, 0, 0], 20.0)
    mean = found.weights @ found.users
    assert mean[4] == pytest.approx(234, abs=40)
    assert mean[5:].sum() < 60


def test_a_crowd_may_end_before_all_items():
    """The tail of a normal law that fits these bins would put 40 users or more into those that look empty."""
    users = [600, 300, 400, 300, 500, 0, 0, 0]
    found = crowds(users, 25.0)
    assert (found.weights @ found.users)[5:].sum() < 30


def test_nothing_is_not_many():
    found = crowds([0] * 8, 30.0)
    assert float(found.weights @ found.users.sum(axis=1)) < 80
