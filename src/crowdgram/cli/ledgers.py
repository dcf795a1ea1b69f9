"""The commands of `crowdgram ledger`."""

from __future__ import annotations

import json
import math
import uuid
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..adjacency import Adjacency
from ..errors import UnwritableTarget
from .command import ForceOption, QuietOption
from .periods import EveryChoice, period_figures, show_periods, whole_user
from .streams import is_standard, print_json

if TYPE_CHECKING:
    from ..privacy import Entry, Ledger, LedgerHead
    from ..results import GroupedReach, GroupedRelease, Reach, Release

__all__ = ["check_apart", "create", "history", "recover", "save_release", "show", "verify"]

USUAL_PART = 0.01
"""Of the ledger's delta: what `show` takes for the delta of a release to come."""

_WIDE_TERMINAL = 100

PathArgument = Annotated[Path, typer.Argument(help="The ledger file.", show_default=False)]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
PeriodOption = Annotated[str | None, typer.Option(help="One period of a ledger that has them, such as 2026-11.")]


def create(
    path: Annotated[Path, typer.Argument(help="The file to make; it must not be there yet.", show_default=False)],
    epsilon: Annotated[float, typer.Option(help="Budget of all releases together.", show_default=False)],
    delta: Annotated[float, typer.Option(help="Chance that the bound may fail; 0 for pure privacy.")] = 0.0,
    adjacency: Annotated[
        Adjacency, typer.Option(help="Which tables are neighbours; releases must be of the same.")
    ] = Adjacency.ADD_REMOVE,
    every: Annotated[
        EveryChoice | None,
        typer.Option(help="Give each such period the budget anew. What is protected is a user's rows of one period."),
    ] = None,
    epsilon_overall: Annotated[
        float | None,
        typer.Option(help="With --every: limit of all periods together, for a user who is in all of them."),
    ] = None,
    delta_overall: Annotated[float | None, typer.Option(help="Its delta. [default: that of one period]")] = None,
    network: Annotated[
        bool, typer.Option("--network", help="Allow a network file system: you answer for its locks.")
    ] = False,
    quiet: QuietOption = False,
) -> None:
    """Set up a budget in a new file."""
    from ..privacy import Ledger

    made = Ledger.create(
        path,
        epsilon,
        delta,
        adjacency,
        every=None if every is None else every.value,
        epsilon_overall=epsilon_overall,
        delta_overall=delta_overall,
        network=network,
    )
    if quiet:
        return
    if made.every is None:
        _say(f"Made {path}: {_terms(made)}, for all releases together.")
        return
    limit = "without a limit" if made.overall is None else f"at most epsilon {made.overall.epsilon:g}"
    _say(f"Made {path}: {_terms(made)}, anew for each {made.every}; {limit} for all periods together.")


def show(path: PathArgument, period: PeriodOption = None, as_json: JsonOption = False) -> None:
    """Show the budget, what is spent and what would fit."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from ..privacy import Ledger

    ledger = Ledger.open(path, period=period)
    head = ledger.check()
    if ledger.every is not None and period is None:
        _show_all_periods(ledger, head, as_json=as_json)
        return
    entries = [entry for entry in ledger.history() if period is None or entry.period == period]
    figures = {**_figures(ledger, entries), "head": head.to_dict()}
    if as_json:
        typer.echo(json.dumps(figures, indent=1))
        return
    finished = sum(entry.finished for entry in entries)
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    table.add_row("budget", Text(_terms(ledger) + ("" if period is None else f", for {period}")))
    table.add_row("releases", Text(f"{finished} finished, {len(entries) - finished} unfinished"))
    table.add_row("head", Text(str(head)))
    if entries:
        plain = f"plain sum: epsilon {_digits(figures['plain_sum']['epsilon'])}"
        table.add_row("spent", Text(f"epsilon {_digits(figures['spent_epsilon'])} ({plain})"))
        table.add_row("composition", Text(entries[0].composition))
    for one in figures["would_fit"]:
        noise = f"{one['mechanism']}, delta {one['delta']:g}"
        fits = f"epsilon {one['epsilon']:g}" if one["epsilon"] else "nothing"
        table.add_row("would fit", Text(f"{fits} by {noise}"))
    Console().print(table)


def _show_all_periods(ledger: Ledger, head: LedgerHead, *, as_json: bool) -> None:
    """The budget of each period that was used, and what all of them mean for a user who is in all of them."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from ..privacy import Ledger

    entries, spent = ledger.history(), ledger.spent_by_period()
    if as_json:
        typer.echo(json.dumps({**period_figures(ledger, entries, spent), "head": head.to_dict()}, indent=1))
        return
    finished = sum(entry.finished for entry in entries)
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    table.add_row("budget", Text(f"{_terms(ledger)}, anew for each {ledger.every}"))
    table.add_row("releases", Text(f"{finished} finished, {len(entries) - finished} unfinished"))
    table.add_row("head", Text(str(head)))
    if entries:
        for name, said in whole_user(ledger, entries):
            table.add_row(name, Text(said))
    console = Console()
    console.print(table)
    if entries:
        console.print()
        opened = partial(Ledger.open, ledger.written)
        show_periods(console, entries, spent, lambda name: _would_fit(opened(period=name), last=True)[0])


