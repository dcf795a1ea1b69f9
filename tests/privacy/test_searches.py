"""The budget of a search for items: a threshold, looks, Gaussian noise by public values, and what may follow it."""

from __future__ import annotations

import math

import pytest

from crowdgram.errors import PrivacyViolation
from crowdgram.privacy import (
    Reserve,
    Spending,
    ThresholdEvent,
    check,
    delta_spent,
)

from ..samplers import NO_NOISE, Recording
from .test_spending import ADD_REMOVE, BOUND, LOOK, REPLACE, SUMS, looks


def searching(guarantee=ADD_REMOVE, *reserves, sampler=None, pure_delta=1.25e-7, rounds=1, mu=0.05):
    spending = Spending(guarantee) if sampler is None else Spending(guarantee, sampler=sampler)
    return spending.open().search("items", delta=2.5e-7, rounds=rounds, mu=mu, pure_delta=pure_delta, reserves=reserves)


def ended(search, mu=0.05):
    rounds = search.rounds()
    rounds.gaussian("items", SUMS, bound=BOUND, mu=mu, non_negative=True, dimension=2**40)
    return rounds.end()


def found(guarantee=ADD_REMOVE, pure_delta=1.25e-7, reserves=(LOOK,), sampler=None):
    return ended(searching(guarantee, *reserves, sampler=sampler, pure_delta=pure_delta))


def test_a_search_draws_the_rounds_that_it_began_with():
    """How many there are, and for how much, decides what a pure finish has left: both are public values."""
    rounds = searching(rounds=2).rounds()
    with pytest.raises(PrivacyViolation, match="2 are left"):
        rounds.end()
    rounds.gaussian("one", SUMS, bound=BOUND, mu=0.05)
    for mu in (0.04, 0.06):
        with pytest.raises(PrivacyViolation, match="not among"):
            rounds.gaussian("other", SUMS, bound=BOUND, mu=mu)
    rounds.gaussian("two", SUMS, bound=BOUND, mu=0.05)
    with pytest.raises(PrivacyViolation, match="not among"):
        rounds.gaussian("three", SUMS, bound=BOUND, mu=0.05)
    rounds.end()


@pytest.mark.parametrize("pure_delta", [-1e-9, 7.6e-7, 0.9, math.nan])
def test_the_parts_of_delta_are_given_before_the_search_and_fit_into_it(pure_delta):
    with pytest.raises(PrivacyViolation, match="pure_delta"):
        searching(pure_delta=pure_delta)


def test_all_looks_of_a_list_together_keep_the_guarantee():
    """Any of them may be drawn, by the outcomes of others, and the release may end there."""
    many = [Reserve(f"look {number}", BOUND, 0.04) for number in range(40)]
    with pytest.raises(PrivacyViolation):
        Spending(ADD_REMOVE).open().looks(many)
    Spending(ADD_REMOVE).open().looks(many[:10])


def test_a_reserve_does_not_hide_the_threshold():
    with pytest.raises(PrivacyViolation, match="has taken place"):
        searching(ADD_REMOVE, Reserve("items", BOUND, 0.01))


def test_a_pure_start_keeps_to_epsilon():
    start = Spending(ADD_REMOVE).open().start()
    for number in range(20):
        start.laplace(f"event {number}", SUMS, bound=BOUND, epsilon=0.05 * (1 - 2**-40))
    with pytest.raises(PrivacyViolation, match="pure start"):
        start.laplace("one more", SUMS, bound=BOUND, epsilon=0.05)


def test_a_bound_beyond_doubles_is_rounded_up():
    phase = Spending(ADD_REMOVE).open().looks()
    assert phase.gaussian_sigma(2**53 + 1, 0.1) > phase.gaussian_sigma(2**53, 0.1)


