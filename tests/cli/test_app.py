"""The command line, as a person meets it: what it prints, where, and with which exit code."""

from __future__ import annotations

import json
import os
import pty
import re
import sqlite3
import subprocess
import sys
import typing
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

import crowdgram
from crowdgram.cli.app import app
from crowdgram.cli.app import release as release_command
from crowdgram.cli.display import printable
from crowdgram.errors import PrivacyViolation
from crowdgram.synth import Crowd
from crowdgram.tables.addresses import ADDRESSES

SCRIPT = Path(sys.executable).with_name("crowdgram")
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


def script(*arguments, **environment):
    return subprocess.run(
        [SCRIPT, *map(str, arguments)],
        capture_output=True,
        timeout=120,
        check=False,
        env={**os.environ, **environment},
    )


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
    monkeypatch.setattr("crowdgram.releases.release", lambda *_, **__: found)
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


# --- tables as they are


@pytest.fixture
def shop(folder):
    """(user, country, page, day, n) as CSV, Parquet and SQLite, with their public lists."""
    rows = [(f"u{k % 40}", ("DE", "FR")[k % 2], f"p{k % 3}", f"2024-0{1 + k % 2}-11", k % 4) for k in range(400)]
    table = pa.table(dict(zip(("who", "country", "page", "day", "n"), zip(*rows, strict=True), strict=True)))
    pa.csv.write_csv(table, "shop.csv")
    pa.parquet.write_table(table, "shop.parquet")
    with sqlite3.connect("shop.db") as connection:
        connection.execute("create table visits (who text, country text, page text, day date, n integer)")
        connection.executemany("insert into visits values (?, ?, ?, ?, ?)", rows)
    connection.close()
    Path("countries.txt").write_text("DE\nFR\n")
    Path("pages.txt").write_text("p0\np1\np2\n")
    Path("pairs.csv").write_text("country,page\n" + "".join(f"{c},p{k}\n" for c in ("DE", "FR") for k in range(3)))
    return folder


def of_shop(*more, table="shop.csv", **options):
    return release(
        *more, table=table, **{"user": "who", "item": "page", "domain": "pages.txt", "epsilon": "5", **options}
    )


def test_counted_rows_and_a_filter(shop):
    result = of_shop(count="n", where="country = 'DE' and day < '2024-02-01'")
    assert result.exit_code == 0, result.stderr
    assert crowdgram.load("r.json").items == ("p0", "p1", "p2")


@pytest.mark.slow
def test_several_item_columns(shop):
    apart = ["--item", "page", "--domain", "country=countries.txt", "--domain", "page=pages.txt"]
    together = ["--item", "page", "--domain", "pairs.csv"]
    for more in (apart, together):
        result = of_shop(*more, "--force", item="country", domain=None, csv="r.csv")
        assert result.exit_code == 0, result.stderr
        made = crowdgram.load("r.json")
        assert made.item_columns == ("country", "page")
        assert sorted(made.items)[:2] == [("DE", "p0"), ("DE", "p1")]
        assert "country" in result.stdout.splitlines()[0]
        assert "page" in result.stdout.splitlines()[0]
        lines = Path("r.csv").read_text().splitlines()
        assert lines[0] == '"country","page","probability","standard_error","lower","upper"'
        assert len(lines) == 7


def test_a_computed_item(shop):
    Path("months.txt").write_text("2024-01\n2024-02\n")
    result = of_shop(item="month=strftime(cast(day as date), '%Y-%m')", domain="months.txt")
    assert result.exit_code == 0, result.stderr
    assert crowdgram.load("r.json").items == ("2024-01", "2024-02")


def test_groups(shop):
    result = of_shop(by="country", groups="countries.txt", csv="r.csv")
    assert result.exit_code == 0, result.stderr
    assert "country = DE, 0." in result.stdout
    assert result.stdout.count("  95% interval") == 2
    made = crowdgram.load("r.json")
    assert isinstance(made, crowdgram.GroupedRelease)
    assert made.groups == ("DE", "FR")
    lines = Path("r.csv").read_text().splitlines()
    assert lines[0] == '"country","share","page","probability","standard_error","lower","upper"'
    assert len(lines) == 7
    assert run("show", "r.json").stdout + "Saved to r.json.\n" == result.stdout


