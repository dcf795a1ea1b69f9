"""Numbers by public edges: every number has one interval or none, in every engine."""

from __future__ import annotations

import decimal
import itertools
import math
from bisect import bisect_right

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import crowdgram
from crowdgram import Bins
from crowdgram.errors import CrowdgramError, InvalidArgument
from crowdgram.tables import open_rows
from crowdgram.tables.bins import MOST_EDGES, OUTSIDE

from ..thorough import examples
from .frames import frame_of

INF, NAN = math.inf, math.nan
AGES = [0, 17, 18, 29, 30, 64, 65, -1, 200, None]
AGED = ["0 to below 18"] * 2 + ["18 to below 30"] * 2 + ["30 to below 65"] * 2 + [OUTSIDE] * 3 + [None]
EDGES = [0, 18, 30, 65]


def expected(value, bins):
    """The same in Python."""
    if value is None or math.isnan(value):
        return None
    place = bisect_right(bins.edges, value)
    return bins.names[place - 1] if 0 < place < len(bins.edges) else OUTSIDE


def places(source, bins, **more):
    opened = open_rows(source, user="u", item={"made": bins}, **more)
    with opened.engine as engine:
        found = engine.fetch(opened.table, "testing").to_pydict()
    return [item for _, item in sorted(zip(found["user"], found["item"], strict=True), key=lambda pair: int(pair[0]))]


def numbered(values):
    return pa.table({"u": range(len(values)), "x": values})


@pytest.mark.parametrize(
    "kind", [pa.int8(), pa.uint8(), pa.int64(), pa.float32(), pa.float64(), pa.decimal128(9, 2)], ids=str
)
def test_numbers_of_every_type(kind):
    values = [one if kind != pa.uint8() or one is None or one >= 0 else 250 for one in AGES]
    values = [None if one is None else 100 if kind == pa.int8() and one == 200 else one for one in values]
    if pa.types.is_decimal(kind):
        values = [None if one is None else decimal.Decimal(one) for one in values]
    assert places(numbered(pa.array(values, kind)), Bins("x", EDGES)) == AGED


VALUES = [-INF, -1e308, -5e-324, -0.0, 0.0, 5e-324, 0.1, 0.3, 1.0, 2.0**53, 2.0**60, 1e308, INF, NAN, None]
WIDE = Bins("x", [-1e308, 0, 0.1, 0.3, 1, 2.0**60])


@pytest.mark.parametrize("engine", ["duckdb", pytest.param("spark", marks=pytest.mark.spark)])
def test_extremes_on_every_engine(engine, request):
    whole = [2**53 - 1, 2**53, -(2**63), 2**63 - 1, 0, 1, None]
    for values, schema, bins in [(VALUES, "double", WIDE), (whole, "bigint", Bins("x", [-5, 0.5, 2**53]))]:
        rows = list(enumerate(values))
        if engine == "spark":
            table = frame_of(request.getfixturevalue("spark"), rows, f"u bigint, x {schema}")
        else:
            table = numbered(pa.array(values, pa.float64() if schema == "double" else pa.int64(), from_pandas=False))
        assert places(table, bins) == [expected(value, bins) for value in values]


@pytest.mark.spark
def test_the_most_edges_on_spark(spark):
    bins = Bins("x", range(MOST_EDGES))
    table = frame_of(spark, [(0, 0.5), (1, MOST_EDGES - 1.5), (2, -1.0)], "u bigint, x double")
    assert places(table, bins) == [bins.names[0], bins.names[-1], OUTSIDE]


doubles = st.one_of(st.floats(), st.none(), st.sampled_from(VALUES))
edges = st.lists(st.one_of(st.integers(-9, 9), st.floats(-1e300, 1e300)), min_size=2, max_size=6, unique_by=float)


@pytest.mark.slow
@given(values=st.lists(doubles, min_size=1, max_size=20), given_edges=edges.map(sorted))
@examples(40, 1000)
def test_every_number_has_one_interval_or_none(values, given_edges):
    bins = Bins("x", given_edges)
    assert places(numbered(pa.array(values, pa.float64(), from_pandas=False)), bins) == [
        expected(value, bins) for value in values
    ]


def test_text_files_have_numbers_as_text(tmp_path):
    path = tmp_path / "t.csv"
    fields = ["17", " 18 ", "29.5", "old", "", "nan", "1e999", "-3", "65"]
    path.write_text("u,x\n" + "".join(f"{place},{field}\n" for place, field in enumerate(fields)))
    low, high = "0 to below 18", "18 to below 30"
    found = places(path, Bins("x", EDGES))
    assert found[:4] == [low, high, high, None]
    assert found[4:6] == [None, None]
    assert found[6] in (None, OUTSIDE)
    assert found[7:] == [OUTSIDE, OUTSIDE]


def test_expressions_and_filters():
    table = numbered(pa.array(AGES))
    tens = ["0 to below 2"] * 3 + ["2 to below 10"] * 4 + [OUTSIDE]
    assert places(table, Bins("x // 10", [0, 2, 10]), where="x >= 0") == tens
    assert places(table, Bins(lambda t: t.x + 1, EDGES))[1] == "18 to below 30"


