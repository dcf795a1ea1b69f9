"""Errors hang together: the noise of items, of what they are divided by, and bias. Coverage by simulation.

Noisy sums are made into releases by the estimator's own last step. Runs are seeded. Of N intervals that cover with
probability 0.95, fewer than 0.95 N - 3.5 sqrt(0.95 0.05 N) cover with a chance below 1 in 600: that is the `bar`.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from crowdgram import GroupedRelease, Release
from crowdgram.mechanisms.estimate import Divisor, from_noisy_sums
from crowdgram.privacy import Guarantee, LaplaceEvent
from crowdgram.results.covariance import Measured
from crowdgram.results.marginals import widen_intervals

from ..thorough import combined

SCALE = 50.0


"""Of Laplace noise on counts, one row a user."""


def bar(runs):
    return 0.95 - 3.5 * math.sqrt(0.95 * 0.05 / runs)


def top_heavy(k=250, top=0.4):
    p = np.full(k, (1 - top) / (k - 1))
    p[0] = top
    return p


def released(theta, users, rng, *, total_error=None, items=None, columns=("item",), scale=SCALE, claimed=1.0):
    """A release of counts with Laplace noise; `total_error`: of the number of users, if that is known otherwise."""
    event = LaplaceEvent("counts", 1, claimed * scale, len(theta))
    noisy = np.rint(theta * users + rng.laplace(0, scale, len(theta))).astype(np.int64)
    total = None if total_error is None else (users + total_error * rng.standard_normal(), claimed * total_error)
    found = from_noisy_sums(noisy, event, {}, total=total)
    return widen_intervals(
        Release(
            items=tuple(range(len(theta)) if items is None else items),
            probabilities=found.probabilities,
            standard_errors=found.standard_errors,
            lower=found.lower,
            upper=found.upper,
            confidence=0.95,
            predicted_l1_error=found.predicted_l1_error,
            guarantee=Guarantee(1.0),
            events=(event,),
            mechanism="laplace",
            weight="rows",
            item_columns=columns,
            measured=found.measured,
            other_errors=found.other_errors,
            noise_errors=found.noise_errors,
            divisor=found.divisor or Divisor(own=1.0),
        )
    )


def covers(release, truth):
    return (release.lower <= truth + 1e-12) & (truth <= release.upper + 1e-12)


DIVISORS = {"own sum": None, "half known": SCALE * math.sqrt(2 * 250), "known": 10.0}


@pytest.mark.slow
@pytest.mark.parametrize("divisor", DIVISORS)
def test_a_large_item_is_covered(divisor):
    """An item of 40% among 250: most of its error is the divisor's."""
    theta, rng = top_heavy(), np.random.default_rng(1)
    made = [released(theta, 40_000, rng, total_error=DIVISORS[divisor]) for _ in range(300)]
    assert not any(one.too_little for one in made)  # intervals would be wider
    assert np.mean([covers(one, theta)[0] for one in made]) >= bar(300)
    kept = [one.merged(lambda item: "top" if item == 0 else "rest") for one in made]
    assert np.mean([covers(one, np.array([0.4, 0.6])).all() for one in kept]) >= bar(300)
    errors = np.array([one.measured[0] for one in made]) - 0.4
    said = np.sqrt(np.mean([one.standard_errors[0] ** 2 for one in made]))
    assert 0.8 < errors.std() / said < 1.2


@pytest.mark.slow
@pytest.mark.parametrize("divisor", DIVISORS)
def test_merged_sets_are_covered(divisor):
    theta, rng = top_heavy(), np.random.default_rng(2)
    sets = np.arange(250) % 7
    truth = np.bincount(sets, weights=theta)
    made = [released(theta, 20_000, rng, total_error=DIVISORS[divisor]) for _ in range(200)]
    merged = [one.merged(lambda item: int(sets[item])) for one in made]
    order = list(merged[0].items)
    assert np.mean([covers(one, truth[order]) for one in merged], axis=0).min() >= bar(200)
    off = np.array([one.measured for one in merged]) - truth[order]
    said = np.sqrt(np.mean([one.standard_errors**2 for one in merged], axis=0))
    assert (np.abs(off.std(axis=0) / said - 1) < 0.25).all()


def test_the_divisor_is_what_would_be_missed():
    """Without it, the same release covers its top item far too seldom: the tests above can fail."""
    theta, rng, found = top_heavy(), np.random.default_rng(3), []
    for _ in range(200):
        one = released(theta, 40_000, rng)
        reach = 2.12 * one.noise_errors[0]
        found.append(abs(one.measured[0] - 0.4) <= reach)
    assert np.mean(found) < 0.6


CELLS = [(group, item) for group in range(5) for item in range(30)]


SHARES = np.array([0.5, 0.3, 0.15, 0.05, 0.0])


INSIDE = top_heavy(30, 0.4)


JOINT = np.concatenate([share * np.roll(INSIDE, group) for group, share in enumerate(SHARES)])


def groups(rng, users=60_000, **options):
    return GroupedRelease(released(JOINT, users, rng, items=CELLS, columns=("group", "item"), **options))


