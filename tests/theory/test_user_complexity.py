"""Upper bounds: known special cases, how they scale, and the ranges that they name."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from crowdgram.theory import (
    MEASURED_CONSTANT,
    PAPER_CONSTANT,
    OutOfRange,
    binomial_users,
    dense_users,
    gaussian_users,
    joined_users,
    laplace_users,
    median_users,
    sample_one_users,
    selection_users,
    small_binomial_users,
    sparse_users,
    variable_users,
)

DELTA = 1e-6
BOUNDS = {
    "laplace": lambda k, m, alpha, eps: laplace_users(k, m, alpha, eps),
    "gaussian": lambda k, m, alpha, eps: gaussian_users(k, m, alpha, eps, DELTA),
    "sample-one": lambda k, m, alpha, eps: sample_one_users(k, alpha, eps),
    **{
        f"joined, {constants}": lambda k, m, alpha, eps, constants=constants: joined_users(
            k, m, alpha, eps, DELTA, constants
        )
        for constants in ("paper", "tight")
    },
    **{
        f"variable, {constants}": lambda k, m, alpha, eps, constants=constants: variable_users(
            k, m, 4 * m, alpha, eps, DELTA, constants
        )
        for constants in ("paper", "tight")
    },
}


@pytest.mark.parametrize("bound", BOUNDS.values(), ids=BOUNDS)
def test_more_accuracy_and_more_privacy_need_more_users(bound):
    for k, m in itertools.product((2, 16, 300), (16, 300, 10_000)):
        by_alpha = [bound(k, m, alpha, 0.5) for alpha in (0.5, 0.1, 0.02)]
        by_epsilon = [bound(k, m, 0.1, epsilon) for epsilon in (1.0, 0.3, 0.01)]
        assert by_alpha == sorted(by_alpha)
        assert by_epsilon == sorted(by_epsilon)
        assert by_alpha[0] >= 1
        assert by_alpha[-1] > by_alpha[0]


@pytest.mark.parametrize("name", ["laplace", "gaussian", "joined, paper", "joined, tight"])
def test_more_items_need_more_users_and_more_rows_need_fewer(name):
    bound = BOUNDS[name]
    for m in (1, 16, 1000):
        by_items = [bound(k, m, 0.1, 1.0) for k in (2, 10, 1000, 10**5) if not 10 < m < k] or [1]
        assert by_items == sorted(by_items)
    by_rows = [bound(50, m, 0.1, 1.0) for m in (50, 100, 1000, 10**5)]
    assert by_rows == sorted(by_rows, reverse=True)


def test_lemma_1_is_solved_exactly():
    for k, m, alpha, epsilon in itertools.product((2, 100), (1, 30), (0.02, 0.5), (0.1, 3.0)):
        s = laplace_users(k, m, alpha, epsilon)

        def error(users, k=k, m=m, epsilon=epsilon):
            return math.sqrt((k - 1) / (users * m)) + 2 * k / (users * epsilon)

        assert error(s) <= alpha * (1 + 1e-9)
        assert s == 1 or error(s - 1) > alpha
    # Without rows to sample, what is left is the noise: 2k/(alpha epsilon).
    assert laplace_users(100, 10**12, 0.1, 1.0) == pytest.approx(2000, rel=1e-3)
    # Without noise, the classic (k-1)/(m alpha^2).
    assert laplace_users(100, 4, 0.1, 1e9) == pytest.approx(99 / 0.04, rel=1e-3)
    assert sample_one_users(7, 0.1, 0.5) == laplace_users(7, 1, 0.1, 0.5)


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_lemma_1_holds_when_it_is_run(mechanism):
    k, m, alpha, epsilon = 20, 50, 0.2, 0.8
    rng = np.random.default_rng(5)
    p = np.arange(1, k + 1) / (k * (k + 1) / 2)
    if mechanism == "laplace":
        s = laplace_users(k, m, alpha, epsilon)
        noise = rng.laplace(0, 2 * m / epsilon, (4000, k))
    else:
        s = gaussian_users(k, m, alpha, epsilon, DELTA)
        noise = rng.normal(0, 2 * math.sqrt(math.log(1.25 / DELTA)) * m / epsilon, (4000, k))
    errors = np.abs((rng.multinomial(s * m, p, size=4000) + noise) / (s * m) - p).sum(axis=1)
    # At most alpha; and not idle: sampling and noise add up in squares, so it is at least 0.7 of it.
    assert 0.7 * alpha < errors.mean() < alpha + 6 * errors.std() / math.sqrt(4000)


def test_selection_and_theorem_6():
    assert selection_users(10, 0.1, 1e9, 0.05) == pytest.approx(8 * math.log(800) / 0.01)
    assert selection_users(10, 0.1, 1e-3, 0.05) == pytest.approx(8 * math.log(400) / 1e-4)
    m, alpha, beta = 100, 0.5, 0.01
    for c in (PAPER_CONSTANT, MEASURED_CONSTANT):
        d = math.ceil(20 * m / (c * alpha)) + 1
        assert binomial_users(m, alpha, 1e9, beta, c) == pytest.approx(800 * math.log(4 * d / beta) / (c * alpha) ** 2)
        assert binomial_users(m, alpha, 1e-9, beta, c) == pytest.approx(
            80 * math.log(2 * d / beta) / (c * alpha * 1e-9)
        )
    # Erratum 9: far more than the 16 and 16 that are printed.
    assert binomial_users(m, alpha, 1.0, beta) > 1000 * 32 * math.log(20 * m / (alpha * beta)) / alpha**2


def test_lemma_2_holds_when_it_is_run():
    m, alpha, gamma, epsilon, beta = 8, 0.9, 0.5, 0.2, 0.1
    s = math.ceil(small_binomial_users(m, alpha, gamma, epsilon, beta, "tight"))
    assert s < small_binomial_users(m, alpha, gamma, epsilon, beta)
    rng = np.random.default_rng(6)
    for p in (0.0, 0.1, 0.3, 4 / m):
        seen = rng.binomial(s, 1 - (1 - p) ** m, size=2000) + rng.laplace(0, 1 / epsilon, 2000)
        estimate = np.minimum(1 - (1 - np.clip(seen / s, 0, 1)) ** (1 / m), 4 / m)
        bound = alpha * math.sqrt(p / m) + alpha**2 / m + gamma / m
        # Expected failures: at most 200; 5 deviations above that have a chance below 1e-6.
        assert np.sum(np.abs(estimate - p) > bound) <= 200 + 5 * math.sqrt(200)


@pytest.mark.parametrize("constants", ["paper", "tight"])
def test_the_saving_of_theorem_2(constants):
    def needed(m):
        return dense_users(1000, m, 0.001, 1e-5, DELTA, constants)

    # Where privacy dominates, 100 times the rows need a tenth of the users, up to the logarithm.
    assert 7 < needed(10**4) / needed(10**6) < 11
    # And there is a floor that rows cannot lower: alpha' = 1.
    assert needed(10**10) / needed(10**12) < 1
    assert joined_users(5, 1000, 0.1, 1.0, DELTA, constants) == dense_users(5, 1000, 0.1, 1.0, DELTA, constants)
    assert joined_users(5000, 10, 0.1, 1.0, DELTA, constants) == sparse_users(5000, 10, 0.1, 1.0, DELTA, constants)
    assert joined_users(5000, 3, 0.1, 1.0, DELTA, constants) == laplace_users(5000, 3, 0.1, 1.0)


def test_tight_constants_need_fewer():
    for k, m in ((10, 10), (10, 1000), (1000, 10), (1000, 1000)):
        assert joined_users(k, m, 0.1, 0.5, DELTA, "tight") < joined_users(k, m, 0.1, 0.5, DELTA) / 100
        assert variable_users(k, m, m, 0.1, 0.5, DELTA, "tight") < variable_users(k, m, m, 0.1, 0.5, DELTA) / 100


def test_variable_needs_no_fewer_than_fixed():
    for k, m, constants in itertools.product((10, 1000), (16, 512), ("paper", "tight")):
        fixed = joined_users(k, m, 0.1, 0.5, DELTA, constants)
        assert variable_users(k, m, m, 0.1, 0.5, DELTA, constants) > fixed
        assert variable_users(k, m, 1000 * m, 0.1, 0.5, DELTA, constants) >= variable_users(
            k, m, m, 0.1, 0.5, DELTA, constants
        )
    assert median_users(1, 1.0, 0.1) == pytest.approx(8 * 2 * 2 * math.log(20))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: laplace_users(1, 5, 0.1, 1.0), "Lemma 1 (Laplace) needs items"),
        (lambda: laplace_users(5, 0, 0.1, 1.0), "Lemma 1 (Laplace) needs rows"),
        (lambda: laplace_users(5, 5, 0.0, 1.0), "alpha to be above 0 and at most 1"),
        (lambda: laplace_users(5, 5, 0.1, math.inf), "Lemma 1 (Laplace) needs epsilon"),
        (lambda: gaussian_users(5, 5, 0.1, 1.5, DELTA), "Lemma 1 (Gaussian) needs epsilon to be above 0 and at most 1"),
        (lambda: gaussian_users(5, 5, 0.1, 1.0, 0.0), "Lemma 1 (Gaussian) needs delta"),
        (lambda: dense_users(6, 5, 0.1, 1.0, DELTA), "Theorem 7 (dense) needs at most as many items as rows"),
        (lambda: dense_users(5, 5, 0.1, 1.1, DELTA), "Theorem 7 (dense) needs epsilon"),
        (lambda: sparse_users(9, 10, 0.1, 1.0, DELTA), "Theorem 8 (sparse) needs at least as many items"),
        (
            lambda: sparse_users(9, 7, 0.1, 1.0, DELTA),
            "Theorem 8 (sparse) needs rows to be a whole number of at least 8",
        ),
        (lambda: joined_users(9, 7, 0.1, 2.0, DELTA), "Theorem 2 needs epsilon"),
        (lambda: variable_users(9, 7, 6, 0.1, 1.0, DELTA), "Theorem 12 (variable) needs most_rows"),
        (lambda: variable_users(99, 8, 60, 0.1, 1.0, DELTA), "Theorem 15 (variable, sparse) needs a median of more"),
        (lambda: binomial_users(10, 1.5, 1.0, 0.1), "Theorem 6 needs alpha"),
        (lambda: small_binomial_users(7, 0.1, 0.1, 1.0, 0.1), "Lemma 2 needs rows"),
        (lambda: small_binomial_users(8, 0.1, 1.1, 1.0, 0.1), "Lemma 2 needs gamma"),
        (lambda: dense_users(5, 5, 0.1, 1.0, DELTA, "loose"), "'paper' or 'tight'"),
        (lambda: laplace_users(True, 5, 0.1, 1.0), "needs items"),
        (lambda: laplace_users(5, 5, "0.1", 1.0), "needs alpha"),
    ],
)
def test_an_error_names_the_theorem_and_its_range(call, words):
    with pytest.raises(OutOfRange) as caught:
        call()
    assert words in str(caught.value)
    assert isinstance(caught.value, ValueError)
