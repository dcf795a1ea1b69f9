"""Rows by item, of users whose rows are capped."""

from __future__ import annotations

import bisect
import itertools
from dataclasses import dataclass

import numpy as np

from ...arrays import Integers
from ...errors import InvalidArgument
from ..counts import Counts
from ..relations import ifelse, least
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

__all__ = ["CappedRows", "RowsByStratum", "SampledRow"]


@dataclass(frozen=True)
class _Capped(Statistic[Counts, BoundedSum[Integers]]):
    """A statistic of users whose rows count up to `row_cap`; nobody adds more than UNIT in l1."""

    row_cap: int

    def __post_init__(self) -> None:
        check_row_cap(self.row_cap)

    @property
    def bound(self) -> Bound:
        return Bound(UNIT)


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
class RowsByStratum(_Capped):
    """T_i = sum_u W_u N_i(u) of k = `items` items, once for each stratum of users: those with at most lights[0] rows,
    those with more and at most lights[1], ..., and all others:

        W_u = floor(UNIT / l), l the least of `lights` with m_u <= l; floor(UNIT / max(m_u, row_cap)) if there is none.

    A user is in one stratum, so all are measured for the price of one, each with noise for its own bound on rows. So
    the bound of an answer can be lowered when they are known; and they tell how far heavy users differ.

    Bound: ||W_u N(u)||_1 = W_u m_u <= UNIT exactly, and entries are non-negative.
    """

    items: int
    lights: tuple[int, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        ends = (0, *self.lights, self.row_cap + 1)
        if any(low >= high for low, high in itertools.pairwise(ends)):
            raise InvalidArgument(
                f"lights={self.lights}: they need to increase, within 1..{self.row_cap}.", argument="lights"
            )

    def sum(self, view: Counts) -> BoundedSum[Integers]:
        assert view.items == self.items
        users = view.users
        weights = {}
        for low, light in itertools.pairwise((0, *self.lights)):
            weights[f"stratum_{light}"] = ifelse((users.rows > low) & (users.rows <= light), UNIT // light, 0)
        last = self.lights[-1] if self.lights else 0
        weights["others"] = ifelse(users.rows > last, base_weight(users, self.row_cap, UNIT), 0)
        sums = weighted_totals(view, users.select("user", **weights), list(weights), "summing counts")
        return BoundedSum(np.concatenate(sums), self.bound)

    def of_user(self, user: OneUser) -> Vector:
        place = bisect.bisect_left(self.lights, user.rows)
        weight = UNIT // (self.lights[place] if place < len(self.lights) else max(user.rows, self.row_cap))
        return {place * self.items + item: weight * n for item, n in user.counts.items()}


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
        weight = (UNIT * least(users.rows, self.row_cap)) // self.row_cap
        drawn = users.select("user", number=hashed(self.salt, view.names) % users.rows, weight=weight)
        up_to = cells.n.sum().over(cells.user, [cells.idx])
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
