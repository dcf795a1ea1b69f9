"""How many items and rows users have, before any item is listed, and counts of a few items of each.

For tables without a public domain whose users have few items each. As in `item_sets`, the items that occur are private.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...arrays import Integers
from ...errors import InvalidArgument
from .. import counts as counting
from ..counts import ROW_LIMIT, Counts, limited_counts, summed_counts
from ..engines import Engine
from ..relations import Relation, least
from ..rows import Rows
from .base import UNIT, Bound, BoundedSum, OneUser, Result, Statistic, Vector, hash_of, hashed
from .capped import CappedRows
from .histograms import user_histogram
from .item_sets import number_items, placed_items

if TYPE_CHECKING:
    import ibis.expr.datatypes as dt

__all__ = ["HeldItems", "RootOfItems", "UserTotals", "held_items", "held_items_of", "user_totals", "user_totals_of"]


@dataclass(frozen=True)
class UserTotals:
    """Every user's number of distinct items and of rows, (user, size, rows), in the engine. Private."""

    engine: Engine
    users: Relation

    def sum(self, statistic: Statistic[UserTotals, Result]) -> Result:
        return statistic.sum(self)

    def drop(self) -> None:
        """Free the engine's table."""
        self.engine.drop(self.users)


def user_totals(rows: Rows) -> UserTotals:
    """How much each user has. `rows` has one row for each user and item (see `tally_rows`)."""
    table = rows.table
    # Cut, so that no sum leaves 64 bits; a user with so many rows is in the last bin either way.
    n = least(table.n, ROW_LIMIT)
    users = table.group_by("user").agg(size=table.count(), rows=n.sum())
    return UserTotals(rows.engine, rows.engine.keep(users, "counting items by user"))


def user_totals_of(user: OneUser) -> OneUser:
    """`user_totals` of one user, in plain Python."""
    return OneUser(user.name, {item: min(n, ROW_LIMIT) for item, n in user.counts.items()})


@dataclass(frozen=True)
class RootOfItems(Statistic[UserTotals, BoundedSum[Integers]]):
    """The square root of users' numbers of items, in two numbers: user u adds (x, UNIT - x), with x = floor((sqrt(d) -
    1) / (sqrt(furthest) - 1) UNIT), d the number of u's items, at most `furthest`.

    Bound: two non-negative integers that sum to UNIT. (From 2^32 users on, sums are capped at 2^62, which moves no two
    of them further apart.)
    """

    furthest: int

    def __post_init__(self) -> None:
        if self.furthest < 2:
            raise InvalidArgument(f"furthest={self.furthest}: needs to be at least 2.", argument="furthest")

    @property
    def bound(self) -> Bound:
        return Bound(UNIT)

    def sum(self, view: UserTotals) -> BoundedSum[Integers]:
        sizes = range(1, self.furthest + 1)
        bins = user_histogram(view.engine, view.users, view.users.size, sizes).tolist()
        parts = [self._part(size) for size in sizes]
        one = sum(n * part for n, part in zip(bins, parts, strict=True))
        exact = (one, sum(bins) * UNIT - one)
        return BoundedSum(np.array([min(total, 2**62) for total in exact], dtype=np.int64), self.bound)

    def of_user(self, user: OneUser) -> Vector:
        part = self._part(min(len(user.counts), self.furthest))
        return {0: part, 1: UNIT - part}

    def _part(self, size: int) -> int:
        return min(UNIT, int((math.sqrt(size) - 1) / (math.sqrt(self.furthest) - 1) * UNIT))


