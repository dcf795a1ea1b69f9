"""The command line, as a person meets it: what it prints, where, and with which exit code."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

import crowdgram
from crowdgram.cli.app import app
from crowdgram.cli.display import printable
from crowdgram.errors import PrivacyViolation
from crowdgram.synth import Crowd

SECRET = "zebra-4711"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder with a sample table and its domain."""
    monkeypatch.chdir(tmp_path)
    Crowd(users=50, rows=5, items=4, seed=1, strings=True).write("visits.csv", domain="items.txt")
    return tmp_path


def run(*arguments):
    return CliRunner().invoke(app, [str(one) for one in arguments])


def release(*more, table="visits.csv", **options):
    given = {
        "user": "user",
        "item": "item",
        "epsilon": "1",
        "domain": "items.txt",
        "output": "r.json",
        **options,
    }
    named = [
        part for name, value in given.items() if value is not None for part in (f"--{name.replace('_', '-')}", value)
    ]
    return run("release", table, *named, *more)


# --- release


def test_what_the_engine_may_use(folder):
    (folder / "scratch").mkdir()
    given = release("--threads", 1, "--memory-limit", "300MB", "--temp-directory", "scratch")
    assert given.exit_code == 0, given.stderr
    assert not list((folder / "scratch").iterdir())
    (folder / "r.json").unlink()
    for option, bad in (("--threads", 0), ("--memory-limit", "4"), ("--temp-directory", "none")):
        refused = release(option, bad)
        assert refused.exit_code == 2
        assert f"{option[2:].replace('-', '_')}={bad!r}: needs to be" in refused.stderr
    assert not (folder / "r.json").exists()


def test_release(folder):
    result = release()
    assert result.exit_code == 0, result.stderr
    assert "item-0000" in result.stdout
    assert "95% interval" in result.stdout
    assert "share of all rows, by mechanism auto" in result.stdout
    assert "Adding or removing all rows of any one user" in result.stdout
    assert "Saved to r.json." in result.stdout
    made = crowdgram.load("r.json")
    assert made.items == tuple(f"item-000{k}" for k in range(4))
    assert made.guarantee.epsilon == 1.0


def test_release_passes_on_every_option(folder):
    result = release(
        "--top",
        "1",
        mechanism="gaussian",
        delta="1e-6",
        weight="users",
        adjacency="replace",
        max_rows_per_user="3",
    )
    assert result.exit_code == 0, result.stderr
    assert "and 3 more items" in result.stdout
    assert "average user's distribution, by mechanism gaussian" in result.stdout
    assert "Replacing all rows of any one user" in result.stdout
    document = json.loads(Path("r.json").read_text())
    assert document["guarantee"] == {"epsilon": 1.0, "delta": 1e-6, "adjacency": "replace", "unit": "user"}
    assert (document["mechanism"], document["weight"]) == ("gaussian", "users")


def test_counts(folder):
    result = release("--measure", "counts", mechanism="laplace", max_rows_per_user=3, csv="r.csv")
    assert result.exit_code == 0, result.output
    assert "of which each user has at most 3 rows" in " ".join(result.stdout.split())
    assert (folder / "r.csv").read_text().startswith('"item","count","standard_error"')


def test_counts_that_are_not_measured_are_refused_before_anything_is_spent(folder, no_rows_read):
    result = release("--measure", "counts", mechanism="paper", delta="1e-6")
    assert result.exit_code == 2
    assert "--measure counts: cannot be served by --mechanism paper" in " ".join(result.stderr.split())
    assert not (folder / "r.json").exists()


