"""Shapes of bugs that broke the guarantees of other libraries, each as a test of this one.

- A bound is forgotten when a column is redefined: `test_bounds_hold_for_redefined_columns`, and the whole release
  "computed" of the audit.
- A conversion that is not row-wise: `test_one_users_value_changes_how_no_other_row_is_read`;
  tables/test_delimited.py, tables/test_row_wise.py.
- Keys of single precision that are read as doubles: `test_floats_are_no_keys`, `test_single_precision_is_read_alike`;
  tables/test_identity.py.
- Probability exactly at a threshold that is left out of delta: `test_what_is_at_a_threshold_...`,
  `test_the_chance_above_a_threshold_is_what_was_paid_for`; privacy/test_threshold.py.
- Noise that differs by platform or version: `test_the_same_random_bytes_are_the_same_noise_everywhere`;
  privacy/test_noise.py, audit/test_selftest.py.
- What a replay on neighbours with frozen noise would show: audit/test_whole_releases.py, and
  `test_every_argument_of_a_release_is_replayed_on_neighbours`.
"""

from __future__ import annotations

import datetime
import decimal
import hashlib
import json
import math
import sqlite3
from dataclasses import fields

import mpmath as mp
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest

import crowdgram
from crowdgram.audit import WHOLE_RELEASES
from crowdgram.errors import InvalidTable
from crowdgram.mechanisms import open_search, plan_discovery
from crowdgram.mechanisms.discovery import MOST_ITEMS, ROUNDS, round_sigma, search_sets, thresholds_for
from crowdgram.mechanisms.single_histogram import ItemsPerUser, find_by_histogram
from crowdgram.privacy import Adjacency, Guarantee, Spending, ThresholdEvent
from crowdgram.privacy.discrete import discrete_gaussian, discrete_laplace
from crowdgram.releases.query import Query
from crowdgram.tables import (
    UNIT,
    Bins,
    CappedRows,
    count_rows,
    item_sets,
    open_rows,
    read_domain,
    read_joint_domain,
    tally_rows,
)

from .samplers import Scripted
from .tables.cells import fetch_cells

# --- a bound is forgotten when a column is redefined

HUGE = 2**62
CROWD = [("ann", "x", 3, 1.0), ("bob", "y", 1, 2.5), ("bob", "x", 2, 7.0)]
HOSTILE = [(user, item, n, v) for user in ("Eve", "EVE", " eve") for item in "xy" for n, v in ((HUGE, 1.0), (9, 7.0))]
"""One user of `lower(trim(u))` under three names, with huge counts and many rows, some of which filters drop."""
ONE_USER = {"u": "lower(trim(u))"}
REDEFINED = {
    "a count and a filter on it": {"item": "i", "count": "n", "where": "n > 2"},
    "an item named as the column it is made of": {"item": {"i": "upper(i)"}, "count": "n", "domain": ["X", "Y"]},
    "an item named as the user": {"item": {"u": "i"}, "count": "n"},
    "an item made of the count": {"item": {"i": "n % 2"}, "count": "n", "domain": [0, 1]},
    "bins named as the column they are made of": {"item": {"v": Bins("v", (0, 5, 10))}, "count": "n"},
    "bins of the count": {"item": {"v": Bins("n", (0, 5, 10))}, "count": "n", "where": "v > 5"},
    "groups named as the item's own column": {"item": {"j": "i"}, "by": {"i": "n > 5"}, "count": "n"},
}


def moved_by(rows, asked, row_cap):
    columns = dict(zip("uinv", zip(*rows, strict=True), strict=True))
    given = {name: one for name, one in asked.items() if name != "domain"}
    opened = open_rows(pa.table({name: list(column) for name, column in columns.items()}), user=ONE_USER, **given)
    domain = asked.get("domain", ["x", "y"])
    binned = (
        next((one for one in asked["item"].values() if isinstance(one, Bins)), None) if asked["item"] != "i" else None
    )
    with opened.engine:
        if "by" in asked:
            places = read_joint_domain(
                [(one, item) for one in (True, False) for item in domain], opened.item_types, opened.names
            )
        else:
            places = read_domain(domain if binned is None else list(binned.names), opened.item_type)
        return count_rows(opened, places).sum(CappedRows(row_cap)).values


@pytest.mark.slow
@pytest.mark.parametrize("asked", REDEFINED.values(), ids=REDEFINED)
def test_bounds_hold_for_redefined_columns(asked):
    """The user fills the bound, and not more, whatever is computed of which column, and under which name."""
    change = moved_by(CROWD + HOSTILE, asked, 5) - moved_by(CROWD, asked, 5)
    assert (change >= 0).all()
    assert 0.999 * UNIT < change.sum() <= UNIT  # parts are rounded down


# --- a conversion that is not row-wise

ODD = [
    7,
    "7",
    7.5,
    True,
    None,
    math.nan,
    10**30,
    b"\xff",
    decimal.Decimal("1.10"),
    datetime.date(2024, 2, 29),
    [1],
    {"a": 1},
]
"""Values that change the type which a column would be given by looking at all of it."""
OTHERS = [(1, "a", 2), (2, "b", 1), (2, "a", 3), (30, "c", 1)]


