"""Reading noisy histograms."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from scipy import stats

from crowdgram.mechanisms.histograms import Crowding, grown, near, spread_out, unimodal, visible
from crowdgram.mechanisms.profile import CONCENTRATION_EDGES, FINE_ROW_EDGES, ROW_EDGES, THRESHOLD
from crowdgram.mechanisms.rounds import LOOK_EDGES, LOOK_THRESHOLD

bins_of = npst.arrays(np.float64, st.integers(1, 9), elements=st.integers(-20, 40).map(float))


def false_alarms(draw, bins, threshold, times):
    rng = np.random.default_rng(1)
    return sum(visible(draw(rng, bins), 1.0, threshold).any() for _ in range(times))


@pytest.mark.parametrize(
    ("shape", "bins", "threshold", "rate"),
    [
        ("laplace", len(ROW_EDGES), THRESHOLD, 1 / 200),
        ("laplace", len(FINE_ROW_EDGES), THRESHOLD, 1 / 100),
        ("laplace", len(CONCENTRATION_EDGES), THRESHOLD, 1 / 200),
        ("laplace", len(LOOK_EDGES), LOOK_THRESHOLD["laplace"], 1 / 200),
        ("gaussian", len(LOOK_EDGES), LOOK_THRESHOLD["gaussian"], 1 / 200),
    ],
)
def test_pure_noise_is_rarely_visible(shape, bins, threshold, rate):
    """Fixed seed. Power: with the threshold lowered by a third the alarms exceed the rate."""

    def draw(rng, size):
        return rng.normal(size=size) if shape == "gaussian" else rng.laplace(0, np.sqrt(0.5), size)

    times = 6000
    most = stats.binom.ppf(0.999, times, rate)
    assert false_alarms(draw, bins, threshold, times) <= most
    assert false_alarms(draw, bins, threshold * 2 / 3, times) > most


def test_a_full_bin_comes_alone():
    bins = np.array([1.0, -1.0, 30.0, 2.0, 0.5, -2.0])
    assert visible(bins, 1.0, 6.5).tolist() == [0, 0, 30.0, 0, 0, 0]


def test_strays_must_stand_out_further():
    """A bin far from most users counts only if it is far above the noise: one that is not there could rule the rest."""
    near_by = np.array([0.0, 40.0, 0.0, 8.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    far = np.array([0.0, 40.0, 0.0, 0.0, 0.0, 0.0, 0.0, 8.0, 0.0])
    farther = np.array([0.0, 40.0, 0.0, 0.0, 0.0, 0.0, 0.0, 10.0, 0.0])
    assert np.nonzero(visible(near_by, 1.0, 6.5, 1.4))[0].tolist() == [1, 3]
    assert np.nonzero(visible(far, 1.0, 6.5, 1.4))[0].tolist() == [1]
    assert np.nonzero(visible(farther, 1.0, 6.5, 1.4))[0].tolist() == [1, 7]


def test_a_window_sees_what_no_bin_shows():
    bins = np.array([0.0, 0.0, 5.0, 5.0, 5.0, 5.0, 0.0, 0.0])
    seen = visible(bins, 1.0, 6.5)
    assert seen[2:6].sum() == 20
    assert not visible(bins / 2, 1.0, 6.5).any()


def test_nothing_visible_is_negative():
    bins = np.array([12.0, -3.0, -3.0, -3.0, 4.0, 6.0, 6.0, -1.0, 4.0, 4.0])
    assert visible(bins, 1.0, 6.5).min() == 0


def is_unimodal(bins):
    top = int(np.argmax(bins))
    return (np.diff(bins[: top + 1]) >= -1e-9).all() and (np.diff(bins[top:]) <= 1e-9).all()


@given(bins_of)
def test_unimodal_is(bins):
    fit = unimodal(bins)
    assert fit.shape == bins.shape
    assert fit.min() >= 0
    assert is_unimodal(fit)


@given(npst.arrays(np.float64, st.integers(1, 9), elements=st.floats(0, 40)))
def test_what_is_unimodal_stays(bins):
    assume_sorted = np.concatenate([np.sort(bins[::2]), np.sort(bins[1::2])[::-1]])
    assert unimodal(assume_sorted) == pytest.approx(assume_sorted)


@pytest.mark.parametrize("bins", [(3, 0, 2), (0, 4, 1, 3), (2, 2, 0, 4), (1, 3, 0, 3, 1), (4, 0, 0, 4)])
def test_unimodal_is_nearest(bins):
    """Against every unimodal histogram on a grid of quarters."""
    x = np.array(bins, dtype=float)
    levels = np.arange(0, max(bins) + 0.1, 1.0 if len(bins) > 4 else 0.25)
    candidates = np.array(list(itertools.product(levels, repeat=len(bins))))
    candidates = candidates[[is_unimodal(c) for c in candidates]]
    assert ((unimodal(x) - x) ** 2).sum() <= ((candidates - x) ** 2).sum(axis=1).min() + 1e-9


def test_unimodal_takes_noise_off_the_slopes():
    rng = np.random.default_rng(2)
    truth = 1000 * stats.norm.pdf(np.arange(30), 12, 3)
    noisy = [truth + rng.normal(0, 10, 30) for _ in range(50)]
    assert np.mean([((unimodal(x) - truth) ** 2).sum() for x in noisy]) < 0.6 * 30 * 100


def test_near_keeps_what_is_about_the_seen():
    bins, seen = np.arange(1.0, 11.0), np.zeros(10)
    seen[[4, 5]] = 1
    assert near(bins, seen, 2).tolist() == [0, 0, 3, 4, 5, 6, 7, 8, 0, 0]
    assert near(bins, seen, 0).tolist() == [0, 0, 0, 0, 5, 6, 0, 0, 0, 0]
    seen[0] = 1
    assert near(bins, seen, 2).tolist() == [1, 2, 3, 4, 5, 6, 7, 8, 0, 0]


def test_growing_goes_on_while_bins_stand_out():
    bins = np.array([5.0, 0.0, 1.0, 3.0, 20.0, 1.9, 1.9, 0.0, 0.0, 9.0])
    seen = np.where(bins == 20, bins, 0)
    # 3 stands out, 1 does not even with 0; 1.9 and 1.9 do together; the far 9 is not beside anything real.
    assert np.nonzero(grown(bins, seen, 1.0))[0].tolist() == [3, 4, 5]
    assert np.nonzero(grown(bins, seen, 100.0))[0].tolist() == [4]
    assert grown(np.array([9.0, 9.0]), np.array([9.0, 0.0]), 1.0).tolist() == [9.0, 9.0]


@given(npst.arrays(np.float64, 6, elements=st.floats(0, 1e6)), st.integers(1, 9))
def test_spreading_out_keeps_users_in_their_bins(bins, parts):
    edges = 2.0 ** np.arange(-6, 0)
    users, size = spread_out(bins, edges, parts)
    assert users.sum() == pytest.approx(bins.sum())
    assert users.reshape(6, parts).sum(axis=1) == pytest.approx(bins)
    within = size.reshape(6, parts)
    assert (within < edges[:, None]).all()
    assert (within > edges[:, None] / 2).all()
    assert np.exp(np.log(within).mean(axis=1)) == pytest.approx(edges / np.sqrt(2))


def test_a_crowding_adds_by_mass():
    crowd = Crowding(np.array([2.0, 3.0]), np.array([1.0, 2.0]), np.array([0.5, 1.0]))
    assert crowd.total_mass == 4.0
    assert crowd.mean_square() == pytest.approx((1 * 1 + 3 * 4) / 4)
