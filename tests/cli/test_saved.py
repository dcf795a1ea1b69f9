"""The commands on saved releases: what they print and write, and what they refuse."""

from __future__ import annotations

import csv
import datetime
import html
import json
import re
from dataclasses import replace

import numpy as np
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

import crowdgram
from crowdgram import GroupedRelease, Other, Quantity
from crowdgram.cli.app import app
from crowdgram.mechanisms.estimate import Total

from ..results.synthetic import made


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


def test_what_is_unknown_is_called_so(folder):
    """A group that is not seen above its noise has no distance: 0.000 would be a claim."""
    cells = [(group, page) for group in ("DE", "FR", "IT") for page in "abc"]
    values = np.array([0.4, 0.1, 0.1, 0.1, 0.2, 0.1, 1e-3, 0.0, 0.0])
    lost = GroupedRelease(made(values, np.full(9, 2e-3), cells, ("country", "page")))
    lost.save("lost.json")
    result = run("compare", "lost.json")
    assert result.exit_code == 0, result.output
    lines = [line.split() for line in result.stdout.splitlines()]
    assert ["DE", "IT", "unknown", "0.0000", "to", "2.0000"] in lines
    assert lines[1][:2] == ["DE", "FR"]
    shown = run("show", "lost.json", "--entropy")
    assert "Entropy of IT: unknown (95% interval 0.000 to 1.585)" in words(shown.stdout)
    assert "mostly noise: predicted l1 error " in words(shown.stdout)
    assert "1 of 3 groups is mostly noise, with a predicted l1 error above one half: 'IT'." in words(shown.stderr)
    run("report", "lost.json", "-o", "lost.html")
    text = (folder / "lost.html").read_text()
    assert "1 of 3 groups is mostly noise" in text
    assert "unknown<small>0.000 to 2.000</small>" in text
    assert "nan" not in re.sub(r"<(style|script)>.*?</(style|script)>", "", text, flags=re.DOTALL)
    one = made(values[6:], np.full(3, 1.0), "abc", ("page",))
    one.save("one.json", overwrite=True)
    made(np.array([0.4, 0.3, 0.3]), np.full(3, 1e-3), "abc", ("page",)).save("two.json", overwrite=True)
    said = words(run("compare", "one.json", "two.json").stdout)
    assert "How far apart one.json and two.json are in l1 is unknown: the releases are mostly noise" in said
    assert "mostly noise: its predicted l1 error is 3.00, of at most 2." in words(run("show", "one.json").stderr)


def test_show_says_what_its_figures_mean(folder):
    found = {"max_rows_per_user": 40, "rows_above_bound": 0.03, "rows_above_bound_low": 0.01}
    one = crowdgram.load("one.json")
    replace(one, parameters={**found, "rows_above_bound_high": 0.08}).save("bound.json")
    shown = words(run("show", "bound.json").stdout)
    for said in (
        "A 95% interval covers the table's own answer: the figure computed from the same rows without privacy.",
        "Predicted l1 error of all 3 probabilities together: 0.003, of at most 2.",
        "Each user counts for at most 40 rows, which leaves out 0.03 of all rows by estimate (95% interval 0.01 to "
        "0.08); users too few to be seen may hold more.",
    ):
        assert said in shown
        run("report", "bound.json", "-o", "bound.html")
        assert said in html.unescape((folder / "bound.html").read_text())
        assert html.escape(said) in crowdgram.load("bound.json")._repr_html_()
    assert "rows_above_bound=" not in shown
    replace(one, parameters={"max_rows_per_user": 1}).save("given.json")
    assert "Each user counts for at most 1 row; how many rows that leaves out was not measured." in words(
        run("show", "given.json").stdout
    )
    assert "Each user" not in run("show", "one.json").stdout


