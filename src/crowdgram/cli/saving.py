"""The end of a command that makes a release: it is saved, and shown."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from . import ledgers
from .streams import is_standard

if TYPE_CHECKING:
    from ..results import GroupedReach, GroupedRelease, Reach, Release
    from ..results.values import Measure
    from .asking import Asked

__all__ = ["save_made", "show_made"]


def save_made(
    made: Release | GroupedRelease | Reach | GroupedReach,
    asked: Asked,
    output: Path,
    ledger: Path | None,
    *,
    force: bool,
) -> None:
    """Save a release that is paid for. From here on an interrupt says that it is there."""
    ledgers.save_release(made, output, ledger, overwrite=force)
    asked.stages.written.append(output)


def show_made(
    made: Release | GroupedRelease | Reach | GroupedReach,
    output: Path,
    top: int,
    measure: Measure = "shares",
    *,
    quiet: bool,
) -> None:
    """Show a release that is saved, and where; nothing if that is asked for."""
    if quiet:
        return
    from rich.console import Console

    from .display import printable, say, show

    # On standard output is JSON, and nothing else. A name such as :cat: is shown as it is.
    console = Console(stderr=is_standard(output), emoji=False)
    show(console, made, top, measure)
    if not is_standard(output):
        say(console, f"Saved to {printable(str(output))}.")
