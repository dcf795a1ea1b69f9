"""Two releases are matched by item, or refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from crowdgram import Other
from crowdgram.errors import InvalidArgument
from crowdgram.inference.alignment import unmatched_shares
from crowdgram.privacy import LaplaceEvent

from ..results.synthetic import exact, made, zipf

OTHERS = ["a", "b", Other("other")]


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
