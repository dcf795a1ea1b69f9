"""Shrinkage borrows where items crowd, and leaves alone what stands apart. Fixed seeds: no false alarms."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from crowdgram.mechanisms.shrink import FEWEST, expected, shrink

SHAPES = ["gaussian", "laplace"]


def noise(shape, deviation, size, seed):
    rng = np.random.default_rng(seed)
    return rng.normal(0, deviation, size) if shape == "gaussian" else rng.laplace(0, deviation / np.sqrt(2), size)


def zipf(k):
    p = 1 / np.arange(1, k + 1)
    return p / p.sum()


def shrunk(truth, deviation, shape, seed=1):
    noisy = truth + noise(shape, deviation, len(truth), seed)
    return noisy, shrink(noisy, np.full(len(truth), deviation), shape)


@pytest.mark.parametrize("shape", SHAPES)
def test_crowded_items_gain(shape):
    truth = zipf(2000)
    noisy, made = shrunk(truth, 3e-4, shape)
    raw = np.abs(np.maximum(noisy, 0) - truth).sum()
    assert np.abs(made.means - truth).sum() < 0.7 * raw


@pytest.mark.parametrize("shape", SHAPES)
def test_items_far_apart_stay(shape):
    truth = np.arange(1, 41) * 0.025  # 25 standard deviations from each other
    noisy, made = shrunk(truth, 1e-3, shape)
    assert np.abs(made.means - noisy).max() < 0.5e-3
    assert np.abs(made.means - truth).sum() < 1.1 * np.abs(noisy - truth).sum()


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("k", [300, 3000])
def test_spread_is_what_errors_are(shape, k):
    """Predicted l1 and mean square error against the truth, over 20 draws."""
    truth, deviation = zipf(k), 0.2 / k
    made = [shrunk(truth, deviation, shape, seed)[1] for seed in range(20)]
    measured = np.mean([np.abs(m.means - truth).sum() for m in made])
    assert np.mean([m.spreads.sum() for m in made]) == pytest.approx(measured, rel=0.15)
    squares = np.mean([((m.means - truth) ** 2).sum() for m in made])
    assert np.mean([m.variances.sum() for m in made]) == pytest.approx(squares, rel=0.25)
    # Noise stated at half its size would be noticed.
    noisy = [truth + noise(shape, deviation, k, seed) for seed in range(20)]
    wrong = np.mean([shrink(x, np.full(k, deviation / 2), shape).variances.sum() for x in noisy])
    assert wrong != pytest.approx(squares, rel=0.25)


def test_means_are_never_negative_and_rise_with_the_value():
    rng = np.random.default_rng(3)
    noisy = rng.normal(0, 1, 500)
    means = shrink(noisy, np.ones(500), "gaussian").means
    assert means.min() >= 0
    assert np.diff(means[np.argsort(noisy)]).min() >= -1e-9


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("values", [[0.3], [-0.3], [0.0, 0.0], [-50.0] * 8, [0.1] * 8, [-1e9] * 4 + [1e9] * 4])
def test_odd_values_are_survived(shape, values):
    x = np.array(values)
    with np.errstate(all="raise", under="ignore"):
        made = shrink(x, np.full(len(x), 0.1), shape)
    for column in (made.means, made.spreads, made.variances):
        assert np.isfinite(column).all()
        assert (column >= 0).all()
    assert made.means[x < -10] == pytest.approx(0, abs=1e-12)
    assert made.means[x > 10] == pytest.approx(x[x > 10])


def test_equal_values_are_taken_at_their_word():
    made = shrink(np.full(1000, 5.0), np.ones(1000), "gaussian")
    assert made.means == pytest.approx(np.full(1000, 5.0), abs=0.1)
    assert made.spreads.max() < 0.5  # so many alike: less is in doubt than the noise of one


def test_few_items_are_left_alone():
    x = np.array([0.5, 0.2, -0.1, 0.3][: FEWEST - 1])
    made = shrink(x, np.full(len(x), 0.1), "gaussian")
    assert made.means == pytest.approx(np.maximum(x, 0))
    assert made.variances == pytest.approx(np.full(len(x), 0.01))


def test_items_with_other_noise_are_other_items():
    """Two groups, four times apart in noise: each is shrunk as it would be alone."""
    rng = np.random.default_rng(5)
    small, large = rng.normal(0, 1, 200), rng.normal(0, 4, 200)
    both = shrink(np.concatenate([small, large]), np.repeat([1.0, 4.0], 200), "gaussian")
    assert both.means[:200] == pytest.approx(shrink(small, np.ones(200), "gaussian").means)
    assert both.means[200:] == pytest.approx(shrink(large, np.full(200, 4.0), "gaussian").means)


def test_a_million_items_fit_in_memory():
    rng = np.random.default_rng(6)
    noisy = zipf(10**6) + rng.normal(0, 1e-6, 10**6)
    tracemalloc.start()
    made = shrink(noisy, np.full(10**6, 1e-6), "gaussian")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(made.means) == 10**6
    assert peak < 500 * 2**20


def test_expected_undoes_what_noise_adds():
    """Sums of functions of theta, which the noisy values themselves would give far too large or too small."""
    theta = np.concatenate([np.zeros(900), np.linspace(-8, 8, 100)])
    noisy = theta + noise("gaussian", 1.0, len(theta), 3)
    truth = np.abs(theta).sum()
    found = expected(noisy, np.ones(len(theta)), np.abs, signed=True).sum()
    assert abs(found - truth) < 0.15 * abs(np.abs(noisy).sum() - truth)
    assert expected(np.array([5.0]), np.array([1e-6]), np.square)[0] == pytest.approx(25.0, rel=1e-3)
    negative = expected(np.full(50, -20.0), np.ones(50), lambda t: t)
    assert np.all(negative >= 0)  # unless signed, theta is not negative
    assert expected(np.full(50, -20.0), np.ones(50), lambda t: t, signed=True) == pytest.approx(-20.0, abs=0.2)
