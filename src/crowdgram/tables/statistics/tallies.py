"""Tallies: for each item, how many users have it how often. What the paper's algorithms ask of a table.

Users with at least `rows` rows take part, each with exactly `rows` of them, drawn once for the user and before
anything is split by item; users with fewer take no part. A tally counts only those who have the item: nobody is
counted at zero, so that a user who comes, goes or leaves the set changes the tallies of no more than `rows` items.
Proof: docs/proofs/bounded-sums.md.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from ...arrays import Integers
from ..arrow import integers
from ..counts import ROW_LIMIT, Counts
from ..relations import Relation, row_number
from .base import Bound, OneUser, Statistic, Vector, check_row_cap, digest, digest_of
from .histograms import UsersByRows

__all__ = ["Tallies", "Tally"]


@dataclass(frozen=True, eq=False)
class Tallies:
    """`users[j]` users have item `idx[j]` exactly `times[j]` times, 1 <= times <= rows. Private. Sorted by item.

    Sensitivity: adding or removing a user moves, for each of at most `rows` items, one entry by 1; replacing one
    moves for each of at most 2 `rows` items at most two entries by 1. `takers` (how many users take part) moves by
    at most 1.
    """

    items: int
    rows: int
    takers: int
    idx: Integers
    times: Integers
    users: Integers

    def tails(self, first: int = 0, last: int | None = None) -> Integers:
        """The numbers of users who have item i at least t times: a row for each item, a column for each t = 0..rows
        + 1.

        Column 0 is 0, not the number of users: that is private and no part of a tally. Column rows + 1 is 0.
        """
        last = self.items if last is None else last
        start, stop = np.searchsorted(self.idx, [first, last])
        exact = np.zeros((last - first, self.rows + 2), dtype=np.int64)
        exact[self.idx[start:stop] - first, self.times[start:stop]] = self.users[start:stop]
        exact[:, 1:] = np.cumsum(exact[:, :0:-1], axis=1)[:, ::-1]
        return exact

    @property
    def bound(self) -> Bound:
        return _bound(self.rows)

    def vector(self) -> Vector:
        places = zip(self.idx.tolist(), self.times.tolist(), strict=True)
        return dict(zip(places, self.users.tolist(), strict=True))

    def seen(self) -> Integers:
        """sum_u 1{N_i(u) > 0} for each item."""
        totals = np.zeros(self.items, dtype=np.int64)
        np.add.at(totals, self.idx, self.users)
        return totals


@dataclass(frozen=True)
class Tally(Statistic[Counts, Tallies]):
    """Tally users by how often they have each item, over `rows` rows of each user with at least so many.

    The rows of a user are put in the order of md5(salt:user:idx:j), j = 0..N_idx(u)-1 numbering the copies of an
    item, and the first `rows` are taken: a function of u's own rows and of a salt drawn without looking at the
    table. Over the hash, every subset of `rows` rows is as likely. Coordinates are pairs of an item and a number of
    times.

    Bound: at most `rows` entries, of 1.
    """

    rows: int
    salt: str

    def __post_init__(self) -> None:
        check_row_cap(self.rows)

    @property
    def bound(self) -> Bound:
        return _bound(self.rows)

    def sum(self, view: Counts) -> Tallies:
        drawn = _drawn(view, self.rows, self.salt)
        grouped = drawn.group_by("idx", "n").agg(users=drawn.count())
        found = view.engine.fetch(grouped, "tallying users by item")
        idx, times, users = (integers(found.column(name)) for name in ("idx", "n", "users"))
        order = np.lexsort((times, idx))
        edges = [self.rows - 1, ROW_LIMIT] if self.rows > 1 else [ROW_LIMIT]
        takers = int(view.sum(UsersByRows(edges)).values[-1])
        return Tallies(view.items, self.rows, takers, idx[order], times[order], users[order])

    def of_user(self, user: OneUser) -> Vector:
        if user.rows < self.rows:
            return {}
        if user.rows == self.rows:  # all of them are taken, whatever the order
            return dict.fromkeys(user.counts.items(), 1)
        copies = [(item, copy) for item, n in user.counts.items() for copy in range(n)]
        copies.sort(key=lambda one: (digest_of(self.salt, user.name, *one), *one))
        return dict.fromkeys(Counter(item for item, _ in copies[: self.rows]).items(), 1)


def _bound(rows: int) -> Bound:
    return Bound(rows, entries=rows)


def _drawn(counts: Counts, rows: int, salt: str) -> Relation:
    """(idx, n) for each user who takes part and each item among their drawn rows."""
    # Users with exactly `rows` rows need no draw: all of their rows are taken, whatever the order.
    exactly = counts.users.filter(counts.users.rows == rows).select("user")
    whole = counts.cells.semi_join(exactly, "user").select("user", "idx", "n")
    more = counts.users.filter(counts.users.rows > rows).select("user", name=counts.names)
    cells = counts.cells.inner_join(more, "user")
    copies = cells.select("user", "name", "idx", copy=cells.n.numbers())
    hashed = copies.select("user", "idx", "copy", key=digest(salt, copies.name, copies.idx, copies.copy))
    placed = hashed.select("user", "idx", place=row_number([hashed.user], [hashed.key, hashed.idx, hashed.copy]))
    kept = placed.filter(placed.place < rows)
    part = kept.group_by("user", "idx").agg(n=kept.count())
    return whole.union(part.select("user", "idx", "n")).select("idx", "n")
