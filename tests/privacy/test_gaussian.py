from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest

from crowdgram.errors import InvalidArgument
from crowdgram.privacy.gaussian import gaussian_delta, gaussian_deltas, gaussian_epsilon, gaussian_mu

from . import oracle

EPSILONS = [0.0, 1e-6, 1e-3, 0.05, 0.3, 1.0, 3.0, 10.0, 40.0, 100.0]
MUS = [1e-6, 1e-5, 1e-4, 1e-3, 0.02, 0.2367, 1.0, 5.0, 20.0]


@pytest.mark.parametrize("mu", MUS)
def test_delta_is_an_upper_bound_within_a_millionth(mu: float) -> None:
    # The grid above, and points chosen so that delta runs from 0.4 down to 1e-200 whatever mu is.
    for epsilon in EPSILONS + [mu * z for z in (0.1, 1.0, 3.0, 8.0, 15.0, 30.0)]:
        truth = oracle.gaussian(mu, epsilon)
        bound = gaussian_delta(mu, epsilon)
        assert bound >= truth
        if truth > 1e-290:
            assert bound <= truth * (1 + mp.mpf("1e-6"))
            # The margin is what makes it a bound: it must exceed the arithmetic's own error by far.
            margin = mp.mpf(2) ** -36 + mp.mpf(2) ** -43 / mu
            if bound < 1.0:
                assert abs(bound / (1 + margin) / truth - 1) < margin / 4


@pytest.mark.parametrize("mu", [1e-9, 1e-12, 1e-15])
@pytest.mark.parametrize("epsilon", [0.0, 1e-14, 1e-9, 1.0])
def test_delta_of_a_tiny_mu_is_still_a_bound(mu: float, epsilon: float) -> None:
    assert oracle.gaussian(mu, epsilon) <= gaussian_delta(mu, epsilon) <= 0.4 * mu


@pytest.mark.parametrize("mu", [0.1, 1.0, 4.0])
def test_delta_at_negative_epsilon(mu: float) -> None:
    epsilons = np.array([-20.0, -3.0, -0.5, -1e-9])
    for epsilon, bound in zip(epsilons, gaussian_deltas(mu, epsilons), strict=True):
        truth = oracle.gaussian(mu, epsilon)
        assert truth <= mp.mpf(float(bound)) <= truth * (1 + mp.mpf("1e-9")) or bound == 1.0


def test_delta_at_the_ends() -> None:
    assert gaussian_delta(0.0, 0.0) == 0.0
    assert gaussian_delta(math.inf, 1.0) == 1.0
    assert gaussian_delta(1e-4, 100.0) > 0.0  # never a claim of delta = 0


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 1.0, 3.0, 10.0])
@pytest.mark.parametrize("delta", [1e-4, 1e-6, 1e-9, 1e-12, 1e-15])
def test_mu_and_epsilon_are_safe_and_within_a_millionth(epsilon: float, delta: float) -> None:
    mu = gaussian_mu(epsilon, delta)
    truth = oracle.gaussian_mu(epsilon, delta, near=mu)
    assert truth * (1 - mp.mpf("1e-6")) <= mu <= truth
    assert gaussian_delta(mu, epsilon) <= delta < gaussian_delta(mu * (1 + 1e-9), epsilon)

    found = gaussian_epsilon(mu, delta)
    assert oracle.gaussian(mu, found) <= delta
    assert oracle.gaussian(mu, found * (1 - 1e-6)) > delta


def test_no_delta_no_gaussian() -> None:
    assert gaussian_epsilon(0.1, 0.0) == math.inf
    assert gaussian_mu(1.0, 0.0) == 0.0
    assert gaussian_epsilon(0.0, 0.0) == 0.0


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (gaussian_delta, (-1.0, 1.0)),
        (gaussian_delta, (math.nan, 1.0)),
        (gaussian_delta, (1.0, -0.1)),
        (gaussian_delta, (1.0, math.inf)),
        (gaussian_epsilon, (1.0, 1.0)),
        (gaussian_epsilon, (1.0, -1e-9)),
        (gaussian_mu, (1.0, math.nan)),
    ],
)
def test_bad_arguments_are_refused(function: object, arguments: tuple[float, float]) -> None:
    with pytest.raises(InvalidArgument, match=r"(mu|epsilon|delta)=.*: needs"):
        function(*arguments)  # type: ignore[operator]
