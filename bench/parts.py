"""Releases of parts of real tables: every table with a fifth of its users, and with its items in 12 groups.

    python bench/parts.py --tables FOLDER [--repeat 12] [--weight rows]

The ten tables that the estimator is measured on say little of an eleventh; their parts are crowds of other sizes, with
fewer items and other tails, on which nothing was tuned. Releases are simulated with the mechanism's own code
(`crowdgram.planning.simulation`), which takes a second where a release takes many: epsilon 1, delta 1e-6, add-remove,
against the best simple mechanism, tuned with the truth in hand.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from scipy import sparse
from tuned import Contributions, Oracle, l1

from crowdgram.adjacency import Adjacency
from crowdgram.mechanisms import Auto
from crowdgram.planning.simulation import Crowd, run_mechanism
from crowdgram.privacy import Guarantee

EPSILON, DELTA = 1.0, 1e-6
USERS, GROUPS = 0.2, 12


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tables", type=Path, metavar="FOLDER", required=True, help="Parquet tables (user, item)")
    parser.add_argument("--repeat", type=int, default=12, help="releases of each part (default 12)")
    parser.add_argument("--weight", choices=["rows", "users"], default="rows")
    options = parser.parse_args(arguments)
    guarantee = Guarantee(EPSILON, DELTA, Adjacency.ADD_REMOVE)
    print("| part | users | items | error | of the best | worst of mean | predicted | rounds |")
    print("|---|---|---|---|---|---|---|---|")
    regrets = []
    for path in sorted(options.tables.glob("*.parquet")):
        if path.name.endswith(".vocab.parquet"):
            continue
        for name, counts in parts(path):
            crowd = Crowd(counts, np.ones(counts.shape[0]))
            truth = crowd.answer(options.weight)
            oracle = Oracle(options.weight, EPSILON, DELTA, np.random.default_rng(1))
            for _ in range(options.repeat):
                oracle.add(Contributions(counts, list(range(counts.shape[1]))), truth)
            best = min(one.mean for one in oracle.best().values())
            made = [run_mechanism(crowd, Auto(), guarantee, options.weight, seed=s) for s in range(options.repeat)]
            errors = np.array([l1(one.probabilities, truth) for one in made])
            predicted = float(np.mean([one.predicted_l1_error for one in made])) / float(errors.mean())
            rounds = sum(one.parameters["branch"] == "rounds" for one in made)
            regrets.append(float(errors.mean()) / best)
            print(
                f"| {name} | {counts.shape[0]:,} | {counts.shape[1]:,} | {errors.mean():.4f} | {regrets[-1]:.2f} |"
                f" {errors.max() / errors.mean():.2f} | {predicted:.2f} | {rounds}/{len(made)} |",
                flush=True,
            )
    mean = math.exp(float(np.mean(np.log(regrets))))
    print(f"\nOf the best: {mean:.3f} in the geometric mean, {max(regrets):.2f} at most.")


def parts(path: Path) -> Iterator[tuple[str, sparse.csr_matrix]]:
    counts, rng = Contributions.of(path).counts, np.random.default_rng(11)
    users, items = counts.shape
    some = counts[rng.choice(users, int(USERS * users), replace=False)]
    yield f"{path.stem}, a fifth of its users", some[:, np.flatnonzero(some.sum(axis=0))].tocsr()
    groups = rng.integers(min(GROUPS, items), size=items)
    merged = counts @ sparse.csr_matrix((np.ones(items), (np.arange(items), groups)))
    yield f"{path.stem}, items in {GROUPS} groups", merged[:, np.flatnonzero(merged.sum(axis=0))].tocsr()


if __name__ == "__main__":
    main()
