"""The commands that make no release: show, synth, demo, version and help; and what all commands do alike."""

from __future__ import annotations

import re
import typing
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import crowdgram
from crowdgram.cli.app import release as release_command
from crowdgram.synth import Crowd
from crowdgram.tables.addresses import ADDRESSES

from .test_app import folder, release, run

__all__ = ["folder"]


def test_show(folder):
    made = release()
    shown = run("show", "r.json")
    assert shown.exit_code == 0
    # Of 50 users there may be too little to say. A release that takes long says before and after it how far it is.
    said = [line for line in made.stderr.splitlines(keepends=True) if not line.startswith("crowdgram: ")]
    assert shown.stderr == "".join(said)
    assert made.stdout == shown.stdout + "Saved to r.json.\n"
    assert "and 2 more items" in run("show", "r.json", "--top", "2").stdout
    assert run("show", "r.json", "--top", "-1").exit_code == 2


def test_too_little_is_said_once_on_the_terminal(folder):
    """50 users, who weigh the same, under noise of 1,000 for each of 100 items."""
    Path("many.txt").write_text("".join(f"item-{n:04}\n" for n in range(100)))
    result = release("--mechanism", "laplace", domain="many.txt", epsilon="0.001", max_rows_per_user=1)
    assert result.exit_code == 0, result.output
    assert result.stderr.count("mostly noise: its predicted l1 error") == 1
    assert "too little" not in result.stdout.lower()
    assert "Predicted l1 error of all 100 probabilities together: " in result.stdout
    again = run("show", "r.json")
    assert again.stderr.count("mostly noise: its predicted l1 error") == 1


def test_the_promise_is_one_line(folder):
    release()
    lines = run("show", "r.json").stdout.splitlines()
    assert lines[-1] == crowdgram.load("r.json").guarantee.sentence()


@pytest.mark.parametrize("name", ["none.json", "visits.csv", "."])
def test_show_refuses_what_is_no_release(folder, name):
    result = run("show", name)
    assert result.exit_code == 2
    assert name in result.stderr


def test_synth(folder):
    result = run(
        "synth",
        "t.parquet",
        "--users",
        7,
        "--rows",
        3,
        "--items",
        5,
        "--seed",
        2,
        "--truth",
        "p.csv",
        "--domain",
        "d.txt",
    )
    assert result.exit_code == 0, result.stderr
    assert result.stdout == "Wrote 21 rows of 7 users to t.parquet.\n"
    crowd = Crowd(users=7, rows=3, items=5, seed=2)
    assert pa.parquet.read_table("t.parquet").equals(crowd.table())
    assert Path("d.txt").read_text() == "0\n1\n2\n3\n4\n"
    assert len(Path("p.csv").read_text().splitlines()) == 6


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["t.xlsx"], ".parquet"),
        (["t.csv", "--users", "0"], "users"),
        (["none/t.csv"], "none"),
        (["t.csv", "--differ", "1"], "differ"),
    ],
)
def test_synth_refuses(folder, arguments, named):
    result = run("synth", *arguments)
    assert result.exit_code == 2
    assert named in result.stderr


def test_a_release_is_not_overwritten_unless_told(folder, monkeypatch):
    assert release(csv="r.csv").exit_code == 0
    made = Path("r.json").read_bytes()
    with monkeypatch.context() as patch:
        # as `no_rows_read`, for a part of the test
        patch.setattr("crowdgram.tables.count_rows", lambda *_: pytest.fail("rows were read"))
        for options in ({}, {"output": "other.json", "csv": "r.csv"}):
            result = release(**options)
            assert result.exit_code == 2
            assert "Overwriting it would discard a release" in result.stderr
            assert "--force" in result.stderr
    assert Path("r.json").read_bytes() == made
    assert release("--force").exit_code == 0
    assert Path("r.json").read_bytes() != made


@pytest.mark.parametrize("option", ["by", "where", "user", "epsilon", "output"])
def test_an_option_for_one_value_is_given_once(folder, no_rows_read, option):
    result = release(f"--{option}", "1", f"--{option}", "1")
    assert result.exit_code == 2
    assert f"--{option} is given more than once" in result.output


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ("visits.csv", "--table 'visits' is for databases, and TABLE 'visits.csv' is none"),
        ("mysql://me:hush@host/shop", "starts with 'mysql://'"),
    ],
)
def test_a_table_of_what_is_no_database(folder, table, says):
    result = release("--table", "visits", table=table)
    assert result.exit_code == 2
    assert says in result.stderr
    assert "hush" not in result.stderr
    if "://" in table:
        assert says in release(table=table).stderr


@pytest.mark.slow
def test_demo(folder):
    result = run("demo", "--output", "out")
    assert result.exit_code == 0, result.stderr
    names = {path.name for path in Path("out").iterdir()}
    assert names == {"diaries.parquet", "activities.txt", "truth.csv", "release.json", "release.png"}
    assert Path("out/release.png").read_bytes().startswith(b"\x89PNG")
    # The command that it prints makes the same kind of release.
    printed = next(line.split() for line in result.stdout.splitlines() if line.startswith("  crowdgram release "))
    made = crowdgram.load("out/release.json")
    assert run(*printed[1:]).exit_code == 0
    again = crowdgram.load("out/mine.json")
    assert (again.guarantee, again.weight, again.mechanism) == (made.guarantee, made.weight, made.mechanism)
    assert again != made
    distance = re.search(r"the sum of all errors: (0\.\d+)", result.stdout)
    assert 0 < float(distance[1]) < 0.05  # it is 0.007 to 0.01 in most runs
    assert run("demo", "--output", "out").exit_code == 2
    assert run("demo", "--output", "out", "--force").exit_code == 0  # as often as one likes


def test_demo_refuses_a_file_for_a_folder(folder):
    result = run("demo", "--output", "visits.csv")
    assert result.exit_code == 2
    assert "visits.csv" in result.stderr


def test_version_and_help():
    assert run("--version").stdout == f"crowdgram {crowdgram.__version__}\n"
    for command in ([], ["release"], ["show"], ["synth"], ["demo"]):
        result = run(*command, "--help")
        assert result.exit_code == 0
        assert "Usage:" in result.stdout
    assert run("nothing").exit_code == 2
    assert run().exit_code == 2


def test_the_help_names_all_kinds_of_addresses():
    argument = typing.get_type_hints(release_command, include_extras=True)["source"].__metadata__[0]
    assert ADDRESSES in argument.help
