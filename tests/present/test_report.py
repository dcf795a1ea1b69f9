"""Pages of releases, groups and reach: they say what they show, of how much, and under which promise."""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import crowdgram
from crowdgram import GroupedRelease, Other, Quantity
from crowdgram.errors import InvalidArgument, UnwritableTarget
from crowdgram.export.documents import to_text
from crowdgram.present.pages import data
from crowdgram.present.pages.contexts import bar, full_bar
from crowdgram.present.report import page, page_of_several

from ..results.synthetic import made
from ..results.test_reach import made as reach_of
from .pages import Tables, said, without_assets

OTHER = Other("other")
VENDOR = Path(data.__file__).parent / "vendor"


def grouped(sizes=(0.5, 0.3, 0.2), items=("a", "b", "c"), deviation=1e-3):
    """Groups g0, g1, ... of these sizes; in each, the items in turn are the first."""
    k = len(items)
    base = np.arange(k, 0, -1) / (k * (k + 1) / 2)
    values = np.concatenate([size * np.roll(base, n) for n, size in enumerate(sizes)])
    cells = list(product([f"g{n}" for n in range(len(sizes))], items))
    return GroupedRelease(made(values, np.full(len(values), deviation), cells, ("country", "page")))


def with_other(release_of_groups=True):
    cells = [("DE", "a"), ("DE", "b"), ("FR", "a"), ("DE", OTHER), ("FR", OTHER), (OTHER, OTHER)]
    joint = made(np.array([0.2, 0.1, 0.2, 0.3, 0.15, 0.05]), np.full(6, 1e-3), cells, ("country", "page"))
    return GroupedRelease(joint) if release_of_groups else joint


def test_a_page_of_a_release():
    release = made(np.array([0.2, 0.5, 0.3]), np.full(3, 1e-3), "abc", ("page",))
    release = replace(release, parameters={"released_on": "2026-11-17"}, users=Quantity(150.0, 140.0, 160.0, 0.95))
    text = page(release)
    found = Tables(text)
    items, _budget, events, parameters, facts = found.tables
    assert items[0] == ["page", "share", "95% interval", ""]
    assert [row[0] for row in items[1:]] == ["b", "c", "a"]
    assert items[1][1:3] == ["50.00%", "49.80 to 50.20%"]
    assert ["mechanism", "gaussian"] in parameters
    assert events[1][:2] == ["counts", "gaussian"]
    assert {row[0] for row in facts} >= {
        "Unit and adjacency",
        "Contribution bounds",
        "Bias of clipping",
        "Not protected",
    }
    assert "<title>Share of all rows by page</title>" in text
    words = said(text)
    assert words.count("Adding or removing all rows of any one user") == 1
    assert "they hold" not in words  # nothing is left out
    assert "Users 150 140 to 160" in words
    assert "Released 2026-11-17" in words
    assert "Where the budget went" in words
    assert "guesses right at most 73.2% of the time" in words
    assert "About 0.15% of the whole is predicted to be counted for a wrong item" in words
    assert "Released on 2026-11-17 under (1, 1e-06)-differential privacy" in words
    assert hashlib.sha256(to_text(release).encode()).hexdigest() in words
    assert "ab" * 32 in page(release, digest="ab" * 32)


def test_a_page_is_one_file_that_loads_nothing():
    for text in (page(grouped()), page(with_other(False)), page(reach_of()), page_of_several({"a": grouped().joint})):
        bare, found = without_assets(text), Tables(text)
        assert not found.tags & {"img", "link", "iframe", "object", "embed", "base", "form"}
        assert not re.search(r"\b(?:src|srcset|action|style|on\w+)=|@import|url\(", bare)
        assert all(link.startswith("#") for link in found.links)
        assert {link[1:] for link in found.links} <= set(found.places)
        assert "sourceMappingURL" not in text


