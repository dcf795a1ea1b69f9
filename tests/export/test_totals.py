"""Totals and counts in files and frames: the same value back, columns by their measure, older files without them."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import csv, parquet

from crowdgram import GroupedRelease, Other, Quantity
from crowdgram.errors import InvalidArgument, UnreadableSource
from crowdgram.export.json_file import parse, to_document, to_text
from crowdgram.mechanisms.estimate import Divisor, Total

from ..results.synthetic import grouped, made, zipf
from ..thorough import examples

numbers = st.floats(0, 1e15, allow_nan=False)
totals = st.builds(
    Total,
    st.floats(1e-3, 1e15),
    st.floats(0, 10),
    st.none() | st.integers(1, 2**20),
    st.booleans(),
)
users = st.builds(
    lambda ends: Quantity(sorted(ends)[1], sorted(ends)[0], sorted(ends)[2], 0.95), st.tuples(numbers, numbers, numbers)
)


def counted(k=4, **more):
    one = made(zipf(k), np.full(k, 1e-3), [f"i{place}" for place in range(k)], ("item",))
    found = {"total": Total(1000.0, 0.01, 7, biased=True), "users": Quantity(200.0, 180.0, 220.0, 0.95), **more}
    return replace(one, divisor=Divisor(own=1.0), **found)


@pytest.mark.slow
@examples(100)
@given(total=st.none() | totals, number=st.none() | users)
def test_totals_come_back_as_they_were(total, number):
    one = counted(total=total, users=number)
    again = parse(to_text(one), "here")
    assert again == one
    assert (again.total, again.users) == (total, number)
    if total is not None:
        mine, theirs = one.counts(), again.counts()
        assert np.array_equal(mine.upper, theirs.upper)
        assert mine.total == theirs.total
    assert parse(to_text(GroupedRelease(grouped_with(total))), "here").joint.total == total


def grouped_with(total):
    return replace(grouped(1e-4).joint, total=total, divisor=Divisor(own=1.0))


def test_releases_saved_before_have_no_totals():
    document = to_document(counted())
    for name in ("total", "users"):
        del document[name]
    with pytest.raises(UnreadableSource, match="'total' is missing"):
        parse(json.dumps(document), "here")
    document["schema_version"] = 3
    again = parse(json.dumps(document), "here")
    assert again.total is None
    assert again.users is None
    assert again.rows is None


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("total", {"value": 0.0}),
        ("total", {"value": -3.0}),
        ("total", {"value": "many"}),
        ("total", {"error": -1.0}),
        ("total", {"row_bound": 0}),
        ("total", {"row_bound": True}),
        ("total", {"row_bound": 2.5}),
        ("total", {"biased": None}),
        ("users", {"lower": 300.0}),
        ("users", {"upper": 100.0}),
        ("users", {"lower": -1.0}),
        ("users", {"value": None}),
    ],
)
def test_totals_that_cannot_be_are_refused(name, values):
    document = to_document(counted())
    document[name].update(values)
    with pytest.raises(UnreadableSource, match="damaged release"):
        parse(json.dumps(document), "here")


def test_frames_of_counts(tmp_path):
    one = counted()
    counts = one.counts()
    frame = one.to_pandas(measure="counts")
    assert list(frame.columns) == ["item", "count", "standard_error", "lower", "upper"]
    assert frame["count"].tolist() == counts.counts.tolist()
    assert frame["upper"].tolist() == counts.upper.tolist()
    assert one.to_polars(measure="counts")["count"].to_list() == counts.counts.tolist()
    one.to_csv(tmp_path / "counts.csv", measure="counts")
    assert csv.read_csv(tmp_path / "counts.csv").column_names == frame.columns.tolist()
    one.to_parquet(tmp_path / "counts.parquet", measure="counts")
    table = parquet.read_table(tmp_path / "counts.parquet")
    assert table["count"].to_pylist() == counts.counts.tolist()
    assert table.schema.metadata[b"crowdgram.measure"].decode() == counts.about
    assert one.to_arrow().column_names == ["item", "probability", "standard_error", "lower", "upper"]
    assert "count" not in one.to_arrow().column_names


def test_frames_of_counts_by_group():
    found = GroupedRelease(grouped_with(Total(1000.0, row_bound=7)))
    table = found.to_arrow(measure="counts")
    assert table.column_names == ["country", "total", "page", "count", "standard_error", "lower", "upper"]
    assert isinstance(table, pa.Table)
    sums = {}
    for row in table.to_pylist():
        sums.setdefault((row["country"], row["total"]), []).append(row["count"])
    assert {country for country, _ in sums} == {"DE", "FR", "IT"}
    for (_, total), own in sums.items():
        assert sum(own) == pytest.approx(total, rel=1e-6)
    assert sum(total for _, total in sums) == pytest.approx(1000.0)
    assert found.rows.value == 1000.0
    assert found.users is None


def test_an_other_item_has_a_count():
    one = replace(counted(), items=("a", "b", "c", Other("other")))
    assert one.to_pandas(measure="counts")["is_other"].tolist() == [False, False, False, True]
    assert one.counts().estimate(Other("other")).count == one.counts().counts[-1]


def test_pages_of_counts(tmp_path):
    one = counted()
    one.to_html(tmp_path / "counts.html", measure="counts")
    page = (tmp_path / "counts.html").read_text(encoding="utf-8")
    assert "Number of rows by item" in page
    assert one.counts().about in page
    assert f'<td role="cell" class="figure">{one.counts().counts[0]:,.0f}</td>' in page
    joint = GroupedRelease(grouped_with(Total(1000.0, row_bound=7)))
    joint.to_html(tmp_path / "groups.html", measure="counts")
    assert '<th scope="col" role="columnheader">count</th>' in (tmp_path / "groups.html").read_text(encoding="utf-8")
    with pytest.raises(InvalidArgument, match="measure='rows'"):
        one.to_html(tmp_path / "rows.html", measure="rows")
    assert not (tmp_path / "rows.html").exists()
