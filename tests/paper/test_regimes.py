"""Dense, Sparse and the two joined, on users who are alike; and Appendix E, on a table."""

from __future__ import annotations

import numpy as np
import pytest

from crowdgram.errors import InvalidArgument, PrivacyViolation
from crowdgram.mechanisms.simplex import project
from crowdgram.paper.regimes import dense, learn, sparse
from crowdgram.paper.selection import changed_symbols
from crowdgram.paper.variable import doubling_edges, learn_variable, rows_median, rows_quantile
from crowdgram.privacy import (
    EXACT,
    Adjacency,
    GaussianEvent,
    Guarantee,
    LaplaceEvent,
    SelectionEvent,
    SparseLaplaceEvent,
    Spending,
    check,
)
from crowdgram.synth import Crowd

from ..mechanisms.crowds import counted, counted_crowd
from ..samplers import Scripted
from ..thorough import combined
from .crowds import sampled, zipf

ADJACENCIES = [Adjacency.ADD_REMOVE, Adjacency.REPLACE]
DENSE, SPARSE = (10, 60), (60, 10)  # items, rows


def start(adjacency=Adjacency.REPLACE, sampler=EXACT):
    return Spending(Guarantee(1.0, 1e-6, adjacency), sampler=sampler).open().start()


def budget(adjacency=Adjacency.REPLACE, epsilon=1.0, delta=1e-6):
    return Spending(Guarantee(epsilon, delta, adjacency)).open().start().finish()


@pytest.mark.slow
@pytest.mark.parametrize(("constants", "adjacency", "size"), combined(["tight", "paper"], ADJACENCIES, [DENSE, SPARSE]))
def test_every_algorithm_spends_what_it_has_and_no_more(size, adjacency, constants):
    items, rows = size
    spending = budget(adjacency)
    learned = learn(sampled(zipf(items), rows, 500, 1), spending, users=500, alpha=0.5, constants=constants)
    assert learned.regime == ("dense" if items <= rows else "sparse")
    assert learned.alpha == 0.5
    assert np.all((learned.probabilities >= 0) & (learned.probabilities <= 1))
    check(spending.events, spending.guarantee)
    selection = spending.events[0]
    assert isinstance(selection, SelectionEvent)
    few = changed_symbols(items, rows, adjacency)
    monotone = constants == "tight" and adjacency is Adjacency.ADD_REMOVE and items < 4 * few
    assert (selection.selections, selection.changed) == (items, items if monotone else few)
    if learned.regime == "dense":
        assert len(spending.events) == 1
    else:
        assert type(spending.events[1]) is (GaussianEvent if constants == "tight" else SparseLaplaceEvent)
    if constants == "tight":
        dearer = SelectionEvent("x", 1.05 * selection.epsilon, 2, items, selection.changed)
        with pytest.raises(PrivacyViolation):  # next to nothing is left over
            check([dearer, *spending.events[1:]], spending.guarantee)


@pytest.mark.slow
def test_epsilon_is_as_printed():
    """epsilon' = epsilon/(4 sqrt(k log(1/delta))) and epsilon/(8 sqrt(min(k, m) log(1/delta)))."""
    spending = budget()
    dense(sampled(zipf(10), 60, 300, 1), spending, users=300, alpha=0.5)
    assert spending.events[0].epsilon == pytest.approx(1 / (4 * np.sqrt(10 * np.log(1e6))))
    spending = budget()
    sparse(sampled(zipf(60), 10, 300, 1), spending, users=300, alpha=0.5)
    assert spending.events[0].epsilon == pytest.approx(1 / (8 * np.sqrt(10 * np.log(1e6))))
    assert spending.events[1].scale == pytest.approx(1024 / spending.events[0].epsilon)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("adjacency", "items", "rows", "users", "most"),
    [
        (Adjacency.REPLACE, 20, 400, 3000, 0.03),
        (Adjacency.ADD_REMOVE, 20, 400, 3000, 0.02),
        (Adjacency.REPLACE, 50, 20, 8000, 0.12),
        (Adjacency.ADD_REMOVE, 50, 20, 8000, 0.12),
    ],
)
def test_tight_constants_are_accurate(adjacency, items, rows, users, most):
    """About twice what is typical, in the better of two runs: a wild choice of a symbol has a chance below e^-7."""
    p = zipf(items)
    tallies = sampled(p, rows, users, 7)
    errors = []
    for _ in range(2):
        learned = learn(tallies, budget(adjacency), users=users, constants="tight", checked=False)
        errors.append(np.abs(project(learned.probabilities) - p).sum())
    assert min(errors) < most
    assert learned.doubts == ()


@pytest.mark.slow
def test_the_paper_s_constants_learn_with_enough_users():
    """Theorem 7's own alpha with 3 million users (as tallies, which cost no more)."""
    p, users = zipf(4), 3_000_000
    tallies = sampled(p, 6, users, 3)
    learned = dense(tallies, budget(), users=users, alpha=1.0)
    assert learned.doubts == ()
    assert np.abs(learned.probabilities - p).sum() < 1.0


