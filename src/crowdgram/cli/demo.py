"""The main job, end to end, on a sample whose truth is public because it is synthetic."""

from __future__ import annotations

import io
import os
from pathlib import Path

from rich.console import Console

from ..errors import MissingDependency, UnwritableTarget
from ..export import write_whole
from ..files import exists_already
from ..releases import release
from ..results import Item, Release
from ..synth import Crowd
from .display import show_release
from .progress import Stages

__all__ = ["run"]

SAMPLE = Crowd(users=2000, rows=300, items=40, zipf=0.8, seed=7, strings=True)


def run(folder: Path, console: Console, *, force: bool = False) -> None:
    """Write a sample table, release it, and show the release beside the truth. force: over earlier files too."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UnwritableTarget(
            f"--output {str(folder)!r} cannot be made: {error.strerror}. Give another folder."
        ) from None
    table, domain, saved = folder / "visits.parquet", folder / "items.txt", folder / "release.json"
    truths, picture = folder / "truth.csv", folder / "release.png"
    for target in (table, truths, domain, saved, picture):
        if os.path.lexists(target) and not force:
            raise exists_already(target)
    SAMPLE.write(table, truth=truths, domain=domain, overwrite=force)
    console.print(
        f"A sample table of {SAMPLE.users} synthetic users is in {table}. To release it yourself:\n"
        f"  crowdgram release {table} --user user --item item --domain {domain} "
        f"--epsilon 1 --delta 1e-6 -o {folder / 'mine.json'}\n",
        markup=False,
        highlight=False,
        soft_wrap=True,
    )
    with Stages(Console(stderr=True)) as stages:
        made = release(table, user="user", item="item", domain=domain, epsilon=1.0, delta=1e-6, progress=stages)
        made.save(saved, overwrite=force)
        plain = release(table, user="user", item="item", domain=domain, epsilon=1.0, delta=1e-6, mechanism="laplace")
    truth = exact_answer()
    show_release(console, made, 12, truth)
    console.print(
        "The truth is the sample's exact answer, without noise: public here, because the sample is synthetic.\n"
        f"l1 distance to it: {distance(made, truth):.4f} "
        f"(plain Laplace noise for the same epsilon: {distance(plain, truth):.4f})",
        markup=False,
        highlight=False,
        soft_wrap=True,
    )
    try:
        drawn = io.BytesIO()
        made.plot(truth=truth).savefig(drawn, dpi=120)
        write_whole(picture, drawn.getvalue(), overwrite=force)
        console.print(f"Picture: {picture}", markup=False, highlight=False, soft_wrap=True)
    except MissingDependency as error:
        console.print(f"No picture: {error}", markup=False, highlight=False)


def distance(made: Release, truth: dict[Item, float]) -> float:
    """The l1 distance of a release from the truth."""
    return sum(abs(made.probability(name) - p) for name, p in truth.items())


def exact_answer() -> dict[Item, float]:
    """The share of all rows of the sample: what a release without noise would give."""
    table = SAMPLE.table()
    counted = table.group_by("item").aggregate([([], "count_all")])
    counts = dict(zip(counted["item"].to_pylist(), counted["count_all"].to_pylist(), strict=True))
    return {name: counts.get(name, 0) / table.num_rows for name in SAMPLE.item_names()}
