"""Items that are found where there are several columns, groups, counts, filters or any type; what "other" is then."""

from __future__ import annotations

import datetime
import json
import sqlite3
import uuid

import pyarrow as pa
import pytest
from pyarrow import csv

import crowdgram
from crowdgram.errors import InvalidArgument
from crowdgram.export import json_file, write_csv
from crowdgram.mechanisms import Discover
from crowdgram.privacy import ThresholdEvent, check
from crowdgram.results import Other

pytestmark = pytest.mark.slow

OTHER, REST = Other("other"), Other("rest")
USERS = 900


def visits():
    """A third of all users each in DE, FR and IT: home and search twice, in DE basket too, and a page of their own.

    And one visit each to a country of their own.
    """
    rows = []
    for user in range(USERS):
        country = ("DE", "FR", "IT")[user % 3]
        rows += [(user, country, "home", 2), (user, country, "search", 2), (user, country, f"own-{user}", 1)]
        rows += [(user, country, "basket", 1)] if country == "DE" else []
        rows += [(user, f"land-{user}", "home", 1), (user, "FR", "home", 0), (user, "IT", "home", None)]
    names = ("user", "country", "page", "n")
    return pa.table(dict(zip(names, zip(*rows, strict=True), strict=True)))


VISITS = visits()
TOTAL = USERS * 6 + USERS // 3


def release(source=VISITS, **more):
    given = {"user": "user", "item": "page", "count": "n", "epsilon": 6.0, "delta": 1e-6, **more}
    return crowdgram.release(source, **given)


@pytest.fixture(scope="module")
def joint():
    return release(item=["country", "page"])


@pytest.fixture(scope="module")
def grouped():
    return release(by="country")


# --- several item columns


def test_combinations_are_found_and_the_rest_is_one_item(joint):
    pairs = [("DE", "basket"), ("DE", "home"), ("DE", "search")]
    pairs += [(country, page) for country in ("FR", "IT") for page in ("home", "search")]
    assert joint.items == (*pairs, (OTHER, OTHER))
    assert joint.other == (OTHER, OTHER)
    assert joint.probability(joint.other) == pytest.approx(2 * USERS / TOTAL, abs=0.03)
    assert joint.probability(("DE", "home")) == pytest.approx(2 * USERS / 3 / TOTAL, abs=0.03)
    assert isinstance(joint.events[0], ThresholdEvent)
    check(joint.events, joint.guarantee)


def test_a_marginal_keeps_what_was_not_found_apart(joint):
    countries = joint.marginal("country")
    assert countries.items == ("DE", "FR", "IT", OTHER)
    assert countries.other == OTHER
    assert countries.probability("DE") == pytest.approx(sum(joint.probabilities[:3]))
    assert countries.probability(OTHER) == pytest.approx(joint.probabilities[-1])
    assert "not listed" in countries.about_items()


def test_a_conditional_is_among_what_was_found(joint):
    pages = joint.conditional("page", country="DE")
    assert pages.items == ("basket", "home", "search")
    assert pages.other is None
    assert pages.about_items().endswith("left out.")
    assert pages.probabilities == pytest.approx([0.2, 0.4, 0.4], abs=0.08)
    assert joint.conditional(country=OTHER).items == (OTHER,)


def test_frames_and_files_of_joint_items(joint, tmp_path):
    for frame in (joint.to_pandas(), joint.to_arrow().to_pandas(), joint.to_polars().to_pandas()):
        assert frame["country"].tolist()[-2:] == ["IT", "other"]
        assert frame["page"].tolist()[-2:] == ["search", "other"]
        assert frame["is_other"].tolist() == [False] * 7 + [True]
    joint.save(tmp_path / "joint.json")
    assert crowdgram.load(tmp_path / "joint.json") == joint
    document = json.loads((tmp_path / "joint.json").read_text())
    assert document["items"][-1] == [{"other": "other"}] * 2
    assert document["item_kinds"] == ["string", "string"]
    assert "other" in joint._repr_html_()
    joint.plot()


def test_its_name_is_unlike_every_value_of_every_column():
    source = pa.table({"user": [u for u in range(400) for _ in range(2)], "a": ["other", "x"] * 400, "b": [1, 2] * 400})
    made = release(source, item=["a", "b"], count=None)
    assert made.items == (("other", 1), ("x", 2), (Other("other*"),) * 2)
    assert made.marginal("a").items == ("other", "x", Other("other*"))
    assert made.to_arrow()["b"].to_pylist() == [1, 2, None]
    assert str(made.to_pandas()["b"].dtype) == "Int64"


