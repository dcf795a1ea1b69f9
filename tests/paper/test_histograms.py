"""Reading noisy histograms."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from crowdgram.paper.histograms import visible
from crowdgram.paper.variable import THRESHOLD

BINS = 76  # of the histogram that m-hat is chosen from


def false_alarms(threshold, times):
    rng = np.random.default_rng(1)
    return sum(visible(rng.laplace(0, np.sqrt(0.5), BINS), 1.0, threshold).any() for _ in range(times))


@pytest.mark.slow
def test_pure_noise_is_rarely_visible():
    """Fixed seed. Power: with the threshold lowered by a third the alarms exceed the rate."""
    times = 3000
    most = stats.binom.ppf(0.999, times, 1 / 100)
    assert false_alarms(THRESHOLD, times) <= most
    assert false_alarms(THRESHOLD * 2 / 3, times) > most


def test_a_full_bin_comes_alone():
    bins = np.array([1.0, -1.0, 30.0, 2.0, 0.5, -2.0])
    assert visible(bins, 1.0, 6.5).tolist() == [0, 0, 30.0, 0, 0, 0]


def test_a_window_sees_what_no_bin_shows():
    bins = np.array([0.0, 0.0, 5.0, 5.0, 5.0, 5.0, 0.0, 0.0])
    seen = visible(bins, 1.0, 6.5)
    assert seen[2:6].sum() == 20
    assert not visible(bins / 2, 1.0, 6.5).any()


def test_nothing_visible_is_negative():
    bins = np.array([12.0, -3.0, -3.0, -3.0, 4.0, 6.0, 6.0, -1.0, 4.0, 4.0])
    assert visible(bins, 1.0, 6.5).min() == 0
