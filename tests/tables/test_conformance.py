"""One suite, every engine: DuckDB, Spark and the plain-Python reference give the same integers."""

from __future__ import annotations

import datetime
from itertools import product

import numpy as np
import pyarrow as pa
import pytest

from crowdgram.tables import (
    MAX_BITS,
    MAX_EXPONENT,
    Centre,
    count_rows,
    distances,
    l1_sum,
    open_rows,
    read_domain,
    read_joint_domain,
    rows_histogram,
    sampled_sum,
    sums,
)
from crowdgram.tables import counts as counts_module

from . import reference

EDGES = [1, 2, 3, 5, 8, 16, 40, 100, 1000]


def skewed():
    rng = np.random.default_rng(1)
    rows = []
    for user in range(60):
        m = int(np.ceil(rng.pareto(1.0) * 3)) + 1
        rows += [(user, int(i)) for i in rng.zipf(1.5, size=min(m, 400)) % 13]
    return rows, list(range(12))  # item 12 is outside the domain


def one_huge_user():
    rows = [(0, i % 7) for i in range(5000)] + [(u, u % 3) for u in range(1, 20)]
    return rows, list(range(7))


def repeated_rows():
    return [(5, 1)] * 17 + [(6, 1)] * 17 + [(6, 2)] * 3 + [(7, 3)], [1, 2, 3]


def string_ids():
    names = ["ann", "Ann", "ann ", "änn", "a\u0308nn", "", "o'brien", 'q"x', "user;--", "名前"]
    rows = [(names[(3 * i) % 10], f"item-{i % 4}") for i in range(57)]
    return rows, ["item-3", "item-0", "item-1", "item-2", "never seen"]


def nulls_and_strangers():
    return [(1, None), (None, 2), (None, None), (1, 2), (2, 99), (3, 2)], [1, 2]


def empty():
    return [], [1, 2, 3]


def extreme_integers():
    big = 2**63 - 1
    return [(big, big), (-big - 1, big), (0, -big - 1), (0, 0)], [big, -big - 1, 0]


CASES = [skewed, one_huge_user, repeated_rows, string_ids, nulls_and_strangers, empty, extreme_integers]


def as_arrow(rows, domain):
    kind = pa.string() if isinstance(domain[0], str) else pa.int64()
    return pa.table({"u": pa.array([r[0] for r in rows], kind), "i": pa.array([r[1] for r in rows], kind)})


@pytest.fixture(params=["duckdb", pytest.param("spark", marks=pytest.mark.spark)])
def counted(request):
    """rows, domain -> Counts in the engine under test."""
    engines = []

    def make(rows, domain, partitions=1):
        table = as_arrow(rows, domain)
        if request.param == "spark":
            session = request.getfixturevalue("spark")
            kind = "string" if isinstance(domain[0], str) else "bigint"
            table = session.createDataFrame(rows, f"u {kind}, i {kind}").repartition(partitions)
        opened = open_rows(table, user="u", item="i")
        engines.append(opened.engine)
        return count_rows(opened, read_domain(domain, opened.item_type))

    yield make
    for engine in engines:
        engine.close()


def centre_for(items, bits=16):
    weights = 1.0 / np.arange(1, items + 1)
    coordinates = np.floor(weights / weights.sum() * 2**bits).astype(np.int64)
    return Centre(coordinates, np.arange(items, dtype=np.int64) % 5, bits)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.__name__)
def test_every_sum_is_the_reference_integer_for_integer(counted, case):
    rows, domain = case()
    counts, expected = counted(rows, domain), reference.ReferenceCounts(rows, domain)
    for cap in (1, 3, 1000):
        assert l1_sum(counts, cap).tolist() == reference.l1_sum(expected, cap)
    assert rows_histogram(counts, EDGES).tolist() == reference.rows_histogram(expected, EDGES)
    for cap in (1, 4):
        assert sampled_sum(counts, "salt", cap).tolist() == reference.sampled_sum(expected, "salt", cap)
    for centre, norm in product((Centre.origin(len(domain)), centre_for(len(domain))), ("l1", "l2")):
        measured = distances(counts, centre, norm)
        for radius, cap, unit in ((12345, 3, 2**20), (2**44, 1, 2**30)):
            found = measured.sum(radius, cap, unit).vector()
            assert found == reference.centred_sum(expected, centre, norm, radius, cap, unit)
        edges = [2.0**j for j in range(10, 60, 3)]
        found = measured.histogram(edges, 2).tolist()
        assert found == reference.distance_histogram(expected, centre, norm, edges, 2)
        measured.drop()


