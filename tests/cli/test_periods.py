"""Ledgers with periods on the command line."""

from __future__ import annotations

import csv
import json
import re

import pytest
from typer.testing import CliRunner

import crowdgram
from crowdgram import Ledger
from crowdgram.cli import periods
from crowdgram.cli.app import app


def run(*arguments):
    return CliRunner().invoke(app, [str(one) for one in arguments], env={"COLUMNS": "200"})


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with open("visits.csv", "w", newline="", encoding="utf-8") as file:
        lines = csv.writer(file)
        lines.writerow(["user", "page", "day"])
        lines.writerows([user, page, f"2026-{month}-0{1 + turn}"] for user in range(40) for page, month in
                        (("home", 10), ("wine", 11)) for turn in range(5))  # fmt: skip
    (tmp_path / "pages.txt").write_text("home\nwine\n")
    made = run("ledger", "create", "v.ledger", "--epsilon", "1", "--delta", "1e-6", "--every", "month")
    assert made.output == (
        "Made v.ledger: epsilon 1, delta 1e-06, add-remove, anew for each month; without a limit for all periods "
        "together.\n"
    )
    return tmp_path


def release(period, *more, output="r.json", epsilon=0.5):
    asked = ["--user", "user", "--item", "page", "--domain", "pages.txt", "--mechanism", "laplace"]
    named = [] if period is None else ["--period", period]
    return run(
        "release", "visits.csv", *asked, "--epsilon", epsilon, "--ledger", "v.ledger", *named, "-o", output, *more
    )


@pytest.mark.slow
def test_a_year_of_it(folder):
    for period in ("2026-11", "2026-10"):
        done = release(period, "--period-column", "day", output=f"{period}.json")
        assert done.exit_code == 0, done.output
        assert crowdgram.load(f"{period}.json").parameters["period"] == period
    assert release("2026-10", output="again.json").exit_code == 0
    shown = run("ledger", "show", "v.ledger").output
    assert "epsilon 1, delta 1e-06, add-remove, anew for each month" in shown
    assert "3 finished, 0 unfinished" in shown
    assert "in all 2 periods used: epsilon 2, delta 2e-06 at most; by what was drawn, about epsilon 1.5 at" in shown
    assert "release 3 had no period column: the operator answers for the rows read" in shown
    lines = [line.split() for line in shown.splitlines()]
    assert ["2026-10", "2", "epsilon", "1", "nothing"] in lines
    assert ["2026-11", "1", "epsilon", "0.5", "epsilon", "0.5", "by", "auto"] in lines
    one = run("ledger", "show", "v.ledger", "--period", "2026-11").output
    assert "epsilon 1, delta 1e-06, add-remove, for 2026-11" in one
    assert "epsilon 0.5 (plain sum: epsilon 0.5)" in one
    history = run("ledger", "history", "v.ledger").output
    assert re.search(r"finished +2026-11 +by day +laplace", history)
    assert re.search(r"finished +2026-10 +by operator +laplace", history)
    only = run("ledger", "history", "v.ledger", "--period", "2026-11").output
    assert "2026-11" in only
    assert "2026-10" not in only


def test_a_refusal_names_the_period(folder):
    assert release("2026-10", epsilon=0.9).exit_code == 0
    done = release("2026-10", output="more.json")
    assert done.exit_code == 3
    assert "for 2026-10. Nothing was charged" in done.output
    assert "What would fit: epsilon=0.1 with mechanism='laplace'" in done.output
    assert release("2026-12", output="next.json").exit_code == 0


def test_recover(folder):
    for period in ("2026-10", "2026-11"):
        release(period, output=f"{period}.json")
    assert run("ledger", "recover", "v.ledger", "--period", "2026-10", "-o", "back.json").exit_code == 0
    assert (folder / "back.json").read_bytes() == (folder / "2026-10.json").read_bytes()
    assert run("ledger", "recover", "v.ledger", "--period", "2026-09", "-o", "x.json").exit_code == 2


@pytest.mark.slow
def test_json(folder):
    release("2026-10", "--period-column", "day")
    figures = json.loads(run("ledger", "show", "v.ledger", "--json").stdout)
    assert (figures["every"], figures["overall"], figures["releases"]) == ("month", None, 1)
    assert figures["without_period_column"] == 0
    assert figures["whole_user"] == {
        "periods": 1,
        "promised": {"epsilon": 1.0, "delta": 1e-6},
        "drawn": {"epsilon": pytest.approx(0.5, rel=1e-12), "delta": 1e-6},
    }
    (own,) = figures["periods"]
    assert own == {"period": "2026-10", "releases": 1, "unfinished": 0, "spent_epsilon": pytest.approx(0.5)}
    alone = json.loads(run("ledger", "show", "v.ledger", "--period", "2026-10", "--json").stdout)
    assert (alone["spent_epsilon"], len(alone["would_fit"])) == (pytest.approx(0.5), 3)
    (entry,) = json.loads(run("ledger", "history", "v.ledger", "--json").stdout)
    assert (entry["period"], entry["period_column"]) == ("2026-10", "day")


def test_an_overall_limit(folder):
    made = run("ledger", "create", "o.ledger", "--epsilon", "1", "--every", "week", "--epsilon-overall", "3")
    assert made.output == "Made o.ledger: epsilon 1, delta 0, add-remove, anew for each week; at most epsilon 3 for all periods together.\n"  # fmt: skip # noqa: E501
    ledger = Ledger.open("o.ledger", period="2026-W01")
    assert ledger.overall == crowdgram.Guarantee(3.0)
    shown = run("ledger", "show", "o.ledger").output
    assert "0 finished" in shown
    assert "whole user" not in shown
    done = run("release", "visits.csv", "--user", "user", "--item", "page", "--domain", "pages.txt", "--epsilon", 1,
               "--ledger", "o.ledger", "--period", "2026-W45", "-o", "r.json")  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "in all periods: epsilon 3, delta 0 at most; by what was drawn" in run("ledger", "show", "o.ledger").output


def test_many_periods_are_cut(folder, monkeypatch):
    monkeypatch.setattr(periods, "_MOST_PERIODS", 1)  # a limit that a few periods reach
    for period in ("2026-09", "2026-10", "2026-11"):
        assert release(period, output=f"{period}.json").exit_code == 0
    shown = run("ledger", "show", "v.ledger").output
    assert "2 earlier periods, then" in shown
    assert "2026-09" not in shown
    assert "3 of 3 releases had no period column" in shown


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ([], "period=None"),
        (["--period", "2026-1"], "needs to be the name of a month"),
        (["--period-column", "day"], "Give the period too"),
        (["--period", "2026-11", "--period-column", "date"], "period_column='date'"),
    ],
)
def test_bad_input(folder, more, words):
    done = release(None, *more)
    assert done.exit_code == 2
    assert words in done.output
    assert Ledger.open("v.ledger").history() == []
    assert not (folder / "r.json").exists()


@pytest.mark.parametrize("option", [["--period", "2026-11"], ["--period-column", "day"]])
def test_periods_are_for_a_ledger(folder, option):
    done = run("release", "visits.csv", "--user", "user", "--item", "page", "--epsilon", "1", "-o", "r.json", *option)
    assert done.exit_code == 2
    assert f"{option[0]} {option[1]!r} is for a ledger. Give --ledger too." in done.output
