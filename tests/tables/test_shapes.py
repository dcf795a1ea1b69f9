"""SQL from memory is what Ibis would write, to the last letter."""

from __future__ import annotations

import ibis
import pyarrow as pa
import pytest

import crowdgram
from crowdgram.tables.engines import DuckEngine, base, shapes
from crowdgram.tables.engines.base import function
from crowdgram.tables.engines.shapes import compile_by_shape, fresh_name

ROWS = pa.table({"user": [1, 2], "item": ["a", "b"], "x": [0.5, 1.5]})


@pytest.fixture
def memory(monkeypatch):
    found = {}
    monkeypatch.setattr(shapes, "_WRITTEN", found)  # what other tests asked for is no part of these
    return found


@pytest.fixture
def engine():
    with DuckEngine.embedded() as opened:
        yield opened


def written(engine, table):
    """The SQL, which is checked against that of Ibis."""
    text = compile_by_shape(engine.backend, table)
    assert text == engine.backend.compile(table)
    return text


def asked(t, u, number=3):
    """A join and a sum, of the kind that releases ask for."""
    joined = t.join(u, t.user == u.user).select(t.user, t.item, n=u.x.cast("int64") * number)
    return joined.group_by("user").agg(total=joined.n.sum()).filter(ibis._.total > 1)


def test_one_text_for_all_names(engine, memory):
    texts = set()
    for _ in range(3):
        t, u = engine.upload(ROWS, "testing"), engine.upload(ROWS, "testing")
        texts.add(written(engine, asked(t, u)))
        assert list(engine.fetch(asked(t, u), "testing")["total"].to_pylist()) == [6]
    assert len(texts) == 3
    assert len(memory) == 1


def test_from_one_engine_to_the_next(memory):
    for _ in range(2):
        with DuckEngine.embedded() as engine:
            t = engine.upload(ROWS, "testing")
            written(engine, t.mutate(item=engine.exact(t.item)))
    assert len(memory) == 1


def test_whatever_differs_is_told_apart(engine, memory):
    t, u, v = (engine.upload(ROWS, "testing") for _ in range(3))
    other = engine.upload(ROWS.append_column("y", [[1, 2]]), "testing")
    alike = [
        *(t.filter(t.x > ibis.literal(x, "float64")) for x in (0.0, -0.0, 1.0, 1.0000000000000002)),
        *(t.mutate(y=ibis.literal(*one)) for one in ((1, "int8"), (1, "int64"), (True, "boolean"), ("1", "string"))),
        *(t.mutate(y=t.x.cast(kind)) for kind in ("int8", "int64", "float32", "string")),
        *(t.mutate(y=function(name)(t.item)) for name in ("lower", "upper")),
        t.select("user", "item"),
        t.select("item", "user"),
        t.select(a=t.user, b=t.item),
        t.select(a=t.item, b=t.user),
        t.filter(t.user.isin([1, 2])),
        t.filter(t.user.isin([1, 3])),
        t.mutate(y=ibis.greatest(t.user + 1, t.user + 2, t.user + 1)),
        t.mutate(y=ibis.greatest(t.user + 2, t.user + 2, t.user + 1)),
        t.union(u),
        t.union(t),
        t.union(t, distinct=True),
        t.union(u).union(v),
        t.union(u).union(t),
        t.union(u).union(u),
        asked(t, u),
        asked(t, u, 4),
        asked(t, u).limit(1),
        other,
        t,
    ]
    for table in alike:
        written(engine, table)
    assert len(memory) == len(alike)
    for table in reversed(alike):
        written(engine, table)
    assert len(memory) == len(alike)


@pytest.mark.slow
def test_what_has_no_form_in_words_is_written_anew(engine, memory):
    t = engine.upload(ROWS, "testing")
    for table in (
        t.filter(t.item == fresh_name() + " and more"),
        t.filter(t.user.isin(range(shapes._MOST_WORDS))),
        t.filter(t.x > ibis.literal("2024-02-29", "date").year()),
        t.join(ibis.memtable(ROWS), "user"),
    ):
        written(engine, table)
    assert memory == {}


def test_a_constant_that_looks_like_a_fresh_name(engine, memory):
    t, name = engine.upload(ROWS, "testing"), fresh_name()
    for constant in (name, fresh_name(), t.get_name(), name.upper()):
        written(engine, t.filter(t.item == constant))


def test_what_is_remembered_has_a_bound(engine, memory, monkeypatch):
    monkeypatch.setattr(shapes, "_MOST_SHAPES", 3)  # a limit that a few queries reach
    t = engine.upload(ROWS, "testing")
    for number in range(10):
        written(engine, t.filter(t.user > number))
        assert len(memory) <= 3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "known"),
    [
        ({"domain": ["a", "b", "c"], "mechanism": "gaussian", "max_rows_per_user": 3}, all),
        ({"domain": ["a", "b", "c"]}, any),
        ({}, any),
    ],
    ids=["the same queries", "rounds by chance", "found items"],
)
def test_whole_releases(arguments, known, memory, monkeypatch):
    """Every text of two releases; of the second, all or some are known."""
    found = []

    def checked(backend, table, **options):
        before = len(memory)
        text = compile_by_shape(backend, table, **options)
        assert text == backend.compile(table)
        found.append(len(memory) == before)
        return text

    monkeypatch.setattr(base, "compile_by_shape", checked)
    table = pa.table({"user": [k // 3 for k in range(900)], "item": ["abc"[k % 7 % 3] for k in range(900)]})
    for _ in range(2):
        first = len(found)
        crowdgram.release(table, user="user", item="item", epsilon=1.0, delta=1e-6, **arguments)
    assert len(found) - first > 5
    assert not all(found[:first])
    assert known(found[first:])