def test_counts(folder):
    one = replace(
        crowdgram.load("one.json"), total=Total(1000.0, row_bound=7), users=Quantity(150.0, 140.0, 160.0, 0.95)
    )
    one.save("counted.json")
    shown = words(run("show", "counted.json", "--measure", "counts").stdout)
    for said in (
        "count 95% interval",
        f"a {one.counts().counts[0]:,.0f} {one.counts().lower[0]:,.0f} to {one.counts().upper[0]:,.0f}",
        "The number of rows, by mechanism gaussian",
        one.counts().about,
        "Users: 150 (95% interval 140 to 160).",
    ):
        assert said in shown
    assert run("export", "counted.json", "--measure", "counts", "-o", "counts.csv").exit_code == 0
    assert (folder / "counts.csv").read_text().startswith('"item","count","standard_error"')
    assert run("report", "counted.json", "--measure", "counts", "-o", "counts.html").exit_code == 0
    assert "Number of rows by item" in (folder / "counts.html").read_text()
    for command, said in (
        (("show", "one.json", "--measure", "counts"), "needs the total"),
        (("export", "one.json", "--measure", "counts", "-o", "none.csv"), "needs the total"),
        (("report", "one.json", "--measure", "counts", "-o", "none.html"), "needs the total"),
        (("export", "counted.json", "--measure", "counts", "-o", "none.json"), "JSON holds shares and the total"),
        (("show", "counted.json", "--measure", "rows"), "is not one of"),
    ):
        failed = run(*command)
        assert failed.exit_code == 2
        assert said in words(failed.stderr)
    assert not list(folder.glob("none.*"))


def test_compare_two(folder):
    result = run("compare", "one.json", "two.json", "--top", 2)
    assert result.exit_code == 0, result.output
    found = re.search(
        r"one.json and two.json are (\S+) apart in l1 \(95% interval (\S+) to (\S+)\)", words(result.stdout)
    )
    value, low, high = map(float, found.groups())
    assert value == pytest.approx(0.4, abs=0.002)
    assert low < 0.4 < high
    lines = [line.split() for line in result.stdout.splitlines() if line.strip()]
    assert lines[-2][:4] in (["a", "0.50000", "0.30000", "+0.20000"], ["c", "0.20000", "0.40000", "-0.20000"])
    assert lines[1][:4] == ["item", "one.json", "two.json", "difference"]
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


def test_compare_two_by_groups(folder):
    """For each group that both have, the one that moved most first; and then its items."""
    cells = [(group, page) for group in ("DE", "IT", "FR\x1b[2J") for page in "ab"]
    moved = made(np.array([0.3, 0.1, 0.1, 0.1, 0.1, 0.3]), np.full(6, 1e-3), cells, ("country", "page"))
    GroupedRelease(moved).save("later.json")
    result = run("compare", "groups.json", "later.json", "--top", 1)
    assert result.exit_code == 0, result.output
    lines = [line.split() for line in result.stdout.splitlines()]
    assert [line[0] for line in lines[:3]] == ["country", "FR\\x1b[2J", "DE"]
    assert float(lines[1][1]) == pytest.approx(0.3, abs=0.02)
    assert float(lines[2][1]) == pytest.approx(0.1, abs=0.02)
    assert "only in later.json: IT" in result.stdout
    assert "FR\\x1b[2J in groups.json and FR\\x1b[2J in later.json are" in words(result.stdout)


def test_compare_says_what_counts_as_other(folder):
    rest = Other("other")
    for name, items in (("p", ["a", "b", rest]), ("q", ["a", "z", rest])):
        made(np.array([0.5, 0.3, 0.2]), np.full(3, 1e-3), items, ("item",)).save(f"{name}.json")
    said = words(run("compare", "p.json", "q.json").stdout)
    assert "Items that only p.json lists, 0.3000 of it, count as all others here." in said
    assert "only q.json lists, 0.3000" in said
    assert "count as all others" not in words(run("compare", "one.json", "two.json").stdout)


def test_what_fails_on_a_saved_release_is_shown(folder, monkeypatch):
    def broken(*_):
        raise ValueError("of public content")

    monkeypatch.setattr("crowdgram.export.json_file.load", broken)  # stands for a bug of ours
    result = run("compare", "one.json", "two.json")
    assert result.exit_code == 1
    assert "unexpected ValueError: of public content." in words(result.stderr)


def test_groups_are_shown_in_their_order_and_numbers_in_words(folder):
    cells = [(group, page) for group in ("small", "large") for page in "abc"]
    joint = made(np.array([0.1, 0.05, 0.05, 0.5, 0.2, 0.1]), np.full(6, 1e-3), cells, ("size", "page"))
    GroupedRelease(joint).save("sizes.json")
    shown = run("show", "sizes.json", "--top", 2).stdout
    assert shown.index("size = small") < shown.index("size = large")
    assert shown.count("and 1 more item\n") == 2
    assert "page" in shown
    assert run("show", "one.json", "--top", 0).stdout.startswith("3 items\n")


