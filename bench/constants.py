"""What the estimator's numbers are worth: the l1 error with each of them halved and doubled.

    python bench/constants.py [--tables FOLDER] [--repeat 10] [--only NAME]

The numbers are those of `crowdgram.mechanisms.tuning`. Releases are of `auto`, by rows, epsilon 1, delta 1e-6,
add-remove: of synthetic crowds, against the distribution that made them, and of <name>.parquet in FOLDER, with integer
columns user and item, against the table's own answer.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from unittest import mock

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq

import crowdgram
from crowdgram.mechanisms import pilot_queries, rounds, row_bound, shells, tastes, tuning, user_sizes, users_by_distance
from crowdgram.synth import Crowd

MODULES = (pilot_queries, rounds, row_bound, shells, tastes, user_sizes, users_by_distance)
"""The modules that read the numbers."""

CROWDS = {
    "a": Crowd(users=2_000, rows=300, items=100, seed=1),
    "b": Crowd(users=5_000, rows=50, items=1_000, seed=1),
    "c": Crowd(users=3_000, rows=200, items=50, tail=1.0, differ=0.1, seed=1),
    "d": Crowd(users=5_000, rows=100, items=200, zipf=0.0, seed=1),
}


@dataclass(frozen=True)
class Table:
    """What is released, the number of its items, and what errors are measured against."""

    source: object
    items: int
    truth: npt.NDArray[np.float64]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tables", type=Path, metavar="FOLDER", help="real tables to try beside the synthetic ones")
    parser.add_argument("--repeat", type=int, default=10, help="releases of each table for each line (default 10)")
    parser.add_argument("--only", metavar="NAME", action="append", help="change this number only; repeatable")
    options = parser.parse_args(arguments)
    tables = dict(loaded(options.tables))
    print(f"| number | value | changed to | {' | '.join(tables)} |")
    print(f"|---|---|---|{'---|' * len(tables)}")
    print(line("as it is", "", "", tables, options.repeat), flush=True)
    for field in fields(tuning.Tuning):
        value = getattr(tuning.TUNING, field.name)
        if not isinstance(value, float) or (options.only and field.name not in options.only):
            continue
        for factor in (0.5, 2.0):
            with changed(field.name, factor * value):
                print(line(f"`{field.name}`", f"{value:g}", f"{factor * value:g}", tables, options.repeat), flush=True)


@contextmanager
def changed(name: str, value: float) -> Iterator[None]:
    """One number changed, in all modules that read it."""
    other = replace(tuning.TUNING, **{name: value})
    patches = [mock.patch.object(module, "TUNING", other) for module in MODULES]
    for patch in patches:
        patch.start()
    try:
        yield
    finally:
        for patch in patches:
            patch.stop()


def loaded(folder: Path | None) -> Iterator[tuple[str, Table]]:
    for name, crowd in CROWDS.items():
        yield name, Table(crowd.table(), crowd.items, crowd.distribution())
    for path in sorted(folder.glob("*.parquet")) if folder else []:
        if not path.name.endswith(".vocab.parquet"):
            items, places = np.unique(pq.read_table(path)["item"].to_numpy(), return_inverse=True)
            if (items == np.arange(len(items))).all():
                yield path.stem, Table(path, len(items), np.bincount(places) / len(places))


def line(name: str, value: str, to: str, tables: dict[str, Table], repeat: int) -> str:
    """One line of the table: means and standard errors."""
    cells = []
    for table in tables.values():
        made = (
            crowdgram.release(
                table.source, user="user", item="item", domain=range(table.items), epsilon=1.0, delta=1e-6
            ).probabilities
            for _ in range(repeat)
        )
        errors = [float(np.abs(one - table.truth).sum()) for one in made]
        cells.append(f"{np.mean(errors):.4g} ± {np.std(errors, ddof=1) / math.sqrt(repeat):.2g}")
    return f"| {name} | {value} | {to} | {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
