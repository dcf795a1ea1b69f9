"""Queries as SQL text. That both engines give the same integers for all statistics is in test_conformance.py."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest

from crowdgram.tables.engines import DuckEngine
from crowdgram.tables.relations import (
    coalesce,
    concat,
    greatest,
    ifelse,
    least,
    literal,
    null,
    row_number,
)


@pytest.fixture
def engine():
    with DuckEngine.embedded() as opened:
        yield opened


@pytest.fixture
def cells(engine):
    return engine.upload(pa.table({"user": [1, 1, 2], "idx": [0, 1, 1], "n": [5, 2, 7]}), "testing")


def rows(engine, relation, *order):
    found = engine.fetch(relation, "testing").to_pylist()
    return sorted((tuple(row[name] for name in order or relation.columns) for row in found), key=str)


def test_a_sum_has_the_type_that_is_stated_once_it_is_kept(engine, cells):
    """DuckDB sums integers in 128 bits."""
    kept = engine.keep(cells.group_by("user").agg(rows=cells.n.sum(), size=cells.count()), "testing")
    kinds = {row[0]: row[1] for row in engine.con.execute(f"DESCRIBE {kept.source}").fetchall()}
    assert kinds == {"user": "BIGINT", "rows": "BIGINT", "size": "BIGINT"}
    assert rows(engine, kept) == [(1, 7, 2), (2, 7, 1)]


def test_values(engine, cells):
    made = cells.select(
        a=least(cells.n, 6) * 10 - cells.idx,
        b=greatest(cells.n // 2, cells.n % 3),
        c=coalesce(null(), cells.n),
        d=ifelse((cells.n > 4) & (cells.idx == 0), 1, cells.n),
        e=(100 - cells.n).cast("float64").sqrt().floor().cast("int64"),
        f=(cells.idx - 1).abs(),
    )
    expected = [
        (min(n, 6) * 10 - i, max(n // 2, n % 3), n, 1 if n > 4 and i == 0 else n, math.isqrt(100 - n), abs(i - 1))
        for _, i, n in [(1, 0, 5), (1, 1, 2), (2, 1, 7)]
    ]
    assert rows(engine, made) == sorted(expected, key=str)


@pytest.mark.parametrize("number", [0.1, 2.0**53 + 2, 1 + 2.0**-50, 1e22, 5e-324, -0.5, 2**62, -(2**62)])
def test_a_public_number_is_the_same_to_the_last_bit_in_the_engine(number, engine, cells):
    found = engine.fetch(cells.select(x=literal(number) + ifelse(cells.n > 0, number * 0, number)), "testing")
    assert set(found["x"].to_pylist()) == {number}


def test_joins(engine, cells):
    listed = engine.upload(pa.table({"idx": [1, 2], "place": [10, 20]}), "testing")
    assert rows(engine, cells.inner_join(listed, "idx")) == [(1, 1, 2, 10), (2, 1, 7, 10)]
    left = cells.left_join(listed, "idx")
    assert rows(engine, left.select("n", place=left.place.fill_null(-1))) == [(2, 10), (5, -1), (7, 10)]
    assert rows(engine, cells.semi_join(listed, "idx"), "n") == [(2,), (7,)]
    assert rows(engine, cells.anti_join(listed, "idx"), "n") == [(5,)]
    with pytest.raises(AssertionError):  # which of both columns `n` would be?
        cells.inner_join(cells, "user")


def test_windows(engine, cells):
    made = cells.select(
        "n",
        up_to=cells.n.sum().over(cells.user, [cells.idx]),
        rows=cells.n.sum().over(cells.user),
        place=row_number([cells.user], [cells.n]),
    )
    assert rows(engine, made) == [(2, 7, 7, 0), (5, 5, 7, 1), (7, 7, 7, 0)]


def test_copies_are_numbered_and_digested(engine, cells):
    copies = cells.select("user", copy=cells.n.numbers())
    assert rows(engine, copies.group_by("user").agg(n=copies.count(), last=copies.copy.max())) == [(1, 7, 4), (2, 7, 6)]
    text = concat("salt:", cells.n.cast("string")).md5().start(3).hexadecimal()
    assert all(0 <= number < 2**12 for (number,) in rows(engine, cells.select(text=text)))


def test_names_are_those_of_columns(engine, cells):
    renamed = cells.rename(name="user").mutate(n=cells.n + 1)
    assert renamed.columns == ["name", "idx", "n"]
    assert rows(engine, renamed.union(renamed).distinct().filter(renamed.name == 2)) == [(2, 1, 8)]
    with pytest.raises(AttributeError):
        _ = cells.name
    with pytest.raises(KeyError):
        cells.select("name")


@pytest.mark.parametrize("text", ["'", "a'b", "\\", 'a"', "x\n", "${name}"])
def test_text_that_engines_quote_in_their_own_ways_is_refused(text):
    with pytest.raises(ValueError, match="quote"):
        literal(text)


def test_doubles_are_divided_and_integers_are_rounded_down(cells):
    with pytest.raises(AssertionError):
        _ = cells.n / cells.n
    with pytest.raises(AssertionError):
        _ = cells.n.cast("float64") // 2
