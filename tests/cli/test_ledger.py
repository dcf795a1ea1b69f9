"""`crowdgram ledger`, as a person meets it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

import crowdgram
from crowdgram import Ledger
from crowdgram.cli import ledgers
from crowdgram.cli.app import app
from crowdgram.errors import UnwritableTarget
from crowdgram.synth import Crowd


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder with a sample table, its domain and a ledger."""
    monkeypatch.chdir(tmp_path)
    Crowd(users=50, rows=5, items=4, seed=1, strings=True).write("visits.csv", domain="items.txt")
    assert run("ledger", "create", "visits.ledger", "--epsilon", "3", "--delta", "1e-5").exit_code == 0
    return tmp_path


def run(*arguments):
    return CliRunner().invoke(app, [str(one) for one in arguments], env={"COLUMNS": "200"})


def release(*more, epsilon=1, ledger="visits.ledger", output="r.json"):
    named = ["--user", "user", "--item", "item", "--domain", "items.txt", "--mechanism", "laplace"]
    return run("release", "visits.csv", *named, "--epsilon", epsilon, "--ledger", ledger, "-o", output, *more)


def test_create(folder):
    done = run("ledger", "create", "other.ledger", "--epsilon", "1", "--adjacency", "replace")
    assert done.output == "Made other.ledger: epsilon 1, delta 0, replace, for all releases together.\n"
    again = run("ledger", "create", "other.ledger", "--epsilon", "1")
    assert again.exit_code == 2
    assert "is there already" in again.output
    assert run("ledger", "create", "bad.ledger", "--epsilon", "0").exit_code == 2
    assert not (folder / "bad.ledger").exists()


@pytest.mark.slow
def test_a_release_is_charged(folder):
    done = release("--label", "weekly")
    assert done.exit_code == 0, done.output
    shown = run("ledger", "show", "visits.ledger").output
    assert "epsilon 3, delta 1e-05, add-remove" in shown
    assert "1 finished, 0 unfinished" in shown
    assert "epsilon 1 (plain sum: epsilon 1)" in shown
    assert "epsilon 2 by laplace, delta 0" in shown
    history = run("ledger", "history", "visits.ledger").output
    for word in ("weekly", "laplace", "finished", "rows"):
        assert word in history


def test_a_history_fits_a_narrow_terminal(folder, monkeypatch):
    assert release("--label", "weekly report for the board").exit_code == 0
    narrow = []
    # a terminal of this width, and what it is told
    monkeypatch.setattr("rich.console.Console", lambda **more: SimpleNamespace(is_terminal=True, width=60))
    monkeypatch.setattr(ledgers, "_say", narrow.append)
    ledgers.history(folder / "visits.ledger")
    (line,) = narrow
    assert re.fullmatch(
        r"1: epsilon 1, delta 0, finished; laplace by rows, \S+ \S+ UTC, weekly report for the board", line
    )


def test_overspending_has_an_exit_code_of_its_own(folder):
    assert release(epsilon=2).exit_code == 0
    done = release(epsilon=2, output="second.json")
    assert done.exit_code == 3
    assert "What would fit: epsilon=1 with mechanism='laplace' and delta=0." in done.output
    assert not (folder / "second.json").exists()
    assert len(Ledger.open("visits.ledger").history()) == 1


@pytest.mark.slow
def test_json(folder):
    release("--label", "weekly")
    figures = json.loads(run("ledger", "show", "visits.ledger", "--json").stdout)
    assert figures["budget"] == {"epsilon": 3.0, "delta": 1e-5, "adjacency": "add-remove", "unit": "user"}
    assert (figures["releases"], figures["unfinished"], figures["composition"]) == (1, 0, "tight")
    assert [figures["spent_epsilon"], figures["plain_sum"]["epsilon"]] == pytest.approx([1.0, 1.0], rel=1e-12)
    assert [one["mechanism"] for one in figures["would_fit"]] == ["laplace", "gaussian", "auto"]
    (entry,) = json.loads(run("ledger", "history", "visits.ledger", "--json").stdout)
    assert (entry["number"], entry["label"], entry["state"]) == (1, "weekly", "finished")
    assert entry["cost"]["pure"] == pytest.approx(1.0, rel=1e-12)


def test_an_empty_ledger(folder):
    assert "No release was charged yet." in run("ledger", "history", "visits.ledger").output
    assert json.loads(run("ledger", "history", "visits.ledger", "--json").stdout) == []
    shown = run("ledger", "show", "visits.ledger").output
    assert "0 finished" in shown
    assert "epsilon 3 by auto" in shown


