"""The class of all commands: an option is given once, and the help lists the mechanisms. Options of many commands."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption

from .plain_values import with_plain_values

__all__ = ["MECHANISM", "ForceOption", "QuickGroup", "QuietOption", "StrictCommand", "mechanisms"]

MECHANISM = "MECHANISM"
"""How the help of an option shows a mechanism's name; in the help itself it is the list of them."""

ForceOption = Annotated[bool, typer.Option("--force", help="Overwrite files that are there.")]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but warnings and errors.")]


def mechanisms() -> list[str]:
    """The names of all mechanisms: loaded here, so that other commands start without them."""
    from ..releases.registry import MECHANISMS

    return list(MECHANISMS)


class QuickGroup(TyperGroup):
    """A group of commands whose own options are converted without pydantic."""

    def get_params(self, ctx: Any) -> list[Any]:
        return with_plain_values(super().get_params(ctx))


class StrictCommand(TyperCommand):
    """A command that refuses an option given twice if it takes one value: the first would be ignored silently."""

    def get_params(self, ctx: Any) -> list[Any]:
        return with_plain_values(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        # A shell that completes a command parses what is there of it.
        order = [] if ctx.resilient_parsing else self.make_parser(ctx).parse_args(args=list(args))[2]
        for place, one in enumerate(order):
            if isinstance(one, TyperOption) and not one.multiple and not one.is_flag and one in order[:place]:
                ctx.fail(f"{one.opts[0]} is given more than once. Give it once.")
        return super().parse_args(ctx, args)

    def get_help(self, ctx: Any) -> str:
        """The help, with mechanisms as they are registered, and dots for what may be given again."""
        for one in self.params:
            if not isinstance(one, TyperOption):
                continue
            if one.metavar == MECHANISM:
                one.metavar = f"[{'|'.join(mechanisms())}]"
            elif one.metavar is None and one.multiple:
                one.metavar = "<value>..."
        return super().get_help(ctx)
