"""A release's budget: nothing is drawn that is not affordable, recorded and, where need be, set aside in time."""

from __future__ import annotations

import math
import subprocess
import sys
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
    epsilon_spent,
)

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


def test_gaussian_rounds_reckon_with_all_of_the_reserve():
    plain, used, unused = looks(), looks(ADD_REMOVE, LOOK), looks(ADD_REMOVE, LOOK)
    used.laplace("look", SUMS, bound=BOUND, epsilon=0.02)
    assert unused.remaining_mu(3) == used.remaining_mu(3) < plain.remaining_mu(3)
    assert used.rounds().remaining_mu(3) == unused.remaining_mu(3)


def test_a_gaussian_round_may_not_use_the_reserve():
    """What a path that skips the reserve could afford by itself is refused all the same."""
    rounds = looks(ADD_REMOVE, Reserve("look", BOUND, 0.3), sampler=NO_NOISE).rounds()
    with pytest.raises(PrivacyViolation):
        rounds.gaussian("round", SUMS, bound=BOUND, mu=looks().remaining_mu(3))


def test_what_is_left_of_mu_can_be_spent_in_shares():
    spending = Spending(REPLACE)
    phase = spending.open().looks([Reserve("look", BOUND, 0.02)])
    phase.laplace("look", SUMS, bound=BOUND, epsilon=0.02)
    rounds = phase.rounds()
    mu = rounds.remaining_mu(100)
    for share in (0.03, 0.15, 0.82):
        rounds.gaussian(f"round of {share}", SUMS, bound=BOUND, mu=mu * math.sqrt(share))
    assert spending.settled() == REPLACE
    assert epsilon_spent(spending.events, 1e-6) == pytest.approx(1.0, abs=1e-6)
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
