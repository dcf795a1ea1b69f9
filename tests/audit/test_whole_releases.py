"""Whole releases under attack: found items, groups, counted rows and several columns stand; broken ones are caught.

Bounds have a doubt of 1e-6 where a claim must stand. Where one must fall, 1e-2 is enough.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from crowdgram import audit
from crowdgram.audit import WHOLE_RELEASES, attack, release_cases
from crowdgram.audit.release_mutants import RELEASE_MUTANTS
from crowdgram.errors import InvalidArgument
from crowdgram.privacy import Adjacency, Guarantee

from ..thorough import THOROUGH

SURE = 1 - 1e-6
RUNS = {
    "low-threshold": 4,
    "whole-weights": 10,
    "each-group": 8,
    "uncapped-counts": 3,
    "each-column": 14,
    "every-period": 16,
    "unbounded-reach": 10,
    "uncounted-groups": 16,
    "low-pair-threshold": 4,
    "own-prior": 1,
}
"""For each mutant, on each side: so many that it is missed with a chance below 1e-6. One run shows "each-column" with
chance 0.46, "each-group" with 0.63 and "every-period" with 0.78 (31 of 40). Three of four show "low-threshold", and one
fails to with chance 1e-5; "low-pair-threshold" is the same with pairs for items. 10 of "whole-weights" missed it on one
side in none of 3,000 subsets of 80 runs, 8 in 0.3%. One run of "unbounded-reach" fails to show it with a chance of 0.1,
and of "uncounted-groups" with 0.35 (14 of 40).
"""


def named(case):
    return f"{case.name}-{case.claim.adjacency.value}".replace(": ", "-")


STANDING = [
    *release_cases(1.0, 1e-6, mechanisms=["laplace"], weights=["users"]),
    *release_cases(1.0, 1e-6, names=["prior"], mechanisms=["adaptive"], weights=["users"]),
]


def tried(case):
    """The pairs that a case is attacked on. Where items are found, one with groups, and every other one if a user is
    replaced; one with a wrong prior; where dates are computed and a user is replaced, the last. All if thorough.
    """
    replaced = case.claim.adjacency is Adjacency.REPLACE
    some = {
        "found-groups": slice(1, 2),
        "listed-items": slice(2, 3),
        "found-reach": slice(2, 3),
        "found-reach-groups": slice(2, 3),
        "found-items": slice(None, None, 2 if replaced else 1),
        "prior": slice(1),
        **dict.fromkeys(("computed", "periods", "reach-periods"), slice(-1 if replaced else 0, None)),
    }
    return case.pairs[slice(None) if THOROUGH else some.get(case.name.split(":")[0], slice(None))]


@pytest.mark.slow
@pytest.mark.parametrize("case", STANDING, ids=named)
def test_whole_releases_stand(case):
    """Few runs: what differs for the same outcomes is seen in the first one."""
    found = attack(case, runs=1, confidence=SURE, pairs=tried(case))
    assert not found.refuted
    assert found.how in ("exact losses", "nothing found")


@pytest.mark.slow
@pytest.mark.parametrize("release", ["counts", "columns"])
def test_the_attack_comes_close(release):
    """A pure loss is at its bound whenever the outcome is on one side: 2 x 12 misses have a chance below 1e-7. One run
    at a time, until one is there; none may be above.
    """
    case = next(release_cases(1.0, 1e-6, names=[release], mechanisms=["laplace"], weights=["users"]))
    assert case.claim == Guarantee(1.0)
    largest = 0.0
    for _ in range(12):
        largest = max(largest, attack(case, runs=1, pairs=case.pairs[:1]).epsilon)
        if largest > 1.0 - 1e-6:
            break
    assert largest == pytest.approx(1.0, abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("mutant", RELEASE_MUTANTS, ids=lambda mutant: mutant.broken.name)
def test_broken_releases_are_caught_and_their_siblings_stand(mutant):
    runs, pure = RUNS[mutant.broken.name], not mutant.broken.claim.delta
    # A pure loss above epsilon is a proof by itself: one at a time, until one is seen. Else half of many runs often do.
    sizes = [1] * runs if pure else [runs // 2, runs] if runs > 8 else [runs]
    attacks = (attack(mutant.broken, runs=size, pairs=mutant.pairs) for size in sizes)
    assert any(caught.refuted and caught.epsilon > 1.05 * mutant.broken.claim.epsilon for caught in attacks)
    attacked = [
        tried(case) for case in STANDING if (case.name, case.claim) == (mutant.healthy.name, mutant.healthy.claim)
    ]
    if not any({pair.name for pair in mutant.pairs} <= {pair.name for pair in pairs} for pairs in attacked):
        assert not attack(mutant.healthy, runs=1, confidence=SURE, pairs=mutant.pairs).refuted


@pytest.mark.slow
def test_what_tells_how_many_items_a_table_has_is_seen():
    """An item that nobody else has moves nothing that leaves; the number of items, if it left, would."""
    case = next(release_cases(1.0, 1e-6, names=["found-items"], mechanisms=["laplace"], weights=["users"]))
    lone = case.pairs[2:3]
    assert attack(case, runs=1, confidence=SURE, pairs=lone).how in ("exact losses", "nothing found")

    def with_the_number(table, spending, request):
        items = table.engine.fetch(table.table.select("item").distinct(), "reading items")
        return case.mechanism(table, spending, request), items.num_rows

    found = attack(replace(case, mechanism=with_the_number), runs=1, pairs=lone)
    assert found.refuted
    assert found.runs == 1  # of two sides: nothing can hold any more
    assert found.how == "for the same outcomes the estimates differ"


def test_an_attack_leaves_production_code_alone():
    """No module of the package is patched: an audit hands its sampler in, and its broken releases are its own code."""
    sources = {path: path.read_text() for path in Path(audit.__file__).parent.glob("*.py")}
    assert len(sources) > 10
    assert not [path for path, text in sources.items() if re.search(r"\bsetattr\(|\bmock\b|__dict__\[", text)]


def test_whole_releases_by_name():
    names = {(case.name, case.weight, case.claim.adjacency) for case in release_cases(1.0, 1e-6)}
    assert len(names) == sum(4 if release.own is None else 2 for release in WHOLE_RELEASES.values())
    assert {name for name, weight, _ in names if weight == "users"} >= {
        "reach",
        "found-reach",
        "reach-groups",
        "found-reach-groups",
    }
    twice = list(release_cases(1.0, 1e-6, names=["reach"], mechanisms=["laplace", "auto"]))
    assert {case.name for case in twice} == {"reach"}
    assert len(twice) == 2
    with pytest.raises(InvalidArgument, match="weight='rows': cannot be served by mechanism='reach'"):
        list(release_cases(1.0, 1e-6, names=["reach"], weights=["rows"]))
    assert {case.claim.delta for case in release_cases(1.0, 1e-6, mechanisms=["laplace"])} == {0.0, 1e-6}
    with pytest.raises(InvalidArgument, match="'nothing'"):
        list(release_cases(1.0, 1e-6, names=["nothing"]))
    with pytest.raises(InvalidArgument, match="'nothing'"):
        list(release_cases(1.0, 1e-6, mechanisms=["nothing"]))
    assert {case.name for case in release_cases(1.0, 0.0)} == {
        "groups: auto",
        "counts: auto",
        "columns: auto",
        "computed: auto",
        "periods: auto",
        "reach",
        "reach-periods",
        "reach-groups",
        "prior: auto",
    }
    assert "prior: laplace" not in {case.name for case in release_cases(1.0, 1e-6, mechanisms=["laplace"])}
    with pytest.raises(InvalidArgument, match="prior=<dict>: has no meaning for mechanism='laplace'"):
        list(release_cases(1.0, 1e-6, names=["prior"], mechanisms=["laplace"]))
    with pytest.raises(InvalidArgument, match="needs a delta"):
        list(release_cases(1.0, 0.0, names=["found-items"]))
    with pytest.raises(InvalidArgument, match="that can follow a search, such as 'auto'"):
        list(release_cases(1.0, 1e-6, mechanisms=["paper"]))


@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_pairs_are_neighbours(adjacency):
    for release in WHOLE_RELEASES.values():
        for pair in release.pairs(adjacency):
            assert pair.first
            assert bool(pair.second) == (adjacency is Adjacency.REPLACE)
            assert pair.first != pair.second
