"""Counts, totals, and all that is said of several items at once: coverage by simulation.

Noisy sums are made into releases by the estimator's own last step, or in the form that rounds have. Runs are seeded;
the `bar` is that of tests/results/test_covariance.py.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from crowdgram import Other, Release
from crowdgram.errors import InvalidArgument, UnknownItem
from crowdgram.mechanisms.estimate import Divisor, Total
from crowdgram.privacy import GaussianEvent

from ..results.synthetic import grouped, made, zipf
from ..results.test_covariance import SCALE, bar, released, top_heavy
from ..thorough import combined

THETA, USERS, RUNS = top_heavy(60), 9_000, 200


def plain(rng, theta=THETA, users=USERS, *, total_error=None, claimed=1.0, **options):
    """Laplace noise on counts: the total is what shares were divided by."""
    one = released(theta, users, rng, total_error=total_error, claimed=claimed, **options)
    return replace(one, total=Total(_divided(one, claimed), row_bound=7))


def _divided(one, claimed):
    return float(claimed * math.sqrt(2) * SCALE / one.noise_errors[0])


def from_rounds(rng, theta=THETA, users=USERS, *, deviation=2e-3, bias=1e-3, error=0.02, claimed=1.0):
    """Shares with noise and bias of their own, and a total that was measured apart."""
    k = len(theta)
    off = deviation * rng.standard_normal(k) + bias * rng.standard_normal(k)
    one = made(theta + off, np.full(k, claimed * deviation), range(k), ("item",), np.full(k, claimed * bias))
    value = users * (1 + error * rng.standard_normal())
    event = GaussianEvent("level", 1.0, 10.0, k)
    return replace(one, events=(event,), divisor=Divisor(), total=Total(value, claimed * error, None, biased=True))


FORMS = {
    "own sum": plain,
    "half known": lambda rng, **more: plain(rng, total_error=SCALE * math.sqrt(120), **more),
    "known": lambda rng, **more: plain(rng, total_error=10.0, **more),
    "rounds": from_rounds,
}


@cache
def releases(form, users=USERS, *, shares="top heavy", turned=False):
    """Releases of one form, the same for all tests here: to make one takes longer than most of what is asked of it.

    shares: top heavy or zipf. turned: the rarest item is the first.
    """
    theta = zipf(60) if shares == "zipf" else THETA
    rng = np.random.default_rng([11, users, shares == "zipf", turned])
    return [FORMS[form](rng, theta=theta[::-1] if turned else theta, users=users) for _ in range(RUNS)]


def within(lower, upper, truth):
    return (lower <= truth + 1e-9) & (truth <= upper + 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_counts_are_covered_by_rank(form):
    found, together, totals, off, said = [], [], [], [], []
    for one in releases(form):
        counts, joint = one.counts(), one.counts(simultaneous=True)
        found.append(within(counts.lower, counts.upper, THETA * USERS))
        together.append(within(joint.lower, joint.upper, THETA * USERS).all())
        totals.append(within(counts.total.lower, counts.total.upper, USERS))
        off.append(one.measured[0] * one.total.value - THETA[0] * USERS)
        said.append(counts.standard_errors[0])
    covered = np.mean(found, axis=0)
    assert covered[0] >= bar(RUNS)
    assert covered[1:5].mean() >= bar(RUNS)
    assert covered[5:].mean() >= 0.94
    assert np.mean(together) >= bar(RUNS)
    assert np.mean(totals) >= bar(RUNS)
    assert 0.85 < np.std(off) / np.mean(said) < 1.15  # neither too narrow nor too wide


@pytest.mark.parametrize("form", ["own sum", "rounds"])
def test_counts_that_claim_too_little_are_noticed(form):
    rng = np.random.default_rng(12)
    made_of = [FORMS[form](rng, claimed=0.4).counts() for _ in range(100)]
    assert np.mean([within(one.lower, one.upper, THETA * USERS) for one in made_of]) < 0.8


def test_share_and_total_are_not_independent():
    """The count of a large item of plain noise is known as well as any other's: the divisor's noise cancels."""
    one = plain(np.random.default_rng(13), users=40_000)
    counts, estimate = one.counts(), one.estimate(0)
    assert counts.standard_errors[0] == pytest.approx(math.sqrt(2) * SCALE)
    apart = math.hypot(estimate.standard_error / estimate.probability, (counts.total.upper / 40_000 - 1) / 2.12)
    assert counts.standard_errors[0] < 0.4 * apart * counts.counts[0]


def test_a_bias_of_shares_does_not_open_the_interval_of_a_bounded_count():
    """A share may begin at 0 for what a bound on rows leaves out; the count of bounded rows is known without it."""
    one = plain(np.random.default_rng(15), users=40_000)
    leaning = replace(one, lower=np.zeros(60), other_errors=np.full(60, 0.2))
    assert leaning.counts().lower == pytest.approx(one.counts().lower)
    assert leaning.counts().lower[0] > 0
    biased = replace(leaning, total=replace(leaning.total, biased=True))
    assert (biased.counts().lower == 0).all()


def test_what_counts_hold():
    one = plain(np.random.default_rng(14))
    counts = one.counts()
    assert counts.of == "rows"
    assert counts.row_bound == 7
    assert "at most 7 rows" in counts.about
    assert len(counts) == 60
    assert counts.top(1)[0] == counts.estimate(0) == next(iter(counts))
    assert counts.counts == pytest.approx(one.probabilities * one.total.value)
    assert counts.counts.sum() == pytest.approx(counts.total.value)
    assert one.rows == counts.total
    wider = one.counts(simultaneous=True)
    assert (wider.upper >= counts.upper).all()
    assert (wider.lower <= counts.lower).all()
    users = replace(one, weight="users").counts()
    assert users.row_bound is None
    assert "not the number of users who have it" in users.about
    assert replace(one, weight="users").rows is None
    assert "all rows" in replace(one, total=Total(9.0)).counts().about
    with pytest.raises(UnknownItem):
        counts.estimate("nobody")
    with pytest.raises(InvalidArgument, match="n=-1"):
        counts.top(-1)


def test_without_a_total_there_are_no_counts():
    one = made(zipf(4), np.full(4, 1e-3), range(4), ("item",))
    assert one.users is None
    assert one.rows is None
    for ask in (one.counts, lambda: one.to_arrow(measure="counts"), lambda: one.ratio(0, 1, measure="counts")):
        with pytest.raises(InvalidArgument, match="measure='counts': needs the total"):
            ask()
    with pytest.raises(InvalidArgument, match="measure='counts': needs a total"):
        one.draws(1, measure="counts")
    with pytest.raises(InvalidArgument, match="measure='rows': needs to be 'shares' or 'counts'"):
        one.to_arrow(measure="rows")


# --- parts


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_sums_of_items_have_counts(form):
    codes = np.arange(60) % 4
    truth = np.bincount(codes, weights=THETA) * USERS
    found = []
    for one in releases(form):
        counts = one.merged(lambda item: int(codes[item])).counts()
        found.append(within(counts.lower, counts.upper, truth[list(counts.items)]))
    assert np.mean(found, axis=0).min() >= bar(RUNS)


CELLS = [(group, item) for group in ("a", "b") for item in range(30)]
JOINT = np.concatenate([0.7 * top_heavy(30), 0.3 * top_heavy(30)[::-1]])


@pytest.mark.slow
@pytest.mark.parametrize("form", ["own sum", "rounds"])
def test_counts_of_groups_are_covered(form):
    rng, runs, found, totals = np.random.default_rng(16), 200, [], []
    for _ in range(runs):
        one = replace(FORMS[form](rng, theta=JOINT), items=tuple(CELLS), item_columns=("group", "item"))
        for group, part in (("a", JOINT[:30]), ("b", JOINT[30:])):
            counts = one.conditional(group=group).counts()
            found.append(within(counts.lower, counts.upper, part * USERS))
            totals.append(within(counts.total.lower, counts.total.upper, part.sum() * USERS))
    covered = np.mean(found, axis=0)
    assert covered[[0, 29]].min() >= bar(2 * runs)
    assert covered.mean() >= 0.94
    assert np.mean(totals) >= bar(2 * runs)


def test_parts_agree_with_the_whole():
    joint = replace(grouped(1e-4).joint, total=Total(1000.0, row_bound=3), divisor=Divisor(own=1.0))
    whole, part = joint.counts(), joint.conditional(country="FR")
    assert part.users is None
    assert part.total.value == pytest.approx(300, rel=1e-6)
    for page, count in zip(part.items, part.counts(), strict=True):
        same = whole.estimate(("FR", page))
        assert count.count == pytest.approx(same.count, rel=1e-6)
        assert count.standard_error == pytest.approx(same.standard_error, rel=1e-6)


# --- all at once


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_all_items_at_once(form):
    theta, found, ranked = zipf(60), [], []
    truth = np.arange(1, 61)
    for one in releases(form, 40_000, shares="zipf"):
        lower, upper = one.intervals(simultaneous=True)
        assert (lower <= one.lower).all()
        assert (upper >= one.upper).all()
        found.append(within(lower, upper, theta).all())
        best, worst = one.ranks()
        ranked.append(((best <= truth) & (truth <= worst)).all())
        assert one.rank(0) == (best[0], worst[0])
    assert np.mean(found) >= bar(RUNS)
    assert np.mean(ranked) >= bar(RUNS)
    assert best[0] == worst[0] == 1  # the first is twice the second
    assert (worst - best)[:5].mean() < 6  # and ranks are told apart where noise allows it


def test_intervals_one_by_one_do_not_hold_at_once():
    rng = np.random.default_rng(18)
    assert np.mean([within(one.lower, one.upper, THETA).all() for one in map(plain, [rng] * 100)]) < 0.5


def test_ranks_leave_out_what_is_not_listed():
    one = made(np.array([0.3, 0.2, 0.5]), np.full(3, 1e-6), ["a", "b", Other("other")], ("item",))
    assert [values.tolist() for values in one.ranks()] == [[1, 2, 0], [1, 2, 0]]
    with pytest.raises(InvalidArgument, match="no rank"):
        one.rank(Other("other"))
    with pytest.raises(UnknownItem):
        one.rank("c")


def test_ties_have_all_ranks_that_they_may_have():
    one = made(np.array([0.4, 0.2, 0.2, 0.2]), np.full(4, 1e-3), range(4), ("item",))
    assert [values.tolist() for values in one.ranks()] == [[1, 2, 2, 2], [1, 4, 4, 4]]


@pytest.mark.slow
@pytest.mark.parametrize(("form", "measure"), combined(list(FORMS), ["shares", "counts"]))
def test_differences_and_ratios_are_covered(form, measure):
    theta, found = zipf(60), []
    size = 1 if measure == "shares" else USERS
    for one, two in zip(releases(form, shares="zipf"), releases(form, shares="zipf", turned=True), strict=True):
        asked = [
            (one.difference(0, 3, measure=measure), size * (theta[0] - theta[3])),
            (one.ratio(0, 3, measure=measure), theta[0] / theta[3]),
            (one.ratio(3, 59, measure=measure), theta[3] / theta[59]),
            (one.difference(0, other=two, measure=measure), size * (theta[0] - theta[59])),
            (one.ratio(5, 57, other=two, measure=measure), theta[5] / theta[2]),
        ]
        found.append([within(quantity.lower, quantity.upper, truth) for quantity, truth in asked])
    assert np.mean(found, axis=0).min() >= bar(RUNS)


def test_contrasts_of_what_may_be_nothing():
    one = made(np.array([0.6, 0.4, 0.0]), np.full(3, 0.01), range(3), ("item",))
    some, nothing = one.ratio(0, 2), one.ratio(2, 2, other=one)
    assert some.lower > 10
    assert math.isinf(some.upper)
    assert not nothing.is_known
    assert (nothing.lower, nothing.upper) == (0.0, math.inf)
    lost = made(np.full(3, 1 / 3), np.full(3, 5.0), range(3), ("item",))
    assert (lost.difference(0, 1).lower, lost.difference(0, 1).upper) == (-1.0, 1.0)
    assert one.ratio(0, 1).lower < 1.5 < one.ratio(0, 1).upper


def test_contrasts_that_cannot_be():
    one = made(zipf(3), np.full(3, 0.01), range(3), ("item",))
    for options, words in (
        ({"item": 0}, "to=None: needs to be another item"),
        ({"item": 0, "to": 0}, "to=0: needs to be another item"),
        ({"item": 0, "to": 1, "measure": "rows"}, "measure='rows'"),
        ({"item": 0, "other": 3}, "other=3: needs to be a Release"),
        ({"item": 0, "other": replace(one, weight="users")}, "other: needs the weight"),
    ):
        for ask in (one.difference, one.ratio):
            with pytest.raises(InvalidArgument, match=words):
                ask(**options)
    with pytest.raises(UnknownItem):
        one.ratio(0, 7)


# --- draws


@pytest.mark.slow
@pytest.mark.parametrize(("form", "measure"), combined(list(FORMS), ["shares", "counts"]))
def test_draws_vary_as_the_release_does(form, measure):
    """Central 95% of draws cover the table's own shares and counts; if noise is half of what it is said to be, the
    middle half does so nearly always, and if twice, hardly.
    """
    runs, theta, found = 150, zipf(60), []
    size = 1 if measure == "shares" else USERS
    for number, one in enumerate(releases(form, shares="zipf")[:runs]):
        drawn = one.draws(200, measure=measure, seed=number)
        truth = np.append(size * theta, size * theta[:10].sum())
        vectors = np.column_stack([drawn, drawn[:, :10].sum(axis=1)])
        found.append([within(*np.quantile(vectors, ends, axis=0), truth) for ends in ((0.025, 0.975), (0.25, 0.75))])
    wide, middle = np.mean(found, axis=0)
    assert wide[:5].min() >= bar(runs) - 0.03
    assert wide[-1] >= bar(runs) - 0.03
    assert wide.mean() >= 0.93
    assert 0.35 < middle[:5].mean() < 0.65


def test_draws_are_repeatable_and_whole():
    one = plain(np.random.default_rng(21))
    shares, counts = one.draws(50, seed=1), one.draws(50, measure="counts", seed=1)
    assert shares.shape == counts.shape == (50, 60)
    assert shares.sum(axis=1) == pytest.approx(np.ones(50))
    assert (shares >= 0).all()
    assert np.array_equal(one.draws(50, seed=1), shares)
    assert not np.array_equal(one.draws(50, seed=2), shares)
    assert one.draws(0).shape == (0, 60)
    few = made(np.array([0.7, 0.3, -0.4]), np.full(3, 0.05), range(3), ("item",)).draws(1000, seed=3)
    assert np.quantile(few[:, 2], 0.9) < 0.15
    for options in ({"n": -1}, {"n": 10**8}, {"n": 1, "seed": -1}):
        with pytest.raises(InvalidArgument, match="needs to be a whole number"):
            one.draws(**options)


@pytest.mark.slow
def test_a_million_items_need_no_more_than_a_few_arrays():
    """Pairs of items, or items times draws, would not fit."""
    k = 10**6
    one = replace(plain(np.random.default_rng(22), theta=zipf(1000)), total=None)
    errors = {name: np.full(k, 1e-9) for name in ("standard_errors", "noise_errors")}
    p = zipf(k)
    many = Release(
        items=tuple(range(k)),
        probabilities=p,
        lower=p - 1e-9,
        upper=p + 1e-9,
        confidence=0.95,
        predicted_l1_error=1e-3,
        guarantee=one.guarantee,
        events=one.events,
        mechanism="laplace",
        weight="rows",
        measured=p,
        other_errors=np.zeros(k),
        total=Total(1e9, row_bound=1),
        **errors,
    )
    assert many.counts(simultaneous=True).upper[0] > many.counts().upper[0]
    best, worst = many.ranks()
    assert best[0] == worst[0] == 1
    assert worst[-1] == k
