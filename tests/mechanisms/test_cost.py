"""Predicted cost of clipping."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from crowdgram.mechanisms.cost import NEARLY, best_radius, reshuffling, reweighting
from crowdgram.mechanisms.histograms import Crowding

crowds = st.integers(1, 8).flatmap(
    lambda n: st.builds(
        Crowding,
        npst.arrays(np.float64, n, elements=st.floats(1, 1e4)),
        npst.arrays(np.float64, n, elements=st.floats(1e-3, 1)),
        npst.arrays(np.float64, n, elements=st.floats(1e-2, 1)),
    )
)


def cost_at(crowd, radius, noise, disagreement):
    """By the formula, user by user kind, in plain Python."""
    before = [u * m for u, m in zip(crowd.users, crowd.mass, strict=True)]
    after = [b * min(1.0, radius / s) for b, s in zip(before, crowd.size, strict=True)]
    moved = sum(abs(b / sum(before) - a / sum(after)) for b, a in zip(before, after, strict=True)) / 2
    return float(np.hypot(noise * radius / sum(after), 2 * disagreement * moved))


@given(npst.arrays(np.float64, 6, elements=st.floats(1e-3, 1e3)), st.floats(1e-3, 1))
def test_clipping_everybody_alike_costs_no_bias(before, factor):
    assert reweighting(before, before * factor) == pytest.approx(0, abs=1e-12)


@given(
    npst.arrays(np.float64, 6, elements=st.floats(1e-3, 1e3)), npst.arrays(np.float64, 6, elements=st.floats(0.01, 1))
)
def test_reweighting_is_a_total_variation(before, kept):
    moved = reweighting(before, before * kept)
    assert 0 <= moved <= 1
    mass_lost = 1 - (before * kept).sum() / before.sum()
    assert moved <= mass_lost / (1 - mass_lost) + 1e-12


def test_users_all_as_far_out_are_not_biased():
    crowd = Crowding(np.array([100.0]), np.array([0.4]), np.array([1.0]))
    best = best_radius(crowd, 1.0, 0.3)
    assert best.bias == pytest.approx(0, abs=1e-12)


@given(crowds, st.floats(1e-3, 1e3), st.floats(0.01, 1))
def test_no_radius_is_better(crowd, noise, disagreement):
    best = best_radius(crowd, noise, disagreement)
    grid = np.geomspace(crowd.size.min() / 2, crowd.size.max() * 1.05, 200)
    brute = min(cost_at(crowd, r, noise, disagreement) for r in [*grid, *crowd.size])
    assert best.cost == pytest.approx(cost_at(crowd, best.radius, noise, disagreement))
    # Between two sizes the cost is a ratio of lines in r (noise) plus a bias that bends: near, not exact.
    assert best.cost <= brute * NEARLY * 1.05
    assert 0 < best.kept <= 1 + 1e-12
    assert 0 <= best.bias <= best.cost


@given(crowds, st.floats(1e-3, 1e2), st.floats(1.5, 100))
def test_more_noise_costs_more_and_clips_more(crowd, noise, factor):
    quiet, loud = best_radius(crowd, noise, 0.3), best_radius(crowd, noise * factor, 0.3)
    assert loud.cost >= quiet.cost / NEARLY
    assert loud.radius <= quiet.radius * (1 + 1e-12) or loud.cost <= cost_at(crowd, quiet.radius, noise * factor, 0.3)


def test_a_far_tail_is_clipped_only_where_noise_rules():
    crowd = Crowding(np.array([1000.0, 10.0]), np.array([0.01, 1.0]), np.array([1.0, 1.0]))
    assert best_radius(crowd, 1e-3, 0.3).radius >= 1.0
    assert best_radius(crowd, 1e3, 0.3).radius < 0.1


def test_empty_bins_do_not_matter():
    with_empty = Crowding(np.array([5.0, 0.0]), np.array([0.5, 1.0]), np.array([1.0, 1.0]))
    without = Crowding(np.array([5.0]), np.array([0.5]), np.array([1.0]))
    assert best_radius(with_empty, 1.0, 0.3) == best_radius(without, 1.0, 0.3)


@given(crowds, st.floats(1e-3, 2))
def test_reshuffling_against_users_one_by_one(crowd, radius):
    before = [m / crowd.total_mass for m in crowd.mass]
    clipped = [m * min(1.0, radius / s) for m, s in zip(crowd.mass, crowd.size, strict=True)]
    total = sum(u * c for u, c in zip(crowd.users, clipped, strict=True))
    stray = [(s / m) ** 2 for m, s in zip(crowd.mass, crowd.size, strict=True)]
    parts = list(zip(crowd.users, before, clipped, stray, strict=True))
    moved = sum(u * (c / total - b) ** 2 * x for u, b, c, x in parts) / sum(u * b**2 * x for u, b, _, x in parts)
    assert reshuffling(crowd, radius) == pytest.approx(np.sqrt(moved), rel=1e-6, abs=1e-9)


def test_nothing_is_reshuffled_where_nobody_is_clipped_or_all_alike():
    crowd = Crowding(np.array([3.0, 5.0]), np.array([0.5, 0.5]), np.array([1.0, 1.0]))
    assert reshuffling(crowd, 1.0) == 0
    assert reshuffling(crowd, 0.1) == pytest.approx(0, abs=1e-12)
    assert reshuffling(Crowding(crowd.users, np.array([0.2, 0.8]), crowd.mass), 0.3) > 0.1
