"""Distances of binomials against sums of exact fractions and against mpmath, and Theorem 5 on a grid."""

from __future__ import annotations

import itertools
from fractions import Fraction
from math import comb

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowdgram.theory import (
    MEASURED_CONSTANT,
    PAPER_CONSTANT,
    OutOfRange,
    binomial_distance,
    distance_bounds,
    distance_scale,
    least_ratio,
    limit_ratio,
    lower_bound_holds,
    poisson_distance,
    tail_start,
)

EDGES = (0.0, 1e-300, 1e-12, 0.001, 0.25, 0.5, 0.5 + 1e-13, 0.5 + 1e-9, 0.75, 0.999, 1 - 1e-12, 1.0)
PROBABILITY = st.floats(0, 1)


def exact(m, p, q):
    """By its definition, in fractions."""
    p, q = Fraction(p), Fraction(q)
    return sum(abs(comb(m, x) * (p**x * (1 - p) ** (m - x) - q**x * (1 - q) ** (m - x))) for x in range(m + 1))


def by_quadrature(m, p, q):
    """2 (tail at q - tail at p) for the best t, the tails' difference integrated with 40 digits."""
    with mpmath.workdps(40):
        p, q = mpmath.mpf(p), mpmath.mpf(q)
        level = m * mpmath.log((1 - p) / (1 - q)) / mpmath.log(q * (1 - p) / (p * (1 - q)))
        t = int(mpmath.floor(level)) + 1
        logs = mpmath.loggamma(m + 1) - mpmath.loggamma(t) - mpmath.loggamma(m - t + 1)
        spread = mpmath.sqrt(mpmath.mpf(t) * (m - t + 1) / m) / m
        middle = mpmath.mpf(t) / m
        ends = [p, *(middle + i * spread for i in range(-12, 13) if p < middle + i * spread < q), q]
        return 2 * mpmath.quad(
            lambda u: mpmath.exp(logs + (t - 1) * mpmath.log(u) + (m - t) * mpmath.log1p(-u)), ends, maxdegree=8
        )


@pytest.mark.slow
@pytest.mark.parametrize("m", [1, 2, 3, 7, 30])
def test_against_the_definition(m):
    for p, q in itertools.product(EDGES, EDGES):
        assert float(binomial_distance(m, p, q)) == pytest.approx(float(exact(m, p, q)), rel=1e-11, abs=0)


@pytest.mark.parametrize(
    ("m", "p", "q"),
    [
        (10**4, 0.3, 0.301),
        (10**6, 0.5, 0.5 + 1e-12),
        (10**6, 1e-6, 2e-6),
        (10**9, 1e-9, 1.0000001e-9),
        (10**9, 0.25, 0.25001),
        (10**12, 0.5, 0.5000003),
        (10**12, 1 - 2e-12, 1 - 1e-12),
        (10**12, 1e-6, 1.001e-6),
    ],
)
def test_against_mpmath_for_many_rows(m, p, q):
    assert float(binomial_distance(m, p, q)) == pytest.approx(float(by_quadrature(m, p, q)), rel=1e-9)


@given(st.integers(1, 40), PROBABILITY, PROBABILITY, PROBABILITY)
def test_it_is_a_distance_that_grows_with_the_gap(m, p, q, r):
    there, back = binomial_distance(m, p, q), binomial_distance(m, q, p)
    assert there == back
    assert 0 <= there <= 2
    assert there <= binomial_distance(m, p, r) + binomial_distance(m, r, q) + 1e-12
    low, middle, high = sorted((p, q, r))
    assert binomial_distance(m, low, middle) <= binomial_distance(m, low, high) + 1e-12
    assert binomial_distance(m, p, q) <= binomial_distance(m + 1, p, q) + 1e-12  # one more row tells no less


def test_special_cases():
    assert binomial_distance(5, 0.3, 0.3) == 0
    assert binomial_distance(5, 0.0, 1.0) == 2
    assert binomial_distance(1, 0.2, 0.7) == pytest.approx(1.0)
    assert binomial_distance(9, 0.0, 0.1) == pytest.approx(2 * (1 - 0.9**9))
    assert binomial_distance([1, 2], 0.5, [[0.25], [0.75]]).shape == (2, 2)
    assert tail_start(10, 0.0, 0.5) == 1
    assert tail_start(10, 0.5, 1.0) == 10
    assert binomial_distance(10**9, 2e-9, 3e-9) == pytest.approx(float(poisson_distance(2.0, 3.0)), rel=1e-6)


@pytest.mark.parametrize(
    ("m", "p", "q"),
    [(0, 0.1, 0.2), (1.5, 0.1, 0.2), (10**13, 0.1, 0.2), (3, -0.1, 0.2), (3, 0.1, 1.1), (3, float("nan"), 0.1)],
)
def test_what_is_out_of_range(m, p, q):
    with pytest.raises(OutOfRange, match="Theorem 5"):
        binomial_distance(m, p, q)


@pytest.mark.parametrize("constant", [PAPER_CONSTANT, MEASURED_CONSTANT])
def test_theorem_5_on_a_grid(constant):
    p = np.concatenate([[0.0], np.geomspace(1e-9, 0.5, 60), 1 - np.geomspace(0.4, 1e-9, 40), [1.0]])
    for m in (1, 2, 3, 5, 10, 30, 100, 1000, 10**5):
        low, high = distance_bounds(m, p[:, None], p, constant)
        distance = binomial_distance(m, p[:, None], p)
        assert np.all(low <= distance * (1 + 1e-9))
        assert np.all(distance <= high * (1 + 1e-9))


def test_the_measured_constant_is_the_best():
    limit = limit_ratio()
    assert MEASURED_CONSTANT < limit.ratio < MEASURED_CONSTANT + 2e-4
    assert limit.p == pytest.approx(1.4568, abs=1e-3)
    ratios = [least_ratio(m).ratio for m in (1, 2, 3, 10, 100, 1000, 10**6)]
    assert ratios == sorted(ratios, reverse=True)
    assert ratios[0] == pytest.approx(2.0)
    assert limit.ratio <= ratios[-1] < limit.ratio + 1e-3
    found = least_ratio(100)
    assert binomial_distance(100, found.p, found.q) / distance_scale(100, found.p, found.q) == pytest.approx(
        found.ratio
    )


@pytest.mark.parametrize("m", [1, 2, 3, 8, 40, 150])
def test_the_measured_constant_is_proved(m):
    assert lower_bound_holds(m, MEASURED_CONSTANT)


@pytest.mark.parametrize("m", [2, 3, 60, 1000])
def test_a_constant_that_is_too_large_is_refuted(m):
    assert not lower_bound_holds(m, least_ratio(m).ratio + 0.003)


def test_the_proof_knows_its_limits():
    with pytest.raises(OutOfRange, match="Theorem 5"):
        lower_bound_holds(10**7, 0.5)
    with pytest.raises(OutOfRange, match="Theorem 5"):
        lower_bound_holds(5, 3.0)
    with pytest.raises(OutOfRange, match="further from"):
        lower_bound_holds(100, 0.634, most_cells=1000)
