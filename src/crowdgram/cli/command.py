"""The class of all commands: an option is given once, and the help lists the mechanisms."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand, TyperOption

__all__ = ["MECHANISM", "StrictCommand"]

MECHANISM = "MECHANISM"
"""How the help of an option shows a mechanism's name; in the help itself it is the list of them."""


class StrictCommand(TyperCommand):
    """A command that refuses an option given twice if it takes one value: the first would be ignored silently."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        _, _, order = self.make_parser(ctx).parse_args(args=list(args))
        for place, one in enumerate(order):
            if isinstance(one, TyperOption) and not one.multiple and not one.is_flag and one in order[:place]:
                ctx.fail(f"{one.opts[0]} is given more than once. Give it once.")
        return super().parse_args(ctx, args)

    def get_help(self, ctx: Any) -> str:
        """The help, with mechanisms as they are registered: loaded here, so that other commands start without them."""
        for one in self.params:
            if isinstance(one, TyperOption) and one.metavar == MECHANISM:
                from ..releases.registry import MECHANISMS

                one.metavar = f"[{'|'.join(MECHANISMS)}]"
        return super().get_help(ctx)
