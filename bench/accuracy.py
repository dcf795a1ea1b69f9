"""The l1 error of `crowdgram.release`, as it is by default, against simple mechanisms tuned with the truth in hand; and
whether a release knows its error: what it predicts, and what its intervals cover, by rank.

    python bench/accuracy.py [--tables FOLDER] [--repeat 5] [--only NAME ...] [--json FILE] [--plot FILE]

See bench/README.md for what is measured and how to read the table.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from invented import INVENTED
from names import name_of
from pictures import draw_accuracy
from tuned import Contributions, Oracle, Tuned, l1, standard_error

import crowdgram
from crowdgram.synth import Crowd

Floats = npt.NDArray[np.float64]
Weight = Literal["rows", "users"]

EPSILON, DELTA = 1.0, 1e-6
OURS = ("auto", "adaptive", "laplace")


@dataclass(frozen=True)
class Goal:
    """What a mean error must reach, and what it aims at: each the least of the limits that are given."""

    must: float = math.inf
    must_of_best: float = math.inf
    must_of_laplace: float = math.inf
    aim: float = math.inf
    aim_of_floor: float = math.inf
    aim_of_best: float = math.inf

    def limits(self, floor: float, tuned: dict[str, Tuned]) -> tuple[float, float]:
        best, laplace = min(one.mean for one in tuned.values()), tuned["laplace"].mean
        must = min(self.must, self.must_of_best * best, self.must_of_laplace * laplace)
        return must, min(self.aim, _times(self.aim_of_floor, floor), self.aim_of_best * best)


SYNTHETIC = {
    "W1": (Crowd(items=100, rows=1_000, users=2_000, zipf=1), Goal(must=0.0070, must_of_best=1 / 5, aim_of_floor=1.35)),
    "W2": (Crowd(items=1_000, rows=300, users=10_000, zipf=1), Goal(must=0.0178, must_of_best=1 / 3, aim_of_floor=1.5)),
    "W3": (Crowd(items=20_000, rows=100, users=50_000, zipf=1), Goal(must=0.076, must_of_best=1 / 2, aim_of_floor=2.2)),
    "W4": (Crowd(items=200, rows=200, users=5_000, zipf=0), Goal(must=0.0105)),
    "W5": (Crowd(items=100, rows=10_000, users=1_000, zipf=1), Goal(must=0.0040, aim=0.0034)),
    "few": (Crowd(items=20, rows=500, users=300, zipf=1), Goal(must=0.022)),
}
TRAPS = Goal(must_of_laplace=1.3)
REAL = Goal(must_of_best=1.10, aim_of_best=1.05)
WORDS = Goal(must_of_best=1.10, aim_of_best=0.6)
WORST, PREDICTED, COVERED = 1.8, (0.67, 1.5), 0.9
"""What every line must keep to: the largest error over the mean; predicted over measured; coverage at each rank."""
RANKS = {"top": slice(0, 1), "2 to 5": slice(1, 5), "rest": slice(5, None)}


@dataclass(frozen=True, eq=False)
class Table:
    """One table: what the release reads, its counts for the oracle, and the answer that errors are measured against."""

    source: pa.Table | Path
    contributions: Contributions
    truth: Floats
    own: Floats


@dataclass(frozen=True, eq=False)
class Load:
    """A name in the printed table. `table` makes the table of a repetition."""

    name: str
    weight: Weight
    goal: Goal
    table: Callable[[int], Table]


@dataclass(frozen=True)
class Line:
    """One line of the printed table. Errors are l1; means over the repetitions unless named otherwise."""

    name: str
    weight: Weight
    users: int
    items: int
    repeat: int
    floor: float
    tuned: dict[str, Tuned]
    fixed_rounds: float
    fixed_rounds_se: float
    fixed_laplace: float
    fixed_laplace_se: float
    auto: float
    auto_se: float
    auto_max: float
    to_best: float
    to_floor: float
    must: float
    must_verdict: str
    aim: float
    aim_verdict: str
    predicted: float
    own_error: float
    covered: dict[str, float]
    honest_verdict: str
    branches: dict[str, int]
    seconds: float
    all_auto: tuple[float, ...]


def main(arguments: Sequence[str] | None = None) -> None:
    options = parse(arguments)
    lines = []
    for load in loads(options.tables, options.only):
        print(f"{load.name}, {load.weight} ...", file=sys.stderr)
        lines.append(measure(load, options.repeat))
    if not lines:
        raise SystemExit(f"There is no table named {', '.join(options.only)}.")
    print(render(lines))
    if options.json:
        options.json.write_text(json.dumps(report(lines), indent=1) + "\n", encoding="utf-8")
    if options.plot:
        draw_accuracy(report(lines), options.plot)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repeat", type=int, default=5, help="releases of each kind for each line (default 5)")
    parser.add_argument(
        "--tables", type=Path, metavar="FOLDER", help="Parquet tables (columns user, item) to run as well"
    )
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="run this one only; repeatable")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write every figure to FILE")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="also draw the picture to FILE")
    options = parser.parse_args(arguments)
    if options.repeat < 1:
        parser.error("--repeat must be at least 1")
    if options.tables and not options.tables.is_dir():
        parser.error(f"--tables: there is no folder '{options.tables}'")
    return options


def loads(folder: Path | None, only: Sequence[str]) -> Iterator[Load]:
    """The synthetic tables and the invented ones, then those of the folder by both weights. One table at a time is held
    in memory.
    """
    for name, (crowd, goal) in SYNTHETIC.items():
        if not only or name in only:
            yield synthetic(name, crowd, goal)
    for name in INVENTED:
        if not only or name in only:
            yield invented(name)
    for path in sorted(folder.glob("*.parquet")) if folder else []:
        if not path.name.endswith(".vocab.parquet") and (not only or path.stem in only):
            yield from stored(path)


def synthetic(name: str, crowd: Crowd, goal: Goal) -> Load:
    """A fresh table for each repetition, measured against the distribution that made it."""

    def table(repetition: int) -> Table:
        one = Crowd(crowd.users, crowd.rows, crowd.items, crowd.zipf, crowd.tail, crowd.differ, seed=1_000 + repetition)
        source = one.table()
        contributions = Contributions.of(source).within(one.item_names())
        return Table(source, contributions, one.distribution(), contributions.answer("rows"))

    return Load(name, "rows", goal, table)


def invented(name: str) -> Load:
    """A fresh table for each repetition, measured against its own answer."""

    def table(repetition: int) -> Table:
        source = INVENTED[name](np.random.default_rng(3_000 + repetition))
        contributions = Contributions.of(source)
        own = contributions.answer("rows")
        return Table(source, contributions, own, own)

    return Load(name, "rows", TRAPS, table)


def stored(path: Path) -> Iterator[Load]:
    """A table of the folder by both weights, measured against its own answer. Its distinct items are the domain."""
    contributions = Contributions.of(path)
    goal = WORDS if "words" in path.stem else REAL
    for weight in ("rows", "users"):
        own = contributions.answer(weight)
        table = Table(path, contributions, own, own)
        yield Load(path.stem, weight, goal, lambda _, table=table: table)


def measure(load: Load, repeat: int) -> Line:
    oracle = Oracle(load.weight, EPSILON, DELTA, np.random.default_rng(2_000))
    errors: dict[str, list[float]] = {mechanism: [] for mechanism in OURS}
    floors, own_errors, predicted, seconds, branches = [], [], [], [], Counter[str]()
    covers: dict[str, list[float]] = {rank: [] for rank in RANKS}
    for repetition in range(repeat):
        table = load.table(repetition)
        floors.append(l1(table.own, table.truth))
        oracle.add(table.contributions, table.truth)
        for mechanism in OURS:
            start = time.perf_counter()
            release = crowdgram.release(
                table.source,
                user="user",
                item="item",
                epsilon=EPSILON,
                delta=DELTA,
                domain=table.contributions.items,
                weight=load.weight,
                mechanism=mechanism,
            )
            errors[mechanism].append(l1(release.probabilities, table.truth))
            if mechanism == "auto":
                seconds.append(time.perf_counter() - start)
                predicted.append(release.predicted_l1_error)
                own_errors.append(l1(release.probabilities, table.own))
                for rank, share in covered(release, table.own).items():
                    covers[rank].append(share)
                branches["rounds" if "rounds" in release.parameters else "laplace"] += 1
    tuned = dict(oracle.best())
    floor, auto = float(np.mean(floors)), float(np.mean(errors["auto"]))
    must, aim = load.goal.limits(floor, tuned)
    shares = {rank: float(np.mean(each)) if each else math.nan for rank, each in covers.items()}
    worst, ratio = max(errors["auto"]) / auto, float(np.mean(predicted) / np.mean(own_errors))
    return Line(
        name=load.name,
        weight=load.weight,
        users=table.contributions.counts.shape[0],
        items=table.contributions.counts.shape[1],
        repeat=repeat,
        floor=floor,
        tuned=tuned,
        fixed_rounds=float(np.mean(errors["adaptive"])),
        fixed_rounds_se=standard_error(errors["adaptive"]),
        fixed_laplace=float(np.mean(errors["laplace"])),
        fixed_laplace_se=standard_error(errors["laplace"]),
        auto=auto,
        auto_se=standard_error(errors["auto"]),
        auto_max=max(errors["auto"]),
        to_best=auto / min(one.mean for one in tuned.values()),
        to_floor=auto / floor if floor > 0 else math.inf,
        must=must,
        must_verdict=verdict(auto, must),
        aim=aim,
        aim_verdict=verdict(auto, aim),
        predicted=float(np.mean(predicted)),
        own_error=float(np.mean(own_errors)),
        covered=shares,
        honest_verdict=honest(worst, ratio, shares),
        branches=dict(branches),
        seconds=float(np.mean(seconds)),
        all_auto=tuple(errors["auto"]),
    )


def covered(release: crowdgram.Release, own: Floats) -> dict[str, float]:
    """The share of intervals that hold the table's own answer: of the most common item, of the next four, and of all
    others whose share is more than half of the interval's width. A rank without such an item is left out.
    """
    low, high = release.intervals()
    order = np.argsort(-own)
    inside, seen = (low <= own) & (own <= high), own > (high - low) / 2
    found = {}
    for rank, part in RANKS.items():
        items = order[part]
        items = items[seen[items]] if rank == "rest" else items
        if len(items):
            found[rank] = float(inside[items].mean())
    return found


def honest(worst: float, ratio: float, shares: dict[str, float]) -> str:
    """What a line does not keep to, in words; PASS if it keeps to all."""
    broken = [rank for rank, share in shares.items() if share < COVERED]
    if worst > WORST:
        broken.append("worst")
    if not PREDICTED[0] <= ratio <= PREDICTED[1]:
        broken.append("predicted")
    return f"MISS: {', '.join(broken)}" if broken else "PASS"


def verdict(value: float, limit: float) -> str:
    return "PASS" if value <= limit else "MISS"


COLUMNS: dict[str, Callable[[Line], str]] = {
    "table": lambda line: name_of(line.name),
    "weight": lambda line: line.weight,
    "floor": lambda line: figure(line.floor) if line.floor > 0 else "-",
    "laplace*": lambda line: tuned_figure(line.tuned["laplace"]),
    "gaussian*": lambda line: tuned_figure(line.tuned["gaussian"]),
    "sample-one*": lambda line: tuned_figure(line.tuned["sample-one"]),
    "fixed rounds": lambda line: figure(line.fixed_rounds),
    "fixed laplace": lambda line: figure(line.fixed_laplace),
    "auto": lambda line: f"{figure(line.auto)} +- {line.auto_se:.1g}",
    "worst": lambda line: f"{line.auto_max / line.auto:.2f}",
    "/best*": lambda line: f"{line.to_best:.2f}",
    "/floor": lambda line: f"{line.to_floor:.2f}" if math.isfinite(line.to_floor) else "-",
    "must": lambda line: f"{figure(line.must)} {line.must_verdict}",
    "aim": lambda line: f"{figure(line.aim)} {line.aim_verdict}",
    "predicted": lambda line: figure(line.predicted),
    "to own": lambda line: figure(line.own_error),
    "covered": lambda line: " ".join("-" if math.isnan(each) else f"{each:.2f}" for each in line.covered.values()),
    "honest": lambda line: line.honest_verdict,
    "branch": lambda line: ", ".join(f"{name} {count}" for name, count in sorted(line.branches.items())),
    "seconds": lambda line: f"{line.seconds:.1f}",
}


def render(lines: Sequence[Line]) -> str:
    """The table, and under it what its columns mean."""
    cells = [list(COLUMNS), *([show(line) for show in COLUMNS.values()] for line in lines)]
    widths = [max(len(row[place]) for row in cells) for place in range(len(COLUMNS))]
    body = [
        "  ".join(
            cell.ljust(width) if place < 2 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in cells
    ]
    notes = [
        f"l1 error, mean of {lines[0].repeat}; epsilon={EPSILON:g}, delta={DELTA:g}, add-remove. +-: standard error.",
        "floor: the table's own answer, without privacy, against the truth. Where it is itself the truth: -.",
        "*: simulated, at the cap (in brackets) that is best with the truth in hand.",
        "fixed: one branch of auto, without choosing. /best*: auto over the least of the three *.",
        "worst: the largest error of auto over its mean.",
        "predicted: what auto says of its error against the table's own answer. to own: what that is.",
        "covered: of 95% intervals for the table's own answer: the top item, items 2 to 5, others above the noise.",
        f"honest: worst at most {WORST:g}, predicted over measured {PREDICTED[0]:g} to {PREDICTED[1]:g}, "
        f"covered at least {COVERED:g} at each rank.",
    ]
    return "\n".join([*(row.rstrip() for row in body), *notes])


def figure(value: float) -> str:
    return f"{value:#.3g}"


def tuned_figure(one: Tuned) -> str:
    return (
        f"{figure(one.mean)} ({'-' if one.cap is None else f'{one.cap:.3g}' if one.cap < 1000 else f'{one.cap:.0f}'})"
    )


def report(lines: Sequence[Line]) -> dict[str, Any]:
    """Every figure; what has no value (no floor, one repetition) is null."""
    return {
        "epsilon": EPSILON,
        "delta": DELTA,
        "adjacency": "add-remove",
        "how": f"means of {lines[0].repeat} releases",
        "lines": [_finite(asdict(line)) for line in lines],
    }


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _times(factor: float, value: float) -> float:
    return factor * value if math.isfinite(factor) else math.inf


if __name__ == "__main__":
    main()
