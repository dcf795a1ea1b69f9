"""Small crowds, counted, and mechanisms run on them."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from crowdgram.audit.caching_engine import CachingEngine
from crowdgram.mechanisms import Estimate, Request
from crowdgram.privacy import EXACT, Adjacency, Guarantee, Spending, check
from crowdgram.releases.registry import make_mechanism
from crowdgram.synth import Crowd
from crowdgram.tables import count_rows, open_rows, read_domain


def table_of(users, items):
    return pa.table({"user": pa.array(users, pa.int64()), "item": pa.array(items, pa.int64())})


def answers(table, items):
    """What the table itself says, by both weights."""
    users, found = table["user"].to_numpy(), table["item"].to_numpy()
    inside = (found >= 0) & (found < items)
    users, found = np.unique(users[inside], return_inverse=True)[1], found[inside]
    rows = np.bincount(found, minlength=items)
    each = np.bincount(found, weights=1 / np.bincount(users)[users], minlength=items)
    return {"rows": rows / rows.sum(), "users": each / each.sum()}


@contextmanager
def counted(table, items):
    """Counts whose engine remembers what it was asked: several runs on one table ask for much of the same."""
    opened = open_rows(table, user="user", item="item")
    with opened.engine as engine:
        caching = replace(opened, engine=CachingEngine(engine.backend))
        yield count_rows(caching, read_domain(range(items), opened.item_type))


MOST_CROWDS = 4
CROWDS = {}
"""Crowds that are counted, each with what closes its engine; the oldest makes room. `databases` closes all."""


@contextmanager
def counted_crowd(crowd):
    """As `counted`, for the tests that follow too: most are cases of one test, on one crowd."""
    assert crowd.seed is not None
    if crowd not in CROWDS:
        if len(CROWDS) == MOST_CROWDS:
            close_crowd(next(iter(CROWDS)))
        opened = ExitStack()
        CROWDS[crowd] = opened, opened.enter_context(counted(crowd.table(), crowd.items))
    yield CROWDS[crowd][1]


def close_crowd(crowd):
    opened, _ = CROWDS.pop(crowd)
    opened.close()


def close_all():
    for crowd in list(CROWDS):
        close_crowd(crowd)


@dataclass(frozen=True)
class Made:
    estimate: Estimate
    spending: Spending

    @property
    def events(self):
        return self.spending.events

    @property
    def guarantee(self):
        return self.spending.guarantee

    def spent_on(self, start):
        return [event for event in self.events if event.purpose.startswith(start)]


def run(
    counts,
    mechanism="auto",
    *,
    weight="rows",
    epsilon=1.0,
    delta=1e-6,
    adjacency="add-remove",
    max_rows_per_user=None,
    prior=None,
    sampler=EXACT,
    **options,
):
    spending = Spending(Guarantee(epsilon, delta, Adjacency.parse(adjacency)), sampler=sampler)
    request = Request(weight, max_rows_per_user, lambda _: None, prior=prior)
    estimate = make_mechanism(mechanism, **options).run(counts, spending.open(), request)
    spending.settled()
    return Made(estimate, spending)


def run_on(crowd, mechanism="auto", **more):
    crowd = Crowd(**crowd) if isinstance(crowd, dict) else crowd
    with counted_crowd(crowd) as counts:
        return run(counts, mechanism, **more)


def assert_valid(made, items):
    """What every release keeps, however little there is to see."""
    estimate = made.estimate
    p = estimate.probabilities
    assert p.shape == (items,)
    assert np.isfinite(p).all()
    assert p.min() >= 0
    assert abs(p.sum() - 1) < 1e-9
    assert (estimate.lower >= 0).all()
    assert (estimate.lower <= p).all()
    assert (p <= estimate.upper).all()
    assert (estimate.upper <= 1).all()
    assert np.isfinite(estimate.standard_errors).all()
    assert (estimate.standard_errors >= 0).all()  # 0 for a domain of one item
    assert 0 <= estimate.predicted_l1_error <= 2
    if estimate.sampling_errors is not None:
        assert np.isfinite(estimate.sampling_errors).all()
        assert (estimate.sampling_errors >= 0).all()
    check(made.events, made.guarantee)
