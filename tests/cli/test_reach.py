"""`crowdgram reach`, as a person meets it; and what other commands make of a saved reach."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from crowdgram import Reach
from crowdgram.cli.app import app
from crowdgram.synth import Crowd


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Crowd(users=400, rows=6, items=5, seed=1, strings=True).write("visits.csv", domain="items.txt")
    return tmp_path


def run(*arguments):
    return CliRunner().invoke(app, [str(one) for one in arguments], env={"COLUMNS": "200"})


def reach(*more, output="r.json"):
    named = ["--user", "user", "--item", "item", "--domain", "items.txt", "--epsilon", "2"]
    return run("reach", "visits.csv", *named, "-o", output, *more)


def test_a_reach_is_released_shown_and_exported(folder):
    done = reach("--csv", "r.csv")
    assert done.exit_code == 0, done.output
    assert "share of users" in done.stdout
    assert "Saved to r.json." in done.stdout
    assert len(Reach.load("r.json")) == 5
    assert (folder / "r.csv").read_text().startswith('"item","users","standard_error"')
    shown = run("show", "r.json", "--top", 2)
    assert shown.exit_code == 0
    assert "and 3 more items" in shown.stdout
    assert run("show", "r.json", "--top", 0).stdout.startswith("5 items\n")
    summary = json.loads(run("show", "r.json", "--json").stdout)
    assert summary["question"] == "Users who have each item"
    assert len(summary["top"]) == 5
    for name in ("e.csv", "e.parquet", "e.json"):
        assert run("export", "r.json", "-o", name).exit_code == 0
    assert Reach.load("e.json") == Reach.load("r.json")
    printed = run("export", "r.json", "-o", "-")
    assert json.loads(printed.stdout)["schema"] == "crowdgram-reach"


def test_json_alone_on_standard_output(folder):
    done = reach("--quiet", output="-")
    assert json.loads(done.stdout)["schema"] == "crowdgram-reach"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["compare", "r.json", "r.json"], "is a saved reach, and a release is needed here"),
        (["report", "r.json", "-o", "r.html", "--measure", "counts"], "--measure counts: 'r.json' is a reach"),
        (["show", "r.json", "--entropy"], "--entropy: 'r.json' is a reach"),
        (["export", "r.json", "-o", "x.csv", "--measure", "counts"], "--measure counts: 'r.json' is a reach"),
        (["export", "r.json", "-o", "x.csv", "--merge", "items.txt"], "is a reach, which does not add up"),
    ],
)
def test_what_a_reach_has_no_answer_to(folder, arguments, said):
    assert reach("--quiet").exit_code == 0
    result = run(*arguments)
    assert result.exit_code == 2
    assert said in " ".join(result.stderr.split())


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--max-items-per-user", "0"], "max_items_per_user=0"),
        (["--label", "x"], "--label 'x' is for the history of a ledger"),
        (["--format", "csv"], "--format csv is for standard input"),
        (["--csv", "r.json"], "Give two names"),
        (["--csv", "visits.csv", "--force"], "would overwrite the input"),
        (["--discovery-share", "0.5"], "all are listed"),
        (["--delta", "0.5"], "delta=0.5"),
    ],
)
def test_bad_input_exits_with_2_and_writes_nothing(folder, more, said):
    result = reach(*more)
    assert result.exit_code == 2
    assert said in " ".join(result.stderr.split())
    assert not (folder / "r.json").exists()


def test_nothing_is_overwritten(folder):
    assert reach("--quiet").exit_code == 0
    again = reach("--quiet")
    assert again.exit_code == 2
    assert "exists. Overwriting it would discard a release" in " ".join(again.stderr.split())
    assert reach("--quiet", "--force").exit_code == 0


def test_a_ledger_is_charged_and_gives_it_back(folder):
    assert run("ledger", "create", "l.ledger", "--epsilon", "5").exit_code == 0
    assert reach("--ledger", "l.ledger", "--label", "weekly", "--quiet").exit_code == 0
    history = run("ledger", "history", "l.ledger").output
    assert "reach" in history
    assert "weekly" in history
    assert run("ledger", "recover", "l.ledger", "-o", "again.json").exit_code == 0
    assert Reach.load("again.json") == Reach.load("r.json")
    refused = reach("--ledger", "l.ledger", "--epsilon", "4", output="other.json")
    assert refused.exit_code in (2, 3)


def test_a_reach_by_groups(folder):
    (folder / "groups.txt").write_text("true\nfalse\n")
    asked = ("--by", "late=item > 'item-0002'", "--groups", "groups.txt", "--csv", "g.csv")
    done = reach(*asked, output="g.json")
    assert done.exit_code == 0, done.output
    assert "late = True, " in done.stdout
    assert "Users who have each item, for each late" in done.stdout
    assert (folder / "g.csv").read_text().startswith('"late","group_users","item","users"')
    summary = json.loads(run("show", "g.json", "--json", "--top", 1).stdout)
    assert [one["group"] for one in summary["groups"]] == [True, False]
    assert summary["groups"][0]["users"]["value"] > 1
    assert run("export", "g.json", "-o", "g.parquet").exit_code == 0
    assert run("report", "g.json", "-o", "g.html").exit_code == 0
    assert "--entropy: 'g.json' is a reach" in run("show", "g.json", "--entropy").stderr
    assert run(*("compare", "g.json", "g.json")).exit_code == 2
