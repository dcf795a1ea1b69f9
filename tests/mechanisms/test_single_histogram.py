"""Items of users who have few: what the look sees, which way is chosen, and what one histogram makes of it."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import crowdgram
from crowdgram.mechanisms import FoundByHistogram, find_items, open_search
from crowdgram.mechanisms.discovery import ROUNDS, look_reserves
from crowdgram.mechanisms.noisy_bins import Bins
from crowdgram.mechanisms.pilot_queries import RowHistogram
from crowdgram.mechanisms.request import Request
from crowdgram.mechanisms.single_histogram import (
    FURTHEST,
    ItemsPerUser,
    choose_row_weights,
    find_by_histogram,
    query_items_per_user,
)
from crowdgram.privacy import EXACT, Adjacency, GaussianEvent, Guarantee, LaplaceEvent, Spending, ThresholdEvent
from crowdgram.releases.registry import as_mechanism
from crowdgram.tables import UNIT, open_rows, tally_rows, user_totals

from ..samplers import Scripted, exact, laplace_for

USERS = Request("users", None, lambda _: None)
ROWS = replace(USERS, weight="rows")
GUARANTEE = Guarantee(1.0, 1e-6)
ONE_ITEM = ItemsPerUser(users=10_000.0, root=1.0)


def tallied(pairs):
    users, items = zip(*pairs, strict=True) if len(pairs) else ((), ())
    return tally_rows(open_rows(pa.table({"u": list(users), "i": list(items)}), user="u", item="i"))


def crowd(users, items_each, times=1, kinds=40):
    """Every user has so many items, each `times` times; all of them have many users."""
    return [(user, (user + 7 * j) % kinds) for user in range(users) for j in range(items_each) for _ in range(times)]


def looking(sampler=EXACT):
    return Spending(GUARANTEE, sampler=sampler).open().looks(look_reserves(GUARANTEE))


# --- the look


@pytest.mark.parametrize("items", [1, 3, FURTHEST, 30])
def test_the_look_sees_the_mean_root(items):
    rows = tallied(crowd(900, items) + [(10_000 + user, 1) for user in range(300)])
    spending = looking(Scripted(laplace_by=exact))
    with rows.engine:
        seen = query_items_per_user(user_totals(rows), spending)
    assert seen.users == pytest.approx(1200, rel=1e-6)
    assert seen.root == pytest.approx(0.75 * math.sqrt(min(items, FURTHEST)) + 0.25, rel=1e-6)
    assert {event.sensitivity for event in spending.events} == {UNIT}


def test_a_second_look_is_for_small_crowds_and_tiny_ones_are_not_seen():
    for users, looks in ((20_000, 1), (600, 2), (3, 2)):
        rows, spending = tallied(crowd(users, 1)), looking()
        with rows.engine:
            seen = query_items_per_user(user_totals(rows), spending)
        assert len(spending.events) == looks
        # The number of users has a deviation of 200 after one look and 89 after both; the tails are Laplace noise's.
        assert seen is None or seen.users == pytest.approx(users, abs=18 * 200)
        assert seen is not None or users < 3000


def test_every_user_adds_as_much_to_a_look():
    """Two numbers that sum to UNIT, whatever a user has: the sensitivity, by all sizes there are."""
    sums = []
    sampler = Scripted(laplace_by=lambda values, _: sums.append(values.tolist()) or np.asarray(values))
    for items in (1, 2, 5, FURTHEST - 1, FURTHEST, FURTHEST + 9):
        rows = tallied([(1, item) for item in range(items)])
        with rows.engine:
            query_items_per_user(user_totals(rows), looking(sampler))
    assert len(sums) == 12
    assert all(sum(pair) == UNIT and min(pair) >= 0 for pair in sums)


# --- the choice


def chosen(pairs, request=USERS, mechanism="auto", guarantee=GUARANTEE, whole=True):
    way, plan = as_mechanism(mechanism).search(guarantee, None)
    rows, spending = tallied(pairs), Spending(guarantee)
    with rows.engine:
        found = find_items(rows, spending.open(), plan, way, request, whole=whole)
    spending.settled()
    return found, spending


@pytest.mark.slow
@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_users_with_one_item_get_a_histogram_and_users_with_many_get_rounds(adjacency):
    """At 30,000 users the look is off by 0.01 (replace: 0.02) in the root, and the limit is 1.8 (replace: 1.25)."""
    guarantee = Guarantee(1.0, 1e-6, adjacency)
    for mechanism in ("auto", "laplace"):
        one, spending = chosen(crowd(30_000, 1), mechanism=mechanism, guarantee=guarantee)
        assert isinstance(one, FoundByHistogram)
        assert one.items == list(range(40))  # 750 users each; 17 are needed, or 35
        assert not any(isinstance(event, GaussianEvent) for event in spending.events)
        many, spending = chosen(crowd(6000, 14), mechanism=mechanism, guarantee=guarantee)
        assert not isinstance(many, FoundByHistogram)
        assert sum(isinstance(event, GaussianEvent) for event in spending.events) == ROUNDS


@pytest.mark.slow
def test_rows_that_differ_much_get_rounds_and_are_looked_at_once():
    heavy = [(user, user % 40) for user in range(9000) for _ in range(2 ** (user % 9))]
    found, spending = chosen(heavy, ROWS)
    assert not isinstance(found, FoundByHistogram)
    assert found.seen_rows is not None
    alike, _ = chosen(crowd(6000, 1, times=30), ROWS)
    assert isinstance(alike, FoundByHistogram)
    purposes = [event.purpose for event in spending.events]
    assert len(set(purposes)) == len(purposes)
    made = crowdgram.release(
        pa.table({"u": [u for u, _ in heavy], "i": [i for _, i in heavy]}), user="u", item="i", epsilon=1.0, delta=1e-6
    )
    looks = [event.purpose for event in made.events if event.purpose.startswith("users by rows, first")]
    assert len(looks) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("request_", "mechanism", "whole"),
    [(replace(ROWS, max_rows_per_user=5), "auto", True), (USERS, "auto", False), (USERS, "adaptive", True)],
)
def test_where_one_histogram_cannot_serve_there_is_no_look(request_, mechanism, whole):
    found, spending = chosen(crowd(3000, 1), request_, mechanism, whole=whole)
    assert not isinstance(found, FoundByHistogram)
    assert not any(event.purpose.startswith("items of users") for event in spending.events)


def test_a_row_cap_lets_users_count_as_their_rows_do():
    edges = RowHistogram.edges()

    def seen(numbers):
        users = np.zeros(len(edges))
        users[[edges.index(edge) for edge in numbers]] = list(numbers.values())
        return RowHistogram.of(Bins(users, np.ones(len(edges)), np.array(edges, dtype=float), laplace=True))

    assert choose_row_weights(seen({1: 5000.0})).row_cap == 1
    thirds = choose_row_weights(seen({3: 500.0, 4: 500.0}))
    assert thirds.row_cap == 4
    assert thirds.mass == pytest.approx(7 / 8, abs=0.05)
    assert thirds.bias < 0.05
    assert choose_row_weights(seen({1: 5000.0, 16: 2000.0, 256: 500.0, 4096: 100.0})).bias > 0.08
    unseen = choose_row_weights(seen({1: 1.0}))
    assert unseen.row_cap == 1
    assert unseen.unseen is not None


# --- the histogram


def histogram(pairs, look=ONE_ITEM, guarantee=GUARANTEE, sampler=EXACT, raised=1.0):
    """raised: what the chance that the threshold may fail with is multiplied by."""
    rows = tallied(pairs)
    with rows.engine:
        opening = Spending(guarantee, sampler=sampler).open()
        search = opening.search("threshold for items", delta=0.25 * guarantee.delta, rounds=1, mu=0.1)
        search.chance *= raised
        return find_by_histogram(rows, search, look, None)


@pytest.mark.slow
@pytest.mark.parametrize("adjacency", list(Adjacency))
@pytest.mark.parametrize(("items", "broken"), [(1, False), (2, False), (9, False), (1, True)])
def test_lone_items_pass_as_rarely_as_was_paid_for(adjacency, items, broken):
    """6,000 users, each alone with their items: the share of them who are seen, but for six standard errors (false
    alarms below 1e-9). Of nine items of a user only four are held: the others must not pass at all. A threshold that is
    lower by the noise's scale, which is one for e times the chance, is noticed.
    """
    guarantee = Guarantee(1.0, 0.6 if broken else 0.8, adjacency)
    users, look = 6000, ItemsPerUser(10_000.0, 1.0 if items <= 2 else 1.5)
    pairs = [(i // items, i) for i in range(users * items)]
    found, spending = histogram(pairs, look, guarantee, raised=math.e if broken else 1.0)
    chance = spending.events[0].delta * (0.5 if adjacency is Adjacency.REPLACE else 1.0)
    seen = len({item // items for item in found.items}) / users
    allowed = chance + 6 * math.sqrt(chance * (1 - chance) / users)
    if broken:
        assert seen > allowed
    else:
        assert 0.3 * chance < seen <= allowed


@pytest.mark.slow
@pytest.mark.parametrize("broken", [False, True])
def test_neighbours_look_alike(broken):
    """One user more raises the chance that an item passes by at most a factor e^epsilon, and lowers that of failing.

    4,000 items, each a trial of its own: the rates are 0.12 and 0.32, and 6 standard errors of their logs below 0.3.
    """
    sampler = Scripted(laplace_by=laplace_for(1 / 3)) if broken else EXACT
    guarantee, rates = Guarantee(1.0, 0.04), []
    for users in (4, 5):
        pairs = [(item * 100 + user, item) for item in range(4000) for user in range(users)]
        rates.append(len(histogram(pairs, guarantee=guarantee, sampler=sampler)[0].items) / 4000)
    few, many = rates
    assert 0.001 < few < many < 0.95
    alike = math.log(many / few) <= 1.0 + 0.5 and math.log((1 - few) / (1 - many)) <= 1.0 + 0.5
    assert alike is not broken


def test_events_tell_nothing_of_the_table():
    tables = [[], [(1, 1)], crowd(300, 1)]
    events = [histogram(pairs)[1].events for pairs in tables]
    assert events[0] == events[1] == events[2]
    assert [type(event) for event in events[0]] == [ThresholdEvent, LaplaceEvent]
    assert events[0][1].dimension == 2**40


@pytest.mark.slow
def test_what_is_drawn_lies_within_the_plan():
    for request in (USERS, ROWS):
        for mechanism in ("auto", "laplace"):
            made = crowdgram.release(
                pa.table({"u": list(range(4000)), "i": [user % 9 for user in range(4000)]}),
                user="u",
                item="i",
                epsilon=1.0,
                delta=1e-6,
                weight=request.weight,
                mechanism=mechanism,
            )
            if made.parameters.get("branch") != "histogram":  # noise may say so, by rows; rarely
                assert request is ROWS
                continue
            cost = as_mechanism(mechanism).plan(GUARANTEE, request, None).settled(made.events, GUARANTEE)
            assert cost.pure <= 1.0
            assert cost.mu_squared == 0
            assert cost.outright == 0.25e-6


# --- the estimate


def one_item_table(users, kinds, rng):
    shares = 1.0 / np.arange(1, kinds + 1)
    return rng.choice(kinds, users, p=shares / shares.sum())


@pytest.mark.slow
@pytest.mark.parametrize("weight", ["rows", "users"])
def test_a_table_of_one_item_a_user_is_close_to_what_plain_counting_gives(weight):
    """Which has a threshold of 14.1 users and noise of 1 an item. Ours is 16 to 17; Gaussian rounds needed 49."""
    items = one_item_table(20_000, 3000, np.random.default_rng(3))
    held = np.bincount(items, minlength=3000)
    made = crowdgram.release(
        pa.table({"u": np.arange(20_000), "i": items}), user="u", item="i", epsilon=1.0, delta=1e-6, weight=weight
    )
    assert made.parameters["branch"] == "histogram"
    assert "discovery_share" not in made.parameters
    truth = held[np.array(made.items[:-1], dtype=np.int64)] / 20_000
    truth = np.append(truth, 1 - truth.sum())
    # All of 27 users or more pass but for a chance of e^-9 each; 200 items have as many.
    assert (held >= 27).sum() * 0.98 < len(made) - 1 < (held >= 10).sum()
    assert np.abs(made.probabilities - truth).sum() < 0.05  # 0.012 on average
    assert made.predicted_l1_error < 0.05
    covered = (made.lower <= truth) & (truth <= made.upper)
    assert covered.mean() > 0.85  # 0.95 at least are expected, of some 220
    assert made.sampling_errors is not None


def test_intervals_of_items_that_barely_passed_begin_at_zero():
    """Items of 10 users pass one time in a thousand, by luck alone; their intervals must still hold the 10."""
    pairs = [(item * 100 + user, item) for item in range(3000) for user in range(6)]
    pairs += [(10**7 + user, 10**6) for user in range(3000)]
    users, items = zip(*pairs, strict=True)
    made = crowdgram.release(
        pa.table({"u": users, "i": items}), user="u", item="i", epsilon=1.0, delta=1e-3, weight="users"
    )
    truth = np.array([(6 if item < 10**6 else 3000) / 21_000 for item in made.items[:-1]])
    assert len(truth) > 20
    covered = (made.lower[:-1] <= truth) & (truth <= made.upper[:-1])
    assert covered.mean() > 0.8  # 0.95 of some 150


def test_groups_are_found_and_measured_by_one_histogram():
    users = np.arange(9000)
    source = pa.table(
        {"u": users, "g": [("a", "b", "c")[u % 3] for u in users], "i": [u % 2 if u % 10 else u for u in users]}
    )
    made = crowdgram.release(source, user="u", item="i", by="g", groups=["b", "a"], epsilon=1.0, delta=1e-6)
    assert made.joint.parameters["branch"] == "histogram"
    assert list(made.groups) == ["b", "a"]
    for group in ("a", "b"):
        found = made[group]
        assert found.items[:2] == (0, 1)
        assert found.probability(found.other) == pytest.approx(0.1, abs=0.05)
        assert found.probability(0) + found.probability(1) == pytest.approx(0.9, abs=0.05)


def test_a_threshold_is_recorded_before_all_looks():
    _, spending = chosen(crowd(3000, 1), ROWS)
    assert isinstance(spending.events[0], ThresholdEvent)
    plan = as_mechanism("auto").search(GUARANTEE, None)[1]
    assert open_search(Spending(GUARANTEE).open(), plan).chance == plan.threshold_delta
