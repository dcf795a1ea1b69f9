"""A release's budget: nothing is drawn that is not affordable, recorded and, where need be, set aside in time."""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from crowdgram.errors import PrivacyViolation
from crowdgram.privacy import (
    Adjacency,
    ExponentialEvent,
    GaussianEvent,
    Guarantee,
    LaplaceEvent,
    Reserve,
    SelectionEvent,
    SparseLaplaceEvent,
    Spending,
    ThresholdEvent,
    check,
    delta_spent,
    epsilon_spent,
    remaining_mu,
)
from crowdgram.privacy.drawing import DrawsLaplace
from crowdgram.privacy.spending import Looks, Rounds

from ..samplers import NO_NOISE, Recording, Scripted

SUMS = np.array([5, 0, 7])
ADD_REMOVE = Guarantee(1.0, 1e-6)
REPLACE = Guarantee(1.0, 1e-6, Adjacency.REPLACE)
BOUND = 2**20
LOOK = Reserve("look", BOUND, 0.1)


def looks(guarantee=ADD_REMOVE, *reserves, sampler=None):
    spending = Spending(guarantee) if sampler is None else Spending(guarantee, sampler=sampler)
    return spending.open().looks(reserves)


def test_every_draw_is_recorded():
    spending = Spending(ADD_REMOVE)
    phase = spending.open().looks([Reserve("one", BOUND, 0.25)])
    noisy, event = phase.laplace("one", SUMS, bound=BOUND, epsilon=0.25)
    assert noisy.shape == SUMS.shape
    assert event == LaplaceEvent("one", BOUND, BOUND / 0.25, 3)
    _, second = phase.rounds().gaussian("two", SUMS, bound=BOUND, mu=0.1)
    assert isinstance(second, GaussianEvent)
    assert second.dimension == 3
    assert spending.events == (event, second)


@pytest.mark.parametrize(
    ("guarantee", "l1", "l2", "l2_positive"), [(ADD_REMOVE, 1, 1, 1), (REPLACE, 2, 2, math.sqrt(2))]
)
def test_adjacency_turns_bounds_into_sensitivities(guarantee, l1, l2, l2_positive):
    phase = looks(guarantee, LOOK)
    assert phase.laplace("look", SUMS, bound=BOUND, epsilon=0.1)[1].sensitivity == l1 * BOUND
    rounds = phase.rounds()
    assert rounds.gaussian("b", SUMS, bound=BOUND, mu=0.01)[1].sensitivity == l2 * BOUND
    positive = rounds.gaussian("c", SUMS, bound=BOUND, mu=0.01, non_negative=True)[1].sensitivity
    assert l2_positive * BOUND <= positive <= l2_positive * BOUND * (1 + 1e-14)
    # sqrt(2) is rounded up: squared in exact integers, it is no less than 2.
    numerator, denominator = positive.as_integer_ratio()
    assert numerator**2 >= (2 if guarantee is REPLACE else 1) * (BOUND * denominator) ** 2


@pytest.mark.parametrize("adjacency", list(Adjacency))
@pytest.mark.parametrize("mu", [0.9, 5.0])
def test_gaussian_overspending_is_refused_before_noise_is_drawn(adjacency, mu):
    rounds = looks(Guarantee(1.0, 1e-6, adjacency), sampler=NO_NOISE).rounds()
    with pytest.raises(PrivacyViolation):
        rounds.gaussian("too much", SUMS, bound=BOUND, mu=mu)
    assert rounds.events == ()


@pytest.mark.parametrize("guarantee", [Guarantee(1.0), ADD_REMOVE])
def test_laplace_overspending_is_refused_before_noise_is_drawn(guarantee):
    """With a delta too: whoever finishes purely keeps the sum of epsilons (Theorem 4)."""
    finish = looks(guarantee, sampler=NO_NOISE).finish_purely()
    with pytest.raises(PrivacyViolation):
        finish.laplace("too much", SUMS, bound=BOUND, epsilon=1.0 + 1e-12)
    assert finish.events == ()


def test_the_last_straw_is_refused():
    sampler = Recording()
    finish = looks(Guarantee(1.0), sampler=sampler).finish_purely()
    finish.laplace("one", SUMS, bound=BOUND, epsilon=0.75)
    finish.laplace("two", SUMS, bound=BOUND, epsilon=finish.remaining_epsilon())
    sampler.closed = True
    with pytest.raises(PrivacyViolation):
        finish.laplace("three", SUMS, bound=BOUND, epsilon=1e-6)
    assert len(finish.events) == 2


