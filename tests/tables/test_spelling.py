"""A public list that a computed column cannot match gets a warning, by the expression and the list alone."""

from __future__ import annotations

import warnings

import ibis
import pyarrow as pa
import pytest

import crowdgram
from crowdgram.errors import AccuracyWarning, CrowdgramError

TABLE = pa.table({"u": [1, 2], "s": ["a", "b"], "g": ["x", "y"]})


def said(table=TABLE, **asked):
    """Warnings of a list, of all that there are, and the file that they are said of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        crowdgram.release(table, user="u", epsilon=1.0, mechanism="laplace", other="rest", **asked)
    found = [one for one in caught if one.category is AccuracyWarning and "no row can have" in str(one.message)]
    assert all(one.filename == __file__ for one in found)
    return [str(one.message).partition(". Write")[0] for one in found]


LOWER = "domain: holds 'Home', which no row can have, because 's' is computed with lower, which gives no capitals"
UPPER = "domain: holds 'Home', which no row can have, because 's' is computed with upper, which gives no small letters"
TRIM = (
    "domain: holds 'Home ', which no row can have, because 's' is computed with trim, "
    "which gives no spaces around a text"
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("item", "domain", "expected"),
    [
        ("lower(s)", ["home", "Home"], [LOWER]),
        ("trim(lower(s))", ["Home"], [LOWER]),
        ("lower(upper(s))", ["Home"], [LOWER]),
        ("upper(lower(s))", ["Home"], [UPPER]),
        ("upper(lower(s))", ["HOME"], []),
        ("trim(s)", ["Home "], [TRIM]),
        ("lower(trim(s))", ["home", "a b"], []),
        ("lower(s) || 'X'", ["Home"], []),
        ("split_part(lower(s), 'x', 1)", ["Home"], []),
        ("lower(s)", ["\u0130", "\u00dc"], []),  # engines differ in these
        ("length(lower(s))", [1, 2], []),
        (ibis._.s.strip().lower(), ["Home"], [LOWER]),
    ],
)
def test_a_domain_that_cannot_match(item, domain, expected):
    assert said(item={"s": item}, domain=domain) == expected


def test_plain_columns_groups_and_joint_items():
    assert said(item="s", domain=["Home "]) == []
    assert said(item=["g", {"s": "upper(s)"}], domain={"g": ["x"], "s": ["Home"]}) == [UPPER]
    assert said(item={"s": "lower(s)"}, by={"h": "lower(g)"}, groups=["X"], domain=["Home"]) == [
        "groups: holds 'X', which no row can have, because 'h' is computed with lower, which gives no capitals",
        LOWER,
    ]


def test_rows_play_no_part():
    asked = {"item": {"s": "lower(s)"}, "domain": ["Home", "a"]}
    tables = [TABLE, TABLE.slice(0, 0), pa.table({"u": [1], "s": ["Home"], "g": ["x"]})]
    assert [said(table, **asked) for table in tables] == [[LOWER]] * 3


@pytest.mark.spark
def test_on_spark(spark):
    assert said(spark.createDataFrame(TABLE), item={"s": "lower(trim(s))"}, domain=["Home"]) == [LOWER]


def test_it_comes_before_a_charge(tmp_path):
    ledger = crowdgram.Ledger.create(tmp_path / "l.ledger", epsilon=1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", AccuracyWarning)
        with pytest.raises(CrowdgramError):
            crowdgram.release(
                TABLE,
                user="u",
                item={"s": "lower(s)"},
                domain=["Home", "a"],
                epsilon=1.0,
                mechanism="laplace",
                ledger=ledger,
            )
    assert ledger.history() == []
