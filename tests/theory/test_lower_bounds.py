"""Lower bounds: special cases that are known exactly, how they scale, and that they stay below upper bounds."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from crowdgram.theory import (
    OutOfRange,
    assouad,
    counts_only_error,
    counts_only_users,
    error_sum,
    fano,
    gaussian_users,
    joined_users,
    laplace_users,
    le_cam,
    private_error,
    private_users,
    pure_error,
    pure_users,
    replaced,
    sampling_error,
    sampling_users,
)

DELTA = 1e-6


def test_le_cam():
    assert le_cam(1.0, 0.0, 1.0) == pytest.approx(0.45)
    assert le_cam(0.2, 5.0, 1.0) == pytest.approx(0.4)
    assert le_cam(1.0, 0.3, 0.1, 1e-3) == pytest.approx((0.9 * math.exp(-0.3) - 0.003) / 2)
    assert le_cam(1.0, 100.0, 1.0, 0.1) == 0.0


def test_assouad():
    assert assouad(0.1, [0.25, 0.75], 9.0, 1.0) == pytest.approx(0.05)
    assert assouad(0.1, [1.0] * 6, 0.2, 0.1) == pytest.approx(6 * 0.05 * 0.9 * math.exp(-0.2))
    # n tests, each as hard as Le Cam says: tau/2 times the sum of both errors, which is twice the worst.
    assert assouad(0.1, [0.4] * 6, 0.2, 0.1) == pytest.approx(6 * 0.1 * le_cam(0.4, 0.2, 0.1))


def test_fano():
    assert fano(0.4, 0.0, 1e3, math.log(8), 1.0) == pytest.approx(0.2 * (1 - 1 / 3))
    many = 50.0
    assert fano(0.4, 1e9, 0.0, many, 1.0) == pytest.approx(0.2 * 0.9)
    # Where exp(10 epsilon D) = M - 1 it is half of that: below what 0.8 M would give, erratum 18.
    assert fano(0.4, 1e9, many / 10, many, 1.0) == pytest.approx(0.2 * 0.45)
    for logs, far in itertools.product((math.log(9), 3.0, 700.0, 1e4), (0.0, 0.1, 1.0, 30.0)):
        assert fano(1.0, 1e9, far, logs, 1.0) >= 0.2 * min(1.0, math.exp(min(logs - 10 * far, 0.0))) * (1 - 1e-9)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_randomised_response_meets_the_bound_on_tests(epsilon):
    """One user tells the two apart; the best private test flips its answer: both errors are 1/(1 + e^epsilon)."""
    assert float(error_sum(0.0, 1, epsilon)) == pytest.approx(2 / (1 + math.exp(epsilon)))
    # With delta, the best test also tells the truth with chance delta.
    exact = 2 * (1 - 0.01) / (1 + math.exp(epsilon))
    assert float(error_sum(0.0, 1, epsilon, 0.01)) == pytest.approx(exact)
    assert float(error_sum(0.3, 1, epsilon)) == pytest.approx(0.7 * 2 / (1 + math.exp(epsilon)))
    assert float(error_sum(0.0, 10**6, epsilon, 0.5)) == 0.0
    # A group of two is (2 epsilon, (1 + e^epsilon) delta): the same by either way.
    assert float(error_sum(0.0, 2, epsilon, 0.01)) == pytest.approx(float(error_sum(0.0, 1, *replaced(epsilon, 0.01))))


def test_sampling_stays_below_the_exact_error_of_one_pair():
    """For two items the worst case is at least that of p = 1/2, and the empirical shares cannot beat the bound."""
    for n in (1, 10, 1000):
        exact = 2 * np.mean(np.abs(np.random.default_rng(1).binomial(n, 0.5, 200_000) / n - 0.5))
        assert 0.1 * exact < sampling_error(n, 2, 1) < exact


ERRORS = {
    "sampling": lambda s, k, m, eps: sampling_error(s, k, m),
    "counts only": lambda s, k, m, eps: counts_only_error(s, k, m, eps, DELTA),
    "private": lambda s, k, m, eps: private_error(s, k, m, eps, DELTA),
    "pure": lambda s, k, m, eps: pure_error(s, k, m, eps),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_fall_with_users_rows_and_epsilon_and_grow_with_items(name):
    bound = ERRORS[name]
    for k, m in ((2, 1), (10, 100), (1000, 30)):
        falls = [bound(s, k, m, 0.5) for s in (1, 10, 200, 10**4, 10**7)]
        assert falls == sorted(falls, reverse=True)
        assert 0 < falls[-1] < falls[0] <= 0.5
        assert bound(50, k, m, 0.1) >= bound(50, k, m, 1.0) >= bound(50, k, m, 8.0)
        if name != "counts only":  # there more rows of a user also hide more
            assert bound(50, k, 100 * m, 0.5) <= bound(50, k, m, 0.5) * (1 + 1e-9)
        assert bound(50, 10 * k, m, 0.5) >= bound(50, k, m, 0.5)
    assert bound(50, 11, 5, 0.5) == bound(50, 10, 5, 0.5)


def test_which_bound_is_stronger():
    for s, k, m in itertools.product((20, 2000), (10, 200), (1, 100)):
        floor = sampling_error(s, k, m)
        anything = private_error(s, k, m, 0.3, DELTA)
        assert floor <= anything <= counts_only_error(s, k, m, 0.3, DELTA) * (1 + 1e-9)
        assert anything <= pure_error(s, k, m, 0.3)
    # With one row a user the summed counts are all there is.
    assert counts_only_error(500, 40, 1, 0.3, DELTA) == pytest.approx(private_error(500, 40, 1, 0.3, DELTA), rel=1e-6)


@pytest.mark.slow
def test_the_rates_of_theorems_1_and_3():
    # Theorem 1: k/(alpha epsilon), whatever m.
    few, many = (counts_only_users(100, m, 0.001, 0.01) for m in (10**5, 10**8))
    assert many == pytest.approx(few, rel=0.05)
    assert counts_only_users(200, 10**6, 0.001, 0.01) == pytest.approx(2 * many, rel=0.05)
    assert counts_only_users(100, 10**6, 0.001, 0.005) == pytest.approx(2 * many, rel=0.1)
    assert 0.1 < many / (100 / (0.001 * 0.01)) < 0.2
    # Theorem 3: k/(sqrt(m) alpha epsilon).
    few, many = (pure_users(2000, m, 1e-4, 0.001) for m in (1000, 100_000))
    assert few == pytest.approx(10 * many, rel=0.1)


def test_users_and_errors_agree():
    s = counts_only_users(100, 50, 0.02, 0.5, DELTA)
    assert counts_only_error(s, 100, 50, 0.5, DELTA) <= 0.02 < counts_only_error(s - 1, 100, 50, 0.5, DELTA)
    assert sampling_users(10, 5, 1.0) == 1


@pytest.mark.slow
def test_lower_bounds_stay_below_upper_bounds():
    for k, m, alpha, epsilon in itertools.product((2, 500), (1, 10, 1000), (0.01, 0.2), (0.05, 1.0)):
        counts = counts_only_users(k, m, alpha, epsilon)
        assert counts <= laplace_users(k, m, alpha, epsilon)
        assert counts_only_users(k, m, alpha, epsilon, DELTA) <= gaussian_users(k, m, alpha, epsilon, DELTA)
        assert pure_users(k, m, alpha, epsilon) <= laplace_users(k, m, alpha, epsilon)
        for constants in ("paper", "tight"):
            if m >= 8 or m < k:
                joined = joined_users(k, m, alpha, epsilon, DELTA, constants)
                assert private_users(k, m, alpha, epsilon, DELTA) <= joined


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: le_cam(1.1, 1.0, 1.0), "Theorem 9 (Le Cam) needs total_variation"),
        (lambda: assouad(0.1, [0.5, -0.1], 1.0, 1.0), "Theorem 4 (Assouad) needs total_variations"),
        (lambda: assouad(0.0, [0.5], 1.0, 1.0), "Theorem 4 (Assouad) needs tau"),
        (lambda: fano(0.1, 1.0, 1.0, 0.5, 1.0), "Theorem 11 (Fano) needs log_hypotheses to be at least 0.69"),
        (lambda: counts_only_users(1, 5, 0.1, 1.0), "Theorem 1 (summed counts) needs items"),
        (lambda: counts_only_users(5, 5, 0.1, 0.0), "Theorem 1 (summed counts) needs epsilon to be above 0"),
        (lambda: counts_only_users(5, 5, 0.1, 1.0, -1.0), "Theorem 1 (summed counts) needs delta to be at least 0"),
        (lambda: pure_users(5, 0, 0.1, 1.0), "Theorem 3 (pure privacy) needs rows"),
        (lambda: pure_users(5, 5, 3.0, 1.0), "Theorem 3 (pure privacy) needs alpha"),
        (lambda: private_error(0, 5, 5, 1.0), "needs users"),
    ],
)
def test_an_error_names_the_theorem_and_its_range(call, words):
    with pytest.raises(OutOfRange) as caught:
        call()
    assert words in str(caught.value)
