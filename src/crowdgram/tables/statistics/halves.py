"""Users by how much of what they have lies in one half of the items: whether they agree with each other, seen from one
side. How users are spread over it tells how far they are from the crowd, without a centre.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ...arrays import Integers
from ..counts import Counts
from ..relations import ifelse, least
from .base import UNIT, Bound, BoundedSum, OneUser, Statistic, Vector, check_row_cap, fetch_totals
from .centred import beside

__all__ = ["HALF_BINS", "UsersByHalf", "half_of_items"]

HALF_BINS = 64
"""Bins between none and all of a user's rows; none and all have bins of their own."""


@lru_cache(maxsize=8)
def half_of_items(items: int, number: int) -> Integers:
    """1 for the items of the half with this number, else 0: public, the same for every table, and in no order that
    items may have. It is the first half of the items by the numbers that SplitMix64 makes of their places.
    """
    mixed = np.arange(1, items + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(number)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    half = np.zeros(items, dtype=np.int64)
    half[np.argsort(mixed ^ (mixed >> np.uint64(31)), kind="stable")[: (items + 1) // 2]] = 1
    half.setflags(write=False)
    return half


@dataclass(frozen=True)
class UsersByHalf(Statistic[Counts, BoundedSum[Integers]]):
    """Users by the part of their rows that lies in a half of the items; users weigh w_u = floor(UNIT min(m_u, row_cap)
    / row_cap).

    where: the half is `half_of_items(items, number)`, h_u the sum of N_i(u) over it. User u is in bin 0 if h_u = 0, in
    bin HALF_BINS + 1 if h_u = m_u, else in bin 1 + floor(HALF_BINS h_u / m_u).

    Bound: one entry, from 0 to UNIT.
    """

    items: int
    number: int
    row_cap: int

    def __post_init__(self) -> None:
        check_row_cap(self.row_cap)

    @property
    def bound(self) -> Bound:
        return Bound(UNIT, entries=1)

    def sum(self, view: Counts) -> BoundedSum[Integers]:
        cells = beside(view, {"inside": half_of_items(self.items, self.number)})
        users = cells.group_by("user").agg(rows=cells.n.sum(), h=(cells.n * cells.inside).sum())
        # Rows are at most 2^20: products are exact, and so are divisions, if an engine divides in doubles.
        between = (users.h * HALF_BINS) // users.rows + 1
        place = ifelse(users.h == 0, 0, ifelse(users.h == users.rows, HALF_BINS + 1, between))
        weight = (UNIT * least(users.rows, self.row_cap)) // self.row_cap
        placed = users.select(idx=place, weight=weight)
        grouped = placed.group_by("idx").agg(total=placed.weight.sum())
        return BoundedSum(fetch_totals(view.engine, grouped, HALF_BINS + 2, "comparing users"), self.bound)

    def of_user(self, user: OneUser) -> Vector:
        half, rows = half_of_items(self.items, self.number), user.rows
        inside = sum(n for item, n in user.counts.items() if half[item])
        place = 0 if inside == 0 else HALF_BINS + 1 if inside == rows else 1 + HALF_BINS * inside // rows
        return {place: UNIT * min(rows, self.row_cap) // self.row_cap}
