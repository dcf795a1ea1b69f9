from __future__ import annotations

import math
import subprocess
import sys
from fractions import Fraction
from functools import cache

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowdgram.errors import InvalidArgument, PrivacyViolation
from crowdgram.privacy.accounting import (
    ETA,
    TAU,
    check,
    delta_spent,
    epsilon_spent,
    gaussian_event_mu,
    gaussian_mu,
    gaussian_sigma,
    laplace_scale,
    remaining_epsilon,
    remaining_mu,
)
from crowdgram.privacy.events import (
    Event,
    ExponentialEvent,
    GaussianEvent,
    LaplaceEvent,
    ThresholdEvent,
    to_dp_event,
)
from crowdgram.privacy.guarantee import Guarantee

from ..thorough import examples
from . import oracle


def gaussian(mu: float, dimension: int = 10) -> GaussianEvent:
    return GaussianEvent("rounds", 1e6, gaussian_sigma(1e6, mu), dimension)


def laplace(epsilon: float) -> LaplaceEvent:
    """A scale so large that the noise is continuous to 15 digits."""
    sensitivity = 2**40
    return LaplaceEvent("profile", sensitivity, laplace_scale(sensitivity, epsilon), 8)


# The lemma on the discrete Gaussian (docs/proofs/discrete-gaussian.md)


@pytest.mark.slow
@pytest.mark.parametrize(("sigma", "tau"), [(0.75, 0.5), (1.0, 0.4), (1.5, 0.6)])
def test_discrete_gaussian_is_a_rounded_gaussian_up_to_eta(sigma: float, tau: float) -> None:
    # Smaller tau than in the code, so that the loss is large enough to see.
    kappa = 2 * mp.nsum(lambda j: mp.exp(-2 * mp.pi**2 * mp.mpf(tau) ** 2 * j**2), [1, mp.inf])
    eta = mp.log((1 + kappa) / (1 - kappa))
    exact = oracle.discrete_gaussian_pmf(0, sigma, 30)

    @cache  # most of the time goes here, and every integral has the same points
    def normaliser(x: mp.mpf) -> mp.mpf:
        near = range(int(x) - 8, int(x) + 9)  # what is further off is below 1e-29
        return mp.fsum(mp.exp(-((j - x) ** 2) / (2 * mp.mpf(tau) ** 2)) for j in near)

    def log_ratio(y: int, variance: mp.mpf) -> mp.mpf:
        """The discrete Gaussian against the rounding, of width tau, of a continuous one of this variance."""

        def joint(x: mp.mpf) -> mp.mpf:
            rounding = mp.exp(-((y - x) ** 2) / (2 * mp.mpf(tau) ** 2))
            return mp.npdf(x, 0, mp.sqrt(variance)) * rounding / normaliser(x)

        with mp.workdps(20):
            return abs(mp.log(exact[y] / mp.quad(joint, mp.linspace(-9, 9, 13))))

    variance = mp.mpf(sigma) ** 2 - mp.mpf(tau) ** 2
    assert max(log_ratio(y, variance) for y in (0, 1, 3)) <= eta
    assert log_ratio(3, variance + mp.mpf(tau) ** 2) > eta  # forgetting tau is seen


@pytest.mark.parametrize("tau", [0.3, 0.5, 1.0, 2.0])
def test_kappa_is_the_ripple_of_the_normaliser(tau: float) -> None:
    kappa = 2 * mp.nsum(lambda j: mp.exp(-2 * mp.pi**2 * mp.mpf(tau) ** 2 * j**2), [1, mp.inf])
    for t in (0, 0.1, 0.25, 0.5):
        total = mp.fsum(mp.exp(-((j - mp.mpf(t)) ** 2) / (2 * mp.mpf(tau) ** 2)) for j in range(-60, 61))
        ripple = total / (mp.sqrt(2 * mp.pi) * tau) - 1
        assert abs(ripple) <= kappa * (1 + mp.mpf("1e-9"))
        if t == 0:
            assert ripple >= kappa * (1 - mp.mpf("1e-9"))


def test_eta_bounds_the_loss_of_a_coordinate() -> None:
    kappa = 2 * mp.nsum(lambda j: mp.exp(-2 * mp.pi**2 * TAU**2 * j**2), [1, mp.inf])
    eta = mp.log((1 + kappa) / (1 - kappa))
    assert 4 * mp.exp(-2 * mp.pi**2 * TAU**2) < eta < 1.01 * eta < ETA < 1.5 * eta


