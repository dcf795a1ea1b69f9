"""Pictures of a release: drawn whatever the items are called, and saying what they show."""

from __future__ import annotations

import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest

from crowdgram import GroupedReach, Other, Quantity
from crowdgram.errors import InvalidArgument, MissingDependency

from ..results.test_reach import made as reach
from .test_notebook import AWKWARD, made
from .test_report import grouped, with_other

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")


def labels(ax):
    return [label.get_text() for label in ax.get_yticklabels()]


def reach_by_groups():
    items = [(group, item) for group in ("g0", "g1") for item in ("a", "b$", Other("other"))]
    counts = (900.0, 40.0, 7.0, 500.0, 600.0, 1200.0)
    joint = reach(items, counts, item_columns=("country", "page"), predicted_errors=np.ones(6))
    return GroupedReach(joint, tuple(Quantity(users, users - 20, users + 20, 0.95) for users in (950.0, 1300.0)))


def test_bars_are_the_top_items():
    (ax,) = made().plot(2).axes
    assert labels(ax) == ["c", "a"]
    assert [bar.get_width() for bar in ax.patches] == pytest.approx([3 / 6, 2 / 6])
    assert ax.yaxis_inverted()  # the most probable on top


@pytest.mark.slow
@pytest.mark.parametrize("item", AWKWARD, ids=repr)
def test_awkward_names_are_drawn(item, tmp_path):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")  # a font need not have every script
        made([item, "plain"]).plot().savefig(tmp_path / "p.png", dpi=40)
    assert (tmp_path / "p.png").stat().st_size > 1000


def test_labels_are_short_and_on_one_line():
    shown = labels(made(["x" * 500, "a\nb"]).plot().axes[0])
    assert max(map(len, shown)) <= 40
    assert not any("\n" in label for label in shown)


def test_truth_adds_points_where_it_is_given():
    (ax,) = made().plot(truth={"c": 0.4, "a": 0.3}).axes
    points = ax.lines[-1]
    assert list(points.get_xdata()) == [0.4, 0.3, 0.0]
    heights = [segment[0][1] for segment in ax.containers[1].lines[2][0].get_segments()]
    assert all(height < mark - 0.3 for height, mark in zip(heights, points.get_ydata(), strict=True))  # both show
    assert any("truth" in text.get_text() for text in ax.get_legend().get_texts())
    assert not any("truth" in text.get_text() for text in made().plot().axes[0].get_legend().get_texts())


def test_the_title_says_what_is_asked_and_promised():
    assert made().plot().axes[0].get_title() == "Share of all rows by item (laplace, epsilon=1, add-remove)"
    by_users = made(weight="users", delta=1e-6).plot().axes[0].get_title()
    assert by_users == "Average user's share by item (laplace, epsilon=1, delta=1e-06, add-remove)"


def test_it_draws_on_axes_that_are_given():
    from matplotlib.figure import Figure

    ax = Figure().subplots()
    assert made().plot(2, ax=ax) is None  # whoever has the axes has the figure: a notebook would show it twice
    assert labels(ax) == ["c", "a"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "release", [made(), grouped(), reach(), reach_by_groups()], ids=["release", "groups", "reach", "reach by groups"]
)
def test_a_notebook_shows_a_picture(release):
    figure = release.plot(2)
    assert isinstance(figure, matplotlib.figure.Figure)
    assert figure._repr_png_().startswith(b"\x89PNG")


@pytest.mark.slow
def test_a_notebook_shows_a_picture_without_pyplot():
    """Only matplotlib's own figures need it to be shown."""
    code = (
        "import sys, pickle\n"
        "for release in pickle.loads(sys.stdin.buffer.read()):\n"
        "    figure = release.plot(2)._repr_png_()\n"
        "print(*sys.modules)"
    )
    releases = pickle.dumps([made(), grouped(), reach(), reach_by_groups()])
    done = subprocess.run([sys.executable, "-c", code], input=releases, capture_output=True, check=True)
    assert b"matplotlib.figure" in done.stdout.split()
    assert b"matplotlib.pyplot" not in done.stdout.split()


def test_without_matplotlib(monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, "crowdgram.present.picture", raising=False)
    for result in (made(), reach(), reach_by_groups()):
        with pytest.raises(MissingDependency, match=r"crowdgram\[plot\]"):
            result.plot()


def test_a_picture_of_groups():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    figure = grouped().plot(2)
    panels = [ax for ax in figure.axes if ax.get_visible()]
    assert [ax.get_title().split()[0] for ax in panels] == ["g0", "g1", "g2"]
    assert [label.get_text() for label in panels[0].get_yticklabels()] == ["a", "b"]
    assert [bar.get_width() for bar in panels[1].patches] == pytest.approx([1 / 6, 1 / 2], abs=0.01)
    assert {ax.get_xlim() for ax in panels} == {panels[0].get_xlim()}
    assert "for all groups together" in figure.get_suptitle()
    assert len(panels[0].containers) >= 1
    chosen = grouped().plot(groups=["g2"])
    assert "1 of 3 groups" in chosen.get_suptitle()
    missing = with_other().plot()
    assert [text.get_text().strip() for text in missing.axes[1].texts] == ["not listed", "0.429"]
    many = grouped(np.full(30, 1 / 30)).plot(1)
    assert sum(ax.get_visible() for ax in many.axes) == 12


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"n": 0}, "n=0"),
        ({"n": True}, "n=True"),
        ({"groups": []}, "groups=\\[\\]"),
        ({"groups": ["g0", "g0"]}, "each once"),
        ({"groups": ["none"]}, "'none'"),
    ],
)
def test_pictures_that_cannot_be_drawn(options, said):
    for result in (grouped(), reach_by_groups()):
        with pytest.raises(InvalidArgument, match=said):
            result.plot(**options)


def test_a_picture_of_a_reach():
    (ax,) = reach().plot(2, truth={"a": 910}).axes
    assert labels(ax) == ["a", "<b>"]
    assert [bar.get_width() for bar in ax.patches] == [900, 40]
    ends = [segment[:, 0].tolist() for segment in ax.containers[1].lines[2][0].get_segments()]
    assert ends == [[880, 920], [20, 60]]
    assert list(ax.lines[-1].get_xdata()) == [910, 0]
    assert ax.get_xlabel() == "users"
    assert ax.get_title() == "Users who have each item (reach, epsilon=1, add-remove)"


def test_a_reach_is_drawn_on_axes_that_are_given():
    ax = matplotlib.figure.Figure().subplots()
    assert reach().plot(1, ax=ax) is None
    assert labels(ax) == ["a"]


def test_a_picture_of_a_reach_by_groups():
    figure = reach_by_groups().plot(2)
    panels = figure.axes
    assert [ax.get_title() for ax in panels] == ["g1  (1,300 users)", "g0  (950 users)"]  # most users first
    assert labels(panels[0]) == ["a", r"b\$", "other"]
    assert [bar.get_width() for bar in panels[0].patches] == [500, 600]
    assert [[text.get_text().strip() for text in ax.texts] for ax in panels] == [["1,200"], ["7"]]
    assert "Users who have each item for each country" in figure.get_suptitle()
    assert "for all groups together" in figure.get_suptitle()
    (only,) = reach_by_groups().plot(1, groups=["g0"]).axes
    assert [bar.get_width() for bar in only.patches] == [900]
