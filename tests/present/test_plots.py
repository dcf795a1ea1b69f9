"""Pictures of a release: drawn whatever the items are called, and saying what they show."""

from __future__ import annotations

import dataclasses
import sys
import warnings

import numpy as np
import pytest

from crowdgram.errors import MissingDependency
from crowdgram.privacy import Guarantee, LaplaceEvent
from crowdgram.results import Release

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

AWKWARD = [
    "$x",
    "$$",
    "a$b$c",
    r"\$\frac{",
    "_^{",
    "<script>",
    "&amp;",
    "%s",
    "x" * 500,
    "a\nb\tc",
    "名前",
    "",
    "\x1b[31m",
    7,
]


def made(items=("b", "a", "c"), weight="rows", delta=0.0):
    k = len(items)
    p = np.arange(1, k + 1) / (k * (k + 1) / 2)
    return Release(
        items=tuple(items),
        probabilities=p,
        standard_errors=np.full(k, 0.1),
        lower=np.maximum(p - 0.1, 0),
        upper=np.minimum(p + 0.1, 1),
        confidence=0.95,
        predicted_l1_error=0.25,
        guarantee=Guarantee(1.0, delta),
        events=(LaplaceEvent("counts", 2**30, 2.0**30, k),),
        mechanism="laplace",
        weight=weight,
    )


def labels(ax):
    return [label.get_text() for label in ax.get_yticklabels()]


def test_bars_are_the_top_items():
    ax = made().plot(2)
    assert labels(ax) == ["c", "a"]
    assert [bar.get_width() for bar in ax.patches] == pytest.approx([3 / 6, 2 / 6])
    assert ax.yaxis_inverted()  # the most probable on top


@pytest.mark.slow
@pytest.mark.parametrize("item", AWKWARD, ids=repr)
def test_awkward_names_are_drawn(item, tmp_path):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")  # a font need not have every script
        made([item, "plain"]).plot().figure.savefig(tmp_path / "p.png", dpi=40)
    assert (tmp_path / "p.png").stat().st_size > 1000


def test_labels_are_short_and_on_one_line():
    shown = labels(made(["x" * 500, "a\nb"]).plot())
    assert max(map(len, shown)) <= 40
    assert not any("\n" in label for label in shown)


def test_truth_adds_points_where_it_is_given():
    ax = made().plot(truth={"c": 0.4, "a": 0.3})
    points = ax.lines[-1]
    assert list(points.get_xdata()) == [0.4, 0.3, 0.0]
    heights = [segment[0][1] for segment in ax.containers[1].lines[2][0].get_segments()]
    assert all(height < mark - 0.3 for height, mark in zip(heights, points.get_ydata(), strict=True))  # both show
    assert any("truth" in text.get_text() for text in ax.get_legend().get_texts())
    assert not any("truth" in text.get_text() for text in made().plot().get_legend().get_texts())


def test_the_title_says_what_is_asked_and_promised():
    assert made().plot().get_title() == "Share of all rows by item (laplace, epsilon=1, add-remove)"
    by_users = made(weight="users", delta=1e-6).plot().get_title()
    assert by_users == "Average user's share by item (laplace, epsilon=1, delta=1e-06, add-remove)"


def test_it_draws_on_axes_that_are_given():
    from matplotlib.figure import Figure

    ax = Figure().subplots()
    assert made().plot(ax=ax) is ax


def test_without_matplotlib(monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingDependency, match=r"crowdgram\[plot\]"):
        made().plot()


def test_html_shows_the_top_and_counts_the_rest():
    page = made([f"item {n}" for n in range(30)])._repr_html_()
    assert page.count("<tr>") == 1 + 20
    assert "and 10 more items" in page
    assert "item 29" in page
    assert "item 3<" not in page


@pytest.mark.parametrize("item", AWKWARD, ids=repr)
def test_html_escapes_every_name(item):
    page = made([item, "plain"])._repr_html_()
    assert "<script" not in page
    assert page.count("<tr>") == 3


def test_html_escapes_what_a_loaded_file_may_hold():
    page = dataclasses.replace(made(), mechanism="<b>", guarantee=Guarantee(1.0, unit="<i>"))._repr_html_()
    assert "<i>" not in page
    assert "released by <b>" not in page
