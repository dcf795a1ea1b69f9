"""Commands that make tables to try things out with, and the demonstration."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from .command import ForceOption, QuietOption

__all__ = ["SAMPLE_COMMANDS"]


def synth(
    output: Annotated[Path, typer.Argument(help="Where to write the table: .parquet or .csv.", show_default=False)],
    users: Annotated[int, typer.Option(help="How many users.")] = 1000,
    rows: Annotated[int, typer.Option(help="Rows per user: all the same, or the median with --tail.")] = 100,
    items: Annotated[int, typer.Option(help="How many items.")] = 100,
    zipf: Annotated[float, typer.Option(help="Zipf exponent of the items; 0 is uniform.")] = 1.0,
    tail: Annotated[float, typer.Option(help="Spread of rows per user; 0: equal, 1.5: heavy-tailed.")] = 0.0,
    differ: Annotated[float, typer.Option(help="How much users differ, from 0 (alike) to below 1.")] = 0.0,
    seed: Annotated[int | None, typer.Option(help="The same seed writes the same table.")] = None,
    strings: Annotated[bool, typer.Option("--strings", help="Names instead of integers.")] = False,
    truth: Annotated[Path | None, typer.Option(help="Also write the true distribution (CSV) here.")] = None,
    domain: Annotated[Path | None, typer.Option(help="Also write the list of items (one a line) here.")] = None,
    force: ForceOption = False,
    quiet: QuietOption = False,
) -> None:
    """Write a synthetic table, for trying things out."""
    from ..synth import Crowd
    from .display import printable

    crowd = Crowd(users=users, rows=rows, items=items, zipf=zipf, tail=tail, differ=differ, seed=seed, strings=strings)
    written = crowd.write(output, truth=truth, domain=domain, overwrite=force)
    if not quiet:
        typer.echo(f"Wrote {written} rows of {users} users to {printable(str(output))}.")


class SampleChoice(StrEnum):
    """Tables that come with the package."""

    VISITS = "visits"
    DIARIES = "diaries"


def sample(
    output: Annotated[Path, typer.Argument(help="Where to write the table: .parquet or .csv.", show_default=False)],
    table: Annotated[
        SampleChoice, typer.Option(help="Visits of an invented shop, or diaries of real people from a public survey.")
    ] = SampleChoice.VISITS,
    domain: Annotated[
        Path | None, typer.Option(help="Also write the public list of items (pages, activities; one a line) here.")
    ] = None,
    force: ForceOption = False,
    quiet: QuietOption = False,
) -> None:
    """Write a sample table of the examples: visits of an invented shop, or diaries of real people."""
    from rich.console import Console

    from ..samples import Diaries
    from ..synth import Visits
    from .display import printable, say

    diaries = table is SampleChoice.DIARIES
    written = (Diaries() if diaries else Visits()).write(output, domain, overwrite=force)
    if quiet:
        return
    people = f"{Diaries.PEOPLE} people" if diaries else f"{Visits().users} invented users"
    say(Console(), f"Wrote {written} rows of {people} to {printable(str(output))}.")
    if diaries:
        say(
            Console(),
            "Source: American Time Use Survey 2003-2016, U.S. Bureau of Labor Statistics; a sample, with its codes in "
            "words. Public domain.",
        )


def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder for the sample table, release and picture.")
    ] = Path("demo-out"),
    force: ForceOption = False,
) -> None:
    """Release a public sample table and compare it with its exact answer."""
    from rich.console import Console

    from .demo import run

    run(output, Console(), force=force)


SAMPLE_COMMANDS = (synth, sample, demo)
