"""Attacks from outside: what is seen, what is learned of it, and that every form has a twin that is caught."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import crowdgram
from crowdgram.audit import FORMS, attack_releases, chosen_forms
from crowdgram.audit.blackbox import _bound
from crowdgram.audit.pairs import open_tables
from crowdgram.audit.views import as_table, view_of
from crowdgram.errors import InvalidArgument
from crowdgram.export.documents import to_text
from crowdgram.privacy import Guarantee, Spending

SURE = 1 - 1e-6


def leaves(value):
    if isinstance(value, dict):
        return sum(map(leaves, value.values()))
    return sum(map(leaves, value)) if isinstance(value, list) else 1


@pytest.mark.parametrize("grouped", [False, True])
def test_an_outsider_sees_every_value_of_the_saved_file(grouped):
    table = {"user": [1, 1, 2, 3], "item": ["a", "b", "a", "b"], "group": [1, 2, 1, 2]}
    by = {"by": "group", "groups": [1, 2]} if grouped else {}
    made = crowdgram.release(pa.table(table), user="user", item="item", domain=["a", "b"], epsilon=1.0, **by)
    document = json.loads(to_text(made))
    view = view_of(made)
    counted = [place for place in view if place.startswith("count[")]
    assert len(view) - len(counted) == leaves(document) - (len(document["items"]) if grouped else 0)
    assert view["predicted_l1_error"] == document["predicted_l1_error"]
    assert "mechanism=auto" in view
    assert sum(view[place] for place in counted) == pytest.approx(
        sum(document["measured"]) * document["total"]["value"]
    )


def test_what_is_missing_is_seen_as_missing():
    table = as_table([{"a": 0.0, "b": 5.0}, {"b": 6.0}], ["a", "b"])
    assert table.tolist() == [[0.0, 5.0, 1.0, 1.0], [0.0, 6.0, 0.0, 1.0]]


@pytest.mark.parametrize("side", [1.0, -1.0])
def test_the_learned_statistic_comes_close_to_pure_noise_and_not_above(side):
    random = np.random.default_rng(7)
    noise = random.laplace(0.0, 0.5, (2, 4000, 6))
    noise[0, :, 3] += side
    found = _bound(noise[0], noise[1], Guarantee(2.0, 0.0), 0.01)
    assert 1.5 < found <= 2.0
    noise[0, :, 3] += side
    assert _bound(noise[0], noise[1], Guarantee(2.0, 0.0), 0.01) > 2.0


def test_the_learned_statistic_puts_figures_together():
    """Six figures, each moved by a sixth of the distance: none of them alone shows half of it."""
    random = np.random.default_rng(8)
    mu = 1.17  # of (2, 0.05)
    noise = random.normal(0.0, 1.0, (2, 4000, 6))
    noise[0] += mu / 6**0.5
    assert 1.2 < _bound(noise[0], noise[1], Guarantee(2.0, 0.05), 0.01) <= 2.0
    assert _bound(noise[0][:, :1], noise[1][:, :1], Guarantee(2.0, 0.05), 0.01) < 0.8


def test_a_figure_that_is_there_in_one_table_only_tells_it():
    random = np.random.default_rng(9)
    views = [[{"x": random.normal(), **extra} for _ in range(400)] for extra in ({"trace": 0.0}, {})]
    tables = [as_table(one, ["trace", "x"]) for one in views]
    assert _bound(*tables, Guarantee(1.0, 0.0), 1e-6) > 1.0


def test_the_date_of_a_release_does_not_tell_the_tables_apart():
    """An attack that went on past midnight once took the date that a release holds for a difference of the tables."""
    clock = itertools.count()
    case = replace(FORMS["groups"].honest, mechanism=lambda *_: {"released_on": f"day {next(clock) // 60}"})
    assert attack_releases(case, runs=100, confidence=SURE).epsilon == 0.0


def test_every_form_claims_what_its_twin_claims_and_is_found_by_name():
    assert set(FORMS) == {
        "sample-one",
        "paper",
        "adaptive",
        "levels",
        "groups",
        "found-items",
        "found-by-histogram",
    }
    for form in FORMS.values():
        assert form.honest.claim == form.broken.claim
        assert form.honest.pairs
        assert form.broken.pairs
    assert list(chosen_forms(["all"])) == list(FORMS.values())
    with pytest.raises(InvalidArgument, match="'rounds'"):
        list(chosen_forms(["rounds"]))


@pytest.mark.slow
@pytest.mark.parametrize("broken", [False, True])
def test_the_form_that_is_found_by_a_histogram_is(broken):
    """It once took rounds, as its crowd was small and its delta large, and attacked what another form does."""
    form = FORMS["found-by-histogram"]
    case = form.broken if broken else form.honest
    with open_tables(case.pairs[0]) as tables:
        for table in tables:
            made = case.mechanism(table, Spending(case.claim), case.request)
            assert made.parameters["branch"] == "histogram"


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMS)
def test_every_form_and_its_twin_can_be_run(name):
    """Too few runs to see anything; `crowdgram audit --form all` makes a thousand."""
    for case in (FORMS[name].honest, FORMS[name].broken):
        assert attack_releases(case, runs=2, confidence=SURE).epsilon == 0.0