def test_libraries_are_what_the_list_says():
    listed = re.findall(r"`([\w.]+\.(?:js|css))` \| `([0-9a-f]{64})`", (VENDOR / "README.md").read_text())
    assert len(listed) == 4
    for name, digest in listed:
        assert hashlib.sha256((VENDOR / name).read_bytes()).hexdigest() == digest
    assert {name for name, _ in listed} == {path.name for path in VENDOR.iterdir() if path.suffix in (".js", ".css")}
    text = page(grouped())
    for name in ("tabulator", "uPlot"):
        licence = (VENDOR / f"{name}.LICENSE").read_text()
        assert "MIT" in licence
        assert licence.strip() in text  # the licence goes with every copy


def test_a_page_lists_all_items_and_says_what_its_table_leaves_out():
    k = 1234
    text = page(made(np.full(k, 1 / k), np.full(k, 1e-5), [f"i{n}" for n in range(k)], ("item",)))
    assert f"The 25 most probable of 1,234 items; they hold {2500 / k:.1f}% of all." in text
    found = Tables(text)
    assert len(found.tables[0]) == 1 + 25
    assert sorted(found.column("one-list", "item")) == sorted(f"i{n}" for n in range(k))
    assert found.column("one-list", "probability")[0] == pytest.approx(1 / k, rel=1e-5)


def test_the_list_has_a_bound(monkeypatch):
    monkeypatch.setattr(data, "MOST_LISTED", 10)  # a limit that a few items reach
    text = page(made(np.arange(12, 0, -1) / 78, np.full(12, 1e-5), [f"i{n}" for n in range(12)], ("item",)))
    assert "The first 10 of 12. The saved release has all." in text
    assert Tables(text).column("one-list", "item") == [f"i{n}" for n in range(10)]


def test_the_list_is_that_of_an_export():
    for result in (with_other(), with_other(False), reach_of(), grouped().joint):
        found, table = Tables(page(result)), result.to_arrow()
        assert [field["name"] for field in found.data["one-list"]["fields"]] == table.column_names
        lines = zip(*(field["values"] for field in found.data["one-list"]["fields"]), strict=True)
        rounded = {
            tuple(float(f"{x:.6g}") if isinstance(x, float) else x for x in row.values()) for row in table.to_pylist()
        }
        assert set(lines) == rounded


def test_the_curve_is_that_of_the_shares():
    k = 5000
    p = 1 / np.arange(1.0, k + 1)
    p /= p.sum()
    text = page(made(p, np.full(k, 1e-6), range(k), ("item",)))
    curve = Tables(text).data["one-curve"]
    assert curve["ranks"][0] == 1
    assert curve["ranks"][-1] == k
    assert len(curve["ranks"]) <= 300
    assert curve["values"][0] == pytest.approx(p[np.array(curve["ranks"]) - 1], rel=1e-5)
    assert f"The largest item holds {100 * p[0]:.1f}%, the largest 10 hold {100 * p[:10].sum():.1f}%" in said(text)
    assert "one-curve" not in Tables(page(made(np.array([0.5, 0.5]), np.full(2, 1e-3), "ab", ("page",)))).data


def test_the_item_for_all_others_is_last_and_has_no_bar():
    items = ("a", "b", OTHER)
    text = page(made(np.array([0.05, 0.02, 0.93]), np.full(3, 1e-4), items, ("word",)))
    found = Tables(text)
    rows = found.tables[0]
    assert [row[0] for row in rows[1:]] == ["a", "b", "other"]
    assert rows[3][3] == "all that is not listed"
    assert text.count('<svg class="bar"') == 2
    assert "<i><bdi>other</bdi></i>" in text
    assert "stands for all items that are not listed" in text
    assert found.column("one-list", "is_other") == [False, False, True]


