"""The value that `reach` returns: its figures, frames, files and views."""

from __future__ import annotations

import datetime
import json
from dataclasses import replace

import numpy as np
import pyarrow.parquet as parquet
import pytest

import crowdgram
from crowdgram import Other, Quantity, Reach
from crowdgram.errors import InvalidArgument, UnknownItem, UnreadableSource, UnwritableTarget
from crowdgram.export.documents import parse, to_text
from crowdgram.present.reach import reach_sentences, reach_too_little
from crowdgram.privacy import Guarantee, LaplaceEvent

GUARANTEE = Guarantee(1.0)


ITEMS = ("a", "<b>", Other("other"))


def made(items=ITEMS, counts=(900.0, 40.0, 0.0), **changes):
    count = np.array(counts)
    fields = {
        "items": tuple(items),
        "counts": count,
        "standard_errors": np.full(len(count), 10.0),
        "lower": np.maximum(count - 20, 0),
        "upper": count + 20,
        "confidence": 0.95,
        "users": Quantity(1000.0, 980.0, 1020.0, 0.95),
        "left_out": Quantity(3.0, 0.0, 9.0, 0.95),
        "predicted_l1_error": 25.0,
        "guarantee": GUARANTEE,
        "events": (LaplaceEvent("users by item", 1, 1.0, len(count)),),
        "parameters": {"items": len(count), "noise": "laplace", "max_items_per_user": 2},
        "versions": {"crowdgram": "0.1.0"},
        "item_columns": ("page",),
    }
    return Reach(**{**fields, **changes})


def test_figures():
    reach = made()
    assert len(reach) == 3
    assert list(reach) == ["a", "<b>", Other("other")]
    assert "a" in reach
    assert [] not in reach
    first = reach.top(1)[0]
    assert (first.item, first.users, first.share) == ("a", 900.0, 0.9)
    # A count's error of 20 and 20 users of 1000 more or less, together.
    assert first.share_upper - first.share == pytest.approx(np.hypot(0.02, 0.9 * 0.02))
    assert reach.estimate("<b>").share_lower == pytest.approx(0.04 - np.hypot(0.02, 0.04 * 0.02))
    assert not reach.too_little
    assert made(predicted_l1_error=500.0).too_little
    assert reach.other == Other("other")
    assert "Reach of 3 items" in repr(reach)


def test_shares_stay_shares():
    reach = made(("a",), (1015.0,), users=Quantity(1000.0, 980.0, 1020.0, 0.95))
    assert reach.shares.tolist() == [1.0]
    assert reach.share_intervals[1].tolist() == [1.0]


def test_equality():
    assert made() == made()
    assert made() != made(predicted_l1_error=26.0)
    assert made((1, 2, 3)) != made((True, 2, 3))
    assert made() != 3
    with pytest.raises(ValueError, match="read-only"):
        made().counts[0] = 1


@pytest.mark.parametrize("n", [-1, 1.5, True])
def test_top_needs_a_whole_number(n):
    with pytest.raises(InvalidArgument, match="n="):
        made().top(n)


def test_unknown_items_and_wrong_lengths():
    with pytest.raises(UnknownItem, match="item='zzz'"):
        made().estimate("zzz")
    with pytest.raises(UnknownItem):
        made().estimate([])
    with pytest.raises(InvalidArgument, match="counts: needs a value for each of 3 items"):
        made(counts=(1.0, 2.0))


def test_frames_and_files(tmp_path):
    reach = made(("a", "=1+1", Other("other")))
    assert reach.to_arrow().column_names == [
        *("page", "users", "standard_error", "lower", "upper", "share", "share_lower", "share_upper", "is_other")
    ]
    assert reach.to_pandas()["users"].tolist() == [900.0, 40.0, 0.0]
    assert reach.to_polars()["share"].to_list() == [0.9, 0.04, 0.0]
    reach.to_csv(tmp_path / "r.csv")
    assert "'=1+1" in (tmp_path / "r.csv").read_text()  # no formula
    with pytest.raises(UnwritableTarget):
        reach.to_csv(tmp_path / "r.csv")
    reach.to_parquet(tmp_path / "r.parquet")
    about = parquet.read_schema(tmp_path / "r.parquet").metadata
    assert json.loads(about[b"crowdgram.guarantee"])["epsilon"] == 1.0
    assert made(item_columns=("share",)).heads == ("item",)


@pytest.mark.parametrize(
    "reach",
    [
        made(),
        made(left_out=None),
        made([("DE", datetime.date(2024, 1, day)) for day in (1, 2, 3)], item_columns=("country", "day")),
    ],
)
def test_a_saved_reach_comes_back(reach, tmp_path):
    reach.save(tmp_path / "r.json")
    assert Reach.load(tmp_path / "r.json") == reach
    assert crowdgram.load(tmp_path / "r.json") == reach
    with pytest.raises(UnreadableSource, match="is a saved reach, and a release is needed"):
        crowdgram.Release.load(tmp_path / "r.json")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"schema_version": 2}, "Install a newer Crowdgram"),
        ({"schema_version": "1"}, "Check that 'crowdgram reach'"),
        ({"items": ["a", "a", "b"]}, "distinct"),
        ({"counts": [900.0, 40.0, -1.0]}, "numbers from 0 to"),
        ({"predicted_errors": [1e300, 1.0, 1.0]}, "numbers from 0 to"),
        ({"parameters": {}}, "left_out needs the parameter max_items_per_user"),
        ({"parameters": {"max_items_per_user": "x"}}, "'max_items_per_user' is 'x'"),
        ({"versions": 5}, "versions need to be an object"),
        ({"upper": [1.0, 60.0, 20.0]}, "need to hold its counts"),
        ({"users": {"value": 5, "lower": 6, "upper": 7}}, "within an interval"),
        ({"users": {"value": 0.5, "lower": 0, "upper": 7}}, "at least one user"),
        ({"guarantee": {**GUARANTEE.to_dict(), "epsilon": 0.5}}, "do not keep its guarantee"),
        ({"events": None}, "damaged"),
        ({"counts": [1.0]}, "needs a value for each"),
    ],
)
def test_a_damaged_file_is_refused(changed, said):
    document = {**json.loads(to_text(made())), **changed}
    with pytest.raises(UnreadableSource, match=said):
        parse(json.dumps(document), "r.json")
    del document["users"]
    with pytest.raises(UnreadableSource):
        parse(json.dumps(document), "r.json")


def test_a_release_is_no_reach(tmp_path):
    (tmp_path / "r.json").write_text('{"schema": "something"}')
    with pytest.raises(UnreadableSource, match="has no schema"):
        Reach.load(tmp_path / "r.json")


def test_what_is_said():
    said = " ".join(reach_sentences(made()))
    assert "Users: 1,000 (95% interval 980 to 1,020)." in said
    assert "A user with more than 2 items counts in part" in said
    assert "The item 'other' stands for all items" in said
    assert "were found" not in said
    assert "counts in part" not in " ".join(reach_sentences(made(left_out=None)))
    assert reach_too_little(made()) is None
    assert "mostly noise" in reach_too_little(made(predicted_l1_error=900.0))


def test_a_notebook_shows_it_escaped():
    shown = made()._repr_html_()
    assert "&lt;b&gt;" in shown
    assert "<b>" not in shown.replace("<b>Users who have each item</b>", "")
    assert "Mostly noise" not in shown
    assert "The release is mostly noise" in replace(made(), predicted_l1_error=900.0)._repr_html_()


def test_it_composes():
    assert made().to_dp_event() is not None
