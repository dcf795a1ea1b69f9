"""What clipping does to an answer: trend, walk, and the bias that is left."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from crowdgram.mechanisms.rounds import _groups
from crowdgram.mechanisms.shells import (
    APART,
    Drift,
    GroupShares,
    Levels,
    Shells,
    Users,
    combine_levels,
    floor_shares,
    item_tilts,
)

ITEMS = 200
SHARES = (1 / np.arange(1, ITEMS + 1)) / (1 / np.arange(1, ITEMS + 1)).sum()


def _shells(strangers: float = 0.0) -> Shells:
    """strangers: the part of the farthest users who have nothing in common with the crowd."""
    sizes = np.geomspace(1, 64, 40)
    strange = np.where(sizes > 32, strangers, 0.0)
    users = np.exp(-0.5 * (np.log2(sizes / 4) / 1.5) ** 2) * 1e6
    return Shells.of(Users(users, sizes, np.ones(40), strange), spread=float(ITEMS))


def _levels(shells: Shells, tilt: float, noise: float) -> Levels:
    """Levels of a crowd whose shares move along the tilt, by `tilt` an octave."""
    ends = (shells.firsts[0], shells.firsts[0] + 8, shells.firsts[0] + 16)
    bare = Levels(ends, np.zeros((3, ITEMS)), np.full(3, noise**2), np.zeros((3, ITEMS)))
    moved = bare.mixing(shells) @ shells.octaves * tilt
    rng = np.random.default_rng(7)
    values = SHARES + np.outer(moved, item_tilts(floor_shares(SHARES))) + rng.normal(0, noise, (3, ITEMS))
    return replace(bare, values=values)


@pytest.mark.parametrize("tilt", [-0.15, 0.0, 0.15])
def test_a_trend_that_items_share_is_learned_and_carried_on_to_what_is_not_measured(tilt: float) -> None:
    shells, drift = _shells(), Drift()
    groups = _groups(SHARES, np.ones(ITEMS))
    levels = _levels(shells, tilt, 1e-5)
    drift.learn(shells, levels, groups)
    found, error = drift.tilt
    assert found == pytest.approx(tilt, abs=0.02)
    assert error < 0.02
    answer, _, _, _ = combine_levels(shells, levels, drift, groups, np.ones(ITEMS), GroupShares.of(groups, SHARES))
    truth = SHARES + float(shells.shares @ shells.octaves) * tilt * item_tilts(floor_shares(SHARES))
    assert np.abs(answer - truth).sum() < 0.01


def test_what_was_learned_around_one_centre_is_less_certain_around_another() -> None:
    shells, drift = _shells(), Drift()
    drift.learn(shells, _levels(shells, 0.1, 1e-5), _groups(SHARES, np.ones(ITEMS)))
    before = drift.posterior.copy()
    other = drift.elsewhere()
    for variances in (drift.low, drift.high):
        logs = np.log(variances)
        mean, moved = before @ logs, other.posterior @ logs
        spread, wider = before @ (logs - mean) ** 2, other.posterior @ (logs - moved) ** 2
        assert moved == pytest.approx(mean, abs=0.7)
        assert wider == pytest.approx(spread + 1.0, abs=0.6)
    assert other.tilt == drift.tilt
    other.learn(shells, _levels(shells, -0.1, 1e-5), _groups(SHARES, np.ones(ITEMS)))
    assert (drift.posterior == before).all()


def test_what_is_expected_of_the_bias_is_below_its_root_mean_square() -> None:
    shells, drift = _shells(), Drift()
    groups = _groups(SHARES, np.ones(ITEMS))
    _, _, bias, expected = combine_levels(
        shells, _levels(shells, 0.0, 1e-3), drift, groups, np.ones(ITEMS), GroupShares.of(groups, SHARES)
    )
    assert (expected < bias).all()
    assert expected.sum() > 0.3 * bias.sum()


def test_the_bias_of_an_item_goes_with_the_share_that_is_known_now() -> None:
    """An item that only the last round showed was planned for as a rare one; its bias is that of a common one."""
    shells, drift = _shells(), Drift()
    before = np.where(np.arange(ITEMS) == 100, 1e-6, SHARES)
    after = np.where(np.arange(ITEMS) == 100, 0.05, SHARES)
    groups = _groups(before, np.ones(ITEMS))
    levels = _levels(shells, 0.0, 1e-3)
    low, high = (
        combine_levels(shells, levels, drift, groups, np.ones(ITEMS), GroupShares.of(groups, each))[2][100]
        for each in (before, after)
    )
    assert high > 5 * low


def test_strangers_whom_no_level_measures_are_a_bias_of_their_share() -> None:
    """If all users beyond the levels are strangers, an item may be off by the part of the mass that they hold."""
    drift = Drift()
    groups = _groups(SHARES, np.ones(ITEMS))
    found = []
    for strangers in (0.0, 1.0):
        shells = _shells(strangers)
        levels = _levels(shells, 0.0, 1e-3)
        _, _, bias, _ = combine_levels(shells, levels, drift, groups, np.ones(ITEMS), GroupShares.of(groups, SHARES))
        found.append(bias)
    sizes = np.geomspace(1, 64, 40)
    users = np.exp(-0.5 * (np.log2(sizes / 4) / 1.5) ** 2)
    last = shells.radii[levels.ends[-1]]
    far = sizes > 32
    missed = float((users * np.maximum(1 - last / sizes, 0.0))[far].sum() / users.sum())
    added = np.sqrt(found[1] ** 2 - found[0] ** 2)
    assert added[1:] == pytest.approx(missed * np.sqrt(floor_shares(SHARES))[1:], rel=0.5)  # levels weigh on the first
    assert (found[1] > found[0]).all()


def test_what_is_expected_of_strangers_is_no_more_than_two_in_l1() -> None:
    """Each item may be off by much if all of them hold it, but they cannot all hold every item."""
    drift = Drift()
    groups = _groups(SHARES, np.ones(ITEMS))
    expected, most = [], []
    for strangers in (0.0, 1.0):
        shells = _shells(strangers)
        held = float(strangers * shells.shares @ np.sqrt(np.diag(shells.strange) / APART))
        _, _, bias, mean = combine_levels(
            shells, _levels(shells, 0.0, 1e-3), drift, groups, np.ones(ITEMS), GroupShares.of(groups, SHARES)
        )
        expected.append(math.sqrt(2 / math.pi) * mean.sum())
        most.append(math.sqrt(2 / math.pi) * bias.sum())
    assert math.sqrt(expected[1] ** 2 - expected[0] ** 2) < 2 * held
    assert most[1] - most[0] > expected[1] - expected[0]


def test_the_error_of_a_level_s_mass_counts_in_the_answer() -> None:
    """A level whose mass is doubtful weighs less, and what its error does to an item is part of that item's noise."""
    shells, drift = _shells(), Drift()
    groups = _groups(SHARES, np.ones(ITEMS))
    sure = _levels(shells, 0.0, 1e-4)
    moved = np.zeros((3, ITEMS))
    moved[0] = (0.5 * SHARES) ** 2  # the mass of the first is known to a half, and the centre has nothing
    doubtful = replace(sure, divisors=moved)
    (_, low, _, _), (_, high, _, _) = (
        combine_levels(shells, each, drift, groups, np.ones(ITEMS), GroupShares.of(groups, SHARES))
        for each in (sure, doubtful)
    )
    assert high[0] > 100 * low[0]
    alone = replace(sure, values=sure.values + np.outer([1.0, 0.0, 0.0], SHARES))
    (kept, _, _, _), (left, _, _, _) = (
        combine_levels(
            shells, replace(alone, divisors=each), drift, groups, np.ones(ITEMS), GroupShares.of(groups, SHARES)
        )
        for each in (sure.divisors, moved)
    )
    assert np.abs(left - SHARES).sum() < 0.5 * np.abs(kept - SHARES).sum()
