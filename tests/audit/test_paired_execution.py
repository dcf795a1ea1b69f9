"""Two runs in step: exact losses, and anything that differs for the same outcomes is seen."""

from __future__ import annotations

import math

import numpy as np
import pytest

from crowdgram.audit.draws import Tilt
from crowdgram.audit.paired_execution import follow, on_counts
from crowdgram.audit.pairs import Pair, open_tables, pairs_for
from crowdgram.errors import PrivacyViolation
from crowdgram.mechanisms import Estimate, Gaussian, Laplace, Request
from crowdgram.privacy import Adjacency, Guarantee
from crowdgram.tables import UNIT, CappedRows

PURE = Guarantee(1.0)
MIXED = Guarantee(1.0, 1e-6)
REQUEST = Request(weight="users", max_rows_per_user=None, report=lambda _: None)
LAPLACE, GAUSSIAN = on_counts(Laplace().run), on_counts(Gaussian().run)
PAIR = Pair("two users or one", 2, {0: {0: 4}, 1: {1: 1}}, {1: {1: 1}})


@pytest.fixture(scope="module")
def tables():
    with open_tables(PAIR) as both:
        yield both


def values(estimate_of):
    """A mechanism that draws nothing and returns what `estimate_of` makes of the counts."""

    def mechanism(counts, spending, request):
        found = np.asarray(estimate_of(counts), dtype=np.float64)
        return Estimate(found, found, found, found, 0.0)

    return mechanism


def finish(spending):
    return spending.open().looks().finish_purely()


def test_the_loss_of_laplace_noise_is_exact(tables):
    path = follow(LAPLACE, tables, PURE, REQUEST)
    assert [draw.kind for draw in path.draws] == ["laplace"]
    assert path.draws[0].scale == UNIT
    assert path.epsilon == 1.0  # one user of weight UNIT, on one item
    losses = {follow(LAPLACE, tables, PURE, REQUEST).loss for _ in range(40)}
    assert max(losses) == 1.0
    assert min(losses) >= -1.0
    assert -1.0 <= path.loss <= 1.0


@pytest.mark.slow
def test_the_loss_of_gaussian_noise_has_its_mean_and_the_weights_make_up_for_the_tilt(tables):
    plain = [follow(GAUSSIAN, tables, MIXED, REQUEST) for _ in range(60)]
    mu = math.sqrt(plain[0].squared_mu)
    assert mu == pytest.approx(UNIT / plain[0].draws[0].scale)
    # Losses are normal with mean mu^2/2 and deviation mu; 5.5 standard errors: false alarm below 1e-7.
    assert abs(np.mean([p.loss for p in plain]) - mu**2 / 2) < 5.5 * mu / math.sqrt(60)
    assert all(path.log_weight == 0 for path in plain)
    tilted = [follow(GAUSSIAN, tables, MIXED, REQUEST, Tilt(2.0)) for _ in range(60)]
    assert abs(np.mean([p.loss for p in tilted]) - (mu**2 / 2 + 2 * mu**2)) < 5.5 * mu / math.sqrt(60)
    for path in tilted:  # log dP/dQ at the same y, from the loss alone: y = (loss + mu^2/2)/mu about x'
        z = (path.loss + mu**2 / 2) / mu - mu
        assert path.log_weight == pytest.approx(((z - 2 * mu) ** 2 - z**2) / 2, abs=1e-9)


def test_both_runs_get_the_same_salt(tables):
    seen = []

    def mechanism(counts, spending, request):
        seen.append(spending.open().salt())
        return values(lambda _: [0.0])(counts, spending, request)

    assert follow(mechanism, tables, PURE, REQUEST).parted is None
    assert seen[0] == seen[1]
    assert follow(mechanism, tables, PURE, REQUEST).parted is None
    assert seen[2] != seen[0]


def first_item(counts):
    return counts.sum(CappedRows(1)).values[0]


def test_what_differs_for_the_same_outcomes_is_seen(tables):
    def scale_by_table(counts, spending, request):
        finish(spending).laplace(
            "x", np.zeros(1, dtype=np.int64), bound=1, epsilon=0.1 + 1e-9 * int(first_item(counts) > 0)
        )

    def size_by_table(counts, spending, request):
        finish(spending).laplace("x", np.zeros(1 + int(first_item(counts) > 0), dtype=np.int64), bound=1, epsilon=0.1)

    def number_by_table(counts, spending, request):
        if first_item(counts) > 0:
            finish(spending).laplace("x", np.zeros(1, dtype=np.int64), bound=1, epsilon=0.1)

    def purpose_by_table(counts, spending, request):
        name = "many" if first_item(counts) > 0 else "few"
        finish(spending).laplace(name, np.zeros(1, dtype=np.int64), bound=1, epsilon=0.1)
        return values(lambda _: [0.0])(counts, spending, request)

    def fails_by_table(counts, spending, request):
        if first_item(counts) > 0:
            raise PrivacyViolation("no")
        return values(lambda _: [0.0])(counts, spending, request)

    expected = {
        scale_by_table: "kind, scale or size",
        size_by_table: "kind, scale or size",
        number_by_table: "one run ends",
        purpose_by_table: "events differ",
        fails_by_table: "one run ends",
        values(lambda counts: counts.sum(CappedRows(1)).values): "estimates differ",
    }
    for mechanism, words in expected.items():
        path = follow(mechanism, tables, PURE, REQUEST)
        assert words in path.parted
        assert path.loss == math.inf
    assert follow(values(lambda _: [1.0]), tables, PURE, REQUEST).loss == 0.0


def test_a_failure_of_both_runs_is_the_callers(tables):
    def overspends(counts, spending, request):
        finish(spending).laplace("x", np.zeros(1, dtype=np.int64), bound=1, epsilon=2.0)

    def stumbles(counts, spending, request):
        raise KeyError("bug")

    with pytest.raises(PrivacyViolation):
        follow(overspends, tables, PURE, REQUEST)
    with pytest.raises(KeyError):
        follow(stumbles, tables, PURE, REQUEST)


@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_pairs_are_neighbours(adjacency):
    for pair in pairs_for(adjacency):
        users = {*pair.first, *pair.second}
        changed = [user for user in users if pair.first.get(user) != pair.second.get(user)]
        assert len(changed) == 1
        in_both = changed[0] in pair.first and changed[0] in pair.second
        assert in_both == (adjacency is Adjacency.REPLACE)
