"""Numbers by public intervals, so that a numeric column can be an item or a group."""

from __future__ import annotations

import math
import numbers
import operator
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from ..errors import InvalidArgument

__all__ = ["MOST_EDGES", "Bins"]

MOST_EDGES = 257
"""Each edge is one more comparison for every row."""

OUTSIDE = "outside"
"""What a number outside the edges becomes. No interval is called that."""

_EXACT = 2**53
"""Integers up to here are doubles."""


@dataclass(frozen=True)
class Bins:
    """The intervals between edges, each with its lower edge and without its upper one: "18 to below 30".

    values: what is put into intervals, an expression of one row that gives numbers. edges: at least two numbers, public
    and strictly increasing.

    The intervals are the domain of the item, or the list of the groups. Numbers below the first edge, and from the last
    edge on, are outside of it, infinities among them. What is no number (null, NaN) is null.
    """

    values: object
    edges: tuple[float, ...]

    def __post_init__(self) -> None:
        given: object = self.edges
        if isinstance(given, str | bytes) or not isinstance(given, Iterable):
            raise _refused(given)
        found = [_edge(one) for one in given]
        edges = tuple(one for one in found if one is not None)
        if len(edges) < len(found) or len(edges) < 2 or any(low >= high for low, high in pairwise(edges)):
            raise _refused(given)
        if len(edges) > MOST_EDGES:
            raise InvalidArgument(
                f"edges: has {len(edges)} numbers, and may have {MOST_EDGES}. Give wider intervals.", argument="edges"
            )
        object.__setattr__(self, "edges", edges)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the intervals, in their order."""
        return tuple(f"{low!r} to below {high!r}" for low, high in pairwise(self.edges))

    def place(self, value: Any) -> Any:
        """The interval of a number of a row, by functions of `row_functions`: by the first edge that is above it.

        Engines order NaN above infinity, so it is below no edge and not finite or infinite: null.
        """
        from . import row_functions as row  # it loads Ibis, which few releases need

        limits = [row.constant(one, "integer" if isinstance(one, int) else "real") for one in self.edges]
        arms = [
            (row.compare(operator.lt, value, limit), row.constant(name, "string"))
            for limit, name in zip(limits, (OUTSIDE, *self.names), strict=True)
        ]
        above = row.compare(operator.le, value, row.constant(math.inf, "real"))
        return row.choose([*arms, (above, row.constant(OUTSIDE, "string"))], row.constant(None, "string"))


def _edge(given: object) -> float | None:
    """A finite number, as an integer if it is a whole one that doubles hold; None if it is not finite or no number."""
    if isinstance(given, bool) or not isinstance(given, numbers.Real):
        return None
    try:
        edge = float(given)
    except OverflowError:
        return None
    if not math.isfinite(edge):
        return None
    return int(edge) if edge.is_integer() and abs(edge) <= _EXACT else edge


def _refused(edges: object) -> InvalidArgument:
    return InvalidArgument(
        f"edges={edges!r}: needs at least two finite numbers, each above the one before, such as [0, 18, 30, 65].",
        argument="edges",
    )
