"""Bounds on epsilon against what is known exactly. A bound with doubt 1e-6 that is wrong here is wrong."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from crowdgram.audit.bounds import (
    epsilon_from_losses,
    epsilon_from_rates,
    gaussian_epsilon_from_rates,
    rate_bounds,
)
from crowdgram.privacy.gaussian import gaussian_delta, gaussian_epsilon

DOUBT = 1e-6


def gaussian_losses(mu, tilt, runs, seed):
    """Losses and weights of a Gaussian of mean mu and deviation 1 against one of mean 0, drawn around mu + tilt mu."""
    y = np.random.default_rng(seed).normal(mu + tilt * mu, 1.0, runs)
    losses = mu * y - mu**2 / 2
    log_weights = ((y - mu - tilt * mu) ** 2 - (y - mu) ** 2) / 2
    return losses, log_weights


@pytest.mark.parametrize(("mu", "delta"), [(0.2, 1e-6), (0.5, 1e-4), (1.0, 1e-9), (3.0, 1e-5)])
@pytest.mark.parametrize("runs", [20, 200])
def test_tilted_losses_give_a_bound_just_below_the_truth(mu, delta, runs):
    true = gaussian_epsilon(mu, delta)
    losses, weights = gaussian_losses(mu, true / mu**2 - 0.5, runs, seed=runs)
    found = epsilon_from_losses(losses, weights, delta, DOUBT)
    assert 0.8 * true < found <= true
    if runs == 200:
        assert found > 0.9 * true


def test_without_a_tilt_a_small_delta_is_out_of_reach_and_the_bound_stays_low():
    losses, weights = gaussian_losses(0.2, 0.0, 200, seed=1)
    assert epsilon_from_losses(losses, weights, 1e-6, DOUBT) < 0.7 * gaussian_epsilon(0.2, 1e-6)


@pytest.mark.slow
def test_the_stated_doubt_is_kept():
    """At a doubt of 20% no more than 20% of 200 bounds may pass the truth: 70 or more has chance below 1e-6."""
    mu, delta = 0.5, 1e-3
    true = gaussian_epsilon(mu, delta)
    wrong = 0
    for seed in range(200):
        losses, weights = gaussian_losses(mu, true / mu**2 - 0.5, 25, seed)
        wrong += epsilon_from_losses(losses, weights, delta, 0.2) > true
    assert stats.binom.sf(69, 200, 0.2) < 1e-6
    assert wrong < 70


def test_pure_losses_bound_for_certain_and_infinite_ones_for_good():
    assert epsilon_from_losses([0.1, 0.7, -2.0], [0.0] * 3, 0.0, DOUBT) == 0.7
    assert epsilon_from_losses([-1.0], [0.0], 0.0, DOUBT) == 0.0
    assert epsilon_from_losses([0.0, math.inf], [0.0] * 2, 0.0, DOUBT) == math.inf
    assert epsilon_from_losses([math.inf] * 3, [0.0] * 3, 1e-6, DOUBT) == math.inf
    assert epsilon_from_losses([0.0] * 50, [0.0] * 50, 1e-6, DOUBT) == 0.0


@pytest.mark.parametrize(("hits", "of"), [(0, 50), (50, 50), (3, 1000), (500, 1000)])
def test_rate_bounds_are_clopper_and_pearsons(hits, of):
    exact = stats.binomtest(hits, of).proportion_ci(0.99, method="exact")
    assert rate_bounds(hits, of, 0.01) == pytest.approx((exact.low, exact.high), abs=1e-12)


def test_rates_of_laplace_noise_give_almost_its_epsilon():
    n = 200_000
    found = epsilon_from_rates(n // 2, round(n * 0.5 * math.exp(-1.0)), n, 0.0, DOUBT)
    assert 0.95 < found < 1.0
    assert epsilon_from_rates(10, 10, 1000, 0.0, DOUBT) == 0.0
    assert epsilon_from_rates(0, 10, 1000, 1e-6, DOUBT) == 0.0


def test_rates_of_gaussian_noise_give_almost_its_mu():
    n, mu, delta = 200_000, 1.0, 1e-6
    hits, false_hits = round(n * stats.norm.sf(0.5 - mu)), round(n * stats.norm.sf(0.5))
    found = gaussian_epsilon_from_rates(hits, false_hits, n, delta, DOUBT)
    assert 0.95 * gaussian_epsilon(mu, delta) < found < gaussian_epsilon(mu, delta)
    assert gaussian_epsilon_from_rates(hits, hits, n, delta, DOUBT) == 0.0
    assert gaussian_delta(mu, found) > delta