def test_filters_and_computed_items():
    made = release(item={"land": "lower(country)"}, where="page <> 'home' and country <> 'FR'")
    assert made.items == ("de", "it", OTHER)
    assert made.probabilities == pytest.approx([4 / 7, 3 / 7, 0.0], abs=0.05)


VALUES = {
    "date": [datetime.date(2024, 2, 29), datetime.date(2023, 1, 1)],
    "timestamp": [datetime.datetime(2024, 2, 29, 12, 30, 0, 7), datetime.datetime(2023, 1, 1)],
    "boolean": [True, False],
    "uuid": [uuid.UUID(int=2**100), uuid.UUID(int=5)],
    "integer": [2**62, -3],
    "string": ["e\u0301", "\u00e9"],
}


@pytest.mark.parametrize("kind", VALUES)
def test_every_type_is_found_as_what_it_is(kind, tmp_path):
    import ibis

    connection = ibis.duckdb.connect()
    users = [user for user in range(400) for _ in range(2)]
    values = VALUES[kind] * 400
    text = [str(value) for value in values] if kind == "uuid" else values
    connection.create_table("t", ibis.memtable(pa.table({"user": users, "item": text})))
    table = connection.table("t")
    if kind == "uuid":
        table = table.mutate(item=table.item.cast("uuid"))
    made = release(table, item="item", count=None)
    assert made.items == (*sorted(VALUES[kind]), OTHER)
    assert [type(item) for item in made.items[:-1]] == [type(value) for value in VALUES[kind]]
    made.save(tmp_path / "r.json")
    again = crowdgram.load(tmp_path / "r.json")
    assert again.items == made.items
    assert again == made
    assert made.to_pandas()["is_other"].tolist() == [False, False, True]
    assert len(made.to_polars()) == made.to_arrow().num_rows == 3


def test_items_of_a_database(tmp_path):
    with sqlite3.connect(tmp_path / "v.db") as connection:
        VISITS.to_pandas().astype({"n": "Int64"}).to_sql("visits", connection, index=False)
    made = release(crowdgram.Database(str(tmp_path / "v.db"), "visits"), item="page")
    assert made.items == ("basket", "home", "search", OTHER)


# --- groups


def test_groups_and_their_items_are_found_together(grouped):
    assert grouped.groups == ("DE", "FR", "IT")
    assert grouped["DE"].items == ("basket", "home", "search", OTHER)
    assert grouped["FR"].items == ("home", "search", OTHER)
    assert grouped["FR"].probabilities == pytest.approx([0.4, 0.4, 0.2], abs=0.05)  # its own "other" is a fifth
    assert grouped.shares.items == ("DE", "FR", "IT", OTHER)
    assert grouped.shares.probability(OTHER) == pytest.approx(USERS / TOTAL, abs=0.03)  # the countries of one user each
    assert len(grouped) == 3
    assert OTHER not in grouped
    with pytest.raises(KeyError):
        grouped[OTHER]
    check(grouped.events, grouped.guarantee)
    assert "found in the table" in grouped["DE"].about_items()


def test_given_groups_are_all_there_in_their_order():
    made = release(by="country", groups=["IT", "nobody", "DE"])
    assert made.groups == ("IT", "nobody", "DE")
    assert made["nobody"].items == (OTHER,)
    assert made["IT"].items == ("home", "search", OTHER)
    assert made["DE"].items == ("basket", "home", "search", OTHER)
    assert set(made.shares.items) == set(made.groups)  # rows of other groups are dropped
    assert made.shares.probability("IT") == pytest.approx(5 / 11, abs=0.04)


@pytest.mark.parametrize("other", [None, "rest"])
def test_given_items_of_groups_that_are_found(other):
    made = release(by="country", domain=["search", "home"], other=other)
    mark = REST if other else OTHER
    assert made.groups == ("DE", "FR", "IT")
    assert made["DE"].items == ("home", "search", mark)
    # Without a name for them, rows outside the list of items are dropped: a third of DE's.
    expected = [1 / 3, 1 / 3, 1 / 3] if other else [1 / 2, 1 / 2, 0]
    assert made["DE"].probabilities == pytest.approx(expected, abs=0.06)
    assert made.shares.other == mark


