"""Counts per (user, item), materialised once and used by every later pass.

Two tables are kept in the engine: `cells` (user, idx, n) with one row for each user and item of the domain, and `users`
(user, rows, squares), with m_u and sum_i N_i(u)^2. Rows with a null user, item or count are dropped, and so are rows
outside the domain, unless it has an item for them, and a user with no row left. None of this is reported: how many were
dropped is private.

In DuckDB, if users are text, `user` is a number that stands for it in these two tables and nowhere else, and `users`
has the text too, as `name`: every pass groups or joins by user, which takes less than half as long by numbers. Nothing
but the grouping may depend on a number, as it moves when somebody else comes or goes: what is drawn by user is drawn by
`Counts.names`.

No user counts for more than `ROW_LIMIT` rows: a user with more has each count divided by the same whole number,
rounding down. The limit is far beyond any radius worth paying for; it is what makes every later product fit 64-bit
integers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from .domain import Domain
from .engines import DuckEngine, Engine
from .relations import Relation, Value, coalesce, least, null, row_number
from .rows import COUNT_LIMIT, Rows

if TYPE_CHECKING:
    from .statistics.base import Result, Statistic

__all__ = [
    "ROW_LIMIT",
    "Counts",
    "Presence",
    "count_rows",
    "find_presence",
    "known_counts",
    "limited_counts",
    "limited_user",
    "listed_rows",
    "summed_counts",
    "tally_rows",
]

ROW_LIMIT = 2**20
SUM_LIMIT = 2**51
"""What a user may count for before the limit is applied: below 2^52, where every engine divides exactly."""

_HALF = 2**20


@dataclass(frozen=True)
class Counts:
    """Every user's contribution N(u), in the engine. Private: nothing here may leave without noise."""

    engine: Engine
    cells: Relation
    users: Relation
    items: int

    @property
    def names(self) -> Value:
        """The column of `users` that has the users as the table has them."""
        return self.users["name" if "name" in self.users.columns else "user"]

    def sum(self, statistic: Statistic[Counts, Result]) -> Result:
        """The only way from private counts to numbers: a sum over users, with the bound on what each of them adds."""
        return statistic.sum(self)


@dataclass(frozen=True)
class Presence:
    """Which items each user has, however often: (user, idx), and each user's number of them, (user, size), in the
    engine. Private: nothing here may leave without noise.
    """

    engine: Engine
    cells: Relation
    users: Relation
    items: int

    def sum(self, statistic: Statistic[Presence, Result]) -> Result:
        return statistic.sum(self)


def listed_rows(rows: Rows, listed: Domain, keys: Sequence[str]) -> Rows:
    """Only the rows whose values of `keys` are in a public list: a filter of single rows."""
    places = listed.upload(rows.engine, keys)
    return replace(rows, table=rows.table.semi_join(places, *keys))


def tally_rows(rows: Rows) -> Rows:
    """The same rows as one for each user and item, with their number `n`, kept in the engine.

    For tables whose items must be found first: the private table is then read here, once, and `count_rows` reads
    what is kept. Counts that are given are cut to COUNT_LIMIT once more: they will be summed again.
    """
    table, groups, stage = _whole(rows), ("user", *rows.keys), "counting rows by user and item"
    tallied = _summed(table, groups, COUNT_LIMIT) if rows.counted else _tally(table, groups)
    kept = rows.engine.keep(rows.engine.gather_users(tallied, stage), stage)
    return replace(rows, table=kept, gathered=True)


