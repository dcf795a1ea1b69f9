"""Releases on disk: the same value back, and nothing else taken for one."""

from __future__ import annotations

import datetime
import json
import uuid
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import crowdgram
from crowdgram.errors import UnreadableSource
from crowdgram.export import json_file, load
from crowdgram.mechanisms.estimate import Divisor
from crowdgram.privacy import GaussianEvent, Guarantee, LaplaceEvent
from crowdgram.results import Release
from crowdgram.results.covariance import Measured

from ..results import synthetic


def made(items=("b", "a", "ü\n$"), events=None):
    k = len(items)
    p = np.arange(1, k + 1) / (k * (k + 1) / 2)
    return Release(
        items=tuple(items),
        probabilities=p,
        standard_errors=np.full(k, 0.1 + 0.2),
        lower=p / 2,
        upper=np.minimum(p * 2, 1),
        confidence=0.95,
        predicted_l1_error=0.25,
        guarantee=Guarantee(1.0, 1e-6, "replace"),
        events=events or (LaplaceEvent("cap", 2**20, 1e8 / 3, 5), GaussianEvent("counts", 2.0**30, 1e11 / 3, k)),
        mechanism="gaussian",
        weight="rows",
        parameters={"items": k, "max_rows_per_user": 8},
        versions={"crowdgram": "0.1.0"},
    )


def test_round_trip(tmp_path):
    for number, one in enumerate([made(), made([3, -1, 2**62]), made([3, 1, 2**63]), made(["only"])]):
        path = tmp_path / f"{number}.json"
        one.save(path)
        for again in (load(path), crowdgram.load(str(path)), Release.load(path)):
            assert again == one
            assert again.items == one.items
            assert again.events == one.events
            assert again.guarantee == one.guarantee
            assert np.array_equal(again.probabilities, one.probabilities)


@pytest.mark.parametrize(
    "change",
    [
        lambda document: document["guarantee"].update(epsilon=0.05),
        lambda document: document["guarantee"].update(delta=0.0),
        lambda document: document["events"][1].update(sigma=1e9),
    ],
)
def test_a_guarantee_that_its_events_do_not_keep_is_refused(tmp_path, change):
    made().save(tmp_path / "r.json")
    document = json.loads((tmp_path / "r.json").read_text())
    load(tmp_path / "r.json")
    change(document)
    (tmp_path / "r.json").write_text(json.dumps(document))
    with pytest.raises(UnreadableSource, match="events do not keep its guarantee"):
        load(tmp_path / "r.json")


def test_top_level_keys(tmp_path):
    made().save(tmp_path / "r.json")
    document = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))
    assert document["items"] == ["b", "a", "ü\n$"]
    assert document["probabilities"] == pytest.approx([1 / 6, 2 / 6, 3 / 6])
    assert document["guarantee"] == {"epsilon": 1.0, "delta": 1e-6, "adjacency": "replace", "unit": "user"}
    assert [event["kind"] for event in document["events"]] == ["laplace", "gaussian"]
    assert document["mechanism"] == "gaussian"
    assert document["weight"] == "rows"
    assert document["schema_version"] == json_file.SCHEMA_VERSION


def test_a_real_release_round_trips(tmp_path):
    one = crowdgram.release(
        crowdgram_table(),
        user="user",
        item="item",
        epsilon=1.0,
        delta=1e-6,
        domain=[0, 1, 2],
        mechanism="gaussian",
    )
    one.save(tmp_path / "r.json")
    assert load(tmp_path / "r.json") == one


def crowdgram_table():
    from crowdgram.synth import Crowd

    return Crowd(users=20, rows=3, items=3, seed=1).table()


# --- reading


def saved(tmp_path, **changes):
    document = json_file.to_document(made())
    for key, value in changes.items():
        if value is DELETED:
            del document[key]
        else:
            document[key] = value
    path = tmp_path / "r.json"
    path.write_text(json.dumps(document))
    return path


DELETED = object()


def refused(path, *words):
    with pytest.raises(UnreadableSource) as caught:
        load(path)
    for word in (path.name, *words):
        assert word in str(caught.value)


@pytest.mark.parametrize("schema", ["other", None, DELETED, 5])
def test_another_schema(tmp_path, schema):
    refused(saved(tmp_path, schema=schema), "crowdgram-release")


def test_a_newer_version(tmp_path):
    refused(saved(tmp_path, schema_version=json_file.SCHEMA_VERSION + 1), "newer Crowdgram")


@pytest.mark.parametrize("version", [0, None, "1", DELETED])
def test_a_version_that_never_was(tmp_path, version):
    path = saved(tmp_path, schema_version=version)
    refused(path, "schema version")
    with pytest.raises(UnreadableSource) as caught:
        load(path)
    assert "newer" not in str(caught.value)


