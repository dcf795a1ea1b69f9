"""Series as a picture, a page and a table: complete, with gaps, and safe whatever items are called."""

from __future__ import annotations

import csv
import io
import re
import warnings

import numpy as np
import pytest

from crowdgram import Other, Series
from crowdgram.errors import InvalidArgument, UnwritableTarget
from crowdgram.escaping import unguarded_cell
from crowdgram.present.series_page import series_page

from ..results.synthetic import made
from ..test_escaping import HOSTILE, PAGE_ATTRIBUTES, PAGE_TAGS, WholePage, steering
from .pages import Tables

OTHER = Other("other")


def release(shares, items):
    return made(np.array(shares), np.full(len(shares), 1e-3), items, ("page",))


def gaps():
    return Series(
        {
            "jan": release([0.5, 0.3, 0.2], ["a", "b", OTHER]),
            "feb": release([0.6, 0.4], ["a", OTHER]),
            "mar": release([0.4, 0.3, 0.3], ["a", "b", OTHER]),
        }
    )


class TestPicture:
    @pytest.fixture(autouse=True)
    def backend(self):
        pytest.importorskip("matplotlib").use("Agg")

    def test_lines_and_bands_are_the_points(self):
        (ax,) = gaps().plot().axes
        a, b = (line.get_ydata() for line in ax.lines)
        assert list(a) == pytest.approx([0.5, 0.6, 0.4])
        assert [bool(np.isnan(one)) for one in b] == [False, True, False]
        assert [text.get_text() for text in ax.get_xticklabels()] == ["jan", "feb", "mar"]
        assert ax.get_title() == "Share of all rows by page over time, 95% intervals"
        assert ax.get_ylim()[0] == 0
        assert {text.get_text() for text in ax.texts} == {"a", "b"}

    def test_names_at_the_end_do_not_cover_each_other(self):
        items = [f"item {k}" for k in range(8)]
        close = Series({name: release([0.125] * 8, items) for name in ("1", "2")})  # all at the top
        (ax,) = close.plot(n=8).axes
        heights = sorted(text.xyann[1] for text in ax.texts)
        low, high = ax.get_ylim()
        assert min(np.diff(heights)) >= 0.04 * (high - low)
        assert low <= heights[0] < heights[-1] <= high

    def test_many_times_have_fewer_ticks(self):
        long = Series({f"week {k} of the year": release([0.5, 0.5], "ab") for k in range(60)})
        (ax,) = long.plot().axes
        assert len(ax.get_xticks()) <= 16
        assert {text.get_rotation() for text in ax.get_xticklabels()} == {45.0}

    @pytest.mark.slow
    def test_every_name_can_be_drawn(self):
        named = Series({name: release(np.full(len(HOSTILE), 1 / len(HOSTILE)), HOSTILE) for name in HOSTILE[:8] if name.strip()})  # fmt: skip # noqa: E501
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Glyph")
            warnings.filterwarnings("ignore", message="Matplotlib currently does not support")
            figure = named.plot(n=len(HOSTILE))
            figure.savefig(io.BytesIO(), dpi=20)
        (ax,) = figure.axes
        for text in (*ax.texts, *ax.get_xticklabels(), ax.title):
            assert not steering(text.get_text())
            assert not re.search(r"(?<!\\)\$", text.get_text())


class TestPage:
    def test_it_says_what_it_shows(self):
        page = series_page(gaps())
        assert "Share of all rows by page, jan to mar" in page
        assert "All items." in page
        assert page.count("data-plot=") == 2  # a picture of each item
        assert page.count('<svg class="bar"') == 5  # a bar for each value
        assert '<td class="missing">–</td>' in page
        assert "– stands for an item that is not listed there." in page
        assert '<td class="sure">-20.0 points</td>' in page  # a, since February
        assert "Each release has a guarantee of its own." in page
        assert "1 of 2 items." in series_page(gaps(), n=1)
        assert "<h1>Mine</h1>" in series_page(gaps(), title="Mine")
        with pytest.raises(InvalidArgument, match="title="):
            series_page(gaps(), title=" ")

    def test_a_line_is_cut_at_a_gap(self):
        found = Tables(series_page(gaps(), ["b"])).data["item-1"]
        assert [one is None for one in found["values"][0]] == [False, True, False]
        assert found["labels"] == ["jan", "feb", "mar"]
        assert "feb: not listed" in series_page(gaps(), ["b"])  # for those who do not see the picture

    @pytest.mark.slow
    @pytest.mark.parametrize("name", HOSTILE)
    def test_names_are_text(self, name):
        label = name if name.strip() else "empty"
        named = Series({label: release([0.5, 0.5], [name, "b"]), "2": release([0.5, 0.5], [name, "b"])})
        page = WholePage(series_page(named, title=f"title{name}"))
        assert page.tags <= PAGE_TAGS
        assert page.attributes <= PAGE_ATTRIBUTES
        assert page.comments == []

    def test_files_are_whole_and_not_overwritten(self, tmp_path):
        for write in (gaps().to_html, gaps().to_csv):
            path = tmp_path / write.__name__
            write(path)
            content = path.read_text()
            assert content
            with pytest.raises(UnwritableTarget):
                write(path)
            write(path, overwrite=True)
            assert path.read_text() == content


def test_csv(tmp_path):
    gaps().to_csv(tmp_path / "s.csv", ["b"])
    with open(tmp_path / "s.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["label"] for row in rows] == ["jan", "feb", "mar"]
    assert rows[1]["value"] == rows[1]["change"] == ""
    assert float(rows[2]["value"]) == pytest.approx(0.3)


def test_csv_has_no_formulas(tmp_path):
    named = Series({name: release(np.full(len(HOSTILE), 1 / len(HOSTILE)), HOSTILE) for name in ("=1", "2")})
    named.to_csv(tmp_path / "s.csv", n=len(HOSTILE))
    with open(tmp_path / "s.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {unguarded_cell(row["page"]) for row in rows} == set(HOSTILE)
    assert not any(value.startswith(tuple("=+@\t")) for row in rows for value in (row["page"], row["label"]))
