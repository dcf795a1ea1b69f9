"""The command `explore`: a page on this machine to plan, release and read a report."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = ["explore"]


def explore(
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port to listen on. [default: any that is free]", show_default=False)
    ] = 0,
) -> None:
    """Open a page on this machine to plan a release, make it and read its report, without writing code."""
    from rich.console import Console

    from ..explore import serve

    console = Console()

    def ready(address: str) -> None:
        # No browser is started: its address would be seen in the list of processes by every user of the machine.
        said = "Open this address in a browser on this machine. It works once; Ctrl-C ends the page."
        console.print(f"{said}\n{address}", markup=False, highlight=False, soft_wrap=True)

    serve(port, ready=ready)
