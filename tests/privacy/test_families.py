"""Families of choices: the curve against many digits and every mixture of pairs; the hinges against the curve."""

from __future__ import annotations

import itertools
import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowdgram.errors import InvalidArgument
from crowdgram.privacy import (
    Guarantee,
    LaplaceEvent,
    SelectionEvent,
    SparseLaplaceEvent,
    delta_spent,
    epsilon_spent,
    selection_epsilon,
)
from crowdgram.privacy.families import BLOCK, family_deltas, family_hinges

from ..thorough import examples


def pair(eta, t):
    """P and Q of the two-outcome pair of range eta whose losses are t and t - eta."""
    q = (mpmath.exp(-t) - mpmath.exp(-eta)) / (1 - mpmath.exp(-eta))
    return (q * mpmath.exp(t), 1 - q * mpmath.exp(t)), (q, 1 - q)


def hockey_stick(pairs, epsilon):
    total = mpmath.mpf(0)
    for outcome in itertools.product(range(2), repeat=len(pairs)):
        p = mpmath.fprod(pairs[i][0][x] for i, x in enumerate(outcome))
        q = mpmath.fprod(pairs[i][1][x] for i, x in enumerate(outcome))
        total += max(p - mpmath.exp(epsilon) * q, 0)
    return total


def in_many_digits(eta, n, epsilon, centred):
    """The formula of `family_deltas`, summed term by term."""
    best = mpmath.mpf(0)
    eta, epsilon = mpmath.mpf(eta), mpmath.mpf(epsilon)
    for low in range(n):
        t = eta / 2 if centred else min(max((epsilon + (low + 1) * eta) / (n + 1), 0), eta)
        q = (mpmath.exp(-t) - mpmath.exp(-eta)) / (1 - mpmath.exp(-eta))
        value = mpmath.mpf(0)
        for i in range(n + 1):
            loss = n * t - i * eta
            if loss > epsilon:
                chance = mpmath.binomial(n, i) * (1 - q) ** i * q ** (n - i)
                value += chance * (mpmath.exp(loss) - mpmath.exp(epsilon))
        best = max(best, value)
    return best


@pytest.mark.slow
@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize(("eta", "n"), [(0.5, 1), (3.0, 4), (0.05, 30), (0.002, 40)])
def test_the_curve_against_many_digits(eta, n, centred):
    with mpmath.workdps(40):
        reach = n * eta / (2 if centred else 1)
        epsilons = np.array([0.0, 0.1, 0.3, 0.6, 0.95]) * reach
        found = family_deltas(eta, n, epsilons, centred=centred)
        for epsilon, delta in zip(epsilons, found, strict=True):
            exact = in_many_digits(eta, n, float(epsilon), centred)
            assert exact <= delta <= exact * (1 + 1e-6) + 1e-15


@examples(60)
@given(st.floats(0.01, 2.0), st.lists(st.floats(0, 1), min_size=1, max_size=4), st.floats(0, 1))
def test_no_mixture_of_pairs_exceeds_the_curve(eta, places, part):
    """Theorem 3: the worst t is the same for all outcomes of a family."""
    n = len(places)
    epsilon = part * n * eta
    exact = hockey_stick([pair(eta, place * eta) for place in places], epsilon)
    assert exact <= family_deltas(eta, n, np.array([epsilon]), centred=False)[0] + 1e-15


@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize(
    ("eta", "n", "step"), [(0.3, 1, 0.01), (0.05, 40, 0.002), (0.01, BLOCK, 0.004), (2.0, 3, 0.05)]
)
def test_the_hinges_bound_the_curve_everywhere(eta, n, step, centred):
    first, masses = family_hinges(eta, n, step, centred)
    losses = step * np.arange(first, first + len(masses))
    epsilons = np.linspace(0, 1.1 * n * eta, 300)
    # The computed curve is itself up to 1e-11 of a probability above the true one.
    curve = family_deltas(eta, n, epsilons, centred=centred) * (1 - 1e-7)
    hinges = np.array([(masses * np.maximum(1 - np.exp(e - losses), 0)).sum() for e in epsilons])
    assert (hinges >= curve).all()
    left = -np.expm1(-epsilons) + np.exp(-epsilons) * curve  # the same at -epsilon, by symmetry
    mirrored = np.array([(masses * np.maximum(1 - np.exp(-e - losses), 0)).sum() for e in epsilons])
    assert (mirrored >= left * (1 - 1e-9)).all()
    assert masses.sum() < 1 + 1e-6


def test_a_family_of_one_is_no_worse_than_one_choice_and_of_many_no_worse_than_their_sum():
    one = SelectionEvent("x", 0.7, 5, 1, 1)
    assert epsilon_spent([one], 0.0) == 0.7
    many = SelectionEvent("x", 0.01, 5, 900, 300)
    assert epsilon_spent([many], 0.0) == pytest.approx(3.0)
    assert epsilon_spent([many], 1e-6) < 0.5
    # About what Gaussian noise of mu = eta sqrt(n)/2 spends, and less than by zCDP.
    rho = 300 * 0.01**2 / 8
    assert epsilon_spent([many], 1e-6) < rho + 2 * math.sqrt(rho * math.log(1e6))


def test_only_what_may_change_is_paid_for():
    few, all_of_them = (SelectionEvent("x", 0.02, 9, 1000, changed) for changed in (10, 1000))
    assert delta_spent([few], 0.15) < 1e-8
    assert delta_spent([all_of_them], 0.15) > 1e-3


def test_blocks_lose_little():
    """A family beyond one block, against the exact curve of the whole."""
    eta, n = 0.01, 3 * BLOCK + 17
    for epsilon in (0.3, 0.6, 1.0):  # delta from 0.03 to 1e-14
        exact = family_deltas(eta, n, np.array([epsilon]), centred=False)[0]
        assert exact * (1 - 1e-8) <= delta_spent([SelectionEvent("x", eta, 2, n, n)], epsilon) <= 1.1 * exact


def test_sparse_laplace_noise_is_a_family_too():
    event = SparseLaplaceEvent("x", 1, 100.0, 5000, 400)
    assert epsilon_spent([event], 0.0) == pytest.approx(4.0)
    # One Laplace event of l1 sensitivity 400 knows no better than one coordinate that moves by all of it.
    assert epsilon_spent([event], 1e-6) < 0.4 * epsilon_spent([LaplaceEvent("x", 400, 100.0, 5000)], 1e-6)


@pytest.mark.parametrize("changed", [1, 7, 100, 3000])
def test_the_range_of_choices_spends_nearly_all_and_no_more(changed):
    guarantee = Guarantee(1.0, 1e-6)
    before = [LaplaceEvent("rows", 1, 50.0, 20)]
    found = selection_epsilon(guarantee, before, changed)
    assert delta_spent([*before, SelectionEvent("x", found, 2, changed, changed)], 1.0) <= 1e-6
    assert delta_spent([*before, SelectionEvent("x", 1.01 * found, 2, changed, changed)], 1.0) > 1e-6
    assert selection_epsilon(guarantee, before, changed, 0.25) == pytest.approx(found / 2)


@pytest.mark.parametrize("bad", [0, -1, True, 1.5])
def test_what_changes_is_a_whole_number(bad):
    with pytest.raises(InvalidArgument, match=r"^changed=.*: needs"):
        selection_epsilon(Guarantee(1.0, 1e-6), [], bad)


def test_nothing_is_left_for_choices_without_a_budget():
    assert selection_epsilon(Guarantee(1.0, 1e-6), [LaplaceEvent("all", 4, 1.0, 1)], 10) == 0.0
