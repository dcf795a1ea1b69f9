"""What a notebook shows: the top, how much is left out, and nothing that a name could make of it."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from crowdgram.privacy import Guarantee, LaplaceEvent
from crowdgram.results import Release

from .test_report import Tables, with_other

AWKWARD = [
    "$x",
    "$$",
    "a$b$c",
    r"\$\frac{",
    "_^{",
    "<script>",
    "&amp;",
    "%s",
    "x" * 500,
    "a\nb\tc",
    "名前",
    "",
    "\x1b[31m",
    7,
]


def made(items=("b", "a", "c"), weight="rows", delta=0.0):
    k = len(items)
    p = np.arange(1, k + 1) / (k * (k + 1) / 2)
    return Release(
        items=tuple(items),
        probabilities=p,
        standard_errors=np.full(k, 0.1),
        lower=np.maximum(p - 0.1, 0),
        upper=np.minimum(p + 0.1, 1),
        confidence=0.95,
        predicted_l1_error=0.25,
        guarantee=Guarantee(1.0, delta),
        events=(LaplaceEvent("counts", 2**30, 2.0**30, k),),
        mechanism="laplace",
        weight=weight,
    )


def test_html_shows_the_top_and_counts_the_rest():
    page = made([f"item {n}" for n in range(30)])._repr_html_()
    assert page.count("<tr>") == 1 + 20
    assert "and 10 more items" in page
    assert "item 29" in page
    assert "item 3<" not in page


@pytest.mark.parametrize("item", AWKWARD, ids=repr)
def test_html_escapes_every_name(item):
    page = made([item, "plain"])._repr_html_()
    assert "<script" not in page
    assert page.count("<tr>") == 3


def test_html_escapes_what_a_loaded_file_may_hold():
    page = dataclasses.replace(made(), mechanism="<b>", guarantee=Guarantee(1.0, unit="<i>"))._repr_html_()
    assert "<i>" not in page
    assert "released by <b>" not in page


def test_html_escapes_items():
    release = made(["<script>alert(1)</script>", "x & y"])
    page = release._repr_html_()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert "x &amp; y" in page
    assert release.guarantee.sentence() in page


def test_a_notebook_shows_groups():
    text = with_other()._repr_html_()
    rows = Tables(text).tables[0]
    assert rows[0] == ["country", "share", "95% interval", "most probable items"]
    assert [row[0] for row in rows[1:]] == ["DE", "FR", "other"]
    assert rows[1][3].startswith("other 0.500, a 0.333")
    assert "This holds for all groups together." in text
