"""How the budget is divided over rounds."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crowdgram.mechanisms.schedule import AHEAD, MENU, WORTHWHILE, Outlook, next_share, reachable

outlooks = st.builds(Outlook, st.floats(1e-4, 1), st.floats(1e-6, 2), st.floats(1e-4, 100), st.sampled_from([0.5, 1.0]))


@settings(deadline=None)
@given(outlooks, st.floats(0.01, 1), st.integers(1, 5))
def test_shares_are_on_the_menu(outlook, left, rounds):
    assert next_share(outlook, left, rounds) in (*MENU, 1.0)


@settings(deadline=None)
@given(outlooks)
def test_one_round_takes_all(outlook):
    assert next_share(outlook, 0.7, 1) == 1.0
    assert reachable(outlook, 1) == pytest.approx(math.hypot(outlook.own, outlook.error))


@settings(deadline=None)
@given(outlooks, st.integers(1, 4))
def test_a_further_round_never_harms(outlook, rounds):
    """But for what a round must promise to be taken: a plan that is better by less is passed over."""
    assert reachable(outlook, rounds + 1) <= reachable(outlook, rounds) * WORTHWHILE


@settings(deadline=None)
@given(outlooks, st.integers(1, 4), st.floats(1.1, 3))
def test_more_noise_reaches_less(outlook, rounds, factor):
    worse = Outlook(outlook.own, outlook.error, outlook.contraction * factor, outlook.power)
    assert reachable(worse, rounds) >= reachable(outlook, rounds) / 1.04  # a round must promise 3% to be taken


@settings(deadline=None)
@given(outlooks, st.integers(1, 5))
def test_a_plan_followed_never_spends_more_than_there_is(outlook, rounds):
    left = 1.0
    for to_come in range(rounds, 0, -1):
        share = next_share(outlook, left, to_come)
        assert 0 < share <= 1
        left -= share * left
        if share == 1.0:
            break
    assert left == pytest.approx(0)


@pytest.mark.parametrize("power", [0.5, 1.0])
def test_a_good_centre_needs_one_round_and_a_bad_one_more(power):
    assert next_share(Outlook(0.5, 0.01, 0.01, power), 1.0, 5) == 1.0
    assert next_share(Outlook(0.01, 1.0, 0.05, power), 1.0, 5) < 1.0


def test_no_more_rounds_are_looked_at_than_decide():
    outlook = Outlook(0.02, 1.0, 0.3, 0.5)
    assert reachable(outlook, 12) == reachable(outlook, AHEAD)


def test_two_rounds_against_brute_force():
    """A first share on the menu and all of the rest, for Gaussian noise, written out."""
    own, error, contraction = 0.02, 1.0, 0.3

    def reached(share):
        first = math.hypot(own, error) / math.sqrt(share)
        after = 1 / math.hypot(1 / error, 1 / (contraction * first))
        second = math.hypot(own, min(after, error)) / math.sqrt(1 - share)
        return 1 / math.hypot(1 / first, 1 / second)

    assert reachable(Outlook(own, error, contraction, 0.5), 2) == pytest.approx(min(map(reached, MENU)), rel=0.03)
