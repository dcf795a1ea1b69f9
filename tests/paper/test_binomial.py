"""Binom and SmallBinom: the constant of Theorem 5, covers, and the accuracy that Theorem 6 and Lemma 2 promise."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from crowdgram.errors import InvalidArgument
from crowdgram.paper.binomial import (
    BINOMIAL_CONSTANT,
    MOST_HYPOTHESES,
    angular_cover,
    binom,
    binom_cover,
    binom_users,
    linear_cover,
    small_binom,
)
from crowdgram.privacy import Adjacency, GaussianEvent, Guarantee, SparseLaplaceEvent, Spending
from crowdgram.tables import Tallies

from .crowds import sampled, zipf


def one_symbol(m, p, users, seed):
    """Users of one symbol with N(u) ~ Bin(m, p)."""
    counts = np.bincount(np.random.default_rng(seed).binomial(m, p, users), minlength=m + 1)
    times = np.nonzero(counts[1:])[0] + 1
    return Tallies(1, m, users, np.zeros(len(times), dtype=np.int64), times, counts[times])


def budget(epsilon=1.0, delta=0.0):
    return Spending(Guarantee(epsilon, delta, Adjacency.REPLACE)).open().start().finish()


@pytest.mark.parametrize("m", [1, 2, 3, 7, 20, 100, 1000])
def test_no_ratio_is_below_the_constant(m):
    """Theorem 5's lower bound with 0.634 for 1/350, on a grid that is dense near 0 (erratum 10)."""
    ps = np.unique(np.concatenate([np.geomspace(1e-3 / m, 0.5, 25), [0.0]]))
    qs = np.unique(np.concatenate([np.geomspace(1e-3 / m, 0.5, 40), 1 - np.geomspace(1e-3 / m, 0.5, 40), [0.0, 1.0]]))
    x = np.arange(m + 1)
    q_mass = stats.binom.pmf(x[None, :], m, qs[:, None])
    lowest = math.inf
    for p in ps:
        distance = np.abs(q_mass - stats.binom.pmf(x, m, p)[None, :]).sum(axis=1)
        gap = np.abs(qs - p)
        scaled = np.sqrt(m) * gap / math.sqrt(p * (1 - p)) if p > 0 else np.full_like(gap, np.inf)
        bound = np.minimum(np.minimum(m * gap, scaled), 1.0)
        far = bound > 1e-9
        lowest = min(lowest, float((distance[far] / bound[far]).min()))
    assert lowest >= BINOMIAL_CONSTANT
    if m >= 20:
        assert lowest < 0.9  # the grid looks where the ratio is small


@pytest.mark.slow
@pytest.mark.parametrize(("m", "radius"), [(1, 0.1), (10, 0.05), (1000, 0.02), (3, 1.0)])
def test_the_angular_cover_covers(m, radius):
    cover = angular_cover(m, radius)
    assert (cover[0], cover[-1]) == (0.0, 1.0)
    p = np.concatenate([np.linspace(0, 1, 4001), np.geomspace(1e-6, 0.5, 999)])
    gap = np.abs(cover[None, :] - p[:, None]).min(axis=1)
    scaled = np.sqrt(m) * gap / np.sqrt(np.maximum(p * (1 - p), 1e-300))
    assert np.minimum(m * gap, scaled).max() <= 1.02 * radius
    assert len(cover) < 4 + 4 * math.sqrt(m) / radius


def test_covers_are_as_printed_while_they_are_small():
    cover = binom_cover(5, 1.0)
    assert np.allclose(np.diff(cover)[:-1], BINOMIAL_CONSTANT / 100)
    assert (cover[0], cover[-1]) == (0.0, 1.0)
    for m, alpha in ((1000, 0.05), (300, 0.0004), (10**6, 1e-3)):
        assert 1000 < len(binom_cover(m, alpha)) <= 1.1 * MOST_HYPOTHESES
    assert linear_cover(0.4).tolist() == [0.0, 0.4, 0.8, 1.0]


@pytest.mark.parametrize("p", [0.0, 0.01, 0.13, 0.5, 0.97])
def test_theorem_6_at_the_users_it_asks_for(p):
    """Fails with probability beta = 1e-7 at most."""
    m, alpha, epsilon = 10, 1.0, 1.0
    users = math.ceil(binom_users(m, alpha, epsilon, beta=1e-7))
    selected = binom(one_symbol(m, p, users, 3), budget(), users=users, epsilon=epsilon, alpha=alpha, changed=1)
    bound = alpha * max(1 / m, math.sqrt(p * (1 - p) / m))
    assert abs(selected.probabilities[0] - p) <= bound