@pytest.mark.parametrize(
    "given_edges",
    [
        [],
        [1],
        [1, 1],
        [2, 1],
        [0, NAN],
        [0, INF],
        [-INF, 0],
        ["0", "1"],
        "0,1",
        7,
        None,
        [True, 2],
        [0, 10**400],
        [0, None],
    ],
    ids=str,
)
def test_edges_that_cannot_serve(given_edges):
    with pytest.raises(InvalidArgument, match=r"edges=.*needs at least two finite numbers"):
        Bins("x", given_edges)


def test_too_many_edges():
    assert len(Bins("x", range(MOST_EDGES)).names) == MOST_EDGES - 1
    with pytest.raises(InvalidArgument, match=f"edges: has {MOST_EDGES + 1} numbers, and may have {MOST_EDGES}"):
        Bins("x", range(MOST_EDGES + 1))


def test_names():
    assert Bins("x", [-1.5, 0.0, np.int64(2), 1e30]).names == ("-1.5 to below 0", "0 to below 2", "2 to below 1e+30")
    assert Bins("x", np.array([0.0, 1.0])) == Bins("x", (0, 1))


@pytest.mark.parametrize(
    ("item", "says"),
    [
        ({"made": Bins("s", EDGES)}, r"item\['made'\]: bins need numbers, and the values have type string"),
        ({"made": Bins("null", EDGES)}, "bins need numbers"),
        ({"made": Bins("max(x)", EDGES)}, r"item\['made'\]='max\(x\)'"),
        ({"made": Bins("y", EDGES)}, r"item\['made'\]='y': column 'y' is not in the table"),
        ({"made": Bins(7, EDGES)}, r"item\['made'\]: is a int"),
        (Bins("x", EDGES), "item=.*a mapping of a name"),
    ],
)
def test_values_that_cannot_serve(item, says):
    with pytest.raises(CrowdgramError, match=says):
        open_rows(pa.table({"u": [1], "x": [1], "s": ["1"]}), user="u", item=item)


PEOPLE = pa.table(
    {"u": range(300), "age": [k % 90 for k in range(300)], "c": [("DE", "FR")[k % 2] for k in range(300)]}
)
AGE = {"age": Bins("age", EDGES)}
NAMES = AGE["age"].names
ASK = {"user": "u", "epsilon": 1e2, "mechanism": "laplace"}


def test_the_intervals_are_the_domain():
    made = crowdgram.release(PEOPLE, item=AGE, **ASK)
    assert made.items == NAMES
    assert made.item_columns == ("age",)
    assert made.probability("18 to below 30") == pytest.approx(12 / 65, abs=0.05)
    rest = crowdgram.release(PEOPLE, item=AGE, other="older", **ASK)
    assert rest.missed.value == pytest.approx(75 / 300, abs=0.05)


@pytest.mark.slow
def test_joint_items_and_groups():
    joint = crowdgram.release(PEOPLE, item=[AGE, "c"], domain={"c": ["DE", "FR"]}, **ASK)
    assert joint.items == tuple(itertools.product(NAMES, ["DE", "FR"]))
    both = crowdgram.release(PEOPLE, item=[AGE, {"decade": Bins("age // 10", [0, 5, 9])}], **ASK)
    assert both.items == tuple(itertools.product(NAMES, ["0 to below 5", "5 to below 9"]))
    groups = crowdgram.release(PEOPLE, item="c", by=AGE, domain=["DE", "FR"], **ASK)
    assert groups.groups == NAMES
    inside = crowdgram.release(PEOPLE, item=AGE, by="c", groups=["DE", "FR"], **ASK)
    assert inside["DE"].items == NAMES


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"item": AGE, "domain": ["0 to below 18"]}, r"domain: item\['age'\] is binned"),
        ({"item": AGE, "domain": "discover", "delta": 1e-6}, r"domain: item\['age'\] is binned"),
        ({"item": [AGE, "c"], "domain": {"age": ["x"], "c": ["DE"]}}, r"domain: item\['age'\] is binned"),
        ({"item": [AGE, "c"], "domain": [("0 to below 18", "DE")]}, "Give a mapping of each other item column"),
        ({"item": "c", "by": AGE, "groups": ["x"], "domain": ["DE"]}, r"groups=.*by\['age'\] is binned"),
    ],
)
def test_lists_that_bins_replace(asked, says):
    with pytest.raises(InvalidArgument, match=says):
        crowdgram.release(PEOPLE, **ASK, **asked)


def test_a_ledger_is_charged_for_the_intervals(tmp_path):
    ledger = crowdgram.Ledger.create(tmp_path / "l.ledger", epsilon=100.0)
    crowdgram.release(PEOPLE, item=AGE, ledger=ledger, **ASK)
    assert crowdgram.recover(ledger).items == NAMES
