"""What the estimator's numbers are worth: the l1 error with each of them halved and doubled.

    python bench/constants.py [--tables FOLDER] [--repeat 8] [--table NAME] [--only NAME] [--weight rows] [--jobs 2]

The numbers are those of `crowdgram.mechanisms.tuning`. Releases of `auto` (epsilon 1, delta 1e-6, add-remove) are
simulated with the mechanism's own code: of synthetic crowds, and of <name>.parquet in FOLDER with columns user and
item, against the table's own answer. A cell is the mean error with the number changed, over the mean error as it is,
both by the same seeds; nan: pilot queries would cost more than there is. Tables with more than MOST_ITEMS items are
left out: one release of them takes seconds.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from tuned import Contributions, l1

MOST_ITEMS = 5_000
CROWDS: dict[str, dict[str, Any]] = {
    "agree": {"users": 2_000, "rows": 300, "items": 100},
    "many items": {"users": 5_000, "rows": 50, "items": 1_000},
    "differ": {"users": 3_000, "rows": 200, "items": 50, "tail": 1.0, "differ": 0.1},
    "few": {"users": 300, "rows": 50, "items": 50, "tail": 0.7, "differ": 0.1},
}


@dataclass(frozen=True)
class Task:
    """All releases of one table with one number changed; None: as it is."""

    table: str
    source: Path | None
    weight: Any
    number: str | None
    value: float
    repeat: int


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tables", type=Path, metavar="FOLDER", help="real tables to try beside the synthetic ones")
    parser.add_argument("--repeat", type=int, default=8, help="releases of each table for each line (default 8)")
    parser.add_argument("--only", metavar="NAME", action="append", help="change this number only; repeatable")
    parser.add_argument("--table", metavar="NAME", action="append", help="try this table or crowd only; repeatable")
    parser.add_argument("--weight", choices=["rows", "users"], default="rows")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default 2)")
    options = parser.parse_args(arguments)
    tables = {name: path for name, path in sources(options.tables) if not options.table or name in options.table}

    def tasks(number: str | None, value: float = 0.0) -> list[Task]:
        return [Task(name, path, options.weight, number, value, options.repeat) for name, path in tables.items()]

    print(f"| number | value | changed to | {' | '.join(tables)} | geometric mean |")
    print(f"|---|---|---|{'---|' * len(tables)}---|")
    # A process a task: the numbers are set before the modules are loaded that read them.
    with multiprocessing.get_context("spawn").Pool(options.jobs, maxtasksperchild=1) as pool:
        usual = pool.map(errors_of, tasks(None), chunksize=1)
        print(f"| as it is, l1 error | | | {' | '.join(f'{one:.4g}' for one in usual)} | |", flush=True)
        for number, value in numbers(options.only):
            for factor in (0.5, 2.0):
                found = pool.map(errors_of, tasks(number, factor * value), chunksize=1)
                ratios = [one / other for one, other in zip(found, usual, strict=True)]
                mean = math.exp(float(np.nanmean(np.log(ratios))))
                cells = " | ".join(f"{one:.2f}" for one in ratios)
                print(f"| `{number}` | {value:g} | {factor * value:g} | {cells} | {mean:.3f} |", flush=True)


def sources(folder: Path | None) -> Iterator[tuple[str, Path | None]]:
    for name in CROWDS:
        yield name, None
    for path in sorted(folder.glob("*.parquet")) if folder else []:
        if not path.name.endswith(".vocab.parquet") and Contributions.of(path).counts.shape[1] <= MOST_ITEMS:
            yield path.stem, path


def numbers(only: Sequence[str] | None) -> Iterator[tuple[str, float]]:
    from crowdgram.mechanisms.tuning import TUNING

    for field in fields(TUNING):
        value = getattr(TUNING, field.name)
        if isinstance(value, float) and (not only or field.name in only):
            yield field.name, value


def errors_of(task: Task) -> float:
    """The mean l1 error. For a process of its own."""
    if task.number is not None:
        set_number(task.number, task.value)
    from crowdgram.adjacency import Adjacency
    from crowdgram.errors import PrivacyViolation
    from crowdgram.mechanisms import Auto
    from crowdgram.planning.simulation import Crowd, run_mechanism
    from crowdgram.privacy import Guarantee
    from crowdgram.synth import Crowd as Invented

    source = Invented(**CROWDS[task.table], seed=1).table() if task.source is None else task.source
    counts = Contributions.of(source).counts
    crowd = Crowd(counts, np.ones(counts.shape[0]))
    truth, guarantee = crowd.answer(task.weight), Guarantee(1.0, 1e-6, Adjacency.ADD_REMOVE)
    made = (run_mechanism(crowd, Auto(), guarantee, task.weight, seed=seed) for seed in range(task.repeat))
    try:
        return float(np.mean([l1(one.probabilities, truth) for one in made]))
    except PrivacyViolation:
        return math.nan


def set_number(name: str, value: float) -> None:
    """Change a number, and have every module that read it loaded anew."""
    from crowdgram.mechanisms import tuning

    object.__setattr__(tuning.TUNING, name, value)
    for module in [one for one in sys.modules if one.split(".")[0] == "crowdgram" and one != tuning.__name__]:
        del sys.modules[module]


if __name__ == "__main__":
    main()
