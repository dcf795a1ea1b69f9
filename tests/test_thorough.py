"""What is tried by default: every two choices together, and one worker for what is shared."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import combinations, product
from pathlib import Path

import pytest

from . import thorough
from .conftest import group

ROOT = Path(__file__).parent.parent
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
        ("tests/test_docs.py::test_a[README.md]", "tests/test_docs.py::test_a[README.md]"),
    ],
)
def test_what_one_worker_runs(nodeid, expected):
    assert group(nodeid) == expected


def test_what_draws_noise_is_run_once_more(tmp_path):
    """Passes at the second try, with what it shares made anew, or fails; the rest has one try."""
    (tmp_path / "test_chance.py").write_text(CHANCES)
    run = [sys.executable, "-m", "pytest", "-p", "tests.reruns", "-c", os.devnull, "--rootdir", tmp_path, tmp_path]
    ended = subprocess.run([*run, "-p", "no:cacheprovider"], cwd=ROOT, capture_output=True, text=True)
    lines = ended.stdout.splitlines()
    assert "2 failed, 1 passed, 2 rerun" in lines[-1]
    assert [line.rpartition("::")[2].split()[0] for line in lines if line.startswith(("FAILED", "RERUN"))] == [
        *("test_once_unlucky", "test_broken"),
        *("test_broken", "test_without_noise"),
    ]
    assert 'assert next(tries), "unlucky"' in ended.stdout  # why it failed, although it passed then


CHANCES = """
import itertools

import pytest

tries = itertools.count()


@pytest.fixture(scope="module")
def shared():
    assert next(tries), "unlucky"


@pytest.mark.drawing
def test_once_unlucky(shared): ...


@pytest.mark.drawing
def test_broken():
    assert False


def test_without_noise():
    assert False
"""