def as_objects(rows, _folder):
    columns = dict(zip("uin", zip(*rows, strict=True), strict=True))
    made = {name: np.empty(len(rows), dtype=object) for name in "ui"}
    for name, array in made.items():
        array[:] = columns[name]
    return pd.DataFrame(made)


def as_json_lines(rows, folder):
    lines = [json.dumps(dict(zip("uin", row, strict=True)), default=str) for row in rows]
    (folder / "t.jsonl").write_text("\n".join(lines) + "\n")
    return folder / "t.jsonl"


def as_csv(rows, folder):
    pd.DataFrame(rows, columns=list("uin"), dtype=object).to_csv(folder / "t.csv", index=False)
    return folder / "t.csv"


def as_untyped_sqlite(rows, folder):
    file = folder / "t.db"
    file.unlink(missing_ok=True)
    simple = (int, float, str, bytes, type(None))
    with sqlite3.connect(file) as connection:
        connection.execute("create table t (u, i, n)")
        fit = [[x if isinstance(x, simple) and x != 10**30 else str(x) for x in row] for row in rows]
        connection.executemany("insert into t values (?, ?, ?)", fit)
    connection.close()
    return crowdgram.Database(f"sqlite:///{file}", table="t")


def cells_of(source):
    opened = open_rows(source, user="u", item="i")
    with opened.engine:
        found = fetch_cells(count_rows(opened, read_domain(["a", "b", "c"], opened.item_type)))
    return sorted(zip(*(map(str, found[name].to_pylist()) for name in ("user", "idx", "n")), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("make", [as_objects, as_json_lines, as_csv, as_untyped_sqlite], ids=lambda one: one.__name__)
def test_one_users_value_changes_how_no_other_row_is_read(make, tmp_path):
    """All odd values at once, in the column of users and in that of items, first and last: others' cells stay."""
    alone = cells_of(make(OTHERS, tmp_path))
    assert [cell[0] for cell in alone] == ["1", "2", "2", "30"]
    users = [(odd, "zebra", 1) for odd in ODD]  # outside the domain: only how others are read could change
    items = [("eve", odd, 1) for odd in ODD]
    for rows in ([*users, *OTHERS], [*OTHERS, *users], [*items, *OTHERS], [*OTHERS, *items]):
        assert cells_of(make(rows, tmp_path)) == alone


# --- float32 keys read as float64

FLOATS = {"float16": np.float16, "float32": np.float32, "float64": np.float64}


def in_parquet(table, folder):
    pa.parquet.write_table(table, folder / "t.parquet")
    return folder / "t.parquet"


SOURCES = {
    "pyarrow": lambda table, _: table,
    "pandas": lambda table, _: table.to_pandas(),
    "polars": lambda table, _: pl.from_arrow(table),
    "parquet": in_parquet,
}


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_floats_are_no_keys(kind, source, tmp_path):
    """No user, item or group is a float, so none can be rounded into another: refused by the type alone."""
    table = pa.table({"f": pa.array(np.array([0.1, 16777217.0], FLOATS[kind])), "s": ["a", "b"], "t": ["a", "b"]})
    given = SOURCES[source](table, tmp_path)
    for asked in ({"user": "f", "item": "s"}, {"user": "s", "item": "f"}, {"user": "s", "item": "t", "by": "f"}):
        with pytest.raises(InvalidTable, match=f"'f': has type {kind}"):
            open_rows(given, **asked)


@pytest.mark.parametrize("source", SOURCES)
def test_single_precision_is_read_alike(source, tmp_path):
    """Where floats may be read, in bins and filters, float32 is the double that it is: 0.7 of it lies below 0.7."""
    values = np.array([0.7, 0.1, 16777216.0, np.inf, np.nan], np.float32)
    given = SOURCES[source](pa.table({"f": pa.array(values), "s": list("abcde")}), tmp_path)
    bins = Bins("f", (0, 0.1, 0.7, 16777217))
    opened = open_rows(given, user="s", item={"f": bins}, where="f <> 0.7 and f < 16777217")
    with opened.engine:
        found = fetch_cells(count_rows(opened, read_domain(list(bins.names), opened.item_type)))
    placed = dict(zip(found["user"].to_pylist(), found["idx"].to_pylist(), strict=True))
    assert placed == {"a": 1, "b": 1, "c": 2}


# --- mass exactly at a threshold

GUARANTEE = Guarantee(1.0, 1e-6)


def tallied(users, items):
    return tally_rows(
        open_rows(pa.table({"u": list(range(users)), "i": [n % items for n in range(users)]}), user="u", item="i")
    )


@pytest.mark.slow
@pytest.mark.parametrize("above", [0, 1])
def test_what_is_at_a_threshold_of_the_histogram_is_not_shown(above):
    """The noisy value is the threshold itself, or one more: `>` in the code, as the proof of its chance has it."""
    look = ItemsPerUser(users=10_000.0, root=1.0)

    def find(at):
        sampler = Scripted(laplace_by=lambda values, scale: np.full(len(values), at, dtype=np.int64))
        rows = tallied(6, 3)
        with rows.engine:
            search = Spending(GUARANTEE, sampler=sampler).open().search("items", delta=2.5e-7, rounds=1, mu=0.1)
            return find_by_histogram(rows, search, look, None)[0]

    shown = find(find(0).threshold + above)
    assert len(shown.items) == (3 if above else 0)


@pytest.mark.slow
@pytest.mark.parametrize("above", [0, 1])
@pytest.mark.parametrize("last", [1, ROUNDS])
def test_what_is_at_a_threshold_of_a_round_is_not_shown(above, last):
    """The evidence of all rounds so far is a round's threshold itself, or one more. Before, it is just below others."""
    plan = plan_discovery(GUARANTEE, 0.5, "gaussian")
    drawn = []

    def gaussian(values, _sigma):
        number = len(drawn) + 1
        so_far = sum(drawn)
        drawn.append(thresholds[last - 1] + above - so_far if number == last else thresholds[number - 1] - so_far)
        return np.full(len(values), drawn[-1], dtype=np.int64)

    spending = Spending(GUARANTEE, sampler=Scripted(gaussian_by=gaussian))
    rows = tallied(6, 3)
    with rows.engine:
        search = open_search(spending.open(), plan)
        thresholds = thresholds_for(round_sigma(search, plan), search.chance)
        found, _ = search_sets(item_sets(rows, search.salt(), MOST_ITEMS), search, plan, thresholds)
    assert len(found) == (3 if above else 0)


@pytest.mark.slow
@pytest.mark.parametrize("adjacency", list(Adjacency))
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 30.0])
def test_the_chance_above_a_threshold_is_what_was_paid_for(adjacency, epsilon):
    """Of a lone item, with the scale that was drawn, by the exact tail of discrete Laplace noise above the threshold.
    Under replace the two users, before and after, may both be alone with an item.
    """
    guarantee, drawn = Guarantee(epsilon, 1e-6, adjacency), []

    def laplace(values, scale):
        drawn.append(scale)
        return np.zeros(len(values), dtype=np.int64)

    spending, rows = Spending(guarantee, sampler=Scripted(laplace_by=laplace)), tallied(6, 3)
    with rows.engine:
        search = spending.open().search("items", delta=2.5e-7, rounds=1, mu=0.1)
        found, _ = find_by_histogram(rows, search, ItemsPerUser(users=10_000.0, root=1.0), None)
    paid = next(event.delta for event in spending.events if isinstance(event, ThresholdEvent))
    alone = 2 if adjacency is Adjacency.REPLACE else 1

    def chance(least):
        with mp.workdps(40):
            a = mp.exp(-1 / mp.mpf(drawn[0]))
            return alone * a ** (least - UNIT) / (1 + a)

    assert chance(found.threshold + 1) <= paid
    assert chance(found.threshold + 1) > 0.4 * paid  # two items of a user are allowed for, of which either may pass


