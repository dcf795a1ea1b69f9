"""Columns as the command line has them: by name, as expressions, or in bins."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..errors import InvalidArgument

__all__ = ["Column", "names_of", "read_bins", "read_column", "read_user"]

Column = str | dict[str, object]


def read_column(text: str) -> Column:
    """A column by name, or NAME=EXPRESSION."""
    name, equals, expression = text.partition("=")
    return {name.strip(): expression} if equals else text


def read_user(text: str) -> Column:
    """As `read_column`, or a call of a function, which needs no name: the user's is shown nowhere."""
    return {"user": text} if re.fullmatch(r"\s*\w+\(.*\)\s*", text, re.DOTALL) else read_column(text)


def read_bins(columns: list[Column], by: Column | None, given: Sequence[str]) -> tuple[list[Column], Column | None]:
    """The columns and the groups, with bins for those that --bins names. Without a name, it is the only item column."""
    from ..tables import Bins

    named: dict[str, object] = {}
    for one in (*columns, *([] if by is None else [by])):
        # A name by itself is that of a column: in quotes it is an expression, whatever it holds.
        named |= {one: '"' + one.replace('"', '""') + '"'} if isinstance(one, str) else one
    found: dict[str, object] = {}
    for text in given:
        name, equals, listed = text.rpartition("=")
        name = name.strip() if equals or len(columns) > 1 else names_of(columns[0])[0]
        if name not in named or name in found:
            raise InvalidArgument(
                f"--bins {text!r}: needs COLUMN=EDGES, once for each column of {', '.join(named)} that is binned.",
                argument="--bins",
            )
        try:
            edges = tuple(float(edge) for edge in listed.split(","))
        except ValueError:
            raise InvalidArgument(
                f"--bins {text!r}: needs numbers with commas between them, such as 0,18,30,65.", argument="--bins"
            ) from None
        found[name] = Bins(named[name], edges)

    def put(one: Column) -> Column:
        return {name: found[name] for name in names_of(one)} if set(names_of(one)) <= set(found) else one

    return [put(one) for one in columns], None if by is None else put(by)


def names_of(column: Column) -> list[str]:
    return [column] if isinstance(column, str) else list(column)
