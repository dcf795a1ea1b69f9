"""Entropy, distances, differences, merged items and samples: right where all is known, honest where noise is.

Noise here is seeded, so that what passes once passes always. The thresholds of coverage are far below what was measured
(0.94 or more in every case), and a release that claims a third of its noise must fail them.
"""

from __future__ import annotations

import datetime
import json
import math
import uuid
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow.parquet
import pytest

import crowdgram
from crowdgram import GroupedRelease, Other, Quantity, Release
from crowdgram.errors import InvalidArgument, UnwritableTarget
from crowdgram.inference.alignment import unmatched_shares
from crowdgram.inference.entropy import _least_even, _most_even
from crowdgram.privacy import LaplaceEvent
from crowdgram.synth import Visits

from ..results.test_marginals import made


def zipf(k, exponent=1.0):
    p = np.arange(1, k + 1.0) ** -exponent
    return p / p.sum()


def plain_entropy(p):
    kept = p[p > 0]
    return float(-(kept * np.log2(kept)).sum())


def exact(p, items=None):
    return made(np.asarray(p, dtype=float), np.full(len(p), 1e-10), items or range(len(p)), ("item",))


def noisy(theta, deviation, rng, laplace=False, claimed=1.0):
    """A release of theta with this noise, which claims `claimed` times as much."""
    noise = rng.laplace(0, 1 / math.sqrt(2), len(theta)) if laplace else rng.standard_normal(len(theta))
    found = made(theta + deviation * noise, np.full(len(theta), claimed * deviation), range(len(theta)), ("item",))
    return replace(found, events=(LaplaceEvent("counts", 1, 1.0, len(theta)),)) if laplace else found


SPARSE = np.concatenate([zipf(10, 0.5) * 0.9, np.full(50, 0.002), np.zeros(600)])
CASES = {
    "few": (zipf(5), 0.02),
    "well measured": (zipf(50), 1e-3),
    "half lost": (zipf(50), 1e-2),
    "long tail": (zipf(1000), 1e-4),
    "mostly lost": (zipf(1000), 1e-3),
    "sparse": (SPARSE, 1e-3),
    "all alike": (zipf(200, 0), 1e-3),
}


# --- entropy


def test_entropy_of_what_is_known():
    assert float(exact(np.full(8, 0.125)).entropy()) == pytest.approx(3.0, abs=1e-6)
    p = zipf(30)
    found = exact(p).entropy()
    assert found.value == pytest.approx(plain_entropy(p), abs=1e-6)
    assert found.lower <= found.value <= found.upper
    assert found.upper - found.lower < 1e-6
    assert exact(p).entropy(base=math.e).value == pytest.approx(found.value * math.log(2))
    assert exact([1.0]).entropy() == Quantity(0.0, 0.0, 0.0, 0.95)


@pytest.mark.parametrize("base", [1, 0, -2, math.inf, math.nan, True, "2", None])
def test_a_base_that_is_none(base):
    with pytest.raises(InvalidArgument, match="base="):
        exact(zipf(3)).entropy(base=base)


def entropies(case, laplace=False, claimed=1.0, runs=40):
    theta, deviation = CASES[case]
    rng = np.random.default_rng(5)
    truth, found, plug = plain_entropy(theta), [], []
    for _ in range(runs):
        release = noisy(theta, deviation, rng, laplace, claimed)
        found.append(release.entropy())
        plug.append(plain_entropy(release.probabilities))
    covered = np.mean([one.lower <= truth <= one.upper for one in found])
    return truth, covered, np.array([one.value for one in found]), np.array(plug)


@pytest.mark.slow
@pytest.mark.parametrize("laplace", [False, True])
@pytest.mark.parametrize("case", ["few", "well measured", "half lost", "long tail", "mostly lost", "sparse"])
def test_intervals_of_entropy_hold_the_truth(case, laplace):
    _, covered, _, _ = entropies(case, laplace)
    assert covered >= 0.85


def test_too_little_noise_claimed_is_noticed():
    assert entropies("well measured", claimed=0.2)[1] < 0.85
    assert entropies("few", claimed=0.2)[1] < 0.85


@pytest.mark.slow
@pytest.mark.parametrize("case", ["half lost", "long tail", "mostly lost", "all alike"])
def test_entropy_is_corrected_for_noise(case):
    truth, _, values, plug = entropies(case)
    assert abs(values.mean() - truth) < 0.6 * abs(plug.mean() - truth)


