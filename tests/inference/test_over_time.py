"""Items over time: figures of the releases, changes that cover, and refusal of what cannot be compared."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from crowdgram import GroupedRelease, Other, Series, SeriesPoint
from crowdgram.errors import InvalidArgument, UnknownItem
from crowdgram.mechanisms.estimate import Total

from ..results.synthetic import made, noisy, zipf

OTHER = Other("other")


def release(shares, items="abc", **changes):
    return replace(made(np.array(shares), np.full(len(shares), 1e-3), items, ("page",)), **changes)


@pytest.fixture
def series():
    return Series(
        {
            "1": release([0.5, 0.3, 0.2]),
            "2": release([0.2, 0.5, 0.3], "cab"),
            "3": release([0.4, 0.3, 0.3]),
        }
    )


@pytest.fixture
def found():
    """Items that were found: b is missing in the second, c in the first."""
    return Series(
        {
            "1": release([0.5, 0.3, 0.2], ["a", "b", OTHER]),
            "2": release([0.4, 0.3, 0.3], ["a", "c", OTHER]),
            "3": release([0.3, 0.2, 0.4, 0.1], ["a", "b", "c", Other("rest")]),
        }
    )


def test_points_are_the_estimates_and_differences_of_the_releases(series):
    points = series.points(["b", "a"])
    assert [(one.item, one.label) for one in points] == [(item, label) for item in "ba" for label in "123"]
    for place, one in enumerate(points[:3]):
        own = series.releases[place].estimate("b")
        assert (one.value, one.lower, one.upper) == (own.probability, own.lower, own.upper)
    assert points[0].change is None
    change = series.releases[2].difference("a", other=series.releases[1])
    assert (points[5].change, points[5].change_lower, points[5].change_upper) == (
        change.value,
        change.lower,
        change.upper,
    )
    assert points[5].change == pytest.approx(0.4 - 0.5)


def test_the_largest_items_are_shown(series, found):
    assert series.items(2) == ["a", "b"]
    assert found.items(9) == ["a", "c", "b"]  # never what stands for others
    assert [one.item for one in found.points(n=1)] == ["a"] * 3


def test_an_item_has_no_value_where_it_is_not_listed(found):
    (first, second, third) = found.points(["b"])
    assert (first.value is None, second.value is None, third.value is None) == (False, True, False)
    assert second == SeriesPoint("b", "2", None, None, None, None, None, None)
    assert third.change is None  # it was not listed before
    assert found.points(["c"])[2].change == pytest.approx(0.1)


def test_what_stands_for_others_is_an_item_only_if_all_lists_are_the_same(found):
    with pytest.raises(InvalidArgument, match="stands for other items at each time"):
        found.points([OTHER])
    same = Series({name: release([0.5, 0.3, 0.2], ["a", "b", OTHER]) for name in "12"})
    assert same.points([OTHER])[1].change == 0.0


def test_changes_cover():
    """400 changes of known size at level 95%: fewer than 350 covered has a chance below 1e-9. The seed is fixed."""
    rng = np.random.default_rng(3)
    covered = 0
    one, two = zipf(10), zipf(10, 1.3)
    for _ in range(40):
        points = Series({"1": noisy(one, 3e-3, rng), "2": noisy(two, 3e-3, rng)}).points(list(range(10)))
        covered += sum(
            point.change_lower <= two[point.item] - one[point.item] <= point.change_upper for point in points[1::2]
        )
    assert 350 <= covered <= 400


def test_counts():
    rows = Total(1000.0, 0.01, None, True)
    counted = Series({"1": release([0.5, 0.5], "ab", total=rows), "2": release([0.4, 0.6], "ab", total=rows)})
    (_, second) = counted.points(["a"], measure="counts")
    assert second.value == pytest.approx(400)
    assert second.change == pytest.approx(-100)
    assert second.change_lower < -100 < second.change_upper
    with pytest.raises(InvalidArgument, match="measure='counts': needs the total"):
        Series({"1": release([0.5, 0.5], "ab"), "2": release([0.4, 0.6], "ab", total=rows)}).points(measure="counts")


def test_what_is_lost_in_noise_is_unknown():
    lost = made(np.array([0.4, 0.3, 0.3]), np.full(3, 0.5), "abc", ("page",))
    point = Series({"1": release([0.5, 0.3, 0.2]), "2": lost}).points(["a"])[1]
    assert math.isnan(point.change)
    assert (point.change_lower, point.change_upper) == (-1.0, 1.0)


def test_named_by_their_periods():
    months = [release([0.5, 0.3, 0.2], parameters={"period": name}) for name in ("2026-10", "2026-11")]
    assert Series(months).labels == ("2026-10", "2026-11")
    assert repr(Series(months)) == "<Series of 2 releases, '2026-10' to '2026-11'>"
    for given in ([*months, months[0]], [months[0], release([0.5, 0.3, 0.2])]):
        with pytest.raises(InvalidArgument, match="need a period each"):
            Series(given)


@pytest.mark.parametrize(
    ("second", "words"),
    [
        (release([0.5, 0.3, 0.2], [1, 2, 3]), "of the same types.*They are '1' and '2'"),
        (release([0.5, 0.3, 0.2], weight="users"), "same weight"),
        (release([0.5, 0.3, 0.2], confidence=0.9), "same confidence"),
        (release([0.5, 0.3, 0.2], "abd"), "or both an item for all others"),
        (GroupedRelease(made(np.full(2, 0.5), np.full(2, 1e-3), [("x", "a"), ("x", "b")], ("by", "page"))), "a group"),
        (None, "needs to be a Release"),
    ],
)
def test_what_cannot_be_compared_is_refused(second, words):
    with pytest.raises(InvalidArgument, match=words):
        Series({"1": release([0.5, 0.3, 0.2]), "2": second})


def test_bad_arguments(series):
    for given in ({}, {"1": series.releases[0]}, []):
        with pytest.raises(InvalidArgument, match="at least two"):
            Series(given)
    for label in ("", " ", 7):
        with pytest.raises(InvalidArgument, match="the label"):
            Series({"1": series.releases[0], label: series.releases[1]})
    with pytest.raises(UnknownItem, match="items: 'z'"):
        series.points(["a", "z"])
    for items in ([], "ab", ["a", "a"]):
        with pytest.raises(InvalidArgument, match="items="):
            series.points(items)
    for n in (0, True, 1.5):
        with pytest.raises(InvalidArgument, match="n="):
            series.items(n)
    with pytest.raises(InvalidArgument, match="measure="):
        series.points(measure="rows")
