"""How often intervals of releases hold the table's own answer, by the rank of the item: one by one, all at once, of
ranks, and of differences and ratios of two items and of two releases.

    python bench/coverage.py [--tables FOLDER] [--repeat 20] [--only NAME ...] [--mechanism auto]

Each repetition releases a table and a second one, of another crowd with the same items; of a table of FOLDER, two
random halves of its users. "next" is the difference, or the ratio, of an item and the one ranked after it; "times" of
an item in both releases. Of the rest, every item counts for intervals and ranks, and REST of them for the others.
epsilon 1, delta 1e-6, add-remove, by rows; intervals at 95%.
"""

from __future__ import annotations

import argparse
import warnings
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from names import name_of

import crowdgram
from crowdgram.errors import AccuracyWarning
from crowdgram.synth import Crowd

Floats = npt.NDArray[np.float64]

ASKED = {"user": "user", "item": "item", "epsilon": 1.0, "delta": 1e-6}
RANKS = {"top": slice(0, 1), "2-5": slice(1, 5), "rest": slice(5, None)}
REST = 20
CROWDS = {
    "2,000 users, 10 rows, 20 items": (2_000, 10, 20, 0.0),
    "2,000 users, 100 rows, 100 items": (2_000, 100, 100, 0.0),
    "5,000 users who differ, 30 rows, 100 items": (5_000, 30, 100, 0.2),
    "20,000 users, 1 row, 300 items": (20_000, 1, 300, 0.0),
}


@dataclass(frozen=True)
class Load:
    """Two tables over the items 0, 1, ..."""

    name: str
    tables: tuple[pa.Table, pa.Table]
    items: int


def loads(folder: Path | None, only: Sequence[str]) -> Iterator[Load]:
    for name, (users, rows, items, differ) in CROWDS.items():
        if not only or any(one in name for one in only):
            made = [
                Crowd(users=users, rows=rows, items=items, differ=differ, zipf=zipf, seed=seed).table()
                for seed, zipf in ((1, 1.0), (2, 0.9))
            ]
            yield Load(name, (made[0], made[1]), items)
    for source in sorted(folder.glob("*.parquet")) if folder else ():
        if source.name.endswith(".vocab.parquet") or (only and not any(one in source.stem for one in only)):
            continue
        table = pq.read_table(source, columns=["user", "item"])
        users, items = table["user"].to_numpy(), table["item"].to_numpy()
        first = np.random.default_rng(4).random(int(users.max()) + 1)[users] < 0.5
        yield Load(name_of(source.stem), (table.filter(first), table.filter(~first)), int(items.max()) + 1)


def answer(table: pa.Table, items: int) -> Floats:
    found = np.bincount(table["item"].to_numpy(), minlength=items)
    shares: Floats = found / found.sum()
    return shares


def measure(load: Load, mechanism: str, repeat: int) -> dict[str, dict[str, float]]:
    """How often each kind of interval holds, by rank; "all": how often all of a release do."""
    first, second = (answer(table, load.items) for table in load.tables)
    order = np.argsort(-first, kind="stable")
    held: dict[tuple[str, str], list[float]] = defaultdict(list)
    for _ in range(repeat):
        one, two = (
            crowdgram.release(table, domain=list(range(load.items)), mechanism=mechanism, **ASKED)  # type: ignore[call-overload]
            for table in load.tables
        )
        for kind, within in _each(one, first).items():
            held[kind, "all"].append(bool(within.all()))
            for rank, places in RANKS.items():
                held[kind, rank].extend(within[order[places]])
        for rank, places in RANKS.items():
            some = np.arange(load.items - 1)[places][:REST]
            for item, following in zip(order[some].tolist(), order[some + 1].tolist(), strict=True):
                for kind, found, truth in (
                    ("difference, next", one.difference(item, following), first[item] - first[following]),
                    ("ratio, next", one.ratio(item, following), _over(first[item], first[following])),
                    ("difference, times", one.difference(item, other=two), first[item] - second[item]),
                    ("ratio, times", one.ratio(item, other=two), _over(first[item], second[item])),
                ):
                    held[kind, rank].append(found.lower <= truth <= found.upper)
    kinds: dict[str, dict[str, float]] = defaultdict(dict)
    for (kind, rank), found in held.items():
        kinds[kind][rank] = float(np.mean(found))
    return kinds


def _each(one: crowdgram.Release, truth: Floats) -> dict[str, npt.NDArray[np.bool_]]:
    """Whether each item's own answer is within its interval, its simultaneous one, and its ranks."""
    lower, upper = one.intervals(simultaneous=True)
    best, worst = one.ranks()
    above = (truth[:, None] < truth).sum(axis=1)
    ties = (truth[:, None] == truth).sum(axis=1) - 1
    return {
        "interval": (one.lower <= truth) & (truth <= one.upper),
        "interval, all at once": (lower <= truth) & (truth <= upper),
        "rank": (best <= above + 1 + ties) & (above + 1 <= worst),
    }


def _over(one: float, other: float) -> float:
    return one / other if other > 0 else float("inf")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tables", type=Path, metavar="FOLDER", help="real tables to try beside the synthetic ones")
    parser.add_argument("--repeat", type=int, default=20, help="pairs of releases of each table (default 20)")
    parser.add_argument("--only", metavar="NAME", action="append", help="tables whose name holds this; repeatable")
    parser.add_argument("--mechanism", default="auto")
    given = parser.parse_args(arguments)
    warnings.simplefilter("ignore", AccuracyWarning)
    heads = [*RANKS, "all"]
    print(f"| table | of | {' | '.join(heads)} |\n|---|---|{'---|' * len(heads)}", flush=True)
    for load in loads(given.tables, given.only or []):
        for kind, found in measure(load, given.mechanism, given.repeat).items():
            cells = [f"{found[rank]:.2f}" if rank in found else "" for rank in heads]
            print(f"| {load.name} | {kind} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
