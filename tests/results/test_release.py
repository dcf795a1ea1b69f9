"""The release as a value: what it holds, how it compares, what it says of an item."""

from __future__ import annotations

import copy
import dataclasses
import datetime
import pickle

import numpy as np
import pytest

from crowdgram import Other
from crowdgram.errors import InvalidArgument, UnknownItem

from .synthetic import exact, made, zipf


@pytest.fixture
def one():
    items = [f"item-{number:04}" for number in range(5)]
    return made(np.array([0.1, 0.4, 0.2, 0.2, 0.1]), np.full(5, 0.01), items, ("item",))


def test_top_is_sorted_and_stable(one):
    ranked = one.top(5)
    assert [e.probability for e in ranked] == sorted(one.probabilities, reverse=True)
    assert one.top(2) == ranked[:2]
    assert one.top(0) == []
    assert len(one.top(99)) == len(one) == 5
    for n in (-1, 1.5, True, "3"):
        with pytest.raises(InvalidArgument, match="n="):
            one.top(n)


def test_one_item(one):
    estimate = one.estimate("item-0003")
    assert estimate.item == "item-0003"
    assert estimate.probability == one.probability("item-0003") == one.probabilities[3]
    assert (estimate.lower, estimate.upper, estimate.standard_error) == (
        one.lower[3],
        one.upper[3],
        one.standard_errors[3],
    )
    for stranger in ("nowhere", 3, None, ["item-0003"]):
        with pytest.raises(InvalidArgument, match="item="):
            one.probability(stranger)


def test_items_are_in_a_release():
    release = exact(zipf(3), ["a", "b", Other("other")])
    assert "a" in release
    assert Other("other") in release
    assert "other" not in release
    assert [] not in release
    assert list(release) == ["a", "b", Other("other")]
    with pytest.raises(KeyError, match=r"^item='z': needs to be one of the release's items\.$"):
        release.probability("z")


def test_an_unknown_item_is_a_field_of_its_error(one):
    with pytest.raises(UnknownItem) as caught:
        one.estimate("nowhere")
    assert caught.value.item == "nowhere"
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.item, str(again)) == ("nowhere", str(caught.value))


def test_midnights_are_shown_as_days():
    days = [datetime.datetime(2024, month, 1) for month in (1, 2)]
    release = made(zipf(2), np.full(2, 1e-4), days, ("month",))
    assert release.texts(days[0]) == ("2024-01-01",)
    mixed = [days[0], datetime.datetime(2024, 1, 1, 5)]
    assert made(zipf(2), np.full(2, 1e-4), mixed, ("hour",)).texts(days[0]) == ("2024-01-01 00:00:00",)


def test_frozen(one):
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.weight = "users"
    for name in ("probabilities", "standard_errors", "lower", "upper"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(one, name)[0] = 0.5
    with pytest.raises(TypeError):
        one.items[0] = "x"


def test_equality(one):
    same = copy.deepcopy(one)
    assert one == same
    assert one == pickle.loads(pickle.dumps(one))
    assert one != dataclasses.replace(one, mechanism="laplace")
    assert one != dataclasses.replace(one, probabilities=one.probabilities[::-1].copy())
    assert one != dataclasses.replace(one, measured=None)
    assert dataclasses.replace(one, measured=None) != one
    assert one != "a release"
    numbers, booleans = exact([0.5, 0.5], [1, 0]), exact([0.5, 0.5], [True, False])
    assert numbers.items == booleans.items
    assert numbers != booleans


def test_a_release_of_the_wrong_length_cannot_be(one):
    with pytest.raises(InvalidArgument, match=r"^lower: needs a value for each of 5 items, not 4"):
        dataclasses.replace(one, lower=np.zeros(4))


def test_repr(one):
    assert repr(one) == "<Release of 5 items by gaussian, weight='rows', epsilon=1, delta=1e-06, add-remove>"
