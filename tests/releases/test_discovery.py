"""Releases without a domain: the items are found, everything else is the item "other", and the promise holds."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest

import crowdgram
from crowdgram.errors import InvalidArgument, UnknownItem, UnreadableSource
from crowdgram.export import json_file
from crowdgram.mechanisms import DEFAULT_SHARE, Discover, Discovering
from crowdgram.mechanisms.discovery import ROUNDS
from crowdgram.privacy import GaussianEvent, LaplaceEvent, ThresholdEvent, check, delta_spent
from crowdgram.releases.registry import MECHANISMS
from crowdgram.results import Other

from ..thorough import combined

pytestmark = pytest.mark.slow

FINDING = [name for name, kind in MECHANISMS.items() if issubclass(kind, Discovering)]
EVERY_WAY = combined(FINDING, ["rows", "users"], ["add-remove", "replace"])


def table(words=("a", "b", "c"), users=600, kind=None):
    """Every user has each word once, the first twice, and a word of their own."""
    rows = [(user, word) for user in range(users) for word in (words[0], *words)]
    own = (lambda user: 10_000 + user) if isinstance(words[0], int) else (lambda user: f"own-{user}")
    rows += [(user, own(user)) for user in range(users)]
    return pa.table({"user": [r[0] for r in rows], "item": pa.array([r[1] for r in rows], kind)})


def release(source, **more):
    return crowdgram.release(source, **{"user": "user", "item": "item", "epsilon": 1.0, "delta": 1e-6, **more})


@pytest.fixture(scope="module")
def one():
    return release(table())


@pytest.mark.parametrize(("mechanism", "weight", "adjacency"), EVERY_WAY)
def test_every_mechanism_weight_and_adjacency(mechanism, weight, adjacency):
    made = release(table(), mechanism=mechanism, weight=weight, adjacency=adjacency, epsilon=3.0)
    assert made.items == ("a", "b", "c", Other("other"))
    # The rows are 2/5, 1/5, 1/5 and 1/5, for every user.
    assert made.probabilities == pytest.approx([0.4, 0.2, 0.2, 0.2], abs=0.2 if mechanism == "sample-one" else 0.05)
    assert made.guarantee.delta == 1e-6  # even Laplace noise: the items were found with a delta
    check(made.events, made.guarantee)
    threshold, *others = made.events
    assert isinstance(threshold, ThresholdEvent)
    assert made.threshold_delta == threshold.delta == 0.25e-6
    by_rounds = [event for event in others if event.purpose.startswith("items, round")]
    if made.parameters.get("branch") == "histogram":  # as users have few items, these two may choose it
        assert mechanism in ("auto", "laplace")
        assert not by_rounds
        assert delta_spent(made.events, 3.0) == threshold.delta
    else:
        assert len(by_rounds) == ROUNDS
        assert delta_spent(made.events, 3.0) > threshold.delta
    if mechanism in ("laplace", "sample-one"):
        assert isinstance(made.events[-1], LaplaceEvent)


def test_no_domain_means_discover(one):
    assert release(table(), domain="discover").items == one.items
    assert release(table(), mechanism="adaptive").parameters["discovery_share"] == DEFAULT_SHARE
    assert "found in the table" in one.about_items()
    assert "'other'" in one.about_items()
    assert "found in the table" in one._repr_html_()
    assert release(table(), domain=["a", "b"]).about_items() is None


def test_what_is_missed_is_said_beside_what_is_found(one):
    missed = one.missed
    own = one.estimate(one.other)
    assert (missed.value, missed.lower, missed.upper) == (own.probability, own.lower, own.upper)
    said = f"which the list misses, is {missed.value:.4f} (95% interval {missed.lower:.4f} to {missed.upper:.4f})"
    for text in (one.about_items(), one._repr_html_()):
        assert said in text
        assert "(3 listed)" in text
    assert release(table(), domain=["a", "b"]).missed is None


def test_what_groups_miss_is_said_for_all_of_them_together():
    """Rows of own words are 1/5 in both groups, and each group has an item for them."""
    rows = table(users=1500).to_pylist()
    source = pa.table({**{name: [row[name] for row in rows] for name in ("user", "item")}})
    source = source.append_column("half", pa.array([row["user"] % 2 for row in rows]))
    made = release(source, by="half", groups=[0, 1], epsilon=3.0)
    assert made.missed == made.joint.missed
    assert made.missed.value == pytest.approx(
        sum(one.probability for one in map(others_of, made.values())) / 2, abs=0.02
    )
    assert made.missed.lower <= 0.2 <= made.missed.upper or abs(made.missed.value - 0.2) < 0.03
    assert f"which the list misses, is {made.missed.value:.4f}" in made.joint.about_items()


def others_of(group):
    return group.estimate(group.other)


def test_nothing_found_is_all_other():
    for source in (table(users=5), table().slice(0, 0)):
        made = release(source)
        assert made.items == (Other("other"),)
        assert made.probabilities.tolist() == [1.0]


def test_an_item_called_other_is_not_the_other_item():
    made = release(table(words=("other", "other*", "c")))
    assert made.items == ("c", "other", "other*", Other("other**"))
    assert made.other == Other("other**") != "other**"
    assert made.probability("other") == pytest.approx(0.4, abs=0.1)
    assert made.probability(made.other) == made.probabilities[-1]
    with pytest.raises(UnknownItem):
        made.probability("other**")
    names = [str(item) for item in made.items]
    assert len(set(names)) == len(names)


def test_a_number_that_reads_like_the_name():
    made = release(table(words=(7, 8, 9), kind=pa.int64()), other="8")
    assert made.items == (7, 8, 9, Other("8*"))


def test_the_name_can_be_changed():
    assert release(table(), other="(rest)").items[-1] == Other("(rest)")


def test_a_public_domain_may_have_the_other_item_too():
    made = release(table(), domain=["c", "a"], other="rest", epsilon=3.0)
    assert made.items == ("c", "a", Other("rest"))
    assert made.probabilities == pytest.approx([0.2, 0.4, 0.4], abs=0.05)
    assert made.threshold_delta == 0
    assert made.missed is not None
    without = release(table(), domain=["c", "a"], epsilon=3.0)
    assert without.probabilities == pytest.approx([1 / 3, 2 / 3], abs=0.05)


def test_a_source_that_can_be_read_once_only():
    reader = table().to_reader()
    assert release(reader).items == ("a", "b", "c", Other("other"))


def test_nulls_are_dropped_and_not_other():
    rows = [(user, "a") for user in range(300)] + [(user, None) for user in range(300)] + [(None, "a")] * 300
    made = release(pa.table({"user": [r[0] for r in rows], "item": [r[1] for r in rows]}), epsilon=3.0)
    assert made.items == ("a", Other("other"))
    assert made.probabilities == pytest.approx([1.0, 0.0], abs=0.05)


# --- what leaves


def test_frames_say_which_item_is_other(one):
    for frame in (one.to_arrow().to_pandas(), one.to_pandas(), one.to_polars().to_pandas()):
        assert frame["item"].tolist() == ["a", "b", "c", "other"]
        assert frame["is_other"].tolist() == [False, False, False, True]
    assert "is_other" not in release(table(), domain=["a", "b"]).to_pandas()


def test_frames_of_integers_stay_integers():
    made = release(table(words=(7, 8, 9), kind=pa.int64()))
    assert made.to_arrow().column("item").to_pylist() == [7, 8, 9, None]
    assert str(made.to_pandas()["item"].dtype) == "Int64"
    assert made.to_polars()["item"].to_list() == [7, 8, 9, None]


def test_it_round_trips_through_a_file(one, tmp_path):
    called = release(table(words=("other", "b", "c")))
    for made in (one, called):
        made.save(tmp_path / "r.json", overwrite=True)
        again = crowdgram.load(tmp_path / "r.json")
        assert again == made
        assert again.items == made.items
        assert again.other == made.other
        assert again.events == made.events
    document = json.loads((tmp_path / "r.json").read_text())
    assert document["items"] == ["b", "c", "other", {"other": "other*"}]
    assert document["events"][0] == {"kind": "threshold", "purpose": "threshold for items", "delta": 2.5e-7}


def test_a_file_of_version_1_is_read(tmp_path):
    document = json_file.to_document(release(table(), domain=["a", "b"]))
    document["schema_version"] = 1
    (tmp_path / "old.json").write_text(json.dumps(document))
    assert crowdgram.load(tmp_path / "old.json").items == ("a", "b")


@pytest.mark.parametrize(
    "items", [[{"other": "o"}, "a", "b", "c"], ["a", "b", "c", {"others": "o"}], ["a", "b", "c", {"other": 1}]]
)
def test_damaged_other_items(one, items, tmp_path):
    document = {**json_file.to_document(one), "items": items}
    (tmp_path / "bad.json").write_text(json.dumps(document))
    with pytest.raises(UnreadableSource, match="damaged"):
        crowdgram.load(tmp_path / "bad.json")


def test_composing_needs_the_thresholds_delta_to_be_added(one):
    from dp_accounting import rdp

    with pytest.raises(InvalidArgument, match="without_thresholds"):
        one.to_dp_event()
    accountant = rdp.RdpAccountant()
    accountant.compose(one.to_dp_event(without_thresholds=True))
    assert accountant.get_epsilon(1e-6 - one.threshold_delta) < 1.2


# --- what must not leak, and what is refused


def test_stages_and_events_before_the_estimate_are_the_same_for_all_tables():
    heard, events = [], []
    for source in (table().slice(0, 0), table(users=3), table()):
        stages = []
        made = release(source, progress=stages.append)
        # What comes after the items follows from noisy looks.
        heard.append(stages[:3])
        events.append(made.events[:2])
    assert heard[0] == heard[1] == heard[2]
    assert any("part of the budget" in stage for stage in heard[0])
    assert events[0] == events[1] == events[2]


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ({"delta": 0.0}, r"delta=0.*1e-6"),
        ({"delta": 1e-200}, "delta"),
        ({"epsilon": 1e-4}, "epsilon"),
        ({"epsilon": 1e-3, "delta": 1e-12, "domain": Discover(0.001)}, "share=0.001"),
        ({"domain": Discover(0.9), "mechanism": "laplace"}, r"share=0.9.*laplace"),
        ({"domain": Discover(0.99), "mechanism": "gaussian"}, r"share=0.99.*gaussian"),
        ({"domain": Discover(0.99), "mechanism": "adaptive"}, r"share=0.99.*adaptive"),
        ({"other": ""}, "other"),
        ({"other": 5}, "other"),
    ],
    ids=str,
)
def test_refused_before_a_row_is_read(more, named, no_rows_read):
    with pytest.raises(InvalidArgument, match=named):
        release(table(), **more)


def test_the_watch_on_rows_works(no_rows_read):
    with pytest.raises(pytest.fail.Exception, match="rows were read"):
        release(table())


def test_auto_makes_rounds_where_discovery_leaves_too_little_for_laplace_noise():
    made = release(table(), domain=Discover(0.75))
    assert made.mechanism == "auto"
    assert isinstance(made.events[-1], GaussianEvent)
    assert np.isclose(made.probabilities.sum(), 1)