def test_public_lists_may_have_an_other_item_in_each_group():
    made = release(by="country", groups=["IT", "DE"], domain=["home"], other="rest", delta=0.0)
    assert made.joint.items == (("IT", "home"), ("DE", "home"), ("IT", REST), ("DE", REST))
    assert made["IT"].probabilities == pytest.approx([0.4, 0.6], abs=0.05)
    assert made["DE"].probabilities == pytest.approx([1 / 3, 2 / 3], abs=0.05)


def test_groups_of_several_item_columns():
    made = release(by={"first": "substring(country, 1, 1)"}, item=["country", "page"], groups=["D", "F"])
    assert made["D"].items == (("DE", "basket"), ("DE", "home"), ("DE", "search"), (OTHER, OTHER))
    assert made["F"].other == (OTHER, OTHER)


def test_groups_in_frames_and_files(grouped, tmp_path):
    for frame in (grouped.to_pandas(), grouped.to_arrow().to_pandas(), grouped.to_polars().to_pandas()):
        assert frame["country"].tolist() == ["DE"] * 4 + ["FR"] * 3 + ["IT"] * 3 + ["other"]
        assert frame["page"].tolist()[:4] == ["basket", "home", "search", "other"]
        assert frame["is_other"].tolist() == [False] * 3 + [True, False, False, True, False, False, True, True]
        assert frame["share"].drop_duplicates().sum() == pytest.approx(1)
        assert frame.groupby("country")["probability"].sum().tolist() == pytest.approx([1] * 4)
    grouped.save(tmp_path / "g.json")
    again = crowdgram.load(tmp_path / "g.json")
    assert again.groups == grouped.groups
    assert again.joint == grouped.joint
    write_csv(grouped, tmp_path / "g.csv")
    assert csv.read_csv(tmp_path / "g.csv").num_rows == 11


def test_nothing_is_found(tmp_path):
    made = release(VISITS.slice(0, 20), by="country")
    assert made.groups == ()
    assert made.shares.items == (OTHER,)
    assert made.joint.items == ((OTHER, OTHER),)
    assert made.to_pandas()["country"].tolist() == ["other"]
    made.save(tmp_path / "g.json")
    assert crowdgram.load(tmp_path / "g.json").joint == made.joint
    given = release(VISITS.slice(0, 20), by="country", groups=["DE", "FR"])
    assert given.joint.items == (("DE", OTHER), ("FR", OTHER))


def test_other_items_are_the_last_of_a_file(grouped, tmp_path):
    document = json_file.to_document(grouped.joint)
    document["items"] = document["items"][::-1]
    (tmp_path / "bad.json").write_text(json.dumps(document))
    with pytest.raises(crowdgram.CrowdgramError, match="damaged"):
        crowdgram.load(tmp_path / "bad.json")


# --- what must not leak, and what is refused


def test_stages_and_first_events_are_the_same_for_all_tables():
    heard, events = [], []
    for source in (VISITS.slice(0, 0), VISITS.slice(0, 50), VISITS):
        stages = []
        events.append(release(source, by="country", progress=stages.append).events[:2])  # then noisy values decide
        heard.append(stages)
    assert heard[0] == heard[1] == heard[2]
    assert events[0] == events[1] == events[2]


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian", "adaptive", "auto"])
@pytest.mark.parametrize("weight", ["rows", "users"])
def test_every_mechanism_keeps_its_promise_by_groups(mechanism, weight):
    made = release(by="country", mechanism=mechanism, weight=weight, adjacency="replace")
    assert made.groups == ("DE", "FR", "IT")
    assert made["FR"].probabilities == pytest.approx([0.4, 0.4, 0.2], abs=0.1)
    check(made.events, made.guarantee)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"mechanism": "paper"}, r"^mechanism='paper': needs domain,.*Give a list"),
        ({"mechanism": "paper", "by": "country", "domain": ["home"]}, r"^mechanism='paper': needs groups,"),
        ({"delta": 0.0, "by": "country"}, r"^delta=0: without domain and groups,"),
        ({"by": "country", "groups": Discover(0.2), "domain": Discover(0.3)}, r"^groups=.*the share of domain"),
        ({"item": ["country", "page"], "domain": {"country": ["DE"], "page": "discover"}}, "one column"),
        ({"item": ["is_other", "page"]}, "is_other"),
    ],
)
def test_refused_before_a_row_is_read(more, words, no_rows_read):
    with pytest.raises(InvalidArgument, match=words):
        release(**more)
