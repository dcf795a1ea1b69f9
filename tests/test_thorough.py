"""What is tried by default: every two choices together, and one worker for what is shared."""

from __future__ import annotations

from itertools import combinations, product

import pytest

from . import thorough
from .conftest import group

CHOICES = (["a", "b", "c", "d"], [1, 2], ["x", "y", "z"], [None, 0.5])


def met(rows):
    return {((i, row[i]), (j, row[j])) for row in rows for i, j in combinations(range(len(row)), 2)}


def test_every_two_choices_meet_in_few_combinations(monkeypatch):
    monkeypatch.setattr(thorough, "THOROUGH", False)
    few = thorough.combined(*CHOICES)
    assert met(few) == met(product(*CHOICES))
    assert len(few) == len(set(few)) < 48 / 2
    assert met(few[1:]) != met(few)


def test_every_choice_is_in_one_of_fewer_combinations(monkeypatch):
    monkeypatch.setattr(thorough, "THOROUGH", False)
    few = thorough.each(*CHOICES)
    assert [set(column) for column in zip(*few, strict=True)] == [set(choice) for choice in CHOICES]
    assert len(few) == 4


def test_all_combinations_if_thorough(monkeypatch):
    monkeypatch.setattr(thorough, "THOROUGH", True)
    assert thorough.combined(*CHOICES) == thorough.each(*CHOICES) == list(product(*CHOICES))
    assert thorough.examples(7).max_examples == 70
    assert thorough.examples(7, 9).max_examples == 9


@pytest.mark.parametrize(
    ("nodeid", "expected"),
    [
        ("tests/tables/test_rows.py::test_a[spark-1]", "spark"),
        ("tests/tables/test_rows.py::test_spark[0]", "spark"),
        ("tests/tables/test_rows.py::test_a[postgres]", "postgres"),
        ("tests/test_site.py::test_a", "tests/test_site.py"),
        ("tests/tables/test_rows.py::test_a[duckdb]", "tests/tables/test_rows.py::test_a"),
    ],
)
def test_what_one_worker_runs(nodeid, expected):
    assert group(nodeid) == expected
