"""Commands whose options are given once: of two, the first would be passed over in silence."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand, TyperOption

__all__ = ["Once"]


class Once(TyperCommand):
    """A command that refuses an option for one value which is given again."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        _, _, order = self.make_parser(ctx).parse_args(args=list(args))
        for place, one in enumerate(order):
            if isinstance(one, TyperOption) and not one.multiple and not one.is_flag and one in order[:place]:
                ctx.fail(f"{one.opts[0]} is given more than once. Give it once.")
        return super().parse_args(ctx, args)
