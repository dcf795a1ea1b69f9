"""The option `--measure` of several commands."""

from __future__ import annotations

from enum import StrEnum

import typer

__all__ = ["MEASURE", "MeasureChoice"]


class MeasureChoice(StrEnum):
    SHARES = "shares"
    COUNTS = "counts"


MEASURE = typer.Option(help="shares: of all; counts: of rows, or of users, with the total's error.")
