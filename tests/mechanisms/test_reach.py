"""Reach: the choice of bound and noise, what intervals allow for, and how often they hold."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowdgram.errors import InvalidArgument
from crowdgram.mechanisms import ItemUsers, Request
from crowdgram.mechanisms.reach_estimate import Books, number_of_users
from crowdgram.privacy import Adjacency, GaussianEvent, Guarantee, LaplaceEvent, Spending
from crowdgram.tables import FAR, UNIT, ItemReach, find_presence, open_rows, read_domain

from ..thorough import examples

REQUEST = Request("users", None, lambda _: None)


class Silent:
    """A sampler that adds nothing: what is chosen and computed then depends on the table alone."""

    def laplace(self, values, *_):
        return np.asarray(values)

    gaussian = laplace

    def salt(self):
        return "salt"


class Remembered:
    """A view that asks its engine each question once."""

    def __init__(self, view):
        self.view, self.items, self.known = view, view.items, {}

    def sum(self, statistic):
        return self.known.setdefault(repr(statistic), None) or self._ask(statistic)

    def _ask(self, statistic):
        self.known[repr(statistic)] = self.view.sum(statistic)
        return self.known[repr(statistic)]


def presence_of(sets, items):
    """Users with these items."""
    pairs = [(user, item) for user, held in enumerate(sets) for item in held]
    table = pa.table({"u": [user for user, _ in pairs], "i": [item for _, item in pairs]})
    rows = open_rows(table, user="u", item="i")
    return find_presence(rows, read_domain(range(items), rows.item_type))


def run(presence, epsilon=1.0, delta=1e-6, adjacency=Adjacency.ADD_REMOVE, mechanism=None, **more):
    spending = Spending(Guarantee(epsilon, delta, adjacency), **more)
    made = (mechanism or ItemUsers()).run(presence, spending.open(), REQUEST)
    spending.settled()
    return made, spending.events


def crowd(users, of_user, items, seed=1):
    """Users with so many items each, of which low numbers are likelier."""
    rng = np.random.default_rng(seed)
    weights = 1 / np.arange(1, items + 1)
    sizes = [of_user(rng) for _ in range(users)]
    return [rng.choice(items, size=size, replace=False, p=weights / weights.sum()) for size in sizes]


def reach_of(sets, items):
    return np.bincount(np.concatenate(sets), minlength=items)


def test_the_bound_is_what_users_have_and_counts_are_theirs():
    sets = crowd(3000, lambda _: 3, 40)
    presence = presence_of(sets, 40)
    with presence.engine:
        made, events = run(presence, sampler=Silent())
    assert made.parameters["max_items_per_user"] == 3
    assert np.abs(made.counts - reach_of(sets, 40)).max() < 15  # shrinkage allows for noise that is not there
    assert made.users[0] == pytest.approx(3000, abs=1e-3)
    assert made.left_out[0] == pytest.approx(0, abs=1e-3)
    assert events[0].purpose == "users by items, first look"


@pytest.mark.slow
@pytest.mark.parametrize(("delta", "size", "kind"), [(1e-6, 1, "l"), (1e-6, 40, "g"), (0.0, 40, "l")])
def test_the_noise_is_chosen_by_what_users_have(delta, size, kind):
    """Laplace noise grows as the bound, Gaussian noise as its root; without a delta there is one only."""
    presence = presence_of(crowd(2000, lambda _: size, 60), 60)
    with presence.engine:
        made, events = run(presence, delta=delta, sampler=Silent())
    assert made.parameters["noise"].startswith(kind)
    assert isinstance(events[-1], LaplaceEvent if kind == "l" else GaussianEvent)


@pytest.mark.slow
@pytest.mark.parametrize("adjacency", list(Adjacency))
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_what_a_given_bound_leaves_out_is_measured(adjacency, delta):
    """Half of the users have 20 items, which a bound of 5 scales down: to a quarter in l1, and to a half in l2."""
    sets = crowd(1000, lambda rng: int(rng.integers(0, 2)) * 18 + 2, 30, seed=2)
    heavy = sum(len(one) > 5 for one in sets)
    presence = presence_of(sets, 30)
    with presence.engine:
        made, events = run(presence, 1.0, delta, adjacency, ItemUsers(5), sampler=Silent())
    lacks = 0.75 if made.parameters["noise"] == "laplace" else 0.5
    assert len(events) == 1  # no look: the bound is given
    assert made.left_out[0] == pytest.approx(lacks * heavy, rel=1e-6)
    assert made.users[0] == pytest.approx(1000, rel=1e-6)
    truth = reach_of(sets, 30)
    assert ((made.lower <= truth) & (truth <= made.upper)).all()


sets_of_items = st.lists(st.sets(st.integers(0, 11), min_size=1), min_size=1, max_size=12)


@pytest.mark.slow
@examples(100, 4000)
@given(sets_of_items, st.integers(1, 11), st.sampled_from(["l1", "l2"]))
def test_no_item_lacks_more_or_less_than_the_books_allow(sets, bound, norm):
    """For any table: what the bound takes off each item lies between the two limits."""
    weights = [min(1.0, bound / len(one)) ** (1.0 if norm == "l1" else 0.5) for one in sets]
    far = sum(1 - w for w, one in zip(weights, sets, strict=True) if len(one) > FAR * bound)
    books = Books(sum(weights), sum(1 - w for w in weights), far, 0.0)
    sums = np.array([sum(w for w, one in zip(weights, sets, strict=True) if item in one) for item in range(12)])
    lacking = np.array([sum(item in one for one in sets) for item in range(12)]) - sums
    least, most = books.bias(sums, sums, FAR if norm == "l1" else math.sqrt(FAR))
    assert (least <= lacking + 1e-9).all()
    assert (lacking <= most + 1e-9).all()


def test_the_limits_are_reached():
    """By an item that all users have, and by one that users far above the bound have."""
    books = Books(kept=60.0, missing=40.0, far=0.0, error=0.0)
    least, most = books.bias(np.array([60.0, 0.0]), np.array([60.0, 0.0]), 4.0)
    assert least.tolist() == [40.0, 0.0]
    assert most.tolist() == [40.0, 0.0]
    assert Books(60.0, 40.0, 7.0, 0.0).bias(np.zeros(1), np.zeros(1), 4.0)[1].tolist() == [7.0]


@pytest.mark.slow
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_intervals_hold_by_rank(delta):
    """Of 25 runs: the first item, the next four, the rest, and the number of users, of whom some have far more items
    than others. At 95%, fewer than 16 of 25 has a chance below 1e-6.
    """
    sets = crowd(3000, lambda rng: int(min(rng.zipf(1.6), 80)), 100, seed=3)
    truth = reach_of(sets, 100)
    order = np.argsort(-truth)
    presence, held = presence_of(sets, 100), []
    with presence.engine:
        remembered = Remembered(presence)
        for _ in range(25):
            made, _ = run(remembered, delta=delta)
            inside = ((made.lower <= truth) & (truth <= made.upper))[order]
            held.append([inside[0], inside[1:5].mean(), inside[5:].mean(), made.users[1] <= 3000 <= made.users[2]])
            assert (made.lower <= made.counts).all()
            assert (made.counts <= made.upper).all()
    assert (np.mean(held, axis=0) > 15 / 25).all()


def test_the_number_of_users_comes_from_the_quieter_way():
    """In l1 everybody adds UNIT in all, which tells more than the books do if items are few."""
    sums = ItemReach(2, "l1", UNIT // 50)
    few, many = np.zeros(4 + 10), np.zeros(4 + 10**5)
    for values in (few, many):
        values[:4] = np.array([0.9, 0.1, 0.0, 0.0]) * sums.books * 1000
        values[4] = 1000 * UNIT - values[:4].sum()
    by_all, by_books = (number_of_users(values, sums, UNIT * 1.0) for values in (few, many))
    assert by_all[0] == pytest.approx(1000)
    assert by_books[0] == pytest.approx(1000)
    assert by_all[2] - by_all[1] < by_books[2] - by_books[1] < 2 * 2.1 * math.sqrt(10**5)


def test_an_empty_table_and_one_item():
    for sets, items in (([], 5), ([{0}, {0}], 1)):
        pairs = pa.table({"u": pa.array(range(len(sets)), pa.int64()), "i": pa.array([0] * len(sets), pa.int64())})
        rows = open_rows(pairs, user="u", item="i")
        with rows.engine:
            made, _ = run(find_presence(rows, read_domain(range(items), rows.item_type)))
        assert len(made.counts) == items
        assert np.isfinite(made.upper).all()
        assert made.users[1] <= made.users[0] <= made.users[2]


@pytest.mark.parametrize("given", [0, -1, 1.5, True, "3", 2**30 + 1])
def test_a_bound_is_a_whole_number(given):
    with pytest.raises(InvalidArgument, match="max_items_per_user="):
        ItemUsers(given)