def test_counts_that_turn_out_to_be_unknown_become_shares(folder, monkeypatch):
    """Rounds that see nobody have no total: what was paid for is saved and shown all the same."""
    assert release(output="before.json").exit_code == 0
    found = replace(crowdgram.load("before.json"), total=None, users=None)
    monkeypatch.setattr("crowdgram.releases.release", lambda *_, **__: found)  # too rare to wait for
    result = release("--measure", "counts", csv="r.csv")
    assert result.exit_code == 0, result.output
    assert "the total is not seen above its noise, so shares are shown" in " ".join(result.stderr.split())
    assert crowdgram.load("r.json") == found
    assert (folder / "r.csv").read_text().startswith('"item","probability"')


def test_a_row_cap_is_used(folder):
    assert release(max_rows_per_user="3").exit_code == 0
    assert crowdgram.load("r.json").parameters["max_rows_per_user"] == 3


def test_a_column_of_a_domain_file(folder):
    Path("catalogue.csv").write_text("code,name\nitem-0001,one\nitem-0003,three\n")
    result = release(domain="catalogue.csv")
    assert result.exit_code == 2
    assert "--domain-column" in result.stderr
    result = release(domain="catalogue.csv", domain_column="code")
    assert result.exit_code == 0, result.stderr
    assert set(crowdgram.load("r.json").items) == {"item-0001", "item-0003"}


def test_a_glob_and_parquet(folder):
    for part in range(2):
        Crowd(users=5, rows=5, items=4, seed=part, strings=True).write(f"part-{part}.parquet")
    assert release(table="part-*.parquet").exit_code == 0


# --- bad input: exit code 2, the argument named, no row read, nothing written


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"user": "whom"}, "'whom'"),
        ({"item": "thing"}, "'thing'"),
        ({"item": "user"}, "'user'"),
        ({"epsilon": "0"}, "epsilon"),
        ({"epsilon": "-1"}, "epsilon"),
        ({"epsilon": "nan"}, "epsilon"),
        ({"epsilon": "inf"}, "epsilon"),
        ({"epsilon": "1e9"}, "epsilon"),
        ({"epsilon": "1e-12"}, "epsilon"),
        ({"epsilon": "much"}, "epsilon"),
        ({"epsilon": None}, "epsilon"),
        ({"delta": "-0.1"}, "delta"),
        ({"delta": "1"}, "delta"),
        ({"delta": "nan"}, "delta"),
        ({"mechanism": "gaussian"}, "delta"),
        ({"mechanism": "gaussian", "delta": "1e-300"}, "delta"),
        ({"mechanism": "magic"}, "mechanism"),
        ({"weight": "kilos"}, "weight"),
        ({"adjacency": "near"}, "adjacency"),
        ({"max_rows_per_user": "0"}, "max_rows_per_user"),
        ({"max_rows_per_user": "2000000"}, "max_rows_per_user"),
        ({"domain": None}, "delta=0"),
        ({"domain": None, "delta": "1e-6", "discovery_share": "2"}, "share=2"),
        ({"delta": "1e-6", "discovery_share": "0.5"}, "--discovery-share"),
        ({"other": ""}, "other"),
        ({"domain": "none.txt"}, "none.txt"),
        ({"domain": "empty.txt"}, "domain: is empty"),
        ({"domain": "repeated.txt"}, "'a'"),
        ({"table": "none.csv"}, "none.csv"),
        ({"table": "bad.parquet"}, "bad.parquet"),
        ({"table": "float.parquet"}, "'user'"),
        ({"table": "."}, "folder"),
        ({"output": None}, "output"),
        ({"output": "none/r.json"}, "none"),
        ({"output": "."}, "folder"),
        ({"output": "visits.csv"}, "overwrite"),
        ({"output": "items.txt"}, "overwrite"),
    ],
    ids=str,
)
def test_bad_input(folder, no_rows_read, options, named):
    Path("empty.txt").write_text("\n")
    Path("repeated.txt").write_text("a\na\n")
    Path("bad.parquet").write_text(f"PAR1{SECRET}")
    pa.parquet.write_table(pa.table({"user": [0.5], "item": [SECRET]}), "float.parquet")
    before = {path: path.read_bytes() for path in folder.iterdir()}
    result = release(**options)
    assert result.exit_code == 2
    assert named in result.stderr
    assert result.stdout == ""
    assert SECRET not in result.stderr
    assert "Traceback" not in result.stderr
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.slow
def test_a_release_without_a_domain(folder):
    Crowd(users=400, rows=30, items=4, seed=1, strings=True).write("many.csv")
    result = release(table="many.csv", domain=None, delta="1e-6", epsilon="3", other="rest")
    assert result.exit_code == 0, result.output
    assert "finding the items, for part of the budget" in result.stderr
    assert "were found in the table" in result.stdout
    assert "'rest' stands for all items that are not listed" in result.stdout
    assert "Its share, which the list misses, is 0." in result.stdout
    found = json.loads(Path("r.json").read_text())["items"]
    assert found == ["item-0000", "item-0001", "item-0002", "item-0003", {"other": "rest"}]
    shown = run("show", "r.json")
    assert shown.exit_code == 0
    assert "'rest' stands for" in shown.stdout
    again = release("--force", table="many.csv", domain="discover", delta="1e-6", epsilon="3", discovery_share="0.5")
    assert "discovery_share=0.5" in again.stdout