def test_the_ends_of_entropy_by_brute_force():
    """Among random ways to spread a mass under caps, none is beyond the ends, and some come near them."""
    rng = np.random.default_rng(3)
    caps, mass = np.array([0.05, 0.1, 0.02, 0.08]), 0.12
    spreads = rng.dirichlet(np.full(4, 0.4), 200_000) * mass
    spreads = spreads[(spreads <= caps).all(axis=1)]
    entropy = -(spreads * np.log(np.maximum(spreads, 1e-300))).sum(axis=1)
    low, high = _least_even(caps, mass), _most_even(caps, mass)
    assert low <= entropy.min() < low + 0.02
    assert high - 0.002 < entropy.max() <= high + 1e-12
    assert _most_even(np.full(3, 1.0), 0.3) == pytest.approx(-0.3 * math.log(0.1))
    assert _least_even(np.array([]), 0.3) == _most_even(caps, 0.0) == 0.0
    assert _most_even(np.full(2, 1e-9), 0.3) > 0  # caps that noise put too low are raised


def test_population_entropy():
    release = replace(exact(zipf(20)), sampling_errors=np.full(20, 1e-3))
    table, population = release.entropy(), release.entropy(of="population")
    assert population.upper - population.lower > 100 * (table.upper - table.lower)
    with pytest.raises(InvalidArgument, match="population"):
        exact(zipf(20)).entropy(of="population")


# --- distance


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
@pytest.mark.parametrize("laplace", [False, True])
@pytest.mark.parametrize("apart", [0.0, 0.5])
@pytest.mark.parametrize("case", ["few", "well measured", "long tail", "mostly lost", "all alike"])
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


def test_items_that_one_release_lists_are_others_in_the_other():
    one = exact([0.5, 0.2, 0.2, 0.1], ["a", "b", "c", Other("other")])
    two = exact([0.4, 0.3, 0.1, 0.2], ["b", "a", "d", Other("rest")])
    # a: 0.5 and 0.3; b: 0.2 and 0.4; all else: 0.3 and 0.3.
    assert one.distance(two).value == pytest.approx(0.4, abs=1e-6)
    found = {difference.item: difference.difference for difference in one.differences(two)}
    assert found == {
        "a": pytest.approx(0.2),
        "b": pytest.approx(-0.2),
        Other("other"): pytest.approx(0, abs=1e-9),
    }
    assert unmatched_shares(one, two) == (pytest.approx(0.2), pytest.approx(0.1))
    assert unmatched_shares(one, one) == (0.0, 0.0)


OTHERS = ["a", "b", Other("other")]


@pytest.mark.parametrize(
    ("items", "columns", "words"),
    [
        (["x", "y", Other("other")], ("item",), "an item in common"),
        ([1, 2, Other("other")], ("item",), r"One is over item \(str\), the other over item \(int\)"),
        ([("a", "x"), ("b", "x"), (Other("other"),) * 2], ("item", "page"), r"same columns, .*page \(str\)"),
        ([Other("other")], ("item",), "an item in common"),
    ],
)
def test_releases_without_an_item_in_common_cannot_be_compared(items, columns, words):
    one = exact(zipf(3), OTHERS)
    two = made(zipf(len(items)), np.full(len(items), 1e-10), items, columns)
    two = replace(two, events=(LaplaceEvent("counts", 1, 1.0, 3),))
    with pytest.raises(InvalidArgument, match=words):
        one.distance(two)
    for ask in (lambda: two.distance(one), lambda: one.differences(two)):
        with pytest.raises(InvalidArgument, match="items: both releases need"):
            ask()


def test_groups_without_an_item_in_common_have_a_distance_all_the_same():
    cells = [("DE", "a"), ("FR", "b"), ("DE", Other("other")), ("FR", Other("other"))]
    grouped = GroupedRelease(made(zipf(4), np.full(4, 1e-4), cells, ("country", "page")))
    assert list(grouped.distances()) == [("DE", "FR")]


