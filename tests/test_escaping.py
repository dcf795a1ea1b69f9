"""Names that others chose reach a terminal, a page, a picture and files: none of them is taken for an instruction."""

from __future__ import annotations

import csv
import importlib.util
import io
import json
import re
import unicodedata
import warnings
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

import crowdgram
from crowdgram.cli.app import app
from crowdgram.cli.display import show_release
from crowdgram.escaping import guarded_cell, printable, unguarded_cell
from crowdgram.export import write_csv
from crowdgram.present.report import page as html_page
from crowdgram.privacy import Guarantee, LaplaceEvent
from crowdgram.results import GroupedRelease, Other, Release

from .present.pages import without_assets

BENCH = Path(__file__).parents[1] / "bench"
spec = importlib.util.spec_from_file_location("hostile", BENCH / "hostile.py")
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
HOSTILE = module.HOSTILE

FORMULAS = tuple("=+-@\t\r\n＝＋－＠")
STEERING = {"Cc", "Cf", "Cs", "Zl", "Zp"}
EXPECTED_TAGS = {"div", "p", "b", "table", "thead", "tbody", "tr", "th", "td"}


def made(items=HOSTILE, **changes):
    k = len(items)
    p = np.full(k, 1 / k)
    fields = {
        "items": tuple(items),
        "probabilities": p,
        "standard_errors": p,
        "lower": np.zeros(k),
        "upper": np.ones(k),
        "confidence": 0.95,
        "predicted_l1_error": 0.1,
        "guarantee": Guarantee(1.0),
        "events": (LaplaceEvent("counts", 1, 1.0, k),),
        "mechanism": "laplace",
        "weight": "rows",
    }
    return Release(**(fields | changes))


def steering(text):
    """What in a text could steer a terminal, but for line breaks."""
    return [char for char in text if char != "\n" and unicodedata.category(char) in STEERING]


class Page(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.attributes, self.names, self.comments = set(), set(), [], []
        self._open = []

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.attributes.update(name for name, _ in attributes)
        self._open.append(tag)
        if tag == "tr":
            self.names.append("")

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        self.names and self._open and self._open[-1] == "td" and self.names.__setitem__(-1, self.names[-1] or data)

    def handle_comment(self, data):
        self.comments.append(data)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_page_holds_names_as_text(name):
    page = Page()
    page.feed(made([name, "plain"])._repr_html_())
    page.close()
    assert page.tags <= EXPECTED_TAGS
    assert page.attributes <= {"style"}
    assert page.comments == []
    assert len(page.names) == 3  # the heading and two items
    shown = name if len(name) <= 40 else name[:39] + "…"
    assert page.names[1] == printable(shown)
    assert not steering(page.names[1])


@pytest.mark.parametrize("name", HOSTILE)
def test_a_page_holds_a_mechanisms_name_as_text(name):
    page = Page()
    page.feed(made(["a"], mechanism=name, guarantee=Guarantee(1.0, unit=f"user{name}"))._repr_html_())
    assert page.tags <= EXPECTED_TAGS
    assert page.attributes <= {"style"}
    assert page.comments == []


PAGE_TAGS = {
    *EXPECTED_TAGS, "html", "head", "meta", "title", "style", "body", "main", "h1", "h2", "h3", "section", "small",
    "span", "a", "bdi", "i", "svg", "rect", "path", "details", "summary", "caption", "dl", "dt", "dd", "figure",
    "figcaption", "noscript", "label", "input", "button", "code", "script",
}  # fmt: skip
PAGE_ATTRIBUTES = {
    "lang", "dir", "charset", "http-equiv", "content", "name", "class", "id", "href", "type", "width", "height", "x",
    "viewbox", "preserveaspectratio", "d", "focusable", "tabindex", "role", "scope", "autocomplete", "spellcheck",
    "aria-hidden", "aria-label", "aria-labelledby", "aria-live", "data-list", "data-plot",
}  # fmt: skip


class WholePage(Page):
    """A page with names in `<bdi>`, where they may be cut; what is in attributes is kept too. Its blocks are data."""

    def __init__(self, text):
        super().__init__()
        self.texts, self.values = [], []
        self.feed(without_assets(text))
        self.close()

    def handle_starttag(self, tag, attributes):
        if tag not in ("meta", "input"):
            super().handle_starttag(tag, attributes)
        assert tag != "script" or ("type", "application/json") in attributes
        self.values += [(name, value) for name, value in attributes if tag not in ("meta", "svg", "rect", "path")]
        if tag == "bdi":
            self.texts.append("")

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        self.handle_endtag(tag)

    def handle_data(self, data):
        assert not steering(data)
        if self._open and self._open[-1] == "bdi":
            self.texts[-1] += data


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
def test_a_report_holds_names_as_text(name):
    cells = [(group, item) for group in (name, "b") for item in (name, "plain", Other(f"other{name}"))]
    joint = made(
        cells,
        item_columns=(f"by{name}", f"item{name}"),
        mechanism=name,
        guarantee=Guarantee(1.0, unit=f"user{name}"),
        parameters={name: name},
        versions={name: name},
        events=(LaplaceEvent(name or "x", 1, 1.0, 6),),
    )
    for release in (joint, GroupedRelease(joint), joint.conditional(given={f"by{name}": "b"})):
        page = WholePage(html_page(release, f"title{name}"))
        assert page.tags <= PAGE_TAGS
        assert page.attributes <= PAGE_ATTRIBUTES | {"open"}
        assert page.comments == []
        links = {value for attribute, value in page.values if attribute == "href"}
        assert all(re.fullmatch(r"#(main|one-group-\d+)", link) for link in links)
        shown = name if len(name) <= 80 else name[:79] + "…"
        assert printable(shown) in page.texts
    notebook = Page()
    notebook.feed(GroupedRelease(joint)._repr_html_())
    assert notebook.tags <= EXPECTED_TAGS
    assert notebook.attributes <= {"style"}
    assert notebook.comments == []


@pytest.mark.slow
@pytest.mark.parametrize("terminal", [True, False])
def test_a_terminal_is_not_steered(terminal):
    for name in HOSTILE:
        out = io.StringIO()
        console = Console(file=out, force_terminal=terminal, width=200, color_system=None, legacy_windows=False)
        show_release(console, made([name, "plain"], mechanism=name, parameters={name: name}), 10)
        assert not steering(out.getvalue()), name
        if len(name) < 30 and printable(name) == name.strip():
            assert name in out.getvalue()  # markup is shown, not obeyed
        assert not steering(repr(made(["a"], mechanism=name)))


@pytest.mark.slow
def test_the_command_line_quotes_nothing_that_steers(tmp_path):
    runner = CliRunner()
    for name in HOSTILE:
        if "\x00" in name:
            continue
        out = str(tmp_path / "r.json")
        usual = ["--user", name, "--item", "i", "--epsilon", "1", "--domain", name, "-o", out]
        result = runner.invoke(app, ["release", f"{name}.csv", *usual])
        assert result.exit_code == 2, name
        assert not steering(result.stderr), name
        shown = runner.invoke(app, ["show", str(tmp_path / "missing") + name.replace("/", "")])
        assert shown.exit_code == 2
        assert not steering(shown.stderr)


@pytest.mark.slow
def test_a_saved_file_that_steers_is_shown_harmless(tmp_path):
    """As an item, all of them at once; as the mechanism and as a parameter, one by one."""
    path = tmp_path / "r.json"

    def show():
        result = CliRunner().invoke(app, ["show", str(path), "--top", "200"])
        assert result.exit_code == 0
        assert not steering(result.stdout)

    made(HOSTILE).save(path)
    show()
    made(["plain", "other"]).save(path, overwrite=True)
    document = json.loads(path.read_text())
    for name in HOSTILE:
        document["mechanism"] = name
        document["parameters"] = {name: name}
        path.write_text(json.dumps(document))
        show()


def test_json_holds_names_exactly(tmp_path):
    path = tmp_path / "r.json"
    made(HOSTILE).save(path)
    assert crowdgram.load(path).items == HOSTILE
    assert made(HOSTILE).to_arrow().column("item").to_pylist() == list(HOSTILE)


@pytest.mark.slow
def test_a_picture_can_be_drawn_of_every_name():
    pytest.importorskip("matplotlib")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")
        warnings.filterwarnings("ignore", message="Matplotlib currently does not support")
        (axes,) = made(HOSTILE, mechanism="$x^2$ $\\frac{").plot(n=len(HOSTILE)).axes
        axes.figure.savefig(io.BytesIO(), dpi=20)
    labels = [label.get_text() for label in axes.get_yticklabels()] + [axes.get_title()]
    for label in labels:
        assert not steering(label)
        assert not re.search(r"(?<!\\)\$", label)


@pytest.mark.slow
def test_a_picture_of_groups_can_be_drawn_of_every_name():
    pytest.importorskip("matplotlib")
    cells = [(group, item) for group in HOSTILE[14:18] for item in HOSTILE]
    joint = made(cells, item_columns=("$by$", "item"), mechanism="$x^2$ $\\frac{")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")
        warnings.filterwarnings("ignore", message="Matplotlib currently does not support")
        figure = GroupedRelease(joint).plot(n=len(HOSTILE))
        figure.savefig(io.BytesIO(), dpi=20)
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()] + [ax.get_title() for ax in figure.axes]
    for label in [*labels, *figure.get_suptitle().splitlines()]:
        assert not steering(label)
        assert not re.search(r"(?<!\\)\$", label)


