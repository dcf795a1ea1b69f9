"""The self-test of the sampler: a right one passes, and samplers that are wrong as real ones were are caught.

The false-alarm rate of each test here is that of the self-test, 1e-6; its power is stated beside each stand-in.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest

from crowdgram.audit import selftest
from crowdgram.audit.selftest import DRAWS, FALSE_ALARM, UNDETECTED, check_draws
from crowdgram.privacy import discrete
from crowdgram.privacy.chances import ALWAYS, Chance, Chances
from crowdgram.privacy.noise import bare_draws


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_the_installed_sampler_passes(kind):
    assert check_draws(kind).passed


DRAWN = cache(bare_draws)


def exact(kind, scale, draws, seed=1):
    """Noise for stand-ins: quick, seeded, and right where every value can be listed; else as the real one."""
    if scale > 2**10:
        return DRAWN(kind, scale, draws)
    z = np.arange(-int(50 * scale), int(50 * scale) + 1)
    weights = np.exp(-np.abs(z) / scale if kind == "laplace" else -(z**2) / (2 * scale**2))
    return np.random.default_rng(seed).choice(z, size=draws, p=weights / weights.sum())


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_a_right_stand_in_passes(kind):
    assert check_draws(kind, exact).passed


def residues(kind, scale, draws):
    """As OpenDP 0.14.1 at scale 3: mean and variance hardly change, but sizes prefer one residue.

    P[|noise| mod 3 = 2] rises by 0.03, 11 standard errors: it passes with chance below 1e-7.
    """
    noise = exact(kind, scale, draws)
    moved = (np.abs(noise) % 3 == 1) & (np.random.default_rng(2).random(draws) < 0.085)
    return np.where(moved, noise + np.sign(noise), noise) if scale < 2**10 else noise


def wide(kind, scale, draws):
    """A scale that is too large by a tenth: P[noise <= -1] is off by 0.01 to 0.02 at least, 6 and more errors; the
    sum over the values, far more. At one large scale alone, as most releases have it.
    """
    noise = exact(kind, scale, draws)
    return (noise * 1.1).astype(np.int64) if scale > 2**10 else noise


def leaning(kind, scale, draws):
    """Sizes are right and signs lean: 0.53 of draws that are not 0 are positive, 10 standard errors."""
    noise = exact(kind, scale, draws)
    return np.where((noise < 0) & (np.random.default_rng(3).random(draws) < 0.06), -noise, noise)


def even(kind, scale, draws):
    """The last bit is always 0, as of floats beyond 2^53."""
    noise = exact(kind, scale, draws)
    return noise & ~np.int64(1) if scale > 2**10 else noise


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize("biased", [residues, wide, leaning, even])
def test_a_biased_stand_in_is_caught(kind, biased):
    found = check_draws(kind, biased)
    assert not found.passed
    assert found.chance < FALSE_ALARM / 100


def test_the_stated_power_follows_from_the_number_of_draws():
    events = check_draws("laplace", exact).events
    assert events == check_draws("gaussian", exact).events
    within = math.sqrt(math.log(4 * events / FALSE_ALARM) / (2 * DRAWS))
    assert within + math.sqrt(math.log(1 / FALSE_ALARM) / (2 * DRAWS)) <= UNDETECTED


@pytest.mark.parametrize(("seen", "chance"), [(0, 2 * 0.9**10), (1, 2 * (0.9**10 + 0.9**9)), (10, 2 * 0.1**10)])
def test_the_chance_of_a_count_is_the_smaller_tail_twice(seen, chance):
    assert selftest._chance(seen, 10, 0.1) == pytest.approx(min(chance, 1.0), rel=1e-9)


def test_a_digit_with_the_wrong_chance_is_caught(monkeypatch):
    """A fair lowest digit of Laplace noise: at scale 3 its chance is 0.417, off by 47 standard errors."""
    right = discrete._laplace_parts

    def broken(scale):
        not_zero, geometric = right.__wrapped__(scale)
        geometric._low[0] = Chance(lambda places: (2 ** (places - 1), 2 ** (places - 1)))
        return not_zero, geometric

    monkeypatch.setattr(discrete, "_laplace_parts", broken)
    assert not check_draws("laplace").passed


def test_an_acceptance_without_its_fraction_is_caught(monkeypatch):
    """Gaussian noise that is kept by the whole part of its exponent alone: nearly Laplace noise."""
    whole = discrete._digit_chances()[0]
    always = Chances([ALWAYS] * 2**discrete.FINE)
    monkeypatch.setattr(discrete, "_digit_chances", lambda: (whole, always, always))
    assert not check_draws("gaussian").passed