@pytest.mark.parametrize(
    "key",
    [
        "items",
        "probabilities",
        "standard_errors",
        "lower",
        "upper",
        "guarantee",
        "events",
        "mechanism",
        "weight",
    ],
)
def test_a_missing_key_is_named(tmp_path, key):
    refused(saved(tmp_path, **{key: DELETED}), "damaged", repr(key))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("items", ["a", "b"]),
        ("items", ["a", "a", "b"]),
        ("items", [1.5, "a", "b"]),
        ("items", [True, "a", "b"]),
        ("items", [["x"], "a", "b"]),
        ("items", None),
        ("probabilities", [0.5, 0.5]),
        ("probabilities", [0.5, 0.4, 0.4]),
        ("probabilities", [1.5, -0.5, 0.0]),
        ("probabilities", ["a", "b", "c"]),
        ("probabilities", [[1], [0], [0]]),
        ("upper", [float("nan"), 1, 1]),
        ("lower", "none"),
        ("confidence", "high"),
        ("guarantee", {"epsilon": -1}),
        ("guarantee", []),
        ("guarantee", None),
        ("events", [{"kind": "magic"}]),
        ("events", [5]),
        ("events", 5),
        ("weight", "\x1b[31m"),
        ("parameters", 5),
        ("versions", None),
        ("item_columns", ["a", "b"]),
        ("item_columns", []),
        ("item_kinds", ["date"]),
        ("item_kinds", ["uuid"]),
        ("item_kinds", ["boolean"]),
        ("item_kinds", []),
        ("item_kinds", None),
        ("grouped", True),
        ("measured", [0.5]),
        ("measured", ["x", "y", "z"]),
        ("other_errors", [-1, 0, 0]),
        ("items", "abc"),
        ("items", [7, "a", "b"]),
        ("items", [-1, 2**63, 3]),
        ("items", [1, 2, 2**64]),
        ("item_kinds", ["magic"]),
        ("item_kinds", [["string"]]),
        ("item_columns", "c"),
        ("item_columns", [5]),
        ("mechanism", 5),
        ("versions", {"numpy": 2}),
        ("parameters", []),
        ("predicted_l1_error", -0.1),
        ("predicted_l1_error", 1e300),
        ("noise_errors", [1e300, 0, 0]),
    ],
)
def test_damage_is_noticed(tmp_path, key, value):
    refused(saved(tmp_path, **{key: value}), "damaged")


@pytest.mark.parametrize(
    ("name", "value", "needed"),
    [
        ("max_rows_per_user", "x", "whole number of at least 1"),
        ("max_rows_per_user", 8.5, "whole number of at least 1"),
        ("max_rows_per_user", True, "whole number of at least 1"),
        ("rows_above_bound", {"a": 1}, "a number"),
        ("rows_above_bound_low", 1e300, "a number"),
        ("released_on", 20260101, "text"),
        ("of another version", [1], "a number, a text, true or false"),
    ],
)
def test_a_parameter_of_another_type_is_named(tmp_path, name, value, needed):
    refused(saved(tmp_path, parameters={"items": 3, name: value}), f"its parameter {name!r} is", needed)


def test_parameters_that_are_not_known_are_kept(tmp_path):
    given = {"items": 3, "max_rows_per_user": None, "of another version": False, "and another": 1.5}
    assert load(saved(tmp_path, parameters=given)).parameters == given


@pytest.mark.parametrize("key", ["items", "mechanism", "parameters"])
def test_half_a_character_is_no_text(tmp_path, key):
    half, whole = "a \ud83d", "a \U0001f600"
    for text in (half, whole):
        path = saved(tmp_path, **{key: {"items": [text, "b", "c"], "parameters": {text: 1}}.get(key, text)})
        assert "\\ud83d" in path.read_text()
        if text == half:
            refused(path, "is damaged", "half a character")
    load(path).save(tmp_path / "again.json")


@pytest.mark.parametrize(
    ("content", "said"),
    [("NaN", "NaN, which is no number"), ("-Infinity", "-Infinity, which is no number"), ("1e999", "inf, and needs")],
)
def test_what_is_no_number(tmp_path, content, said):
    path = saved(tmp_path, predicted_l1_error=0.125)
    path.write_text(path.read_text().replace("0.125", content))
    refused(path, said)


def test_timestamps_have_no_zone(tmp_path):
    items = [f"2024-01-0{day}T00:00:00" for day in (1, 2, 3)]
    assert load(saved(tmp_path, item_kinds=["timestamp"], items=items)).items[2] == datetime.datetime(2024, 1, 3)
    zoned = ["0001-01-01T00:00:00+14:00", *items[1:]]
    refused(saved(tmp_path, item_kinds=["timestamp"], items=zoned), "timestamps without a time zone")


@pytest.mark.parametrize("content", [b"", b"{", b"user,item\n", b"\xff\xfe", b"[" * 100_000, b'"text"', b"[]", b"null"])
def test_what_is_no_release(tmp_path, content):
    (tmp_path / "r.json").write_bytes(content)
    refused(tmp_path / "r.json", "release")


