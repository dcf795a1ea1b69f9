"""The registry of mechanisms: the only list, from which names, options and the command's choices come."""

from __future__ import annotations

import dataclasses
import inspect
from typing import get_args

import numpy as np
import pytest
from typer.testing import CliRunner

import crowdgram
from crowdgram.audit import ATTACKED
from crowdgram.cli.app import app
from crowdgram.errors import InvalidArgument
from crowdgram.mechanisms import Adaptive, Auto, Discovering, Estimate, Laplace, Mechanism, Request
from crowdgram.mechanisms.discovery import Finish
from crowdgram.paper import Paper
from crowdgram.privacy import Adjacency, Guarantee
from crowdgram.releases.pipeline import _Asked, run
from crowdgram.releases.query import Query
from crowdgram.releases.registry import MECHANISMS, as_mechanism, make_mechanism
from crowdgram.synth import Crowd

CROWD = Crowd(users=40, rows=6, items=5, seed=3)
PUBLIC = Request("rows", None, lambda _: None)


@dataclasses.dataclass(frozen=True)
class Even(Mechanism):
    """All items alike: a mechanism in ten lines, that no list knows."""

    name = "even"
    weights = ("users",)
    adjacencies = (Adjacency.REPLACE,)

    def run(self, counts, budget, request):
        p = np.full(counts.items, 1 / counts.items)
        return Estimate(p, p * 0, p * 0, p * 0 + 1, 1.0)


@pytest.mark.parametrize(("name", "kind"), MECHANISMS.items())
def test_a_mechanism_says_all_of_itself(name, kind):
    one = as_mechanism(name)
    assert type(one) is kind
    assert one == as_mechanism(one)
    assert one.name == name
    assert not inspect.isabstract(kind)
    assert name in ATTACKED
    guarantee = Guarantee(1.0, 1e-6)
    one.check(guarantee, "rows")
    assert one.promised(guarantee).delta == (0.0 if one.pure else 1e-6)
    if isinstance(one, Discovering):
        assert one.finish in get_args(Finish)
    plan = one.plan(one.promised(guarantee), PUBLIC, 10)
    assert plan.known is issubclass(kind, Discovering)
    for other in one.instead(guarantee):
        assert type(other) in MECHANISMS.values()
        assert type(other) is not kind


def test_the_rounds_that_stand_in_for_auto_keep_its_options():
    options = {"rounds": 3, "prior": {"a": 0.5}}
    assert set(options) == {field.name for field in dataclasses.fields(Adaptive)}
    assert Adaptive(**options) in Auto(**options).instead(Guarantee(1.0, 1e-6))


def test_options_belong_to_a_mechanism():
    assert make_mechanism("adaptive", rounds=3, alpha=None) == Adaptive(rounds=3)
    assert make_mechanism("paper", constants="tight", alpha=0.1) == Paper(constants="tight", alpha=0.1)
    assert as_mechanism("auto") == Auto()
    with pytest.raises(
        InvalidArgument, match=r"rounds=3: has no meaning for mechanism='laplace'.*'auto' or 'adaptive'"
    ):
        make_mechanism("laplace", rounds=3)
    with pytest.raises(InvalidArgument, match=r"alpha=0\.1: has no meaning for mechanism='auto'.*use 'paper'"):
        make_mechanism("auto", alpha=0.1)
    with pytest.raises(
        InvalidArgument, match=r"prior=<dict>: has no meaning for mechanism='laplace'.*'auto' or 'adaptive'"
    ):
        make_mechanism("laplace", prior={"a": 1.0})
    for rounds in (0, -1, 1.5, True, "3", 13):
        with pytest.raises(InvalidArgument, match="rounds="):
            crowdgram.Adaptive(rounds=rounds)


def test_the_signature_is_short():
    parameters = inspect.signature(crowdgram.release).parameters
    options = {field.name for kind in MECHANISMS.values() for field in dataclasses.fields(kind)}
    assert options == {"rounds", "prior", "constants", "alpha"}
    assert not options & set(parameters)
    assert len(parameters) <= 17
    # Type checkers see the arguments as `_Asked`, beside those that decide what comes back.
    assert {*_Asked.__annotations__, "table", "by", "groups"} == set(parameters)


@pytest.mark.parametrize("given", ["magic", None, 3, Laplace, Even(), type("Auto", (Auto,), {})()], ids=repr)
def test_what_is_not_in_the_list_is_refused(given):
    with pytest.raises(
        InvalidArgument, match=r"mechanism=.*needs to be one of 'auto', 'adaptive'.*Adaptive\(rounds=3\)"
    ):
        crowdgram.release(CROWD.table(), user="user", item="item", epsilon=1.0, domain=range(5), mechanism=given)


def test_what_a_mechanism_does_not_serve_is_refused():
    asked = {"user": "user", "item": "item", "mechanism": Even(), "domain": range(5)}
    served = Guarantee(1.0, 0.0, Adjacency.REPLACE)
    with pytest.raises(
        InvalidArgument, match=r"weight='rows': cannot be served by mechanism='even', which needs 'users'"
    ):
        Query(guarantee=served, **asked)
    with pytest.raises(InvalidArgument, match=r"adjacency='add-remove': cannot be served.*needs 'replace'"):
        Query(guarantee=Guarantee(1.0), weight="users", **asked)
    with pytest.raises(InvalidArgument, match="mechanism='even': needs domain,"):
        Query(guarantee=dataclasses.replace(served, delta=1e-6), weight="users", **(asked | {"domain": None}))
    made = run(CROWD.table(), Query(guarantee=served, weight="users", **asked))
    assert (made.mechanism, made.events) == ("even", ())
    assert not Even().plan(served, PUBLIC, 5).known  # charged as opaque


@pytest.mark.slow
def test_a_release_keeps_the_name_and_the_choice():
    for mechanism in ("adaptive", Adaptive(rounds=2)):
        made = crowdgram.release(
            CROWD.table(), user="user", item="item", epsilon=5.0, delta=1e-6, domain=range(5), mechanism=mechanism
        )
        assert made.mechanism == "adaptive"
    assert made.parameters["rounds"] == 2


def test_the_command_offers_the_list_and_the_docstring_explains_it():
    assert not [name for name in MECHANISMS if f'"{name}"' not in (crowdgram.release.__doc__ or "")]
    shown = CliRunner().invoke(app, ["release", "--help"], env={"COLUMNS": "200"}).stdout
    assert f"[{'|'.join(MECHANISMS)}]" in shown