def test_a_threshold_is_recorded_and_halved_for_replaced_users():
    for guarantee, each in ((ADD_REMOVE, 2.5e-7), (REPLACE, 1.25e-7)):
        search = searching(guarantee)
        assert search.chance == each
        assert search.events == (ThresholdEvent("items", 2.5e-7),)
    with pytest.raises(PrivacyViolation):
        Spending(ADD_REMOVE).open().search("items", delta=1.1e-6, rounds=1, mu=0.1)


def test_a_private_number_of_sums_is_not_recorded():
    assert found().events[1].dimension == 2**40
    with pytest.raises(PrivacyViolation, match="bound"):
        looks().rounds().gaussian("items", SUMS, bound=BOUND, mu=0.01, dimension=2)
    with pytest.raises(PrivacyViolation, match="bound"):
        looks().finish_purely().laplace("items", SUMS, bound=BOUND, epsilon=0.1, dimension=2)


def test_the_sigma_is_known_beforehand():
    rounds = looks(REPLACE).rounds()
    for sign in (True, False):
        sigma = rounds.gaussian_sigma(BOUND, 0.05, non_negative=sign)
        _, event = rounds.gaussian("a", SUMS, bound=BOUND, mu=0.05, non_negative=sign)
        assert event.sigma == sigma


@pytest.mark.parametrize("guarantee", [ADD_REMOVE, REPLACE], ids=lambda g: g.adjacency.value)
def test_both_ways_to_go_on_fit_into_one_delta(guarantee):
    """What either way may spend, added up: the choice between them may depend on noisy values."""
    look = Reserve("look", BOUND, 0.02)
    rounds, pure = (found(guarantee, reserves=[look]).looks([look]) for _ in range(2))
    for phase in (rounds, pure):
        phase.laplace("look", SUMS, bound=BOUND, epsilon=0.02)
    rounds.rounds().gaussian("round", SUMS, bound=BOUND, mu=rounds.remaining_mu(3))
    threshold = 2.5e-7
    by_rounds = delta_spent(rounds.events, 1.0) - threshold
    rest = pure.remaining_epsilon()
    assert 0.5 < rest < 0.98
    left_open = delta_spent([pure.events[1]], 1.0 - 0.02 - rest)
    assert 0.99e-6 < threshold + by_rounds + left_open <= 1e-6
    pure.finish_purely().laplace("counts", SUMS, bound=BOUND, epsilon=rest)
    for phase in (rounds, pure):
        check(phase.events, guarantee)


def test_without_a_part_of_delta_there_is_no_pure_finish():
    with pytest.raises(ValueError, match="delta"):
        found(pure_delta=0.0).looks().remaining_epsilon()


@pytest.mark.parametrize("pure_delta", [-1e-9, 1.0, math.nan])
def test_a_part_of_delta_is_one(pure_delta):
    with pytest.raises(PrivacyViolation, match="pure_delta"):
        found(pure_delta=pure_delta)


def test_what_is_reserved_stays_so():
    one, same = found(), found()
    assert one.looks([LOOK]).remaining_mu(3) == same.looks([Reserve("look", BOUND, 0.05)]).remaining_mu(3)
    with pytest.raises(PrivacyViolation, match="more than before"):
        found().looks([Reserve("look", BOUND, 0.2)])


def test_what_was_found_decides_no_reserve():
    """After the rounds of a search the list of looks is closed: how many items there are is a noisy outcome."""
    with pytest.raises(PrivacyViolation, match="before the search"):
        found().looks([LOOK, Reserve("late", BOUND, 1e-3)])


@pytest.mark.parametrize("pure_delta", [1.25e-7, 0.0])
def test_a_pure_finish_after_a_search_has_a_limit(pure_delta):
    """Even where this path alone could afford it: a Gaussian path may have been the other choice."""
    sampler = Recording()
    phase = found(pure_delta=pure_delta, sampler=sampler).looks()
    rest = phase.remaining_epsilon() if pure_delta else 0.1
    sampler.closed = True
    finish = phase.finish_purely()
    with pytest.raises(PrivacyViolation, match="pure finish"):
        finish.laplace("counts", SUMS, bound=BOUND, epsilon=rest * (1 + 1e-9))


