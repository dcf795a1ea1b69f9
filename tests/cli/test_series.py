"""`crowdgram series`, as a person meets it."""

from __future__ import annotations

import datetime
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from crowdgram import GroupedRelease, Other
from crowdgram.cli.app import app

from ..results.synthetic import made


def run(*arguments):
    return CliRunner().invoke(app, ["series", *(str(one) for one in arguments)], env={"COLUMNS": "160"})


def release(shares, items="abc"):
    return made(np.array(shares), np.full(len(shares), 1e-3), items, ("page",))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    release([0.5, 0.3, 0.2]).save("jan.json")
    release([0.4, 0.4, 0.2]).save("feb.json")
    cells = [("x", "a"), ("x", "b")]
    GroupedRelease(made(np.full(2, 0.5), np.full(2, 1e-3), cells, ("by", "page"))).save("groups.json")
    return tmp_path


def test_a_table(folder):
    done = run("jan.json", "feb.json", "--top", "1")
    assert done.exit_code == 0, done.output
    lines = [line.split() for line in done.stdout.splitlines()]
    assert lines[0] == ["page", "release", "share", "95%", "interval", "change", "95%", "interval"]
    assert lines[1] == ["a", "jan", "0.5000", "0.4980", "to", "0.5020"]
    assert lines[2][:6] == ["feb", "0.4000", "0.3980", "to", "0.4020", "-0.1000"]
    assert "some will seem to be" in done.stdout


def test_items_and_labels(folder):
    done = run("jan.json", "feb.json", "--item", "c", "--item", "b", "--label", "first", "--label", "second")
    assert done.exit_code == 0
    assert done.stdout.index("c ") < done.stdout.index("b ")
    assert "second" in done.stdout
    assert "a " not in [line[:2] for line in done.stdout.splitlines()]


def test_periods_are_labels(folder):
    for month in ("2026-10", "2026-11"):
        replace(release([0.5, 0.3, 0.2]), parameters={"period": month}).save(f"r{month[-2:]}.json")
    assert "2026-11" in run("r10.json", "r11.json").stdout
    assert "2026-11" not in run("r10.json", "jan.json", "r11.json").stdout  # not all have one


def test_dates_and_gaps(folder):
    day = datetime.datetime(2026, 1, 2)
    release([0.6, 0.4], [day, Other("other")]).save("one.json")
    release([0.5, 0.3, 0.2], [day, datetime.datetime(2026, 1, 3), Other("other")]).save("two.json")
    done = run("one.json", "two.json", "--item", "2026-01-03")
    assert done.exit_code == 0, done.output
    assert "- stands for an item that is not listed in that release." in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("name", ["s.html", "s.csv", "s.png", "s.svg", "s.pdf"])
def test_files(folder, name):
    if name[-3:] in ("png", "svg", "pdf"):
        pytest.importorskip("matplotlib").use("Agg")
    done = run("jan.json", "feb.json", "-o", name)
    assert done.exit_code == 0, done.output
    assert done.stdout == f"Wrote {name}.\n"
    content = (folder / name).read_bytes()
    assert content[:8].strip(b"\x89")[:4] in (b"<!do", b'"pag', b"PNG\r", b"<?xm", b"%PDF")
    again = run("jan.json", "feb.json", "-o", name)
    assert again.exit_code == 2
    assert "exists" in again.stderr
    assert run("jan.json", "feb.json", "-o", name, "--force", "-q").output == ""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["jan.json"], "at least two"),
        (["jan.json", "groups.json"], "is by groups"),
        (["jan.json", "none.json"], "none.json"),
        (["jan.json", "feb.json", "--label", "x"], "is given 1 times for 2 releases"),
        (["jan.json", "feb.json", "--label", "x", "--label", "x"], "names two releases"),
        (["jan.json", "jan.json"], "names two releases"),
        (["jan.json", "feb.json", "--item", "z"], "--item 'z'"),
        (["jan.json", "feb.json", "-o", "s.txt"], "must end in .html"),
        (["jan.json", "feb.json", "-o", "feb.json"], "must end in"),
        (["jan.json", "feb.json", "--title", "x"], "--title 'x'"),
        (["jan.json", "feb.json", "--measure", "counts"], "needs the total"),
    ],
)
def test_bad_input(folder, arguments, words):
    done = run(*arguments)
    assert done.exit_code == 2, done.output
    assert words in done.output
