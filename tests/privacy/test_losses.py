from __future__ import annotations

import itertools
import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest

from crowdgram.privacy.events import ExponentialEvent, LaplaceEvent
from crowdgram.privacy.losses import bounded_range_deltas, compose_losses, float_up, laplace_deltas

from . import oracle


def two_point_curve(eta: float, t: float, epsilon: float) -> float:
    """The pair of bounded range [t - eta, t] with two outcomes: Dong, Durfee and Rogers."""
    q = (math.exp(-t) - math.exp(-eta)) / -math.expm1(-eta)
    p = q * math.exp(t)
    return max(p - math.exp(epsilon) * q, 0.0) + max((1 - p) - math.exp(epsilon) * (1 - q), 0.0)


@pytest.mark.parametrize("eta", [0.01, 0.3, 1.0, 4.0])
def test_bounded_range_curve_is_the_sup_over_two_point_pairs(eta: float) -> None:
    epsilons = eta * np.array([-1.5, -1.0, -0.9, -0.4, 0.0, 0.2, 0.7, 0.99, 1.0, 1.2])
    for epsilon, curve in zip(epsilons, bounded_range_deltas(eta, epsilons), strict=True):
        pairs = [two_point_curve(eta, t, epsilon) for t in np.linspace(0.0, eta, 4001)]
        assert curve >= max(pairs) - 1e-13
        assert curve <= max(pairs) + 1e-7 * eta


def test_bounded_range_curve_holds_for_exponential_mechanisms() -> None:
    # Weights exp(eta score/2) with scores that change by at most 1 either way: range eta, all corners of the
    # change.
    eta, scores = 0.8, np.array([0.0, 1.0, 1.5])
    epsilons = np.linspace(-1.0, 1.0, 21)
    curve = bounded_range_deltas(eta, epsilons)
    tightest = np.inf
    for change in itertools.product((-1.0, 0.0, 1.0), repeat=3):
        p, q = np.exp(eta / 2 * scores), np.exp(eta / 2 * (scores + np.array(change)))
        p, q = p / p.sum(), q / q.sum()
        true = np.array([np.maximum(p - np.exp(e) * q, 0.0).sum() for e in epsilons])
        assert (curve >= true - 1e-14).all()
        tightest = min(tightest, float((curve - true)[10]))
    assert tightest < 0.05  # the bound is not vacuous


@pytest.mark.parametrize(("shift", "scale"), [(1, 1.0), (1, 20.0), (2, 3.3), (7, 2.5), (40, 31.7)])
def test_laplace_curve_is_exact_for_one_coordinate(shift: int, scale: float) -> None:
    epsilons = np.linspace(-1.2, 1.2, 49) * shift / scale
    losses = oracle.laplace_losses(shift, scale)
    for epsilon, curve in zip(epsilons, laplace_deltas(shift, scale, epsilons), strict=True):
        assert abs(curve - oracle.curve_of(losses, epsilon)) < 1e-15


