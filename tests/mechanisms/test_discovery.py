"""Finding items: what enough users have comes out, what one user alone has does not, and nothing else tells of it."""

from __future__ import annotations

import math
from functools import partial
from itertools import product
from statistics import NormalDist

import numpy as np
import pyarrow as pa
import pytest

from crowdgram.errors import InvalidArgument
from crowdgram.mechanisms import Discover, open_search, plan_discovery, rehearse
from crowdgram.mechanisms.discovery import (
    MOST_ITEMS,
    ROUNDS,
    _added,
    _gains,
    chances_of,
    discover,
    round_sigma,
    search_sets,
    thresholds_for,
    users_needed,
)
from crowdgram.privacy import EXACT, Adjacency, GaussianEvent, Guarantee, Spending, ThresholdEvent
from crowdgram.privacy.threshold import lone_threshold
from crowdgram.tables import GAIN, UNIT, item_sets, largest_part, open_rows, tally_rows

from ..samplers import Scripted, gaussian_for

GUARANTEE = Guarantee(1.0, 1e-6)


def found(pairs, guarantee=GUARANTEE, share=0.5, sampler=EXACT, find=discover):
    users, items = zip(*pairs, strict=True) if pairs else ((), ())
    table = pa.table({"u": pa.array(users, pa.int64()), "i": pa.array(items, pa.int64())})
    rows = open_rows(table, user="u", item="i")
    spending = Spending(guarantee, sampler=sampler)
    with rows.engine:
        plan = plan_discovery(guarantee, share, "gaussian")
        items, _ = find(tally_rows(rows), open_search(spending.open(), plan), plan)
    spending.settled()
    return items, spending.events


def test_what_many_have_is_found_and_what_one_has_is_not():
    pairs = [(user, item) for user in range(400) for item in range(4)] + [(user, 1000 + user) for user in range(400)]
    items, _ = found(pairs)
    assert items == [0, 1, 2, 3]


@pytest.mark.slow
def test_it_finds_more_than_one_round_would():
    """Every user has 60 items that all have and 20 of 400 others: rounds turn to these when the first are in."""
    rng = np.random.default_rng(5)
    pairs = [(user, item) for user in range(4000) for item in range(60)]
    pairs += [(user, 100 + int(item)) for user in range(4000) for item in rng.choice(400, 20, replace=False)]
    items, events = found(pairs, share=0.999)
    # Each of the 400 has about 200 users. In one round they would give it 200/sqrt(80) = 22.4, and the threshold
    # (above 27) would be passed by less than a fifth of them. Here all pass but a few.
    mu = math.sqrt(sum((event.sensitivity / event.sigma) ** 2 for event in events if isinstance(event, GaussianEvent)))
    assert 6.1 / mu > 26
    assert len(items) > 350  # 408 on average, with a standard deviation of 6


def test_items_are_in_the_order_of_their_values_whatever_the_rows():
    pairs = [(user, item) for item in (7, -3, 2**60, 5) for user in range(300)]
    for order in (pairs, pairs[::-1]):
        assert found(order)[0] == [-3, 5, 7, 2**60]


