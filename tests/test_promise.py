"""The privacy promise names where each claim is tested: the tests are there, and so is an answer to each topic."""

from __future__ import annotations

import ast
import math
import re
from functools import cache

import pytest

from . import test_bug_shapes
from .test_docs import ROOT

PROMISE, SECURITY = ROOT / "docs" / "privacy-promise.md", ROOT / "docs" / "security.md"
TESTED = re.compile(r"`(tests/[\w/]+(?:\.py)?)`|\b(same)\b")
UNANSWERED = {"human and systemic bias", "machine learning"}
"""Topics of NIST SP 800-226 for which there is no place to look: the answer is that it is not answered."""


def table_under(page, heading):
    """The cells of the table under a heading, row by row, without its head."""
    section = page.read_text(encoding="utf-8").split(f"\n## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


@cache
def count_tests(named):
    """How many test functions a file, or all files of a folder, have."""
    place = ROOT / named
    files = [place] if place.is_file() else sorted(place.rglob("test_*.py"))
    return sum(len(re.findall(r"^ *def test_", file.read_text(encoding="utf-8"), re.MULTILINE)) for file in files)


def lacking(rows):
    """The first cells of rows whose last names no test, or one that is not there. "same": as the row before."""
    found, before = [], ()
    for row in rows:
        named = [before if same else (path,) for path, same in TESTED.findall(row[-1])]
        named = [path for paths in named for path in paths]
        if not named or not all(count_tests(path) for path in named):
            found.append(row[0])
        before = tuple(named)
    return found


def test_every_claim_names_tests_that_are_there():
    claims = table_under(PROMISE, "How each claim is tested")
    assert len(claims) > 15
    assert not lacking(claims)
    assert all("](" in proof for _, proof, _ in claims if proof != "all of the above")


def test_every_risk_names_tests_that_are_there():
    risks = table_under(SECURITY, "What the code does about it")
    assert len(risks) > 15
    assert not lacking(risks)


@pytest.mark.parametrize("named", ["", "`tests/test_absent.py`", "`tests/absent`", "`tests/samplers.py`", "same"])
def test_a_claim_without_a_test_is_noticed(named):
    assert lacking([["a", named], ["b", "`tests/attacks`"], ["c", f"same, {named or '-'}"]])[0] == "a"


def test_every_topic_of_nist_says_where_it_is_answered():
    topics = table_under(PROMISE, "By NIST SP 800-226")
    assert len(topics) > 20
    assert {topic for topic, _, where in topics if not re.search(r"\]\(|`", where)} == UNANSWERED
    assert all(answer for _, answer, _ in topics)


def test_what_is_computed_from_a_release_opens_no_table():
    """Post-processing: what has a release has no rows. Layers alone would let these packages import `tables`."""
    packages = [ROOT / "src" / "crowdgram" / name for name in ("results", "inference", "export", "present")]
    files = [file for package in packages for file in package.rglob("*.py")]
    assert len(files) > 30
    for node in (node for file in files for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))):
        if isinstance(node, ast.Import | ast.ImportFrom):
            named = [*(alias.name for alias in node.names), getattr(node, "module", None) or ""]
            assert not {"tables", "releases", "duckdb", "ibis", "pyspark"} & {
                part for n in named for part in n.split(".")
            }


def test_how_sure_somebody_can_become():
    rows = table_under(PROMISE, "The promise in one paragraph")
    assert len(rows) == 4
    for epsilon, factor, sure in rows:
        assert factor == f"{math.exp(float(epsilon)):.3g}"
        assert sure == f"{1 / (1 + math.exp(-float(epsilon))):.1%}"


def test_the_shapes_of_bugs_name_tests_that_are_there():
    said = test_bug_shapes.__doc__
    for path in re.findall(r"\b\w+/test_\w+\.py", said):
        assert count_tests(f"tests/{path}")
    for name in re.findall(r"`(test_\w+)", said):
        assert any(each.startswith(name) for each in vars(test_bug_shapes))
    assert len(re.findall(r"^- ", said, re.MULTILINE)) == 6
