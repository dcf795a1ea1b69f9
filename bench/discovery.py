"""How many items are found in a table without a domain, against cap-and-threshold counts tuned with the truth in hand.

    python bench/discovery.py --tables FOLDER [--repeat 3] [--only NAME ...] [--json FILE]

See bench/README.md for what is measured and how to read the table.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
from names import name_of
from scipy import sparse
from scipy.special import ndtri
from tuned import Contributions

import crowdgram
from crowdgram.mechanisms import discover, open_search, plan_discovery
from crowdgram.privacy import Guarantee, Spending
from crowdgram.privacy.gaussian import gaussian_mu
from crowdgram.tables import open_rows, tally_rows

Floats = npt.NDArray[np.float64]
Found = npt.NDArray[np.bool_]

EPSILON, DELTA = 1.0, 1e-6
CAPS = (1, 2, 3, 5, 8, 12, 20, 30, 50, 80, 120, 200, 300, 500, 800, 1200, 2000)
SPLITS = (0.1, 0.25, 0.5)
ALL = 0.999
MUST = 1.3
COLUMNS = ("table", "users", "items", "laplace*", "geometric*", "gaussian*", "weighted", "rounds", "/best*", "must")


@dataclass(frozen=True)
class Reach:
    """Items found and the share of all rows that are theirs: means over the repetitions."""

    items: float
    rows: float
    cap: int | None = None


@dataclass(frozen=True)
class Released:
    """A release: items found, the share of items not found, the l1 error over what is listed, with "other", and the
    part of releases that miss one of the ten largest items. covered: how often the interval of what is missed holds it.
    """

    weight: str
    items: float
    missed: float
    l1: float
    lost: float
    covered: float = math.nan


@dataclass(frozen=True)
class Line:
    name: str
    users: int
    items: int
    laplace: Reach
    geometric: Reach
    gaussian: Reach
    weighted: Reach
    rounds: Reach
    to_best: float
    releases: tuple[Released, ...]
    counted: tuple[Released, ...]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Items found without a domain, against tuned thresholds.")
    parser.add_argument("--tables", type=Path, required=True, help="folder of Parquet tables (user, item)")
    parser.add_argument("--repeat", type=int, default=3, help="repetitions of each kind")
    parser.add_argument("--only", action="append", help="run this table only; repeatable")
    parser.add_argument("--json", type=Path, help="write every figure here")
    options = parser.parse_args(arguments)
    paths = [path for path in sorted(options.tables.glob("*.parquet")) if not path.name.endswith(".vocab.parquet")]
    if options.only:
        paths = [path for path in paths if path.stem in options.only]
    if not paths or options.repeat < 1:
        parser.error("no such table, or nothing to repeat")
    lines = []
    for path in paths:
        print(f"{path.stem} ...", file=sys.stderr)
        lines.append(measure(path, options.repeat))
    show(lines, options.repeat)
    if options.json:
        options.json.write_text(json.dumps([asdict(line) for line in lines], indent=1) + "\n")


def measure(path: Path, repeat: int) -> Line:
    rng = np.random.default_rng(1)
    table = Contributions.of(path)
    sets = table.counts.sign().tocsr()
    shares = table.answer("rows")

    def reach(found: Sequence[Found], cap: int | None = None) -> Reach:
        items = [float(one.sum()) for one in found]
        return Reach(float(np.mean(items)), float(np.mean([shares[one].sum() for one in found])), cap)

    most = int(np.diff(sets.indptr).max())
    reached: dict[str, list[Reach]] = {name: [] for name in TUNED}
    for cap in [cap for cap in CAPS if cap <= most]:
        kept = [capped(sets, cap, rng) for _ in range(repeat)]
        for name, find in TUNED.items():
            reached[name].append(reach([find(one, cap, rng) for one in kept], cap))
    tuned = {name: max(found, key=lambda one: one.items) for name, found in reached.items()}
    gaussian = max((tuned[name] for name in TUNED if name.startswith("gaussian")), key=lambda one: one.items)
    rounds = reach([np.isin(np.array(table.items), ours(path)) for _ in range(repeat)])
    best = max(tuned["laplace"].items, tuned["geometric"].items, gaussian.items)
    return Line(
        path.stem,
        *sets.shape,
        tuned["laplace"],
        tuned["geometric"],
        gaussian,
        tuned["weighted"],
        rounds,
        rounds.items / best if best else math.inf,
        tuple(released(path, table, weight, repeat) for weight in ("rows", "users")),
        tuple(counted(sets, table.answer(weight), weight, repeat, rng) for weight in ("rows", "users")),
    )


def ours(path: Path) -> list[int]:
    """What Crowdgram finds when all of the budget is for finding."""
    guarantee = Guarantee(EPSILON, DELTA)
    spending = Spending(guarantee)
    rows = open_rows(path, user="user", item="item")
    with rows.engine:
        plan = plan_discovery(guarantee, ALL, "gaussian")
        found, _ = discover(tally_rows(rows), open_search(spending.open(), plan), plan)
    spending.settled()
    return found


def released(path: Path, table: Contributions, weight: str, repeat: int) -> Released:
    truth = dict(zip(table.items, table.answer(weight), strict=True))  # type: ignore[arg-type]
    largest = set(sorted(truth, key=lambda item: -truth[item])[:10])
    made = []
    for _ in range(repeat):
        one = crowdgram.release(path, user="user", item="item", epsilon=EPSILON, delta=DELTA, weight=weight)  # type: ignore[arg-type]
        own = np.array([truth[item] for item in one.items[:-1]])
        own = np.append(own, 1 - own.sum())
        assert one.missed is not None
        covered = one.missed.lower <= own[-1] <= one.missed.upper
        error = float(np.abs(one.probabilities - own).sum())
        made.append((len(own) - 1, float(own[-1]), error, not largest <= set(one.items), covered))
    return Released(weight, *np.mean(made, axis=0).tolist())


def counted(sets: sparse.csr_matrix, truth: Floats, weight: str, repeat: int, rng: np.random.Generator) -> Released:
    """What other tools give: one item of each user, users counted with Laplace noise at all of the budget, and what
    passes the threshold as it was counted. The number of users, which these tools do not say, is taken as known.
    """
    largest = np.argsort(-truth)[:10]
    made = []
    for _ in range(repeat):
        users = counts(capped(sets, 1, rng))
        noisy = users + rng.laplace(size=len(users)) / EPSILON
        found = (users > 0) & (noisy > 1 + math.log(1 / (2 * DELTA)) / EPSILON)
        said = np.append(noisy[found], max(users.sum() - noisy[found].sum(), 0.0))
        own = np.append(truth[found], 1 - truth[found].sum())
        error = float(np.abs(said / said.sum() - own).sum())
        made.append((int(found.sum()), float(own[-1]), error, not found[largest].all()))
    return Released(weight, *np.mean(made, axis=0).tolist())


def capped(sets: sparse.csr_matrix, cap: int, rng: np.random.Generator) -> sparse.csr_matrix:
    """At most `cap` items of each user, drawn at random."""
    sizes = np.diff(sets.indptr)
    users = np.repeat(np.arange(sets.shape[0]), sizes)
    order = np.lexsort((rng.random(len(users)), users))
    rank = np.arange(len(users)) - np.repeat(sets.indptr[:-1], sizes)
    kept = order[rank < cap]
    return sparse.csr_matrix((np.ones(len(kept)), (users[kept], sets.indices[kept])), shape=sets.shape)


def counts(kept: sparse.csr_matrix, weights: Floats | None = None) -> Floats:
    return np.asarray(kept.T @ (np.ones(kept.shape[0]) if weights is None else weights)).ravel()


def each(delta: float, number: int) -> float:
    """The chance for one of `number` items, so that none passes but for a chance of delta."""
    return -math.expm1(math.log1p(-delta) / number)


def by_laplace(kept: sparse.csr_matrix, cap: int, rng: np.random.Generator) -> Found:
    """Laplace noise of scale cap/epsilon on the number of users."""
    users, scale = counts(kept), cap / EPSILON
    threshold = max(1 + scale * math.log(1 / (2 * each(DELTA, number))) for number in (1, cap))
    return (users > 0) & (users + scale * rng.laplace(size=len(users)) > threshold)


def by_geometric(kept: sparse.csr_matrix, cap: int, rng: np.random.Generator) -> Found:
    """The best there is for one item (Desfontaines, Voss, Gipson and Mandayam, arXiv 2006.03684), a cap-th of the
    budget for each.
    """
    users, epsilon, delta = counts(kept), EPSILON / cap, each(DELTA, cap)
    chances = [0.0]
    while chances[-1] < 1 and len(chances) <= users.max():
        last = chances[-1]
        chances.append(min(math.exp(epsilon) * last + delta, 1 - math.exp(-epsilon) * (1 - last - delta), 1.0))
    chance = np.array(chances)[np.minimum(users, len(chances) - 1).astype(np.int64)]
    return rng.random(len(users)) < chance


def by_gaussian(kept: sparse.csr_matrix, cap: int, rng: np.random.Generator, split: float) -> Found:
    """Gaussian noise of deviation sqrt(cap)/mu on the number of users; `split` of delta is for the threshold."""
    users, sigma = counts(kept), math.sqrt(cap) / gaussian_mu(EPSILON, (1 - split) * DELTA)
    threshold = 1 - sigma * float(ndtri(each(split * DELTA, cap)))
    return (users > 0) & (users + sigma * rng.normal(size=len(users)) > threshold)


def by_weights(kept: sparse.csr_matrix, cap: int, rng: np.random.Generator) -> Found:
    """One round of weights 1/sqrt(items of the user): the weighted Gaussian of Gopi et al. (arXiv 2002.09745)."""
    sizes = np.maximum(np.diff(kept.indptr), 1)
    sums, sigma = counts(kept, 1 / np.sqrt(sizes)), 1 / gaussian_mu(EPSILON, 0.75 * DELTA)
    numbers = np.arange(1, cap + 1)
    tails = -np.expm1(math.log1p(-0.25 * DELTA) / numbers)
    threshold = float(np.max(1 / np.sqrt(numbers) - sigma * ndtri(tails)))
    return (sums > 0) & (sums + sigma * rng.normal(size=len(sums)) > threshold)


TUNED: dict[str, Callable[[sparse.csr_matrix, int, np.random.Generator], Found]] = {
    "laplace": by_laplace,
    "geometric": by_geometric,
    **{f"gaussian {split:g}": partial(by_gaussian, split=split) for split in SPLITS},
    "weighted": by_weights,
}


def show(lines: Sequence[Line], repeat: int) -> None:
    def cell(one: Reach) -> str:
        return f"{one.items:.0f} {one.rows:.3f}" + ("" if one.cap is None else f" ({one.cap})")

    table = [COLUMNS]
    for line in lines:
        tuned = (line.laplace, line.geometric, line.gaussian, line.weighted)
        verdict = "-" if "words" not in line.name else "PASS" if line.to_best >= MUST else "MISS"
        row = (name_of(line.name), f"{line.users}", f"{line.items}", *map(cell, tuned), cell(line.rounds))
        table.append((*row, f"{line.to_best:.2f}", verdict))
    for found in table:
        print("  ".join(value.ljust(width) for value, width in zip(found, _widths(table), strict=True)).rstrip())
    print(
        f"Items found and the share of rows they cover, all of epsilon={EPSILON:g}, delta={DELTA:g} (add-remove) spent "
        f"on finding; mean of {repeat}. * with the cap (in brackets) that is best with the truth in hand."
    )
    header = ("table", "weight", "found", "missed", "l1 error", "l1 + missed", "top 10 lost")
    by_default = [(*header, *(f"{name}*" for name in header[2:]), "covered")]
    for line in lines:
        for one, other in zip(line.releases, line.counted, strict=True):
            figures = [
                figure
                for each in (one, other)
                for figure in (
                    f"{each.items:.0f}",
                    f"{each.missed:.4f}",
                    f"{each.l1:.4f}",
                    f"{each.l1 + each.missed:.4f}",
                    f"{each.lost:.2f}",
                )
            ]
            by_default.append((name_of(line.name), one.weight, *figures, f"{one.covered:.2f}"))
    print()
    for found in by_default:
        print("  ".join(value.ljust(width) for value, width in zip(found, _widths(by_default), strict=True)).rstrip())
    print(
        f"Releases without a domain, as they are by default; mean of {repeat}. l1 error: with 'other' as one item. "
        "top 10 lost: releases that miss one of the ten largest. covered: intervals that hold what is missed. * one "
        "item of each user, counted with Laplace noise and a threshold at all of the budget; users are known."
    )


def _widths(table: Sequence[Sequence[str]]) -> list[int]:
    return [max(len(row[column]) for row in table) for column in range(len(table[0]))]


if __name__ == "__main__":
    main()
