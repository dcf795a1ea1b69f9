"""`crowdgram audit`: what it shows and how it ends."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from crowdgram.audit import TWINS, attack
from crowdgram.cli.app import app
from crowdgram.releases.pipeline import ALL_MECHANISMS

ARGUMENTS = ["audit", "--weight", "users", "--adjacency", "add-remove", "--runs", "6"]


def run(*arguments):
    return CliRunner().invoke(app, [*ARGUMENTS, *arguments])


def test_a_claim_that_stands():
    result = run("--mechanism", "laplace", "--json")
    assert result.exit_code == 0
    [line] = json.loads(result.stdout)
    assert line["verdict"] == "stands"
    assert line["epsilon_at_least"] <= 1.0
    assert line["claim"]["delta"] == 0.0
    assert line["confidence"] == 0.99


def test_a_form_of_whole_release():
    result = run("--form", "counts", "--mechanism", "laplace", "--json")
    assert result.exit_code == 0
    [line] = json.loads(result.stdout)
    assert line["mechanism"] == "counts: laplace"
    assert line["verdict"] == "stands"
    assert line["epsilon_at_least"] <= 1.0


def test_a_claim_that_is_refuted_ends_with_1(monkeypatch):
    half = TWINS[0].broken
    monkeypatch.setitem(ALL_MECHANISMS, "gaussian", half.mechanism)
    assert attack(half, runs=6, pairs=TWINS[0].pairs).refuted is True
    result = run("--mechanism", "gaussian")
    assert result.exit_code == 1
    assert "REFUTED" in result.stdout
    assert "exact losses" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--all", "--mechanism", "laplace"], "--all and --mechanism"),
        (["--mechanism", "nothing"], "'nothing'"),
        (["--form", "nothing"], "'nothing'"),
        (["--all", "--form", "counts"], "--form"),
        (["--form", "found-items", "--delta", "0"], "delta=0"),
        (["--form", "found-items", "--mechanism", "paper"], "paper"),
        (["--mechanism", "laplace", "--confidence", "2"], "confidence=2"),
        (["--mechanism", "laplace", "--epsilon", "-1"], "epsilon"),
    ],
)
def test_bad_input_ends_with_2(arguments, words):
    result = run(*arguments)
    assert result.exit_code == 2
    assert words in result.stderr
