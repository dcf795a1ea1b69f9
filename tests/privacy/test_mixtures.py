"""Theorems 6 and 7 under the worst mechanism that the phases allow, which takes the finish that hurts most.

Losses of Laplace and Gaussian noise are known, so what it loses at epsilon is an integral over noisy outcomes, which
has to be within delta. Sums over cells stand for it; they are off by far less than the room that is left.
"""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from scipy import special

from crowdgram.privacy import Guarantee, Reserve, Spending
from crowdgram.privacy.accounting import gaussian_mu
from crowdgram.tables import UNIT

NOTHING = np.array([0])


def gaussian_curve(mu, epsilon):
    tail = np.exp(np.minimum(epsilon, 700.0) + special.log_ndtr(-mu / 2 - epsilon / mu))
    return np.maximum(special.ndtr(mu / 2 - epsilon / mu) - tail, 0.0)


def response_curve(epsilon, at):
    """Of randomised response, the worst of all pure mechanisms."""
    right = 1 / (1 + math.exp(-epsilon))
    return right * -np.expm1(np.minimum(at - epsilon, 0.0)) - (1 - right) * np.expm1(np.minimum(at + epsilon, 0.0))


def laplace_losses(epsilon, cells=80):
    """Losses of Laplace noise for epsilon, and their probabilities."""
    edges = np.linspace(-1.0, 1.0, cells + 1)
    between = np.diff(0.5 * np.exp(-epsilon * (1 - edges) / 2))
    losses = np.concatenate([[epsilon, -epsilon], epsilon * (edges[1:] + edges[:-1]) / 2])
    return losses, np.concatenate([[0.5, 0.5 * math.exp(-epsilon)], between])


def gaussian_losses(mu, cells=1500):
    noise = np.linspace(-10.0, 10.0, cells)
    weights = np.exp(-(noise**2) / 2)
    return mu * noise + mu * mu / 2, weights / weights.sum()


def joined(*parts):
    losses, masses = np.zeros(1), np.ones(1)
    for more, weights in parts:
        losses, masses = np.add.outer(losses, more).ravel(), np.multiply.outer(masses, weights).ravel()
    return losses, masses


def worst(losses, masses, epsilon, mu, left):
    """What is lost at epsilon if every outcome is followed by whichever finish loses most, or by none."""
    at = epsilon - losses
    ways = [-np.expm1(np.minimum(at, 0.0)), gaussian_curve(mu, at)]
    return float((masses * np.max([*ways, response_curve(left, at)] if left > 0 else ways, axis=0)).sum())


@pytest.mark.parametrize("seed", range(6))
def test_a_finish_that_noisy_looks_choose(seed):
    rng = random.Random(seed)
    epsilon, delta = 10 ** rng.uniform(-1, 1), 10 ** rng.uniform(-8, -2)
    parts = [rng.uniform(0.01, 0.2) * epsilon for _ in range(2)]
    reserves = [Reserve(f"look {n}", UNIT, part) for n, part in enumerate(parts)]
    looks = Spending(Guarantee(epsilon, delta)).open().looks(reserves)
    for one in reserves:
        looks.laplace(one.purpose, NOTHING, bound=UNIT, epsilon=one.epsilon)
    losses, masses = joined(*map(laplace_losses, parts))
    mu, left = looks.remaining_mu(3), looks.remaining_epsilon()
    assert 0.8 * delta < worst(losses, masses, epsilon, mu, left) <= delta  # a look is charged as randomised response
    assert worst(losses, masses, epsilon, gaussian_mu(epsilon, delta), left) > delta  # had the looks been free


@pytest.mark.parametrize("seed", range(6))
def test_a_finish_that_a_search_chooses(seed):
    rng = random.Random(seed)
    epsilon, delta = 10 ** rng.uniform(-1, 1), 10 ** rng.uniform(-8, -2)
    threshold, pure_delta, rounds = 0.25 * delta, rng.uniform(0.05, 0.5) * delta, rng.randrange(1, 5)
    opening = rng.uniform(0.2, 0.7) * gaussian_mu(epsilon, delta - threshold - pure_delta)
    mu, look = opening / math.sqrt(rounds), Reserve("look", UNIT, rng.uniform(0.01, 0.1) * epsilon)
    search = (
        Spending(Guarantee(epsilon, delta))
        .open()
        .search("threshold", delta=threshold, rounds=rounds, mu=mu, pure_delta=pure_delta, reserves=[look])
    )
    finding = search.rounds()
    for number in range(rounds):
        finding.gaussian(f"round {number}", NOTHING, bound=UNIT, mu=mu)
    looks = finding.end().looks([look])
    looks.laplace(look.purpose, NOTHING, bound=UNIT, epsilon=look.epsilon)
    losses, masses = joined(gaussian_losses(opening), laplace_losses(look.epsilon))
    after, left = looks.remaining_mu(3), looks.remaining_epsilon()
    assert threshold + worst(losses, masses, epsilon, after, left) <= delta
    free = gaussian_mu(epsilon, delta), epsilon  # had the search been free
    assert threshold + worst(losses, masses, epsilon, *free) > delta