def test_groups_are_asked_as_releases_are():
    cells = [(group, page) for group in ("DE", "FR") for page in "abc"]
    grouped = GroupedRelease(made(zipf(6), np.full(6, 1e-4), cells, ("country", "page")))
    entropy = grouped.entropy()
    assert list(entropy) == ["DE", "FR"]
    assert entropy["FR"] == grouped["FR"].entropy()
    for mapping, other in (
        ({"a": "x", "b": "x"}, None),
        ({"a": "x", "b": "x"}, "rest"),
        (lambda p: "x" if p < "c" else "c", None),
    ):
        merged = grouped.merged(mapping, other=other, column="kind")
        assert merged.joint.item_columns == ("country", "kind")
        assert merged.groups == grouped.groups
        for group in grouped:
            one = grouped[group].merged(mapping, other=other, column="kind")
            assert merged[group].items == one.items
            assert merged[group].probabilities == pytest.approx(one.probabilities)
        assert merged.shares.probabilities == pytest.approx(grouped.shares.probabilities)


def test_merged_groups_keep_their_own_others_and_the_rest_apart(tmp_path):
    rest = Other("other")
    cells = [("DE", "a"), ("DE", "b"), ("FR", "b"), ("DE", rest), ("FR", rest), (rest, rest)]
    grouped = GroupedRelease(made(zipf(6), np.full(6, 1e-4), cells, ("country", "page")))
    merged = grouped.merged(lambda page: None if page == "a" else "kept")
    assert merged.joint.items == (("DE", "kept"), ("FR", "kept"), ("DE", rest), ("FR", rest), (rest, rest))
    p = zipf(6)
    assert merged.joint.probabilities == pytest.approx([p[1], p[2], p[0] + p[3], p[4], p[5]])
    merged.save(tmp_path / "g.json")
    assert crowdgram.load(tmp_path / "g.json").joint == merged.joint
    with pytest.raises(InvalidArgument, match="other='other'"):
        GroupedRelease(made(zipf(4), np.full(4, 1e-4), [(g, i) for g in "xy" for i in "ab"], ("g", "i"))).merged(
            {"a": None}
        )


def test_a_group_that_is_not_there():
    cells = [(group, page) for group in ("DE", "FR") for page in "ab"]
    grouped = GroupedRelease(made(zipf(4), np.full(4, 1e-4), cells, ("country", "page")))
    with pytest.raises(KeyError) as caught:
        grouped["west"]
    assert isinstance(caught.value, crowdgram.CrowdgramError)
    assert str(caught.value) == "group='west': needs to be one of the release's groups, which are 'DE', 'FR'."
    assert "west" not in grouped
    assert grouped.get("west") is None
    assert "DE" in grouped


def test_items_are_in_a_release():
    release = exact(zipf(3), OTHERS)
    assert "a" in release
    assert Other("other") in release
    assert "other" not in release
    assert [] not in release
    assert list(release) == OTHERS
    with pytest.raises(KeyError, match=r"^item='z': needs to be one of the release's items\.$"):
        release.probability("z")


def test_numbers_of_which_some_get_names_are_names():
    release = exact(zipf(3), [1, 2, 3])
    assert release.merged({1: "odd", 3: "odd"}).items == ("odd", "2")
    assert release.merged({1: 7}).items == (7, 2, 3)
    assert release.merged({1: "odd"}).parameters["items"] == 3
    assert release.merged({1: "odd"}, other="rest").parameters == {**release.parameters, "items": 2, "merged_from": 3}


def test_the_item_column_keeps_its_name(tmp_path):
    release = made(zipf(2), np.full(2, 1e-4), ["a", "b"], ("product",))
    assert list(release.to_pandas().columns)[:2] == ["product", "probability"]
    release.to_csv(tmp_path / "r.csv")
    assert (tmp_path / "r.csv").read_text().startswith('"product","probability"')
    release.save(tmp_path / "r.json")
    document = json.loads((tmp_path / "r.json").read_text())
    assert crowdgram.load(tmp_path / "r.json").heads == ("product",)
    del document["item_columns"]  # a file of version 1 has no name
    (tmp_path / "r.json").write_text(json.dumps({**document, "schema_version": 1}))
    assert crowdgram.load(tmp_path / "r.json").to_arrow().column_names[0] == "item"
    clash = made(zipf(2), np.full(2, 1e-4), ["a", "b"], ("lower",))
    assert clash.to_arrow().column_names[:2] == ["item", "probability"]


def test_midnights_are_shown_as_days():
    days = [datetime.datetime(2024, month, 1) for month in (1, 2)]
    release = made(zipf(2), np.full(2, 1e-4), days, ("month",))
    assert release.texts(days[0]) == ("2024-01-01",)
    mixed = [days[0], datetime.datetime(2024, 1, 1, 5)]
    assert made(zipf(2), np.full(2, 1e-4), mixed, ("hour",)).texts(days[0]) == ("2024-01-01 00:00:00",)