def test_a_page_of_several_columns_has_each_by_itself():
    cells = list(product(("DE", "FR"), (0, 1)))
    release = made(np.array([0.4, 0.2, 0.3, 0.1]), np.full(4, 1e-3), cells, ("country", "hour"))
    tables = Tables(page(release)).tables
    assert tables[0][1][:3] == ["DE", "0", "40.00%"]
    assert [row[:2] for row in tables[1]] == [["country", "share"], ["DE", "60.0%"], ["FR", "40.0%"]]
    assert [row[:2] for row in tables[2]] == [["hour", "share"], ["0", "70.0%"], ["1", "30.0%"]]


def test_a_page_of_groups():
    text = page(grouped())
    found = Tables(text)
    shares, compared, distances, differences, *own = found.tables[:-4]
    assert [row[0] for row in shares[1:]] == ["g0", "g1", "g2"]
    assert found.links[1:] == ["#one-group-1", "#one-group-2", "#one-group-3"]
    assert compared[0] == ["", "g0", "g1", "g2"]
    assert [cell.split("%")[0] for cell in {row[0]: row[1:] for row in compared[1:]}["a"]] == ["50.0", "16.7", "33.3"]
    assert len(distances) == 3
    assert distances[1][1].startswith("0.66")  # 2 * (1/2 - 1/6)
    assert sorted(row[0] for row in differences[1:]) == ["a", "b", "c"]
    assert differences[0][1:4] == ["g0", "g1", "difference"]
    assert len(own) == 3
    assert [row[0] for row in own[1][1:]] == ["b", "c", "a"]
    assert found.folds == 3 + 3  # and draws, parameters, facts
    words = said(text)
    assert words.count("Adding or removing all rows of any one user") == 1  # one promise for all of it
    assert "It holds for everything on this page together, in however many groups a user is." in words
    assert "Share of all rows by page for each country" in words
    assert "All groups, and all items." in words


def test_groups_that_miss_items_and_a_group_of_the_rest():
    text = page(with_other())
    found = Tables(text)
    shares, compared, *_ = found.tables
    assert [row[0] for row in shares[1:]] == ["DE", "FR", "other"]
    assert [row[0] for row in compared[1:]] == ["a", "b", "other"]
    assert compared[2][2] == "–"
    assert "– stands for an item that is not listed there" in text
    assert found.links[1:] == ["#one-group-1", "#one-group-2"]  # the rest is no group
    assert found.column("one-list", "country") == ["DE", "DE", "DE", "FR", "FR", "other"]  # by size, the rest last


@pytest.mark.slow
def test_many_groups_and_items_are_capped_by_public_numbers():
    sizes = np.arange(150, 0, -1) / (150 * 151 / 2)
    whole = grouped(sizes, [f"item {n}" for n in range(40)], 1e-6)
    text = page(whole)
    found = Tables(text)
    assert found.folds == 100 + 3
    assert "The 20 largest of 150 groups" in text
    assert "The 8 largest of 150 groups, and the 20 of 40 items with the largest mean over them." in text
    assert "The 100 largest of 150 groups are here." in text
    assert len(found.tables[1]) == 1 + 20
    assert len(found.tables[2]) == 8
    assert "The 15 most probable of 40 items" in text
    assert len(found.column("one-list", "page")) == 6000
    assert len(text) < 2_500_000
    notebook = whole._repr_html_()
    assert notebook.count("<tr>") == 1 + 20
    assert "and 130 more groups" in notebook


def test_one_group_is_not_compared():
    text = page(grouped((1.0,)))
    assert "Groups compared" not in text
    assert "<details open>" in text


def test_groups_of_different_items_without_other_have_no_distances():
    cells = [("DE", "a"), ("DE", "b"), ("FR", "a"), ("FR", "c")]
    joint = made(np.full(4, 0.25), np.full(4, 1e-3), cells, ("country", "page"))
    text = page(GroupedRelease(joint))
    assert "Groups compared" in text
    assert "l1 distance" not in text


def test_a_page_of_a_reach():
    text = page(reach_of())
    found = Tables(text)
    assert "<title>Users who have each page</title>" in text
    assert found.tables[0][0] == ["page", "users", "of all users", "95% interval", ""]
    assert "so counts do not sum to the number of users" in said(text)


