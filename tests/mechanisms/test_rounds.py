"""Parts of the rounds that have an answer of their own."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special

from crowdgram.mechanisms.measurements import agreed
from crowdgram.mechanisms.rounds import _skew


@pytest.mark.parametrize(("rows", "centre"), [(7, [0.6, 0.3, 0.1]), (40, [0.8, 0.15, 0.05])])
def test_the_third_moments_are_those_of_all_outcomes(rows, centre):
    """-Cov(x_i, ||x - c||^2) / (2 E||x - c||^2), summed over everything that a user's rows can be."""
    c = np.array(centre)
    factors = c ** (1 / 3)
    pull, spread, seen = np.zeros(3), 0.0, 0.0
    for first in range(rows + 1):
        for second in range(rows - first + 1):
            n = np.array([first, second, rows - first - second])
            chance = math.exp(special.gammaln(rows + 1) - special.gammaln(n + 1).sum() + (n * np.log(c)).sum())
            away = n / rows - c
            square = float(((away / factors) ** 2).sum())
            pull += chance * away * square
            spread += chance * square
            seen += chance
    assert seen == pytest.approx(1)
    assert _skew(c, factors) / rows == pytest.approx(pull / (2 * spread), rel=1e-9)


def test_that_is_what_clipping_takes_where_items_are_many():
    """By simulation: 200 items, 50 rows, a million users would give the bias to 2%; these give it to about 7%."""
    rng = np.random.default_rng(1)
    c = 1 / np.arange(1, 201)
    c /= c.sum()
    factors = c ** (1 / 3)
    lost, weight = np.zeros(200), 0.0
    for _ in range(20):
        away = rng.multinomial(50, c, size=4000) / 50 - c
        each = 1 / np.sqrt(((away / factors) ** 2).sum(axis=1))
        lost += each @ away
        weight += each.sum()
    bias, given = lost / weight, _skew(c, factors) / 50
    slope = float(bias @ given / (given @ given))
    assert -1.3 < slope < -0.7


def test_agreed_is_the_mean_by_inverse_variance():
    assert agreed(1.0, 1.0, 4.0, 2.0) == pytest.approx((1.6, math.sqrt(0.8)))
    values, deviation = agreed(np.array([0.0, 2.0]), 1.0, np.array([2.0, 2.0]), 1.0)
    assert values.tolist() == [1.0, 2.0]
    assert deviation == pytest.approx(math.sqrt(0.5))
