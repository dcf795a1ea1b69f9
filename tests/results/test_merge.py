"""Merged items are sums, in a release and within its groups."""

from __future__ import annotations

import datetime
import math
from dataclasses import replace

import numpy as np
import pytest

import crowdgram
from crowdgram import GroupedRelease, Other
from crowdgram.errors import InvalidArgument

from .synthetic import exact, grouped, made, noisy, zipf


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


def test_numbers_of_which_some_get_names_are_names():
    release = exact(zipf(3), [1, 2, 3])
    assert release.merged({1: "odd", 3: "odd"}).items == ("odd", "2")
    assert release.merged({1: 7}).items == (7, 2, 3)
    assert release.merged({1: "odd"}).parameters["items"] == 3
    assert release.merged({1: "odd"}, other="rest").parameters == {**release.parameters, "items": 2, "merged_from": 3}


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
        one.save(tmp_path / "r.json", overwrite=True)
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
        ({"a": 1, "b": 2**64}, {}, "integers of 64 bits"),
        ({"a": -1, "b": 2**63}, {}, "integers of 64 bits"),
        ({"a": "\ud800"}, {}, "lone surrogates"),
        (lambda _: datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC), {}, "without a time zone"),
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