# --- noise that differs by platform or version

SCALES = (1.0, 1.5, 3.7, 1000.3, 123456.789, 2.0**30 / 0.7, 2.0**50)
RECORDED = {
    discrete_laplace: "29a43752e28e596692d5128609271362fff11e686668e6b5d0df6e0d8e54d55e",
    discrete_gaussian: "107a276a527448108d2a28401edc9bb8e776dc97a733dc3705e864a11788878a",
}
"""SHA-256 of the draws below. A sampler that uses its bytes otherwise has another; no platform or version has."""


@pytest.mark.parametrize("draw", RECORDED, ids=lambda one: one.__name__)
def test_the_same_random_bytes_are_the_same_noise_everywhere(draw):
    """No float, no library's own generator and no order of bytes is between random bytes and noise."""
    stream = hashlib.shake_256(b"the same bytes everywhere").digest(2**20)
    used = 0

    def entropy(size):
        nonlocal used
        used += size
        assert used <= len(stream)
        return stream[used - size : used]

    drawn = [draw(scale, 200, entropy).astype("<i8").tobytes() for scale in SCALES]
    assert hashlib.sha256(b"".join(drawn)).hexdigest() == RECORDED[draw]


# --- replay on neighbours with frozen noise

REPLAYED_OTHERWISE = {"guarantee", "mechanism", "weight"}
"""The audit runs every release with every adjacency and weight, by any mechanism."""


def test_every_argument_of_a_release_is_replayed_on_neighbours():
    """Paired execution compares all that leaves, to the last bit. A new argument needs a whole release that has it."""
    named = {argument for release in WHOLE_RELEASES.values() for argument in release.arguments}
    assert {one.name for one in fields(Query)} - named == REPLAYED_OTHERWISE
    computed = [release for release in WHOLE_RELEASES.values() if isinstance(release.arguments.get("item"), dict)]
    assert computed
    assert {"reach", "found-reach", "prior", "periods", "counts", "found-items"} <= set(WHOLE_RELEASES)