def history(path: PathArgument, period: PeriodOption = None, as_json: JsonOption = False) -> None:
    """Show every release that was charged."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from ..privacy import Ledger
    from .display import printable

    ledger = Ledger.open(path, period=period)
    entries = [entry for entry in ledger.history() if period is None or entry.period == period]
    if as_json:
        typer.echo(json.dumps([_entry(entry) for entry in entries], indent=1))
        return
    if not entries:
        _say("No release was charged yet.")
        return
    console = Console()
    if console.is_terminal and console.width < _WIDE_TERMINAL:  # a table would be cut in pieces
        for entry in entries:
            at, mechanism, weight = entry.at[:19].replace("T", " "), entry.mechanism, entry.weight
            promise = f"epsilon {entry.guarantee.epsilon:g}, delta {entry.guarantee.delta:g}"
            promise += "" if entry.period is None else f" of {entry.period}, {_reads(entry)}"
            label = f", {entry.label}" if entry.label else ""
            _say(f"{entry.number}: {promise}, {_state(entry)}; {mechanism} by {weight}, {at} UTC{label}")
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("number", "epsilon", "delta"):
        table.add_column(name, justify="right")
    for name in ("state", *([] if ledger.every is None else ["period", "rows"]), "mechanism", "weight", "time (UTC)"):
        table.add_column(name, no_wrap=True)
    table.add_column("label", overflow="fold")
    for entry in entries:
        cells = [
            str(entry.number),
            f"{entry.guarantee.epsilon:g}",
            f"{entry.guarantee.delta:g}",
            _state(entry),
            *([] if entry.period is None else [entry.period, _reads(entry)]),
            entry.mechanism,
            entry.weight,
            entry.at[:19].replace("T", " "),
            entry.label,
        ]
        table.add_row(*(Text(printable(cell)) for cell in cells))
    (console if console.is_terminal else Console(width=2 * _WIDE_TERMINAL)).print(table)


def verify(
    path: PathArgument,
    release: Annotated[
        list[Path] | None,
        typer.Option(help="A saved release that was charged to it; may be given again.", show_default=False),
    ] = None,
    head: Annotated[
        list[str] | None,
        typer.Option(help="A head that 'ledger show' printed earlier, NUMBER:DIGEST; may be given again."),
    ] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Check all of a ledger, and that it was not turned back since it was where releases and heads say."""
    from ..privacy import Ledger
    from ..releases import verify_ledger

    ledger = Ledger.open(path)
    found = verify_ledger(ledger, releases=release or [], heads=head or [])
    against = len(release or []) + len(head or [])
    if as_json:
        typer.echo(json.dumps({"whole": True, "charges": found.number, "compared_with": against, **found.to_dict()}))
    elif not quiet:
        _say(f"{path} is whole: {found.number} charges in an unbroken chain, none of them above the budget.")
        if against:
            _say(f"It was not turned back behind {against} of the releases or heads that were given.")
        else:
            _say("Whether an older copy was put in its place cannot be told: give --release or --head to compare with.")
        _say(f"head {found}")


def recover(
    path: PathArgument,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", help="Where to save the release (JSON); - for standard output.", show_default=False
        ),
    ],
    number: Annotated[int | None, typer.Option(help="Its number in the history. [default: the last finished]")] = None,
    period: PeriodOption = None,
    force: ForceOption = False,
    quiet: QuietOption = False,
) -> None:
    """Write a finished release out again, at no cost."""
    from .. import releases
    from ..privacy import Ledger

    check_apart("--output", output, path)
    write_release(releases.recover(Ledger.open(path, period=period), number), output, overwrite=force)
    if not quiet and not is_standard(output):
        _say(f"Saved to {output}.")


