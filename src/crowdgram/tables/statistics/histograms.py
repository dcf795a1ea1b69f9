"""Histograms of users: one bin for each user."""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar, Protocol

from ...arrays import Integers
from ...errors import InvalidArgument
from ..relations import Relation, Value
from .base import Bound, BoundedSum, OneUser, Statistic, Vector, dense

if TYPE_CHECKING:
    from ..engines import Engine

__all__ = ["UserHistogram", "UsersByItems", "UsersByRows", "bin_of", "check_edges", "user_histogram"]


class HasUsers(Protocol):
    """A view with one row for each user: `Counts` and `UserTotals` have a column `rows`, `Presence` one `size`."""

    @property
    def engine(self) -> Engine: ...
    @property
    def users(self) -> Relation: ...


@dataclass(frozen=True)
class UserHistogram(Statistic[HasUsers, BoundedSum[Integers]]):
    """How many users have a number in (edges[j-1], edges[j]]; one bin a user, the last open.

    Bound: one entry, of 1.
    """

    edges: Sequence[int]

    column: ClassVar[str]
    """Where a view's users have the number."""

    def __post_init__(self) -> None:
        check_edges(self.edges)

    @property
    def bound(self) -> Bound:
        return Bound(1, entries=1)

    def sum(self, view: HasUsers) -> BoundedSum[Integers]:
        return BoundedSum(user_histogram(view.engine, view.users, view.users[self.column], self.edges), self.bound)

    def of_user(self, user: OneUser) -> Vector:
        return {bin_of(self.number(user), self.edges): 1}

    @abstractmethod
    def number(self, user: OneUser) -> int:
        """The number that a user is counted by."""


class UsersByRows(UserHistogram):
    """How many users have m_u in (edges[j-1], edges[j]], with m_u their number of rows."""

    column = "rows"

    def number(self, user: OneUser) -> int:
        return user.rows


class UsersByItems(UserHistogram):
    """How many users have d_u in (edges[j-1], edges[j]], with d_u their number of items."""

    column = "size"

    def number(self, user: OneUser) -> int:
        return len(user.counts)


def check_edges(edges: Sequence[float]) -> None:
    """Refuse edges that do not increase."""
    if len(edges) < 1 or any(low >= high for low, high in pairwise(edges)):
        raise InvalidArgument("edges: need to be strictly increasing.", argument="edges")


def bin_of(value: float, edges: Sequence[float]) -> int:
    """The bin (edges[j-1], edges[j]] of a value; the last bin is open."""
    return min(bisect_left(edges, value), len(edges) - 1)


def user_histogram(engine: Engine, table: Relation, value: Value, edges: Sequence[float]) -> Integers:
    """How many rows of `table`, one a user, have `value` in (edges[j-1], edges[j]]; the last bin is open.

    By comparisons: a join with the edges gives the same numbers, but takes longer, in DuckDB for distances and in Spark
    for all values.
    """
    found = engine.count_by_bin(table.select(value=value), edges, "counting users by bin")
    return dense(found, "total", len(edges))
