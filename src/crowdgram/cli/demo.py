"""The main job, end to end, on a sample whose truth is public because it is synthetic."""

from __future__ import annotations

import io
from pathlib import Path

from rich.console import Console

from ..errors import MissingDependency, UnwritableTarget
from ..releases import release, write_whole
from ..synth import Crowd
from .display import Stages, show_release

__all__ = ["run"]

SAMPLE = Crowd(users=2000, rows=40, items=40, zipf=0.8, tail=1.0, differ=0.05, seed=7, strings=True)


def run(folder: Path, console: Console) -> None:
    """Write a sample table, release it, and show the release beside the truth."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UnwritableTarget(
            f"--output {str(folder)!r} cannot be made: {error.strerror}. Give another folder."
        ) from None
    table, domain, saved = folder / "visits.parquet", folder / "items.txt", folder / "release.json"
    SAMPLE.write(table, truth=folder / "truth.csv", domain=domain)
    console.print(
        f"A sample table of {SAMPLE.users} synthetic users is in {table}. To release it yourself:\n"
        f"  crowdgram release {table} --user user --item item --domain {domain} "
        f"--weight users --epsilon 1 -o {saved}\n",
        markup=False,
        highlight=False,
        soft_wrap=True,
    )
    with Stages(Console(stderr=True)) as stages:
        made = release(table, user="user", item="item", domain=domain, epsilon=1.0, weight="users", progress=stages)
        made.save(saved)
    truth = exact_answer()
    show_release(console, made, 12, truth)
    distance = sum(abs(made.probability(name) - p) for name, p in truth.items())
    console.print(
        f"The truth is the sample's exact answer, without noise: public here, because the sample is synthetic.\n"
        f"l1 distance to it: {distance:.4f}",
        markup=False,
        highlight=False,
        soft_wrap=True,
    )
    try:
        picture = folder / "release.png"
        drawn = io.BytesIO()
        made.plot(truth=truth).figure.savefig(drawn, dpi=120)  # type: ignore[union-attr]
        write_whole(picture, drawn.getvalue())
        console.print(f"Picture: {picture}", markup=False, highlight=False, soft_wrap=True)
    except MissingDependency as error:
        console.print(f"No picture: {error}", markup=False, highlight=False)


def exact_answer() -> dict[int | str, float]:
    """The average over the sample's users of their own distributions: what a release without noise would give."""
    cells = SAMPLE.table().group_by(["user", "item"]).aggregate([([], "count_all")])
    rows = cells.group_by("user").aggregate([("count_all", "sum")])
    rows_of = dict(zip(rows["user"].to_pylist(), rows["count_all_sum"].to_pylist(), strict=True))
    answer: dict[int | str, float] = dict.fromkeys(SAMPLE.item_names(), 0.0)
    columns = (cells[name].to_pylist() for name in ("user", "item", "count_all"))
    for user, item, count in zip(*columns, strict=True):
        answer[item] += count / rows_of[user] / SAMPLE.users
    return answer
