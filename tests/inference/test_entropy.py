"""Entropy: known cases, coverage by simulation, and its ends by brute force.

Noise here is seeded, so that what passes once passes always. The thresholds of coverage are far below what was measured
(0.94 or more in every case), and a release that claims a third of its noise must fail them.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from crowdgram import Quantity
from crowdgram.errors import InvalidArgument
from crowdgram.inference.entropy import _least_even, _most_even

from ..results.synthetic import exact, noisy, zipf
from ..thorough import each


def plain_entropy(p):
    kept = p[p > 0]
    return float(-(kept * np.log2(kept)).sum())


SPARSE = np.concatenate([zipf(10, 0.5) * 0.9, np.full(50, 0.002), np.zeros(600)])


CASES = {
    "few": (zipf(5), 0.02),
    "well measured": (zipf(50), 1e-3),
    "half lost": (zipf(50), 1e-2),
    "long tail": (zipf(1000), 1e-4),
    "mostly lost": (zipf(1000), 1e-3),
    "sparse": (SPARSE, 1e-3),
    "all alike": (zipf(200, 0), 1e-3),
}


def test_entropy_of_what_is_known():
    assert float(exact(np.full(8, 0.125)).entropy()) == pytest.approx(3.0, abs=1e-6)
    p = zipf(30)
    found = exact(p).entropy()
    assert found.value == pytest.approx(plain_entropy(p), abs=1e-6)
    assert found.lower <= found.value <= found.upper
    assert found.upper - found.lower < 1e-6
    assert exact(p).entropy(base=math.e).value == pytest.approx(found.value * math.log(2))
    assert exact([1.0]).entropy() == Quantity(0.0, 0.0, 0.0, 0.95)


@pytest.mark.parametrize("base", [1, 0, -2, math.inf, math.nan, True, "2", None])
def test_a_base_that_is_none(base):
    with pytest.raises(InvalidArgument, match="base="):
        exact(zipf(3)).entropy(base=base)


def entropies(case, laplace=False, claimed=1.0, runs=40):
    theta, deviation = CASES[case]
    rng = np.random.default_rng(5)
    truth, found, plug = plain_entropy(theta), [], []
    for _ in range(runs):
        release = noisy(theta, deviation, rng, laplace, claimed)
        found.append(release.entropy())
        plug.append(plain_entropy(release.probabilities))
    covered = np.mean([one.lower <= truth <= one.upper for one in found])
    return truth, covered, np.array([one.value for one in found]), np.array(plug)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "laplace"),
    each(["few", "well measured", "half lost", "long tail", "mostly lost", "sparse"], [False, True]),
)
def test_intervals_of_entropy_hold_the_truth(case, laplace):
    _, covered, _, _ = entropies(case, laplace)
    assert covered >= 0.85


@pytest.mark.slow
def test_too_little_noise_claimed_is_noticed():
    assert entropies("well measured", claimed=0.2)[1] < 0.85
    assert entropies("few", claimed=0.2)[1] < 0.85


@pytest.mark.slow
@pytest.mark.parametrize("case", ["half lost", "long tail", "mostly lost", "all alike"])
def test_entropy_is_corrected_for_noise(case):
    truth, _, values, plug = entropies(case)
    assert abs(values.mean() - truth) < 0.6 * abs(plug.mean() - truth)


def test_the_ends_of_entropy_by_brute_force():
    """Among random ways to spread a mass under caps, none is beyond the ends, and some come near them."""
    rng = np.random.default_rng(3)
    caps, mass = np.array([0.05, 0.1, 0.02, 0.08]), 0.12
    spreads = rng.dirichlet(np.full(4, 0.4), 200_000) * mass
    spreads = spreads[(spreads <= caps).all(axis=1)]
    entropy = -(spreads * np.log(np.maximum(spreads, 1e-300))).sum(axis=1)
    low, high = _least_even(caps, mass), _most_even(caps, mass)
    assert low <= entropy.min() < low + 0.02
    assert high - 0.002 < entropy.max() <= high + 1e-12
    assert _most_even(np.full(3, 1.0), 0.3) == pytest.approx(-0.3 * math.log(0.1))
    assert _least_even(np.array([]), 0.3) == _most_even(caps, 0.0) == 0.0
    assert _most_even(np.full(2, 1e-9), 0.3) > 0  # caps that noise put too low are raised


def test_population_entropy():
    release = replace(exact(zipf(20)), sampling_errors=np.full(20, 1e-3))
    table, population = release.entropy(), release.entropy(of="population")
    assert population.upper - population.lower > 100 * (table.upper - table.lower)
    with pytest.raises(InvalidArgument, match="population"):
        exact(zipf(20)).entropy(of="population")