@pytest.mark.parametrize("name", HOSTILE)
def test_cells_are_no_formulas_and_can_be_read_back(name):
    cell = guarded_cell(name)
    assert not cell.startswith(FORMULAS)
    assert unguarded_cell(cell) == name


def test_csv_has_no_formulas_and_can_be_read_back(tmp_path):
    write_csv(made(HOSTILE), tmp_path / "r.csv")
    with open(tmp_path / "r.csv", newline="", encoding="utf-8") as file:
        lines = list(csv.reader(file))
    assert lines[0] == ["item", "probability", "standard_error", "lower", "upper"]
    cells = [line[0] for line in lines[1:]]
    assert [unguarded_cell(cell) for cell in cells] == list(HOSTILE)
    assert not [cell for cell in cells if cell.startswith(FORMULAS)]
    write_csv(made([-1, 2]), tmp_path / "n.csv")
    assert (tmp_path / "n.csv").read_text().splitlines()[1].startswith("-1,")  # a number is a number


UNSEEN = (
    " \u00a0\u2003\u3000\u200b\u200d\u2060\ufeff\u00ad\u180e"
    "\u202e\u2066\u115f\u3164\uffa0\u2800\u034f\ufe0f\x00\x1f\x0b"
)


@pytest.mark.parametrize("sign", "=+-@＝＋－＠﹦﹢﹣﹫\u2212")
def test_a_formula_behind_blanks_or_invisible_characters_is_guarded(sign):
    for before in ("", *UNSEEN, "\u200b \ufeff", " " * 50):
        name = f"{before}{sign}cmd|' /C calc'!A0"
        assert guarded_cell(name) == f"'{name}"
        assert unguarded_cell(guarded_cell(name)) == name


def test_plain_cells_stay_as_they_are():
    for name in ("apple", "", "1", "a=b", " x", "Ärger", " a =1", "\u200bx-1", " "):
        assert guarded_cell(name) == name
