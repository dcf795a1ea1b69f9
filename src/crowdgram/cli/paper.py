"""`crowdgram paper`: the published paper reproduced: its figure, users needed, and its errata."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..adjacency import Adjacency
from ..errors import InvalidArgument, UnwritableTarget
from ..files import exists_already
from .command import ForceOption

if TYPE_CHECKING:
    from rich.console import Console

    from ..paper.errata import Erratum

__all__ = ["PAPER_COMMANDS"]

_DEFAULT_MECHANISMS = "no-privacy,auto,paper-tight,paper,laplace,gaussian"


def figure1(
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to write the picture (PNG).")] = Path(
        "figure1.png"
    ),
    p: Annotated[float, typer.Option("--p", help="The first binomial's parameter.")] = 0.01,
    q: Annotated[float, typer.Option("--q", help="The second binomial's parameter.")] = 0.011,
    force: ForceOption = False,
) -> None:
    """Draw Figure 1: the l1 distance of two binomials, exactly, with line fits in m and in sqrt(m)."""
    from rich.console import Console

    if p == q:
        raise InvalidArgument(
            f"--p and --q are both {p:g}: the distance is 0 for every m. Give two parameters.", argument="--p"
        )
    _check_output("--output", output, ".png", force=force)
    from ..export import write_whole
    from ..theory import OutOfRange
    from .figures import draw_figure1, figure1_panels, png

    try:
        panels = figure1_panels(p, q)
    except OutOfRange as error:
        raise InvalidArgument(str(error), argument=None) from None
    write_whole(output, png(draw_figure1(panels, p, q)), overwrite=force)
    console = Console()
    for panel in panels:
        sign = "-" if panel.intercept < 0 else "+"
        _say(
            console,
            f"{panel.title}: l1 = {panel.slope:.6f} {panel.label} {sign} {abs(panel.intercept):.6f}, "
            f"R^2 = {panel.explained:.5f}",
        )
    _say(console, f"Picture: {output}")


def complexity(
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to write the picture (PNG).")] = Path(
        "complexity.png"
    ),
    data: Annotated[Path | None, typer.Option(help="Also write every figure here (.json or .csv).")] = None,
    items: Annotated[int, typer.Option(help="Size of the domain (k).")] = 100,
    alpha: Annotated[float, typer.Option(help="The mean l1 error to reach.")] = 0.02,
    rows: Annotated[str, typer.Option(help="Rows a user (m), with commas between.")] = "10,100,1000,10000",
    zipf: Annotated[float, typer.Option(help="Zipf exponent of the items; 0 is uniform.")] = 1.0,
    epsilon: Annotated[float, typer.Option(help="Privacy budget.")] = 1.0,
    delta: Annotated[float, typer.Option(help="Chance that the bound may fail.")] = 1e-6,
    adjacency: Annotated[
        Adjacency, typer.Option(help="The paper's is replace; the library's default is add-remove.")
    ] = Adjacency.ADD_REMOVE,
    mechanisms: Annotated[str, typer.Option(help="Which to measure, with commas between.")] = _DEFAULT_MECHANISMS,
    repetitions: Annotated[
        int | None, typer.Option(help="Releases at each size; ten times as many on summed counts. [default: 10]")
    ] = None,
    most_rows: Annotated[int, typer.Option(help="The largest table to try, in rows.")] = 20_000_000,
    fast: Annotated[
        bool, typer.Option("--fast", help="3 releases at each size, sizes within 25% instead of 5%.")
    ] = False,
    force: ForceOption = False,
) -> None:
    """Measure how many users each mechanism needs for an l1 error of alpha, by rows a user."""
    from rich.console import Console

    from ..export import write_whole
    from .complexity import COMPARED, SERVE_PURE, Question, as_csv, as_json, measure, tables
    from .figures import draw_complexity, png
    from .progress import Stages

    sizes = _whole_numbers("--rows", rows)
    names = [name.strip() for name in mechanisms.split(",")]
    for name in names:
        if name not in COMPARED:
            raise InvalidArgument(
                f"--mechanisms {name!r}: needs to be among {', '.join(COMPARED)}.", argument="--mechanisms"
            )
    if delta == 0:
        names = [name for name in names if name in SERVE_PURE]
    if not names:
        raise InvalidArgument(
            f"--mechanisms {mechanisms!r}: none of them can serve delta=0. Add laplace or auto.",
            argument="--mechanisms",
        )
    runs = repetitions if repetitions is not None else (3 if fast else 10)
    if runs < 1 or most_rows < 1:
        raise InvalidArgument(
            f"--repetitions is {runs} and --most-rows {most_rows}: both need to be at least 1.",
            argument="--repetitions",
        )
    _check_output("--output", output, ".png", force=force)
    if data is not None:
        _check_output("--data", data, ".json", ".csv", force=force)
    question = Question(items, alpha, zipf, epsilon, delta, adjacency, runs, 1.25 if fast else 1.05, most_rows)
    question.guarantee()
    question.crowd(1, max(sizes), seed=0)
    with Stages(Console(stderr=True)) as stages:
        last = ""

        def report(stage: str) -> None:  # once for each size, not for each run
            nonlocal last
            if stage != last:
                last = stage
                stages(stage)

        lines = list(measure(question, sizes, names, report))
    write_whole(output, png(draw_complexity(question, lines)), overwrite=force)
    if data is not None:
        figures = as_json(question, lines) if data.suffix.lower() == ".json" else as_csv(lines)
        write_whole(data, figures, overwrite=force)
    console = Console()
    measured, bounded = tables(lines)
    _say(
        console,
        f"Users needed for a mean l1 error of {alpha:g}: {items} items, Zipf {zipf:g}, epsilon={epsilon:g}, "
        f"delta={delta:g}, {adjacency.value}. {runs} releases at each size, sizes within a factor {question.step:g}.",
    )
    console.print(measured)
    if any(one.more for line in lines for one in line.measured.values()):
        _say(console, f"> : more than were tried, which was up to {most_rows:,} rows.")
    _say(console, "\nProved, for every distribution (those that suffice: when a user is replaced):")
    console.print(bounded)
    _say(console, f"\nPicture: {output}" + (f", figures: {data}" if data is not None else ""))


def errata(
    measure: Annotated[
        bool, typer.Option("--measure/--no-measure", help="Compute the true epsilon of the literal versions.")
    ] = True,
) -> None:
    """Print what is wrong in the paper as printed, what is right, and what a literal copy would promise and keep."""
    from rich.console import Console

    from ..paper.errata import ERRATA

    console = Console()
    for erratum in ERRATA:
        _show(console, erratum, measure)


PAPER_COMMANDS = (figure1, complexity, errata)


def _show(console: Console, erratum: Erratum, measure: bool) -> None:
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    console.print(Text(f"{erratum.number}. {erratum.title}", style="bold"))
    lines = Table.grid(padding=(0, 2))
    lines.add_column(no_wrap=True)
    lines.add_column(overflow="fold")
    facts = {"breaks": erratum.breaks, "printed": erratum.printed, "correct": erratum.correct}
    if measure and erratum.measure is not None:
        found = erratum.measure()
        relation = "is" if found.exact else "is at least"
        facts["measured"] = f"epsilon {relation} {found.actual:.4g}, claimed {found.claimed:.4g}: {found.how}"
    for name, fact in facts.items():
        lines.add_row(Text(name, style="dim"), Text(fact))
    console.print(Padding(lines, (0, 0, 1, 4)))


def _whole_numbers(option: str, text: str) -> list[int]:
    try:
        numbers = sorted({int(part) for part in text.split(",")})
    except ValueError:
        numbers = []
    if not numbers or numbers[0] < 1:
        raise InvalidArgument(
            f"{option} {text!r}: needs whole numbers of at least 1, such as 10,100,1000.", argument=option
        )
    return numbers


def _check_output(option: str, path: Path, *suffixes: str, force: bool) -> None:
    """Refuse, before anything is computed, a file that cannot be written."""
    if path.suffix.lower() not in suffixes:
        raise InvalidArgument(f"{option} {str(path)!r}: its name must end in {' or '.join(suffixes)}.", argument=option)
    if path.is_dir() or not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise UnwritableTarget(f"{option} {str(path)!r} cannot be written: give a file in a folder that is there.")
    if os.path.lexists(path) and not force:
        raise exists_already(path)


def _say(console: Console, text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)