@pytest.mark.parametrize(("sigma", "shift"), [(2.5, 1), (4.0, 2), (20.0, 5), (20.0, 60)])
def test_exact_discrete_gaussian_is_never_above_delta_spent(sigma: float, shift: int) -> None:
    reach = int(40 * sigma) + shift
    pmf = oracle.discrete_gaussian_pmf(0, sigma, reach)
    event = GaussianEvent("sum", shift, sigma, 1)
    for epsilon in (0.0, 0.1, 0.5, 1.0, 2.0, 4.0):
        exact = mp.fsum(
            max(p - mp.exp(epsilon) * pmf[y - shift], mp.mpf(0)) for y, p in pmf.items() if y - shift in pmf
        )
        spent = delta_spent([event], epsilon)
        assert spent >= exact
        if sigma == 20.0 and exact > 1e-6:
            assert spent <= exact * mp.mpf("1.3")  # the price of discreteness at a small sigma, not more


# Gaussian events


@given(st.lists(st.floats(1e-3, 2.0), min_size=1, max_size=6), st.floats(0.01, 8.0))
@examples(30, 600)
def test_gaussian_events_add_in_mu(mus: list[float], epsilon: float) -> None:
    events = [gaussian(mu) for mu in mus]
    total = mp.sqrt(mp.fsum(mp.mpf(gaussian_event_mu(event)) ** 2 for event in events))
    truth = oracle.gaussian(total, epsilon)
    spent = delta_spent(events, epsilon)
    assert spent >= truth
    if truth > 1e-280:
        assert spent <= truth * (1 + mp.mpf("1e-8"))


def test_the_discreteness_of_all_coordinates_is_charged() -> None:
    event = GaussianEvent("huge", 1.0, 30.0, 10**30)
    charge = 10**30 * ETA
    truth = mp.exp(charge) * oracle.gaussian(gaussian_event_mu(event), mp.mpf(0.1) - 2 * mp.mpf(charge))
    assert truth <= delta_spent([event], 0.1) <= truth * (1 + mp.mpf("1e-8"))
    assert delta_spent([event], 0.1) > 1.0001 * delta_spent([GaussianEvent("small", 1.0, 30.0, 1)], 0.1)


@given(st.floats(1e-6, 1e15), st.floats(1e-6, 1e3))
@examples(50, 1500)
def test_sigma_is_the_smallest_that_keeps_mu(sensitivity: float, mu: float) -> None:
    sigma = gaussian_sigma(sensitivity, mu)
    assert gaussian_event_mu(GaussianEvent("sum", sensitivity, sigma, 1)) <= mu
    below = math.nextafter(sigma, 0.0)
    assert gaussian_event_mu(GaussianEvent("sum", sensitivity, below, 1)) > mu
    # and the event's mu is itself rounded up from the truth, by less than a unit
    event_mu = gaussian_event_mu(GaussianEvent("sum", sensitivity, sigma, 1))
    truth = mp.mpf(sensitivity) / mp.sqrt(mp.mpf(sigma) ** 2 - 4)
    assert math.nextafter(event_mu, 0.0) <= truth <= event_mu


@pytest.mark.parametrize("sigma", [0.5, 1.0, 2.0])
def test_too_little_noise_counts_as_none(sigma: float) -> None:
    event = GaussianEvent("sum", 1.0, sigma, 1)
    assert gaussian_event_mu(event) == math.inf
    assert delta_spent([event], 5.0) == 1.0
    assert epsilon_spent([event], 0.5) == math.inf


@pytest.mark.parametrize("event", [GaussianEvent("s", 1e-300, 1e300, 1), GaussianEvent("s", 1e300, 3.0, 1)])
def test_extreme_gaussian_events_end_in_an_answer(event: GaussianEvent) -> None:
    assert 0.0 < delta_spent([event], 1.0) <= 1.0


@pytest.mark.parametrize("epsilon", [0.05, 0.2, 1.0, 3.0, 10.0])
@pytest.mark.parametrize("delta", [1e-4, 1e-6, 1e-9, 1e-12])
def test_calibrated_sigma_is_within_a_millionth_of_the_analytic_gaussian(epsilon: float, delta: float) -> None:
    guarantee = Guarantee(epsilon, delta)
    mu = remaining_mu(guarantee, [], 1000)
    sigma = gaussian_sigma(1e6, mu)
    check([GaussianEvent("sum", 1e6, sigma, 1000)], guarantee)
    analytic = 1e6 / oracle.gaussian_mu(epsilon, delta, near=mu)
    assert analytic <= sigma <= analytic * (1 + mp.mpf("1e-6"))


