"""What `crowdgram.plan` expects, beside mean errors of real releases: a grid of settings, seen at random.

    python bench/plan.py                      # plans beside the recorded means of bench/plan.json
    python bench/plan.py --measure [--repeat 6] [--most 40] [--only N ...]     # measure what is not precise yet
    python bench/plan.py --tables FOLDER      # plans for real tables, described by five figures

Each repetition makes a fresh synthetic table (`crowdgram.synth.Crowd`) and releases it by `auto`, as a user would. The
error is the l1 distance to the table's own answer. A plan draws its own crowd by other code, and sees none of that. A
mean is precise if its standard error is below 7% of it; releases are repeated until it is, at most --most times.

A real table is described by its users, mean rows, shares of items, tails and tastes, and by the presets "typical". What
`auto` errs by on it is simulated too: its own counts, with noise of numpy.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from names import name_of
from scipy import special
from tuned import Contributions, l1, standard_error

import crowdgram
from crowdgram.mechanisms import Auto
from crowdgram.planning.shapes import Shape, zipf_shares
from crowdgram.planning.simulation import Crowd as Simulated
from crowdgram.planning.simulation import run_mechanism, simulate
from crowdgram.privacy import Guarantee
from crowdgram.synth import Crowd

RECORDED = Path(__file__).with_suffix(".json")
WITHIN = 1.3
"""A plan is right if it is within this factor of the mean: 30% off, either way."""

PRECISE = 0.07

USERS = (200, 1_000, 5_000, 20_000, 100_000)
ROWS = (1, 3, 10, 50, 300, 1_000)
ITEMS = (5, 30, 200, 1_000, 10_000)
EPSILONS = (0.1, 0.3, 1.0, 1.0, 4.0)
DELTAS = (1e-6, 1e-6, 1e-6, 0.0)
PRESETS = {"alike": (0.0, 0.0), "typical": (1.25, 0.1), "very different": (2.0, 0.5)}
MOST_ROWS = 2_000_000
SETTINGS = 72


@dataclass(frozen=True)
class Setting:
    """One line. rows: the median of users; tail, differ: as `Crowd` takes them, for `preset`."""

    users: int
    rows: int
    items: int
    epsilon: float
    delta: float
    weight: Literal["rows", "users"]
    adjacency: Literal["add-remove", "replace"]
    preset: str

    @property
    def crowd(self) -> Crowd:
        tail, differ = PRESETS[self.preset]
        return Crowd(users=self.users, rows=self.rows, items=self.items, tail=tail, differ=differ)

    @property
    def mean_rows(self) -> float:
        """Rows of one user on average: what a plan is asked with."""
        normal = special.ndtri((np.arange(100_000) + 0.5) / 100_000)
        return float(np.clip(np.rint(self.rows * np.exp(self.crowd.tail * normal)), 1, 1_000_000).mean())


@dataclass(frozen=True)
class Measured:
    setting: Setting
    mean: float
    standard_error: float
    predicted: float
    repeat: int


def grid() -> Iterator[Setting]:
    """Settings drawn at random, the same in every run; not those whose tables would be large."""
    rng = np.random.default_rng(15)
    found: list[Setting] = []
    while len(found) < SETTINGS:
        one = Setting(
            users=int(rng.choice(USERS)),
            rows=int(rng.choice(ROWS)),
            items=int(rng.choice(ITEMS)),
            epsilon=float(rng.choice(EPSILONS)),
            delta=float(rng.choice(DELTAS)),
            weight=str(rng.choice(["rows", "users"])),  # type: ignore[arg-type]
            adjacency=str(rng.choice(["add-remove", "add-remove", "add-remove", "replace"])),  # type: ignore[arg-type]
            preset=str(rng.choice(list(PRESETS))),
        )
        spread = math.exp(PRESETS[one.preset][0] ** 2 / 2)
        if one not in found and one.users * one.rows * spread <= MOST_ROWS:
            found.append(one)
            yield one


def measure(setting: Setting, number: int, repeat: int, most: int) -> Measured:
    """The mean error of real releases: `repeat` of them, and more, up to `most`, until it is precise."""
    errors: list[float] = []
    predicted: list[float] = []
    while len(errors) < repeat or (len(errors) < most and standard_error(errors) > PRECISE * np.mean(errors)):
        j = len(errors)
        crowd = replace(setting.crowd, seed=1_000 * number + j)
        table = crowd.table()
        truth = Contributions.of(table).within(list(range(setting.items))).answer(setting.weight)
        made = crowdgram.release(
            table,
            user="user",
            item="item",
            domain=range(setting.items),
            epsilon=setting.epsilon,
            delta=setting.delta,
            weight=setting.weight,
            adjacency=setting.adjacency,
        )
        errors.append(l1(np.array([made.probability(i) for i in range(setting.items)]), truth))
        predicted.append(made.predicted_l1_error)
    return Measured(setting, float(np.mean(errors)), standard_error(errors), float(np.mean(predicted)), len(errors))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--measure", action="store_true", help="measure real releases and record their means")
    parser.add_argument("--repeat", type=int, default=6, help="releases of each setting, at least")
    parser.add_argument("--most", type=int, default=40, help="and at most")
    parser.add_argument("--only", type=int, nargs="*", help="numbers of settings")
    parser.add_argument("--tables", type=Path, help="folder of real tables")
    options = parser.parse_args(arguments)
    if options.tables is not None:
        for path in sorted(options.tables.glob("*.parquet")):
            if not path.name.endswith(".vocab.parquet"):
                describe(path)
        return
    chosen = [(j, one) for j, one in enumerate(grid()) if options.only is None or j in options.only]
    if options.measure:
        record(chosen, options.repeat, options.most)
    else:
        compare(chosen)


def record(chosen: Sequence[tuple[int, Setting]], repeat: int, most: int) -> None:
    import warnings

    warnings.simplefilter("ignore")
    known = load()
    for number, one in chosen:
        if one in known and (known[one].standard_error <= PRECISE * known[one].mean or known[one].repeat >= most):
            continue
        started = time.process_time()
        known[one] = measure(one, number, repeat, most)
        print(f"{number}: {known[one].mean:.4g}, {time.process_time() - started:.0f} CPU seconds", flush=True)
        text = ",\n".join(json.dumps(asdict(each)) for each in known.values())
        RECORDED.write_text(f"[\n{text}\n]\n", encoding="utf-8")


def load() -> dict[Setting, Measured]:
    if not RECORDED.exists():
        return {}
    found: list[dict[str, Any]] = json.loads(RECORDED.read_text(encoding="utf-8"))
    read = [Measured(**{**one, "setting": Setting(**one["setting"])}) for one in found]
    return {one.setting: one for one in read}


def compare(chosen: Sequence[tuple[int, Setting]]) -> None:
    known, ratios, spent = load(), [], []
    print("number,users,rows (mean),items,epsilon,delta,weight,adjacency,preset,measured,error of it,planned,ratio")
    for number, one in chosen:
        if one not in known:
            continue
        started = time.process_time()
        tails, tastes = PRESETS[one.preset]
        planned = crowdgram.plan(
            users=one.users,
            rows_per_user=one.mean_rows,
            items=one.items,
            epsilon=one.epsilon,
            delta=one.delta,
            weight=one.weight,
            adjacency=one.adjacency,
            tails=tails,
            tastes=tastes,
        ).l1_error
        spent.append(time.process_time() - started)
        measured = known[one]
        ratios.append(planned / measured.mean)
        cells = (number, one.users, f"{one.mean_rows:.1f}", one.items, one.epsilon, one.delta, one.weight)
        figures = (f"{measured.mean:.4g}", f"{measured.standard_error:.2g}", f"{planned:.4g}", f"{ratios[-1]:.2f}")
        print(",".join(map(str, (*cells, one.adjacency, one.preset, *figures))), flush=True)
    print(summary(np.array(ratios)))
    print(f"CPU seconds of a plan: median {np.median(spent):.1f}, most {max(spent):.1f}")


def describe(path: Path, runs: int = 3) -> None:
    """A real table beside crowds that are like it."""
    table = Contributions.of(path)
    rows = table.rows()
    real = Simulated(table.counts, np.ones(len(rows)))
    square = float((real.answer("rows") ** 2).sum())
    several = rows > 1
    pairs = ((real.squares - rows)[several] / (rows[several] - 1)).sum() / max(float(rows[several].sum()), 1.0)
    tastes = float(np.clip((pairs - square) / (1 - square), 0.0, 0.95))
    tails = math.sqrt(math.log(len(rows) * float((rows**2).sum()) / float(rows.sum()) ** 2))
    size = len(rows), float(rows.mean())
    like = simulate(Shape(*size, real.answer("rows"), tails, tastes))
    typical = simulate(Shape(*size, zipf_shares(len(table.items), 1.0), *PRESETS["typical"]))
    for weight in ("rows", "users"):
        found, planned, preset = (error_of(crowd, weight, runs) for crowd in (real, like, typical))
        print(
            f"{name_of(path.stem)}, {weight}: {found:.4g}; described {planned:.4g} ({planned / found:.2f} of it), "
            f"typical {preset:.4g} ({preset / found:.2f})",
            flush=True,
        )


def error_of(crowd: Simulated, weight: Literal["rows", "users"], runs: int) -> float:
    guarantee, own = Guarantee(1.0, 1e-6), crowd.answer(weight)
    made = [run_mechanism(crowd, Auto(), guarantee, weight, seed=seed) for seed in range(runs)]
    return float(np.mean([l1(one.probabilities, own) for one in made]))


def summary(ratios: npt.NDArray[np.float64]) -> str:
    apart = np.abs(np.log(ratios))
    right = int((apart <= math.log(WITHIN)).sum())
    worst = ratios[apart.argmax()]
    return f"{right} of {len(ratios)} settings within 30%; worst: planned over measured {worst:.2f}"


if __name__ == "__main__":
    main()
