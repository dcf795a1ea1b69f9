"""The commands on saved releases: what they print and write, and what they refuse."""

from __future__ import annotations

import csv
import re

import numpy as np
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

import crowdgram
from crowdgram import GroupedRelease, Other
from crowdgram.cli.app import app

from ..releases.test_parts import made


def run(*arguments):
    return CliRunner().invoke(app, [str(one) for one in arguments])


def words(text):
    return " ".join(text.split())


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder with three releases: of strings, of the same in another order, and by groups."""
    monkeypatch.chdir(tmp_path)
    errors = np.full(3, 1e-3)
    made(np.array([0.5, 0.3, 0.2]), errors, "abc", ("item",)).save("one.json")
    made(np.array([0.4, 0.3, 0.3]), errors, "cab", ("item",)).save("two.json")
    cells = [(group, page) for group in ("DE", "FR\x1b[2J") for page in "ab"]
    joint = made(np.array([0.4, 0.1, 0.2, 0.3]), np.full(4, 1e-3), cells, ("country", "page"))
    GroupedRelease(joint).save("groups.json")
    return tmp_path


def test_compare_two(folder):
    result = run("compare", "one.json", "two.json", "--top", 2)
    assert result.exit_code == 0, result.output
    found = re.search(r"first and second are (\S+) apart in l1 \(95% interval (\S+) to (\S+)\)", words(result.stdout))
    value, low, high = map(float, found.groups())
    assert value == pytest.approx(0.4, abs=0.002)
    assert low < 0.4 < high
    lines = [line.split() for line in result.stdout.splitlines() if line.strip()]
    assert lines[-2][:4] in (["a", "0.50000", "0.30000", "+0.20000"], ["c", "0.20000", "0.40000", "-0.20000"])
    assert lines[1][:4] == ["item", "first", "second", "difference"]
    assert len(lines) == 4
    assert re.search(
        r"0\.(200|199)\d apart in tv", words(run("compare", "one.json", "two.json", "--kind", "tv", "--top", 0).stdout)
    )


def test_compare_groups(folder):
    result = run("compare", "groups.json")
    assert result.exit_code == 0, result.output
    assert "\x1b[2J" not in result.stdout  # a name cannot steer the terminal
    assert re.search(r"DE FR\\x1b\[2J 0\.(80|79)", words(result.stdout))
    assert "apart in l1" in words(result.stdout)


def test_show_entropy(folder):
    assert "Entropy: 1.48" in words(run("show", "one.json", "--entropy").stdout)
    assert "Entropy" not in run("show", "one.json").stdout
    by_group = words(run("show", "groups.json", "--entropy").stdout)
    assert "Entropy of DE: 0.72" in by_group
    assert "Entropy of FR\\x1b[2J: 0.97" in by_group


def test_export(folder):
    for suffix in ("csv", "parquet", "json", "CSV"):
        result = run("export", "one.json", "-o", f"out.{suffix}")
        assert result.exit_code == 0, result.output
        assert result.stdout == f"Wrote out.{suffix}.\n"
    with open("out.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["item"] for row in rows] == ["a", "b", "c"]
    assert float(rows[0]["probability"]) == pytest.approx(0.5)
    assert pyarrow.parquet.read_table("out.parquet")["item"].to_pylist() == ["a", "b", "c"]
    assert crowdgram.load("out.json") == crowdgram.load("one.json")
    assert run("export", "groups.json", "-o", "groups.parquet").exit_code == 0
    assert pyarrow.parquet.read_table("groups.parquet").column_names[:3] == ["country", "share", "page"]


def test_export_merged(folder):
    (folder / "map.csv").write_text("item,kind\na,vowel\nc,consonant\n")
    assert run("export", "one.json", "-o", "out.json", "--merge", "map.csv").exit_code == 0
    assert crowdgram.load("out.json").items == ("vowel", "b", "consonant")
    assert run("export", "one.json", "-o", "out.json", "--merge", "map.csv", "--other", "rest").exit_code == 0
    assert crowdgram.load("out.json").items == ("vowel", "consonant", Other("rest"))
    made(np.array([0.5, 0.3, 0.2]), np.full(3, 1e-3), [1, 2, 3], ("item",)).save("numbers.json")
    (folder / "map.csv").write_text("item,to\n1,odd\n3,odd\n")
    assert run("export", "numbers.json", "-o", "out.json", "--merge", "map.csv").exit_code == 0
    assert crowdgram.load("out.json").items == ("odd", "2")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["compare", "one.json"], "has no groups"),
        (["compare", "one.json", "groups.json"], "by itself"),
        (["compare", "one.json", "none.json"], "cannot be read"),
        (["compare", "one.json", "two.json", "--kind", "kl"], "kl"),
        (["export", "one.json", "-o", "out.xlsx"], "must end in"),
        (["export", "one.json", "-o", "one.json"], "overwrite"),
        (["export", "one.json", "-o", "none/out.csv"], "cannot be written"),
        (["export", "one.json", "-o", "out.csv", "--other", "x"], "Give --merge too"),
        (["export", "one.json", "-o", "out.csv", "--merge", "none.csv"], "cannot be read"),
        (["export", "one.json", "-o", "out.csv", "--merge", "three.csv"], "two values"),
        (["export", "one.json", "-o", "out.csv", "--merge", "empty.csv"], "two values"),
        (["export", "one.json", "-o", "out.csv", "--merge", "twice.csv"], "an item twice"),
        (["export", "one.json", "-o", "out.csv", "--merge", "alien.csv"], "'z', which is not an item"),
        (["export", "one.json", "-o", "out.csv", "--merge", "bytes.csv"], "not CSV text"),
        (["export", "groups.json", "-o", "out.csv", "--merge", "alien.csv"], "one item column"),
    ],
)
def test_what_is_refused(folder, arguments, said):
    (folder / "three.csv").write_text("item,to\na,b,c\n")
    (folder / "empty.csv").write_text("")
    (folder / "twice.csv").write_text("item,to\na,b\na,c\n")
    (folder / "alien.csv").write_text("item,to\nz,b\n")
    (folder / "bytes.csv").write_bytes(b"item,to\n\xff\xfe,b\n")
    before = sorted(path.name for path in folder.iterdir())
    result = run(*arguments)
    assert result.exit_code == 2, result.output
    assert said in words(result.stderr)
    assert sorted(path.name for path in folder.iterdir()) == before


def test_sample(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run("sample", "visits.csv")
    assert result.exit_code == 0, result.output
    assert "invented users to visits.csv" in words(result.stdout)
    assert run("sample", "visits.txt").exit_code == 2
    assert [path.name for path in tmp_path.iterdir()] == ["visits.csv"]


def test_report(folder):
    for name, said in (("one.json", "Share of all rows by item"), ("groups.json", "by page for each country")):
        result = run("report", name, "-o", "page.html")
        assert result.exit_code == 0, result.output
        assert words(result.stdout) == "Wrote page.html."
        text = (folder / "page.html").read_text(encoding="utf-8")
        assert said in text
        assert "\x1b" not in text
    assert run("report", "groups.json", "-o", "page.html", "--title", "By country").exit_code == 0
    assert "<title>By country</title>" in (folder / "page.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("one.json", "-o", "page.txt"), "must end in .html"),
        (("one.json", "-o", "one.json"), "must end in .html"),
        (("one.json", "-o", "page.html", "--title", " "), "title="),
        (("none.json", "-o", "page.html"), "none.json"),
        (("one.json", "-o", "none/page.html"), "cannot be written"),
    ],
)
def test_reports_that_are_refused(folder, arguments, said):
    before = {path: path.read_bytes() for path in folder.iterdir()}
    result = run("report", *arguments)
    assert result.exit_code == 2
    assert said in words(result.stderr)
    assert {path: path.read_bytes() for path in folder.iterdir()} == before