# Pure events


def test_pure_events_add_exactly() -> None:
    events: list[Event] = [LaplaceEvent("p", 1, 10.0, 3)] * 3 + [ExponentialEvent("c", 0.1, 5)]
    exact = 3 * Fraction(1, 10) + Fraction(0.1)
    spent = epsilon_spent(events, 0.0)
    assert Fraction(math.nextafter(spent, 0.0)) < exact <= Fraction(spent)
    assert delta_spent(events, spent) == 0.0
    check(events, Guarantee(spent))
    with pytest.raises(PrivacyViolation):
        check(events, Guarantee(math.nextafter(spent, 0.0)))


def test_no_events_spend_nothing() -> None:
    assert delta_spent([], 0.0) == 0.0
    assert epsilon_spent([], 0.0) == epsilon_spent([], 1e-6) == 0.0
    check([], Guarantee(0.1))


def test_a_delta_makes_many_pure_events_cheaper_but_never_dearer() -> None:
    events = [laplace(0.05)] * 40
    assert epsilon_spent(events, 1e-6) < 0.8 * epsilon_spent(events, 0.0)
    assert epsilon_spent(events[:1], 1e-6) <= epsilon_spent(events[:1], 0.0)


@given(st.integers(1, 2**62), st.floats(1e-6, 100.0))
@examples(50, 1500)
def test_laplace_scale_is_the_smallest(sensitivity: int, epsilon: float) -> None:
    scale = laplace_scale(sensitivity, epsilon)
    assert Fraction(sensitivity) / Fraction(scale) <= Fraction(epsilon)
    assert Fraction(sensitivity) / Fraction(math.nextafter(scale, 0.0)) > Fraction(epsilon)


def test_remaining_epsilon_is_the_exact_rest() -> None:
    guarantee = Guarantee(1.0)
    first = LaplaceEvent("p", 3, laplace_scale(3, 0.1), 5)
    rest = remaining_epsilon(guarantee, [first])
    second = LaplaceEvent("counts", 7, laplace_scale(7, rest), 5)
    check([first, second], guarantee)
    assert rest == pytest.approx(0.9, abs=1e-12)
    with pytest.raises(PrivacyViolation):
        check([first, ExponentialEvent("c", math.nextafter(rest, 1.0), 3)], guarantee)
    assert remaining_epsilon(guarantee, [LaplaceEvent("p", 2, 1.0, 5)]) == 0.0
    with pytest.raises(InvalidArgument, match="remaining_mu"):
        remaining_epsilon(Guarantee(1.0, 1e-6), [gaussian(0.1)])


# Thresholds, and a pure finish after Gaussian noise


@pytest.mark.parametrize("events", [[], [gaussian(0.2)], [laplace(0.5)], [gaussian(0.1), laplace(0.4)]])
def test_thresholds_add_their_delta(events: list[Event]) -> None:
    thresholds = [ThresholdEvent("items", 2e-7), ThresholdEvent("groups", 1e-7)]
    for epsilon in (0.3, 1.0):
        alone = Fraction(delta_spent(events, epsilon))
        exact = alone + sum(Fraction(one.delta) for one in thresholds)
        together = Fraction(delta_spent([*thresholds, *events], epsilon))
        assert exact <= together <= exact * (1 + Fraction(1, 2**50))
    assert epsilon_spent([*thresholds, *events], 2.9e-7) == math.inf
    left = float(Fraction(1e-6) - Fraction(2e-7) - Fraction(1e-7))
    assert epsilon_spent([*thresholds, *events], 1e-6) == pytest.approx(epsilon_spent(events, left), rel=1e-9)


def test_a_threshold_alone_is_checked() -> None:
    check([ThresholdEvent("items", 1e-6)], Guarantee(0.1, 1e-6))
    with pytest.raises(PrivacyViolation):
        check([ThresholdEvent("items", 1.1e-6)], Guarantee(100.0, 1e-6))
    with pytest.raises(PrivacyViolation):
        check([ThresholdEvent("items", 1e-9)], Guarantee(1.0))


def test_mu_is_left_for_what_a_threshold_does_not_take() -> None:
    guarantee = Guarantee(1.0, 1e-6)
    mu = remaining_mu(guarantee, [ThresholdEvent("items", 2.5e-7)], 100)
    assert mu == pytest.approx(gaussian_mu(1.0, 7.5e-7), rel=1e-9)
    check([ThresholdEvent("items", 2.5e-7), gaussian(mu, 100)], guarantee)
    with pytest.raises(PrivacyViolation):
        check([ThresholdEvent("items", 2.5e-7), gaussian(mu * 1.0001, 100)], guarantee)
    assert remaining_mu(guarantee, [ThresholdEvent("items", 1e-6)], 100) == 0.0