@pytest.mark.parametrize(("shift", "scale"), [(3, 2.5), (40, 31.7)])
def test_smooth_laplace_bound_is_above_the_exact_curve(
    shift: int, scale: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    epsilons = np.linspace(-0.99, 0.99, 101) * shift / scale
    exact = laplace_deltas(shift, scale, epsilons)
    # the bound for large sensitivities, for small ones
    monkeypatch.setattr("crowdgram.privacy.losses.EXACT_SENSITIVITY", 0)
    smooth = laplace_deltas(shift, scale, epsilons)
    assert (smooth >= exact - 1e-15).all()
    assert (smooth - exact).min() < 1e-4  # they touch where the best threshold is an integer
    assert (smooth - exact).max() < 1 / (4 * scale**2)


@pytest.mark.parametrize("shifts", [(1, 1), (2, 1), (1, 1, 1), (3, 2)])
def test_a_vector_of_laplaces_is_dominated_by_one_coordinate(shifts: tuple[int, ...]) -> None:
    scale = 2.7
    losses = oracle.laplace_losses(shifts[0], scale)
    for shift in shifts[1:]:
        losses = oracle.add_losses(losses, oracle.laplace_losses(shift, scale))
    epsilons = np.linspace(0.0, sum(shifts) / scale, 30)
    for epsilon, curve in zip(epsilons, laplace_deltas(sum(shifts), scale, epsilons), strict=True):
        assert curve >= oracle.curve_of(losses, epsilon) - mp.mpf("1e-15")


@pytest.mark.parametrize(
    "events", [((1, 20.0),), ((3, 4.0), (1, 2.0)), ((1, 3.0), (1, 3.0), (2, 5.0)), ((2, 0.3), (1, 0.2))]
)
def test_composed_laplace_losses_bound_the_exact_composition(events: tuple[tuple[int, float], ...]) -> None:
    loss = compose_losses([LaplaceEvent("p", shift, scale, 1) for shift, scale in events])
    assert loss is not None
    truth = [(mp.mpf(0), mp.mpf(1))]
    for shift, scale in events:
        truth = oracle.add_losses(truth, oracle.laplace_losses(shift, scale))
    total = sum(shift / scale for shift, scale in events)
    for epsilon in np.linspace(0.0, total * 0.999, 25):
        exact = oracle.curve_of(truth, epsilon)
        bound = loss.delta_with_gaussian(0.0, float(epsilon))
        assert bound >= exact
        assert bound <= exact * mp.mpf("1.001") + loss.step / 4  # within a step of an atom it is that coarse
    assert 1.0 <= loss.masses.sum() < 1.0 + 1e-5


def test_composed_choices_are_tighter_than_pure_composition_and_above_two_point_pairs() -> None:
    eta, rounds, epsilon = 0.5, 6, 1.2
    loss = compose_losses([ExponentialEvent("choice", eta, 9)] * rounds)
    assert loss is not None
    bound = loss.delta_with_gaussian(0.0, epsilon)
    worst = 0.0
    for t in np.linspace(0.01, eta - 0.01, 49):  # the same pair in each round: a true composition of choices
        q = (math.exp(-t) - math.exp(-eta)) / -math.expm1(-eta)
        p = q * math.exp(t)
        true = sum(
            math.comb(rounds, k)
            * p**k
            * (1 - p) ** (rounds - k)
            * max(-math.expm1(epsilon - (rounds * (t - eta) + k * eta)), 0.0)
            for k in range(rounds + 1)
        )
        worst = max(worst, true)
    randomised_response = sum(
        math.comb(rounds, k)
        * math.exp(eta * k)
        / (1 + math.exp(eta)) ** rounds
        * max(-math.expm1(epsilon - eta * (2 * k - rounds)), 0.0)
        for k in range(rounds + 1)
    )
    assert worst <= bound < randomised_response
    assert bound < 3 * worst


@pytest.mark.slow
def test_the_rounding_of_the_masses_is_charged() -> None:
    # At the nodes of the grid the bound touches the curve, so that nothing but the allowance keeps it above.
    eta = 0.03
    loss = compose_losses([ExponentialEvent("choice", eta, 2)])
    assert loss is not None
    nodes = [(loss.first + i) * mp.mpf(loss.step) for i in range(len(loss.masses))]
    masses = list(zip(nodes, map(mp.mpf, loss.masses.tolist()), strict=True))
    for node in nodes:
        if abs(node) < eta:
            exact = (mp.exp(mp.mpf(eta) / 2) - mp.exp(node / 2)) ** 2 / mp.expm1(mp.mpf(eta))
            assert exact <= oracle.curve_of(masses, node) <= exact * (1 + mp.mpf("1e-6")) + mp.mpf("1e-10")


def test_absurd_epsilons_have_no_loss() -> None:
    assert compose_losses([LaplaceEvent("p", 10**6, 1.0, 1)]) is None


@pytest.mark.parametrize("value", [Fraction(1, 3), Fraction(-1, 3), Fraction(2**60 + 1), Fraction(1, 4)])
def test_float_up_is_the_next_double(value: Fraction) -> None:
    up = float_up(value)
    assert Fraction(math.nextafter(up, -math.inf)) < value <= Fraction(up)


def test_float_up_overflows_to_infinity() -> None:
    assert float_up(Fraction(10**400)) == math.inf