def test_noise_is_drawn_by_the_sampler_when_it_is_affordable():
    """A sampler that fails is a real obstacle: what may be spent runs into it."""
    finish = looks(sampler=Scripted(laplace_by=lambda *_: 1 / 0)).finish_purely()
    with pytest.raises(ZeroDivisionError):
        finish.laplace("one", SUMS, bound=BOUND, epsilon=0.1)


# --- looks are reserved


def test_a_look_that_was_not_reserved_is_refused():
    phase = looks(ADD_REMOVE, LOOK, sampler=NO_NOISE)
    with pytest.raises(PrivacyViolation, match="was not reserved"):
        phase.laplace("late", SUMS, bound=BOUND, epsilon=0.1)


@pytest.mark.parametrize(("bound", "epsilon"), [(BOUND, 0.1 + 1e-9), (BOUND, 0.5), (2 * BOUND, 0.1)])
def test_more_than_was_reserved_is_refused(bound, epsilon):
    phase = looks(ADD_REMOVE, LOOK, sampler=NO_NOISE)
    with pytest.raises(PrivacyViolation, match="reserved"):
        phase.laplace("look", SUMS, bound=bound, epsilon=epsilon)


def test_a_reserve_serves_once():
    sampler = Recording()
    phase = looks(ADD_REMOVE, LOOK, sampler=sampler)
    phase.laplace("look", SUMS, bound=BOUND, epsilon=0.05)  # less is fine
    sampler.closed = True
    with pytest.raises(PrivacyViolation, match="reserved"):
        phase.laplace("look", SUMS, bound=BOUND, epsilon=0.05)


def test_a_reserve_for_laplace_noise_is_for_a_look_alone():
    with pytest.raises(PrivacyViolation, match="reserved"):
        looks(ADD_REMOVE, LOOK, sampler=NO_NOISE).rounds().gaussian("look", SUMS, bound=BOUND, mu=0.001)
    with pytest.raises(PrivacyViolation, match="reserved"):
        looks(ADD_REMOVE, LOOK, sampler=NO_NOISE).finish_purely().laplace("look", SUMS, bound=BOUND, epsilon=0.1)


def test_a_reserve_is_not_raised():
    with pytest.raises(PrivacyViolation, match="more than before"):
        looks(ADD_REMOVE, LOOK, Reserve("look", BOUND, 0.2))
    assert looks(ADD_REMOVE, LOOK, Reserve("look", BOUND, 0.05)).reserved == looks(ADD_REMOVE, LOOK).reserved


def test_gaussian_rounds_pay_for_looks_that_were_drawn():
    plain, used, unused = looks(), looks(ADD_REMOVE, LOOK), looks(ADD_REMOVE, LOOK)
    used.laplace("look", SUMS, bound=BOUND, epsilon=0.02)
    assert unused.remaining_mu(3) == plain.remaining_mu(3) > used.remaining_mu(3) > unused.mu_after_list(3)
    assert used.rounds().remaining_mu(3) == used.remaining_mu(3)


def test_a_gaussian_round_may_not_spend_what_a_look_took():
    phase = looks(ADD_REMOVE, Reserve("look", BOUND, 0.3), sampler=NO_NOISE)
    before = phase.remaining_mu(3)
    drawn = looks(ADD_REMOVE, Reserve("look", BOUND, 0.3))
    drawn.laplace("look", SUMS, bound=BOUND, epsilon=0.3)
    with pytest.raises(PrivacyViolation):
        drawn.rounds().gaussian("round", SUMS, bound=BOUND, mu=before)


def test_a_path_that_could_pay_by_itself_is_refused_if_the_looks_cannot():
    """After several looks what a path may spend by itself is more than what looks leave that outcomes may choose."""
    parts = [0.05, 0.24, 0.1]
    phase = looks(ADD_REMOVE, *(Reserve(f"look {part}", BOUND, part) for part in parts))
    for part in parts:
        phase.laplace(f"look {part}", SUMS, bound=BOUND, epsilon=part)
    rounds, alone = phase.rounds(), remaining_mu(ADD_REMOVE, phase.events, 3)
    assert rounds.remaining_mu(3) < alone
    with pytest.raises(PrivacyViolation, match="than the looks left"):
        rounds.gaussian("round", SUMS, bound=BOUND, mu=alone)