# --- rows that are counted already, and several item columns


def counts_of_all_sizes():
    sizes = [1, 2, 7, 2**20 - 1, 2**20, 2**31, 2**40 - 1, 2**40 + 5, 2**53 + 1, 2**63 - 1]
    odd = [0, -1, -(2**63), None]
    rows = [(f"u{k % 4}", f"i{k % 3}", n) for k, n in enumerate(sizes + odd)]
    rows += [("light", f"i{k % 3}", k % 5) for k in range(40)]
    rows += [("many", "i1", 2**20 - 1)] * 50 + [("many", "i2", 2**39 + 3)] * 50
    rows += [(None, "i0", 3), ("u0", None, 3), ("u0", "nowhere", 2**60)]
    return rows, ["i2", "i0", "i1"]


@pytest.fixture(params=["duckdb", pytest.param("spark", marks=pytest.mark.spark)])
def opened(request):
    """columns, rows, asked -> Rows in the engine under test."""
    engines = []

    def make(schema, rows, **asked):
        kinds = {"string": pa.string(), "bigint": pa.int64(), "date": pa.date32(), "boolean": pa.bool_()}
        kinds["timestamp_ntz"] = pa.timestamp("us")
        columns = zip(*rows, strict=True)
        fields = [pair.split() for pair in schema.split(", ")]
        table = pa.table(
            {name: pa.array(values, kinds[kind]) for (name, kind), values in zip(fields, columns, strict=True)}
        )
        if request.param == "spark":
            table = request.getfixturevalue("spark").createDataFrame(rows, schema).repartition(3)
        made = open_rows(table, user="u", **asked)
        engines.append(made.engine)
        return made

    yield make
    for engine in engines:
        engine.close()


def all_sums(counts):
    centre = centre_for(counts.items)
    return (
        l1_sum(counts, 3).tolist(),
        sampled_sum(counts, "salt", 4).tolist(),
        rows_histogram(counts, EDGES).tolist(),
        distances(counts, centre, "l1").sum(12345, 3, 2**20).vector(),
    )


def reference_sums(expected, items):
    return (
        reference.l1_sum(expected, 3),
        reference.sampled_sum(expected, "salt", 4),
        reference.rows_histogram(expected, EDGES),
        reference.centred_sum(expected, centre_for(items), "l1", 12345, 3, 2**20),
    )


def test_counted_rows_are_the_reference_integer_for_integer(opened):
    rows, domain = counts_of_all_sizes()
    made = opened("u string, i string, n bigint", rows, item="i", count="n")
    counts = count_rows(made, read_domain(domain, made.item_type))
    expected = reference.ReferenceCounts(rows, domain, counted=True)
    assert max(expected.rows.values()) > 2**19  # somebody is at the limit
    assert all_sums(counts) == reference_sums(expected, len(domain))


def test_joint_items_are_the_reference_integer_for_integer(opened):
    flat = [(f"u{k % 9}", ["DE", "FR", None, "IT"][k % 4], k % 5, k % 3) for k in range(300)]
    rows = [(u, None if c is None else (c, p), n) for u, c, p, n in flat]
    domain = [(c, p) for c in ("FR", "DE", "XX") for p in (4, 0, 1, 2)]
    expected = reference.ReferenceCounts(rows, domain, counted=True)
    made = opened("u string, c string, p bigint, n bigint", flat, item=["c", "p"], count="n")
    assert made.keys == ("item", "item_1")
    counts = count_rows(made, read_joint_domain(domain, made.item_types, made.names))
    assert all_sums(counts) == reference_sums(expected, len(domain))


