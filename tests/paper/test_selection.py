"""PHS: the scores are the literal algorithm's, and its exact output distributions on neighbours keep the promise."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp

from crowdgram.errors import InvalidArgument
from crowdgram.paper.selection import SCORE_UNIT, Hypotheses, binomial_tails, changed_symbols, phs, scores, spread_of
from crowdgram.privacy import Adjacency, Guarantee, SelectionEvent, Spending, delta_spent

from ..thorough import examples
from .crowds import literal_scores, sampled, tallies_of, zipf

COVER = [Fraction(x, 8) for x in (0, 1, 3, 6, 8)]


def tails_of(data):
    tails = np.zeros((1, len(data) + 1), dtype=np.int64)
    tails[0, 1:-1] = np.cumsum(data[:0:-1])[::-1]
    return tails


@pytest.mark.slow
@examples(150)
@given(
    st.integers(1, 9),
    st.one_of(
        st.integers(2, 12).map(lambda d: [Fraction(x, d) for x in range(d + 1)]),  # symmetric: full of ties
        st.sets(st.integers(0, 64), min_size=1, max_size=9).map(lambda s: [Fraction(x, 64) for x in sorted(s)]),
    ),
    st.integers(1, 33).map(lambda x: Fraction(x, 101)),
    st.integers(-3, 3),
    st.data(),
)
def test_scores_are_those_of_the_literal_algorithm(m, cover, alpha, off, data):
    counts = data.draw(st.lists(st.integers(0, 12), min_size=m + 1, max_size=m + 1))
    users = max(1, sum(counts) + off)
    hypotheses = Hypotheses.of(m, np.array([float(p) for p in cover]), float(alpha))
    for everybody in (users, sum(counts)):
        found = scores(tails_of(counts), everybody, hypotheses, users)[0].tolist()
        assert found == literal_scores(m, cover, alpha, counts, users, everybody)


def log_probabilities(users, items, m, alpha, epsilon, s_hat, monotone):
    """log P of each hypothesis for each symbol, exactly as PHS draws them."""
    tallies = tallies_of(users, items, m)
    hypotheses = Hypotheses.of(m, np.array([float(p) for p in COVER]), alpha)
    found = scores(tallies.tails(), tallies.takers if monotone else s_hat, hypotheses, s_hat)
    exponents = found * (epsilon / SCORE_UNIT if monotone else epsilon / (2 * SCORE_UNIT))
    return exponents - logsumexp(exponents, axis=1, keepdims=True)


def hockey_stick(one, other, epsilon):
    """sup_S P(S) - e^epsilon Q(S) of the joint output of all symbols, by enumeration."""
    total = 0.0
    for outcome in itertools.product(range(one.shape[1]), repeat=one.shape[0]):
        p = math.exp(sum(one[i, x] for i, x in enumerate(outcome)))
        q = math.exp(sum(other[i, x] for i, x in enumerate(outcome)))
        total += max(0.0, p - math.exp(epsilon) * q)
    return total


ITEMS, ROWS = 3, 2
user = st.lists(st.integers(0, 2), min_size=ITEMS, max_size=ITEMS).filter(lambda u: sum(u) <= ROWS)


@pytest.mark.slow
@examples(80)
@given(
    st.lists(user, min_size=2, max_size=14),
    user,
    st.sampled_from([Adjacency.ADD_REMOVE, Adjacency.REPLACE]),
    st.booleans(),
    st.sampled_from([0.05, 0.12, 0.3]),
    st.sampled_from([0.3, 2.0]),
    st.integers(1, 14),
)
def test_output_distributions_of_neighbours_keep_the_promise(crowd, other, adjacency, monotone, alpha, epsilon, s_hat):
    """Users with fewer than m rows leave the set, so this holds Appendix E's case too."""
    monotone = monotone and adjacency is Adjacency.ADD_REMOVE
    neighbour = [other, *crowd[1:]] if adjacency is Adjacency.REPLACE else crowd[1:]
    more = (ITEMS, ROWS, alpha, epsilon, s_hat, monotone)
    one, two = log_probabilities(crowd, *more), log_probabilities(neighbour, *more)
    ratios = one - two
    assert (ratios.max(axis=1) - ratios.min(axis=1)).max() <= epsilon * (1 + 1e-9)
    changed = ITEMS if monotone else changed_symbols(ITEMS, ROWS, adjacency)
    assert (np.abs(ratios).max(axis=1) > 1e-12).sum() <= changed
    event = SelectionEvent("x", epsilon, len(COVER), ITEMS, changed)
    for spent in (0.0, 0.4 * epsilon, epsilon, 1.7 * epsilon):
        for p, q in ((one, two), (two, one)):
            assert hockey_stick(p, q, spent) <= delta_spent([event], spent) + 1e-12