def count_rows(rows: Rows, domain: Domain) -> Counts:
    """Count each user's rows of each item of the domain. The private table is read here, once, and nowhere else
    unless `tally_rows` read it.
    """
    engine = rows.engine
    placed, lists = _placed(rows, domain)
    tallied = _summed(placed, ("user", "idx"), SUM_LIMIT // len(domain)) if rows.counted else _tally(placed)
    counts = limited_counts(engine, tallied, len(domain), gathered=rows.gathered)
    for uploaded in lists:
        engine.drop(uploaded)
    return counts


def find_presence(rows: Rows, domain: Domain) -> Presence:
    """Find which items of the domain each user has. Instead of `count_rows`: the private table is read here, once,
    unless `tally_rows` read it. No limit on rows applies, as it would take rare items from heavy users.
    """
    engine = rows.engine
    placed, lists = _placed(rows, domain)
    stage, found = "finding the items of each user", placed.select("user", "idx").distinct()
    cells = engine.keep(found if rows.gathered else engine.gather_users(found, stage), stage)
    for uploaded in lists:
        engine.drop(uploaded)
    users = engine.keep(cells.group_by("user").agg(size=cells.count()), "counting items by user")
    return Presence(engine, cells, users, len(domain))


def known_counts(engine: Engine, cells: pa.Table, items: int) -> Counts:
    """Counts of a table that is known already, given as cells (user, idx, n): for audits, which make their own."""
    import pyarrow.compute as pc  # slow to load, and no release needs it here

    cut = pc.min_element_wise(cells.column("n"), pa.scalar(SUM_LIMIT // items, pa.int64()))
    known = cells.set_column(cells.column_names.index("n"), "n", cut)
    return limited_counts(engine, engine.upload(known, "placing known counts"), items)


def limited_counts(
    engine: Engine, cells: Relation, items: int, *, gathered: bool = False, numbered: bool = True
) -> Counts:
    """Keep the cells, add up those of each user, and hold every user to ROW_LIMIT.

    A user with more rows has all counts divided by q = ceil(rows / ROW_LIMIT), rounding down, so that they sum to at
    most ROW_LIMIT. The same queries run whatever the table holds. If `cells` is a kept table, it is used up. gathered:
    the cells of each user are in one place already. numbered: users that are text may be numbered.
    """
    by_item, stage = "counting rows by user and item", "counting rows by user"
    if not isinstance(engine, DuckEngine):
        # Before the cells are kept, in the pass that makes them.
        placed = cells if gathered else engine.gather_users(cells, by_item)
        limited = engine.keep(_limited(placed), by_item)
        engine.drop(cells)
        return summed_counts(engine, limited, items)
    kept = cells if engine.holds(cells) else engine.keep(cells, by_item)
    if numbered and pa.types.is_string(kept.types["user"]):
        kept, users = _numbered(engine, kept)
    else:
        users = engine.keep(_per_user(kept), stage)
    over = users.filter(users.rows > ROW_LIMIT)
    name = ["name"] if "name" in users.columns else []
    heavy = engine.keep(over.select("user", *name, divisor=_divisor(over.rows)), stage)
    # In place: if nobody is above the limit, as is usual, nothing is copied.
    limited = engine.keep(_divided(kept.inner_join(heavy, "user")), stage)
    left = _per_user(limited)
    totals = engine.keep(left.inner_join(heavy.select("user", *name), "user") if name else left, stage)
    engine.exchange(kept, heavy, limited, stage)
    engine.exchange(users, heavy, totals, stage)
    for table in (heavy, limited, totals):
        engine.drop(table)
    return Counts(engine, kept, users, items)


def _numbered(engine: Engine, cells: Relation) -> tuple[Relation, Relation]:
    """The cells, a kept table that is used up, with a number in place of each user; and (user, name, rows, squares)."""
    named = _per_user(cells)
    users = engine.keep(named.select("rows", "squares", user=row_number(), name=named.user), "counting rows by user")
    joined = cells.rename(name="user").inner_join(users.select("user", "name"), "name")
    numbered = engine.keep(joined.select("user", "idx", "n"), "counting rows by user and item")
    engine.drop(cells)
    return numbered, users


def limited_user(counts: Mapping[Any, int]) -> dict[Any, int]:
    """`limited_counts` of one user, in plain Python: N(u), for a positive number of rows of each item."""
    divisor = -(-sum(counts.values()) // ROW_LIMIT)
    return {item: n // divisor for item, n in counts.items() if n // divisor}


def summed_counts(engine: Engine, cells: Relation, items: int) -> Counts:
    """Add up each user's cells, where nobody has more than ROW_LIMIT rows."""
    return Counts(engine, cells, engine.keep(_per_user(cells), "counting rows by user"), items)


def _limited(cells: Relation) -> Relation:
    """(user, idx, n), nobody above ROW_LIMIT."""
    return _divided(cells.select("user", "idx", "n", divisor=_divisor(cells.n.sum().over(cells.user))))


def _divisor(rows: Value) -> Value:
    """1 for a user within ROW_LIMIT. Exact if an engine divides in doubles: rows are below 2^52."""
    return (rows + (ROW_LIMIT - 1)) // ROW_LIMIT


def _divided(cells: Relation) -> Relation:
    divided = cells.select("user", "idx", n=cells.n // cells.divisor)
    return divided.filter(divided.n > 0)


def _whole(rows: Rows) -> Relation:
    """The rows that have all of their columns."""
    return rows.table.drop_null("user", *rows.keys, *(["n"] if rows.counted else []))


def _placed(rows: Rows, domain: Domain) -> tuple[Relation, list[Relation]]:
    """(user, idx) and perhaps n: the rows by their item's place in the domain. Also the public lists it is made of."""
    table, keys = _whole(rows), list(rows.keys)
    n = ["n"] if rows.counted else []
    lists = []
    if domain.items:
        lists.append(domain.upload(rows.engine, keys))
        if not domain.groups and not domain.other:
            return table.inner_join(lists[0], *keys).select("user", "idx", *n), lists
        table = table.left_join(lists[0], *keys).select("user", "item", "idx", *n)
    else:
        table = table.mutate(idx=null())
    if domain.groups:
        lists.append(domain.upload_groups(rows.engine))
        joined = table.left_join(lists[-1], "item")
        table = joined.select("user", *n, idx=coalesce(joined.idx, joined.own))
    if domain.other:
        table = table.mutate(idx=table.idx.fill_null(len(domain) - 1))
    return table.drop_null("idx").select("user", "idx", *n), lists


def _tally(table: Relation, groups: Sequence[str] = ("user", "idx")) -> Relation:
    return table.group_by(*groups).agg(n=table.count())


def _summed(table: Relation, groups: Sequence[str], most: int) -> Relation:
    """Sum counts, exactly, and cut each sum to `most`, at most SUM_LIMIT.

    Each n <= COUNT_LIMIT is summed in two halves of 20 bits, so that neither sum leaves 64 bits for less than 2^43
    rows (docs/proofs/bounded-sums.md).
    """
    high = table.n // _HALF  # exact if an engine divides in doubles: n is below 2^52
    halves = table.mutate(high=high, low=table.n - high * _HALF)
    sums = halves.group_by(*groups).agg(high=halves.high.sum(), low=halves.low.sum())
    high, low = least(sums.high, SUM_LIMIT // _HALF), least(sums.low, SUM_LIMIT)
    # A half that was cut is worth SUM_LIMIT by itself, so cutting it changes nothing.
    return sums.select(*groups, n=least(high * _HALF + low, most))


def _per_user(cells: Relation) -> Relation:
    """(user, rows, squares). In doubles, which do not fail, the squares of a user within ROW_LIMIT are exact: they sum
    to at most ROW_LIMIT^2 = 2^40 < 2^53. Those of a user above it are cut, and replaced.
    """
    n = least(cells.n, ROW_LIMIT)
    squares = least((n * n).cast("float64").sum(), float(ROW_LIMIT**2))
    return cells.group_by("user").agg(rows=cells.n.sum(), squares=squares.cast("int64"))
