"""What a person sees: stages while it works, then a table and one plain sentence.

Stages speak of what is being done, never of sizes or times: both depend on the private table.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from types import TracebackType

from rich.console import Console
from rich.status import Status
from rich.table import Table
from rich.text import Text

from ..releases import Release
from ..releases.release import Item

__all__ = ["Stages", "printable", "show_release"]

_BAR = 24


class Stages:
    """Shows each stage as it starts: a spinner on a terminal, plain lines elsewhere. On standard error."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._status: Status | None = None

    def __enter__(self) -> Stages:
        if self._console.is_terminal:
            self._status = self._console.status("starting")
            self._status.start()
        return self

    def __call__(self, stage: str) -> None:
        if self._status is not None:
            self._status.update(stage)
        else:
            self._console.print(f"crowdgram: {stage}", markup=False, highlight=False)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._status is not None:
            self._status.stop()


def show_release(console: Console, release: Release, n: int, truth: Mapping[Item, float] | None = None) -> None:
    """The top items with intervals, how it was made, and the guarantee in one plain sentence."""
    shown = release.top(n)
    block = "█" if console.encoding.startswith("utf") else "#"
    widest = max((one.upper for one in shown), default=1.0) or 1.0
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("item", overflow="fold", max_width=40)
    table.add_column("probability", justify="right")
    table.add_column(f"{release.confidence:.0%} interval", justify="right")
    if truth is not None:
        table.add_column("truth", justify="right")
    table.add_column("")
    for one in shown:
        cells = [
            Text(printable(str(one.item))),
            Text(f"{one.probability:.5f}"),
            Text(f"{one.lower:.5f} to {one.upper:.5f}"),
        ]
        if truth is not None:
            cells.append(Text(f"{truth.get(one.item, 0.0):.5f}"))
        cells.append(Text(block * round(_BAR * one.probability / widest), style="blue"))
        table.add_row(*cells)
    console.print(table)
    rest = len(release) - len(shown)
    if rest > 0:
        console.print(f"and {rest} more items", markup=False, highlight=False)
    console.print()
    details = ", ".join(f"{name}={value}" for name, value in release.parameters.items())
    question = "share of all rows" if release.weight == "rows" else "average user's distribution"
    console.print(
        f"The {question}, by mechanism {printable(release.mechanism)} ({printable(details)}).",
        markup=False,
        highlight=False,
        soft_wrap=not console.is_terminal,
    )
    for sentence in (release.about_items(), release.guarantee.sentence()):
        if sentence is not None:
            console.print(printable(sentence), markup=False, highlight=False, soft_wrap=not console.is_terminal)


def printable(text: str) -> str:
    """`text` without what could steer a terminal: control, format and surrogate characters become visible escapes."""
    return "".join(
        char.encode("unicode_escape").decode() if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp") else char
        for char in text
    )
