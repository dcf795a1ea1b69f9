"""`crowdgram audit`: what it shows and how it ends."""

from __future__ import annotations

import json
from functools import cache

import numpy as np
import pytest
from typer.testing import CliRunner

from crowdgram.audit import ATTACKED, MUTANTS, attack, selftest
from crowdgram.cli.app import app
from crowdgram.mechanisms import Gaussian
from crowdgram.privacy import Spending, noise

DRAWN = cache(noise.bare_draws)
ARGUMENTS = ["audit", "--weight", "users", "--adjacency", "add-remove", "--runs", "6"]


@pytest.fixture(autouse=True)
def drawn(monkeypatch):
    """The draws of the self-test are made once for all tests here, and not for every call of the command."""
    monkeypatch.setattr(selftest.check_draws, "__defaults__", (DRAWN, selftest.DRAWS))


def run(*arguments):
    return CliRunner().invoke(app, [*ARGUMENTS, *arguments])


@pytest.mark.slow
def test_a_claim_that_stands():
    result = run("--mechanism", "laplace", "--json")
    assert result.exit_code == 0
    *tests, line = json.loads(result.stdout)
    assert [(test["self_test"], test["verdict"]) for test in tests] == [("laplace", "stands"), ("gaussian", "stands")]
    assert line["verdict"] == "stands"
    assert line["epsilon_at_least"] <= 1.0
    assert line["claim"]["delta"] == 0.0
    assert line["confidence"] == 0.99


@pytest.mark.slow
def test_a_form_of_whole_release():
    result = run("--release", "counts", "--mechanism", "laplace", "--json")
    assert result.exit_code == 0
    *_, line = json.loads(result.stdout)
    assert line["mechanism"] == "counts: laplace"
    assert line["verdict"] == "stands"
    assert line["epsilon_at_least"] <= 1.0


@pytest.mark.slow
def test_a_form_from_outside_and_its_twin():
    """Four releases cannot show that the twin is broken, and the command says that it was missed."""
    result = run("--form", "groups", "--black-box", "4", "--json")
    assert result.exit_code == 1
    *_, honest, broken = json.loads(result.stdout)
    assert (honest["mechanism"], honest["verdict"], honest["runs"]) == ("groups", "stands", 8)
    assert (broken["mechanism"], broken["verdict"]) == ("each-group", "MISSED")
    assert (honest["claim"]["epsilon"], honest["how"]) == (2.0, "black box")


def test_a_form_that_is_none():
    result = run("--form", "nothing")
    assert result.exit_code == 2
    assert "needs to be 'all' or one of 'sample-one'" in result.output


@pytest.mark.slow
def test_a_claim_that_is_refuted_ends_with_1(monkeypatch):
    half = MUTANTS[0].broken

    class Half(Gaussian):
        def run(self, counts, budget, request):
            return half.mechanism(counts, Spending(budget.guarantee, sampler=budget._spending.sampler), request)

    monkeypatch.setitem(ATTACKED, "gaussian", Half())  # what the command looks names up in
    assert attack(half, runs=6, pairs=MUTANTS[0].pairs).refuted is True
    result = run("--mechanism", "gaussian")
    assert result.exit_code == 1
    assert "REFUTED" in result.stdout
    assert "exact losses" in result.stdout


@pytest.mark.slow
def test_a_biased_sampler_ends_the_audit_before_any_attack(monkeypatch):
    def biased(kind, scale, draws):
        found = DRAWN(kind, scale, draws)
        return np.where(found == 0, 1, found) if kind == "laplace" else found

    # The command tests what is installed and takes no other sampler.
    monkeypatch.setattr(selftest.check_draws, "__defaults__", (biased, selftest.DRAWS))
    result = run("--mechanism", "laplace")
    assert result.exit_code == 1
    assert "Sampler of laplace noise: REFUTED" in result.stdout
    assert "stands" not in result.stdout
    shown = json.loads(run("--mechanism", "laplace", "--json").stdout)
    assert [test["verdict"] for test in shown] == ["REFUTED", "stands"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--all", "--mechanism", "laplace"], "--all and --mechanism"),
        (["--mechanism", "nothing"], "'nothing'"),
        (["--release", "nothing"], "'nothing'"),
        (["--all", "--release", "counts"], "--release"),
        (["--release", "found-items", "--delta", "0"], "delta=0"),
        (["--release", "found-items", "--mechanism", "paper"], "paper"),
        (["--mechanism", "laplace", "--confidence", "2"], "confidence=2"),
        (["--mechanism", "laplace", "--epsilon", "-1"], "epsilon"),
    ],
)
def test_bad_input_ends_with_2(arguments, words):
    result = run(*arguments)
    assert result.exit_code == 2
    assert words in result.stderr
