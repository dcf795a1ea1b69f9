"""Releases that are charged to a period of a ledger."""

from __future__ import annotations

import datetime
import json
import subprocess
import sys

import pyarrow as pa
import pytest

import crowdgram
from crowdgram import Ledger, tables
from crowdgram.errors import BudgetExceeded, InvalidArgument, InvalidTable
from crowdgram.stages import Stage

from .test_ledger import KILLS

DOMAIN = ["a", "b"]


@pytest.fixture
def path(tmp_path):
    Ledger.create(tmp_path / "visits.ledger", 1.0, 1e-6, every="month")
    return tmp_path / "visits.ledger"


def visits(november="a", october="b", users=60):
    """A user has ten rows of each month: those of October are of one item, and those of November of another."""
    rows = [
        (user, item, datetime.date(2026, month, 1 + turn))
        for user in range(users)
        for month, item in ((10, october), (11, november))
        for turn in range(10)
    ]
    return pa.table(dict(zip(("user", "item", "day"), map(list, zip(*rows, strict=True)), strict=True)))


def release(ledger, table=None, **more):
    options = {"user": "user", "item": "item", "domain": DOMAIN, "epsilon": 0.5, **more}
    return crowdgram.release(visits() if table is None else table, **options, ledger=ledger)


def test_a_release_reads_its_period_only(path):
    # Laplace noise of scale 10 on sums of 600 and 0: the larger one is below the other with a chance below 1e-20.
    for period, item in (("2026-11", "a"), ("2026-10", "b")):
        made = release(
            Ledger.open(path, period=period, period_column="day"), mechanism="laplace", max_rows_per_user=10, epsilon=1
        )
        assert made.probability(item) > 0.5
        assert made.parameters["period"] == period
        assert "day" not in str(made.parameters)
    found = Ledger.open(path).history()
    assert [(entry.period, entry.period_column, entry.finished) for entry in found] == [
        ("2026-11", "day", True),
        ("2026-10", "day", True),
    ]


def test_the_rows_of_other_periods_are_not_counted(path, monkeypatch):
    """The very counts: with a column, those of the period; without, all."""
    seen, counted = [], tables.count_rows

    def counting(rows, items):
        counts = counted(rows, items)
        seen.append(sum(rows.engine.fetch(counts.cells, "testing")["n"].to_pylist()))
        return counts

    monkeypatch.setattr(tables, "count_rows", counting)  # a watch: a release does not say what it counted
    release(Ledger.open(path, period="2026-11", period_column="day"))
    release(Ledger.open(path, period="2026-11"))
    assert seen == [600, 1200]
    assert [entry.period_column for entry in Ledger.open(path).history()] == ["day", None]


def test_each_period_is_refused_by_itself(path):
    november = Ledger.open(path, period="2026-11", period_column="day")
    release(november, mechanism="laplace", epsilon=0.8)
    with pytest.raises(BudgetExceeded, match=r"for 2026-11\. .*What would fit: epsilon=0\.2 with") as caught:
        release(november, mechanism="laplace", epsilon=0.8)
    assert caught.value.remaining == 0.2
    release(Ledger.open(path, period="2026-10", period_column="day"), mechanism="laplace", epsilon=0.8)
    assert Ledger.open(path).periods() == ["2026-10", "2026-11"]


def test_recovered_by_period(path):
    made = {period: release(Ledger.open(path, period=period, period_column="day")) for period in ("2026-11", "2026-10")}
    for period, one in made.items():
        assert crowdgram.recover(Ledger.open(path, period=period)) == one
    assert crowdgram.recover(path) == made["2026-10"]


@pytest.mark.parametrize("column", ["date", "user"])
def test_a_bad_column_charges_nothing(path, column):
    with pytest.raises(InvalidTable, match="period_column="):
        release(Ledger.open(path, period="2026-11", period_column=column))
    assert Ledger.open(path).history() == []


def test_a_period_is_asked_for_before_the_table_is_opened(path):
    stages = []
    with pytest.raises(InvalidArgument, match="period=None"):
        release(path, progress=stages.append)
    assert stages == []


def test_stages_are_those_of_any_release(path, tmp_path):
    seen = {"month": [], "all": []}
    release(Ledger.open(path, period="2026-11", period_column="day"), progress=seen["month"].append)
    release(Ledger.create(tmp_path / "plain", 1.0, 1e-6), progress=seen["all"].append)
    assert seen["month"][:3] == seen["all"][:3] == [Stage.OPENING, Stage.CHARGING, Stage.COUNTING]


def test_a_period_without_rows_is_a_release_like_any(path):
    # Over two items a noisy total is far from 0, and nothing is warned of, once in fifty releases; not over twenty.
    with pytest.warns(crowdgram.errors.AccuracyWarning):
        made = release(Ledger.open(path, period="1999-01", period_column="day"), domain=[*"abcdefghijklmnopqrst"])
    assert len(made) == 20


@pytest.mark.slow
def test_kills(tmp_path):
    done = subprocess.run(
        [sys.executable, KILLS, "--json", tmp_path / "kills.json", "--kills", "4", "--periods"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    verdict = json.loads((tmp_path / "kills.json").read_text())
    assert (verdict["faults"], verdict["kills"]) == ([], 4)
