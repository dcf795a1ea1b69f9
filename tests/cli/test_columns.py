"""Users, bins and text files as the command line has them."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

import crowdgram
from crowdgram import Bins
from crowdgram.cli.app import app
from crowdgram.cli.columns import read_bins, read_user

AGES = ["0 to below 18", "18 to below 65"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [f"{'  Ann' if k % 2 else 'Bob'} {k % 60};{k % 80};{'DE' if k % 3 else 'Österreich'}" for k in range(400)]
    (tmp_path / "people.txt").write_bytes("\n".join(["Customer Name;age;land", *rows, ""]).encode("latin-1"))
    (tmp_path / "lands.txt").write_text("DE\nÖsterreich\n")
    return tmp_path


def release(*more, user="Customer Name", csv=("--delimiter", ";", "--encoding", "latin-1"), table="people.txt"):
    asked = ["release", table, "--user", user, "--epsilon", "50", "--mechanism", "laplace", "-o", "r.json"]
    return CliRunner().invoke(app, [*asked, *csv, *more])


def test_everything_at_once(folder):
    found = release(
        "--item",
        "age",
        "--bins",
        "0,18,65",
        "--by",
        "land",
        "--groups",
        "lands.txt",
        user='lower(trim("Customer Name"))',
    )
    assert found.exit_code == 0, found.output
    made = crowdgram.load("r.json")
    assert made.groups == ("DE", "Österreich")
    assert list(made["DE"].items) == AGES
    assert made["DE"].probability(AGES[0]) == pytest.approx(18 / 65, abs=0.1)
    assert "ann" not in json.dumps(json.loads((folder / "r.json").read_text())).lower()


@pytest.mark.slow
@pytest.mark.parametrize(
    "more",
    [
        ("--item", "age", "--item", "land", "--domain", "land=lands.txt", "--bins", "age=0,18,65"),
        ("--item", "land", "--by", "age", "--domain", "lands.txt", "--bins", "age=0,18,65"),
        ("--item", "years=cast(age as double) + 1", "--bins", "years=-5,0.5,18"),
        ("--item", "years=cast(age as double) + 1", "--bins=-5,0.5,18"),
    ],
)
def test_bins_for_one_of_several_columns(folder, more):
    found = release(*more)
    assert found.exit_code == 0, found.output


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (("--bins", "0,x"), "--bins '0,x': needs numbers with commas between them"),
        (("--bins", ""), "--bins '': needs numbers"),
        (("--bins", "0,nan"), "needs at least two finite numbers"),
        (("--bins", "3,1"), "each above the one before"),
        (("--bins", "land=0,1"), "--bins 'land=0,1': needs COLUMN=EDGES, once for each column of age"),
        (("--bins", "0,1", "--bins", "age=0,1"), "needs COLUMN=EDGES, once"),
        (("--item", "land", "--bins", "0,1"), "needs COLUMN=EDGES, once for each column of age, land"),
        (("--bins", "0,1", "--domain", "lands.txt"), "is binned, and its bins are its domain"),
        (("--bins", "0,1", "--delimiter", ";;"), "needs to be one ASCII character"),
        (("--bins", "0,1", "--encoding", "utf-16"), "encoding='utf-16': needs to be"),
    ],
)
def test_what_is_refused(folder, more, says):
    csv = ("--delimiter", ";") if "--delimiter" not in more else ()
    found = release("--item", "age", *more, csv=csv)
    assert found.exit_code == 2
    assert says in found.output
    assert not (folder / "r.json").exists()


def test_options_of_text_files_for_other_tables(folder):
    found = release("--item", "age", "--bins", "0,1", table="people.parquet")
    assert (found.exit_code, "is no CSV by its name" in found.output) == (2, True)
    found = release("--item", "age", "--bins", "0,1", "--table", "t", table="people.duckdb", csv=("--delimiter", ";"))
    assert (found.exit_code, "--delimiter is for CSV files, and TABLE is a database" in found.output) == (2, True)


def test_a_tab_can_be_written(folder):
    (folder / "tabs.txt").write_text("user\tage\n" + "".join(f"{k}\t{k % 60}\n" for k in range(300)))
    found = release("--item", "age", "--bins", "0,18,65", user="user", csv=("--delimiter", "\\t"), table="tabs.txt")
    assert found.exit_code == 0, found.output


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("user", "user"),
        ("user-id", "user-id"),
        ("user (id)", "user (id)"),
        ("who=first || last", {"who": "first || last"}),
        ("lower(name)", {"user": "lower(name)"}),
        ("if(a = 'b', c, d)", {"user": "if(a = 'b', c, d)"}),
    ],
)
def test_users(text, expected):
    assert read_user(text) == expected


def test_a_column_with_an_odd_name_can_be_binned():
    assert read_bins(['my "age"'], None, ["0,1"]) == ([{'my "age"': Bins('"my ""age"""', (0, 1))}], None)