@pytest.mark.slow
@pytest.mark.parametrize("total_error", [None, 600.0])
def test_marginals_and_conditionals_are_covered(total_error):
    rng = np.random.default_rng(4)
    shares, inside = [], []
    for _ in range(150):
        made = groups(rng, total_error=total_error)
        shares.append(covers(made.shares, SHARES))
        inside.append([covers(made[group], np.roll(INSIDE, group)) for group in range(4)])
    assert np.mean(shares, axis=0).min() >= bar(150)
    assert np.mean(inside, axis=0)[:, :4].min() >= bar(150)  # the large item of each group is among these
    assert np.mean(inside) >= 0.94


def test_a_conditional_does_not_depend_on_the_divisor():
    noisy = Measured(np.array([0.2, 0.1, 0.7]), np.full(3, 1e-4), np.zeros(3), Divisor(0.3, 0.2), 3e-4)
    other = Measured(2 * noisy.x, 4 * noisy.noise, noisy.other, Divisor(0.9, 0.0), 12e-4)
    chosen, codes = np.array([0, 1]), np.array([0, 1])
    one, two = noisy.ratios(chosen, codes, 2), other.ratios(chosen, codes, 2)
    assert one.x == pytest.approx(two.x)
    assert one.full() == pytest.approx(two.full())


def distances(total_errors, kind, apart, runs=120, claimed=1.0):
    rng, theta = np.random.default_rng(5), top_heavy(60)
    phi = (1 - apart) * theta + apart * theta[::-1]
    truth = np.abs(theta - phi).sum() if kind == "l1" else np.linalg.norm(theta - phi)
    found = [
        released(theta, 5_000, rng, total_error=total_errors[0], claimed=claimed).distance(
            released(phi, 8_000, rng, total_error=total_errors[1], claimed=claimed), kind
        )
        for _ in range(runs)
    ]
    return np.mean([one.lower <= truth + 1e-12 and truth <= one.upper for one in found])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("total_errors", "kind", "apart"),
    combined([(None, None), (1_500.0, None), (10.0, 2_000.0)], ["l1", "l2"], [0.0, 0.3]),
)
def test_distances_are_covered(total_errors, kind, apart):
    assert distances(total_errors, kind, apart) >= bar(120)


@pytest.mark.slow
def test_distances_that_claim_too_little_are_noticed():
    assert distances((None, None), "l2", 0.3, claimed=0.3) < bar(120)
    assert distances((1_500.0, None), "l1", 0.0, claimed=0.3) < bar(120)


@pytest.mark.slow
@pytest.mark.parametrize("total_error", [None, 700.0])
def test_entropy_is_covered(total_error):
    theta, rng = top_heavy(60), np.random.default_rng(6)
    truth = float(-(theta * np.log2(theta)).sum())
    found = [released(theta, 9_000, rng, total_error=total_error).entropy() for _ in range(150)]
    assert np.mean([one.lower <= truth <= one.upper for one in found]) >= bar(150)


@pytest.mark.slow
@pytest.mark.parametrize("total_error", [None, 700.0])
def test_differences_are_covered(total_error):
    theta, rng, found = top_heavy(60), np.random.default_rng(7), []
    for _ in range(150):
        one, two = (released(part, 9_000, rng, total_error=total_error) for part in (theta, theta[::-1]))
        by_item = {each.item: each for each in one.differences(two, 60)}
        truth = theta - theta[::-1]
        found.append([by_item[item].lower <= truth[item] <= by_item[item].upper for item in range(60)])
    covered = np.mean(found, axis=0)
    assert covered[[0, 59]].min() >= bar(150)
    assert covered.mean() >= 0.94


# --- nothing but noise


def test_intervals_stay_wide_where_there_is_nothing():
    """40 users under noise of 50: no item can be ruled out, and no end may say so."""
    theta, rng = top_heavy(60), np.random.default_rng(8)
    for _ in range(100):
        one = released(theta, 40, rng)
        assert one.too_little
        if not Measured.of(one).is_seen(0.95):
            assert (one.lower == 0).all()
            assert (one.upper == 1).all()
    assert np.mean([covers(released(theta, 40, rng), theta)[0] for _ in range(150)]) >= bar(150)


def test_no_interval_is_nothing():
    """An item that noise put far below zero may be there all the same."""
    rng = np.random.default_rng(9)
    for one in (released(top_heavy(), 20_000, rng) for _ in range(20)):
        assert (one.upper >= 2 * one.noise_errors).all()
        merged = one.merged(lambda item: item // 2)
        assert (merged.upper >= 2 * merged.noise_errors).all()


@pytest.mark.slow
def test_a_group_with_nothing_is_unknown():
    rng = np.random.default_rng(10)
    lost = 0
    for _ in range(40):
        made = groups(rng, users=20_000)
        empty = made[4]
        assert empty.too_little
        assert 4 in made.too_little
        assert not made[0].too_little
        found = made.distances()
        if not Measured.of(empty).is_seen(0.95):
            lost += 1
            assert (empty.lower == 0).all()
            assert (empty.upper == 1).all()
            assert not empty.entropy().is_known
            assert (found[0, 4].lower, found[0, 4].upper) == (0.0, 2.0)
            assert math.isnan(float(found[0, 4]))
            assert 4 in next(reversed(found))
        assert found[0, 1].is_known
    assert lost >= 30  # noise passes for a group in 1 of 20