@pytest.mark.parametrize(
    ("two", "words"),
    [
        (None, "needs to be a Release"),
        ({0: 0.5, 1: 0.5}, "needs to be a Release"),
        (exact(zipf(4)), "items: both releases need"),
        (exact(zipf(3), ["0", "1", "2"]), "items: both releases need"),
        (exact(zipf(3), [False, True, 2]), "items: both releases need"),
        (exact(zipf(3), [0, 1, Other("other")]), "items: both releases need"),
        (replace(exact(zipf(3)), weight="users"), "weight='rows', weight='users'"),
        (replace(exact(zipf(3)), confidence=0.9), "confidence"),
    ],
)
def test_releases_that_cannot_be_compared(two, words):
    for ask in (exact(zipf(3)).distance, exact(zipf(3)).differences):
        with pytest.raises(InvalidArgument, match=words):
            ask(two)


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


# --- groups


def grouped(deviation=1e-9):
    shares = {"DE": 0.5, "FR": 0.3, "IT": 0.2}
    pages = {"DE": [0.6, 0.3, 0.1], "FR": [0.3, 0.3, 0.4], "IT": [0.5, 0.3, 0.2]}
    cells = {(group, page): shares[group] * p for group, ps in pages.items() for page, p in zip("abc", ps, strict=True)}
    values = np.array(list(cells.values()))
    return GroupedRelease(made(values, np.full(9, deviation), list(cells), ("country", "page")))


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


# --- merged


def test_merged_items_are_sums():
    release = exact([0.4, 0.3, 0.2, 0.1], ["apple", "pear", "leek", "oak"])
    errors = made(release.measured, np.array([3e-3, 4e-3, 1e-3, 1e-3]), release.items, ("item",))
    by_kind = errors.merged({"apple": "fruit", "pear": "fruit"})
    assert by_kind.items == ("fruit", "leek", "oak")
    assert by_kind.probabilities == pytest.approx([0.7, 0.2, 0.1])
    # Of the fruit, 0.3 of its own noise is left by the divisor, and 0.7 of that of the rest.
    expected = math.sqrt(0.3**2 * (3e-3**2 + 4e-3**2) + 0.7**2 * 2e-6)
    assert by_kind.standard_errors[0] == pytest.approx(expected)
    assert by_kind.guarantee == release.guarantee
    assert by_kind.events == release.events
    rest = release.merged({"apple": "fruit", "pear": "fruit"}, other="rest")
    assert rest.items == ("fruit", Other("rest"))
    assert rest.probability(Other("rest")) == pytest.approx(0.3)
    assert release.merged({}) == replace(release.merged(lambda item: item))
    first = release.merged(lambda name: name[0] if name != "oak" else None, other="l")
    assert first.items == ("a", "p", "l", Other("l*"))  # a real item of that name is not taken for it
    assert release.merged(len, column="letters").item_columns == ("letters",)
    assert release.merged(len).items == (5, 4, 3)
    assert release.merged(lambda name: np.int64(len(name))).items == (5, 4, 3)


def test_intervals_of_merged_items():
    rng = np.random.default_rng(8)
    theta, covered = zipf(60), []
    for _ in range(80):
        release = noisy(theta, 2e-3, rng).merged(lambda item: item % 6)
        truth = np.bincount(np.arange(60) % 6, weights=theta)
        covered += ((release.lower <= truth) & (truth <= release.upper)).tolist()
    assert 0.93 < np.mean(covered) <= 1


def test_what_was_other_stays_so():
    release = exact([0.5, 0.3, 0.2], ["a", "b", Other("rest")])
    assert release.merged({"a": "x", "b": "x"}).items == ("x", Other("rest"))
    assert release.merged(lambda item: "rest").items == ("rest", Other("rest*"))
    assert release.merged({"a": "x"}, other="all else").items == ("x", Other("all else"))
    assert release.merged({Other("rest"): "c"}).items == ("a", "b", "c")


def test_merging_joint_items(tmp_path):
    joint = grouped().joint
    assert joint.merged(lambda item: item[0], column="country").items == ("DE", "FR", "IT")
    assert joint.merged(lambda item: item[0]).item_columns == ("item",)
    pairs = joint.merged(lambda item: (item[0], "ab" if item[1] in "ab" else "c"))
    assert pairs.item_columns == ("country", "page")
    north = joint.merged(lambda item: (item[0], "ab") if item[1] in "ab" else None, other="other")
    assert north.items[-1] == (Other("other"), Other("other"))
    for one in (pairs, north):
        one.save(tmp_path / "r.json")
        assert crowdgram.load(tmp_path / "r.json") == one