@pytest.mark.slow
@pytest.mark.parametrize("adjacency", list(Adjacency))
@pytest.mark.parametrize("most", [1, 6])
def test_lone_items_pass_as_rarely_as_was_paid_for(adjacency, most):
    """6,000 users, each alone with `most` items: the share of them who are seen is at most the threshold's delta (its
    half under replace), but for six standard errors: false alarms below 1e-9.
    """
    guarantee = Guarantee(1.0, 0.6, adjacency)
    users = 6000 // most
    pairs = [(i // most, i) for i in range(users * most)]
    items, events = found(pairs, guarantee, find=partial(discover, most_items=most))
    threshold = next(event for event in events if isinstance(event, ThresholdEvent))
    chance = threshold.delta * (0.5 if adjacency is Adjacency.REPLACE else 1.0)
    seen = len({item // most for item in items}) / users
    error = math.sqrt(chance * (1 - chance) / users)
    assert seen <= chance + 6 * error
    # Its power: had the threshold been a standard deviation lower, the alarm would have gone off.
    assert seen > 0.2 * chance


@pytest.mark.slow
@pytest.mark.parametrize("broken", ["a deviation lower", "the whole chance in each round"])
def test_the_check_above_notices_thresholds_that_are_too_low(broken):
    def low(rows, search, plan):
        sigma = round_sigma(search, plan)
        if broken == "a deviation lower":
            right = thresholds_for(sigma, search.chance, 1)
            thresholds = [int(one - math.sqrt(rounds) * sigma) for rounds, one in enumerate(right, start=1)]
        else:
            thresholds = [lone_threshold([largest_part(1)], rounds, sigma, 0.15) for rounds in range(1, ROUNDS + 1)]
        return search_sets(item_sets(rows, search.salt(), 1), search, plan, thresholds)

    items, _ = found([(i, i) for i in range(6000)], Guarantee(1.0, 0.6), find=low)
    assert len(items) / 6000 > 0.15 + 6 * math.sqrt(0.15 * 0.85 / 6000)


@pytest.mark.parametrize("chance", [0.02, 2.5e-7, 1e-50])
def test_rounds_share_the_chance_of_the_threshold(chance):
    """Their parts sum to it, up to the rounding that the threshold's own millionth of delta allows for."""
    parts = chances_of(chance)
    assert len(parts) == ROUNDS
    assert chance * 0.999 < math.fsum(parts) < chance * (1 + 1e-9)
    tops = [largest_part(size) for size in range(1, MOST_ITEMS + 1)]
    expected = [lone_threshold(tops, rounds, 1e6, part) for rounds, part in enumerate(parts, start=1)]
    assert thresholds_for(1e6, chance) == expected


def test_the_least_delta_serves_every_round():
    for delta in (1e-56, 5.7e-58):
        guarantee = Guarantee(1.0, delta, Adjacency.REPLACE)
        plan = plan_discovery(guarantee, None, "gaussian")
        rehearse(Spending(guarantee).open(), plan)
        assert users_needed(open_search(Spending(guarantee).open(), plan), plan) > 0
    with pytest.raises(InvalidArgument, match="too small"):
        plan_discovery(Guarantee(1.0, 5.5e-58), None, "gaussian")


# --- items that many have


def test_what_is_found_is_not_lost_to_later_noise():
    """Noise of the first round is 0, and that of all others takes off ten thousand deviations."""
    rounds = iter(range(ROUNDS))

    def sinking(sums, sigma):
        return np.asarray(sums) - (0 if next(rounds) == 0 else int(10_000 * sigma))

    pairs = [(user, item) for user in range(1500) for item in range(10)] + [(0, 99)]
    items, _ = found(pairs, share=0.3, sampler=Scripted(gaussian_by=sinking))
    assert items == list(range(10))


@pytest.mark.slow
def test_no_item_of_many_users_is_lost():
    """40,000 items of 6 to 12 times the threshold: were one in 10,000 lost, four would be, and none is with a chance of
    2%. By the bound of docs/proofs/discovery.md, one of them is lost with a chance of 1e-9.
    """
    guarantee = Guarantee(5.0, 1e-6)
    plan = plan_discovery(guarantee, 0.999, "gaussian")
    needed = users_needed(open_search(Spending(guarantee).open(), plan), plan)
    sizes = np.repeat([math.ceil(times * needed) for times in (6, 8, 10, 12)], 10_000)
    items = np.repeat(np.arange(len(sizes)), sizes)
    rows = open_rows(pa.table({"u": np.arange(len(items)), "i": items}), user="u", item="i")
    with rows.engine:
        seen, _ = discover(tally_rows(rows), open_search(Spending(guarantee).open(), plan), plan)
    assert seen == list(range(len(sizes)))


@pytest.mark.parametrize("adjacency", list(Adjacency))
@pytest.mark.parametrize("delta", [0.09, 1e-3, 1e-6, 1e-12, 1e-30])
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 10.0])
def test_ten_times_the_threshold_is_found_in_the_first_round(epsilon, delta, adjacency):
    """But for a chance of 1e-20: what an item has of the noise of one round to spare."""
    guarantee = Guarantee(epsilon, delta, adjacency)
    plan = plan_discovery(guarantee, 0.3, "gaussian")
    search = open_search(Spending(guarantee).open(), plan)
    sigma = round_sigma(search, plan)
    thresholds = thresholds_for(sigma, search.chance)
    assert NormalDist().cdf((thresholds[0] - 10 * thresholds[-1] / ROUNDS) / sigma) < 1e-20


def pass_rates(users, guarantee, share, sampler):
    """How often an item of `users` users, who have no other, passes: 3,000 such items, each a trial of its own."""
    pairs = [(item * 1000 + user, item) for item in range(3000) for user in range(users)]
    return len(found(pairs, guarantee, share, sampler, partial(discover, most_items=1))[0]) / 3000


@pytest.mark.slow
@pytest.mark.parametrize("broken", [False, True])
def test_neighbours_look_alike(broken):
    """One user more moves the chance that an item passes from Phi(x) to at most Phi(x + mu).

    mu = 1.01 here; the two rates are known to 0.03 each in x, so six standard errors allow 0.25 more.
    """
    sampler = Scripted(gaussian_by=gaussian_for(1 / 2)) if broken else EXACT
    guarantee = Guarantee(5.0, 1e-6)
    mu = plan_discovery(guarantee, 0.999, "gaussian").mu
    users = 5 if broken else 6  # where both rates are far from 0 and 1
    few, many = (pass_rates(n, guarantee, 0.999, sampler) for n in (users, users + 1))
    assert 0.005 < few < many < 0.98
    moved = NormalDist().inv_cdf(many) - NormalDist().inv_cdf(few)
    assert (moved <= mu + 0.25) is not broken


@pytest.mark.slow
def test_events_tell_nothing_of_the_table():
    tables = [[], [(1, 1)], [(user, item) for user in range(300) for item in range(30)]]
    events = [found(pairs)[1] for pairs in tables]
    assert events[0] == events[1] == events[2]
    trial = rehearse(Spending(GUARANTEE).open(), plan_discovery(GUARANTEE, 0.5, "gaussian"))
    assert trial.events == events[0]
    assert [type(event) for event in events[0]] == [ThresholdEvent, *[GaussianEvent] * ROUNDS]


@pytest.mark.parametrize(
    ("finish", "adjacency", "share"),
    list(product(["pure", "gaussian", "either"], list(Adjacency), [0.001, 0.3, 0.999])),
)
def test_a_plan_spends_its_share(finish, adjacency, share):
    guarantee = Guarantee(1.0, 1e-6, adjacency)
    plan = plan_discovery(guarantee, share, finish)
    spending = Spending(guarantee)
    trial = rehearse(spending.open(), plan)
    spending.settled()
    spent = sum((event.sensitivity / event.sigma) ** 2 for event in spending.events[1:])
    assert spent == pytest.approx(plan.mu**2, rel=1e-6)
    if finish == "gaussian":
        left = trial.looks().remaining_mu(10)
        assert plan.mu**2 == pytest.approx(share * (left**2 + plan.mu**2), rel=1e-6)
    assert plan.threshold_delta + plan.pure_delta <= guarantee.delta


@pytest.mark.parametrize("share", [0, 1, 0.0001, -1, 2, math.nan, math.inf, True, "0.1"])
def test_shares_that_are_none(share):
    with pytest.raises(InvalidArgument, match=r"^share="):
        Discover(share)


@pytest.mark.parametrize("delta", [0.0, 1e-100])
def test_a_delta_that_buys_no_threshold(delta):
    with pytest.raises(InvalidArgument, match=r"delta.*1e-6"):
        plan_discovery(Guarantee(1.0, delta), None, "gaussian")


def test_evidence_is_exact_beyond_64_bits():
    ends = np.array([2**63 - 1, -(2**63), 5], dtype=np.int64)
    once = _added(np.array([1, 1, 1]), ends)
    assert once.tolist() == [2**63, 1 - 2**63, 6]
    assert _added(once, np.array([1, 1, 1])).tolist() == [2**63 + 1, 2 - 2**63, 7]
    small = _added(np.array([1]), np.array([2**58 - 1]))
    assert small.dtype == np.int64
    assert small.tolist() == [2**58]


def test_gains_follow_what_items_need():
    sigma, threshold = 10.0 * UNIT, ROUNDS * 27 * UNIT
    weights = np.array([-50.0, 1.0, 18.0, 23.0, 45.0, 60.0])  # after four rounds; their deviation is 5
    gains, hopeful = _gains((weights * 4 * UNIT).astype(np.int64), threshold, sigma, 4)
    assert hopeful.tolist() == [False, False, True, True, True, True]
    assert GAIN // 4 < gains[2] < GAIN  # unlikely to pass
    assert gains[3] == GAIN  # needs all that it can get
    assert 1 < gains[4] < GAIN // 4  # needs little
    assert gains[5] == 1  # needs nothing; but it has not passed, and is not given up


def test_gains_need_no_weight_to_be_seen():
    gains, hopeful = _gains(np.array([0, -UNIT]), 27 * UNIT, 1e4 * UNIT, 1)
    assert hopeful.all()
    assert (gains > 0.99 * GAIN).all()
