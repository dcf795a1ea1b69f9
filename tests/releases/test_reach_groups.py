"""`crowdgram.reach` by groups: users of each item in each group, and users of each group."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import crowdgram
from crowdgram import GroupedReach, Ledger, Other
from crowdgram.errors import AccuracyWarning, InvalidArgument, PrivacyWarning, UnknownItem

COUNTRIES, PAGES = ["FR", "DE"], ["a", "b"]


def table():
    """40 users in FR, of whom 20 have b beside a; 25 in DE, 10 of them in FR as well, who have a; one in IT."""
    rows = [(user, "FR", page) for user in range(40) for page in ["a"] * 3 + ["b"] * (user % 2)]
    rows += [(user, "DE", "a") for user in range(30, 55)] + [(99, "IT", "a"), (1, "FR", "x"), (None, "DE", "a")]
    return pd.DataFrame(rows, columns=["user", "country", "page"]).astype({"user": "Int64"})


def exact(**more):
    asked = {"user": "user", "item": "page", "by": "country", "groups": COUNTRIES, "domain": PAGES, "epsilon": 100.0}
    with pytest.warns(PrivacyWarning):
        return crowdgram.reach(table(), **{**asked, **more})


@pytest.mark.slow
@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
def test_users_are_counted_in_each_of_their_groups(adjacency):
    made = exact(adjacency=adjacency)
    assert isinstance(made, GroupedReach)
    assert made.groups == ("FR", "DE")
    assert made.by == "country"
    assert np.abs(made.joint.counts - [40, 20, 25, 0]).max() < 1
    again = [[own.users.value for own in exact(adjacency=adjacency).values()] for _ in range(10)]
    # If a user may be replaced, one release is off by more with a chance of 0.07, and the mean of ten below 1e-6.
    assert np.mean(again, axis=0) == pytest.approx([40, 25], abs=1.5)
    assert made.users.value == pytest.approx(55, abs=1)
    assert made["FR"].items == ("a", "b")
    assert made["FR"].estimate("b").share == pytest.approx(0.5, abs=0.06)
    assert made["DE"].top(1)[0].item == made.top(1)["DE"][0].item == "a"
    assert sum(made[group].predicted_l1_error for group in made) == pytest.approx(made.predicted_l1_error)
    assert made.guarantee.delta == 0
    for own in made.values():
        assert own.users.lower <= own.users.value <= own.users.upper


def test_each_group_has_its_other_item():
    made = exact(other="rest")
    assert made["FR"].other == Other("rest")
    assert made["FR"].estimate(Other("rest")).users == pytest.approx(1, abs=1)
    assert made["FR"].users.value == pytest.approx(40, abs=1.5)


def test_groups_and_items_are_found():
    with pytest.warns(PrivacyWarning):
        found = crowdgram.reach(
            table(), user="user", item="page", by="country", epsilon=100.0, delta=1e-6, where="user is not null"
        )
    assert found.groups == ("DE", "FR")
    assert found["DE"].estimate("a").users == pytest.approx(25, abs=3)
    frame = found.to_pandas()
    assert frame["is_other"].sum() == 3  # of both groups, and of none
    last = frame.iloc[-1]
    assert np.isnan(last["group_users"])
    assert np.isnan(last["share"])


def test_files_frames_and_pages(tmp_path):
    made = exact()
    made.save(tmp_path / "r.json")
    loaded = crowdgram.load(tmp_path / "r.json")
    assert loaded == made
    assert list(made.to_arrow().column_names)[:3] == ["country", "group_users", "page"]
    assert made.to_polars().height == 4
    made.to_csv(tmp_path / "r.csv")
    made.to_parquet(tmp_path / "r.parquet")
    made.to_html(tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text()
    assert "Users who have each page, for each country" in page
    assert "of the group&#39;s users" in page
    assert "FR" in made._repr_html_()
    assert made.facts()["question"] == "Users who have each item: page for each country"
    document = json.loads((tmp_path / "r.json").read_text())
    document["group_users"].pop()
    (tmp_path / "bad.json").write_text(json.dumps(document))
    with pytest.raises(crowdgram.CrowdgramError, match="damaged release: group_users: needs a number of users for"):
        crowdgram.load(tmp_path / "bad.json")
    with pytest.raises(crowdgram.CrowdgramError, match="is a saved reach by groups, not a reach"):
        crowdgram.Reach.load(tmp_path / "r.json")


def test_a_ledger_holds_it(tmp_path):
    ledger = Ledger.create(tmp_path / "l.ledger", 100.0, 1e-6)
    made = exact(ledger=ledger)
    assert crowdgram.recover(ledger) == made


def test_groups_that_are_mostly_noise_are_named():
    """Each of forty groups of nobody is seen to be noise with a chance of a half or more."""
    rows = pd.DataFrame({"user": range(3000), "g": ["big"] * 3000, "i": ["x", "y"] * 1500})
    nobody = [f"g{number}" for number in range(40)]
    with pytest.warns(AccuracyWarning, match="of 41 groups are mostly noise.*'g"):
        made = crowdgram.reach(
            rows, user="user", item="i", by="g", groups=["big", *nobody], domain=["x", "y"], epsilon=1.0
        )
    assert len(made.too_little) >= 5
    assert "big" not in made.too_little


def test_what_is_refused():
    with pytest.raises(InvalidArgument, match="needs by"):
        crowdgram.reach(table(), user="user", item="page", groups=COUNTRIES, domain=PAGES, epsilon=1.0)
    with pytest.raises(UnknownItem, match="one of the release's groups, which are 'FR', 'DE'"):
        exact()["IT"]
