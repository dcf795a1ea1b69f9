"""A form as a job: intervals, filters, periods; the same job as a command and as Python; lists that are the table."""

from __future__ import annotations

import os
import shlex
import sqlite3
from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import csv, parquet

pytest.importorskip("starlette", reason="the extra explore is not installed: pip install 'crowdgram[explore]'")

from typer.testing import CliRunner

import crowdgram
from crowdgram import Bins, Ledger
from crowdgram.cli.app import app as commands
from crowdgram.errors import CrowdgramError, InvalidArgument
from crowdgram.explore.app import _field
from crowdgram.explore.jobs import read_job
from crowdgram.explore.work import Work

ROWS = {
    "who": [n % 200 for n in range(800)],
    "what": ["aardvark", "badger"] * 400,
    "age": [float(n % 90) for n in range(800)],
    "day": [date(2026, 1 + n % 3, 5) for n in range(800)],
}
ASKED = {"table": "visits.parquet", "user": "who", "item": "what", "epsilon": "1", "delta": "1e-6"}
LISTED = {"domain_kind": "list", "domain_list": "aardvark\nbadger"}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    parquet.write_table(pa.table(ROWS), "visits.parquet")
    Ledger.create("monthly.ledger", epsilon=2.0, delta=1e-5, every="month")
    return tmp_path


PERIOD = {"ledger": "monthly.ledger", "period": "2026-02", "period_column": "day", "label": "a 'first' one"}
JOBS = {
    "intervals": {"item": "age", "item_bins": "-1, 18,64.5,90"},
    "filter": {**LISTED, "where": "age >= 18 and what <> 'it''s'"},
    "groups by intervals": {**LISTED, "by": "age", "by_bins": "0,45,90", "weight": "users"},
    "both by intervals": {"item": "age", "item_bins": "0,9,90", "by": "day", "groups_kind": "discover"},
    "period": {**LISTED, **PERIOD},
    "period by hand": {**LISTED, "ledger": "monthly.ledger", "period": "2026-01"},
    "an odd name": {"item": 'a "b" c', "item_bins": "0,1", "user": "it's", "max_rows_per_user": "7"},
    "a mark of Windows": {"domain_kind": "list", "domain_list": "\ufeffaardvark\r\nbadger\rboth \n\n"},
}


def arguments(given, ledger):
    """The arguments of `release`, in one spelling: lists that are in files are read, and what is left out is None."""
    asked = {name: value for name, value in given.items() if name not in ("progress", "mechanism", "ledger")}
    for name in ("domain", "groups"):
        if isinstance(asked.get(name), str):
            asked[name] = Path(asked[name]).read_text(encoding="utf-8-sig").splitlines()
    opened = Ledger.open(ledger) if isinstance(ledger, str | os.PathLike) else ledger
    if opened is not None:
        asked["ledger"] = (opened.path.name, opened.label, opened.period and opened.period.name, opened.period_column)
    usual = {"adjacency": "add-remove", "weight": "rows", "delta": 0.0}
    return {name: value for name, value in asked.items() if value is not None and value != usual.get(name)}


@pytest.mark.parametrize("name", JOBS)
def test_the_page_the_command_and_the_code_ask_for_the_same(name, folder, monkeypatch):
    asked, seen = {**ASKED, **JOBS[name]}, []

    def stop(table, *, ledger=None, **given):
        seen.append((table, arguments(given, ledger)))
        raise InvalidArgument("stopped.", argument=None)

    monkeypatch.setattr(crowdgram, "release", stop)  # first: it is loaded from the other
    monkeypatch.setattr("crowdgram.releases.release", stop)
    work = Work()
    with pytest.raises(InvalidArgument, match="stopped"):
        work.release(asked)
    copies = work.copies(asked)
    for saved, text in copies["lists"].items():
        Path(saved).write_text(text, encoding="utf-8")
    words = shlex.split(copies["command"].splitlines()[0])
    done = CliRunner().invoke(commands, words[1:])
    assert "stopped" in done.output, done.output
    with pytest.raises(InvalidArgument, match="stopped"):
        exec(copies["python"], {})
    assert len(seen) == 3
    assert seen[0] == seen[1] == seen[2]


