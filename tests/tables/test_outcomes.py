"""Failing is an outcome: whether an expression can be computed may not depend on a row.

The attacks below told, by failing, whether one user's row was there. Random expressions over extreme rows are made by
`bench/fuzz.py` (kind outcomes), a few of them here.
"""

from __future__ import annotations

import datetime
import importlib
import random
import sys
from pathlib import Path

import ibis
import ibis.expr.datatypes as dt
import pyarrow as pa
import pytest
from ibis.legacy.udf.vectorized import elementwise

import crowdgram
from crowdgram.errors import InvalidArgument
from crowdgram.tables import open_rows, row_functions
from crowdgram.tables.engines import Engine
from crowdgram.tables.expressions import NODES, TEXTS, evaluate
from crowdgram.tables.roles import WHERE

from ..thorough import THOROUGH
from .frames import arrow_of, open_in_ibis

SPARK = pytest.mark.spark
BIG = "(length(u) * 0 + 4611686018427387904)"
LEAST = "(length(u) * 0 - 9223372036854775807 - 1)"
SCHEMA = "u string, item string, n bigint, m bigint, x double, s string, d date"
CROWD = [("bob", "x", 1, 2, 0.5, "a", datetime.date(2024, 1, 1)), ("eve", "y", 3, 1, 1.5, "b-c", None)]
ALICE = ("alice", "x", 2**62, -(2**62) - 1, float("nan"), "a\\E(b" * 3, datetime.date(9999, 12, 31))


@pytest.fixture(params=["duckdb", pytest.param("spark", marks=SPARK)])
def neighbours(request):
    """A table without Alice, and one with her row."""
    tables = []
    for rows in (CROWD, [*CROWD, ALICE]):
        table = arrow_of(rows, SCHEMA)
        tables.append(request.getfixturevalue("spark").createDataFrame(table) if request.param == "spark" else table)
    return tables


ATTACKS = [
    f"{BIG} + {BIG} > 0",
    f"nullif({BIG}, 0.5) + nullif({BIG}, 0.5) > 0",
    f"coalesce(nullif({BIG}, 0.5), {BIG}) * {BIG} > 0",
    f"case when s = 'b' then 0.5 else {BIG} end + {BIG} > 0",
    f"greatest({BIG}, 0.5) * {BIG} > 0",
    f"0 - {BIG} - {BIG} - {BIG} < 0",
    f"-({LEAST}) > 0",
    f"abs({LEAST}) > 0",
    f"{LEAST} * -1 > 0",
    f"{LEAST} // -1 > 0",
    f"{LEAST} % -1 > 0",
    f"{BIG} % (length(u) * 0) > 0",
    f"floor({BIG} * 4.0) > 0",
    "cast(s as bigint) > 0 or cast(s as date) > '2024-01-01'",
    "split_part(s, '\\E(', 2) = 'b'",
    "split_part(s, '(', 2) = 'b'",
    "s like '%\\E%'",
    "strftime(d, 'T%Y') = 'T9999'",
    "date_trunc('week', d) > '2024-01-01'",
]


@pytest.mark.slow
@pytest.mark.parametrize("guard", ["case when u = 'alice' and n > 7 then ({}) else true end", "{}"])
def test_no_attack_fails_on_one_row(neighbours, guard):
    """Each expression gives a value for every row; so all of them do at once, and for each table alike."""
    found = []
    for given in neighbours:
        engine, table = open_in_ibis(given, None, "u")
        with engine:
            texts = [guard.format(attack) for attack in ATTACKS]
            made = {f"v{k}": evaluate(text, engine, table, WHERE) for k, text in enumerate(texts)}
            found.append(engine.fetch(table.select("u", **made).order_by("u"), "testing").to_pylist())
    assert found[1][0]["u"] == "alice"
    assert found[0] == found[1][1:]  # and what the others get is not for her to decide


@pytest.mark.slow
@pytest.mark.parametrize("where", ["n + n > 0", "n - m > 0", "nullif(n, 0.5) + nullif(n, 0.5) > 0", "-m - m > 0"])
@pytest.mark.parametrize("form", ["where", "item"])
def test_a_release_comes_out_with_her_row_and_without(where, form):
    asked = {"where": where, "item": "item"} if form == "where" else {"item": {"made": where}}
    domain = ["x", "y"] if form == "where" else [True, False]
    for rows in (CROWD, [*CROWD, ALICE]):
        names = [column.split()[0] for column in SCHEMA.split(", ")]
        table = pa.table(dict(zip(names, zip(*rows, strict=True), strict=True)))
        made = crowdgram.release(table, user="u", epsilon=1.0, domain=domain, mechanism="laplace", **asked)
        assert list(made.items) == domain


