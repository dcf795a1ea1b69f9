"""Pages and pictures of releases and groups: they say what they show, of how much, and under which promise."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from itertools import product

import numpy as np
import pytest

import crowdgram
from crowdgram import GroupedRelease, Other
from crowdgram.errors import InvalidArgument, UnwritableTarget
from crowdgram.present.markup import bar, digits, scale
from crowdgram.present.report import page

from ..results.synthetic import made

OTHER = Other("other")


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


class Tables(HTMLParser):
    """The tables of a page, as lists of rows of texts; the links and the places they lead to; the folds."""

    def __init__(self, text):
        super().__init__()
        self.tables, self.links, self.places, self.folds, self.tags = [], [], [], 0, set()
        self._in_a_cell = False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.tags.add(tag)
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")
            self._in_a_cell = True
        elif tag == "details":
            self.folds += 1
        if "id" in found:
            self.places.append(found["id"])
        if tag == "a":
            self.links.append(found["href"])

    def handle_endtag(self, tag):
        self._in_a_cell = self._in_a_cell and tag not in ("td", "th")

    def handle_data(self, data):
        if self._in_a_cell:
            self.tables[-1][-1][-1] += data


def test_a_page_of_a_release():
    release = made(np.array([0.2, 0.5, 0.3]), np.full(3, 1e-3), "abc", ("page",))
    text = page(release)
    items, facts, events = Tables(text).tables
    assert items[0] == ["page", "probability", "95% interval", ""]
    assert [row[0] for row in items[1:]] == ["b", "c", "a"]
    assert items[1][1:3] == ["0.5000", "0.4980 to 0.5020"]
    assert ["mechanism", "gaussian"] in facts
    assert events[1][:2] == ["counts", "gaussian"]
    assert "<title>Share of all rows by page</title>" in text
    assert text.count("Adding or removing all rows of any one user") == 1
    assert "they hold" not in text  # nothing is left out


def test_a_page_is_one_file_that_loads_nothing():
    for text in (page(grouped()), page(with_other(False))):
        found = Tables(text)
        assert "content=\"default-src 'none'; style-src 'unsafe-inline'\"" in text
        assert not found.tags & {"script", "img", "link", "iframe", "object", "embed", "base", "form"}
        assert not re.search(r"\b(?:src|srcset|action|on\w+)=|@import|url\(", text)
        assert all(link.startswith("#") for link in found.links)


def test_a_page_says_what_it_leaves_out():
    k = 1234
    text = page(made(np.full(k, 1 / k), np.full(k, 1e-5), [f"i{n}" for n in range(k)], ("item",)))
    assert f"The 50 most probable of 1,234 items; they hold {50 / k:.3f} of all." in text
    assert len(Tables(text).tables[0]) == 1 + 50


def test_the_item_for_all_others_is_last_and_has_no_bar():
    items = ("a", "b", OTHER)
    text = page(made(np.array([0.05, 0.02, 0.93]), np.full(3, 1e-4), items, ("word",)))
    rows = Tables(text).tables[0]
    assert [row[0] for row in rows[1:]] == ["a", "b", "other"]
    assert rows[3][3] == "all that is not listed"
    assert text.count("<svg") == 2
    assert "<i><bdi>other</bdi></i>" in text
    assert "stands for all items that are not listed" in text


def test_a_page_of_several_columns_has_each_by_itself():
    cells = list(product(("DE", "FR"), (0, 1)))
    release = made(np.array([0.4, 0.2, 0.3, 0.1]), np.full(4, 1e-3), cells, ("country", "hour"))
    tables = Tables(page(release)).tables
    assert tables[0][1][:3] == ["DE", "0", "0.4000"]
    assert [row[:2] for row in tables[1]] == [["country", "probability"], ["DE", "0.6000"], ["FR", "0.4000"]]
    assert [row[:2] for row in tables[2]] == [["hour", "probability"], ["0", "0.7000"], ["1", "0.3000"]]


def test_a_page_of_groups():
    text = page(grouped())
    found = Tables(text)
    shares, compared, distances, differences, *own = found.tables[:-2]
    assert [row[0] for row in shares[1:]] == ["g0", "g1", "g2"]
    assert found.links == ["#group-1", "#group-2", "#group-3"]
    assert found.places == ["group-1", "group-2", "group-3"]
    assert compared[0] == ["", "g0", "g1", "g2"]
    assert {row[0]: row[1:] for row in compared[1:]}["a"] == ["0.5000", "0.1667", "0.3333"]
    assert len(distances) == 3
    assert distances[1][1].startswith("0.66")  # 2 * (1/2 - 1/6)
    assert [row[0] for row in differences[1:]] in (["a", "b", "c"], ["a", "c", "b"], ["b", "a", "c"], ["b", "c", "a"])
    assert differences[0][1:4] == ["g0", "g1", "difference"]
    assert len(own) == 3
    assert [row[0] for row in own[1][1:]] == ["b", "c", "a"]
    assert found.folds == 3 + 1  # and the draws of noise
    assert text.count("Adding or removing all rows of any one user") == 1  # one promise for all of it
    assert "Share of all rows by page for each country" in text
    assert "All groups, and all items." in text


def test_groups_that_miss_items_and_a_group_of_the_rest():
    text = page(with_other())
    shares, compared, *_ = Tables(text).tables
    assert [row[0] for row in shares[1:]] == ["DE", "FR", "other"]
    assert [row[0] for row in compared[1:]] == ["a", "b", "other"]
    assert compared[2][2] == "–"
    assert "– stands for an item that is not listed in that group" in text
    assert Tables(text).links == ["#group-1", "#group-2"]  # the rest is no group


def test_many_groups_and_items_are_capped_by_public_numbers():
    sizes = np.arange(150, 0, -1) / (150 * 151 / 2)
    whole = grouped(sizes, [f"item {n}" for n in range(40)], 1e-6)
    text = page(whole)
    found = Tables(text)
    assert found.folds == 100 + 1
    assert "The 20 largest of 150 groups" in text
    assert "The 8 largest of 150 groups, and the 20 of 40 items with the largest mean over them." in text
    assert "The 100 largest of 150 groups are here." in text
    assert len(found.tables[1]) == 1 + 20
    assert len(found.tables[2]) == 8
    assert "The 15 most probable of 40 items" in text
    assert len(text) < 2_000_000
    rest = made(
        np.full(102, 1 / 102), np.full(102, 1e-4), [*((n, "a") for n in range(101)), (OTHER, OTHER)], ("n", "page")
    )
    assert Tables(page(GroupedRelease(rest))).folds == 100 + 1  # what belongs to no group takes no place
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


def test_titles():
    assert "<h1>My &lt;title&gt;</h1>" in page(grouped(), "My <title>")
    for title in ("", " ", 3):
        with pytest.raises(InvalidArgument, match="title="):
            page(grouped(), title)
    users = made(np.array([0.5, 0.5]), np.full(2, 1e-3), "ab", ("page",))
    object.__setattr__(users, "weight", "users")
    assert "The average user&#x27;s share by page" in page(users)


def test_pages_are_written_whole_or_not_at_all(tmp_path):
    for release in (grouped(), grouped().joint):
        release.to_html(tmp_path / "r.html", title="x", overwrite=True)
        assert (tmp_path / "r.html").read_text(encoding="utf-8") == page(release, "x")
    with pytest.raises(UnwritableTarget):
        grouped().to_html(tmp_path / "none" / "r.html")
    assert [path.name for path in tmp_path.iterdir()] == ["r.html"]


def estimates(*triples):
    return [crowdgram.ItemEstimate("x", p, 0.1, low, high) for p, low, high in triples]


def test_bars_and_their_scale():
    assert scale(estimates((0.4, 0.3, 0.5), (0.1, 0.0, 0.2))) == 0.5
    assert scale(estimates((0.1, 0.0, 1.0))) == pytest.approx(0.2)  # else the bar would be a tenth of the width
    assert scale(estimates((0.0, 0.0, 0.3))) == 0.3
    assert scale([]) == scale(estimates((0.0, 0.0, 0.0))) == 1.0
    whole, cut = estimates((0.2, 0.1, 0.4), (0.2, 0.1, 0.9))
    assert 'width="50.00"' in bar(whole, 0.4)
    assert 'd="M25.00 5H100.00M25.00 2.5V7.5M100.00 2.5V7.5"' in bar(whole, 0.4)
    assert 'd="M25.00 5H100.00M25.00 2.5V7.5"' in bar(cut, 0.4)  # no end: it goes on


def test_digits_show_three_of_the_largest():
    assert [digits([p]) for p in (1.0, 0.2, 0.02, 0.003, 1e-5, 1e-12, 0.0)] == [4, 4, 4, 5, 7, 9, 4]
    assert digits([]) == 4
