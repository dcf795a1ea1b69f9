"""Reach: the error of `crowdgram.reach` beside the distinct counts of other libraries at their best bound.

Others let each user keep at most L of their items, drawn by chance, and add Laplace noise of scale L / epsilon, or
Gaussian noise for an l2 norm of sqrt(L). L is tuned here with the true counts in hand, which no user has. Their
expected error is computed exactly, but for the variance of the draw, which is left out in their favour. "cut" sets
their negative counts to 0, and is simulated.

    python bench/reach.py --tables FOLDER [--repeat 10] [--epsilon 1] [--delta 1e-6] [--only NAME] [--users N]
    python bench/reach.py --invented [...]

--users: so many users of each table, drawn with a fixed seed, over all of its items. --invented: small invented crowds
instead of tables.
"""

from __future__ import annotations

import argparse
import itertools
import math
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from names import name_of
from scipy import sparse, special
from tuned import Contributions

import crowdgram
from crowdgram.errors import AccuracyWarning
from crowdgram.privacy.gaussian import gaussian_mu

__all__ = ["Ours", "Tuned", "measure", "tuned"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
BOUNDS = 60
CUT_ITEMS = 30_000
"""Draws of single items that tell the error of counts that are cut: so many that the least of BOUNDS is no luck."""
TOP = 5
USERS, ITEMS, POPULARITY = (250, 800, 3000), (8, 25, 80), 0.7
"""Of invented crowds; items are popular by a Zipf law of this exponent."""


@dataclass(frozen=True)
class Load:
    """A table, and which users have which of its items."""

    name: str
    source: object
    items: list[int]
    presence: sparse.csr_matrix

    @classmethod
    def of(cls, name: str, presence: sparse.csr_matrix, items: list[int]) -> Load:
        cells = presence.tocoo()
        return cls(name, pa.table({"user": cells.row, "item": np.array(items)[cells.col]}), items, presence)

    @property
    def truth(self) -> Floats:
        return np.asarray(self.presence.sum(axis=0)).ravel()


@dataclass(frozen=True)
class Tuned:
    """A distinct count at its best bound: the l1 error of all counts together."""

    noise: str
    bound: int
    error: float
    cut: float


@dataclass(frozen=True)
class Ours:
    """Several runs of `crowdgram.reach`: their mean error, what they predict, and how often intervals cover the truth:
    of the item that most users have, of those ranked 2 to 5, and of the rest; and of the number of users. widths: of
    the first and of the median interval of the rest, in users.
    """

    error: float
    largest: float
    predicted: float
    covered: tuple[float, float, float, float]
    widths: tuple[float, float]
    chosen: list[str]
    seconds: float


def tuned(presence: sparse.csr_matrix, epsilon: float, delta: float, rng: np.random.Generator) -> list[Tuned]:
    """The best bound of each noise."""
    sizes = np.diff(presence.indptr).astype(np.float64)
    truth = np.asarray(presence.sum(axis=0)).ravel()
    most = int(sizes.max())
    bounds = sorted({*range(1, min(most, 20) + 1), *np.rint(np.geomspace(1, most, BOUNDS)).astype(int).tolist()})
    found = []
    for noise in ("laplace", "gaussian") if delta > 0 else ("laplace",):
        tried = []
        for bound in bounds:
            kept = np.asarray(presence.T @ np.minimum(1.0, bound / sizes)).ravel()
            scale = bound / epsilon if noise == "laplace" else math.sqrt(bound) / gaussian_mu(epsilon, delta)
            error = float(_expected(kept - truth, scale, noise).sum())
            draws = [_draws(rng, noise, scale, len(truth)) for _ in range(math.ceil(CUT_ITEMS / len(truth)))]
            cut = float(np.mean([np.abs(np.maximum(kept + one, 0.0) - truth).sum() for one in draws]))
            tried.append((error, cut, bound))
        error, _, bound = min(tried)
        found.append(Tuned(noise, bound, error, min(cut for _, cut, _ in tried)))
    return found


def tables(folder: Path, only: list[str] | None, users: int | None) -> Iterator[Load]:
    """The tables of a folder, or so many users of each, drawn with a fixed seed, over all of its items."""
    for source in sorted(folder.glob("*.parquet")):
        if source.name.endswith(".vocab.parquet") or (only and source.stem not in only):
            continue
        made = Contributions.of(source)
        presence = (made.counts > 0).astype(np.float64).tocsr()
        if users is None:
            yield Load(name_of(source.stem), str(source), made.items, presence)
            continue
        some = min(users, presence.shape[0])
        drawn = np.random.default_rng([0, users]).choice(presence.shape[0], some, replace=False)
        yield Load.of(name_of(source.stem), presence[drawn], made.items)


def crowds(only: list[str] | None) -> Iterator[Load]:
    """Small invented crowds."""
    for users, items in itertools.product(USERS, ITEMS):
        rng = np.random.default_rng([users, items])
        for name, sizes in invented_sizes(rng, users, items).items():
            # The first of a random order in which popular items tend to come early.
            places = np.argsort(POPULARITY * np.log(1 + np.arange(items)) - rng.gumbel(size=(users, items)), axis=1)
            presence = np.zeros((users, items))
            np.put_along_axis(presence, places, np.arange(items) < sizes[:, None], axis=1)
            if not only or name in only:
                yield Load.of(name, sparse.csr_matrix(presence), list(range(items)))


def invented_sizes(rng: np.random.Generator, users: int, items: int) -> dict[str, Integers]:
    """How many items each user has."""
    few = 1 + rng.poisson(1.0, users)
    found = {
        "one item": np.ones(users),
        "three items": np.full(users, 3),
        "log-normal": np.rint(np.exp(rng.normal(0.7, 0.8, users))),
        "dispersed": 1 + rng.negative_binomial(0.5, 0.11, users),
        "heavy tail": rng.zipf(1.8, users),
        "few heavy": np.where(rng.random(users) < 0.03, items // 2, few),
        "two kinds": np.where(rng.random(users) < 0.3, rng.poisson(0.6 * items, users), few),
        "one or three": np.where(rng.random(users) < 0.7, 1, 3),
        "one or all": np.where(rng.random(users) < 0.9, 1, items),
    }
    return {name: np.clip(sizes, 1, items).astype(np.int64) for name, sizes in found.items()}


def measure(load: Load, repeat: int, **asked: float) -> Ours:
    """Run `crowdgram.reach` on a table."""
    truth, users = load.truth, load.presence.shape[0]
    order, runs, chosen, began = np.argsort(-truth, kind="stable"), [], [], time.perf_counter()
    for _ in range(repeat):
        made = crowdgram.reach(load.source, user="user", item="item", domain=load.items, **asked)  # type: ignore[arg-type]
        inside = ((made.lower <= truth) & (truth <= made.upper))[order]
        widths = (made.upper - made.lower)[order]
        runs.append(
            (
                float(np.abs(made.counts - truth).sum()),
                made.predicted_l1_error,
                inside[0],
                inside[1:TOP].mean(),
                inside[TOP:].mean(),
                made.users.lower <= users <= made.users.upper,
                widths[0],
                float(np.median(widths[TOP:])),
            )
        )
        chosen.append(f"{made.parameters['noise']} {made.parameters['max_items_per_user']}")
    error, predicted, *covered, first, rest = (float(one) for one in np.mean(runs, axis=0))
    seconds = (time.perf_counter() - began) / repeat
    largest = max(run[0] for run in runs)
    return Ours(error, largest, predicted, tuple(covered), (first, rest), chosen, seconds)  # type: ignore[arg-type]


def _expected(bias: Floats, scale: float, noise: str) -> Floats:
    """E|bias + noise|, exactly."""
    away = np.abs(bias)
    if noise == "laplace":
        return np.asarray(away + scale * np.exp(-away / scale))
    density = scale * math.sqrt(2 / math.pi) * np.exp(-((away / scale) ** 2) / 2)
    return np.asarray(density + away * (1 - 2 * special.ndtr(-away / scale)))


def _draws(rng: np.random.Generator, noise: str, scale: float, number: int) -> Floats:
    return rng.laplace(0.0, scale, number) if noise == "laplace" else rng.normal(0.0, scale, number)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure crowdgram.reach beside tuned distinct counts.")
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--tables", type=Path)
    which.add_argument("--invented", action="store_true")
    parser.add_argument("--repeat", type=int, default=10)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--delta", type=float, default=1e-6)
    parser.add_argument("--only", action="append")
    parser.add_argument("--users", type=int)
    given = parser.parse_args()
    warnings.simplefilter("ignore", AccuracyWarning)
    heads = ["table", "users", "items", "best tuned", "cut", "reach", "/tuned", "/cut", "predicted"]
    heads += ["top", "2-5", "rest", "users", "widths", "chosen", "seconds"]
    print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}", flush=True)
    ratios, honest = [], []
    for load in crowds(given.only) if given.invented else tables(given.tables, given.only, given.users):
        users, items = load.presence.shape
        others = tuned(load.presence, given.epsilon, given.delta, np.random.default_rng(1))
        best, cut = min(others, key=lambda one: one.error), min(one.cut for one in others)
        ours = measure(load, given.repeat, epsilon=given.epsilon, delta=given.delta)
        mostly = max(set(ours.chosen), key=ours.chosen.count)
        cells = [load.name, f"{users:,}", f"{items:,}", f"{best.error / items:.2f} ({best.noise} {best.bound})"]
        cells += [f"{one:.2f}" for one in (cut / items, ours.error / items, ours.error / best.error, ours.error / cut)]
        cells += [f"{one:.2f}" for one in (ours.predicted / ours.error, *ours.covered)]
        cells += [f"{ours.widths[0]:,.0f}, {ours.widths[1]:,.0f}", mostly, f"{ours.seconds:.1f}"]
        print(f"| {' | '.join(cells)} |", flush=True)
        ratios.append(ours.error / best.error)
        honest.append(ours.predicted / ours.error)
    print(
        f"{len(ratios)} lines: /tuned {min(ratios):.2f} to {max(ratios):.2f}, {np.mean(ratios):.2f} in the mean, at "
        f"most 1.1 in {sum(one <= 1.1 for one in ratios)}; predicted {min(honest):.2f} to {max(honest):.2f}."
    )


if __name__ == "__main__":
    main()