def test_a_list_that_adds_to_more_than_epsilon_is_refused():
    """Alone it keeps delta. But outcomes could choose between stopping after all of it, for delta, and rounds after a
    part of it, for another delta.
    """
    small = [Reserve(f"look {n}", 1, 0.001) for n in range(10)]
    check([LaplaceEvent(one.purpose, 1, 1 / one.epsilon, 1) for one in small], ADD_REMOVE)
    with pytest.raises(PrivacyViolation, match="more than epsilon"):
        looks(ADD_REMOVE, *small, Reserve("large", 1, 0.99138))
    assert looks(ADD_REMOVE, *small, Reserve("large", 1, 0.98)).reserved


def test_phases_that_are_made_anew_draw_no_look_after_rounds():
    spending = Spending(ADD_REMOVE)
    phase = spending.open().looks([LOOK])
    phase.rounds().gaussian("round", SUMS, bound=BOUND, mu=0.01)
    with pytest.raises(PrivacyViolation, match="would follow Gaussian noise"):
        Looks(spending).laplace("look", SUMS, bound=BOUND, epsilon=0.01)
    with pytest.raises(PrivacyViolation, match="is not Gaussian"):
        DrawsLaplace.laplace(Rounds(spending), "other", SUMS, bound=BOUND, epsilon=0.01)


def test_the_mu_after_the_list_is_what_all_looks_leave_in_any_order():
    parts = [0.24, 0.08, 0.04, 0.01]
    for order in (parts, parts[::-1]):
        phase = looks(ADD_REMOVE, *(Reserve(f"look {part}", BOUND, part) for part in parts))
        for part in order:
            phase.laplace(f"look {part}", SUMS, bound=BOUND, epsilon=part)
        assert phase.remaining_mu(3) >= phase.mu_after_list(3) * (1 - 1e-9) > 0.1


def test_rounds_have_a_limit_of_coordinates():
    with pytest.raises(PrivacyViolation, match="than the looks left"):
        looks(sampler=NO_NOISE).rounds().gaussian("round", SUMS, bound=BOUND, mu=0.01, dimension=2**41)


def test_what_is_left_of_mu_can_be_spent_in_shares():
    spending = Spending(REPLACE)
    phase = spending.open().looks([Reserve("look", BOUND, 0.02)])
    phase.laplace("look", SUMS, bound=BOUND, epsilon=0.02)
    rounds = phase.rounds()
    mu = rounds.remaining_mu(100)
    for share in (0.03, 0.15, 0.82):
        rounds.gaussian(f"round of {share}", SUMS, bound=BOUND, mu=mu * math.sqrt(share))
    assert spending.settled() == REPLACE
    # Looks are charged as randomised response of their epsilon, which is a little worse than Laplace noise.
    assert epsilon_spent(spending.events, 1e-6) == pytest.approx(1.0, abs=1e-4)
    assert epsilon_spent(spending.events, 1e-6) <= 1.0


def test_a_pure_finish_spends_what_the_reserve_did_not():
    spending = Spending(ADD_REMOVE)
    phase = spending.open().looks([Reserve("look", BOUND, 0.3)])
    phase.laplace("look", SUMS, bound=BOUND, epsilon=0.125)
    assert phase.remaining_epsilon() == pytest.approx(0.875, abs=1e-12)
    finish = phase.finish_purely()
    finish.laplace("rest", SUMS, bound=BOUND, epsilon=finish.remaining_epsilon())
    assert epsilon_spent(spending.events, 0.0) <= 1.0
    assert spending.settled() == ADD_REMOVE


def test_settling_looks_at_the_events_again():
    spending = Spending(ADD_REMOVE)
    spending._events.append(LaplaceEvent("slipped in", BOUND, BOUND / 2.0, 1))
    with pytest.raises(PrivacyViolation):
        spending.settled()


# --- choices, and a pure start with any finish


def test_choices_are_recorded_with_the_scale_that_their_range_needs():
    scales = []

    def seen(scores, scale):
        scales.append(scale)
        return np.zeros(len(scores), dtype=np.int64)

    start = Spending(ADD_REMOVE, sampler=Scripted(choose_by=seen)).open().start()
    chosen, event = start.choose("one", SUMS, sensitivity=4, epsilon=0.125)
    assert (chosen, event) == (0, ExponentialEvent("one", 0.125, 3))
    start.choose("half", SUMS, sensitivity=4, epsilon=0.125, monotone=True)
    more = {"selections": 5, "choices": 3, "changed": 2, "sensitivity": 4}
    asked = []

    def rows(first, last):
        asked.append((first, last))
        return np.zeros((last - first, 3), dtype=np.int64)

    many, family = start.choose_each("many", rows, **more, epsilon=0.125, at_once=2)
    assert family == SelectionEvent("many", 0.125, 3, 5, 2)
    assert len(many) == 5
    assert asked == [(0, 2), (2, 4), (4, 5)]
    assert scales == [64.0, 32.0, 64.0, 64.0, 64.0]
    assert start.events[-1] is family


