"""How many users are needed for an l1 error of alpha, by rows per user: the sqrt(m) law, measured.

    python bench/users_needed.py [--items 100] [--alpha 0.02] [--zipf 1] [--quick] [--json FILE] [--plot FILE]

See bench/README.md for what is measured and how to read the table.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from tuned import estimate, l1

import crowdgram
from crowdgram.privacy.gaussian import gaussian_mu
from crowdgram.synth import Crowd

EPSILON, DELTA = 1.0, 1e-6
ROWS_PER_USER = (10, 100, 1_000, 10_000)
MOST_ROWS = 20_000_000
MOST_USERS = 100_000_000
PICTURE = Path(__file__).parents[1] / "docs" / "images" / "users-needed.png"
SIMULATED_REPEAT = 200

MeanError = Callable[[int], float]


@dataclass(frozen=True)
class Question:
    """The problem: its public numbers, and how closely to look."""

    items: int
    alpha: float
    zipf: float
    repeat: int
    step: float

    def crowd(self, users: int, rows: int, seed: int | None = None) -> Crowd:
        return Crowd(users=users, rows=rows, items=self.items, zipf=self.zipf, seed=seed)


@dataclass(frozen=True)
class Found:
    """The smallest number of users tried whose mean error is at most alpha. `more`: not even this many were enough."""

    users: int
    error: float
    more: bool = False


@dataclass(frozen=True)
class Line:
    """One line of the table: the users needed at `rows` rows a user."""

    rows: int
    no_privacy: Found
    auto: Found
    laplace: Found
    gaussian: Found
    order_of_bound: float


def main(arguments: Sequence[str] | None = None) -> None:
    options = parse(arguments)
    question = Question(options.items, options.alpha, options.zipf, options.repeat, options.step)
    lines = [measure(question, rows) for rows in options.rows]
    print(render(question, lines))
    if options.json:
        figures = {"epsilon": EPSILON, "delta": DELTA, "adjacency": "add-remove", **asdict(question)}
        document = {**figures, "lines": [asdict(line) for line in lines]}
        options.json.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    if options.plot:
        plot(question, lines, options.plot)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--items", type=int, default=100, help="size of the domain (default 100)")
    parser.add_argument("--alpha", type=float, default=0.02, help="the mean l1 error to reach (default 0.02)")
    parser.add_argument("--zipf", type=float, default=1.0, help="exponent of the distribution; 0 is flat (default 1)")
    parser.add_argument("--rows", type=int, action="append", help="rows a user; repeatable (default 10 to 10000)")
    parser.add_argument("--repeat", type=int, help="releases at each size (default 10; with --quick 4)")
    parser.add_argument("--quick", action="store_true", help="coarser sizes, fewer repetitions, no picture of itself")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write every figure to FILE")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="the picture (default docs/images/users-needed.png)")
    options = parser.parse_args(arguments)
    options.rows = sorted(options.rows or ROWS_PER_USER)
    options.repeat = (4 if options.quick else 10) if options.repeat is None else options.repeat
    options.step = 1.25 if options.quick else 1.05
    if options.plot is None and not options.quick:
        options.plot = PICTURE
    if options.repeat < 1 or options.items < 2 or not 0 < options.alpha < 2 or options.rows[0] < 1:
        parser.error("--repeat and --rows need at least 1, --items at least 2, --alpha a number between 0 and 2")
    return options


def measure(question: Question, rows: int) -> Line:
    k, alpha = question.items, question.alpha
    mu = gaussian_mu(EPSILON, DELTA)
    rng = np.random.default_rng(rows)
    laplace = simulated(question, rows, rng, lambda: rng.laplace(0, rows / EPSILON, k), math.sqrt(2) * rows / EPSILON)
    gaussian = simulated(question, rows, rng, lambda: rng.normal(0, rows / mu, k), rows / mu)
    none = simulated(question, rows, rng, lambda: np.zeros(k), 0.0)
    no_privacy = search(none, alpha, guess=round(k / (rows * alpha**2)), step=question.step, most=MOST_USERS)
    by_laplace = search(laplace, alpha, guess=round(k / alpha), step=question.step, most=MOST_USERS)
    print(f"{rows} rows a user ...", file=sys.stderr)
    return Line(
        rows=rows,
        no_privacy=no_privacy,
        auto=search(
            released(question, rows),
            alpha,
            guess=max(no_privacy.users, round(by_laplace.users / math.sqrt(rows))),
            step=question.step,
            most=max(1, MOST_ROWS // rows),
        ),
        laplace=by_laplace,
        gaussian=search(gaussian, alpha, guess=by_laplace.users, step=question.step, most=MOST_USERS),
        order_of_bound=k / (rows * alpha**2) + k / (alpha * (EPSILON + DELTA)),
    )


def released(question: Question, rows: int) -> MeanError:
    """Mean error of `crowdgram.release` as it is by default, on fresh tables."""

    def mean_error(users: int) -> float:
        errors = []
        for repetition in range(question.repeat):
            crowd = question.crowd(users, rows, seed=1_000 + repetition)
            release = crowdgram.release(
                crowd.table(), user="user", item="item", epsilon=EPSILON, delta=DELTA, domain=crowd.item_names()
            )
            errors.append(l1(release.probabilities, crowd.distribution()))
        return float(np.mean(errors))

    return mean_error


def simulated(
    question: Question, rows: int, rng: np.random.Generator, noise: Callable[[], np.ndarray], deviation: float
) -> MeanError:
    """Mean error of noise on the summed counts of users who all have `rows` rows, where that is known."""
    p = question.crowd(1, rows).distribution()

    def mean_error(users: int) -> float:
        sums = rng.multinomial(users * rows, p, size=SIMULATED_REPEAT)
        return float(np.mean([l1(estimate(one + noise(), deviation), p) for one in sums]))

    return mean_error


def search(mean_error: MeanError, alpha: float, *, guess: int, step: float, most: int) -> Found:
    """Bisect on the logarithm of the number of users, from a guess, until both ends are within `step`."""
    errors: dict[int, float] = {}

    def enough(users: int) -> bool:
        errors[users] = mean_error(users)
        return errors[users] <= alpha

    high = min(max(guess, 1), most)
    low = high
    while not enough(high):
        if high == most:
            return Found(most, errors[most], more=True)
        low, high = high, min(2 * high, most)
    while low == high and high > 1:
        low = high // 2
        if enough(low):
            high = low
    while high > low * step and high > low + 1:
        middle = min(max(round(math.sqrt(low * high)), low + 1), high - 1)
        low, high = (low, middle) if enough(middle) else (middle, high)
    return Found(high, errors[high])


COLUMNS: dict[str, Callable[[Line], str]] = {
    "rows a user": lambda line: f"{line.rows}",
    "no privacy": lambda line: users(line.no_privacy),
    "auto": lambda line: users(line.auto),
    "auto's l1": lambda line: f"{line.auto.error:.4f}",
    "laplace": lambda line: users(line.laplace),
    "gaussian": lambda line: users(line.gaussian),
    "laplace / auto": lambda line: f"{line.laplace.users / line.auto.users:.1f}" if not line.auto.more else "-",
    "order of bound": lambda line: f"{line.order_of_bound:.0f}",
}


def users(found: Found) -> str:
    return f"> {found.users}" if found.more else f"{found.users}"


def render(question: Question, lines: Sequence[Line]) -> str:
    """The table, and under it what its columns mean."""
    cells = [list(COLUMNS), *([show(line) for show in COLUMNS.values()] for line in lines)]
    widths = [max(len(row[place]) for row in cells) for place in range(len(COLUMNS))]
    body = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in cells]
    notes = [
        f"Users needed for a mean l1 error of {question.alpha:g}: {question.items} items, Zipf {question.zipf:g}, "
        f"epsilon={EPSILON:g}, delta={DELTA:g}, add-remove.",
        f"auto: real releases, {question.repeat} at each size, on fresh tables; told nothing but the items. "
        f"Sizes within a factor {question.step:g}.",
        "laplace, gaussian: simulated; noise on summed counts, with the rows a user known and the result projected.",
        "order of bound: k/(m alpha^2) + k/(alpha (epsilon + delta)), which nothing that sees summed counts only can",
        "beat in order (the paper's Theorem 1). Its constants are unknown and taken as 1: compare slopes, not heights.",
    ]
    if any(line.auto.more for line in lines):
        notes.append(f"> : more than were tried; releases are tried up to {MOST_ROWS} rows.")
    return "\n".join([*body, *notes])


def plot(question: Question, lines: Sequence[Line], file: Path) -> None:
    """Users needed by rows a user, on log scales, with the two slopes of the law."""
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(8, 5), layout="constrained")
    ax = drawing.subplots()
    rows = np.array([line.rows for line in lines], dtype=np.float64)
    auto = np.array([line.auto.users for line in lines])
    laplace = np.array([line.laplace.users for line in lines])
    gaussian = np.array([line.gaussian.users for line in lines])
    bound = np.array([line.order_of_bound for line in lines])
    curves = {
        "gaussian, m known": (gaussian, "#a63603", "s-"),
        "laplace, m known": (laplace, "#e6550d", "s-"),
        "Crowdgram, told nothing": (auto, "#08519c", "o-"),
        "no privacy": (np.array([line.no_privacy.users for line in lines]), "#555555", "o-"),
        "order, summed counts (Thm 1)": (bound, "#999999", "--"),
        "slope 0": (np.full(len(rows), math.sqrt(laplace[-1] * gaussian[-1])), "#999999", ":"),
        "slope -1/2": (0.6 * (auto * np.sqrt(rows)).min() / np.sqrt(rows), "#999999", ":"),
    }
    for values, color, style in curves.values():
        ax.plot(rows, values, style, color=color, ms=6, lw=1.2 if style == ":" else 1.8)
    ends = {label: values[-1] for label, (values, _, _) in curves.items()}
    highest = max(values.max() for values, _, _ in curves.values())
    apart = (highest / min(ends.values())) ** (1 / 20)  # the height of a line of text
    free = 0.0
    for label in sorted(ends, key=lambda label: ends[label]):
        height = max(ends[label], free)
        free = height * apart
        ax.annotate(
            label,
            (rows[-1], height),
            (9, 0),
            textcoords="offset points",
            va="center",
            color=curves[label][1],
            fontsize=9 if curves[label][2] == ":" else 10,
            annotation_clip=False,
        )
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlabel("rows a user (m)")
    ax.set_ylabel(f"users needed for an l1 error of {question.alpha:g}")
    ax.set_title(
        f"{question.items} items, Zipf {question.zipf:g}; epsilon={EPSILON:g}, delta={DELTA:g}, add-remove", fontsize=10
    )
    ax.grid(color="#eeeeee")
    ax.spines[["top", "right"]].set_visible(False)
    drawing.savefig(file, dpi=150)


if __name__ == "__main__":
    main()
