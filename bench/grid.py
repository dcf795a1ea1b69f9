"""Whether a release knows its error away from the usual settings of epsilon, delta, adjacency, items and users.

    python bench/grid.py [--repeat 10] [--only TEXT]

Real releases of `auto` on invented crowds, one setting changed at a time, for users who agree and for users with tastes
of their own, by both weights. One line each: the l1 error against the table's own answer, the largest over the mean,
predicted over measured, and what 95% intervals cover by rank. A line that does not keep to the limits of
`bench/accuracy.py` says so. At 2, the largest error there is, a release is all noise.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from accuracy import COVERED, RANKS, covered, honest
from tuned import Contributions, l1

import crowdgram
from crowdgram.synth import Crowd

BASE = Crowd(users=2_000, rows=50, items=50, tail=0.7)
AGREE, DIFFER = 0.0, 0.3


@dataclass(frozen=True)
class Setting:
    """What is asked of which crowd."""

    name: str
    crowd: Crowd = BASE
    arguments: dict[str, Any] = field(default_factory=dict)


def settings() -> Iterator[Setting]:
    yield Setting("epsilon 1, delta 1e-6, 2,000 users, 50 items")
    for epsilon in (0.05, 0.2, 4.0, 10.0):
        yield Setting(f"epsilon {epsilon:g}", arguments={"epsilon": epsilon})
    for delta in (1e-4, 1e-9, 1e-12, 0.0):
        yield Setting(f"delta {delta:g}", arguments={"delta": delta})
    yield Setting("replace", arguments={"adjacency": "replace"})
    yield Setting("replace, delta 0", arguments={"adjacency": "replace", "delta": 0.0})
    for items in (2, 10, 1_000, 20_000):
        yield Setting(f"{items:,} items", replace(BASE, items=items))
    for users in (50, 150, 500, 50_000):
        yield Setting(f"{users:,} users", replace(BASE, users=users))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repeat", type=int, default=10, help="releases of each line (default 10)")
    parser.add_argument("--only", metavar="TEXT", help="settings whose name has this text")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    print("| setting | users | weight | error | worst | predicted | covered | rounds | |")
    print("|---|---|---|---|---|---|---|---|---|")
    missed = lines = 0
    for setting in settings():
        if options.only and options.only not in setting.name:
            continue
        for differ in (AGREE, DIFFER):
            for weight in ("rows", "users"):
                verdict = measure(setting, differ, weight, options.repeat)
                lines, missed = lines + 1, missed + (verdict != "PASS")
    print(f"\n{missed} of {lines} lines miss. Limits: see bench/accuracy.py; coverage at least {COVERED} at each rank.")


def measure(setting: Setting, differ: float, weight: Any, repeat: int) -> str:
    errors, predicted, rounds = [], [], 0
    covers: dict[str, list[float]] = {rank: [] for rank in RANKS}
    for repetition in range(repeat):
        crowd = replace(setting.crowd, differ=differ, seed=5_000 + repetition)
        table = crowd.table()
        contributions = Contributions.of(table).within(crowd.item_names())
        own = contributions.answer(weight)
        asked = {"epsilon": 1.0, "delta": 1e-6} | setting.arguments
        release = crowdgram.release(table, user="user", item="item", domain=contributions.items, weight=weight, **asked)
        errors.append(l1(release.probabilities, own))
        predicted.append(release.predicted_l1_error)
        rounds += "rounds" in release.parameters
        for rank, share in covered(release, own).items():
            covers[rank].append(share)
    mean = float(np.mean(errors))
    shares = {rank: float(np.mean(each)) for rank, each in covers.items() if each}
    worst, ratio = max(errors) / mean, float(np.mean(predicted)) / mean
    verdict = honest(worst, ratio, shares)
    shown = " ".join(f"{share:.2f}" for share in shares.values())
    print(
        f"| {setting.name} | {'differ' if differ else 'agree'} | {weight} | {mean:.4f} | {worst:.2f} | {ratio:.2f} |"
        f" {shown} | {rounds}/{repeat} | {verdict} |",
        flush=True,
    )
    return verdict


if __name__ == "__main__":
    main()
