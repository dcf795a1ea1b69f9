"""What a public prior is worth: the l1 error with none, with right, stale, uniform and adversarial ones.

    python bench/prior.py [--tables FOLDER] [--repeat 8] [--only NAME ...] [--mechanism auto]

Synthetic crowds are measured against the distribution that made them. Of a table of FOLDER, a random half of the users
makes the prior, and the other half is released and measured against its own answer. A release predicts the error to its
table's own answer, and is compared with that one. epsilon 1, delta 1e-6, add-remove.

right: the distribution that made the crowd, or that of the other half of users. stale: each share times exp(N(0, 0.3)).
swapped: a fifth of the items have changed places. uniform: all alike. reversed: the most common item has the share of
the rarest, and so on. shuffled: all items have changed places.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from crowdgram.mechanisms import Request, Weight
from crowdgram.privacy import Guarantee, Spending
from crowdgram.releases.priors import smoothed
from crowdgram.releases.registry import as_mechanism
from crowdgram.synth import Crowd
from crowdgram.tables import Counts, count_rows, open_rows, read_domain

Floats = npt.NDArray[np.float64]

EPSILON, DELTA = 1.0, 1e-6
CROWDS = {
    "10,000 users, 300 rows, 1,000 items": Crowd(users=10_000, rows=300, items=1_000, seed=1),
    "2,000 users, 100 rows, 1,000 items": Crowd(users=2_000, rows=100, items=1_000, seed=1),
    "300 users, 100 rows, 200 items": Crowd(users=300, rows=100, items=200, seed=1),
    "5,000 users who differ, 100 rows, 1,000 items": Crowd(
        users=5_000, rows=100, items=1_000, differ=0.1, tail=1.0, seed=1
    ),
    "20,000 users, 2 rows, 300 items": Crowd(users=20_000, rows=2, items=300, seed=1),
}
REAL = ("gerdracor_words_50k", "online_retail")


@dataclass(frozen=True)
class Load:
    """What is released, what errors are measured against, and what is known beforehand. own: the table's own answer."""

    name: str
    weight: Weight
    source: pa.Table
    items: int
    truth: Floats
    own: Floats
    right: Floats

    def priors(self, rng: np.random.Generator) -> dict[str, Floats | None]:
        swapped = self.right.copy()
        some = rng.choice(self.items, self.items // 5, replace=False)
        swapped[some] = swapped[rng.permutation(some)]
        reverse = np.empty(self.items)
        reverse[np.argsort(self.truth)] = np.sort(self.right)[::-1]
        return {
            "none": None,
            "right": self.right,
            "stale": self.right * np.exp(rng.normal(0, 0.3, self.items)),
            "swapped": swapped,
            "uniform": np.ones(self.items),
            "reversed": reverse,
            "shuffled": rng.permutation(self.right),
        }


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tables", type=Path, metavar="FOLDER", help="real tables to try beside the synthetic ones")
    parser.add_argument("--repeat", type=int, default=8, help="releases of each table with each prior (default 8)")
    parser.add_argument("--only", metavar="NAME", action="append", help="tables whose name holds this; repeatable")
    parser.add_argument("--mechanism", default="auto", choices=("auto", "adaptive"))
    options = parser.parse_args(arguments)
    head = None
    for load in loads(options.tables, options.only or []):
        print(f"{load.name}, {load.weight} ...", file=sys.stderr)
        errors, ratios = measure(load, options.mechanism, options.repeat)
        if head is None:
            head = list(errors)
            print(f"| table | weight | {' | '.join(head)} |\n|---|---|{'---|' * len(head)}")
        none = np.mean(errors["none"])
        cells = [
            f"{np.mean(each):.3g} ± {np.std(each, ddof=1) / math.sqrt(len(each)):.1g} ({np.mean(each) / none:.2f}; "
            f"{ratios[name]:.2f})"
            for name, each in errors.items()
        ]
        print(f"| {load.name} | {load.weight} | {' | '.join(cells)} |", flush=True)
    print("Mean l1 error ± its standard error (over that without a prior; predicted over measured, to the own answer).")


def loads(folder: Path | None, only: Sequence[str]) -> Iterator[Load]:
    for name, crowd in CROWDS.items():
        if wanted(name, only):
            table, shares = crowd.table(), crowd.distribution()
            own = answer(table["user"].to_numpy(), table["item"].to_numpy(), crowd.items, "rows")
            yield Load(name, "rows", table, crowd.items, shares, own, shares)
    for name in REAL if folder else ():
        if wanted(name, only):
            assert folder is not None
            yield from halves(name, pq.read_table(folder / f"{name}.parquet"))


def wanted(name: str, only: Sequence[str]) -> bool:
    return not only or any(one in name for one in only)


def halves(name: str, table: pa.Table) -> Iterator[Load]:
    """The prior from a random half of the users, the release over the other half."""
    users, items = table["user"].to_numpy(), table["item"].to_numpy()
    k = int(items.max()) + 1
    mine = np.random.default_rng(4).random(int(users.max()) + 1)[users] < 0.5
    for weight in ("rows", "users"):
        truth, right = (answer(users[part], items[part], k, weight) for part in (mine, ~mine))
        yield Load(name, weight, table.filter(pa.array(mine)), k, truth, truth, right)


def answer(users: npt.NDArray[np.int64], items: npt.NDArray[np.int64], k: int, weight: str) -> Floats:
    weights = 1 / np.bincount(users)[users] if weight == "users" else None
    found = np.bincount(items, weights=weights, minlength=k)
    shares: Floats = found / found.sum()
    return shares


def measure(load: Load, mechanism: str, repeat: int) -> tuple[dict[str, list[float]], dict[str, float]]:
    """Errors with each prior, and the mean predicted one over the mean of those that it is of."""
    errors: dict[str, list[float]] = {}
    to_own: dict[str, list[tuple[float, float]]] = {}
    rng = np.random.default_rng(7)
    with counted(load) as counts:
        for _ in range(repeat):
            for name, prior in load.priors(rng).items():
                public = None if prior is None else smoothed(prior)
                spending = Spending(Guarantee(EPSILON, DELTA))
                request = Request(load.weight, None, lambda _: None, prior=public)
                made = as_mechanism(mechanism).run(counts, spending.open(), request)
                errors.setdefault(name, []).append(float(np.abs(made.probabilities - load.truth).sum()))
                away = float(np.abs(made.probabilities - load.own).sum())
                to_own.setdefault(name, []).append((made.predicted_l1_error, away))
    ratios = {name: float(np.divide(*np.mean(pairs, axis=0))) for name, pairs in to_own.items()}
    return errors, ratios


@contextmanager
def counted(load: Load) -> Iterator[Counts]:
    rows = open_rows(load.source, user="user", item="item")
    with rows.engine:
        yield count_rows(rows, read_domain(range(load.items), rows.item_type))


if __name__ == "__main__":
    main()