@dataclass(frozen=True)
class HeldItems:
    """Counts over all items that occur, of at most `most` items a user. Private: nothing may leave without noise.

    places: (*keys, idx) for each item. types: of the item columns.
    """

    counts: Counts
    places: Relation
    keys: tuple[str, ...]
    types: tuple[dt.DataType, ...]
    most: int

    def sum(self, row_cap: int) -> tuple[Integers, BoundedSum[Integers]]:
        """The places of all items that somebody holds, and `CappedRows` of them, with N'(u) as in `held_items`.

        Bound: that of `CappedRows`. A user adds to at most `most` of the sums, so at most as many items are here
        because of one user. Items of the table that nobody holds are not here: a user may have any number of them.
        """
        sums = self.counts.sum(CappedRows(row_cap))
        places = np.flatnonzero(sums.values)  # a row of an item that is held weighs at least UNIT / ROW_LIMIT
        return places, BoundedSum(sums.values[places], replace(sums.bound, entries=self.most))

    def named(self, places: Integers) -> dict[Any, int]:
        """The items at these places, which noise and a threshold have chosen, with their places; in the order of
        their values.
        """
        return placed_items(self.counts.engine, self.places, self.keys, self.types, places)

    def drop(self) -> None:
        """Free the engine's tables."""
        for table in (self.counts.cells, self.counts.users, self.places):
            self.counts.engine.drop(table)


def held_items(rows: Rows, salt: str, most: int) -> HeldItems:
    """Counts N'(u) of at most `most` items of each user. `rows` has one row for each user and item (`tally_rows`).

    A user with more items hands out `most` tickets among them, in proportion to rows: item i, which has the rows
    C_{i-1}+1, ..., C_i of u's m_u in the order of values, gets floor((most C_i + h)/m_u) - floor((most C_{i-1} +
    h)/m_u) of them, with h = hash(salt, u) mod m_u, and a ticket counts floor(m_u / most) rows. In expectation over
    the hash these are u's own shares. N'(u) is a function of u's own rows and of a salt drawn without looking at the
    table: where an item stands among others of u does not depend on which items other users have.
    """
    engine, keys = rows.engine, rows.keys
    places, items = number_items(engine, rows.table, keys)
    joined = rows.table.inner_join(places, *keys)
    placed = joined.select("user", "idx", n=least(joined.n, ROW_LIMIT))
    whole = limited_counts(engine, placed, items, numbered=False)
    sizes = whole.cells.group_by("user").agg(size=whole.cells.count())
    over = whole.users.inner_join(sizes.filter(sizes.size > most), "user")
    heavy = over.select("user", "rows", start=hashed(salt, over.user) % over.rows)
    light = whole.cells.anti_join(heavy, "user").select("user", "idx", "n")
    stage = "limiting items per user"
    cells = engine.keep(engine.gather_users(light.union(_tickets(whole.cells, heavy, most)), stage), stage)
    # Of at most m_u rows each user's tickets make at most m_u: nobody is above the limit.
    limited = summed_counts(engine, cells, items)
    for table in (whole.cells, whole.users):
        engine.drop(table)
    return HeldItems(limited, places, keys, rows.item_types, most)


def held_items_of(user: OneUser, salt: str, most: int) -> OneUser:
    """`held_items` of one user, in plain Python: N'(u)."""
    counts = counting.limited_user(user_totals_of(user).counts)
    if len(counts) <= most:
        return OneUser(user.name, counts)
    rows = sum(counts.values())
    start, up_to, held = hash_of(salt, user.name) % rows, 0, {}
    for item in sorted(counts):
        before, up_to = up_to, up_to + counts[item]
        tickets = (most * up_to + start) // rows - (most * before + start) // rows
        if tickets:
            held[item] = tickets * (rows // most)
    return OneUser(user.name, held)


def _tickets(cells: Relation, heavy: Relation, most: int) -> Relation:
    """(user, idx, n) of users with too many items: see `held_items`. All products stay below 2^52: exact."""
    ranged = cells.select("user", "idx", "n", up_to=cells.n.sum().over(cells.user, [cells.idx]))
    joined = ranged.inner_join(heavy, "user")
    after = (joined.up_to * most + joined.start) // joined.rows
    before = ((joined.up_to - joined.n) * most + joined.start) // joined.rows
    tickets = joined.select("user", "idx", tickets=after - before, each=joined.rows // most)
    drawn = tickets.filter(tickets.tickets > 0)
    return drawn.select("user", "idx", n=drawn.tickets * drawn.each)