def check_apart(option: str, output: Path, ledger: Path) -> None:
    """Refuse to write over a ledger, or to a name that SQLite takes for its journal, and removes."""
    from ..privacy.ledger_file import journals_of

    if output.resolve() == ledger.resolve():
        raise UnwritableTarget(f"{option} {str(output)!r} would overwrite the ledger. Give another name.")
    if output.parent.resolve() / output.name in journals_of(ledger.parent.resolve() / ledger.name):
        raise UnwritableTarget(
            f"{option} {str(output)!r}: is the name of a journal of the ledger {str(ledger)!r}, so it would be "
            "removed. Give another name."
        )


def write_release(release: Release | GroupedRelease | Reach | GroupedReach, output: Path, *, overwrite: bool) -> None:
    """Save a release, or print it."""
    from ..export.documents import to_text

    if is_standard(output):
        print_json(to_text(release))
    else:
        release.save(output, overwrite=overwrite)


def save_release(
    release: Release | GroupedRelease | Reach | GroupedReach, output: Path, ledger: Path | None, *, overwrite: bool
) -> None:
    """Save a release that is paid for; if that fails, keep it under another name, or say where the ledger keeps it."""
    try:
        write_release(release, output, overwrite=overwrite)
        return
    except UnwritableTarget as error:
        if ledger is None and is_standard(output):
            raise
        reason = str(error)
    if ledger is not None:
        kept = f"kept in the ledger: crowdgram ledger recover {str(ledger)!r} -o FILE"
    else:  # a file of that name was made since the name was checked
        other = output.with_name(f"{output.stem}-{uuid.uuid4().hex[:8]}{output.suffix}")
        release.save(other)
        kept = f"saved as {str(other)!r}."
    raise UnwritableTarget(f"{reason} The release is {kept}")


def _figures(ledger: Ledger, entries: list[Entry]) -> dict[str, Any]:
    return {
        "budget": ledger.budget.to_dict(),
        "releases": len(entries),
        "unfinished": sum(not entry.finished for entry in entries),
        "composition": entries[0].composition if entries else None,
        "spent_epsilon": ledger.spent(),
        "plain_sum": {
            "epsilon": math.fsum(entry.guarantee.epsilon for entry in entries),
            "delta": math.fsum(entry.guarantee.delta for entry in entries),
        },
        "would_fit": _would_fit(ledger),
    }


def _would_fit(ledger: Ledger, *, last: bool = False) -> list[dict[str, Any]]:
    """The largest epsilon that would fit, by mechanism; or by the last of these, the default one, alone."""
    from ..mechanisms import Auto, Gaussian, Laplace, Mechanism, Request
    from ..releases import Charge, largest_epsilon

    request = Request("rows", None, lambda _: None)
    usual = replace(ledger.budget, delta=USUAL_PART * ledger.budget.delta)
    shown: list[Mechanism] = [Laplace(), *([Gaussian(), Auto()] if usual.delta > 0.0 else ())]
    asked = [(mechanism, mechanism.promised(usual)) for mechanism in (shown[-1:] if last else shown)]
    return [
        {
            "mechanism": mechanism.name,
            "delta": one.delta,
            # Few items set aside the most for looks, so that what fits for one fits for any number.
            "epsilon": largest_epsilon(ledger, Charge(one, mechanism, request, items=1)),
        }
        for mechanism, one in asked
    ]


def _entry(entry: Entry) -> dict[str, Any]:
    return {
        "number": entry.number,
        "time": entry.at,
        "label": entry.label,
        "mechanism": entry.mechanism,
        "weight": entry.weight,
        "guarantee": entry.guarantee.to_dict(),
        "state": _state(entry),
        "composition": entry.composition,
        "cost": entry.cost.to_dict(),
        **({} if entry.period is None else {"period": entry.period, "period_column": entry.period_column}),
    }


def _reads(entry: Entry) -> str:
    """By which column only rows of the period were read, or who answers for that."""
    return "by operator" if entry.period_column is None else f"by {entry.period_column}"


def _state(entry: Entry) -> str:
    return "finished" if entry.finished else "unfinished"


def _terms(ledger: Ledger) -> str:
    budget = ledger.budget
    return f"epsilon {budget.epsilon:g}, delta {budget.delta:g}, {budget.adjacency.value}"


def _digits(value: float) -> str:
    return f"{value:.3g}"


def _say(text: str) -> None:
    from rich.console import Console

    from .display import printable

    Console().print(printable(text), markup=False, highlight=False, soft_wrap=True)