def test_midnights_of_saved_releases_are_days(folder):
    days = [datetime.datetime(2024, month, 1) for month in (1, 2, 3)]
    made(np.array([0.5, 0.3, 0.2]), np.full(3, 1e-3), days, ("month",)).save("months.json")
    shown = run("show", "months.json").stdout
    assert "2024-02-01" in shown
    assert "00:00" not in shown
    assert shown.startswith("month")


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


def test_export_merged_groups(folder):
    (folder / "map.csv").write_text("item,kind\na,x\nb,x\n")
    assert run("export", "groups.json", "-o", "out.json", "--merge", "map.csv").exit_code == 0
    assert crowdgram.load("out.json").joint.items == (("DE", "x"), ("FR\x1b[2J", "x"))


def test_export_merged(folder):
    (folder / "map.csv").write_text("item,kind\na,vowel\nc,consonant\n")
    assert run("export", "one.json", "-o", "out.json", "--merge", "map.csv").exit_code == 0
    assert crowdgram.load("out.json").items == ("vowel", "b", "consonant")
    assert (
        run("export", "one.json", "-o", "out.json", "--merge", "map.csv", "--other", "rest", "--force").exit_code == 0
    )
    assert crowdgram.load("out.json").items == ("vowel", "consonant", Other("rest"))
    made(np.array([0.5, 0.3, 0.2]), np.full(3, 1e-3), [1, 2, 3], ("item",)).save("numbers.json")
    (folder / "map.csv").write_text("item,to\n1,odd\n3,odd\n")
    assert run("export", "numbers.json", "-o", "out.json", "--merge", "map.csv", "--force").exit_code == 0
    assert crowdgram.load("out.json").items == ("odd", "2")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["compare", "one.json"], "needs at least two groups"),
        (["compare", "one.json", "groups.json"], "'groups.json' (by groups), 'one.json' (not by groups)"),
        (["compare", "groups.json", "one.json"], "'groups.json' (by groups), 'one.json' (not by groups)"),
        (["compare", "one.json", "pairs.json"], "items: both releases need"),
        (["compare", "groups.json", "by-day.json"], "one is by 'country', the other by 'day'"),
        (["compare", "groups.json", "elsewhere.json"], "need a group in common"),
        (["export", "one.json", "-o", "out.csv", "--merge", "headless.csv"], "first line names the item 'a'"),
        (["export", "one.json", "-o", "out.csv", "--merge", "nothing.csv"], "'a' needs a new one"),
        (["compare", "one.json", "none.json"], "cannot be read"),
        (["compare", "one.json", "two.json", "--kind", "kl"], "kl"),
        (["export", "one.json", "-o", "out.xlsx"], "must end in"),
        (["export", "one.json", "-o", "one.json"], "overwritten"),
        (["export", "one.json", "-o", "none/out.csv"], "cannot be written"),
        (["export", "one.json", "-o", "out.csv", "--other", "x"], "needs --merge"),
        (["export", "one.json", "-o", "out.csv", "--merge", "none.csv"], "cannot be read"),
        (["export", "one.json", "-o", "out.csv", "--merge", "three.csv"], "two values"),
        (["export", "one.json", "-o", "out.csv", "--merge", "empty.csv"], "two values"),
        (["export", "one.json", "-o", "out.csv", "--merge", "twice.csv"], "needs each item once"),
        (["export", "one.json", "-o", "out.csv", "--merge", "alien.csv"], "'z' needs to be one of"),
        (["export", "one.json", "-o", "out.csv", "--merge", "bytes.csv"], "needs to be CSV text"),
        (["export", "pairs.json", "-o", "out.csv", "--merge", "alien.csv"], "one item column"),
    ],
)
def test_what_is_refused(folder, arguments, said):
    (folder / "three.csv").write_text("item,to\na,b,c\n")
    (folder / "empty.csv").write_text("")
    (folder / "twice.csv").write_text("item,to\na,b\na,c\n")
    (folder / "alien.csv").write_text("item,to\nz,b\n")
    (folder / "bytes.csv").write_bytes(b"item,to\n\xff\xfe,b\n")
    (folder / "headless.csv").write_text("a,vowel\nc,consonant\n")
    (folder / "nothing.csv").write_text("item,to\na,\n")
    pairs = crowdgram.load("groups.json").joint
    pairs.save("pairs.json")
    GroupedRelease(replace(pairs, item_columns=("day", "page"))).save("by-day.json")
    GroupedRelease(replace(pairs, items=tuple((f"{group}?", page) for group, page in pairs.items))).save(
        "elsewhere.json"
    )
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
        result = run("report", name, "-o", "page.html", "--force")
        assert result.exit_code == 0, result.output
        assert words(result.stdout) == "Wrote page.html."
        text = (folder / "page.html").read_text(encoding="utf-8")
        assert said in text
        assert "\x1b" not in text
    assert run("report", "groups.json", "-o", "page.html", "--title", "By country", "--force").exit_code == 0
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