def test_unaffordable_choices_are_not_made():
    finish = looks(Guarantee(1.0), sampler=NO_NOISE).finish_purely()
    with pytest.raises(PrivacyViolation):
        finish.choose("one", SUMS, sensitivity=1, epsilon=1.5)
    rows = {"selections": 8, "choices": 3, "changed": 3, "sensitivity": 1}
    with pytest.raises(PrivacyViolation):
        finish.choose_each("many", lambda a, b: pytest.fail("scores were made"), **rows, epsilon=0.5)
    with pytest.raises(PrivacyViolation):
        finish.sparse_laplace("some", SUMS, bound=1, changed=3, epsilon=0.5)
    assert finish.events == ()


def test_what_finishes_must_keep_what_is_left_by_itself():
    spending = Spending(ADD_REMOVE)
    start = spending.open().start()
    start.laplace("rows", SUMS, bound=BOUND, epsilon=0.5)
    finish = start.finish()
    assert finish.rest == Guarantee(0.5, 1e-6)
    many = {"selections": 50, "choices": 2, "changed": 50, "sensitivity": 1}

    def rows(first, last):
        return np.zeros((last - first, 2), dtype=np.int64)

    eta = finish.selection_epsilon(50)
    with pytest.raises(PrivacyViolation):  # together with the first event it would do; by itself it does not
        finish.choose_each("many", rows, **many, epsilon=1.05 * eta)
    finish.choose_each("many", rows, **many, epsilon=finish.selection_epsilon(50, 0.5))
    finish.gaussian("counts", SUMS * 1024, bound=BOUND, mu=finish.remaining_mu(3))
    assert epsilon_spent(spending.events[1:], 1e-6) <= 0.5
    assert spending.settled() == ADD_REMOVE


def test_sparse_laplace_noise():
    noisy, event = looks(REPLACE).finish_purely().sparse_laplace("some", SUMS, bound=1024, changed=2, epsilon=0.1)
    assert noisy.shape == SUMS.shape
    assert event == SparseLaplaceEvent("some", 1024, 1024 / 0.1, 3, 2)


def test_a_finish_needs_something_that_is_left():
    start = Spending(ADD_REMOVE).open().start()
    start.laplace("all", SUMS, bound=BOUND, epsilon=1.0)
    with pytest.raises(PrivacyViolation, match="nothing is left"):
        start.finish()


# --- a search: a threshold, looks, and Gaussian noise by public values


def searching(guarantee=ADD_REMOVE, *reserves, sampler=None, pure_delta=1.25e-7, rounds=1, mu=0.05):
    spending = Spending(guarantee) if sampler is None else Spending(guarantee, sampler=sampler)
    return spending.open().search("items", delta=2.5e-7, rounds=rounds, mu=mu, pure_delta=pure_delta, reserves=reserves)


def ended(search, mu=0.05):
    rounds = search.rounds()
    rounds.gaussian("items", SUMS, bound=BOUND, mu=mu, non_negative=True, dimension=2**40)
    return rounds.end()


def found(guarantee=ADD_REMOVE, pure_delta=1.25e-7, reserves=(LOOK,), sampler=None):
    return ended(searching(guarantee, *reserves, sampler=sampler, pure_delta=pure_delta))


@pytest.mark.parametrize(("epsilon", "mu", "fits"), [(0.1, 0.064, True), (0.1, 0.08, False), (0.01, 0.08, True)])
def test_a_release_that_stops_after_its_looks_has_paid_for_them(epsilon, mu, fits):
    """Rounds whose outcome tells whether all looks follow, or a pure finish: the two add up to 1.6e-6. Looks within
    what a pure finish has are no other way to go on.
    """
    looks = [replace(LOOK, purpose=f"look {j}", epsilon=epsilon) for j in range(8)]
    spending = Spending(Guarantee(1.0, 1e-6))
    search = spending.open().search("items", delta=1e-12, rounds=1, mu=mu, pure_delta=0.9e-6, reserves=looks)
    if fits:
        assert ended(search, mu).looks(looks).remaining_epsilon() > 0.5
    else:
        with pytest.raises(PrivacyViolation, match="more than the promised"):
            ended(search, mu)


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


# --- a phase is over when the next one begins, at run time ...