@pytest.mark.parametrize(
    "more",
    [
        {"table": "shop.db", "--table": "visits"},
        {"table": "sqlite:///shop.db?table=visits"},
        {"table": "shop.db", "--query": "select who, page, n from visits where country = 'DE'"},
    ],
    ids=str,
)
def test_databases(shop, more):
    options = [part for name, value in more.items() if name.startswith("--") for part in (name, value)]
    result = of_shop(*options, table=more["table"], count="n")
    assert result.exit_code == 0, result.stderr


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"count": "day", "table": "shop.parquet"}, "count='day'"),
        ({"count": "nothere"}, "'nothere'"),
        ({"where": "country ="}, "where"),
        ({"where": "count(*) > 1"}, "where"),
        ({"where": "nothere = 1"}, "'nothere'"),
        ({"by": "country"}, "groups"),
        ({"groups": "countries.txt"}, "by"),
        ({"by": "country", "groups": "repeated.txt"}, "'DE'"),
        ({"by": "page", "groups": "countries.txt"}, "'page'"),
        ({"item": "=page"}, "item"),
        ({"table": "shop.db"}, "--table"),
        ({"table": "shop.db?table=nothere"}, "'nothere'"),
        ({"table": "sqlite:///none.db?table=visits"}, "none.db"),
        ({"table": "shop.db?query=select who, page from visits limit 3"}, "LIMIT"),
        ({"table": "shop.db?table=visits", "output": "shop.db"}, "overwrite"),
        ({"csv": "pages.txt"}, "overwrite"),
        ({"csv": "r.json"}, "--csv and --output are both 'r.json'"),
        ({"csv": "none/r.csv"}, "--csv"),
    ],
    ids=str,
)
def test_bad_input_about_tables(shop, no_rows_read, options, named):
    Path("repeated.txt").write_text("DE\nDE\n")
    before = {path: path.read_bytes() for path in shop.iterdir()}
    result = of_shop(**options)
    assert result.exit_code == 2, result.stdout
    assert named in result.stderr
    assert "Traceback" not in result.stderr
    assert {path: path.read_bytes() for path in shop.iterdir()} == before


@pytest.mark.parametrize(
    "domains",
    [
        ["pairs.csv", "pages.txt"],
        ["country=countries.txt"],
        ["country=countries.txt", "country=countries.txt"],
        ["country=countries.txt", "pages.txt"],
        ["pages.txt"],
        [],
    ],
    ids=str,
)
def test_joint_domains_that_cannot_serve(shop, no_rows_read, domains):
    more = ["--item", "page", *(part for one in domains for part in ("--domain", one))]
    result = of_shop(*more, item="country", domain=None)
    assert result.exit_code == 2
    assert "domain" in result.stderr


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
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
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


# --- show, synth, demo, and the rest


def test_show(folder):
    made = release()
    shown = run("show", "r.json")
    assert shown.exit_code == 0
    warned = made.stderr.find("warning: ")  # of 50 users there may be too little to say
    assert shown.stderr == (made.stderr[warned:] if warned >= 0 else "")
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


# --- the installed script


@pytest.mark.slow
def test_the_script(folder):
    arguments = [
        "release",
        "visits.csv",
        "--user",
        "user",
        "--item",
        "item",
        "--domain",
        "items.txt",
        "-o",
        "r.json",
    ]
    result = script(*arguments, "--epsilon", "1")
    assert result.returncode == 0, result.stderr
    assert b"\x1b" not in result.stdout + result.stderr
    assert b"item-0000" in result.stdout
    result = script(*arguments, "--epsilon", "0", "--force")
    assert result.returncode == 2
    assert b"epsilon" in result.stderr
    assert result.stdout == b""


@pytest.mark.slow
def test_no_release_is_lost_to_an_encoding(folder):
    Path("items.txt").write_text("naïve\n名前\n", encoding="utf-8")
    assert release().exit_code == 0
    result = script("show", "r.json", PYTHONIOENCODING="ascii")
    assert result.returncode == 0, result.stderr
    assert rb"na\xefve" in result.stdout
    assert rb"\u540d\u524d" in result.stdout


@pytest.mark.slow
def test_a_terminal_gets_a_progress_display(folder):
    parent, child = pty.openpty()
    arguments = [
        "visits.csv",
        "--user",
        "user",
        "--item",
        "item",
        "--domain",
        "items.txt",
        "--epsilon",
        "1",
        "-o",
        "r.json",
    ]
    with subprocess.Popen(
        [SCRIPT, "release", *arguments],
        stdout=subprocess.DEVNULL,
        stderr=child,
        env={**os.environ, "TERM": "xterm"},
    ) as process:
        os.close(child)
        heard = b""
        while True:
            try:
                part = os.read(parent, 65536)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            heard += part
    os.close(parent)
    assert process.returncode == 0
    assert b"\x1b[" in heard
    assert b"opening the table" in heard
    assert b"crowdgram: " not in heard


def test_the_help_names_all_kinds_of_addresses():
    argument = typing.get_type_hints(release_command, include_extras=True)["source"].__metadata__[0]
    assert ADDRESSES in argument.help