def test_the_lower_bound_for_small_p_needs_its_factor():
    """Erratum 20: false as printed at p = 0, mq = 1/2; true on a grid with 0.78."""
    lowest = math.inf
    for c, m in ((0.01, 1000), (0.5, 8), (1.0, 50), (4.0, 200)):
        p, q = np.linspace(0, min(c / m, 0.5), 30)[:, None], np.linspace(0, min(1, 5 / m), 3001)[None, :]
        gap = np.minimum(m * np.abs(q - p), 0.5)
        ratio = np.abs((1 - q) ** m - (1 - p) ** m) / np.where(gap > 1e-6, math.exp(-1.5 * c) * gap, 1e-300)
        lowest = min(lowest, float(ratio[gap > 1e-6].min()))
    assert 0.78 < lowest < 0.8


@pytest.mark.parametrize("p", [0.0, 0.001, 0.01, 0.05])
def test_lemma_2_at_the_users_it_asks_for(p):
    """c = 1, with the constants of errata 20 and 21; fails with probability beta = 1e-7 at most."""
    m, alpha, gamma, epsilon, beta = 20, 0.5, 0.5, 1.0, 1e-7
    c = 1.0
    log = math.log(4 / beta)
    users = math.ceil(16 / 0.78**2 * math.exp(3 * c) * log * max(16 * max(c, 1), 1 / alpha**2 + 1 / (gamma * epsilon)))
    found = small_binom(one_symbol(m, p, users, 5), budget(), users=users, changed=1, epsilon=epsilon)
    assert abs(found.probabilities[0] - p) <= math.sqrt(p * alpha**2 / m) + alpha**2 / m + gamma / m


def test_small_binom_is_capped_and_says_its_noise():
    """Everybody has the item: p = 1 as printed, 4/m here (erratum 13)."""
    full = one_symbol(20, 1.0, 500, 1)
    assert small_binom(full, budget(), users=500, changed=1, epsilon=1.0).probabilities.tolist() == [0.2]
    p = zipf(300)
    tallies = sampled(p, 50, 4000, seed=2)
    errors, event = [], None
    for _ in range(20):
        spending = Spending(Guarantee(1.0, 1e-6)).open().start().finish()
        found = small_binom(tallies, spending, users=4000, changed=50, mu=0.2)
        event = found.event
        small = p < 1 / 50
        errors.append((found.probabilities - p)[small] / found.deviations[small])
    assert isinstance(event, GaussianEvent)
    # 1024 sqrt(50) counts: the sensitivity, and a sigma that mu = 0.2 needs.
    assert event.sensitivity == math.isqrt(1024**2 * 50 - 1) + 1
    spread = np.mean(np.square(errors))
    assert 0.6 < spread < 1.6  # with the sampling error of 4000 users, and clipping at 0


def test_small_binom_spends_what_it_says():
    tallies = sampled(zipf(30), 10, 200, seed=1)
    spending = Spending(Guarantee(1.0, 1e-6, Adjacency.REPLACE)).open().start().finish()
    event = small_binom(tallies, spending, users=200, changed=20, epsilon=0.01).event
    assert event == SparseLaplaceEvent("users who have each item", 1024, 102400.0, 30, 20)
    for bad in ({"epsilon": 0.01, "changed": 9}, {"changed": 20}):
        with pytest.raises(InvalidArgument, match=r"changed=9|^epsilon: needs"):
            small_binom(tallies, budget(), users=200, **bad)


@pytest.mark.parametrize(("name", "value"), [("alpha", 0.0), ("alpha", 1.5), ("epsilon", 0.0)])
def test_out_of_the_range_of_theorem_6(name, value):
    tallies = one_symbol(5, 0.2, 30, 1)
    options = {"users": 30, "epsilon": 0.1, "alpha": 0.5, "changed": 1, name: value}
    with pytest.raises(InvalidArgument, match=rf"{name}={value}.*Theorem 6"):
        binom(tallies, budget(), **options)


@pytest.mark.parametrize("make", [lambda: linear_cover(0.0), lambda: angular_cover(3, 1.5)])
def test_bad_covers(make):
    with pytest.raises(InvalidArgument, match="a cover needs"):
        make()