def test_a_phase_is_over_when_the_next_one_begins():
    spending = Spending(ADD_REMOVE, sampler=NO_NOISE)
    opening = spending.open()
    with pytest.raises(PrivacyViolation, match="once"):
        spending.open()
    phase = opening.looks([LOOK])
    for late in (opening.looks, opening.start, lambda: opening.search("items", delta=1e-8, rounds=1, mu=0.1)):
        with pytest.raises(PrivacyViolation, match="Opening of this budget is over"):
            late()
    finish = phase.finish_purely()
    for late in (phase.rounds, phase.finish_purely, lambda: phase.laplace("look", SUMS, bound=BOUND, epsilon=0.1)):
        with pytest.raises(PrivacyViolation, match="Looks of this budget is over"):
            late()
    assert spending.events == finish.events == ()


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


# --- ... and before: what is illegal in a phase is not a method of it

ILLEGAL = {
    "a look before anything is reserved": 'opening.laplace("a", sums, bound=1, epsilon=0.1)',
    "Gaussian noise before the looks end": 'opening.looks().gaussian("a", sums, bound=1, mu=0.1)',
    "a choice among the looks": 'opening.looks().choose("a", sums, sensitivity=1, epsilon=0.1)',
    "a reserve after the first look": "opening.looks().looks([])",
    "Laplace noise in a Gaussian round": 'opening.looks().rounds().laplace("a", sums, bound=1, epsilon=0.1)',
    "a pure finish after a Gaussian round": "opening.looks().rounds().finish_purely()",
    "Gaussian noise in a pure finish": 'opening.looks().finish_purely().gaussian("a", sums, bound=1, mu=0.1)',
    "what a pure finish leaves to rounds": "opening.looks().finish_purely().remaining_mu(1)",
    "a threshold after the looks began": 'opening.looks().search("a", delta=0.1, rounds=1, mu=0.1)',
    "an end of a search that never was": "opening.looks().rounds().end()",
    "a pure finish once rounds have found items": "search.rounds().finish_purely()",
    "a second search": 'search.rounds().end().search("b", delta=0.1, rounds=1, mu=0.1)',
    "a pure start after a search": "search.rounds().end().start()",
    "any finish of looks": "opening.looks().finish()",
    "any finish of a pure finish": "opening.looks().finish_purely().finish()",
    "Gaussian noise in a pure start": 'opening.start().gaussian("a", sums, bound=1, mu=0.1)',
    "what is left of a start that has not ended": "opening.start().selection_epsilon(1)",
    "a search before a mechanism that needs lists": ("Paper().run(counts, search.rounds().end(), request)"),
}
LEGAL = """
opening.looks([]).laplace("a", sums, bound=1, epsilon=0.1)
opening.looks().rounds().gaussian("a", sums, bound=1, mu=0.1)
opening.looks().finish_purely().choose("a", sums, sensitivity=1, epsilon=0.1)
search.laplace("a", sums, bound=1, epsilon=0.1)
search.finish_purely().laplace("a", sums, bound=1, epsilon=0.1)
search.rounds().end().looks().rounds().gaussian("a", sums, bound=1, mu=0.1)
opening.start().finish().gaussian("a", sums, bound=1, mu=0.1)
Paper().run(counts, opening, request)
Laplace().run(counts, search.rounds().end(), request)
"""


@pytest.mark.slow
def test_illegal_orders_do_not_type_check(tmp_path):
    """mypy, once: every illegal line is an error, and no legal line is."""
    pytest.importorskip("mypy", reason="types are checked with the versions of constraints.txt only")
    head = (
        "import numpy as np\n"
        "from crowdgram.mechanisms import Laplace, Request\n"
        "from crowdgram.paper import Paper\n"
        "from crowdgram.privacy import Opening\n"
        "from crowdgram.tables import Counts\n"
        "def f(opening: Opening, counts: Counts, request: Request) -> None:\n"
    )
    begun = 'search = opening.search("a", delta=0.1, rounds=1, mu=0.1)'
    lines = ["sums = np.zeros(1, dtype=np.int64)", begun, *LEGAL.split("\n"), *ILLEGAL.values()]
    source = tmp_path / "orders.py"
    source.write_text(head + "".join(f"    {line}\n" for line in lines))
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--config-file",
        "pyproject.toml",
        "--cache-dir",
        ".mypy_cache",
        str(source),
    ]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[2], check=False)
    refused = {int(line.split(":")[1]) for line in ran.stdout.splitlines() if ": error: " in line}
    first = head.count("\n") + len(lines) - len(ILLEGAL) + 1
    assert refused == set(range(first, first + len(ILLEGAL))), ran.stdout
    assert f"Found {len(ILLEGAL)} errors" in ran.stdout