def test_recover(folder):
    release()
    (folder / "r.json").rename(folder / "first.json")
    release(epsilon=0.5)
    assert run("ledger", "recover", "visits.ledger", "--number", "1", "-o", "again.json").exit_code == 0
    assert (folder / "again.json").read_bytes() == (folder / "first.json").read_bytes()
    assert run("ledger", "recover", "visits.ledger", "-o", "last.json").exit_code == 0
    assert (folder / "last.json").read_bytes() == (folder / "r.json").read_bytes()
    assert run("ledger", "recover", "visits.ledger", "--number", "3", "-o", "x.json").exit_code == 2
    assert run("ledger", "recover", "visits.ledger", "-o", "visits.ledger").exit_code == 2
    assert len(Ledger.open("visits.ledger").history()) == 2


def test_the_ledger_is_not_overwritten(folder):
    assert release(output="visits.ledger").exit_code == 2
    assert Ledger.open("visits.ledger").history() == []


@pytest.mark.parametrize("name", ["visits.ledger-journal", "./visits.ledger-wal", "folder/../visits.ledger-shm"])
def test_nothing_is_written_where_sqlite_keeps_its_journal(folder, name):
    (folder / "folder").mkdir()
    recovered = run("ledger", "recover", "visits.ledger", "-o", name)
    for done in (release(output=name), release("--csv", name), recovered):
        assert done.exit_code == 2
        assert "is the name of a journal of the ledger 'visits.ledger'" in done.output
    assert not list(folder.glob("visits.ledger-*"))
    assert Ledger.open("visits.ledger").history() == []


def test_labels_cannot_steer_a_terminal(folder):
    assert release("--label", "\x1b[31mred [bold]x[/bold]\u202e").exit_code == 0
    history = run("ledger", "history", "visits.ledger").output
    assert "\x1b" not in history
    assert "\u202e" not in history
    assert "\\x1b[31mred [bold]x[/bold]\\u202e" in history


def test_an_output_that_is_lost_can_be_recovered(folder, monkeypatch):
    def lost(*_, **__):
        raise UnwritableTarget("'r.json' cannot be written: no space. Nothing was written.")

    monkeypatch.setattr(crowdgram.Release, "save", lost)  # a fault after the ledger is settled
    done = release()
    assert done.exit_code == 2
    assert "The release is kept in the ledger: crowdgram ledger recover 'visits.ledger' -o FILE" in done.output
    monkeypatch.undo()
    monkeypatch.chdir(folder)
    assert run("ledger", "recover", "visits.ledger", "-o", "back.json").exit_code == 0
    made = crowdgram.load("back.json")
    with pytest.raises(UnwritableTarget) as caught:
        ledgers.save_release(made, folder / "none" / "r.json", None, overwrite=False)
    assert "recover" not in str(caught.value)


def test_without_a_ledger_a_release_whose_name_was_taken_meanwhile_is_kept(folder):
    release()
    made = crowdgram.load("r.json")
    (folder / "r.json").write_text("another's")
    with pytest.raises(
        UnwritableTarget, match=r"'r\.json' exists.* The release is saved as 'r-[0-9a-f]{8}\.json'"
    ) as caught:
        ledgers.save_release(made, Path("r.json"), None, overwrite=False)
    assert (folder / "r.json").read_text() == "another's"
    assert crowdgram.load(str(caught.value).split("'")[-2]) == made


def test_recover_overwrites_nothing_unless_told_and_prints(folder):
    release()
    (folder / "old.json").write_text("old")
    refused = run("ledger", "recover", "visits.ledger", "-o", "old.json")
    assert refused.exit_code == 2
    assert "--force" in refused.stderr
    assert (folder / "old.json").read_text() == "old"
    assert run("ledger", "recover", "visits.ledger", "-o", "old.json", "--force", "-q").output == ""
    assert (folder / "old.json").read_bytes() == (folder / "r.json").read_bytes()
    printed = run("ledger", "recover", "visits.ledger", "-o", "-")
    assert json.loads(printed.stdout) == json.loads((folder / "r.json").read_text())
    assert not (folder / "-").exists()


@pytest.mark.parametrize("command", ["show", "history"])
def test_what_is_not_a_ledger(folder, command):
    for name in ("visits.csv", "none.ledger"):
        done = run("ledger", command, name)
        assert done.exit_code == 2
        assert done.output.startswith("error: ")
