"""A release's budget: nothing is drawn that is not affordable, recorded and, where need be, set aside in time."""

from __future__ import annotations

import math

import numpy as np
import pytest

from crowdgram.errors import PrivacyViolation
from crowdgram.privacy import (
    Adjacency,
    ExponentialEvent,
    GaussianEvent,
    Guarantee,
    LaplaceEvent,
    SelectionEvent,
    SparseLaplaceEvent,
    Spending,
    ThresholdEvent,
    delta_spent,
    epsilon_spent,
    noise,
)

SUMS = np.array([5, 0, 7])
ADD_REMOVE = Guarantee(1.0, 1e-6)
REPLACE = Guarantee(1.0, 1e-6, Adjacency.REPLACE)
BOUND = 2**20


@pytest.fixture
def no_noise(monkeypatch):
    """The door to randomness, closed: whatever draws noise fails the test."""

    def fail(*_):
        pytest.fail("noise was drawn for what is not affordable")

    monkeypatch.setattr(noise, "add_discrete_laplace", fail)
    monkeypatch.setattr(noise, "add_discrete_gaussian", fail)
    monkeypatch.setattr(noise, "choose_each", fail)


def test_every_draw_is_recorded():
    spending = Spending(ADD_REMOVE)
    noisy, event = spending.laplace("one", SUMS, bound=BOUND, epsilon=0.25)
    assert noisy.shape == SUMS.shape
    assert event == LaplaceEvent("one", BOUND, BOUND / 0.25, 3)
    _, second = spending.gaussian("two", SUMS, bound=BOUND, mu=0.1)
    assert isinstance(second, GaussianEvent)
    assert second.dimension == 3
    assert spending.events == (event, second)


@pytest.mark.parametrize(
    ("guarantee", "l1", "l2", "l2_positive"), [(ADD_REMOVE, 1, 1, 1), (REPLACE, 2, 2, math.sqrt(2))]
)
def test_adjacency_turns_bounds_into_sensitivities(guarantee, l1, l2, l2_positive):
    spending = Spending(guarantee)
    assert spending.laplace("a", SUMS, bound=BOUND, epsilon=0.1)[1].sensitivity == l1 * BOUND
    assert spending.gaussian("b", SUMS, bound=BOUND, mu=0.01)[1].sensitivity == l2 * BOUND
    positive = spending.gaussian("c", SUMS, bound=BOUND, mu=0.01, non_negative=True)[1].sensitivity
    assert l2_positive * BOUND <= positive <= l2_positive * BOUND * (1 + 1e-14)
    # sqrt(2) is rounded up: squared in exact integers, it is no less than 2.
    numerator, denominator = positive.as_integer_ratio()
    assert numerator**2 >= (2 if guarantee is REPLACE else 1) * (BOUND * denominator) ** 2


@pytest.mark.parametrize("adjacency", list(Adjacency))
@pytest.mark.parametrize("mu", [0.9, 5.0])
def test_gaussian_overspending_is_refused_before_noise_is_drawn(no_noise, adjacency, mu):
    spending = Spending(Guarantee(1.0, 1e-6, adjacency))
    with pytest.raises(PrivacyViolation):
        spending.gaussian("too much", SUMS, bound=BOUND, mu=mu)
    assert spending.events == ()


def test_laplace_overspending_is_refused_before_noise_is_drawn(no_noise):
    spending = Spending(Guarantee(1.0))
    with pytest.raises(PrivacyViolation):
        spending.laplace("too much", SUMS, bound=BOUND, epsilon=1.0 + 1e-12)
    assert spending.events == ()


def test_the_last_straw_is_refused(monkeypatch):
    spending = Spending(Guarantee(1.0))
    spending.laplace("one", SUMS, bound=BOUND, epsilon=0.75)
    spending.laplace("two", SUMS, bound=BOUND, epsilon=spending.remaining_epsilon())
    monkeypatch.setattr(noise, "add_discrete_laplace", lambda *_: pytest.fail("noise was drawn"))
    with pytest.raises(PrivacyViolation):
        spending.laplace("three", SUMS, bound=BOUND, epsilon=1e-6)
    assert len(spending.events) == 2


