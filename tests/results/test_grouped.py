"""One distribution for each group, out of one joint release."""

from __future__ import annotations

import functools
import pickle

import numpy as np
import pandas as pd
import pytest

import crowdgram
from crowdgram import GroupedRelease
from crowdgram.errors import InvalidArgument, InvalidDomain

from .synthetic import made, zipf


def visits():
    """Everybody is in all groups: DE and FR differ in what they read."""
    rows = [
        (user, country, page)
        for user in range(1500)
        for country, pages in (("DE", "aab"), ("FR", "abb"), ("IT", "c"))
        for page in pages
    ]
    return pd.DataFrame(rows, columns=["user", "country", "page"])


def grouped(**more):
    options = {"user": "user", "item": "page", "by": "country", "groups": ["FR", "DE", "IT", "XX"], "epsilon": 5.0}
    return crowdgram.release(visits(), **{**options, "domain": ["a", "b", "c"], **more})


@functools.cache
def one():
    """A release by groups, for all who only look at it."""
    return grouped()


@pytest.mark.parametrize("weight", ["rows", "users"])
@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
def test_one_distribution_for_each_group(weight, adjacency):
    """Each user is in every group; IT has 214 users' weight and noise of scale 0.4: 0.05 is 26 scales away."""
    made = grouped(weight=weight, adjacency=adjacency, mechanism="laplace", max_rows_per_user=7)
    assert isinstance(made, GroupedRelease)
    assert made.groups == tuple(made) == ("FR", "DE", "IT", "XX")
    assert made.by == "country"
    assert len(made) == 4
    assert made["DE"].probability("a") == pytest.approx(2 / 3, abs=0.05)
    assert made["FR"].probability("a") == pytest.approx(1 / 3, abs=0.05)
    assert made["IT"].probability("c") == pytest.approx(1, abs=0.05)
    assert made.shares.probability("DE") == pytest.approx(3 / 7, abs=0.05)
    # An empty group is seen at 5 times its own noise in fewer than 1 of 10^6 runs; below, 0.1 is a safe bound.
    assert made["XX"].predicted_l1_error > 0.1 > 5 * made["DE"].predicted_l1_error
    # One event for all groups: the budget is not multiplied, nor split, by their number.
    assert len(made.events) == 1
    assert made.events[0].dimension == 12
    assert made.guarantee.epsilon == 5.0
    assert made["DE"].guarantee == made.guarantee


def test_groups_are_a_mapping():
    made = one()
    assert set(made.keys()) == {"DE", "FR", "IT", "XX"}
    assert "DE" in made
    assert "nowhere" not in made
    assert made.get("nowhere") is None
    with pytest.raises(KeyError):
        made["nowhere"]
    assert made["DE"] is made["DE"]
    assert "country" in repr(made)
    assert pickle.loads(pickle.dumps(made)) == made
    assert made == GroupedRelease(made.joint)
    assert made != grouped()
    with pytest.raises(InvalidArgument):
        GroupedRelease(made["DE"])


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


def test_groups_of_joint_items():
    table = visits().assign(hour=lambda t: t.user % 2)
    made = crowdgram.release(
        table,
        user="user",
        item=["page", "hour"],
        by={"c": "lower(country)"},
        groups=["de", "fr"],
        epsilon=5.0,
        domain={"page": ["a", "b"], "hour": [0, 1]},
    )
    assert made.by == "c"
    assert made["de"].item_columns == ("page", "hour")
    assert made["de"].marginal("page").probability("a") == pytest.approx(2 / 3, abs=0.1)


@pytest.mark.parametrize(
    ("more", "error", "words"),
    [
        ({"groups": None}, InvalidArgument, "^delta=0: without groups,"),
        ({"by": None}, InvalidArgument, "needs by"),
        ({"groups": ["DE", "DE"]}, InvalidDomain, "groups: holds 'DE' more than once"),
        ({"groups": []}, InvalidDomain, "groups: is empty"),
        ({"groups": [1.5]}, InvalidDomain, "groups: holds 1.5"),
        ({"domain": None}, InvalidArgument, "^delta=0: without domain,"),
    ],
)
def test_groups_that_cannot_serve(more, error, words, no_rows_read):
    with pytest.raises(error, match=words):
        grouped(**more)


def test_what_is_true_of_all_groups_is_there():
    for name in ("mechanism", "weight", "parameters", "predicted_l1_error", "guarantee", "events"):
        assert getattr(one(), name) == getattr(one().joint, name)


def test_the_top_of_each_group():
    found = one().top(2)
    assert list(found) == list(one())
    assert found["DE"] == one()["DE"].top(2)
    assert [each.item for each in found["FR"]] == ["b", "a"]
    with pytest.raises(InvalidArgument, match="n=-1"):
        one().top(-1)
