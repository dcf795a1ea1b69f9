"""What the estimator's constants are worth: the l1 error with each of them changed, as the table in docs/estimator.md.

    python bench/constants.py [--repeat 10] [--only NAME]

A constant is changed in the module that reads it. Releases are of `auto`, by rows, epsilon 1, delta 1e-6, add-remove.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass
from unittest import mock

import numpy as np

import crowdgram
from crowdgram.mechanisms import auto, cost, profile, rounds, row_cap, schedule, shrink
from crowdgram.synth import Crowd

CROWDS = {
    "a": Crowd(users=2_000, rows=300, items=100, seed=1),
    "b": Crowd(users=5_000, rows=50, items=1_000, seed=1),
    "c": Crowd(users=3_000, rows=200, items=50, tail=1.0, differ=0.1, seed=1),
    "d": Crowd(users=5_000, rows=100, items=200, zipf=0.0, seed=1),
}


@dataclass(frozen=True)
class Change:
    """A constant, the modules that read it, and what it is set to."""

    name: str
    modules: tuple[object, ...]
    value: float


CHANGES = [
    Change("FIRST_SHARE", (rounds,), 0.01),
    Change("FIRST_SHARE", (rounds,), 0.09),
    Change("SECOND_SHARE", (rounds,), 0.05),
    Change("SECOND_SHARE", (rounds,), 0.4),
    Change("MAX_ROUNDS", (rounds,), 2),
    Change("MAX_ROUNDS", (rounds,), 3),
    Change("DISAGREEMENT", (cost, rounds, auto, row_cap), 0.2),
    Change("DISAGREEMENT", (cost, rounds, auto, row_cap), 1.0),
    Change("PSEUDO_ITEMS", (shrink,), 0.3),
    Change("PSEUDO_ITEMS", (shrink,), 30),
    Change("CLEARLY", (auto,), 0.5),
    Change("CLEARLY", (auto,), 1.2),
    Change("ROOM", (rounds,), 1),
    Change("ROOM", (rounds,), 8),
    Change("LOOK_MOST", (rounds,), 0.005),
    Change("LOOK_MOST", (rounds,), 0.08),
    Change("ENOUGH", (profile,), 6),
    Change("ENOUGH", (profile,), 1e9),
    Change("WORTHWHILE", (schedule,), 1.2),
    Change("NEARLY", (cost,), 1.1),
    Change("AGREEMENT", (rounds,), 2),
    Change("SNUG", (rounds,), 1.0),
]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repeat", type=int, default=10, help="releases of each crowd for each line (default 10)")
    parser.add_argument("--only", metavar="NAME", action="append", help="change this constant only; repeatable")
    options = parser.parse_args(arguments)
    tables = {name: crowd.table() for name, crowd in CROWDS.items()}
    print(f"| constant | value | changed to | {' | '.join(CROWDS)} |")
    print(f"|---|---|---|{'---|' * len(CROWDS)}")
    print(line("as it is", "", "", tables, options.repeat), flush=True)
    for change in CHANGES:
        if options.only and change.name not in options.only:
            continue
        value = getattr(change.modules[0], change.name)
        patches = [mock.patch.object(module, change.name, change.value) for module in change.modules]
        for patch in patches:
            patch.start()
        try:
            text = line(f"`{change.name}`", f"{value:g}", f"{change.value:g}", tables, options.repeat)
        finally:
            for patch in patches:
                patch.stop()
        print(text, flush=True)


def line(name: str, value: str, changed: str, tables: dict[str, object], repeat: int) -> str:
    """One line of the table: means and standard errors."""
    cells = []
    for key, table in tables.items():
        crowd = CROWDS[key]
        errors = [
            float(
                np.abs(
                    crowdgram.release(
                        table, user="user", item="item", domain=range(crowd.items), epsilon=1.0, delta=1e-6
                    ).probabilities
                    - crowd.distribution()
                ).sum()
            )
            for _ in range(repeat)
        ]
        cells.append(f"{np.mean(errors):.4f} ± {np.std(errors, ddof=1) / math.sqrt(repeat):.4f}")
    return f"| {name} | {value} | {changed} | {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