def test_merged_dates_survive_a_file(tmp_path):
    days = [datetime.date(2024, 1, 1), datetime.date(2024, 1, 9), datetime.date(2024, 2, 1)]
    months = exact([0.2, 0.3, 0.5], days).merged(lambda day: day.replace(day=1), column="month")
    months.save(tmp_path / "r.json")
    assert crowdgram.load(tmp_path / "r.json") == months
    assert months.items == (datetime.date(2024, 1, 1), datetime.date(2024, 2, 1))


@pytest.mark.parametrize(
    ("mapping", "options", "words"),
    [
        ({"z": "x"}, {}, "'z' needs to be one of"),
        (3, {}, "mapping=3"),
        ({"a": None}, {}, "other='other'"),
        ({"a": 1}, {}, "one type, but there are int, str"),
        ({"a": 1.5, "b": 2.5}, {}, "float"),
        ({"a": ("x", "y")}, {}, "need to become values"),
        ({"a": ("x", "y"), "b": ("x", "z")}, {}, "need to become values"),
        ({"a": Other("x")}, {}, "cannot become an Other"),
        ({"a": "x"}, {"other": ""}, "other=''"),
        ({"a": "x"}, {"other": 3}, "other=3"),
        ({"a": "x"}, {"column": ""}, "column=''"),
    ],
)
def test_mappings_that_cannot_be(mapping, options, words):
    with pytest.raises(InvalidArgument, match=words):
        exact([0.5, 0.5], ["a", "b"]).merged(mapping, **options)


# --- sample


def test_samples_follow_the_release():
    release = made(np.array([0.6, 0.3, 0.1, -0.2]), np.full(4, 1e-3), ["a", "b", "c", "never"], ("item",))
    drawn = release.sample(100_000, seed=1)
    counts = pd.Series(drawn).value_counts()
    assert "never" not in counts
    for item, p in zip(release.items, release.probabilities, strict=True):
        assert abs(counts.get(item, 0) - 1e5 * p) <= 5 * math.sqrt(1e5 * p * (1 - p))
    assert release.sample(50, seed=1) == drawn[:50]
    assert release.sample(50) != release.sample(50)  # the same with a chance of 1e-19
    assert release.sample(0) == []
    assert isinstance(exact(zipf(3)).sample(1)[0], int)
    assert grouped().joint.sample(1, seed=0)[0] in grouped().joint.items


@pytest.mark.parametrize("options", [{"n": -1}, {"n": 1.5}, {"n": True}, {"n": 10**9}, {"n": 1, "seed": -1}])
def test_samples_that_cannot_be(options):
    with pytest.raises(InvalidArgument, match="needs to be a whole number"):
        exact(zipf(3)).sample(**options)


# --- files


def test_exports(tmp_path):
    release = exact([0.5, 0.3, 0.2], [uuid.UUID(int=1), uuid.UUID(int=2), Other("other")])
    for one in (release, grouped()):
        one.to_csv(tmp_path / "r.csv")
        one.to_parquet(tmp_path / "r.parquet")
        table = pyarrow.parquet.read_table(tmp_path / "r.parquet")
        assert table.equals(one.to_arrow().replace_schema_metadata(None))
        assert len(pd.read_csv(tmp_path / "r.csv")) == table.num_rows
        metadata = table.schema.metadata
        assert json.loads(metadata[b"crowdgram.guarantee"]) == one.guarantee.to_dict()
        assert metadata[b"crowdgram.sentence"].decode() == one.guarantee.sentence()


def test_names_of_columns_are_no_formulas(tmp_path):
    joint = made(zipf(2), np.full(2, 1e-3), [(1, "a"), (2, "a")], ("=1+1", "page"))
    joint.to_csv(tmp_path / "r.csv")
    assert (tmp_path / "r.csv").read_text().startswith('"\'=1+1","page"')


def test_exports_are_whole_or_not_there(tmp_path):
    with pytest.raises(UnwritableTarget):
        exact(zipf(3)).to_parquet(tmp_path / "none" / "r.parquet")
    with pytest.raises(UnwritableTarget):
        grouped().to_csv(tmp_path)
    assert list(tmp_path.iterdir()) == []


# --- the whole way


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