@pytest.mark.parametrize(
    ("algorithm", "items", "rows", "options", "named"),
    [
        (dense, 9, 5, {}, "Theorem 7 needs k <= m"),
        (sparse, 5, 9, {}, "Theorem 8 needs k >= m >= 8"),
        (sparse, 9, 5, {}, "Theorem 8 needs k >= m >= 8"),
        (dense, 5, 9, {"epsilon": 2.0}, "Theorem 7 needs epsilon <= 1"),
        (learn, 20, 9, {"epsilon": 1.5}, "Theorem 8 needs epsilon <= 1"),
        (dense, 5, 9, {"delta": 0.0}, "Theorem 7 needs 0 < delta"),
        (learn, 20, 9, {"alpha": 1.5}, r"alpha=1.5: Theorem 8 needs 0 < alpha <= 1"),
        (dense, 5, 9, {"alpha": 0.0}, r"alpha=0.0: Theorem 7"),
    ],
)
def test_out_of_a_theorem_s_range(algorithm, items, rows, options, named):
    spending = budget(epsilon=options.get("epsilon", 1.0), delta=options.get("delta", 1e-6))
    tallies = sampled(zipf(items), rows, 30, 1)
    with pytest.raises(InvalidArgument, match=named):
        algorithm(tallies, spending, users=30, alpha=options.get("alpha", 0.5))
    assert spending.events == ()


def test_doubts_instead_of_an_error():
    learned = dense(sampled(zipf(9), 5, 30, 1), budget(epsilon=2.0), users=30, alpha=0.5, checked=False)
    assert [doubt[:17] for doubt in learned.doubts] == ["Theorem 7 needs e", "Theorem 7 needs k", "Theorem 6 needs a"]
    tight = learn(sampled(zipf(5), 4, 30, 1), budget(), users=30, constants="tight", checked=False)
    assert ["not mostly chance" in doubt for doubt in tight.doubts] == [True]


CROWD = Crowd(users=4000, rows=20, items=8, tail=0.7, seed=5)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_the_median_of_rows(adjacency):
    with counted_crowd(CROWD) as counts:
        spending = start(adjacency)
        found = rows_median(counts, spending, epsilon=0.9, beta=1e-2)
        quarter = rows_quantile(counts, start(adjacency), epsilon=0.9, beta=1e-2, quantile=0.1)
    rows = np.unique(CROWD.table()["user"].to_numpy(), return_counts=True)[1]
    assert found.rows in (8, 16)
    assert found.rows >= np.median(rows) / 2
    assert abs(found.users - (rows >= found.rows).sum()) < 300
    assert quarter.rows <= found.rows
    event = spending.events[0]
    assert isinstance(event, LaplaceEvent)
    # One user moves the histogram by 1 under add-remove and 2 under replace (erratum 6).
    assert event.sensitivity == (1024 if adjacency is Adjacency.ADD_REMOVE else 2048)
    assert event.scale == pytest.approx(event.sensitivity / 0.9)


def test_the_threshold_uses_the_noisy_total():
    """Erratum 6: what comes out is a function of the noisy histogram alone."""

    def fixed(sums, _):
        out = np.zeros_like(sums)
        out[:5] = 1024 * np.array([100, 200, 300, 400, 0])
        return out

    outcomes = set()
    for users in (10, 999):
        crowd = Crowd(users=users, rows=5, items=3, seed=1)
        with counted(crowd.table(), 3) as counts:
            outcomes.add(rows_median(counts, start(sampler=Scripted(fixed)), epsilon=1.0, beta=0.1))
    assert len(outcomes) == 1
    assert outcomes.pop().rows == 8


def test_too_few_users_for_a_median():
    crowd = Crowd(users=20, rows=30, items=4, seed=1)
    with counted(crowd.table(), 4) as counts:
        found = rows_median(counts, start(), epsilon=0.5, beta=0.01)
    assert found.doubts
    assert found.rows >= 1
    assert found.users >= 1


@pytest.mark.parametrize("bad", [{"beta": 0.0}, {"quantile": 1.0}])
def test_bad_quantiles(bad):
    with counted(CROWD.table().slice(0, 10), 8) as counts, pytest.raises(InvalidArgument, match="needs"):
        rows_quantile(counts, start(), **{"epsilon": 0.5, "beta": 0.1, **bad})


def test_doubling_bins():
    assert doubling_edges(8) == [1, 3, 7, 8]
    assert doubling_edges(1) == [1]
    assert len(doubling_edges(2**20)) == 21


@pytest.mark.slow
@pytest.mark.parametrize(("adjacency", "constants", "rows"), combined(ADJACENCIES, ["paper", "tight"], [None, 16]))
def test_users_with_different_numbers_of_rows(adjacency, constants, rows):
    errors = []
    with counted_crowd(CROWD) as counts:
        for _ in range(2):
            spending = start(adjacency)
            learned, found = learn_variable(counts, spending, constants=constants, rows=rows, checked=False)
            errors.append(np.abs(project(learned.probabilities) - CROWD.distribution()).sum())
    check(spending.events, spending.guarantee)
    first = [event for event in spending.events if isinstance(event, LaplaceEvent)]
    part = sum(event.sensitivity / event.scale for event in first)
    assert part == pytest.approx({"paper": 0.5, "tight": 0.05 if rows is None else 0.03}[constants])
    assert found.rows == rows or rows is None
    # What follows keeps the rest by itself, whatever m-hat and s-hat are.
    check(spending.events[len(first) :], Guarantee(1.0 - part, 1e-6, adjacency))
    if constants == "tight":
        assert min(errors) < 0.15
