"""Public arguments: each set of them is refused before the table is read, or is released. Nothing in between."""

from __future__ import annotations

import warnings

import numpy as np
import pyarrow as pa
import pytest

import crowdgram
from crowdgram.errors import InvalidArgument
from crowdgram.mechanisms import Discover, Discovering
from crowdgram.privacy import Adjacency, Guarantee
from crowdgram.releases.promises import MIN_MU, USUAL_DELTA, USUAL_EPSILON, mu_after_all_looks, promise_of
from crowdgram.releases.query import Query
from crowdgram.releases.registry import MECHANISMS, as_mechanism

from ..thorough import combined

ITEMS = [f"i{number}" for number in range(4)]
TABLE = pa.table(
    {
        "who": np.repeat(np.arange(40), 5),
        "what": [ITEMS[number] for number in np.random.default_rng(0).integers(0, 4, 200)],
    }
)
FOUND = [name for name, kind in MECHANISMS.items() if issubclass(kind, Discovering)]
FOUND_CASES = [
    # epsilon, delta, share
    (20.0, 1e-6, 0.999),
    (0.01, 1e-12, 0.001),
    (0.001, 1e-15, 0.9),
    (0.01, 1e-12, 0.97),
    (1.0, 1e-6, 0.999),
    (1.0, 1e-6, 0.001),
    (1000.0, 0.09, 0.999),
    (5000.0, 1e-6, 0.3),
    (0.5, 1e-30, 0.999),
]
KNOWN_CASES = [(0.001, 0.0), (0.001, 1e-12), (1.0, 1e-300), (1e4, 0.0), (1e4, 0.09), (1500.0, 1e-6), (20.0, 0.0)]


def outcome(**arguments):
    """ "released", or "refused" if that was before any row was read; any other error is raised."""
    read = []

    def batches():
        for batch in TABLE.to_batches():
            read.append(True)
            yield batch

    source = pa.RecordBatchReader.from_batches(TABLE.schema, batches())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            crowdgram.release(source, user="who", item="what", **arguments)
        except InvalidArgument:
            assert not read
            return "refused"
    return "released"


@pytest.mark.slow
@pytest.mark.parametrize(("mechanism", "adjacency", "case"), combined(FOUND, ["add-remove", "replace"], FOUND_CASES))
def test_items_are_found_or_the_arguments_are_refused(mechanism, adjacency, case):
    epsilon, delta, share = case
    found = outcome(
        epsilon=epsilon, delta=delta, domain=Discover(share), mechanism=mechanism, adjacency=adjacency, weight="rows"
    )
    if (epsilon, share) == (1.0, 0.001):
        assert found == "released"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mechanism", "adjacency", "case"), combined(list(MECHANISMS), ["add-remove", "replace"], KNOWN_CASES)
)
def test_known_items_are_released_or_the_arguments_are_refused(mechanism, adjacency, case):
    epsilon, delta = case
    found = outcome(epsilon=epsilon, delta=delta, domain=ITEMS, mechanism=mechanism, adjacency=adjacency)
    if epsilon == 20 and not MECHANISMS[mechanism].needs_delta:
        assert found == "released"


@pytest.mark.slow
def test_no_plan_to_find_items_ends_in_a_violation():
    """What a plan rehearses is what a release spends: a grid of it, far into both corners."""
    kept = 0
    epsilons, deltas, shares = (0.001, 0.01, 1.0, 20.0, 5000.0), (1e-100, 1e-12, 1e-6, 0.09), (0.001, 0.9, 0.999)
    for mechanism, epsilon, delta, adjacency, share in combined(FOUND, epsilons, deltas, list(Adjacency), shares):
        try:
            offered = Guarantee(epsilon, delta, adjacency)
            kind = as_mechanism(mechanism)
            promise_of(Query(user="who", item="what", guarantee=offered, mechanism=kind, domain=Discover(share)))
            kept += 1
        except InvalidArgument:
            continue
    assert kept > 5


@pytest.mark.parametrize("epsilon", [USUAL_EPSILON, 0.1, 1.0, 100.0])
@pytest.mark.parametrize("delta", [USUAL_DELTA, 1e-6, 0.1])
def test_a_usual_budget_leaves_enough(epsilon: float, delta: float) -> None:
    """It is not computed for each release what looks leave of it."""
    assert mu_after_all_looks(Guarantee(epsilon, delta)) > 40 * MIN_MU