def value(text, **columns):
    """What an expression gives for one row."""
    engine, table = open_in_ibis(pa.table({"u": ["a"], **{name: [one] for name, one in columns.items()}}), None, "u")
    with engine:
        return engine.fetch(table.select(made=evaluate(text, engine, table, WHERE)), "testing")["made"][0].as_py()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("n + 0", 2**62),
        ("n + n", None),
        ("n + n - 1", None),
        ("n + (n - 1)", 2**63 - 1),
        ("-n - n", -(2**63)),
        ("-(-n - n)", None),
        ("abs(-n - n)", None),
        ("n * 2", None),
        ("n * -2", -(2**63)),
        ("(-n - n) % -1", None),
        ("(n - 1) % -7", 3),
        ("n // 3", None),
        ("7 // -2", -4),
        ("7 // 0", None),
        ("n % 0", None),
        ("n / 0", None),
        ("nullif(n, 0.5) + nullif(n, 0.5)", 2.0**63),
        ("split_part('a.b.c', '.', 2)", "b"),
        ("split_part('a.b.c', '.', 4)", ""),
        ("strftime(d, 'on %d.%m.%Y')", "on 29.02.2024"),
        ("s like 'a\\_%'", True),
        ("s like 'a\\\\%'", False),
        ("length(s || s)", 10),
        ("length(big || s)", row_functions.LONGEST + 5),
        ("length(big || big || big)", 3 * row_functions.LONGEST),
    ],
)
def test_values_at_the_edges(text, expected):
    row = {"n": 2**62, "d": datetime.date(2024, 2, 29), "s": "a\\bcd", "big": "x" * 10**6}
    assert value(text, **row) == expected


def test_unsigned_and_narrow_integers_are_64_bits_wide():
    table = pa.table(
        {"u": ["a", "b"], "big": pa.array([2**64 - 1, 7], pa.uint64()), "tiny": pa.array([127, 1], pa.int8())}
    )
    engine, opened = open_in_ibis(table, None, "u")
    with engine:
        made = {name: evaluate(name, engine, opened, WHERE) for name in ("big + 1", "tiny + 1", "tiny * tiny")}
        found = engine.fetch(opened.select(**made), "testing").to_pydict()
    assert found == {"big + 1": [None, 8], "tiny + 1": [128, 2], "tiny * tiny": [127**2, 1]}


def test_a_condition_in_parentheses_is_compared_as_one():
    table = pa.table(
        {"u": list("abcd"), "i": [1, 1, None, 1], "j": [1, 2, None, None], "c": [True, False, False, True]}
    )
    for where in ("(i is not distinct from j) = c", lambda t: t.i.identical_to(t.j) == t.c):
        rows = open_rows(table, user="u", item="c", where=where)
        with rows.engine:
            assert sorted(rows.engine.fetch(rows.table, "testing")["user"].to_pylist()) == ["a", "b"]


def test_the_engine_has_its_say_on_types(monkeypatch):
    """Ibis takes this for a float, and the engine for an integer: without casts in between, it is refused."""
    engine, table = open_in_ibis(pa.table({"u": ["a"], "n": [1]}), None, "u")
    with engine:
        assert evaluate("nullif(n, 0.5)", engine, table, WHERE).type().is_float64()
        monkeypatch.setattr(row_functions, "null_if", lambda one, other: one.nullif(other))
        with pytest.raises(InvalidArgument, match="another type in the engine than real"):
            evaluate("nullif(n, 0.5)", engine, table, WHERE)


def test_duckdb_computes_inside_try():
    """The second line: what fails for all that gives null."""
    engine, table = open_in_ibis(pa.table({"u": ["a", "b"], "n": [2**63 - 1, 1]}), None, "u")
    with engine:
        found = engine.fetch(table.select(made=engine.tried(table.n + table.n)), "testing")["made"].to_pylist()
        assert found == [None, 2]
        assert "TRY(" in ibis.to_sql(table.select(made=evaluate("n = 1", engine, table, WHERE)), dialect="duckdb")


def test_expressions_that_are_too_long():
    engine, table = open_in_ibis(pa.table({"u": ["a"], "s": ["x"], "x": [0.5]}), None, "u")
    with engine:
        for text in (" || ".join(["upper(s)"] * (TEXTS + 1)), "floor(" * 12 + "x" + " / 2.0)" * 12):
            with pytest.raises(InvalidArgument, match="is too long"):
                evaluate(text, engine, table, WHERE)
    assert NODES > 10_000


