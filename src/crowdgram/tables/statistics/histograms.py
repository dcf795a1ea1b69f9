"""Histograms of users: one bin for each user."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Protocol

from ...arrays import Integers
from ...errors import InvalidArgument
from .base import Bound, BoundedSum, OneUser, Statistic, Vector, dense

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from ..engines import Engine

__all__ = ["UsersByRows", "bin_of", "check_edges", "user_histogram"]


class HasRows(Protocol):
    """A view whose `users` have a column `rows`: `Counts`, or `UserTotals`."""

    @property
    def engine(self) -> Engine: ...
    @property
    def users(self) -> ir.Table: ...


@dataclass(frozen=True)
class UsersByRows(Statistic[HasRows, BoundedSum[Integers]]):
    """How many users have m_u in (edges[j-1], edges[j]]; one bin a user, the last open.

    Bound: one entry, of 1.
    """

    edges: Sequence[int]

    def __post_init__(self) -> None:
        check_edges(self.edges)

    @property
    def bound(self) -> Bound:
        return Bound(1, entries=1)

    def sum(self, view: HasRows) -> BoundedSum[Integers]:
        return BoundedSum(user_histogram(view.engine, view.users, view.users.rows, self.edges), self.bound)

    def of_user(self, user: OneUser) -> Vector:
        return {bin_of(user.rows, self.edges): 1}


def check_edges(edges: Sequence[float]) -> None:
    """Refuse edges that do not increase."""
    if len(edges) < 1 or any(low >= high for low, high in pairwise(edges)):
        raise InvalidArgument("edges: need to be strictly increasing.", argument="edges")


def bin_of(value: float, edges: Sequence[float]) -> int:
    """The bin (edges[j-1], edges[j]] of a value; the last bin is open."""
    return min(bisect_left(edges, value), len(edges) - 1)


def user_histogram(engine: Engine, table: ir.Table, value: Any, edges: Sequence[float]) -> Integers:
    """How many rows of `table`, one a user, have `value` in (edges[j-1], edges[j]]; the last bin is open.

    By comparisons: a join with the edges gives the same numbers, but takes longer, in DuckDB for distances and in Spark
    for all values.
    """
    found = engine.count_by_bin(table.select(value=value), edges, "counting users by bin")
    return dense(found, "total", len(edges))
