"""The mechanism "paper" from the front door: releases and the command."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from typer.testing import CliRunner

import crowdgram
from crowdgram.cli.app import app
from crowdgram.errors import AccuracyWarning, InvalidArgument
from crowdgram.privacy import SelectionEvent, check
from crowdgram.synth import Crowd

CROWD = Crowd(users=3000, rows=60, items=6, tail=0.3, seed=2, strings=True)
SMALL = Crowd(users=30, rows=4, items=5, seed=3)


def release(crowd, *, constants="paper", alpha=None, **more):
    options = {"user": "user", "item": "item", "epsilon": 1.0, "delta": 1e-6, "domain": crowd.item_names()}
    mechanism = crowdgram.Paper(constants=constants, alpha=alpha)
    return crowdgram.release(crowd.table(), **{**options, "mechanism": mechanism, **more})


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::crowdgram.errors.AccuracyWarning")
@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
@pytest.mark.parametrize(("crowd", "constants"), [(CROWD, "tight"), (SMALL, "tight"), (SMALL, "paper")])
def test_a_release(crowd, constants, adjacency):
    made = release(crowd, adjacency=adjacency, constants=constants)
    p = made.probabilities
    assert p.sum() == pytest.approx(1, abs=1e-9)
    assert np.all((made.lower >= 0) & (made.lower <= p) & (p <= made.upper) & (made.upper <= 1))
    assert np.all(made.standard_errors > 0)
    assert 0 < made.predicted_l1_error <= 2
    assert any(isinstance(event, SelectionEvent) for event in made.events)
    check(made.events, made.guarantee)
    assert made.mechanism == "paper"
    assert made.parameters["constants"] == constants
    assert {"regime", "rows_per_user", "users", "alpha", "hypotheses"} <= set(made.parameters)


@pytest.mark.slow
def test_tight_constants_are_close_and_say_how_close(tmp_path):
    truth = CROWD.distribution()
    made = [release(CROWD, constants="tight") for _ in range(2)]
    errors = [np.abs(one.probabilities - truth).sum() for one in made]
    assert min(errors) < 0.05
    assert min(errors) < 2 * made[0].predicted_l1_error
    inside = np.mean([(one.lower <= truth) & (truth <= one.upper) for one in made])
    assert inside > 0.6
    made[0].save(tmp_path / "release.json")
    assert crowdgram.load(tmp_path / "release.json") == made[0]
    made[0].to_dp_event()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::crowdgram.errors.AccuracyWarning")
@pytest.mark.parametrize("rows", [[], [(1, 2)], [(1, 9), (2, 9)]], ids=["empty", "one row", "all outside"])
@pytest.mark.parametrize("constants", ["paper", "tight"])
def test_tables_with_next_to_nothing(rows, constants):
    import pyarrow as pa

    table = pa.table(
        {"user": pa.array([r[0] for r in rows], pa.int64()), "item": pa.array([r[1] for r in rows], pa.int64())}
    )
    made = crowdgram.release(
        table,
        user="user",
        item="item",
        epsilon=1.0,
        delta=1e-6,
        domain=[1, 2, 3],
        mechanism=crowdgram.Paper(constants),
    )
    assert made.probabilities.sum() == pytest.approx(1)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::crowdgram.errors.AccuracyWarning")
@pytest.mark.parametrize("constants", ["paper", "tight"])
@pytest.mark.parametrize(
    "more", [{"epsilon": 1e-3}, {"epsilon": 100.0}, {"delta": 0.09}, {"delta": 1e-12}, {"items": 2}]
)
def test_the_ends_of_what_is_allowed(constants, more):
    crowd = Crowd(users=30, rows=4, items=more.get("items", 5), seed=3)
    made = release(crowd, constants=constants, **{name: value for name, value in more.items() if name != "items"})
    check(made.events, made.guarantee)


@pytest.mark.slow
def test_a_warning_where_the_bound_does_not_apply():
    with pytest.warns(AccuracyWarning, match=r"does not apply: .*Theorem 6 needs about .* users.*Privacy holds"):
        release(SMALL, max_rows_per_user=4, alpha=0.2)
    with warnings.catch_warnings():
        warnings.simplefilter("error", AccuracyWarning)
        release(CROWD, constants="tight")


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"alpha": 0.0}, "alpha=0.0"),
        ({"alpha": 2}, "alpha=2"),
        ({"alpha": "0.1"}, "alpha='0.1'"),
        ({"alpha": True}, "alpha=True"),
        ({"alpha": float("nan")}, "alpha=nan"),
        ({"constants": "loose"}, "constants='loose'"),
        ({"delta": 0.0}, "mechanism='paper': cannot serve delta=0"),
        ({"mechanism": "paper", "delta": 0.0}, "mechanism='paper': cannot serve delta=0"),
        ({"mechanism": "papers"}, "needs to be one of .*'paper'"),
        ({"domain": None}, "mechanism='paper': needs domain,"),
    ],
)
def test_bad_input_is_refused_before_a_row_is_read(options, named, no_rows_read):
    with pytest.raises(InvalidArgument, match=named):
        release(SMALL, **options)


def test_the_command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    SMALL.write("visits.csv", domain="items.txt")
    more = ["--user", "user", "--item", "item", "--domain", "items.txt", "--epsilon", "1"]
    ask = ["release", "visits.csv", *more, "--mechanism", "paper"]
    result = CliRunner().invoke(
        app, [*ask, "--delta", "1e-6", "-o", "release.json", "--constants", "tight", "--alpha", "0.5"]
    )
    assert result.exit_code == 0, result.output
    assert "by mechanism paper (items=5, constants=tight" in result.stdout
    warned = [line for line in result.stderr.splitlines() if line.startswith("warning: ")]
    assert sum("Privacy holds all the same." in line for line in warned) == 1
    assert "Traceback" not in result.output
    assert crowdgram.load("release.json").parameters["alpha"] == 0.5
    for bad, named in (
        (["--delta", "1e-6", "--alpha", "7"], "alpha=7"),
        (["--delta", "1e-6", "--constants", "loose"], "loose"),
        (
            ["--delta", "1e-6", "--rounds", "3"],
            "rounds=3: has no meaning for mechanism='paper'. Leave it out, or use 'auto'",
        ),
        (["--delta", "0"], "delta=0"),
    ):
        result = CliRunner().invoke(app, [*ask, *bad, "-o", "other.json"])
        assert result.exit_code == 2
        assert named in result.output