# --- functions of the caller's own


@ibis.udf.scalar.pandas
def by_pandas(n: int) -> int:
    return n - n.mean()


@ibis.udf.scalar.pyarrow
def by_pyarrow(n: int) -> int:
    return n


@ibis.udf.scalar.python
def by_python(n: int) -> int:
    return n


@ibis.udf.scalar.builtin
def by_name(n: int) -> int: ...


@elementwise(input_type=[dt.int64], output_type=dt.int64)
def by_batches(n):
    return n - n.mean()


@pytest.mark.parametrize("own", [by_pandas, by_pyarrow, by_python, by_name, by_batches])
def test_functions_that_may_see_whole_batches_are_refused(neighbours, own):
    with pytest.raises(InvalidArgument, match=r"^where: holds .*needs to be made of"):
        open_rows(neighbours[0], user="u", item="item", where=lambda t: own(t.n) > 0)


@pytest.mark.parametrize(
    "where",
    [
        lambda t: t.s.re_search(t.s),
        lambda t: t.s.repeat(t.n) == "",
        lambda t: t.s.lpad(t.n, "x") == "",
        lambda t: t.s.substr(t.n, t.n) == "",
        lambda t: t.d + ibis.interval(years=9999) > t.d,
        lambda t: t.n << t.n > 0,
        lambda t: t.x.sqrt() > 0,
        lambda t: t.x.cast("int64") > 0,
        lambda t: t.n.cast("decimal(4, 2)") > 0,
        lambda t: t.s.split("(")[0] == "a",
        lambda t: t.s.hash() == 0,
        lambda t: ibis.now() > t.d.cast("timestamp"),
        lambda t: t.n.to_timestamp("s").year() > 0,
    ],
    ids=range(13),
)
def test_ibis_functions_that_are_not_listed_are_refused(neighbours, where):
    with pytest.raises(InvalidArgument, match="where"):
        open_rows(neighbours[0], user="u", item="item", where=where)


def test_ibis_expressions_cannot_fail_either(neighbours):
    asked = [
        lambda t: t.n + t.n > 0,
        lambda t: -t.m * t.n > 0,
        lambda t: (t.n // (t.n - t.n)) > 0,
        lambda t: (t.m % (t.n * 0)) > 0,
        lambda t: t.s.cast("int64") > 0,
        lambda t: t.s.cast("date").year() > 0,
        lambda t: ibis.coalesce(t.n.nullif(3), 0.5) + t.n > 0,
        lambda t: ibis.cases((t.n > 7, t.n), else_=0.5) * t.n > 0,
        lambda t: t.d.truncate("W").strftime("T%Y") == "T9999",
        lambda t: t.s.upper().like("%\\E%") & t.s.strip().contains("(") | t.n.isin([1, 2]),
        lambda t: t.n.between(0, t.m) & t.x.floor().isnull() & ~t.s.lower().startswith("a"),
    ]
    found = []
    for given in neighbours:
        engine, table = open_in_ibis(given, None, "u")
        with engine:
            made = {f"v{k}": evaluate(where, engine, table, WHERE) for k, where in enumerate(asked)}
            found.append(engine.fetch(table.select("u", **made).order_by("u"), "testing").to_pylist())
    assert found[0] == found[1][1:]


# --- random expressions


@pytest.fixture
def fuzz(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "bench"))
    yield importlib.import_module("fuzz")
    for name in ("fuzz", "hostile", "odd_expressions", "odd_files", "odd_values"):
        sys.modules.pop(name, None)


@pytest.mark.spark
def test_random_expressions_on_spark(fuzz, spark):
    rng = random.Random(5)
    rows = fuzz.extreme(rng)
    frame = spark.createDataFrame(rows)
    for _ in range(5 if THOROUGH else 1):
        texts = [fuzz.sound(rng, kind, rng.randrange(1, 4)) for kind in fuzz.SOUND for _ in range(3)]
        fuzz.same_outcomes([frame, frame.filter("small >= 0"), frame.limit(0)], texts)


def test_the_fuzzer_sees_an_expression_that_fails(fuzz, monkeypatch):
    """The mutant: sums as the engine has them."""
    monkeypatch.setattr(row_functions, "_WIDE_INTEGER", dt.int64)
    table = fuzz.extreme(random.Random(1))
    with pytest.raises(AssertionError, match="fails on some row"):
        fuzz.same_outcomes([table], ["whole + whole > 0"])


def test_every_engine_names_its_types():
    assert all(set(kind.TYPES) == set(row_functions.TYPES) for kind in Engine.__subclasses__())