@pytest.mark.slow
def test_intervals_filter_and_period_are_released_and_copied_for_real(folder):
    asked = {**ASKED, "item": "age", "item_bins": "0,18,90", "where": "what = 'badger'", **PERIOD, "epsilon": "0.5"}
    work = Work()
    said = work.check({**asked, "users": "", "rows_per_user": ""})["sentences"]
    assert "2 items. No row was read" in said[0]
    made = work.release(asked)
    release = crowdgram.load(folder / _saved(work, made))
    assert release.items == ("0 to below 18", "18 to below 90")
    assert release.parameters["period"] == "2026-02"
    assert (
        abs(release.total.value - 133) < 120
    )  # noise of scale about 10; all rows would be 800, or 400 with the filter
    release_line, report_line = work.copies(asked)["command"].splitlines()
    for line in (release_line, report_line):
        done = CliRunner().invoke(commands, shlex.split(line)[1:])
        assert done.exit_code == 0, done.output
    again = crowdgram.load("release.json")
    assert (again.items, again.guarantee) == (release.items, release.guarantee)
    assert again.parameters["period"] == "2026-02"
    assert Path("report.html").exists()
    assert [one.label for one in Ledger.open("monthly.ledger").history()] == ["a 'first' one"] * 2


def test_copied_code_spends_nothing_if_it_could_not_save(folder):
    code = Work().copies({**ASKED, **LISTED, "ledger": "monthly.ledger", "period": "2026-01"})["python"]
    Path("release.json").write_text("of yesterday")
    with pytest.raises(SystemExit, match="Nothing was spent"):
        exec(code, {})
    assert Ledger.open("monthly.ledger").history() == []
    assert Path("release.json").read_text() == "of yesterday"


def test_the_home_folder_is_what_a_shell_takes_it_for(folder, monkeypatch):
    monkeypatch.setenv("HOME", str(folder))
    Path("items.txt").write_text("aardvark\nbadger\n")
    asked = {**ASKED, "table": "~/visits.parquet", "domain_kind": "file", "domain_file": "~/items.txt"}
    assert "2 items" in Work().check({**asked, "users": ""})["sentences"][0]
    assert len(Work().columns(asked)["columns"]) == len(ROWS)
    assert f"crowdgram release {folder}/visits.parquet" in Work().copies(asked)["command"]
    with pytest.raises(InvalidArgument, match="is the table itself"):
        read_job({**asked, "domain_file": "visits.parquet"})


def test_what_a_check_says_of_a_name_cannot_turn_the_line_around(folder):
    name = "a\u202eb\n"
    parquet.write_table(pa.table({"who": [1, 2], name: ["x", "y"]}), "odd.parquet")
    said = Work().check({**ASKED, "table": "odd.parquet", "item": name, "users": ""})["sentences"]
    assert all(one.isprintable() for one in said)


