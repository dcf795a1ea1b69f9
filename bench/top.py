"""Only the K most common items: is it better to find them first and measure them alone?

    python bench/top.py [--tables FOLDER] [--repeat 5] [--only NAME ...]

whole: one release of all items, cut to its K largest. two-stage: a part of the budget finds them by a release of its
own; the rest measures these K items and "other". Both by `auto`, epsilon 1, delta 1e-6, add-remove, rows. The budget is
divided in mu^2, as if all noise were Gaussian, and each stage has the whole delta: more than it may really have.

error: l1 over the true K most common items, of which those that are not listed have the estimate 0. recall: how many of
them are listed.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq

import crowdgram
from crowdgram.privacy.gaussian import gaussian_epsilon, gaussian_mu
from crowdgram.synth import Crowd

Floats = npt.NDArray[np.float64]

EPSILON, DELTA = 1.0, 1e-6
PARTS = (0.05, 0.2)
TABLES = {"gerdracor_words_50k": (20, 100), "online_retail": (20,), "git_definitelytyped": (20,)}
ZIPF = Crowd(users=20_000, rows=50, items=100_000, seed=1)


@dataclass(frozen=True)
class Load:
    name: str
    source: Any
    domain: Sequence[int] | None
    truth: Floats
    ks: tuple[int, ...]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tables", type=Path, metavar="FOLDER", help="real tables to try beside the synthetic one")
    parser.add_argument("--repeat", type=int, default=4, help="releases of each kind (default 4)")
    parser.add_argument("--only", metavar="NAME", action="append", help="tables whose name holds this; repeatable")
    options = parser.parse_args(arguments)
    ways = ["whole", *(f"two-stage, {part:g}" for part in PARTS)]
    print(f"| table | K | {' | '.join(ways)} |\n|---|---|{'---|' * len(ways)}")
    for load in loads(options.tables, options.only):
        print(f"{load.name} ...", file=sys.stderr)
        found = [
            [listed(load, EPSILON), *(two_stage(load, part) for part in PARTS)] for _ in range(options.repeat)
        ]  # of each repetition and way, a function of K
        for k in load.ks:
            made = [[way(k) for way in each] for each in found]
            cells = [judged(load, k, [each[place] for each in made]) for place in range(len(ways))]
            print(f"| {load.name} | {k} | {' | '.join(cells)} |", flush=True)


def judged(load: Load, k: int, found: Sequence[dict[int, float]]) -> str:
    """l1 error with its standard error, and recall."""
    top = np.argsort(-load.truth)[:k].tolist()
    errors = [sum(abs(one.get(item, 0.0) - load.truth[item]) for item in top) for one in found]
    recall = np.mean([sum(item in one for item in top) / k for one in found])
    spread = np.std(errors, ddof=1) / math.sqrt(len(errors)) if len(errors) > 1 else math.nan
    return f"{np.mean(errors):.3g} ± {spread:.1g}, {recall:.2f}"


def loads(folder: Path | None, only: Sequence[str] | None) -> Iterator[Load]:
    if wanted("Zipf", only):
        table = ZIPF.table()
        truth = shares(table["item"].to_numpy(), ZIPF.items)
        yield Load("Zipf, listed", table, range(ZIPF.items), truth, (20, 100))
        yield Load("Zipf, found", table, None, truth, (20, 100))
    for name, ks in TABLES.items() if folder else ():
        if wanted(name, only):
            assert folder is not None
            path = folder / f"{name}.parquet"
            items = pq.read_table(path, columns=["item"])["item"].to_numpy()
            truth = shares(items, int(items.max()) + 1)
            yield Load(f"{name}, listed", path, range(len(truth)), truth, ks)
            yield Load(f"{name}, found", path, None, truth, ks)


def wanted(name: str, only: Sequence[str] | None) -> bool:
    return not only or any(one in name for one in only)


def shares(items: npt.NDArray[np.int64], count: int) -> Floats:
    found = np.bincount(items, minlength=count)
    return found / found.sum()


def listed(load: Load, epsilon: float) -> Callable[[int], dict[int, float]]:
    """The K largest of one release of all items, for each K."""
    made = crowdgram.release(load.source, user="user", item="item", domain=load.domain, epsilon=epsilon, delta=DELTA)
    ordered = [one for one in made.top(max(load.ks) + 1) if not isinstance(one.item, crowdgram.Other)]
    return lambda k: {one.item: one.probability for one in ordered[:k]}


def two_stage(load: Load, part: float) -> Callable[[int], dict[int, float]]:
    """A release of all items for `part` of the budget says which K to measure, with the rest."""
    mu = gaussian_mu(EPSILON, DELTA)
    first, rest = (gaussian_epsilon(mu * math.sqrt(each), DELTA) for each in (part, 1 - part))
    found = listed(load, first)

    def measured(k: int) -> dict[int, float]:
        items = list(found(k))
        if not items:
            return {}
        made = crowdgram.release(
            load.source, user="user", item="item", domain=items, other="other", epsilon=rest, delta=DELTA
        )
        return {item: made.probability(item) for item in items}

    return measured


if __name__ == "__main__":
    main()
