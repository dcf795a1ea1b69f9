"""`crowdgram plan`, as a person meets it."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from crowdgram.cli.app import app
from crowdgram.synth import Crowd

FIGURES = ["--users", 500, "--rows-per-user", 5, "--items", 10, "--epsilon", 1, "--weight", "users"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # fewer simulated releases: the words are tested here
    monkeypatch.setattr("crowdgram.planning.expected.MOST_RUNS", 4)
    return tmp_path


def run(*arguments):
    return CliRunner().invoke(app, ["plan", *(str(one) for one in arguments)], env={"COLUMNS": "200"})


def test_a_plan_is_printed():
    done = run(*FIGURES, "--delta", "1e-6", "--tails", "very-different")
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert lines[0].startswith("An item of 3.4% will be known to within ")
    assert lines[1].split() == ["way", "l1", "error", "of", "population", "item", "of", "3.4%", "within"]
    assert [line.split("  ")[0] for line in lines[2:6]] == ["auto", "Laplace noise", "Gaussian noise", "no privacy"]
    assert "sigma 2)" in done.stdout
    assert lines[-1].startswith("Adding or removing all rows of any one user")
    assert len(lines) == len(set(lines))


@pytest.mark.slow
def test_a_plan_as_json_and_as_a_picture(folder):
    pytest.importorskip("matplotlib")
    done = run(*FIGURES, "--json", "--plot", "p.png", "--share", 0.1)
    assert done.exit_code == 0, done.output
    values = json.loads(done.stdout)
    assert values["users"] == 500
    assert [one["way"] for one in values["expected"]] == ["auto", "laplace", "no privacy"]
    assert values["share"] == 0.1
    assert (folder / "p.png").read_bytes().startswith(b"\x89PNG")
    again = run(*FIGURES, "--plot", "p.png")
    assert again.exit_code == 2
    assert "exists" in again.stderr
    assert run(*FIGURES, "--plot", "p.txt").exit_code == 2


@pytest.mark.slow
def test_what_is_left_out_is_solved_for():
    given = ["--rows-per-user", 5, "--items", 10, "--epsilon", 1, "--weight", "users", "--target-error", 0.1]
    done = run(*given, "--against", "population")
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("For an l1 error of 0.1 against the population: ")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([*FIGURES, "--target-error", 0.1], "needs exactly one of"),
        (["--users", 10], "rows_per_user=None: needs a value"),
        ([*FIGURES, "--share", 0.9], "share=0.9: needs to be that of an item"),
        ([*FIGURES, "--like", "none.json"], "'none.json' cannot be read"),
        ([*FIGURES, "--period", "2026-01"], "--period and --period-column are for a ledger"),
        ([*FIGURES, "--domain", "x"], "TABLE: is needed for --domain, --bins and --table"),
        ([*FIGURES, "--user", "u"], "user: is for a table"),
        (["-", "--user", "u", "--item", "i", "--epsilon", 1], "standard input cannot be checked without reading it"),
        (["none.csv", "--user", "u", "--item", "i", "--epsilon", 1, "--delta", "1e-6"], "none.csv"),
        (["none.csv", "--user", "u", "--epsilon", 1], "item=None: a table needs it"),
    ],
)
def test_bad_arguments_exit_with_2(arguments, said):
    done = run(*arguments)
    assert done.exit_code == 2
    assert said in done.stderr
    assert done.stdout == ""


def test_a_table_and_a_ledger_are_checked(folder):
    Crowd(users=50, rows=3, items=4, seed=1).write("t.parquet", domain="items.txt")
    made = CliRunner().invoke(app, ["ledger", "create", "l.ledger", "--epsilon", "2", "--delta", "1e-5"])
    assert made.exit_code == 0
    before = (folder / "l.ledger").read_bytes()
    named = ["t.parquet", "--user", "user", "--item", "item", "--domain", "items.txt", "--ledger", "l.ledger"]
    done = run(*named, "--epsilon", 1)
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("The table can be read: item (int64); 4 items. No row was read, and nothing was")
    assert "The ledger has enough left for epsilon=1, delta=0." in done.stdout
    refused = run(*named, "--epsilon", 3)
    assert refused.exit_code == 3
    assert "What would fit" in refused.stderr
    assert run("t.parquet", "--user", "user", "--item", "odd", "--epsilon", 1, "--delta", "1e-6").exit_code == 2
    assert (folder / "l.ledger").read_bytes() == before


@pytest.mark.slow
def test_finding_items_is_an_option():
    crowd = ("--users", 300, "--rows-per-user", 3, "--items", 5, "--epsilon", 1, "--weight", "users")
    done = run(*crowd, "--delta", 1e-6, "--discovery-share", 0.4)
    assert done.exit_code == 0
    assert "40% of the budget goes there and is counted here" in done.stdout
    assert run(*crowd, "--discovery-share", 0.4).exit_code == 2  # without a delta
