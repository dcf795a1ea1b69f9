from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest
from scipy import special

from crowdgram.privacy.normal import CENTRE, COEFFICIENTS, chance_below, erfcx, quantile, quantiles


def scaled_tail(x: mp.mpf) -> mp.mpf:
    return mp.exp(x * x) * mp.erfc(x)


def test_the_coefficients_are_those_of_the_function() -> None:
    with mp.workdps(60):
        nodes = 80
        angles = [mp.pi * (k + mp.mpf(1) / 2) / nodes for k in range(nodes)]
        values = []
        for angle in angles:
            x = CENTRE * (1 + mp.cos(angle)) / (1 - mp.cos(angle))
            values.append((1 + 2 * x) * scaled_tail(x))
        series = [
            (2 if j else 1) * mp.fsum(v * mp.cos(j * angle) for v, angle in zip(values, angles, strict=True)) / nodes
            for j in range(nodes // 2)
        ]
        used = len(COEFFICIENTS)
        assert 0 < sum(abs(one) for one in series[used:]) < 2.0**-54
        before, last, powers = [mp.mpf(0)] * used, [mp.mpf(1)] + [mp.mpf(0)] * (used - 1), [mp.mpf(0)] * used
        for j, one in enumerate(series[:used]):  # T_(j+1) = 2 t T_j - T_(j-1), and T_1 = t T_0
            powers = [sum_so_far + one * each for sum_so_far, each in zip(powers, last, strict=True)]
            shifted = [(2 if j else 1) * each for each in [mp.mpf(0), *last[:-1]]]
            before, last = last, [up - down for up, down in zip(shifted, before, strict=True)]
        assert [float(one) for one in powers] == list(COEFFICIENTS)


def test_erfcx_is_good_to_a_few_units() -> None:
    """2^-50 is far within the margin of the Gaussian curve (`privacy/gaussian.py`)."""
    x = np.unique(np.concatenate([[0.0], np.linspace(0.0, 8.0, 1001), np.geomspace(1e-12, 1e4, 1001)]))
    with mp.workdps(50):
        pairs = zip(x.tolist(), erfcx(x).tolist(), strict=True)
        off = [abs(float(mp.mpf(found) / scaled_tail(mp.mpf(one)) - 1)) for one, found in pairs]
    assert max(off) < 2.0**-50
    assert max(off) > 2.0**-54  # so the oracle is not the function itself


def test_a_few_are_as_many() -> None:
    x = np.geomspace(1e-6, 1e6, 100)
    assert [erfcx(x[[place]])[0] for place in range(100)] == erfcx(x).tolist()


@pytest.mark.parametrize("x", [1e5, 1e10, 1e100, 1e300])
def test_erfcx_far_out(x: float) -> None:
    """There it is 1 / (sqrt(pi) x), but for a relative 1 / (2 x^2)."""
    assert erfcx(np.array([x]))[0] == pytest.approx(1 / (math.sqrt(math.pi) * x), rel=1e-10)


def test_erfcx_of_infinity_is_as_good_as_0() -> None:
    assert 0 <= erfcx(np.array([math.inf]))[0] < 1e-300


def test_quantiles_and_chances() -> None:
    chances = np.array([1e-300, 1e-30, 1e-5, 0.01, 0.3, 0.5, 0.7, 0.975, 1 - 1e-9])
    np.testing.assert_allclose(quantiles(chances), special.ndtri(chances), rtol=1e-12, atol=1e-15)
    assert quantile(0.975) == quantiles(chances)[7]
    for x in (-30.0, -6.0, -1.0, 0.0, 0.5, 9.0):
        assert chance_below(x) == pytest.approx(float(special.ndtr(x)), rel=1e-12)
