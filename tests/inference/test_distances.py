"""Distances and differences: right if all is known, honest if there is noise.

Noise here is seeded, so that what passes once passes always. The thresholds of coverage are far below what was measured
(0.94 or more in every case), and a release that claims a third of its noise must fail them.
"""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import crowdgram
from crowdgram import GroupedRelease, Other, Release
from crowdgram.errors import InvalidArgument
from crowdgram.synth import Visits

from ..results.synthetic import exact, grouped, made, noisy, zipf
from ..thorough import combined
from .test_entropy import CASES, plain_entropy


def test_distances_of_what_is_known():
    one, two = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.3, 0.5])
    a, b = exact(one, "xyz"), exact(two, "xyz")
    assert a.distance(b).value == pytest.approx(0.6, abs=1e-6)
    assert a.distance(b, "tv").value == pytest.approx(0.3, abs=1e-6)
    assert a.distance(b, "l2").value == pytest.approx(math.sqrt(0.18), abs=1e-6)
    assert float(a.distance(a)) == pytest.approx(0.0, abs=1e-6)
    turned = exact(two[[2, 0, 1]], "zxy")  # by item, not by place
    assert a.distance(turned).value == pytest.approx(0.6, abs=1e-6)


def distances(case, kind, apart, laplace=False, claimed=1.0, runs=30):
    theta, deviation = CASES[case]
    rng = np.random.default_rng(6)
    phi = (1 - apart) * theta + apart * rng.permutation(theta)
    truth = np.abs(theta - phi).sum() if kind == "l1" else np.linalg.norm(theta - phi)
    pairs = [
        (noisy(theta, deviation, rng, laplace, claimed), noisy(phi, 1.5 * deviation, rng, laplace, claimed))
        for _ in range(runs)
    ]
    found = [one.distance(two, kind) for one, two in pairs]
    covered = np.mean([one.lower <= truth + 1e-12 and truth <= one.upper for one in found])
    plug = np.mean([np.abs(one.probabilities - two.probabilities).sum() for one, two in pairs])
    return truth, covered, np.mean([one.value for one in found]), plug


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "apart", "laplace"),
    combined(["few", "well measured", "long tail", "mostly lost", "all alike"], [0.0, 0.5], [False, True]),
)
def test_intervals_of_distances_hold_the_truth(case, apart, laplace):
    assert distances(case, "l1", apart, laplace)[1] >= 0.85
    assert distances(case, "l2", apart, laplace)[1] >= 0.8


def test_too_little_noise_claimed_moves_distances_away():
    assert distances("well measured", "l1", 0.0, claimed=0.2)[1] < 0.5
    assert distances("well measured", "l2", 0.5, claimed=0.2)[1] < 0.8


@pytest.mark.slow
@pytest.mark.parametrize("case", ["well measured", "long tail", "mostly lost", "all alike"])
def test_alike_releases_are_near(case):
    """Noise alone makes them seem far apart; the correction takes most of that off."""
    _, _, value, plug = distances(case, "l1", 0.0)
    assert value < 0.5 * plug


def test_other_errors_widen():
    p, q = zipf(10), zipf(10)[::-1]
    plain = exact(p).distance(exact(q))
    doubtful = replace(exact(p), other_errors=np.full(10, 1e-3)).distance(exact(q))
    assert doubtful.lower < plain.lower - 0.01
    assert doubtful.upper > plain.upper + 0.005
    assert replace(exact(p), other_errors=np.full(10, 1e-3)).entropy().lower < exact(p).entropy().lower - 1e-3


def test_an_old_release_has_no_measured_shares():
    old = replace(exact(zipf(6)), measured=None, other_errors=None)
    assert old.entropy().value == pytest.approx(plain_entropy(zipf(6)), abs=1e-6)
    assert old.distance(exact(zipf(6))).value == pytest.approx(0.0, abs=1e-6)


def test_groups_without_an_item_in_common_have_a_distance_all_the_same():
    cells = [("DE", "a"), ("FR", "b"), ("DE", Other("other")), ("FR", Other("other"))]
    grouped = GroupedRelease(made(zipf(4), np.full(4, 1e-4), cells, ("country", "page")))
    assert list(grouped.distances()) == [("DE", "FR")]


