"""Theorem 7: looks that outcomes choose, paid for one by one.

The worst release that keeps to the rule is worked out step by step: at every outcome of randomised response, which is
the worst look, it goes on with whichever look or finish loses most.
"""

from __future__ import annotations

import math
import random

import mpmath
import numpy as np
import pytest
from scipy import special

from crowdgram.privacy import Guarantee, LaplaceEvent
from crowdgram.privacy.accounting import gaussian_mu, remaining_mu
from crowdgram.privacy.paid_looks import mu_after_looks


def curve(mu, epsilon):
    """The Gaussian curve, in many digits."""
    with mpmath.workdps(30):
        mu, epsilon = mpmath.mpf(mu), mpmath.mpf(epsilon)
        first, second = mpmath.ncdf(-epsilon / mu + mu / 2), mpmath.ncdf(-epsilon / mu - mu / 2)
        return first - mpmath.exp(epsilon) * second


def look(epsilon):
    return LaplaceEvent(f"look {epsilon}", 1, 1 / epsilon, 1)


def worst(guarantee, parts, mu_of, drawn=(), loss=0.0):
    """What is lost at epsilon if every outcome decides whether another look is drawn, of those that are left."""
    at = guarantee.epsilon - loss
    mu = mu_of(guarantee, [look(part) for part in drawn])
    tail = math.exp(at + special.log_ndtr(-at / mu - mu / 2))
    lost = [max(-math.expm1(at), 0.0), special.ndtr(-at / mu + mu / 2) - tail]
    for part in set(parts):
        left = list(parts)
        left.remove(part)
        right = 1 / (1 + math.exp(-part))
        up, down = (worst(guarantee, left, mu_of, (*drawn, part), loss + sign * part) for sign in (1, -1))
        lost.append(right * up + (1 - right) * down)
    return max(lost)


def by_path(guarantee, looks):
    """The broken twin: what the drawn looks leave by themselves, as if they had been fixed beforehand."""
    return remaining_mu(guarantee, looks, 3)


def free(guarantee, looks):
    return gaussian_mu(guarantee.epsilon, guarantee.delta)


@pytest.mark.parametrize("seed", range(8))
def test_the_worst_release_keeps_delta(seed):
    rng = random.Random(seed)
    guarantee = Guarantee(10 ** rng.uniform(-1, 1), 10 ** rng.uniform(-9, -2))
    parts = [rng.choice([0.02, 0.05, 0.1, 0.2]) * guarantee.epsilon for _ in range(3)]
    assert 0.95 * guarantee.delta < worst(guarantee, parts, mu_after_looks) <= guarantee.delta
    assert worst(guarantee, parts, free) > guarantee.delta


def test_what_a_path_leaves_by_itself_is_too_much_for_outcomes_that_choose():
    """So the rule is needed: the mixture of paths that are affordable one by one is not."""
    guarantee = Guarantee(1.0, 1e-6)
    parts = [0.24, 0.2, 0.1]
    assert worst(guarantee, parts, by_path) > 1.001 * guarantee.delta
    assert worst(guarantee, parts, mu_after_looks) <= guarantee.delta


@pytest.mark.parametrize("seed", range(12))
def test_a_look_and_what_it_leaves_are_no_worse_than_what_was_there(seed):
    """The condition of the theorem between nodes too, in many digits; and hardly more was taken than it needs."""
    rng = random.Random(100 + seed)
    guarantee = Guarantee(10 ** rng.uniform(-2, 1.5), 10 ** rng.uniform(-12, -1.5))
    parts = [10 ** rng.uniform(-3, -0.5) * guarantee.epsilon for _ in range(3)]
    reach = 0.0
    for number, part in enumerate(parts):
        before, after = (mu_after_looks(guarantee, [look(one) for one in parts[:n]]) for n in (number, number + 1))
        right = 1 / (1 + math.exp(-part))
        tight = 0.0
        for e in guarantee.epsilon + reach * np.linspace(-1, 1, 41 if reach else 1):
            joint = right * curve(after, e - part) + (1 - right) * curve(after, e + part)
            assert joint <= curve(before, e)
            more = after * 1.002
            tight = max(tight, right * curve(more, e - part) + (1 - right) * curve(more, e + part) - curve(before, e))
        assert tight > 0
        reach += part


@pytest.mark.parametrize("delta", [0.0, 1e-300])
def test_without_delta_nothing_is_left(delta):
    assert mu_after_looks(Guarantee(1.0, delta), []) < 0.04
    assert mu_after_looks(Guarantee(1.0, 0.0), [look(0.1)]) == 0.0


def test_more_looks_leave_less():
    guarantee = Guarantee(1.0, 1e-6)
    left = [mu_after_looks(guarantee, [look(0.05)] * n) for n in range(12)]
    assert left == sorted(left, reverse=True)
    assert len(set(left)) == 12


def test_a_look_that_takes_nearly_nothing_leaves_nearly_all():
    guarantee = Guarantee(1.0, 1e-6)
    alone = mu_after_looks(guarantee, [look(0.1)])
    assert alone * 0.9999 < mu_after_looks(guarantee, [look(1e-14), look(0.1)]) <= alone