def literal_appendix_e(users, items, m, alpha, epsilon, s_hat):
    """The printed sets: users at zero are counted as they are, so that one who leaves is missed by every symbol."""
    tallies = tallies_of(users, items, m)
    hypotheses = Hypotheses.of(m, np.array([float(p) for p in COVER]), alpha)
    exponents = scores(tallies.tails(), tallies.takers, hypotheses, s_hat) * (epsilon / (2 * SCORE_UNIT))
    return exponents - logsumexp(exponents, axis=1, keepdims=True)


def test_a_user_who_leaves_the_set_breaks_the_literal_version_and_not_ours():
    """Erratum 4: 40 symbols, 2 rows a user; one user drops from 2 rows to 1 under replace. Pure epsilon of both."""
    items, m, epsilon = 40, 2, 0.5
    crowd = [[2 if i == j % items else 0 for i in range(items)] for j in range(30)]
    gone = [[1 if i == 0 else 0 for i in range(items)], *crowd[1:]]
    changed = changed_symbols(items, m, Adjacency.REPLACE)
    claimed = changed * epsilon

    def loss(distribution):
        # Symbols are independent, so the worst loss of the joint output is the sum of the worst losses.
        ratios = distribution(crowd) - distribution(gone)
        return max(ratios.max(axis=1).sum(), -ratios.min(axis=1).sum())

    assert loss(lambda users: literal_appendix_e(users, items, m, 0.05, epsilon, 30)) > 2 * claimed
    assert loss(lambda users: log_probabilities(users, items, m, 0.05, epsilon, 30, False)) <= claimed


def test_phs_draws_from_the_scores():
    """Nearly without noise, the hypothesis nearest to the truth is chosen for each symbol."""
    p = zipf(5)
    tallies = sampled(p, 20, 3000, seed=1)
    cover = np.linspace(0, 1, 201)
    spending = Spending(Guarantee(100.0, 1e-6, Adjacency.REPLACE)).open().start().finish()
    selected = phs(tallies, Hypotheses.of(20, cover, 0.05), spending, users=3000, epsilon=4.0, changed=5)
    assert np.abs(selected.probabilities - p).max() < 0.03
    assert selected.event == SelectionEvent("probability of each item", 4.0, 201, 5, 5)
    assert spending.events == (selected.event,)
    absolute, deviation, low, high = spread_of(selected, (0.025, 0.975))
    assert np.all((absolute > 0) & (absolute <= deviation * (1 + 1e-9)) & (low < 0) & (high > 0))


@pytest.mark.parametrize(
    ("adjacency", "options", "named"),
    [
        ("add-remove", {"changed": 1}, "a user may change 2 symbols"),
        ("replace", {"changed": 3}, "a user may change 4 symbols"),
        ("add-remove", {"changed": 4, "monotone": True}, "a user may change 5 symbols"),
        ("replace", {"changed": 5, "monotone": True}, "under replace scores move both ways"),
        ("replace", {"changed": 5, "users": 0}, "users=0"),
    ],
)
def test_what_a_user_may_change_cannot_be_understated(adjacency, options, named):
    hypotheses = Hypotheses.of(2, np.array([0.0, 0.5, 1.0]), 0.1)
    spending = Spending(Guarantee(1.0, 1e-6, adjacency)).open().start().finish()
    with pytest.raises(InvalidArgument, match=named):
        phs(tallies_of([[1, 1, 0, 0, 0]], 5, 2), hypotheses, spending, **{"users": 3, "epsilon": 0.1, **options})
    assert spending.events == ()


def test_binomial_tails():
    tails = binomial_tails(3, np.array([0.0, 0.5, 1.0]))
    assert tails.tolist() == [[1, 0, 0, 0, 0], [1, 0.875, 0.5, 0.125, 0], [1, 1, 1, 1, 0]]


@pytest.mark.parametrize(
    ("m", "cover", "alpha", "named"),
    [(0, [0.0, 1.0], 0.1, "m=0"), (3, [1.0, 0.0], 0.1, "cover"), (3, [], 0.1, "cover"), (3, [0.5], 1.0, "alpha=1.0")],
)
def test_bad_hypotheses(m, cover, alpha, named):
    with pytest.raises(InvalidArgument, match=named):
        Hypotheses.of(m, np.array(cover), alpha)