def test_several_results_on_one_page():
    one, two = (made(np.array(p), np.full(3, 1e-3), "abc", ("page",)) for p in ([0.5, 0.3, 0.2], [0.3, 0.3, 0.4]))
    text = page_of_several({"Oct": one, "Nov": two, "by country": grouped(), "reach": reach_of()})
    found, words = Tables(text), said(text)
    assert [row[0] for row in found.tables[0][1:]] == ["Oct", "Nov", "by country", "reach"]
    assert found.links[1:5] == ["#release-1", "#release-2", "#release-3", "#release-4"]
    assert found.tables[1][0] == ["", "Oct", "Nov"]  # what can be compared is
    assert "All releases, and all items." in words
    assert {key for key in found.data if key.endswith("list")} == {f"release-{n}-list" for n in range(1, 5)}
    assert len(found.places) == len(set(found.places))
    assert "For a user who is in several of them, they add up" in words
    assert words.count("It holds for everything in this release together") == 4
    assert "Releases compared" not in page_of_several({"a": one, "b": replace(two, weight="users")})
    for wrong in ({}, {" ": one}, {"a": 3}):
        with pytest.raises(InvalidArgument, match="results: "):
            page_of_several(wrong)


def test_a_report_of_one_or_several(tmp_path):
    for result in (grouped(), grouped().joint, reach_of(), {"a": grouped().joint, "b": reach_of()}):
        crowdgram.report(result, tmp_path / "r.html", title="Mine", overwrite=True)
        assert "<h1>Mine</h1>" in (tmp_path / "r.html").read_text(encoding="utf-8")
    with pytest.raises(InvalidArgument, match="results: a str is no result"):
        crowdgram.report("release.json", tmp_path / "s.html")


def test_titles():
    assert "<h1>My &lt;title&gt;</h1>" in page(grouped(), "My <title>")
    for title in ("", " ", 3):
        with pytest.raises(InvalidArgument, match="title="):
            page(grouped(), title)
    users = made(np.array([0.5, 0.5]), np.full(2, 1e-3), "ab", ("page",))
    object.__setattr__(users, "weight", "users")
    assert "The average user's share by page" in said(page(users))


def test_pages_are_written_whole_or_not_at_all(tmp_path):
    for release in (grouped(), grouped().joint, reach_of()):
        release.to_html(tmp_path / "r.html", title="x", overwrite=True)
        assert (tmp_path / "r.html").read_text(encoding="utf-8") == page(release, "x")
    with pytest.raises(UnwritableTarget):
        grouped().to_html(tmp_path / "none" / "r.html")
    assert [path.name for path in tmp_path.iterdir()] == ["r.html"]


def test_a_release_that_is_mostly_noise_says_so_first():
    lost = made(np.array([0.5, 0.5]), np.full(2, 1.0), "ab", ("page",))
    words = said(page(lost))
    assert words.index("The release is mostly noise") < words.index("Epsilon")


def estimates(*triples):
    return [crowdgram.ItemEstimate("x", p, 0.1, low, high) for p, low, high in triples]


def test_bars_and_their_scale():
    assert full_bar(estimates((0.4, 0.3, 0.5), (0.1, 0.0, 0.2))) == 0.5
    assert full_bar(estimates((0.1, 0.0, 1.0))) == pytest.approx(0.2)  # else the bar would be a tenth of the width
    assert full_bar(estimates((0.0, 0.0, 0.3))) == 0.3
    assert full_bar([]) == full_bar(estimates((0.0, 0.0, 0.0))) == 1.0
    whole, cut = bar(0.2, 0.1, 0.4, 0.4), bar(0.2, 0.1, 0.9, 0.4)
    assert (whole.value, whole.low, whole.high, whole.ends) == (50.0, 25.0, 100.0, True)
    assert (cut.high, cut.ends) == (100.0, False)  # no end: it goes on
