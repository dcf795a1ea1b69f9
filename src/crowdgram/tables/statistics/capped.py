"""Rows by item, of users whose rows are capped; and how concentrated users are."""

from __future__ import annotations

import math
from dataclasses import dataclass

import ibis
import numpy as np

from ...arrays import Integers
from ..counts import Counts
from .base import (
    UNIT,
    Bound,
    BoundedSum,
    OneUser,
    Statistic,
    Vector,
    base_weight,
    check_row_cap,
    fetch_totals,
    hash_of,
    hashed,
    weighted_totals,
)

__all__ = ["CappedRows", "Concentration", "SampledRow"]


@dataclass(frozen=True)
class _Capped(Statistic[Counts, BoundedSum[Integers]]):
    """A statistic of users whose rows count up to `row_cap`; nobody adds more than UNIT in l1."""

    row_cap: int

    def __post_init__(self) -> None:
        check_row_cap(self.row_cap)

    @property
    def bound(self) -> Bound:
        return Bound(UNIT)


@dataclass(frozen=True)
class CappedRows(_Capped):
    """T_i = sum_u W_u N_i(u), with W_u = floor(UNIT / max(m_u, row_cap)).

    where: N(u) is user u's count vector, m_u = sum_i N_i(u) <= ROW_LIMIT. A user with at most `row_cap` rows has the
    full weight UNIT / row_cap a row; one with more is scaled down to `row_cap` rows, never dropped. `row_cap=1` gives
    every user the same weight.

    Bound: ||W_u N(u)||_1 = W_u m_u <= UNIT exactly, and entries are non-negative.
    """

    def sum(self, view: Counts) -> BoundedSum[Integers]:
        weighted = view.users.select("user", weight=base_weight(view.users, self.row_cap, UNIT))
        return BoundedSum(weighted_totals(view, weighted, ["weight"], "summing counts")[0], self.bound)

    def of_user(self, user: OneUser) -> Vector:
        weight = UNIT // max(user.rows, self.row_cap)
        return {item: weight * n for item, n in user.counts.items()}


@dataclass(frozen=True)
class SampledRow(_Capped):
    """T_i = sum_u w_u 1{the sampled row of u is item i}, with w_u = floor(UNIT min(m_u, row_cap) / row_cap).

    The row of user u is number `hash(salt, u) mod m_u` of u's rows in the order of the domain: a function of u's own
    rows and of a salt drawn without looking at the table. (An index of u among the users would not do: it moves when
    somebody else comes or goes.) In expectation over the hash, w_u N(u)/m_u.

    Bound: one entry, from 0 to UNIT.
    """

    salt: str

    @property
    def bound(self) -> Bound:
        return Bound(UNIT, entries=1)

    def sum(self, view: Counts) -> BoundedSum[Integers]:
        users, cells = view.users, view.cells
        weight = (UNIT * ibis.least(users.rows, self.row_cap)) // self.row_cap
        number = hashed(view.engine, self.salt, users.user) % users.rows
        drawn = users.select("user", number=number.cast("int64"), weight=weight.cast("int64"))
        up_to = cells.n.sum().over(group_by=cells.user, order_by=cells.idx, rows=(None, 0))
        ranged = cells.select("user", "idx", "n", up_to=up_to)
        joined = ranged.inner_join(drawn, "user")
        hit = joined.filter((joined.number < joined.up_to) & (joined.number >= joined.up_to - joined.n))
        grouped = hit.group_by("idx").agg(total=hit.weight.sum())
        return BoundedSum(fetch_totals(view.engine, grouped, view.items, "summing sampled rows"), self.bound)

    def of_user(self, user: OneUser) -> Vector:
        number = hash_of(self.salt, user.name) % user.rows
        weight = UNIT * min(user.rows, self.row_cap) // self.row_cap
        for item in sorted(user.counts):
            if number < user.counts[item]:
                return {item: weight}
            number -= user.counts[item]
        raise AssertionError("a number below the rows is the number of a row")


@dataclass(frozen=True)
class Concentration(_Capped):
    """How concentrated users are, in two numbers: sum_u w_u ||N(u)||^2 / m_u^2, and the rest of sum_u w_u.

    where: w_u = (min(m_u, row_cap) / row_cap)^2. User u adds (a, t - a), with a = floor(UNIT sum_i N_i^2 / max(m_u,
    row_cap)^2) and t = floor(UNIT min(m_u, row_cap)^2 / row_cap^2). With `row_cap=1` every user weighs the same.

    Bound: 0 <= a <= t <= UNIT, so (a, t - a) is non-negative and its l1 norm is at most UNIT.
    """

    def sum(self, view: Counts) -> BoundedSum[Integers]:
        users, cap = view.users, ibis.literal(self.row_cap, "int64")
        longest, within = ibis.greatest(users.rows, cap).cast("float64"), ibis.least(users.rows, cap).cast("float64")
        unit = ibis.literal(float(UNIT), "float64")
        one = (users.squares.cast("float64") / (longest * longest) * unit).floor().cast("int64")
        total = (within * within / float(self.row_cap**2) * unit).floor().cast("int64")
        parts = users.select(a=one, b=total - one)
        summed = parts.agg(a=parts.a.sum().cast("int64"), b=parts.b.sum().cast("int64"))
        found = view.engine.fetch(summed, "measuring concentration")
        values = np.array([found.column(name)[0].as_py() or 0 for name in ("a", "b")], dtype=np.int64)
        return BoundedSum(values, self.bound)

    def of_user(self, user: OneUser) -> Vector:
        longest, within = float(max(user.rows, self.row_cap)), float(min(user.rows, self.row_cap))
        squares = sum(n * n for n in user.counts.values())
        one = math.floor(float(squares) / (longest * longest) * float(UNIT))
        total = math.floor(within * within / float(self.row_cap**2) * float(UNIT))
        return {0: one, 1: total - one}
