"""The main job, end to end, on a table of real people whose truth may be shown because it is public."""

from __future__ import annotations

import io
import os
from pathlib import Path

from rich.console import Console

from ..errors import MissingDependency, UnwritableTarget
from ..export import write_whole
from ..files import exists_already
from ..releases import release
from ..results import Release
from ..samples import Diaries
from .display import show_release
from .progress import Stages

__all__ = ["run"]

SAMPLE = Diaries()


def run(folder: Path, console: Console, *, force: bool = False) -> None:
    """Write a public table, release it, and show the release beside the truth. force: over earlier files too."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UnwritableTarget(
            f"--output {str(folder)!r} cannot be made: {error.strerror}. Give another folder."
        ) from None
    table, domain, saved = folder / "diaries.parquet", folder / "activities.txt", folder / "release.json"
    truths, picture = folder / "truth.csv", folder / "release.png"
    for target in (table, truths, domain, saved, picture):
        if os.path.lexists(target) and not force:
            raise exists_already(target)
    SAMPLE.write(table, domain, overwrite=force)
    truth = SAMPLE.average_day()
    write_whole(truths, _csv(truth), overwrite=force)
    console.print(
        f"What {SAMPLE.PEOPLE:,} people did on one day is in {table}. It is public (American Time Use Survey). To "
        "release it yourself:\n"
        f"  crowdgram release {table} --user person --item activity --count quarter_hours --domain {domain} "
        f"--weight users --epsilon 1 --delta 1e-6 -o {folder / 'mine.json'}\n",
        markup=False,
        highlight=False,
        soft_wrap=True,
    )
    with Stages(Console(stderr=True)) as stages:
        made = release(
            table,
            user="person",
            item="activity",
            count="quarter_hours",
            domain=domain,
            weight="users",
            epsilon=1.0,
            delta=1e-6,
            progress=stages,
        )
        made.save(saved, overwrite=force)
    show_release(console, made, 12, truth)
    console.print(
        "The truth is the table's exact answer, without noise. It may be shown here, because the table is public.\n"
        f"l1 distance to it, the sum of all errors: {distance(made, truth):.4f}",
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


def distance(made: Release, truth: dict[str, float]) -> float:
    """The l1 distance of a release from the truth."""
    return sum(abs(made.probability(name) - p) for name, p in truth.items())


def _csv(truth: dict[str, float]) -> str:
    lines = [f"{activity},{share}" for activity, share in truth.items()]
    return "\n".join(["activity,share", *lines, ""])