@pytest.mark.parametrize(("mu", "delta"), [(0.02, 1e-7), (0.07, 1.25e-7), (0.1, 1e-9)])
def test_a_pure_finish_after_gaussian_noise(mu: float, delta: float) -> None:
    """Worse than any pure event: its whole epsilon, always. Even so delta is kept, and little is given away."""
    guarantee = Guarantee(1.0, 1e-6)
    past = [gaussian(mu), laplace(0.03)]
    rest = remaining_epsilon(guarantee, past, delta)
    assert oracle.gaussian(mu, 1.0 - rest - 0.03) <= delta
    assert oracle.gaussian(mu, 1.0 - rest - 0.03) >= 0.99 * delta
    check([*past, laplace(rest)], Guarantee(1.0, delta))
    assert remaining_epsilon(guarantee, [*past, ThresholdEvent("items", 1e-7)], delta) == rest


def test_gaussian_noise_may_leave_nothing_pure() -> None:
    assert remaining_epsilon(Guarantee(1.0, 1e-6), [gaussian(0.3)], 1e-7) == 0.0


# Mixed events


@pytest.mark.slow
@pytest.mark.parametrize(
    ("epsilon_0", "mu", "epsilon"),
    [
        (0.05, 0.23, 1.0),  # delta 8e-7
        (0.05, 0.14, 1.0),  # 9e-14
        (0.5, 0.2, 1.0),
        (0.5, 0.01, 0.52),
        (1.0, 0.1, 1.5),
        (3.0, 1.0, 4.0),
        (0.3, 0.09, 0.95),  # 1e-13
    ],
)
def test_laplace_with_gaussian_against_quadrature(epsilon_0: float, mu: float, epsilon: float) -> None:
    profile, rounds = laplace(epsilon_0), gaussian(mu)
    truth = oracle.laplace_with_gaussian(
        mp.mpf(profile.sensitivity) / mp.mpf(profile.scale), gaussian_event_mu(rounds), epsilon
    )
    spent = delta_spent([profile, rounds], epsilon)
    assert truth <= spent <= truth * (1 + mp.mpf("5e-5"))


def test_many_kinds_against_exact_atoms() -> None:
    events: list[Event] = [LaplaceEvent("p", 3, 6.0, 2), LaplaceEvent("q", 1, 5.0, 2), gaussian(0.2)]
    atoms = oracle.add_losses(oracle.laplace_losses(3, 6.0), oracle.laplace_losses(1, 5.0))
    for epsilon in (0.5, 1.0, 1.7, 2.2):
        truth = mp.fsum(p * oracle.gaussian(gaussian_event_mu(events[2]), epsilon - x) for x, p in atoms)  # type: ignore[arg-type]
        spent = delta_spent(events, epsilon)
        assert truth <= spent <= truth * (1 + mp.mpf("1e-4"))


def test_a_choice_with_gaussian_lies_between_its_worst_pair_and_randomised_response() -> None:
    eta, mu, epsilon = 0.4, 0.2, 1.0
    spent = delta_spent([ExponentialEvent("c", eta, 4), gaussian(mu)], epsilon)
    worst = mp.mpf(0)
    for t in np.linspace(0.001, eta - 0.001, 60):
        q = (mp.exp(-t) - mp.exp(-eta)) / (1 - mp.exp(-eta))
        p = q * mp.exp(t)
        pair = p * oracle.gaussian(mu, epsilon - t) + (1 - p) * oracle.gaussian(mu, epsilon - t + eta)
        worst = max(worst, pair)
    response = mp.exp(eta) / (1 + mp.exp(eta))
    black_box = response * oracle.gaussian(mu, epsilon - eta) + (1 - response) * oracle.gaussian(mu, epsilon + eta)
    assert worst <= spent < 0.7 * black_box


def test_agrees_with_dp_accounting() -> None:
    from dp_accounting.pld import PLDAccountant

    events: list[Event] = [laplace(0.05), laplace(0.1), gaussian(0.15), gaussian(0.12)]
    accountant = PLDAccountant()
    accountant.compose(to_dp_event(events))
    assert epsilon_spent(events, 1e-6) == pytest.approx(accountant.get_epsilon(1e-6), rel=1e-3)