@pytest.mark.slow
def test_groups_and_items_that_are_found(folder):
    lines = [f"{user},{'DE' if user % 2 else 'FR'},{page}" for user in range(600) for page in ("home", "search", user)]
    Path("many.csv").write_text(
        "\n".join(["who,country,page", *lines, *(f"{user},X{user},home" for user in range(600))])
    )
    options = {"table": "many.csv", "user": "who", "item": "page", "domain": None, "delta": "1e-6", "epsilon": "6"}
    result = release(**options, by="country", csv="r.csv")
    assert result.exit_code == 0, result.output
    assert result.stdout.count("  95% interval") == 2  # the rows of no group have a line and no table
    assert "which the list misses, is 0." in result.stdout
    assert "country = other, 0." in result.stdout
    assert "were found in the table" in result.stdout
    lines = Path("r.csv").read_text().splitlines()
    assert lines[0] == '"country","share","page","probability","standard_error","lower","upper","is_other"'
    assert [line.split(",")[2] for line in lines[1:4]] == ['"home"', '"search"', '"other"']
    assert len(lines) == 8
    assert run("show", "r.json").stdout + "Saved to r.json.\n" == result.stdout


def test_the_help_names_the_default_share():
    from crowdgram.mechanisms import DEFAULT_SHARE

    shown = " ".join(run("release", "--help").stdout.split())
    assert f"discovers the items. [default: {DEFAULT_SHARE:g}]" in shown


def test_a_symbolic_link_to_the_table_is_the_table(folder, no_rows_read):
    os.symlink("visits.csv", "link.json")
    result = release(output="link.json")
    assert result.exit_code == 2
    assert "overwrite" in result.stderr


def test_a_glob_that_holds_the_output(folder, no_rows_read):
    Path("old.csv").write_text("user,item\n")
    assert release(table="*.csv", output="old.csv").exit_code == 2


def test_a_folder_without_permission(folder, no_rows_read, monkeypatch):
    monkeypatch.setattr(
        os, "access", lambda path, mode: mode != os.W_OK
    )  # root, who runs tests too, may write anywhere
    result = release()
    assert result.exit_code == 2
    assert "--output" in result.stderr


def test_errors_are_one_line(folder):
    result = release(user="whom\n\x1b[31m")
    assert result.exit_code == 2
    errors = [line for line in result.stderr.splitlines() if not line.startswith("crowdgram: ")]
    assert len(errors) == 1
    assert errors[0].startswith("error: ")
    assert "\x1b" not in result.stderr


# --- failures: exit code 1


