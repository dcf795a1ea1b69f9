"""What is shown while a command works: the stage, the share of the work that is done, and on a terminal the time.

The share is a constant of each stage, so it is the same for all tables. Elapsed time does depend on the table. Whoever
watches the terminal runs the release and sees how long it takes in any case. So it is shown there, and erased at the
end; lines that are not for a terminal, which end in logs, have none.
"""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from ..stages import Stage

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

__all__ = ["Stages"]

_LINE = "crowdgram: {stage}{share}"


class Stages:
    """Shows each stage as it starts: a bar on a terminal, plain lines elsewhere; nothing if `quiet`.

    console: of standard error; whatever else is printed there meanwhile goes through it, so that no bar cuts it. Made
    here if none is given; if `quiet`, only when there is something to say, such as a warning: rich is slow to load.
    passed: the stages so far. written: the files that the command has written so far.
    """

    def __init__(self, console: Console | None = None, *, quiet: bool = False) -> None:
        self._console = console if quiet or console is not None else _standard_error()
        self._quiet = quiet
        self._bar: Progress | None = None
        self.passed: list[str] = []
        self.written: list[Path] = []

    @property
    def console(self) -> Console:
        self._console = self._console or _standard_error()
        return self._console

    def __enter__(self) -> Stages:
        if not self._quiet and self.console.is_terminal:
            from rich.progress import (
                BarColumn,
                Progress,
                SpinnerColumn,
                TaskProgressColumn,
                TextColumn,
                TimeElapsedColumn,
            )

            self._bar = Progress(
                SpinnerColumn(),
                TextColumn("{task.description}", markup=False),
                BarColumn(bar_width=20),
                TaskProgressColumn(),
                TimeElapsedColumn(),
                console=self.console,
                transient=True,
            )
            self._task = self._bar.add_task("starting", total=None)
            self._bar.start()
        return self

    def __call__(self, stage: str, done: float | None = None) -> None:
        """A stage starts. done: the share of all work that is done by then, if it is known: that of a `Stage` is."""
        self.passed.append(stage)
        if isinstance(stage, Stage):
            done = stage.done
        if self._bar is not None:
            total = None if done is None else 1.0
            self._bar.update(self._task, description=str(stage), completed=done or 0.0, total=total)
        elif not self._quiet:
            share = "" if done is None else f" ({done:.0%})"
            self.console.print(_LINE.format(stage=stage, share=share), markup=False, highlight=False, soft_wrap=True)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()


def _standard_error() -> Console:
    from rich.console import Console

    return Console(stderr=True, emoji=False)
