"""Releases of tables as they are: counted rows, several columns, groups and databases."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import crowdgram

from .test_app import folder, release, run

__all__ = ["folder"]


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


@pytest.mark.slow
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