@pytest.mark.parametrize("name", ["new.csv", "new.parquet", "new.json", "new.html"])
def test_nothing_is_overwritten_unless_told(folder, name):
    command = ["report" if name == "new.html" else "export", "one.json", "-o", name]
    (folder / name).write_text("what was here")
    refused = run(*command)
    assert refused.exit_code == 2
    assert refused.stderr.startswith(f"error: '{name}' exists")
    assert "--force" in refused.stderr
    assert (folder / name).read_text() == "what was here"
    assert run(*command, "--force").output == f"Wrote {name}.\n"
    assert b"what was here" not in (folder / name).read_bytes()
    assert run(*command, "--force", "--quiet").output == ""


def test_export_prints_json(folder):
    printed = run("export", "groups.json", "-o", "-")
    assert printed.exit_code == 0
    assert printed.stdout.isascii()  # the escape in a name of it steers no terminal
    assert "\x1b" not in printed.stdout
    assert json.loads(printed.stdout) == json.loads((folder / "groups.json").read_text())
    assert not (folder / "-").exists()
    assert run("report", "one.json", "-o", "-").exit_code == 2


def test_show_as_json(folder):
    found = json.loads(run("show", "one.json", "--json", "--top", "2", "--entropy").stdout)
    one = crowdgram.load("one.json")
    assert found["predicted_l1_error"] == one.predicted_l1_error
    assert found["guarantee"] == one.guarantee.to_dict()
    assert found["items"] == 3
    assert [each["item"] for each in found["top"]] == ["a", "b"]
    assert found["top"][0]["upper"] == one.estimate("a").upper
    assert found["entropy"]["value"] == pytest.approx(one.entropy().value)
    assert found["warning"] is None
    assert "entropy" not in json.loads(run("show", "one.json", "--json").stdout)


def test_show_groups_as_json(folder):
    printed = run("show", "groups.json", "--json", "--top", "1").stdout
    assert "\x1b" not in printed
    found, grouped = json.loads(printed), crowdgram.load("groups.json")
    assert found["by"] == "country"
    assert [each["group"] for each in found["groups"]] == list(grouped)
    for each in found["groups"]:
        own = grouped[each["group"]]
        assert each["share"]["probability"] == grouped.shares.probability(each["group"])
        assert each["predicted_l1_error"] == own.predicted_l1_error
        assert [one["item"] for one in each["top"]] == [own.top(1)[0].item]


def test_what_is_unknown_is_null_in_json(folder):
    lost = GroupedRelease(
        made(np.array([0.9, 0.1, 1e-4, 0.0]), np.full(4, 2e-3), [(g, p) for g in "xy" for p in "ab"], ("g", "p"))
    )
    lost.save("lost.json")
    done = run("show", "lost.json", "--json", "--entropy")
    found = json.loads(done.stdout)
    assert found["groups"][1]["entropy"]["value"] is None
    assert "'y'" in found["warning"]
    assert "'y'" in done.stderr


def test_counts_as_json(folder):
    one = replace(
        made(np.array([0.5, 0.3, 0.2]), np.full(3, 1e-3), "abc", ("item",)),
        total=Total(1000.0, row_bound=7),
        users=Quantity(50.0, 40.0, 60.0, 0.95),
    )
    one.save("counted.json")
    found = json.loads(run("show", "counted.json", "--json", "--measure", "counts").stdout)
    assert found["measure"] == "counts"
    assert found["users"] == {"value": 50.0, "lower": 40.0, "upper": 60.0}
    assert found["top"][0]["count"] == one.counts().top(1)[0].count
    assert "probability" not in found["top"][0]
    refused = run("export", "counted.json", "--measure", "counts", "-o", "-")
    assert refused.exit_code == 2
    assert "JSON holds shares and the total" in words(refused.stderr)
