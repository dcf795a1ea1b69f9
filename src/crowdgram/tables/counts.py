"""Counts per (user, item), materialised once and used by every later pass.

Two tables are kept in the engine: `cells` (user, idx, n) with one row for each user and item of the domain, and
`users` (user, rows, squares), with m_u and sum_i N_i(u)^2. Rows with a null user, item or count, and rows outside the
domain, are dropped; so is a user with no row left. None of this is reported: how many were dropped is private.

No user counts for more than `ROW_LIMIT` rows: a user with more has each count divided by the same whole number,
rounding down. The limit is far beyond any radius worth paying for; it is what makes every later product fit 64-bit
integers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import ibis

from ..errors import InvalidArgument
from .domain import Domain
from .engine import Engine
from .rows import Rows

if TYPE_CHECKING:
    import ibis.expr.types as ir

__all__ = ["ROW_LIMIT", "Counts", "count_rows"]

ROW_LIMIT = 2**20
SUM_LIMIT = 2**51
"""What a user may count for before the limit is applied: below 2^52, where every engine divides exactly."""

COUNTED_ITEMS = 2**22
"""With given counts, a user could reach the row limit in every item: as many squares still sum to 2^62."""

_HALF = 2**20


@dataclass(frozen=True)
class Counts:
    """Every user's contribution N(u), in the engine. Private: nothing here may leave without noise."""

    engine: Engine
    cells: ir.Table
    users: ir.Table
    items: int


def count_rows(rows: Rows, domain: Domain) -> Counts:
    """Count each user's rows of each item of the domain. The private table is read here and nowhere else, once."""
    if rows.counted and len(domain) > COUNTED_ITEMS:
        raise InvalidArgument(f"domain has {len(domain)} items: with count, at most {COUNTED_ITEMS} can be used.")
    engine = rows.engine
    places = domain.upload(engine, rows.keys)
    table = rows.table.drop_null(["user", *rows.keys, *(["n"] if rows.counted else [])])
    placed = table.inner_join(places, list(rows.keys)).select("user", "idx", *(["n"] if rows.counted else []))
    tallied = _summed(placed, len(domain)) if rows.counted else _tally(placed)
    cells = engine.keep(tallied, "counting rows by user and item")
    engine.drop(places)
    users = engine.keep(_per_user(cells), "counting rows by user")
    if _largest(engine, users) > ROW_LIMIT:
        # Only saves a pass where nobody is over the limit: dividing by 1 would change nothing.
        limited = engine.keep(_limited(cells, users), "limiting rows per user")
        engine.drop(users)
        engine.drop(cells)
        cells = limited
        users = engine.keep(_per_user(cells), "counting rows by user")
    return Counts(engine, cells, users, len(domain))


def _tally(placed: ir.Table) -> ir.Table:
    return placed.group_by("user", "idx").agg(n=placed.count())


def _summed(placed: ir.Table, items: int) -> ir.Table:
    """Sum counts that are given, exactly: a cell holds at most SUM_LIMIT / items, so that no user's sum is above.

    Each n <= COUNT_LIMIT is summed in two halves of 20 bits, so that neither sum leaves 64 bits for less than 2^43
    rows (docs/proofs/bounded-sums.md).
    """
    high = placed.n // _HALF  # exact where an engine divides in doubles: n is below 2^52
    halves = placed.mutate(high=high, low=placed.n - high * _HALF)
    sums = halves.group_by("user", "idx").agg(high=halves.high.sum().cast("int64"), low=halves.low.sum().cast("int64"))
    high = ibis.least(sums.high, ibis.literal(SUM_LIMIT // _HALF, "int64"))
    low = ibis.least(sums.low, ibis.literal(SUM_LIMIT, "int64"))
    # A half that was cut is worth SUM_LIMIT by itself, so cutting it changes nothing.
    return sums.select("user", "idx", n=ibis.least(high * _HALF + low, ibis.literal(SUM_LIMIT // items, "int64")))


def _per_user(cells: ir.Table) -> ir.Table:
    # Capped, so that no square overflows before the limit is applied; after it, the cap changes nothing.
    n = ibis.least(cells.n, ibis.literal(ROW_LIMIT, "int64"))
    return cells.group_by("user").agg(rows=cells.n.sum().cast("int64"), squares=(n * n).sum().cast("int64"))


def _largest(engine: Engine, users: ir.Table) -> int:
    found = engine.fetch(users.agg(largest=users.rows.max()), "counting rows by user").column(0)[0].as_py()
    return int(found or 0)


def _limited(cells: ir.Table, users: ir.Table) -> ir.Table:
    """Divide a user's counts by q = ceil(rows / ROW_LIMIT), rounding down, so that they sum to at most ROW_LIMIT."""
    divisor = (users.rows + (ROW_LIMIT - 1)) // ROW_LIMIT
    joined = cells.inner_join(users.select("user", divisor=divisor), "user")
    divided = joined.select("user", "idx", n=(joined.n // joined.divisor).cast("int64"))
    return divided.filter(divided.n > 0)
