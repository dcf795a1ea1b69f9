"""The engine of the audit asks once, and answers as an engine that does not cache would."""

from __future__ import annotations

import ibis
import pyarrow as pa
import pytest

from crowdgram.audit import WHOLE_RELEASES
from crowdgram.audit.blackbox import SALTS, _FewSalts
from crowdgram.audit.caching_engine import CachingEngine
from crowdgram.audit.whole_releases import run_release
from crowdgram.mechanisms import Laplace, Request
from crowdgram.privacy import EXACT, Adjacency, Guarantee, Spending
from crowdgram.tables import Placed
from crowdgram.tables.engines import DuckEngine
from crowdgram.tables.engines.base import function


class _Zero:
    """A sampler that adds nothing."""

    def laplace(self, values, scale, labels):
        return values

    gaussian = laplace

    def choose(self, scores, scale):
        return scores.argmax(axis=1)

    def salt(self):
        return "salt"


def released(engine, rows, own, arguments):
    table = Placed(engine, engine.upload(rows._rows(own), "placing rows"))
    spending = Spending(Guarantee(1.0), sampler=_Zero())
    made = run_release(table, spending, Request("users", None, lambda _: None), mechanism=Laplace(), **arguments)
    return made.measured if hasattr(made, "measured") else made.joint.measured


@pytest.mark.parametrize("name", ["groups", "counts"])
def test_a_release_is_the_same_the_first_time_and_the_second_time_as_without_a_cache(name):
    release = WHOLE_RELEASES[name]
    [pair, *_] = release.pairs(Adjacency.ADD_REMOVE)
    with DuckEngine.embedded() as engine:
        plain = released(engine, pair, pair.first, release.arguments)
    with CachingEngine.open() as engine:
        for _ in range(2):
            for own, same in ((pair.first, True), (pair.second, False)):
                assert (released(engine, pair, own, release.arguments).tolist() == plain.tolist()) == same


def test_a_query_is_asked_once_though_its_functions_are_made_anew(monkeypatch):
    """Two expressions that call the same function of the engine are not equal; their texts are."""
    asked = []
    create = DuckEngine._create
    monkeypatch.setattr(DuckEngine, "_create", lambda *given: (asked.append(given[1]), create(*given))[1])  # a watch
    with CachingEngine.open() as engine:
        rows = engine.as_ibis(engine.upload(pa.table({"a": [1, 2]}), "placing rows"))
        kept = [engine.keep(rows.mutate(a=function("abs", rows.a.type())(rows.a)), "keeping") for _ in range(2)]
        assert len(asked) == 1
        assert kept[0] == kept[1]
        engine.keep(rows.mutate(a=rows.a + ibis.literal(1)), "keeping")
        assert len(asked) == 2
        engine.keep(rows.mutate(a=rows.a + ibis.literal(2)), "keeping")
        assert len(asked) == 3


def test_salts_come_from_a_list_and_noise_does_not():
    salts = tuple(EXACT.salt() for _ in range(SALTS))
    sampler = _FewSalts(EXACT, salts)
    drawn = {sampler.salt() for _ in range(2000)}  # one is missed with chance 64 (63/64)^2000 < 1e-11
    assert drawn == set(salts)
    assert len({tuple(sampler.gaussian([0, 0], 1e9, None)) for _ in range(20)}) == 20  # twice the same: below 1e-14
    assert len({tuple(sampler.laplace([0, 0], 1e9, None)) for _ in range(20)}) == 20