@pytest.mark.parametrize("kind", ["kl", "L1", "", None, 1])
def test_a_kind_that_is_none(kind):
    with pytest.raises(InvalidArgument, match="'l1', 'tv', 'l2'"):
        exact(zipf(3)).distance(exact(zipf(3)), kind)


# --- differences


def test_differences_put_first_what_is_sure():
    p = np.array([0.4, 0.3, 0.2, 0.1])
    errors = np.array([0.1, 1e-3, 1e-3, 1e-3])
    one = made(p, errors, "wxyz", ("item",))
    two = made(p + np.array([0.06, -0.03, -0.02, -0.01]), errors, "wxyz", ("item",))
    found = one.differences(two)
    assert [each.item for each in found] == ["x", "y", "z", "w"]
    assert found[0].difference == pytest.approx(0.03)
    assert (found[0].first, found[0].second) == (pytest.approx(0.3), pytest.approx(0.27))
    assert found[0].lower > 0 > found[-1].lower
    assert found[0].standard_error == pytest.approx(math.hypot(1e-3, 1e-3))
    assert len(one.differences(two, 2)) == 2
    assert one.differences(two, 0) == []
    with pytest.raises(InvalidArgument, match="n=-1"):
        one.differences(two, -1)


def test_intervals_of_differences():
    rng = np.random.default_rng(4)
    theta, covered, narrow = zipf(40), [], []
    phi = rng.permutation(theta)
    for _ in range(60):
        one, two = noisy(theta, 3e-3, rng), noisy(phi, 3e-3, rng)
        for each in one.differences(two, 40):
            truth = theta[each.item] - phi[each.item]
            covered.append(each.lower <= truth <= each.upper)
            narrow.append(abs(truth - (each.lower + each.upper) / 2) <= (each.upper - each.lower) / 4)
    assert 0.93 < np.mean(covered) < 0.99
    assert np.mean(narrow) < 0.85


def test_groups_by_distance():
    found = grouped().distances()
    assert list(found) == [("DE", "FR"), ("FR", "IT"), ("DE", "IT")]
    assert found["DE", "FR"].value == pytest.approx(0.6, abs=1e-6)
    assert found["DE", "IT"].value == pytest.approx(0.2, abs=1e-6)
    assert grouped().distances("tv")["FR", "IT"].value == pytest.approx(0.2, abs=1e-6)
    noisy_groups = grouped(0.01).distances()
    assert noisy_groups["DE", "IT"].lower < 0.2 < noisy_groups["DE", "IT"].upper
    assert grouped()["DE"].differences(grouped()["FR"], 1)[0].item in ("a", "c")


def test_groups_whose_items_were_found():
    other = Other("other")
    items = [("DE", "a"), ("DE", "b"), ("FR", "a"), ("DE", other), ("FR", other), (other, other)]
    joint = made(np.array([0.2, 0.1, 0.3, 0.1, 0.2, 0.1]), np.full(6, 1e-9), items, ("country", "page"))
    found = GroupedRelease(joint).distances()
    assert found["DE", "FR"].value == pytest.approx(0.2, abs=1e-6)  # a: 0.5 and 0.6; all else: 0.5 and 0.4


def test_asked_of_a_real_release():
    """Two releases of one table, whose truth is known."""
    crowd = sample_table()
    options = {"user": "user", "item": "page", "domain": list(crowd.pages), "epsilon": 1.0, "weight": "users"}
    releases = [crowdgram.release(crowd.table, **options) for _ in range(2)]
    assert all(isinstance(one, Release) for one in releases)
    apart = releases[0].distance(releases[1])
    assert apart.lower <= 0.005
    assert apart.upper < 0.1
    truth = plain_entropy(crowd.truth)
    for one in releases:
        found = one.entropy()
        wide = 3 * max(found.upper - found.lower, 1e-3)
        assert found.lower - wide <= truth <= found.upper + wide  # some 14 standard errors: Laplace noise has tails


def sample_table():
    table = Visits(seed=3).table()
    frame = table.to_pandas()
    own = frame.groupby("user").page.value_counts(normalize=True).unstack().fillna(0).mean()
    return SimpleNamespace(table=table, pages=Visits.PAGES, truth=own[list(Visits.PAGES)].to_numpy())
