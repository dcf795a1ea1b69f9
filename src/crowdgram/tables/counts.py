"""Counts per (user, item), materialised once and used by every later pass.

Two tables are kept in the engine: `cells` (user, idx, n) with one row for each user and item of the domain, and
`users` (user, rows, squares), with m_u and sum_i N_i(u)^2. Rows with a null user or item are dropped, and so are rows
outside the domain, unless it has an item for them, and a user with no row left. None of this is reported: how many
were dropped is private.

No user counts for more than `ROW_LIMIT` rows: a user with more has each count divided by the same whole number,
rounding down. The limit is far beyond any radius worth paying for; it is what makes every later product fit 64-bit
integers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import ibis

from .domain import Domain
from .engine import Engine
from .sources import Rows

if TYPE_CHECKING:
    import ibis.expr.types as ir

__all__ = ["ROW_LIMIT", "Counts", "count_rows", "tally_rows"]

ROW_LIMIT = 2**20


@dataclass(frozen=True)
class Counts:
    """Every user's contribution N(u), in the engine. Private: nothing here may leave without noise."""

    engine: Engine
    cells: ir.Table
    users: ir.Table
    items: int


def tally_rows(rows: Rows) -> Rows:
    """The same rows as one for each user and item, with their number `n`, kept in the engine.

    For tables whose items must be found first: the private table is then read here, once, and `count_rows` reads
    what is kept.
    """
    table = rows.table.drop_null(["user", *rows.keys])
    tallied = table.group_by("user", *rows.keys).agg(n=table.count())
    return replace(rows, table=rows.engine.keep(tallied, "counting rows by user and item"))


def count_rows(rows: Rows, domain: Domain) -> Counts:
    """Count each user's rows of each item of the domain. The private table is read here, once, and nowhere else
    unless `tally_rows` read it.
    """
    engine = rows.engine
    table = rows.table.drop_null(["user", *rows.keys])
    columns = ["user", "idx", *(["n"] if rows.counted else [])]
    if not domain.items:  # every row is a row of the other item
        placed = table.mutate(idx=ibis.literal(0, "int64")).select(*columns)
        cells = engine.keep(_tally(placed), "counting rows by user and item")
    else:
        places = domain.upload(engine)
        join = table.left_join if domain.other else table.inner_join
        joined = join(places, list(rows.keys))
        placed = joined.mutate(idx=joined.idx.fill_null(len(domain.items))).select(*columns)
        cells = engine.keep(_tally(placed), "counting rows by user and item")
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
    n = placed.n.sum().cast("int64") if "n" in placed.columns else placed.count()
    return placed.group_by("user", "idx").agg(n=n)


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
