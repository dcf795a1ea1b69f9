"""Projection onto the distributions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from crowdgram.mechanisms.simplex import project

values = npst.arrays(np.float64, st.integers(1, 40), elements=st.floats(-1e3, 1e3))


@given(values)
def test_it_is_a_distribution(x):
    p = project(x)
    assert p.min() >= 0
    assert p.sum() == pytest.approx(1, abs=1e-12)


@given(values)
def test_it_is_the_nearest(x):
    """The conditions of Karush, Kuhn and Tucker: x - p is one number t where p > 0, and at most t elsewhere."""
    p = project(x)
    gap = x - p
    scale = 1e-9 * max(1.0, np.abs(x).max())
    t = gap[p.argmax()]
    assert np.abs(gap[p > 0] - t).max() <= scale
    assert (gap[p == 0] <= t + scale).all()


@given(values, st.integers(0, 2**32 - 1))
def test_no_other_distribution_is_nearer(x, seed):
    p = project(x)
    others = np.random.default_rng(seed).dirichlet(np.full(len(x), 0.5), 50)
    assert ((x - p) ** 2).sum() <= ((x - others) ** 2).sum(axis=1).min() + 1e-9 * max(1.0, (x**2).sum())


@given(values)
def test_projecting_again_changes_nothing(x):
    p = project(x)
    assert project(p) == pytest.approx(p, abs=1e-12)


@given(values)
def test_a_shift_of_all_changes_nothing(x):
    assert project(x + 7.0) == pytest.approx(project(x), abs=1e-9)


@given(values, st.integers(0, 2**32 - 1))
def test_the_order_of_items_does_not_matter(x, seed):
    order = np.random.default_rng(seed).permutation(len(x))
    assert project(x[order]) == pytest.approx(project(x)[order], abs=1e-12)


def test_known_cases():
    assert project(np.array([5.0])) == pytest.approx([1.0])
    assert project(np.array([0.2, 0.8])) == pytest.approx([0.2, 0.8])
    assert project(np.array([1.0, 1.0])) == pytest.approx([0.5, 0.5])
    assert project(np.array([2.0, 0.0, -3.0])) == pytest.approx([1.0, 0.0, 0.0])
    assert project(np.full(4, -9.0)) == pytest.approx(np.full(4, 0.25))
