"""The search for the users needed, on errors whose answer is known."""

from __future__ import annotations

import math

import numpy as np
import pytest

from crowdgram.theory import OutOfRange, laplace_users, measured_users

FLAT = np.full(4, 0.25)


@pytest.mark.parametrize("guess", [1, 40, 1_000, 100_000])
@pytest.mark.parametrize("needed", [1, 2, 37, 999])
def test_it_finds_what_is_needed(guess, needed):
    tried = []

    def error(items, rows, users, p):
        assert (items, rows) == (4, 7)
        tried.append(users)
        return 0.1 * needed / users

    found = measured_users(error, rows=7, alpha=0.1, distributions=[FLAT], repetitions=1, guess=guess)
    assert needed <= found.users <= max(needed, math.ceil(1.05 * needed))
    assert found.not_enough < needed
    assert found.users <= max(found.not_enough, 1) * 1.05 or found.users == found.not_enough + 1
    assert found.error <= 0.1
    assert not found.more
    assert len(set(tried)) == len(tried) <= 30


def test_it_says_where_it_gave_up():
    found = measured_users(lambda *_: 1.0, rows=1, alpha=0.1, distributions=[FLAT], most=500)
    assert (found.users, found.more, found.error, found.not_enough) == (500, True, 1.0, 500)


def test_the_worst_distribution_counts():
    sharp = np.array([1.0, 0, 0, 0])

    def error(items, rows, users, p):
        return (300 if p[0] == 1 else 20) / users

    found = measured_users(error, rows=1, alpha=1.0, distributions=[FLAT, sharp], repetitions=1)
    assert 300 <= found.users <= 315


def test_noise_is_averaged_away():
    """Errors with a spread as large as themselves: ten runs are too few to tell sizes near the answer apart, and the
    runs are repeated there. Within 25% is ten standard errors of the mean of thirty."""
    rng = np.random.default_rng(3)
    runs = {}

    def error(items, rows, users, p):
        runs[users] = runs.get(users, 0) + 1
        return 100 / users * rng.uniform(0.7, 1.3)

    found = measured_users(error, rows=1, alpha=0.1, distributions=[FLAT], guess=10)
    assert 750 < found.users < 1250
    assert runs[10] == 3  # ten times too large an error is seen at once
    assert max(runs.values()) > 10
    assert set(runs.values()) <= {3, 10, 20, 30}
    assert found.standard_error == pytest.approx(0.1 * 0.6 / math.sqrt(12 * runs[found.users]), rel=0.6)


def test_a_share_of_the_runs():
    """Errors spread evenly over c/users times [0, 1]: 90% keep to alpha from 0.9 c/alpha users."""
    rng = np.random.default_rng(4)
    found = measured_users(
        lambda items, rows, users, p: 100 / users * rng.uniform(),
        rows=1,
        alpha=1.0,
        distributions=[FLAT],
        repetitions=3000,
        success=0.9,
        step=1.02,
    )
    assert 86 <= found.users <= 94
    assert math.isnan(found.standard_error)


def test_the_laplace_mechanism_needs_less_than_lemma_1_says():
    rng = np.random.default_rng(9)

    def error(items, rows, users, p):
        noisy = rng.multinomial(users * rows, p) + rng.laplace(0, 2 * rows / 0.5, items)
        return np.abs(noisy / (users * rows) - p).sum()

    found = measured_users(error, rows=30, alpha=0.2, distributions=[FLAT], repetitions=100)
    assert 0.5 * laplace_users(4, 30, 0.2, 0.5) < found.users < 1.1 * laplace_users(4, 30, 0.2, 0.5)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"rows": 0}, "rows"),
        ({"alpha": 0.0}, "alpha"),
        ({"repetitions": 0}, "repetitions"),
        ({"step": 1.0}, "step"),
        ({"guess": 0}, "guess"),
        ({"most": 0}, "most"),
        ({"success": 1.5}, "success"),
        ({"distributions": []}, "at least one distribution"),
        ({"distributions": [[0.5, 0.6]]}, "sum to 1"),
    ],
)
def test_what_is_out_of_range(options, words):
    with pytest.raises(OutOfRange, match=words):
        measured_users(lambda *_: 0.0, **{"rows": 1, "alpha": 0.1, "distributions": [FLAT], **options})
