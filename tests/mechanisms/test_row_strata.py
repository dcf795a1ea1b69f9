"""Rows in strata of users: a bound that was chosen too large is lowered once it is known that nobody needs it."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from crowdgram.errors import InvalidArgument
from crowdgram.mechanisms.row_bound import Disagreement
from crowdgram.mechanisms.row_strata import RowStrata, best_strata, light_strata
from crowdgram.mechanisms.user_sizes import Crowds
from crowdgram.tables import UNIT, RowsByStratum

CAP, ITEMS, NOISE = 4096, 10, 0.3
SIZES = np.array([80.0, 2000.0])


def crowds(*far):
    """1,000 users of 80 rows, and so many of 2,000, of another taste: each as likely as the others."""
    users = np.array([[1000.0, each] for each in far])
    strange = np.array([[0.0, 1.0]] * len(far))
    places = np.arange(len(far))
    return Crowds(SIZES, np.zeros(2), users, np.full(len(far), 1 / len(far)), 1.0, 80.0, strange, places * 0, places)


def strata(far, rng):
    """What Laplace noise of standard deviation NOISE users leaves of 1,000 users of 80 rows and so many of 2,000."""
    bounds = np.array([*light_strata(CAP, 4), CAP], dtype=np.float64)
    held = np.zeros((len(bounds), ITEMS))
    for number, rows in ((1000.0, 80.0), (far, 2000.0)):
        place = int(np.searchsorted(bounds, rows))
        held[place] += number * rows / bounds[place] / ITEMS
    noise = rng.laplace(size=held.shape) * NOISE / math.sqrt(2)
    return RowStrata(bounds, (held + noise) * UNIT, NOISE * UNIT)


def test_strata_are_a_factor_apart_and_end_at_one_row():
    assert light_strata(4096, 4) == (64, 256, 1024)
    assert light_strata(4096, 16) == (16, 256)
    assert light_strata(20, 4) == (1, 5)
    assert light_strata(20, 16) == (1,)
    assert light_strata(3, 4) == ()


@pytest.mark.parametrize(("doubt", "step"), [(0.9, 4), (0.0, 16)])
def test_strata_are_close_only_if_the_bound_may_have_to_be_lowered(doubt, step):
    """1,000 users of 20 rows and 300 of 90 want a bound of about 100; a hundred more of 400 rows may be there."""
    sizes, users = np.array([20.0, 90.0, 400.0]), np.array([[1000.0, 300.0, 0.0], [1000.0, 300.0, 100.0]])
    none, places = np.zeros((2, 3)), np.arange(2)
    believed = Crowds(sizes, np.zeros(3), users, np.array([doubt, 1 - doubt]), 1.0, 90.0, none, places, places * 0)
    assert best_strata(400, believed, 30.0, Disagreement.prior().mean) == light_strata(400, step)


def test_at_the_last_bound_strata_add_up_to_all_rows():
    one = replace(strata(50.0, np.random.default_rng(1)), deviation=0.0)
    rows = (one.sums * one.bounds[:, None]).sum(axis=0)
    assert one.within(len(one.bounds) - 1) * CAP == pytest.approx(rows)


def test_light_strata_that_hold_nothing_but_noise_do_not_add_it():
    """By chance 0.03 of one of them may stay: 500 items have a mean square within 6% of 1."""
    bounds, rng = np.array([4.0, 16.0, 64.0]), np.random.default_rng(3)
    noise = rng.normal(size=(3, 500))
    empty = RowStrata(bounds, noise, 1.0)
    assert empty.widened[-1] == pytest.approx(1.0, abs=1e-3)
    assert empty.within(2) == pytest.approx(noise[-1], abs=0.2)
    held = RowStrata(bounds, noise + 50.0, 1.0)
    assert held.within(2) == pytest.approx(held.sums[-1] + held.sums[1] / 4 + held.sums[0] / 16, rel=1e-3)
    assert held.widened[-1] == pytest.approx(math.sqrt(1 + 1 / 16 + 1 / 256), rel=1e-3)


def test_noise_at_each_bound_is_that_of_the_sums_it_is_made_of():
    bounds = np.array([1.0, 4.0, 16.0])
    rng = np.random.default_rng(2)
    drawn = [RowStrata(bounds, rng.normal(size=(3, 500)), 1.0) for _ in range(40)]
    for place, widened in enumerate(drawn[0].widened):
        measured = math.sqrt(float(np.mean([one.within(place) ** 2 for one in drawn])))
        assert measured == pytest.approx(widened, rel=0.05)  # of 20,000 draws: ten standard errors


@pytest.mark.parametrize(("there", "lowered"), [(0.0, True), (60.0, False)])
def test_the_bound_is_lowered_if_the_heavy_users_it_was_for_are_not_there(there, lowered):
    believed = crowds(0.0, 60.0)
    prior = Disagreement.prior().mean
    for seed in range(20):
        found = strata(there, np.random.default_rng(seed))
        learned = found.learned(believed)
        assert learned.weights[0 if lowered else 1] > 0.95
        assert (found.best(learned, ITEMS * NOISE, prior) < len(found.bounds) - 1) is lowered


def test_a_crowd_that_was_impossible_stays_so_however_well_it_fits():
    believed = replace(crowds(1e6, 0.0, 1.0), weights=np.array([0.0, 0.5, 0.5]))
    learned = strata(1e6, np.random.default_rng(4)).learned(believed).weights
    assert learned[0] == 0.0
    assert learned.sum() == pytest.approx(1.0)


def test_a_group_that_noise_would_hide_stays_as_likely_as_it_was():
    believed = crowds(0.0, 0.4)
    learned = [strata(0.0, np.random.default_rng(seed)).learned(believed).weights[1] for seed in range(50)]
    assert 0.3 < float(np.mean(learned)) < 0.55


def test_what_users_above_a_bound_lack_of_it_is_part_of_the_error_of_the_total():
    found = strata(60.0, np.random.default_rng(3))
    last = len(found.bounds) - 1
    assert found.shortfall(last) == 0
    # At 1,024 rows, 60 users of 2,000 count for 500 each instead of 1,024; beside them there are 80,000 rows.
    lacking = 60 * (1024 - 500) / (80_000 + 60 * 500)
    assert lacking < found.shortfall(last - 1) < 2 * lacking


@pytest.mark.parametrize("lights", [(0,), (10,), (3, 3), (4, 2)])
def test_strata_have_to_increase_within_the_bound(lights):
    with pytest.raises(InvalidArgument, match="lights") as caught:
        RowsByStratum(9, 5, lights)
    assert caught.value.argument == "lights"
