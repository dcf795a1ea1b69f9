"""Which statements of a release a replay on neighbours with the same noise has run, module by module.

    python tools/replay_coverage.py [--missing] [--json FILE] [--only NAME]

Every mechanism is run on a pair of neighbouring tables, the default ones also on a crowd with robots, and every whole
release of the audit on all of its pairs (by mechanisms other than `auto` on one), by paired execution
(src/crowdgram/audit/paired_execution.py), under coverage.py. coverage.py maps what was run to statements, in all
threads, which paired execution has. Only statements inside functions count: what an import runs would flatter the
figure. Exits with 1 if two runs part for the same outcomes.
"""

from __future__ import annotations

import argparse
import ast
import json
import sys
import warnings
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import product
from pathlib import Path

import coverage
import numpy as np
from scipy.special import ndtri

from crowdgram.audit import WHOLE_RELEASES, Case, cases, pairs_for, release_cases
from crowdgram.audit.paired_execution import follow
from crowdgram.audit.pairs import Pair, open_tables
from crowdgram.errors import InvalidArgument
from crowdgram.privacy import Adjacency

SOURCE = Path(__file__).parent.parent / "src" / "crowdgram"
PACKAGES = ("privacy", "tables", "mechanisms", "paper", "releases")
"""What a release goes through between the rows and the result."""
ADDED = Adjacency.ADD_REMOVE
OTHERS = ("adaptive", "laplace", "gaussian", "sample-one", "paper")
TRIES = 3
"""Replays of a crowd with robots: noise decides whether rows are looked at again before rounds, in two of three."""


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--missing", action="store_true", help="also print the lines that were not run")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--only", help="replay only what has this in its name")
    given = parser.parse_args(arguments)
    watch = coverage.Coverage(data_file=None, config_file=False, include=[f"{SOURCE / one}/*" for one in PACKAGES])
    replays, parted = 0, []
    watch.start()
    try:
        for case in all_cases():
            if given.only is None or given.only in case.name:
                found = list(replay(case))
                replays += len(found)
                parted += [f"{case.name}: {why}" for why in found if why]
    finally:
        watch.stop()
    figures = {path: statements_of(watch, path) for path in paths()}
    for package in PACKAGES:
        show(package, {path: found for path, found in figures.items() if path.parts[0] == package}, given.missing)
    show("all", figures, False, only_sum=True)
    print(f"{replays} replays of neighbouring tables; {len(parted)} parted.")
    for why in parted:
        print(why)
    if given.json:
        plain = {str(path): {"statements": len(every), "run": len(run)} for path, (every, run) in figures.items()}
        given.json.write_text(json.dumps({"replays": replays, "modules": plain}, indent=1) + "\n")
    return 1 if parted else 0


def all_cases() -> Iterator[Case]:
    """Every mechanism with every weight and adjacency, with and without a delta; every whole release by `auto`, and by
    each other mechanism that serves it.
    """
    for delta in (1e-6, 0.0):
        yield from (replace(case, pairs=pairs_for(case.claim.adjacency)[1:2]) for case in cases(1.0, delta))
        yield from release_cases(1.0, delta)
    for case in cases(1.0, 1e-6, mechanisms=["auto", "adaptive"], weights=["rows"]):
        yield replace(case, name=f"{case.name}: robots", pairs=(robots(case.claim.adjacency),) * TRIES)
    for name, mechanism in product(WHOLE_RELEASES, OTHERS):
        with suppress(InvalidArgument):  # it does not serve this release
            if WHOLE_RELEASES[name].own is None:
                for case in release_cases(1.0, 1e-6, names=[name], mechanisms=[mechanism], adjacencies=[ADDED]):
                    yield replace(case, pairs=(case.pairs or ())[:1])


def robots(adjacency: Adjacency, users: int = 8000, items: int = 30) -> Pair:
    """One user in two hundred has a hundred times the rows of others, all of two items; one of them is the target.

    The others have about 3 to 120 rows, of items by Zipf's law; multiples of irrational numbers stand in for chance.
    """
    shares = np.cumsum(1 / np.arange(1, items + 1))
    normal = ndtri((np.arange(users) * 0.6180339887498949 + 0.5) % 1)
    crowd = {}
    for user, rows in enumerate((np.exp(3.0 + 0.7 * normal)).astype(np.int64) + 1):
        spots = (np.arange(rows) * 0.41421356237309515 + user * 0.7320508075688772) % 1
        places, times = np.unique(np.searchsorted(shares, spots * shares[-1]), return_counts=True)
        crowd[user] = dict(zip(places.tolist(), times.tolist(), strict=True))
    crowd |= {users + n: {0: 1000 + 10 * n, 1: 1000} for n in range(users // 200)}
    target = 2 * users
    second = {**crowd, target: {0: 2000}} if adjacency is Adjacency.REPLACE else crowd
    return Pair("a robot among robots", items, {**crowd, target: {1: 2000}}, second)


def replay(case: Case) -> Iterator[str | None]:
    """What parted, or None, on each pair of tables of the case."""
    for pair in case.pairs or ():
        with open_tables(pair) as tables, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield follow(case.mechanism, tables, case.claim, case.request).parted


def paths() -> Iterator[Path]:
    for package in PACKAGES:
        for path in sorted((SOURCE / package).rglob("*.py")):
            yield path.relative_to(SOURCE)


def statements_of(watch: coverage.Coverage, path: Path) -> tuple[set[int], set[int]]:
    """The statements inside functions of a module, and those of them that were run."""
    whole = SOURCE / path
    _, statements, _, missing, _ = watch.analysis2(str(whole))
    inside = {
        line
        for node in ast.walk(ast.parse(whole.read_text()))
        if isinstance(node, ast.FunctionDef)
        for body in node.body
        for line in range(body.lineno, (body.end_lineno or body.lineno) + 1)
    }
    every = set(statements) & inside
    return every, every - set(missing)


def show(name: str, figures: dict[Path, tuple[set[int], set[int]]], missing: bool, *, only_sum: bool = False) -> None:
    for path, (every, run) in figures.items():
        if every and not only_sum:
            print(f"  {path!s:45} {len(run):5} of {len(every):5}  {len(run) / len(every):4.0%}")
            if missing and every - run:
                print(f"      not run: {', '.join(map(str, sorted(every - run)))}")
    whole, seen = (sum(len(found[place]) for found in figures.values()) for place in (0, 1))
    print(f"{name:47} {seen:5} of {whole:5}  {seen / whole:4.0%}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
