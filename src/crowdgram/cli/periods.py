"""Ledgers with periods on the terminal: what each period has left, and what all of them mean for one user."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

    from ..privacy import Entry, Ledger

__all__ = ["EveryChoice", "period_figures", "show_periods", "whole_user"]

_MOST_PERIODS = 24


class EveryChoice(StrEnum):
    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    QUARTER = "quarter"
    YEAR = "year"


def whole_user(ledger: Ledger, entries: Sequence[Entry]) -> list[tuple[str, str]]:
    """What is promised to a user who is in all periods used so far, and who answers for the rows that were read."""
    figures = _whole_user(ledger)
    promised, drawn = figures["promised"], figures["drawn"]
    periods = "the 1 period" if figures["periods"] == 1 else f"all {figures['periods']} periods"
    said = f"in {periods} used: epsilon {promised['epsilon']:g}, delta {promised['delta']:g} at most"
    if ledger.overall is not None:
        said = f"in all periods: epsilon {promised['epsilon']:g}, delta {promised['delta']:g} at most"
    if drawn["epsilon"] is not None:
        said += f"; by what was drawn, about epsilon {drawn['epsilon']:.3g} at delta {drawn['delta']:g}"
    lines = [("whole user", said)]
    unchecked = [str(entry.number) for entry in entries if entry.period_column is None]
    if unchecked:
        which = f"release {unchecked[0]}" if len(unchecked) == 1 else f"{len(unchecked)} of {len(entries)} releases"
        lines.append(("rows", f"{which} had no period column: the operator answers for the rows read"))
    return lines


def period_figures(ledger: Ledger, entries: Sequence[Entry], spent: Mapping[str, float]) -> dict[str, Any]:
    """The figures of a ledger with periods, for JSON. What would fit is for `--period` to say: it takes a while."""
    return {
        "budget": ledger.budget.to_dict(),
        "every": ledger.every,
        "overall": None if ledger.overall is None else ledger.overall.to_dict(),
        "releases": len(entries),
        "unfinished": sum(not entry.finished for entry in entries),
        "without_period_column": sum(entry.period_column is None for entry in entries),
        "whole_user": _whole_user(ledger),
        "periods": [
            {
                "period": name,
                "releases": sum(entry.period == name for entry in entries),
                "unfinished": sum(entry.period == name and not entry.finished for entry in entries),
                "spent_epsilon": epsilon,
            }
            for name, epsilon in spent.items()
        ],
    }


def show_periods(
    console: Console,
    entries: Sequence[Entry],
    spent: Mapping[str, float],
    would_fit: Callable[[str], dict[str, Any]],
) -> None:
    """A line for each of the last periods: its releases, what they spent, what would fit."""
    from rich.table import Table
    from rich.text import Text

    from .display import say

    shown = list(spent)[-_MOST_PERIODS:]
    if len(shown) < len(spent):
        say(console, f"{len(spent) - len(shown)} earlier periods, then")
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("period", "releases", "spent", "would fit"):
        table.add_column(name, overflow="fold", justify="right" if name == "releases" else "left")
    for name in shown:
        own = [entry for entry in entries if entry.period == name]
        fits = would_fit(name)
        unfinished = sum(not entry.finished for entry in own)
        number = f"{len(own)}, {unfinished} unfinished" if unfinished else str(len(own))
        fitting = f"epsilon {fits['epsilon']:g} by {fits['mechanism']}" if fits["epsilon"] else "nothing"
        table.add_row(*map(Text, (name, number, f"epsilon {spent[name]:.3g}", fitting)))
    console.print(table)


def _whole_user(ledger: Ledger) -> dict[str, Any]:
    """For a user who is in all periods: what is promised, and what the draws compose to.

    Promised: the overall limit; or else the sum over the periods that were used (docs/proofs/ledger.md, Theorem 6).
    """
    periods = len(ledger.periods())
    drawn = ledger.spent_overall()
    promised = {"epsilon": periods * ledger.budget.epsilon, "delta": periods * ledger.budget.delta}
    if ledger.overall is not None:
        promised = {"epsilon": ledger.overall.epsilon, "delta": ledger.overall.delta}
    return {
        "periods": periods,
        "promised": promised,
        "drawn": {"epsilon": None if math.isinf(drawn) else drawn, "delta": (ledger.overall or ledger.budget).delta},
    }
