"""The row cap by predicted cost."""

from __future__ import annotations

import numpy as np
import pytest

from crowdgram.mechanisms.cost import DISAGREEMENT
from crowdgram.mechanisms.profile import FINE_ROW_EDGES, ROW_EDGES, RowBins, RowProfile
from crowdgram.mechanisms.row_cap import best_row_cap

EDGES = np.array(ROW_EDGES, dtype=float)


def profile_of(**bins):
    """Users by the upper edge of their bin: `profile_of(r8=100)`."""
    users = np.zeros(len(EDGES))
    for name, number in bins.items():
        users[ROW_EDGES.index(int(name[1:]))] = number
    smallest = np.concatenate([[1.0], EDGES[:-1] + 1])
    return RowProfile(users, np.sqrt(smallest * EDGES), RowBins(users, 1.0, ROW_EDGES))


def brute(profile, noise):
    costs = {}
    users, rows = profile.spread_out(4)
    for cap in FINE_ROW_EDGES:
        after, before = users * np.minimum(rows, cap), users * rows
        moved = np.abs(before / before.sum() - after / after.sum()).sum() / 2
        costs[cap] = np.hypot(noise * cap / after.sum(), 2 * DISAGREEMENT * moved)
    return costs


@pytest.mark.parametrize("noise", [1e-3, 1.0, 30.0, 1e3])
@pytest.mark.parametrize("bins", [{"r8": 500}, {"r2": 900, "r64": 50}, {"r1": 10, "r1024": 1, "r16": 300}])
def test_no_cap_is_better(bins, noise):
    profile = profile_of(**bins)
    found, costs = best_row_cap(profile, noise), brute(profile, noise)
    assert found.cost == pytest.approx(costs[found.row_cap])
    assert found.cost == pytest.approx(min(costs.values()))
    assert 0 <= found.bias <= found.cost


def test_equal_rows_are_not_capped_and_not_biased():
    found = best_row_cap(profile_of(r64=1000), 50.0)
    assert found.bias < 0.5 * found.noise  # they may be spread over the bin
    assert 32 <= found.row_cap <= 64


def test_the_cap_falls_as_noise_grows():
    profile = profile_of(r2=5000, r16=800, r256=50, r4096=3)
    caps = [best_row_cap(profile, noise).row_cap for noise in (1e-4, 1.0, 30.0, 1e3, 1e5)]
    assert caps == sorted(caps, reverse=True)
    assert caps[0] == 4096
    assert caps[-1] <= 2


def test_the_largest_is_the_last_bin_with_users():
    assert profile_of(r2=5, r64=1).largest == 64


def test_bins_are_spread_over_what_they_hold():
    users, rows = profile_of(r1=8, r64=100).spread_out(4)
    assert users.sum() == pytest.approx(108)
    inside = rows[users == 25]
    assert len(inside) == 4
    assert 45 < inside.min() < inside.max() < 64
    assert rows[users == 2] == pytest.approx(1.0)