def test_after_a_search_a_choice_is_part_of_a_pure_finish_too():
    sampler = Recording()
    finish = found(pure_delta=0.0, sampler=sampler).looks().finish_purely()
    sampler.closed = True
    with pytest.raises(PrivacyViolation, match="pure finish"):
        finish.choose("one", SUMS, sensitivity=1, epsilon=1e-3)
    with pytest.raises(PrivacyViolation, match="pure finish"):
        finish.sparse_laplace("some", SUMS, bound=1, changed=2, epsilon=1e-3)
    rows = {"selections": 8, "choices": 3, "changed": 3, "sensitivity": 1}
    with pytest.raises(PrivacyViolation, match="pure finish"):
        finish.choose_each("many", lambda a, b: pytest.fail("scores were made"), **rows, epsilon=1e-3)
    assert len(finish.events) == 2


def test_rounds_after_a_search_leave_the_part_of_a_pure_finish():
    sampler = Recording()
    rounds = found(pure_delta=5e-7, sampler=sampler).looks().rounds()
    all_of_it = found(pure_delta=0.0).looks().remaining_mu(3)
    assert rounds.remaining_mu(3) < all_of_it
    sampler.closed = True
    with pytest.raises(PrivacyViolation):
        rounds.gaussian("round", SUMS, bound=BOUND, mu=all_of_it)


def test_looks_cost_the_same_before_the_rounds_of_a_search_and_after_them():
    search = searching(ADD_REMOVE, LOOK)
    search.laplace("look", SUMS, bound=BOUND, epsilon=0.1)
    early, late = ended(search).looks([LOOK]), found().looks([LOOK])
    late.laplace("look", SUMS, bound=BOUND, epsilon=0.1)
    assert early.remaining_mu(3) == late.remaining_mu(3)
    assert early.remaining_epsilon() == late.remaining_epsilon()


@pytest.mark.parametrize("guarantee", [ADD_REMOVE, REPLACE], ids=lambda g: g.adjacency.value)
def test_a_pure_finish_instead_of_a_search_spends_all_of_epsilon_and_no_more(guarantee):
    sampler = Recording()
    search = searching(guarantee, Reserve("look", BOUND, 0.02), sampler=sampler)
    search.laplace("look", SUMS, bound=BOUND, epsilon=0.02)
    finish = search.finish_purely()
    assert finish.remaining_epsilon() == pytest.approx(0.98, rel=1e-12)
    _, event = finish.laplace("items", SUMS, bound=BOUND, epsilon=0.9, dimension=2**40)
    assert event.dimension == 2**40
    finish.laplace("rest", SUMS, bound=BOUND, epsilon=finish.remaining_epsilon())
    check(finish.events, guarantee)
    assert delta_spent(finish.events, 1.0) == 2.5e-7
    sampler.closed = True
    with pytest.raises(PrivacyViolation, match="pure finish"):
        finish.laplace("more", SUMS, bound=BOUND, epsilon=1e-6)


def test_what_followed_a_search_is_over_too():
    search = searching(ADD_REMOVE, LOOK)
    rounds = search.rounds()
    with pytest.raises(PrivacyViolation, match="over"):
        search.finish_purely()
    rounds.gaussian("items", SUMS, bound=BOUND, mu=0.05)
    ready = rounds.end()
    for late in (rounds.end, lambda: rounds.gaussian("late", SUMS, bound=BOUND, mu=1e-3)):
        with pytest.raises(PrivacyViolation, match="over"):
            late()
    ready.looks()
    with pytest.raises(PrivacyViolation, match="over"):
        ready.looks()
    start = Spending(ADD_REMOVE, sampler=NO_NOISE).open().start()
    start.finish()
    for late in (start.finish, lambda: start.laplace("late", SUMS, bound=BOUND, epsilon=0.1)):
        with pytest.raises(PrivacyViolation, match="over"):
            late()
