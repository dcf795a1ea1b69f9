"""A thousand odd inputs: a valid release or a clear error. `python bench/fuzz.py` makes more of them."""

from __future__ import annotations

import importlib
import json
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import crowdgram
from crowdgram.errors import CrowdgramError, EngineFailure, InvalidTable, UnreadableSource

from .thorough import THOROUGH

BENCH = Path(__file__).parents[1] / "bench"
CASES = {
    "arguments": 500,
    "domains": 200,
    "saved": 300,
    "csv": 14,
    "json": 10,
    "parquet": 40,
    "schemas": 20,
    "databases": 10,
    "expressions": 8,
    "shapes": 7,
    "reach": 12,
    "outcomes": 3,
}
if THOROUGH:
    CASES = {kind: 20 * number for kind, number in CASES.items()}


@pytest.fixture(scope="module")
def fuzz():
    sys.path.insert(0, str(BENCH))
    try:
        yield importlib.import_module("fuzz")
    finally:
        sys.path.remove(str(BENCH))
        for name in ("fuzz", "hostile", "odd_expressions", "odd_files", "odd_values"):
            sys.modules.pop(name, None)


@pytest.mark.slow
@pytest.mark.parametrize("kind", CASES)
def test_odd_input_ends_in_a_release_or_a_clear_error(fuzz, kind, tmp_path):
    ended = Counter(fuzz.run(kind, 7, number, tmp_path) or "release" for number in range(CASES[kind]))
    assert ended["release"] > 0  # some get through, or nothing behind the first check was tried
    assert ended["release"] < CASES[kind] or kind == "outcomes"


TINY = pa.table({"user": ["a"], "item": ["x"]})


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"mechanism": ["auto"]}, "mechanism"),
        ({"mechanism": {}}, "mechanism"),
        ({"weight": np.array(["rows", "users"])}, "weight"),
        ({"domain": [np.array([1, 2])]}, "domain"),
        ({"table": pa.table({"user": ["a"], "\0nul": ["x"]}), "item": "\0nul"}, "null character"),
        ({"table": "x" * 5000 + ".csv"}, "is no file"),
        ({"table": "x" * 5000}, "unknown kind"),
        ({"table": "nul\0.csv"}, "is no file"),
        ({"table": pa.table({"user": ["a"], "item": pa.nulls(1, pa.float16())})}, "halffloat"),
        ({"table": pa.table({"user": ["a"], "item": pa.nulls(1, pa.decimal256(50, 3))})}, "decimal256"),
    ],
)
def test_what_it_found_stays_found(changes, words):
    usual = {"table": TINY, "user": "user", "item": "item", "epsilon": 1.0, "domain": ["x"], "mechanism": "laplace"}
    arguments = usual | changes
    with pytest.raises(CrowdgramError, match=words) as caught:
        crowdgram.release(arguments.pop("table"), **arguments)
    assert not isinstance(caught.value, EngineFailure)


def test_a_saved_release_whose_intervals_miss_is_damaged(tmp_path):
    made = crowdgram.release(TINY, user="user", item="item", epsilon=1.0, domain=["x", "y"], mechanism="laplace")
    made.save(tmp_path / "r.json")
    document = json.loads((tmp_path / "r.json").read_text())
    document["upper"] = [0.0, 0.0]
    (tmp_path / "r.json").write_text(json.dumps(document))
    with pytest.raises(UnreadableSource, match="intervals"):
        crowdgram.load(tmp_path / "r.json")


def test_every_kind_is_run(fuzz):
    assert set(CASES) == set(fuzz.KINDS)


def test_what_is_neither_is_seen(fuzz, tmp_path, monkeypatch):
    def crash(rng, folder):
        raise KeyError("oops")

    def hang(rng, folder):
        while True:
            pass

    def refuse(rng, folder):
        raise InvalidTable("a message")

    def quote(rng, folder):
        raise InvalidTable(f"a row with {fuzz.SECRETS[1]}")

    # kinds that end as no real one should, after a wait that a test can bear
    monkeypatch.setattr(fuzz, "TIMEOUT", 1)
    monkeypatch.setattr(fuzz, "KINDS", {"crash": crash, "hang": hang, "refuse": refuse, "quote": quote})
    with pytest.raises(AssertionError, match="oops"):
        fuzz.run("crash", 0, 0, tmp_path)
    with pytest.raises(AssertionError, match="still running"):
        fuzz.run("hang", 0, 0, tmp_path)
    with pytest.raises(AssertionError, match="a value of the table"):
        fuzz.run("quote", 0, 0, tmp_path)
    assert fuzz.run("refuse", 0, 0, tmp_path) == "InvalidTable"