def test_no_file_and_a_folder(tmp_path):
    refused(tmp_path / "none.json", "No such file")
    refused(tmp_path, "directory")


def test_saving_again_replaces_if_asked(tmp_path):
    made().save(tmp_path / "r.json")
    made(["x"]).save(tmp_path / "r.json", overwrite=True)
    assert load(tmp_path / "r.json").items == ("x",)


def test_noise_and_divisor_round_trip(tmp_path):
    one = replace(made(), noise_errors=np.array([0.01, 0.02, 0.03]), divisor=Divisor(0.25, 0.125))
    one.save(tmp_path / "r.json")
    again = load(tmp_path / "r.json")
    assert again == one
    assert again.divisor == Divisor(0.25, 0.125)
    assert again.noise_errors == pytest.approx([0.01, 0.02, 0.03])
    assert one != replace(one, divisor=Divisor(0.25, 0.12))


@pytest.mark.parametrize("version", [1, 2])
def test_old_files_were_divided_by_their_own_sum(tmp_path, version):
    made().save(tmp_path / "r.json")
    document = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))
    for key in ("divisor", "noise_errors"):
        del document[key]
    (tmp_path / "r.json").write_text(json.dumps({**document, "schema_version": version}))
    old = load(tmp_path / "r.json")
    assert old.divisor == Divisor(own=1.0, error=0.0)
    assert Measured.of(old).noise == pytest.approx(old.standard_errors**2)


@pytest.mark.parametrize(
    "divisor",
    [DELETED, None, {}, {"own": 1.0}, {"own": 1.1, "error": 0}, {"own": 0, "error": -1}, {"own": "x", "error": 0}, [1]],
)
def test_a_divisor_that_cannot_be(tmp_path, divisor):
    refused(saved(tmp_path, divisor=divisor), "damaged release")


def test_joint_and_grouped_releases_round_trip(tmp_path):
    groups = synthetic.grouped(1e-3)
    for number, saved in enumerate([groups.joint, groups.joint.marginal("page"), groups, groups["DE"]]):
        saved.save(tmp_path / f"{number}.json")
        again = crowdgram.load(tmp_path / f"{number}.json")
        assert type(again) is type(saved)
        assert again == saved
    again = Release.load(tmp_path / "2.json")
    assert again.item_columns == ("country", "page")


@pytest.mark.parametrize(
    "items",
    [
        [True, False],
        [datetime.date(2024, 1, 31), datetime.date(1, 1, 1)],
        [datetime.datetime(2024, 1, 31, 12, 30, 0, 7), datetime.datetime(1, 1, 1)],
        [uuid.UUID(int=5), uuid.UUID(int=6)],
        [(datetime.date(2024, 1, 31), True, 5), (datetime.date(2024, 1, 31), False, 5)],
    ],
    ids=lambda items: type(items[0]).__name__,
)
def test_items_of_every_kind_round_trip(items, tmp_path):
    columns = [f"c{k}" for k in range(len(items[0]))] if isinstance(items[0], tuple) else ["c"]
    one = synthetic.made(np.array([0.25, 0.75]), np.full(2, 0.1), items, columns)
    one.save(tmp_path / "r.json")
    again = crowdgram.load(tmp_path / "r.json")
    assert again == one
    assert again.items == tuple(items)
    assert [type(v) for v in again.items] == [type(v) for v in items]
    assert again.to_arrow().num_rows == len(again.to_pandas()) == len(again.to_polars()) == 2
    assert "interval" in again._repr_html_()
    again.plot(2)


def test_a_date_release_end_to_end(tmp_path):
    table = pa.table({"user": [1, 2, 2], "day": pa.array([datetime.date(2024, 1, 1)] * 3)})
    one = crowdgram.release(table, user="user", item="day", epsilon=1.0, domain=["2024-01-01", "2024-01-02"])
    assert one.items == (datetime.date(2024, 1, 1), datetime.date(2024, 1, 2))
    assert one.item_columns == ("day",)
    one.save(tmp_path / "r.json")
    assert crowdgram.load(tmp_path / "r.json") == one


def test_a_file_of_version_one_is_read(tmp_path):
    document = json_file.to_document(made(["a", "b"]))
    for later in ("item_columns", "item_kinds", "measured", "other_errors", "grouped"):
        document.pop(later, None)
    (tmp_path / "r.json").write_text(json.dumps({**document, "schema_version": 1}))
    again = crowdgram.load(tmp_path / "r.json")
    assert again.items == ("a", "b")
    assert again.item_columns == ("item",)
    assert again.measured is None
    assert again.marginal("item") is again


@pytest.mark.parametrize("confidence", [0.0, 1.0, -0.5, 2.0, "nan"])
def test_a_confidence_that_cannot_be_is_refused(tmp_path, confidence):
    refused(saved(tmp_path, confidence=confidence), "its confidence is", "not between 0 and 1")
