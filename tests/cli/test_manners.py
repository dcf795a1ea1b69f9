"""What a command overwrites, prints, reads and completes."""

from __future__ import annotations

import contextlib
import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import crowdgram
from crowdgram.cli import streams
from crowdgram.cli.app import app
from crowdgram.errors import UnreadableSource, UnwritableTarget
from crowdgram.privacy import Ledger
from crowdgram.synth import Crowd

SCRIPT = Path(sys.executable).with_name("crowdgram")
OPTIONS = ["--user", "user", "--item", "item", "--domain", "items.txt", "--mechanism", "laplace"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder with a sample table, as CSV and as Parquet, and its domain."""
    monkeypatch.chdir(tmp_path)
    crowd = Crowd(users=50, rows=5, items=4, seed=1, strings=True)
    crowd.write("visits.csv", domain="items.txt")
    crowd.write("visits.parquet")
    return tmp_path


def run(*arguments, **more):
    return CliRunner().invoke(app, [str(one) for one in arguments], **more)


def release(table, *more, epsilon="1", output="r.json", **given):
    return run("release", table, *OPTIONS, "--epsilon", epsilon, "-o", output, *more, **given)


# --- overwriting


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "taken"),
    [
        (["sample", "t.csv"], "t.csv"),
        (["synth", "t.csv", "--users", "3"], "t.csv"),
        (["synth", "t.csv", "--users", "3", "--truth", "truth.csv"], "truth.csv"),
        (["synth", "t.csv", "--users", "3", "--domain", "domain.txt"], "domain.txt"),
        (["paper", "figure1", "-o", "t.png"], "t.png"),
    ],
)
def test_nothing_is_overwritten_unless_told(command, taken, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path(taken).write_text("what was here")
    refused = run(*command)
    assert refused.exit_code == 2
    assert f"'{taken}' exists" in refused.stderr
    assert "--force" in refused.stderr
    assert [(one.name, one.read_text()) for one in tmp_path.iterdir()] == [(taken, "what was here")]
    assert run(*command, "--force").exit_code == 0
    assert b"what was here" not in Path(taken).read_bytes()


@pytest.mark.parametrize("taken", ["demo-out/release.png", "complexity.png", "c.csv"])
def test_what_takes_long_is_refused_at_once(taken, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path(taken).parent.mkdir(exist_ok=True)
    Path(taken).write_text("what was here")
    refused = run("demo") if "demo" in taken else run("paper", "complexity", "--data", "c.csv")
    assert refused.exit_code == 2
    assert f"'{taken}' exists" in refused.stderr
    assert [one.read_text() for one in tmp_path.rglob("*") if one.is_file()] == ["what was here"]


# --- quiet, help, completion


def test_quiet_prints_warnings_alone(folder):
    done = release("visits.csv", "-q", epsilon="20", output="q.json")
    assert done.exit_code == 0
    assert done.stdout == ""
    assert [line.split(":")[0] for line in done.stderr.splitlines()] == ["warning"]
    assert "epsilon=20 is large" in done.stderr
    for command in (["sample", "s.csv"], ["synth", "t.csv"], ["ledger", "create", "l", "--epsilon", "1"]):
        assert run(*command, "--quiet").output == ""


@pytest.mark.parametrize("command", [[], ["release"], ["ledger"], ["ledger", "show"], ["paper", "figure1"]])
def test_short_help(command):
    assert run(*command, "-h").stdout == run(*command, "--help").stdout
    assert "-h, --help" in run(*command, "-h").stdout


def test_help_says_what_may_be_given_again_and_no_type_of_python():
    told = " ".join(run("release", "-h").stdout.split())
    assert "--item <value>..." in told
    assert "list[" not in told


@pytest.mark.slow
@pytest.mark.parametrize("command", ["release", "reach"])
def test_the_example_of_the_help_runs(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run("sample", "visits.csv", "--domain", "pages.txt")
    example = " ".join(run(command, "-h").stdout.split()).split("Example: crowdgram ")[1]
    done = run(*example.split())
    assert done.exit_code == 0, done.output
    assert (tmp_path / f"{command}.json").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("crowdgram rel", "release"),
        ("crowdgram release t.csv --user a --user b --eps", "--epsilon"),
        ("crowdgram release t.csv --mechanism gau", "gaussian"),
        ("crowdgram ledger rec", "recover"),
    ],
)
def test_a_shell_completes(words, found):
    told = {"_CROWDGRAM_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    done = subprocess.run([SCRIPT], capture_output=True, text=True, env={**os.environ, **told}, check=False)
    assert done.stdout.split() == [found]


# --- warnings


@pytest.mark.parametrize(
    ("more", "said"), [({"epsilon": "10.5"}, "epsilon=10.5 is large"), ({"more": "0.002"}, "delta=0.002 is large")]
)
def test_a_weak_guarantee_is_warned_of_before_the_ledger_is_charged(folder, more, said):
    Ledger.create("l", 30.0, 0.01)
    weak = ["--delta", more.pop("more"), "--mechanism", "gaussian"] if "more" in more else []
    lines = run(
        "release",
        "visits.csv",
        *OPTIONS[:6],
        *weak,
        "--epsilon",
        more.get("epsilon", "1"),
        "--ledger",
        "l",
        "-o",
        "r.json",
    ).stderr.splitlines()
    warned = next(place for place, line in enumerate(lines) if said in line)
    assert warned < lines.index("crowdgram: charging the ledger (4%)")


def test_an_epsilon_of_ten_is_not_warned_of(folder):
    assert "large" not in release("visits.csv", epsilon="10").stderr


# --- standard output


def test_a_release_is_printed(folder):
    done = release("visits.csv", output="-")
    assert done.exit_code == 0, done.stderr
    Path("printed.json").write_text(done.stdout)
    assert len(crowdgram.load("printed.json")) == 4
    assert "Adding or removing" in done.stderr  # the table and its sentences
    assert "Saved to" not in done.stderr
    assert not Path("-").exists()
    assert release("visits.csv", "-q", output="-").stderr == ""


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no full device")
def test_a_release_that_cannot_be_printed_is_kept_in_the_ledger(folder):
    Ledger.create("l", 1.0, 0.0)
    command = [SCRIPT, "release", "visits.csv", *OPTIONS, "--epsilon", "1", "--ledger", "l", "-q", "-o", "-"]
    with open("/dev/full", "wb") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    (line,) = [line for line in done.stderr.splitlines() if "warning" not in line]
    assert line.startswith("error: --output '-': standard output cannot be written: No space left")
    assert "crowdgram ledger recover 'l'" in line


def test_csv_is_not_printed(folder):
    done = release("visits.csv", "--csv", "-")
    assert done.exit_code == 2
    assert "--csv '-'" in done.stderr
    assert not Path("-").exists()


# --- standard input


def lines_of(name):
    """The table as JSON lines."""
    header, *rows = [line.split(",") for line in Path(name).read_text().splitlines()]
    return "".join(json.dumps(dict(zip(header, row, strict=True))) + "\n" for row in rows).encode()


@pytest.mark.slow
@pytest.mark.parametrize("kind", [None, "csv", "tsv", "jsonl", "parquet"])
def test_a_table_is_read_from_standard_input(folder, kind):
    content = {
        "tsv": Path("visits.csv").read_bytes().replace(b",", b"\t"),
        "jsonl": lines_of("visits.csv"),
        "parquet": Path("visits.parquet").read_bytes(),
    }.get(kind, Path("visits.csv").read_bytes())
    done = release("-", *([] if kind is None else ["--format", kind]), epsilon="100", input=content)
    assert done.exit_code == 0, done.stderr
    truth = release("visits.csv", epsilon="100", output="file.json")
    assert truth.exit_code == 0
    one, two = crowdgram.load("r.json"), crowdgram.load("file.json")
    assert one.probabilities == pytest.approx(two.probabilities, abs=0.05)


def test_the_copy_of_standard_input_is_private_and_removed(folder, monkeypatch):
    seen = []

    class Input:
        buffer = open("visits.csv", "rb")  # noqa: SIM115

        def isatty(self):
            return False

    monkeypatch.setattr(sys, "stdin", Input())
    with contextlib.suppress(ZeroDivisionError), streams.input_as_file(streams.FormatChoice.CSV) as path:
        copy = Path(path)
        seen += [copy, stat.S_IMODE(copy.parent.stat().st_mode), copy.read_bytes()]
        assert 1 / 0
    assert seen[1:] == [0o700, Path("visits.csv").read_bytes()]
    assert not seen[0].parent.exists()


def test_a_copy_that_fails_is_named(folder, monkeypatch):
    class Broken:
        buffer = None

        def isatty(self):
            return False

    def full(*_):
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(sys, "stdin", Broken())
    monkeypatch.setattr(streams.shutil, "copyfileobj", full)  # a disk that is full
    with (
        pytest.raises(UnreadableSource, match=r"^TABLE '-'.*No space left") as caught,
        streams.input_as_file(streams.FormatChoice.CSV),
    ):
        pass
    assert caught.value.__context__ is None


def test_what_is_no_table_on_standard_input_charges_nothing(folder):
    Ledger.create("l", 1.0, 0.0)
    for content in (b"", b"\xff\n", b"a,b\n1,2\n"):
        done = release("-", "--ledger", "l", input=content)
        assert done.exit_code == 2
        assert done.stderr.splitlines()[-1].startswith("error: ")
    assert Ledger.open("l").history() == []


class Terminal:
    def isatty(self):
        return True


@pytest.mark.parametrize("source", [Terminal(), None], ids=["terminal", "closed"])
def test_a_terminal_is_no_table(monkeypatch, source):
    monkeypatch.setattr(sys, "stdin", source)
    with (
        pytest.raises(UnreadableSource, match="needs a table on standard input"),
        streams.input_as_file(streams.FormatChoice.CSV),
    ):
        pass


def test_a_format_is_for_standard_input(folder):
    done = release("visits.csv", "--format", "csv")
    assert done.exit_code == 2
    assert "--format csv is for standard input" in done.stderr
    assert run("release", "-", *OPTIONS, "--epsilon", "1", "--table", "t", "-o", "r.json").exit_code == 2


def test_a_closed_standard_output(monkeypatch):
    class Closed:
        def write(self, _):
            raise BrokenPipeError(32, os.strerror(32))

        def fileno(self):
            raise OSError

    monkeypatch.setattr(sys, "stdout", Closed())
    with pytest.raises(UnwritableTarget, match="Broken pipe"):
        streams.print_json("{}")
