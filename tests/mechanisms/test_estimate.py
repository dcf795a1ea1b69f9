"""From noisy sums to an estimate with intervals. Fixed seeds: no false alarms."""

from __future__ import annotations

import math

import numpy as np
import pytest

from crowdgram.mechanisms.estimate import CONFIDENCE, Divisor, combine, from_noisy_sums, half_width
from crowdgram.mechanisms.shrink import shrink
from crowdgram.privacy import GaussianEvent, LaplaceEvent

SCALE = 1e6
TRUTH = np.array([0.4, 0.3, 0.15, 0.1, 0.04, 0.01])


def event(shape, scale=SCALE):
    return LaplaceEvent("x", 1, scale, 6) if shape == "laplace" else GaussianEvent("x", 1.0, scale, 6)


def draws(shape, size, seed=1):
    rng = np.random.default_rng(seed)
    return rng.laplace(0, SCALE, size) if shape == "laplace" else rng.normal(0, SCALE, size)


@pytest.mark.parametrize("shape", ["laplace", "gaussian"])
def test_half_widths_hold_what_they_say(shape):
    deviation = math.sqrt(2) * SCALE if shape == "laplace" else SCALE
    inside = np.abs(draws(shape, 200_000)) <= half_width(shape, np.array([deviation]))
    assert inside.mean() == pytest.approx(CONFIDENCE, abs=0.003)


@pytest.mark.parametrize("shape", ["laplace", "gaussian"])
def test_intervals_cover_and_errors_are_predicted(shape):
    noisy = [np.rint(TRUTH * 100 * SCALE + draws(shape, 6, seed)).astype(np.int64) for seed in range(400)]
    made = [from_noisy_sums(sums, event(shape), {}) for sums in noisy]
    covered = np.mean([(one.lower <= TRUTH) & (one.upper >= TRUTH) for one in made])
    assert 0.93 < covered < 0.97
    measured = np.mean([np.abs(one.probabilities - TRUTH).sum() for one in made])
    assert np.mean([one.predicted_l1_error for one in made]) == pytest.approx(measured, rel=0.15)
    # Noise stated at two thirds of its size would be noticed.
    wrong = [from_noisy_sums(sums, event(shape, SCALE / 1.5), {}) for sums in noisy]
    assert np.mean([(one.lower <= TRUTH) & (one.upper >= TRUTH) for one in wrong]) < 0.9


def test_an_invisible_table_does_not_blow_up():
    made = from_noisy_sums(np.array([-5, 3, 1]), event("laplace"), {})
    assert made.probabilities.sum() == pytest.approx(1)
    assert made.upper.max() <= 1
    assert made.standard_errors.min() >= 0.5 / math.sqrt(3)


def test_one_item_is_certain():
    made = from_noisy_sums(np.array([100]), LaplaceEvent("x", 1, 10.0, 1), {})
    assert made.probabilities.tolist() == [1.0]


def test_bias_widens_intervals_and_adds_to_the_prediction():
    sums = np.rint(TRUTH * 100 * SCALE).astype(np.int64)
    plain, biased = (from_noisy_sums(sums, event("laplace"), {}, bias=(bias, bias)) for bias in (0.0, 0.3))
    assert (biased.upper - biased.lower > plain.upper - plain.lower).all()
    assert biased.predicted_l1_error == pytest.approx(np.hypot(plain.predicted_l1_error, 0.3), rel=0.1)


def test_the_divisor_is_part_of_a_large_item():
    """One item of 40% among 250: the noise of all of them is in what it is divided by."""
    k, rng = 250, np.random.default_rng(3)
    truth = np.append(0.4, np.full(k - 1, 0.6 / (k - 1)))
    sums = [np.rint(truth * 3000 * SCALE + rng.laplace(0, SCALE, k)).astype(np.int64) for _ in range(300)]
    made = [from_noisy_sums(one, LaplaceEvent("x", 1, SCALE, k), {}) for one in sums]
    top = np.mean([one.lower[0] <= truth[0] <= one.upper[0] for one in made])
    assert 0.91 < top < 0.985  # three standard errors
    off = np.std([one.measured[0] for one in made])
    assert made[0].standard_errors[0] == pytest.approx(off, rel=0.15)
    assert made[0].noise_errors[0] < off / 3  # what one item's own noise would claim


def test_a_total_that_is_known_makes_large_items_accurate():
    k, rng = 250, np.random.default_rng(4)
    truth = np.append(0.4, np.full(k - 1, 0.6 / (k - 1)))
    sums = [np.rint(truth * 3000 * SCALE + rng.laplace(0, SCALE, k)).astype(np.int64) for _ in range(200)]
    total = 3000 * SCALE, SCALE
    made = [from_noisy_sums(one, LaplaceEvent("x", 1, SCALE, k), {}, total=total) for one in sums]
    alone = [from_noisy_sums(one, LaplaceEvent("x", 1, SCALE, k), {}) for one in sums]
    assert np.std([one.measured[0] for one in made]) < 0.4 * np.std([one.measured[0] for one in alone])
    assert 0.89 < np.mean([one.lower[0] <= truth[0] <= one.upper[0] for one in made]) < 0.99


def test_sampling_errors_follow_the_multinomial():
    sums = np.rint(TRUTH * 1e6 * SCALE).astype(np.int64)
    variance = float((TRUTH * (1 - TRUTH)).sum()) / 7  # users of seven rows, identical
    made = from_noisy_sums(sums, event("laplace"), {}, sampling_variance=variance / 50)
    assert made.sampling_errors == pytest.approx(np.sqrt(TRUTH * (1 - TRUTH) / 7 / 50), rel=1e-3)
    assert from_noisy_sums(sums, event("laplace"), {}).sampling_errors is None


def test_an_interval_holds_its_probability():
    """Shrinkage may move a probability far from the noisy share: the interval goes with it."""
    raw, deviations = np.array([0.9, 0.05, 0.03, 0.01, 0.01, -0.2]), np.full(6, 0.01)
    made = combine(
        raw=raw,
        noise=deviations,
        shrunk=shrink(raw, deviations, "gaussian"),
        bias=np.zeros(6),
        shape="gaussian",
        divisor=Divisor(),
        sampling_variance=None,
        parameters={},
    )
    assert (made.lower <= made.probabilities).all()
    assert (made.probabilities <= made.upper).all()
    assert made.predicted_l1_error <= 2


def test_a_share_measured_below_zero_does_not_narrow_its_interval() -> None:
    event = LaplaceEvent("counts", 1, 100.0, 4)
    sums = np.array([100_000, 50_000, -400, 0])
    made = from_noisy_sums(sums, event, {})
    assert made.upper[2] == pytest.approx(made.upper[3])
    assert made.upper[2] > 2 * made.standard_errors[2]
