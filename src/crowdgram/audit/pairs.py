"""Neighbouring tables that are hard for a mechanism. They are made here; no user's table is read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from ..privacy import Adjacency
from ..tables import ROW_LIMIT, Counts, Placed, known_counts
from .caching_engine import CachingEngine

__all__ = ["Pair", "RowPair", "Tables", "open_tables", "pairs_for"]

Users = Mapping[int, Mapping[int, int]]
"""For each user, the rows of each item."""

OTHER_USERS = 200
TARGET = OTHER_USERS


class Tables(Protocol):
    """Two neighbouring tables, whatever a mechanism takes for one."""

    @property
    def name(self) -> str: ...

    def place(self, first: CachingEngine, second: CachingEngine) -> tuple[Any, Any]:
        """The two tables, each in its engine."""
        ...


@dataclass(frozen=True)
class Pair:
    """Two tables over items 0..items-1 that differ in all rows of one user."""

    name: str
    items: int
    first: Users
    second: Users

    def __post_init__(self) -> None:
        changed = {
            user for user in {*self.first, *self.second} if dict(self.first.get(user, {})) != self.second.get(user, {})
        }
        assert len(changed) == 1

    def place(self, first: CachingEngine, second: CachingEngine) -> tuple[Counts, Counts]:
        return (
            known_counts(first, _cells(self.first), self.items),
            known_counts(second, _cells(self.second), self.items),
        )


@dataclass(frozen=True)
class RowPair:
    """Two tables of rows, as a release takes them, that differ in all rows of one user.

    columns: user, then whatever the release asks for; whole numbers all. dates: those that are days since 1970. texts:
    those that are written as text in the table.
    """

    name: str
    columns: tuple[str, ...]
    crowd: tuple[tuple[int, ...], ...]
    first: tuple[tuple[int, ...], ...]
    second: tuple[tuple[int, ...], ...] = ()
    dates: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        changed = {row[0] for row in (*self.first, *self.second)}
        assert len(changed) == 1
        assert not changed & {row[0] for row in self.crowd}

    def place(self, first: CachingEngine, second: CachingEngine) -> tuple[Placed, Placed]:
        return (
            Placed(first, first.upload(self._rows(self.first), "placing rows")),
            Placed(second, second.upload(self._rows(self.second), "placing rows")),
        )

    def _rows(self, own: tuple[tuple[int, ...], ...]) -> pa.Table:
        rows = (*self.crowd, *own)
        columns = {name: pa.array([row[place] for row in rows], pa.int64()) for place, name in enumerate(self.columns)}
        columns |= {name: columns[name].cast(pa.int32()).cast(pa.date32()) for name in self.dates}
        columns |= {name: columns[name].cast(pa.string()) for name in self.texts}
        return pa.table(columns)


def pairs_for(adjacency: Adjacency) -> tuple[Pair, ...]:
    """The pairs that a mechanism is attacked on.

    A user alone, whom no crowd hides; a user at one corner of two items, in a crowd at the middle, so that the
    deviations from it point in opposite directions; a user far beyond every cap; and a user of one item in a crowd of
    many items, who is at the radius whatever it is.
    """
    even = _crowd({0: 10, 1: 10})
    spread = _crowd(dict.fromkeys(range(12), 2))
    corner, heavy, loner = {0: 20}, {0: 2 * ROW_LIMIT}, {0: 24}
    if adjacency is Adjacency.ADD_REMOVE:
        return (
            Pair("a user alone", 2, {0: corner}, {}),
            Pair("a user at a corner", 2, {**even, TARGET: corner}, even),
            Pair("a user beyond every cap", 2, {**even, TARGET: heavy}, even),
            Pair("a user of one item among many", 12, {**spread, TARGET: loner}, spread),
        )
    return (
        Pair("a user alone", 2, {0: corner}, {0: {1: 20}}),
        Pair("a user from corner to corner", 2, {**even, TARGET: corner}, {**even, TARGET: {1: 20}}),
        Pair("a user from beyond every cap to one row", 2, {**even, TARGET: heavy}, {**even, TARGET: {1: 1}}),
        Pair("a user of one item among many", 12, {**spread, TARGET: loner}, {**spread, TARGET: {1: 24}}),
    )


@contextmanager
def open_tables(pair: Tables) -> Iterator[tuple[Any, Any]]:
    """The two tables, each in a caching engine of its own."""
    with CachingEngine.open() as first, CachingEngine.open() as second:
        yield pair.place(first, second)


def _crowd(rows: Mapping[int, int]) -> dict[int, Mapping[int, int]]:
    return dict.fromkeys(range(OTHER_USERS), rows)


def _cells(users: Users) -> pa.Table:
    cells = [(user, item, n) for user, rows in users.items() for item, n in rows.items()]
    columns = zip(("user", "idx", "n"), range(3), strict=True)
    return pa.table({name: pa.array([cell[place] for cell in cells], pa.int64()) for name, place in columns})