def test_rows_that_cannot_be_read_are_a_failure(folder, monkeypatch):
    from crowdgram.tables.engines import DuckEngine

    def fail(*_):
        raise RuntimeError(SECRET)

    monkeypatch.setattr(DuckEngine, "_create", fail)  # an engine that fails in the middle of its work
    result = release()
    assert result.exit_code == 1
    assert "counting rows" in result.stderr
    assert SECRET not in result.output
    assert not Path("r.json").exists()


@pytest.mark.parametrize("error", [RuntimeError(SECRET), KeyError(SECRET)])
def test_an_unforeseen_error_shows_not_even_its_kind(folder, monkeypatch, error):
    def fail(*arguments):
        raise error

    monkeypatch.setattr("crowdgram.tables.count_rows", fail)  # stands for a bug of ours
    result = release()
    assert result.exit_code == 1
    assert "unexpected error" in result.stderr
    assert type(error).__name__ not in result.output
    assert SECRET not in result.output
    assert not Path("r.json").exists()


def test_a_promise_that_does_not_hold_is_a_failure(folder, monkeypatch):
    def fail(*arguments):
        raise PrivacyViolation("the events exceed the promise")

    monkeypatch.setattr("crowdgram.privacy.Spending.settled", fail)  # no mechanism of ours overspends
    result = release()
    assert result.exit_code == 1
    assert "exceed the promise" in result.stderr
    assert not Path("r.json").exists()


# --- nothing about the rows but the release


@pytest.mark.slow
def test_stages_are_plain_lines_and_the_same_for_all_tables(folder):
    Path("empty.csv").write_text("user,item\n")
    Path("other.csv").write_text("user,item\n" + "".join(f"{k % 3},item-0001\n" for k in range(20_000)))
    heard = [release("--force", table=table).stderr for table in ("visits.csv", "empty.csv", "other.csv")]
    stages = [[line for line in one.splitlines() if not line.startswith("warning: ")] for one in heard]
    assert stages[0] == stages[1] == stages[2]
    lines = stages[0]
    assert lines[0] == "crowdgram: opening the table (0%)"
    assert lines[-1] == "crowdgram: saving the release (98%)"
    assert all(line.startswith("crowdgram: ") and "\x1b" not in line for line in lines)


def test_terminal_escapes_in_names_are_shown_escaped(folder):
    Path("items.txt").write_text("\x1b[31mred\nback\x08\n\u202eright\nplain\x9b2J\n[bold]b[/bold]\n")
    for result in (release(), run("show", "r.json")):
        assert result.exit_code == 0, result.stderr
        assert not set(result.stdout) & set("\x1b\x08\u202e\x9b")
        for shown in (r"\x1b[31mred", r"back\x08", r"\u202eright", r"plain\x9b2J", "[bold]b[/bold]"):
            assert shown in result.stdout


def test_a_saved_file_cannot_steer_the_terminal(folder):
    release()
    document = json.loads(Path("r.json").read_text())
    document["mechanism"] = document["guarantee"]["unit"] = "\x1b[2Jx"
    document["parameters"] = {"\x1b[2J": "\x1b[2J"}
    Path("r.json").write_text(json.dumps(document))
    result = run("show", "r.json")
    assert result.exit_code == 0
    assert "\x1b" not in result.stdout
    assert result.stdout.count(r"\x1b[2J") == 4


def test_printable():
    assert printable("plain é 名 [x]") == "plain é 名 [x]"
    assert printable("\x00\x7f\u200b\u2028\ud800\n") == r"\x00\x7f\u200b\u2028\ud800\n"


def test_names_are_shown_as_they_are(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("visits.csv").write_text("user,page\n1,:cat:\n2,dog\n")
    Path("pages.txt").write_text(":cat:\ndog\n")
    asked = ["visits.csv", "--user", "user", "--item", "page", "--domain", "pages.txt", "--epsilon", "1"]
    done = run("release", *asked, "-o", ":cat:.json")
    assert done.exit_code == 0
    assert "Saved to :cat:.json." in done.stdout
    assert done.stdout.count(":cat:") == 2