# The same verdict for each row, on every engine: expressions with the Python that they stand for.
MOMENTS = [datetime.datetime(2024, 1 + k % 12, 1 + k % 28, k % 24, k % 60) for k in range(59)]
EXPRESSIONS = {
    "a > 3 and not (b = 2)": lambda a, b, s, t: a > 3 and b != 2,
    "a / b > 1.5": lambda a, b, s, t: b != 0 and a / b > 1.5,
    "a // b = 2 or a % b = 1": lambda a, b, s, t: b != 0 and (a // b == 2 or a % b == 1),
    "a * 4611686018427387904 is null": lambda a, b, s, t: True,
    "s like 'x%' or s in ('/a/b', 'y')": lambda a, b, s, t: s.startswith("x") or s in ("/a/b", "y"),
    "cast(s as bigint) = 12": lambda a, b, s, t: s == "12",
    "cast(s as date) is null": lambda a, b, s, t: True,
    "split_part(s, '/', 3) = 'b'": lambda a, b, s, t: s == "/a/b",
    "substring(s, 1, 2) = 'x1' or right(s, 1) = 'b'": lambda a, b, s, t: s[:2] == "x1" or s[-1:] == "b",
    "length(upper(s) || 'é') = 3": lambda a, b, s, t: len(s) == 2,
    "coalesce(nullif(s, 'y'), 'n') = 'n'": lambda a, b, s, t: s == "y",
    "case when a > b then 'more' else 'less' end = 'more'": lambda a, b, s, t: a > b,
    "date_trunc('month', t) = '2024-03-01'": lambda a, b, s, t: t.month == 3,
    "strftime(t, '%Y-%m-%d %H') = '2024-01-01 00'": lambda a, b, s, t: t.strftime("%m-%d %H") == "01-01 00",
    "year(t) = 2024 and quarter(t) = 2 and hour(t) < 12": lambda a, b, s, t: 4 <= t.month <= 6 and t.hour < 12,
    "dayofweek(t) = 0 or isodow(t) = 1": lambda a, b, s, t: t.isoweekday() in (7, 1),
    "cast(t as date) between '2024-02-01' and '2024-02-29'": lambda a, b, s, t: t.month == 2,
    "floor(a / 2.0) = 2 and abs(0 - b) < 3": lambda a, b, s, t: a // 2 == 2 and abs(b) < 3,
}


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_filters_are_the_same_on_every_engine(opened, text):
    texts = ["x1", "x", "y", "/a/b", "12", "1.9", "Z"]
    flat = [(k, k % 11, k % 5 - 1, texts[k % 7], MOMENTS[k % 59]) for k in range(385)]
    kept = sorted(row[0] for row in flat if EXPRESSIONS[text](*row[1:]))
    assert (len(kept) < len(flat)) or text.endswith("null")
    made = opened("u bigint, a bigint, b bigint, s string, t timestamp_ntz", flat, item="s", where=text)
    assert sorted(made.engine.fetch(made.table, "testing")["user"].to_pylist()) == kept


def test_partitions_and_row_order_cannot_matter(counted):
    rows, domain = skewed()
    forward = counted(rows, domain, partitions=7)
    backward = counted(rows[::-1], domain, partitions=3)
    centre = centre_for(len(domain))
    assert l1_sum(forward, 5).tolist() == l1_sum(backward, 5).tolist()
    assert sampled_sum(forward, "s", 2).tolist() == sampled_sum(backward, "s", 2).tolist()
    one, other = distances(forward, centre), distances(backward, centre)
    assert one.sum(99, 2).vector() == other.sum(99, 2).vector()


def test_a_user_over_the_row_limit_is_divided_down(counted, monkeypatch):
    monkeypatch.setattr(counts_module, "ROW_LIMIT", 50)
    monkeypatch.setattr(reference, "ROW_LIMIT", 50)
    rows, domain = one_huge_user()
    counts, expected = counted(rows, domain), reference.ReferenceCounts(rows, domain)
    assert max(expected.rows.values()) <= 50
    assert l1_sum(counts, 7).tolist() == reference.l1_sum(expected, 7)
    assert rows_histogram(counts, EDGES).tolist() == reference.rows_histogram(expected, EDGES)


def test_nothing_larger_than_the_domain_is_collected(counted, monkeypatch):
    rows, domain = skewed()
    counts = counted(rows, domain)
    sizes = []
    fetch = counts.engine.fetch

    def watched(table, stage):
        found = fetch(table, stage)
        sizes.append(found.num_rows)
        return found

    monkeypatch.setattr(counts.engine, "fetch", watched)
    l1_sum(counts, 1)
    sampled_sum(counts, "s", 2)
    rows_histogram(counts, EDGES)
    distances(counts, centre_for(len(domain))).sum(99, 2)
    assert len(sizes) == 4
    assert max(sizes) <= max(len(domain), len(EDGES))


def test_limits_keep_every_product_in_64_bits():
    """The largest integers that an engine can meet, from the public limits alone."""
    largest_square, largest_centre = 4**MAX_EXPONENT, 4**MAX_EXPONENT * 2**MAX_BITS
    assert largest_square * counts_module.ROW_LIMIT**2 < 2**63
    assert largest_centre * counts_module.ROW_LIMIT < 2**63
    assert sums.UNIT * 2**33 <= 2**63
    assert sums.UNIT * counts_module.ROW_LIMIT < 2**52  # exact where an engine divides in doubles
