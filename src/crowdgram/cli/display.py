"""The terminal: a table, and the sentences about it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..escaping import printable
from ..present.reach import QUESTION, largest_groups, reach_sentences
from ..present.selection import figures
from ..present.wording import INNER_PARAMETERS, number, sentences
from ..results import GroupedReach, GroupedRelease, Other, Reach, Release
from ..results.values import Measure, texts_of, whole_days

__all__ = ["printable", "say", "show", "show_entropy", "show_release"]

_BAR = 20
_MOST_GROUPS = 20


def say(console: Console, text: str) -> None:
    """One line as it is, whatever is in it."""
    console.print(text, markup=False, emoji=False, highlight=False, soft_wrap=True)


def show_entropy(console: Console, release: Release | GroupedRelease) -> None:
    """The entropy of a release, or of every group."""
    parts = [("", release)] if isinstance(release, Release) else [(f" of {one}", release[one]) for one in release]
    for name, part in parts:
        found = part.entropy()
        interval = f"{found.confidence:.0%} interval {found.lower:.3f} to {found.upper:.3f}"
        bits = f"{number(found, 3)} bits" if found.is_known else "unknown"
        say(console, f"Entropy{printable(name)}: {bits} ({interval}).")


def show(
    console: Console, release: Release | GroupedRelease | Reach | GroupedReach, n: int, measure: Measure = "shares"
) -> None:
    """A release, or every group of a grouped one; or a reach, which has no measure."""
    if isinstance(release, Reach):
        _show_reach(console, release, n)
    elif isinstance(release, GroupedReach):
        _show_reach_groups(console, release, n)
    elif isinstance(release, Release):
        show_release(console, release, n, measure=measure)
    else:
        _show_groups(console, release, n, measure)


def _show_reach(console: Console, reach: Reach, n: int) -> None:
    _show_reached(console, reach, n)
    console.print()
    _show_reach_promise(console, reach)


def _show_reach_groups(console: Console, grouped: GroupedReach, n: int) -> None:
    for group in largest_groups(grouped, _MOST_GROUPS):
        own = grouped[group]
        users = f"{own.users.value:,.0f} users ({own.users.lower:,.0f} to {own.users.upper:,.0f})"
        (name,) = texts_of(group, whole_days(grouped.groups))
        console.print(Text(printable(f"{grouped.by} = {name}, {users}"), style="bold"), soft_wrap=True)
        _show_reached(console, own, n)
        if own.too_little:
            say(console, f"mostly noise: predicted l1 error {own.predicted_l1_error:,.0f} users")
        console.print()
    rest = len(grouped) - _MOST_GROUPS
    if rest > 0:
        console.print(f"and {rest} more {_plural('group', rest)}", markup=False, highlight=False)
    _show_reach_promise(console, grouped)


def _show_reached(console: Console, reach: Reach, n: int) -> None:
    shown, rest = reach.top(n), len(reach) - min(n, len(reach))
    if shown:
        table = Table(box=None, pad_edge=False, header_style="bold")
        for name in reach.heads:
            table.add_column(Text(printable(name)), overflow="fold", max_width=40)
        for name in ("users", f"{reach.confidence:.0%} interval", "share of users", f"{reach.confidence:.0%} interval"):
            table.add_column(name, justify="right")
        for one in shown:
            table.add_row(
                *(Text(printable(text)) for text in reach.texts(one.item)),
                f"{one.users:,.0f}",
                f"{one.lower:,.0f} to {one.upper:,.0f}",
                f"{one.share:.4f}",
                f"{one.share_lower:.4f} to {one.share_upper:.4f}",
            )
        console.print(table)
    if rest > 0:
        more = " more" if shown else ""
        console.print(f"{'and ' if shown else ''}{rest}{more} {_plural('item', rest)}", markup=False, highlight=False)


def _show_reach_promise(console: Console, reach: Reach | GroupedReach) -> None:
    told = {name: value for name, value in reach.parameters.items() if name not in INNER_PARAMETERS}
    details = ", ".join(f"{name}={value}" for name, value in told.items())
    of_each = f", for each {reach.by}" if isinstance(reach, GroupedReach) else ""
    _sentence(console, f"{QUESTION}{of_each} ({details}).")
    for sentence in (*reach_sentences(reach), reach.guarantee.sentence()):
        _sentence(console, sentence)


def _show_groups(console: Console, release: GroupedRelease, n: int, measure: Measure) -> None:
    # The largest, in the order in which they were given; or, if they were found, of their values.
    largest = {one.item for one in release.shares.top(_MOST_GROUPS)}
    for group in (release.shares.estimate(item) for item in release.shares if item in largest):
        (name,) = release.shares.texts(group.item)
        heading = f"{release.by} = {name}, {group.probability:.5f} of all ({group.lower:.5f} to {group.upper:.5f})"
        console.print(Text(printable(heading), style="bold"), soft_wrap=True)
        if not isinstance(group.item, Other):  # the rows of groups that were not found
            own = release[group.item]  # type: ignore[index]
            _show_items(console, own, n, None, measure)
            if own.too_little:
                say(console, f"mostly noise: predicted l1 error {own.predicted_l1_error:.2f}, of at most 2")
        console.print()
    rest = len(release.shares) - _MOST_GROUPS
    if rest > 0:
        console.print(f"and {rest} more {_plural('group', rest)}", markup=False, highlight=False)
    _show_promise(console, release.joint, measure)


def show_release(
    console: Console,
    release: Release,
    n: int,
    truth: Mapping[Any, float] | None = None,
    measure: Measure = "shares",
) -> None:
    """The top items with intervals, how it was made, and the guarantee in one plain sentence."""
    _show_items(console, release, n, truth, measure)
    console.print()
    _show_promise(console, release, measure)


def _show_items(
    console: Console, release: Release, n: int, truth: Mapping[Any, float] | None, measure: Measure
) -> None:
    shown = figures(release, release.top(n), measure)
    heading, form = ("probability", ".5f") if measure == "shares" else ("count", ",.0f")
    rest = len(release) - len(shown)
    if not shown:
        console.print(f"{rest} {_plural('item', rest)}", markup=False, highlight=False)
        return
    block = "█" if console.encoding.startswith("utf") else "#"
    widest = max((one.upper for one in shown), default=1.0) or 1.0
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in release.heads:
        table.add_column(Text(printable(name)), overflow="fold", max_width=40)
    table.add_column(heading, justify="right")
    table.add_column(f"{release.confidence:.0%} interval", justify="right")
    if truth is not None:
        table.add_column("truth", justify="right")
    table.add_column("")
    for one in shown:
        cells = [
            *(Text(printable(text)) for text in release.texts(one.item)),
            Text(f"{one.probability:{form}}"),
            Text(f"{one.lower:{form}} to {one.upper:{form}}"),
        ]
        if truth is not None:
            cells.append(Text(f"{truth.get(one.item, 0.0):.5f}"))
        cells.append(Text(block * round(_BAR * one.probability / widest), style="blue"))
        table.add_row(*cells)
    console.print(table)
    if rest > 0:
        console.print(f"and {rest} more {_plural('item', rest)}", markup=False, highlight=False)


def _plural(word: str, number: int) -> str:
    return word if number == 1 else f"{word}s"


def _show_promise(console: Console, release: Release, measure: Measure) -> None:
    shown = {name: value for name, value in release.parameters.items() if name not in INNER_PARAMETERS}
    details = ", ".join(f"{name}={value}" for name, value in shown.items())
    question = "share of all rows" if release.weight == "rows" else "average user's distribution"
    if measure == "counts":
        question = f"number of {release.weight}"
    _sentence(console, f"The {question}, by mechanism {release.mechanism} ({details}).")
    if measure == "counts":
        _sentence(console, release.counts().about)
    for sentence in (*sentences(release), release.guarantee.sentence()):
        _sentence(console, sentence)


def _sentence(console: Console, text: str) -> None:
    console.print(printable(text), markup=False, highlight=False, soft_wrap=not console.is_terminal)
