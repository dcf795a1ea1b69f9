"""What users hold, before any item is listed: how many items and rows each has, and counts over all items that occur.

For tables without a public domain whose users have few items each. As in `sets`, the items that occur are private.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import ibis
import numpy as np
import numpy.typing as npt

from .counts import ROW_LIMIT, Counts, limited_counts, summed_counts
from .engine import Engine
from .rows import Rows
from .sets import number_items, placed_items
from .sums import hashed, l1_sum, user_histogram

if TYPE_CHECKING:
    import ibis.expr.datatypes as dt
    import ibis.expr.types as ir

__all__ = ["HeldItems", "Holdings", "held_items", "holdings"]

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Holdings:
    """Every user's number of distinct items and of rows, (user, size, rows), in the engine. Private."""

    engine: Engine
    users: ir.Table

    def by_size(self, edges: Sequence[int]) -> Integers:
        """How many users have so many items, as `rows_histogram`: one entry of 1 for each user."""
        return user_histogram(self.engine, self.users, self.users["size"], edges)

    def by_rows(self, edges: Sequence[int]) -> Integers:
        """How many users have so many rows; edges up to ROW_LIMIT. One entry of 1 for each user."""
        return user_histogram(self.engine, self.users, self.users.rows, edges)

    def drop(self) -> None:
        """Free the engine's table."""
        self.engine.drop(self.users)


def holdings(rows: Rows) -> Holdings:
    """How much each user has. `rows` has one row for each user and item (see `tally_rows`)."""
    table = rows.table
    # Cut, so that no sum leaves 64 bits; a user with so many rows is in the last bin either way.
    n = ibis.least(table.n, ibis.literal(ROW_LIMIT, "int64"))
    users = table.group_by("user").agg(size=table.count(), rows=n.sum())
    return Holdings(rows.engine, rows.engine.keep(users, "counting items by user"))


@dataclass(frozen=True)
class HeldItems:
    """Counts over all items that occur, of at most `most` items a user. Private: nothing may leave without noise.

    places: (*keys, idx) for each item. types: of the item columns.
    """

    counts: Counts
    places: ir.Table
    keys: tuple[str, ...]
    types: tuple[dt.DataType, ...]
    most: int

    def sum(self, row_cap: int) -> tuple[Integers, Integers]:
        """The places of all items that somebody holds, and for each the sum over users of floor(UNIT / max(m'_u,
        row_cap)) N'_i(u), with N'(u) as in `held_items` and m'_u its sum.

        Sensitivity: as `l1_sum`, UNIT in l1 for each user. A user adds to at most `most` of the sums, so at most as
        many items are here because of one user. Items of the table that nobody holds are not here: a user may have
        any number of them.
        """
        totals = l1_sum(self.counts, row_cap)
        places = np.flatnonzero(totals)  # a row of an item that is held weighs at least UNIT / ROW_LIMIT
        return places, totals[places]

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
    joined = rows.table.inner_join(places, list(keys))
    placed = joined.select("user", "idx", n=ibis.least(joined.n, ibis.literal(ROW_LIMIT, "int64")))
    whole = limited_counts(engine, engine.keep(placed, "numbering items"), items)
    sizes = whole.cells.group_by("user").agg(size=whole.cells.count())
    over = whole.users.inner_join(sizes.filter(sizes["size"] > most), "user")
    heavy = over.select("user", "rows", start=(hashed(salt, over.user) % over.rows).cast("int64"))
    light = whole.cells.anti_join(heavy, "user").select("user", "idx", "n")
    cells = engine.keep(light.union(_tickets(whole.cells, heavy, most)), "limiting items per user")
    # Of at most m_u rows each user's tickets make at most m_u: nobody is above the limit.
    limited = summed_counts(engine, cells, items)
    for table in (whole.cells, whole.users):
        engine.drop(table)
    return HeldItems(limited, places, keys, rows.item_types, most)


def _tickets(cells: ir.Table, heavy: ir.Table, most: int) -> ir.Table:
    """(user, idx, n) of users with too many items: see `held_items`. All products stay below 2^52: exact."""
    up_to = cells.n.sum().over(group_by=cells.user, order_by=cells.idx, rows=(None, 0))
    ranged = cells.select("user", "idx", "n", up_to=up_to.cast("int64"))
    joined = ranged.inner_join(heavy, "user")
    after = (joined.up_to * most + joined.start) // joined.rows
    before = ((joined.up_to - joined.n) * most + joined.start) // joined.rows
    tickets = joined.select("user", "idx", tickets=(after - before).cast("int64"), each=joined.rows // most)
    drawn = tickets.filter(tickets.tickets > 0)
    return drawn.select("user", "idx", n=(drawn.tickets * drawn.each).cast("int64"))