def _saved(work, made):
    Path("kept.json").write_text(work.find(made["at"].rpartition("/")[2]).document, encoding="utf-8")
    return "kept.json"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"item_bins": "0"}, "item_bins"),
        ({"item_bins": "3,2,1"}, "item_bins"),
        ({"item_bins": "0,nan"}, "item_bins"),
        ({"item_bins": "young, old"}, "item_bins"),
        ({"item_bins": ",".join(map(str, range(300)))}, "item_bins"),
        ({"item_bins": ["0", "1"]}, "item_bins"),
        ({"item_bins": "0,1"}, "item"),  # of a column of text
        ({"item": "age", "item_bins": "0,1", **LISTED}, "domain"),
        ({"by_bins": "0,1"}, "by_bins"),
        ({"where": "sum(age) > 3"}, "where"),
        ({"where": "nowhere > 3"}, "where"),
        ({"period": "2026-01"}, "period"),
        ({"period_column": "day"}, "period_column"),
        ({"ledger": "monthly.ledger"}, "period"),
        ({"ledger": "monthly.ledger", "period": "May"}, "period"),
        ({"ledger": "nowhere.ledger"}, "ledger"),
        ({"table": "nowhere.parquet"}, "table"),
        ({"database_table": "visits"}, "database_table"),
        ({"table": "visits.db"}, "database_table"),
        ({"table": "sqlite:///visits.db"}, "database_table"),
        ({"domain_kind": "file", "domain_file": "nowhere.txt"}, "domain"),
    ],
)
def test_what_is_wrong_is_marked_in_its_field(folder, change, field):
    asked = {**ASKED, **change}
    with pytest.raises(CrowdgramError) as refused:
        Work().check(asked)
    assert _field(refused.value, asked) == field, str(refused.value)


def test_a_column_of_fractions_says_that_intervals_would_do(folder):
    with pytest.raises(CrowdgramError, match="put its numbers into intervals") as refused:
        Work().check({**ASKED, **LISTED, "item": "age"})
    assert _field(refused.value, {"item": "age"}) == "item"
    with pytest.raises(CrowdgramError) as refused:
        Work().check({**ASKED, **LISTED, "user": "age"})
    assert "intervals" not in str(refused.value)


def test_a_list_that_is_the_table_is_refused_by_every_name_of_it(folder):
    """Its errors would quote rows: they name an item that is listed twice."""
    csv.write_csv(pa.table(ROWS), "one.csv")
    os.link("one.csv", "linked.csv")
    os.symlink("one.csv", "pointed.csv")
    with sqlite3.connect("shop.db") as base:
        base.execute("create table visits (who text, what text)")
    base.close()
    for table, listed in (
        ("one.csv", "one.csv"),
        ("one.csv", "./one.csv"),
        ("one.csv", "linked.csv"),
        ("one.csv", "pointed.csv"),
        ("on*.csv", "one.csv"),
        ("one.csv", "*e.csv"),
        ("**/*.csv", str(folder / "linked.csv")),
        ("shop.db", "shop.db"),
        ("sqlite:///shop.db", "shop.db"),
        ("shop.db?table=visits", "shop.db"),
    ):
        for name in ("domain", "groups"):
            asked = {**ASKED, "table": table, "by": "day", f"{name}_kind": "file", f"{name}_file": listed}
            with pytest.raises(InvalidArgument, match="is the table itself, which is private") as refused:
                read_job(asked)
            assert "badger" not in str(refused.value)
            assert refused.value.argument == name
        with pytest.raises(InvalidArgument, match="is the table itself"):
            read_job({**ASKED, "table": table, "ledger": listed})
    Path("items.txt").write_text("aardvark\nbadger\n")
    assert read_job({**ASKED, "table": "*.csv", "domain_kind": "file", "domain_file": "items.txt"}).domain.file


@pytest.mark.parametrize("name", ["x\x1b[201~\nrm -rf ~\n", "a\u202eb", "a\rb", "a\u200bb"])
def test_a_command_holds_nothing_that_a_terminal_would_obey_or_hide(name):
    """The name of a column may come from a file that somebody else made."""
    for field in ("user", "item", "where", "table"):
        copies = Work().copies({**ASKED, **LISTED, field: name})
        assert copies["command"].startswith("# ")
        assert copies["command"].isprintable()
        assert copies["python"].replace("\n", "").isprintable()
        assert repr(name) in copies["python"]


def test_bins_are_of_a_column_whatever_its_name_holds():
    job = read_job({**ASKED, "item": 'age" or "who', "item_bins": "0,1"})
    assert job.arguments()["item"] == {'age" or "who': Bins('"age"" or ""who"', (0, 1))}