@pytest.mark.parametrize(
    "earlier",
    [
        [],
        [gaussian(0.1)],
        [laplace(0.05)],
        [ExponentialEvent("c", 0.1, 7), LaplaceEvent("p", 1, 20.0, 4)],
        [laplace(0.02), gaussian(0.05), ExponentialEvent("c", 0.05, 3)],
    ],
)
@pytest.mark.parametrize("delta", [1e-6, 1e-12])
def test_remaining_mu_can_be_spent_in_shares_and_is_the_most(earlier: list[Event], delta: float) -> None:
    guarantee = Guarantee(1.0, delta)
    mu = remaining_mu(guarantee, earlier, 1000)
    shares = np.array([0.05, 0.15, 0.8, 0.0001])
    shares /= shares.sum()
    spent = [GaussianEvent("round", 12345.0, gaussian_sigma(12345.0, mu * math.sqrt(share)), 250) for share in shares]
    check([*earlier, *spent], guarantee)
    with pytest.raises(PrivacyViolation):
        check([*earlier, gaussian(mu * (1 + 1e-6), 1000)], guarantee)
    assert epsilon_spent([*earlier, *spent], delta) == pytest.approx(1.0, rel=1e-6)


def test_a_laplace_profile_leaves_most_of_mu() -> None:
    guarantee = Guarantee(1.0, 1e-6)
    left = remaining_mu(guarantee, [laplace(0.05)], 100) / remaining_mu(guarantee, [], 100)
    assert left**2 == pytest.approx(0.961, abs=0.001)


@pytest.mark.parametrize(
    ("guarantee", "earlier"),
    [
        (Guarantee(1.0), []),
        (Guarantee(1.0, 1e-6), [gaussian(0.3)]),
        (Guarantee(1.0, 1e-6), [LaplaceEvent("p", 2, 1.0, 1)]),
        (Guarantee(1.0, 1e-6), [LaplaceEvent("p", 10**9, 1.0, 1)]),
    ],
)
def test_nothing_remains_when_all_is_spent(guarantee: Guarantee, earlier: list[Event]) -> None:
    assert remaining_mu(guarantee, earlier, 10) == 0.0


@given(st.floats(0.1, 5.0), st.floats(1.01, 3.0))
@examples(40)
def test_delta_falls_as_epsilon_grows_and_rises_with_events(epsilon: float, factor: float) -> None:
    events: list[Event] = [laplace(0.1), gaussian(0.2)]
    assert delta_spent(events, epsilon * factor) <= delta_spent(events, epsilon)
    assert delta_spent(events, epsilon) < delta_spent([*events, gaussian(0.1)], epsilon)
    assert delta_spent(events, epsilon) < delta_spent([*events, ExponentialEvent("c", 0.1, 3)], epsilon)


# The check and its arguments


def test_check_is_exact() -> None:
    events = [gaussian(0.2)]
    spent = delta_spent(events, 1.0)
    check(events, Guarantee(1.0, spent))
    with pytest.raises(PrivacyViolation, match="nothing is released"):
        check(events, Guarantee(1.0, math.nextafter(spent, 0.0)))
    with pytest.raises(PrivacyViolation):
        check(events, Guarantee(100.0))  # Gaussian noise never has delta = 0
    assert epsilon_spent(events, 0.0) == math.inf


@pytest.mark.parametrize(
    "call",
    [
        lambda: delta_spent([], -1.0),
        lambda: delta_spent([], math.nan),
        lambda: epsilon_spent([], 1.0),
        lambda: epsilon_spent([], -0.1),
        lambda: delta_spent(["laplace"], 1.0),  # type: ignore[list-item]
        lambda: gaussian_sigma(0.0, 1.0),
        lambda: gaussian_sigma(1.0, 0.0),
        lambda: gaussian_sigma(1e300, 1e-300),
        lambda: laplace_scale(0, 1.0),
        lambda: laplace_scale(1.5, 1.0),  # type: ignore[arg-type]
        lambda: laplace_scale(1, math.inf),
        lambda: remaining_mu(Guarantee(1.0, 1e-6), [], 0),
        lambda: gaussian_mu(1.0, 2.0),
    ],
)
def test_bad_arguments_are_refused(call: object) -> None:
    with pytest.raises(InvalidArgument):
        call()  # type: ignore[operator]


def test_import_is_light() -> None:
    code = (
        "import sys, crowdgram.privacy.accounting; sys.exit('dp_accounting' in sys.modules or 'opendp' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