def test_noise_is_drawn_when_it_is_affordable(monkeypatch):
    """The fixture above is a real obstacle: what may be spent runs into it."""
    monkeypatch.setattr(noise, "add_discrete_laplace", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        Spending(ADD_REMOVE).laplace("one", SUMS, bound=BOUND, epsilon=0.1)


def test_reserving_after_the_first_event_is_refused():
    spending = Spending(ADD_REMOVE)
    spending.laplace("one", SUMS, bound=BOUND, epsilon=0.1)
    with pytest.raises(PrivacyViolation, match="reserve before"):
        spending.reserve("late", bound=BOUND, epsilon=0.1)


@pytest.mark.parametrize(("bound", "epsilon"), [(BOUND, 0.1 + 1e-9), (BOUND, 0.5), (2 * BOUND, 0.1)])
def test_more_than_was_reserved_is_refused(no_noise, bound, epsilon):
    spending = Spending(ADD_REMOVE)
    spending.reserve("look", bound=BOUND, epsilon=0.1)
    with pytest.raises(PrivacyViolation, match="reserved"):
        spending.laplace("look", SUMS, bound=bound, epsilon=epsilon)


def test_a_reserve_serves_once(monkeypatch):
    spending = Spending(ADD_REMOVE)
    spending.reserve("look", bound=BOUND, epsilon=0.1)
    spending.laplace("look", SUMS, bound=BOUND, epsilon=0.05)  # less is fine
    monkeypatch.setattr(noise, "add_discrete_laplace", lambda *_: pytest.fail("noise was drawn"))
    with pytest.raises(PrivacyViolation, match="reserved"):
        spending.laplace("look", SUMS, bound=BOUND, epsilon=0.05)


def test_a_reserve_for_laplace_noise_is_not_for_gaussian(no_noise):
    spending = Spending(ADD_REMOVE)
    spending.reserve("look", bound=BOUND, epsilon=0.1)
    with pytest.raises(PrivacyViolation, match="reserved"):
        spending.gaussian("look", SUMS, bound=BOUND, mu=0.001)


def test_gaussian_rounds_reckon_with_all_of_the_reserve():
    plain, used, unused = Spending(ADD_REMOVE), Spending(ADD_REMOVE), Spending(ADD_REMOVE)
    for spending in (used, unused):
        spending.reserve("look", bound=BOUND, epsilon=0.1)
    used.laplace("look", SUMS, bound=BOUND, epsilon=0.02)
    assert unused.remaining_mu(3) == used.remaining_mu(3) < plain.remaining_mu(3)


def test_a_gaussian_round_may_not_use_the_reserve(no_noise):
    """What a path that skips the reserve could afford by itself is refused all the same."""
    spending = Spending(ADD_REMOVE)
    spending.reserve("look", bound=BOUND, epsilon=0.3)
    alone = Spending(ADD_REMOVE).remaining_mu(3)
    with pytest.raises(PrivacyViolation):
        spending.gaussian("round", SUMS, bound=BOUND, mu=alone)


def test_what_is_left_of_mu_can_be_spent_in_shares():
    spending = Spending(REPLACE)
    spending.reserve("look", bound=BOUND, epsilon=0.02)
    spending.laplace("look", SUMS, bound=BOUND, epsilon=0.02)
    mu = spending.remaining_mu(100)
    for share in (0.03, 0.15, 0.82):
        spending.gaussian(f"round of {share}", SUMS, bound=BOUND, mu=mu * math.sqrt(share))
    assert spending.settled() == REPLACE
    assert epsilon_spent(spending.events, 1e-6) == pytest.approx(1.0, abs=1e-6)
    assert epsilon_spent(spending.events, 1e-6) <= 1.0


def test_a_pure_finish_spends_what_the_reserve_did_not():
    spending = Spending(ADD_REMOVE)
    spending.reserve("look", bound=BOUND, epsilon=0.3)
    spending.laplace("look", SUMS, bound=BOUND, epsilon=0.125)
    assert spending.remaining_epsilon() == pytest.approx(0.875, abs=1e-12)
    spending.laplace("rest", SUMS, bound=BOUND, epsilon=spending.remaining_epsilon())
    assert epsilon_spent(spending.events, 0.0) <= 1.0
    assert spending.settled() == ADD_REMOVE


def test_settling_looks_at_the_events_again():
    spending = Spending(ADD_REMOVE)
    spending._events.append(LaplaceEvent("slipped in", BOUND, BOUND / 2.0, 1))
    with pytest.raises(PrivacyViolation):
        spending.settled()


def test_choices_are_recorded_with_the_scale_that_their_range_needs(monkeypatch):
    scales = []

    def seen(scores, scale):
        scales.append(scale)
        return np.zeros(len(scores), dtype=np.int64)

    monkeypatch.setattr(noise, "choose_each", seen)
    spending = Spending(ADD_REMOVE)
    chosen, event = spending.choose("one", SUMS, sensitivity=4, epsilon=0.125)
    assert (chosen, event) == (0, ExponentialEvent("one", 0.125, 3))
    spending.choose("half", SUMS, sensitivity=4, epsilon=0.125, monotone=True)
    more = {"selections": 5, "choices": 3, "changed": 2, "sensitivity": 4}
    asked = []

    def rows(first, last):
        asked.append((first, last))
        return np.zeros((last - first, 3), dtype=np.int64)

    many, family = spending.choose_each("many", rows, **more, epsilon=0.125, at_once=2)
    assert family == SelectionEvent("many", 0.125, 3, 5, 2)
    assert len(many) == 5
    assert asked == [(0, 2), (2, 4), (4, 5)]
    assert scales == [64.0, 32.0, 64.0, 64.0, 64.0]
    assert spending.events[-1] is family


def test_unaffordable_choices_are_not_made(no_noise):
    spending = Spending(Guarantee(1.0))
    with pytest.raises(PrivacyViolation):
        spending.choose("one", SUMS, sensitivity=1, epsilon=1.5)
    rows = {"selections": 8, "choices": 3, "changed": 3, "sensitivity": 1}
    with pytest.raises(PrivacyViolation):
        spending.choose_each("many", lambda a, b: pytest.fail("scores were made"), **rows, epsilon=0.5)
    with pytest.raises(PrivacyViolation):
        spending.sparse_laplace("some", SUMS, bound=1, changed=3, epsilon=0.5)
    assert spending.events == ()


def test_what_finishes_must_keep_what_is_left_by_itself():
    spending = Spending(ADD_REMOVE)
    spending.laplace("rows", SUMS, bound=BOUND, epsilon=0.5)
    rest = spending.finish()
    assert rest == Guarantee(0.5, 1e-6)
    eta = spending.selection_epsilon(50)
    with pytest.raises(PrivacyViolation):  # together with the first event it would do; by itself it does not
        spending.choose_each(
            "many",
            lambda a, b: np.zeros((b - a, 2), dtype=np.int64),
            selections=50,
            choices=2,
            changed=50,
            sensitivity=1,
            epsilon=1.05 * eta,
        )
    half = spending.selection_epsilon(50, 0.5)
    spending.choose_each(
        "many",
        lambda a, b: np.zeros((b - a, 2), dtype=np.int64),
        selections=50,
        choices=2,
        changed=50,
        sensitivity=1,
        epsilon=half,
    )
    spending.gaussian("counts", SUMS * 1024, bound=BOUND, mu=spending.finishing_mu(3))
    assert epsilon_spent(spending.events[1:], 1e-6) <= 0.5
    assert spending.settled() == ADD_REMOVE


def test_sparse_laplace_noise():
    noisy, event = Spending(REPLACE).sparse_laplace("some", SUMS, bound=1024, changed=2, epsilon=0.1)
    assert noisy.shape == SUMS.shape
    assert event == SparseLaplaceEvent("some", 1024, 1024 / 0.1, 3, 2)


def test_a_budget_is_finished_once():
    spending = Spending(ADD_REMOVE)
    with pytest.raises(PrivacyViolation, match="finish"):
        spending.selection_epsilon(3)
    spending.finish()
    with pytest.raises(PrivacyViolation, match="once"):
        spending.finish()
    other = Spending(ADD_REMOVE)
    other.reserve("later", bound=BOUND, epsilon=0.1)
    with pytest.raises(PrivacyViolation, match="reserved"):
        other.finish()
    spent = Spending(ADD_REMOVE)
    spent.laplace("all", SUMS, bound=BOUND, epsilon=1.0)
    with pytest.raises(PrivacyViolation, match="nothing is left"):
        spent.finish()


# --- an opening: thresholds and Gaussian noise by public values, before anything is reserved


def opened(guarantee=ADD_REMOVE, pure_delta=1.25e-7, mu=0.05):
    spending = Spending(guarantee)
    spending.threshold("items", delta=2.5e-7)
    spending.gaussian("items", SUMS, bound=BOUND, mu=mu, non_negative=True, dimension=2**40)
    spending.end_opening(pure_delta=pure_delta)
    return spending


def test_a_threshold_is_recorded_and_halved_for_replaced_users():
    for guarantee, each in ((ADD_REMOVE, 2.5e-7), (REPLACE, 1.25e-7)):
        spending = Spending(guarantee)
        assert spending.threshold("items", delta=2.5e-7) == each
        assert spending.events == (ThresholdEvent("items", 2.5e-7),)
    with pytest.raises(PrivacyViolation):
        spending.threshold("more items", delta=1e-6)


def test_a_private_number_of_sums_is_not_recorded():
    assert opened().events[1].dimension == 2**40
    with pytest.raises(PrivacyViolation, match="bound"):
        Spending(ADD_REMOVE).gaussian("items", SUMS, bound=BOUND, mu=0.01, dimension=2)


def test_the_sigma_is_known_beforehand():
    spending = Spending(REPLACE)
    for sign in (True, False):
        sigma = spending.gaussian_sigma(BOUND, 0.05, non_negative=sign)
        _, event = spending.gaussian("a", SUMS, bound=BOUND, mu=0.05, non_negative=sign)
        assert event.sigma == sigma


def test_reserves_may_follow_an_opening_but_nothing_else():
    spending = opened()
    spending.reserve("look", bound=BOUND, epsilon=0.1)
    with pytest.raises(PrivacyViolation, match="opening"):
        spending.end_opening(pure_delta=0.0)
    spending.laplace("look", SUMS, bound=BOUND, epsilon=0.1)
    with pytest.raises(PrivacyViolation, match="reserve before"):
        spending.reserve("late", bound=BOUND, epsilon=0.1)


@pytest.mark.parametrize("guarantee", [ADD_REMOVE, REPLACE], ids=lambda g: g.adjacency.value)
def test_both_ways_to_go_on_fit_into_one_delta(guarantee):
    """What either way may spend, added up: the choice between them may depend on noisy values."""
    rounds, pure = opened(guarantee), opened(guarantee)
    for spending in (rounds, pure):
        spending.reserve("look", bound=BOUND, epsilon=0.02)
        spending.laplace("look", SUMS, bound=BOUND, epsilon=0.02)
    rounds.gaussian("round", SUMS, bound=BOUND, mu=rounds.remaining_mu(3))
    threshold = 2.5e-7
    by_rounds = delta_spent(rounds.events, 1.0) - threshold
    rest = pure.remaining_epsilon()
    assert 0.5 < rest < 0.98
    left_open = delta_spent([pure.events[1]], 1.0 - 0.02 - rest)
    assert 0.99e-6 < threshold + by_rounds + left_open <= 1e-6
    pure.laplace("counts", SUMS, bound=BOUND, epsilon=rest)
    assert rounds.settled() == pure.settled() == guarantee


def test_without_a_part_of_delta_there_is_no_pure_finish():
    with pytest.raises(ValueError, match="delta"):
        opened(pure_delta=0.0).remaining_epsilon()


def test_what_is_reserved_stays_so():
    spending = opened()
    spending.reserve("look", bound=BOUND, epsilon=0.1)
    before = spending.remaining_mu(3)
    spending.reserve("look", bound=BOUND, epsilon=0.05)
    assert spending.remaining_mu(3) == before
    with pytest.raises(PrivacyViolation, match="more than before"):
        spending.reserve("look", bound=BOUND, epsilon=0.2)


@pytest.mark.parametrize("pure_delta", [1.25e-7, 0.0])
def test_a_pure_finish_after_an_opening_has_a_limit(no_laplace, pure_delta):
    """Even where this path alone could afford it: a Gaussian path may have been the other choice."""
    spending = opened(pure_delta=pure_delta)
    rest = spending.remaining_epsilon() if pure_delta else 0.1
    with pytest.raises(PrivacyViolation, match="pure finish"):
        spending.laplace("counts", SUMS, bound=BOUND, epsilon=rest * (1 + 1e-9))


def test_after_an_opening_a_choice_is_part_of_a_pure_finish_too(monkeypatch):
    monkeypatch.setattr(noise, "choose_each", lambda *_: pytest.fail("a choice was made"))
    monkeypatch.setattr(noise, "add_discrete_laplace", lambda *_: pytest.fail("noise was drawn"))
    spending = opened(pure_delta=0.0)
    with pytest.raises(PrivacyViolation, match="pure finish"):
        spending.choose("one", SUMS, sensitivity=1, epsilon=1e-3)
    with pytest.raises(PrivacyViolation, match="pure finish"):
        spending.sparse_laplace("some", SUMS, bound=1, changed=2, epsilon=1e-3)
    rows = {"selections": 8, "choices": 3, "changed": 3, "sensitivity": 1}
    with pytest.raises(PrivacyViolation, match="pure finish"):
        spending.choose_each("many", lambda a, b: pytest.fail("scores were made"), **rows, epsilon=1e-3)
    assert len(spending.events) == 2


def test_rounds_after_an_opening_leave_the_part_of_a_pure_finish(monkeypatch):
    monkeypatch.setattr(noise, "add_discrete_gaussian", lambda sums, _: sums)
    spending = opened(pure_delta=5e-7)
    all_of_it = opened(pure_delta=0.0).remaining_mu(3)
    assert spending.remaining_mu(3) < all_of_it
    monkeypatch.setattr(noise, "add_discrete_gaussian", lambda *_: pytest.fail("noise was drawn"))
    with pytest.raises(PrivacyViolation):
        spending.gaussian("round", SUMS, bound=BOUND, mu=all_of_it)


def test_an_opening_does_not_mix_with_a_finish():
    with pytest.raises(PrivacyViolation, match="pure start"):
        opened().finish()
    thresholded = Spending(ADD_REMOVE)
    thresholded.threshold("items", delta=2.5e-7)
    with pytest.raises(PrivacyViolation, match="pure start"):
        thresholded.finish()
    finished = Spending(ADD_REMOVE)
    finished.finish()
    with pytest.raises(PrivacyViolation, match="opening"):
        finished.threshold("items", delta=2.5e-7)
    with pytest.raises(PrivacyViolation, match="opening"):
        finished.end_opening(pure_delta=0.0)


def test_a_threshold_comes_before_all_else():
    spending = opened()
    with pytest.raises(PrivacyViolation, match="part of an opening"):
        spending.threshold("more items", delta=1e-8)
    reserved = Spending(ADD_REMOVE)
    reserved.reserve("look", bound=BOUND, epsilon=0.1)
    with pytest.raises(PrivacyViolation, match="part of an opening"):
        reserved.threshold("items", delta=1e-8)


# --- looks before an opening, and a pure finish instead of one


def looked(guarantee=ADD_REMOVE):
    spending = Spending(guarantee)
    spending.threshold("items", delta=2.5e-7)
    spending.reserve("look", bound=BOUND, epsilon=0.02)
    spending.laplace("look", SUMS, bound=BOUND, epsilon=0.02)
    return spending


def test_looks_may_be_reserved_after_a_threshold_and_taken_before_an_opening():
    spending = looked()
    with pytest.raises(PrivacyViolation, match="reserve before"):
        spending.reserve("late", bound=BOUND, epsilon=0.1)
    spending.reserve("look", bound=BOUND, epsilon=0.02)  # what is reserved already stays so
    spending.gaussian("items", SUMS, bound=BOUND, mu=0.05, non_negative=True, dimension=2**40)
    spending.end_opening(pure_delta=1.25e-7)
    early, late = spending, opened()
    late.reserve("look", bound=BOUND, epsilon=0.02)
    late.laplace("look", SUMS, bound=BOUND, epsilon=0.02)
    assert early.remaining_mu(3) == late.remaining_mu(3)
    assert early.remaining_epsilon() == late.remaining_epsilon()


@pytest.mark.parametrize("guarantee", [ADD_REMOVE, REPLACE], ids=lambda g: g.adjacency.value)
def test_a_pure_finish_spends_all_of_epsilon_and_no_more(guarantee, monkeypatch):
    spending = looked(guarantee)
    spending.finish_purely()
    assert spending.remaining_epsilon() == pytest.approx(0.98, rel=1e-12)
    _, event = spending.laplace("items", SUMS, bound=BOUND, epsilon=0.9, dimension=2**40)
    assert event.dimension == 2**40
    spending.laplace("rest", SUMS, bound=BOUND, epsilon=spending.remaining_epsilon())
    assert spending.settled() == guarantee
    assert delta_spent(spending.events, 1.0) == 2.5e-7
    monkeypatch.setattr(noise, "add_discrete_laplace", lambda *_: pytest.fail("noise was drawn"))
    with pytest.raises(PrivacyViolation, match="pure finish"):
        spending.laplace("more", SUMS, bound=BOUND, epsilon=1e-6)


def test_nothing_else_follows_the_beginning_of_a_pure_finish(monkeypatch):
    monkeypatch.setattr(noise, "add_discrete_gaussian", lambda *_: pytest.fail("noise was drawn"))
    spending = looked()
    spending.finish_purely()
    with pytest.raises(PrivacyViolation, match="pure finish"):
        spending.gaussian("round", SUMS, bound=BOUND, mu=1e-3)
    with pytest.raises(PrivacyViolation, match="opening"):
        spending.end_opening(pure_delta=0.0)
    with pytest.raises(PrivacyViolation, match="opening"):
        spending.threshold("more items", delta=1e-8)
    with pytest.raises(PrivacyViolation, match="begins once"):
        spending.finish_purely()


def test_a_pure_finish_does_not_follow_gaussian_noise():
    spending = Spending(ADD_REMOVE)
    spending.gaussian("round", SUMS, bound=BOUND, mu=0.01)
    for each in (spending, opened()):
        with pytest.raises(PrivacyViolation, match="after no Gaussian"):
            each.finish_purely()


def test_a_private_number_of_sums_is_not_recorded_with_laplace_noise_either():
    with pytest.raises(PrivacyViolation, match="bound"):
        Spending(ADD_REMOVE).laplace("items", SUMS, bound=BOUND, epsilon=0.1, dimension=2)


@pytest.fixture
def no_laplace(monkeypatch):
    monkeypatch.setattr(noise, "add_discrete_laplace", lambda *_: pytest.fail("noise was drawn"))
