"""Reach: how many users have each item, of users whose items are bounded; and how much the bound leaves out."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ...arrays import Integers
from ...errors import InvalidArgument
from ..arrow import integers, numbers_table
from ..counts import Presence
from ..relations import Relation, greatest, ifelse, literal
from .base import UNIT, Bound, BoundedSum, Norm, OneUser, Statistic, Vector, dense

__all__ = ["BOOKS", "FAR", "GROUP_PART", "MOST_ITEMS_PER_USER", "ItemReach"]

FAR = 4
"""Users with more than so many times the bound are counted apart among those that it scales down."""
BOOKS = {"l1": 4, "l2": 3}
"""Coordinates before those of the items, by norm: kept, missing, missing of users far above the bound; in l1, the rest.
"""
GROUP_PART = 4
"""By groups, a user adds to each of their groups so many times less than to an item: groups are larger than items."""
MOST_ITEMS_PER_USER = 2**30
_ABOVE = 1 + 2.0**-50


@dataclass(frozen=True)
class ItemReach(Statistic[Presence, BoundedSum[Integers]]):
    """T_i = sum_u W_u 1{u has i}, and what users are worth together.

    where: d_u is the number of u's items, and a user with at most `bound_on_items` of them has the full weight W. In l1
    W_u = floor((UNIT - books) / max(d_u, bound_on_items)); in l2 W_u is as much over the root of that, rounded down, so
    that the same norm leaves more of a heavy user. Nobody is dropped, and no item is left out by chance.

    Beside items, a user adds `books` in all to the coordinates that come first: W_u / W of it to *kept*, and the rest
    to *missing*, or to *missing, far* if d_u > FAR bound_on_items. So kept and missing add up to the number of users,
    and missing is what the bound takes off an item that all users have. In l1 what is left of UNIT goes to one more
    coordinate: then everybody adds UNIT in all, and the number of users follows from the noise of all sums.

    By groups, items are pairs of a group and an item, `group_of[i]` is the group of pair i, or -1 if it is of none, and
    after the items comes a coordinate for each group: V_u = floor(W_u / GROUP_PART) of each user who has a pair of it.
    A user has at least as many pairs as groups, so W_u times 1 + 1 / GROUP_PART in l1, or times the root of 1 + 1 /
    GROUP_PART^2 in l2, replaces W_u in the bound.

    Bound: UNIT, in the norm that is asked for; entries are non-negative.
    """

    bound_on_items: int
    norm: Norm
    books: int
    group_of: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not 1 <= self.bound_on_items <= MOST_ITEMS_PER_USER:
            raise InvalidArgument(
                f"bound_on_items={self.bound_on_items}: needs to be in 1..{MOST_ITEMS_PER_USER}.",
                argument="bound_on_items",
            )
        if not 0 <= self.books < UNIT:
            raise InvalidArgument(f"books={self.books}: needs to be in 0..{UNIT - 1}.", argument="books")
        if self.full_weight < 1:
            raise InvalidArgument(f"books={self.books}: needs to leave users a weight.", argument="books")

    @property
    def bound(self) -> Bound:
        return Bound(UNIT, self.norm)

    @property
    def full_weight(self) -> int:
        """W: that of a user whose items are within the bound."""
        return self._weight(1)

    @property
    def groups(self) -> int:
        """How many groups there are."""
        return max(self.group_of, default=-1) + 1

    def sum(self, view: Presence) -> BoundedSum[Integers]:
        users, members = self._users(view)
        weighted = self._weighted(users)
        joined = view.cells.inner_join(weighted.select("user", "weight"), "user")
        by_item = joined.group_by("idx").agg(total=joined.weight.sum())
        items = dense(view.engine.fetch(by_item, "summing users by item"), "total", view.items)
        names = ("kept", "missing", "far", "rest")[: BOOKS[self.norm]]
        summed = weighted.agg(**{name: weighted[name].sum().fill_null(0) for name in names})
        found = view.engine.fetch(summed, "summing users by item")
        books = np.concatenate([integers(found.column(name)) for name in names])
        groups = np.zeros(0, dtype=np.int64)
        if members is not None:
            both = members.inner_join(weighted.select("user", "weight"), "user")
            by_group = both.group_by("idx").agg(total=(both.weight // GROUP_PART).sum())
            groups = dense(view.engine.fetch(by_group, "summing users by group"), "total", self.groups)
            view.engine.drop(members)
        return BoundedSum(np.concatenate([books, items, groups]), self.bound)

    def of_user(self, user: OneUser) -> Vector:
        size = len(user.counts)
        weight = self._weight(size)
        groups = {self.group_of[item] for item in user.counts if self.group_of[item] >= 0} if self.group_of else set()
        kept = math.floor(float(weight) / float(self.full_weight) * float(self.books))
        missing = self.books - kept
        far = size > FAR * self.bound_on_items
        added = [kept, 0 if far else missing, missing if far else 0]
        if self.norm == "l1":
            added.append(UNIT - self.books - weight * size - weight // GROUP_PART * len(groups))
        first = BOOKS[self.norm]
        by_group = {first + len(self.group_of) + group: weight // GROUP_PART for group in groups}
        return {**dict(enumerate(added)), **{first + item: weight for item in user.counts}, **by_group}

    def _weight(self, size: int) -> int:
        largest = max(size, self.bound_on_items)
        if self.norm == "l1":
            return self._length // largest
        return math.floor(float(self._length) / (math.sqrt(float(largest)) * _ABOVE))

    @property
    def _length(self) -> int:
        """What the books leave of UNIT in the norm, over what groups add to a user's items."""
        part = GROUP_PART
        if self.norm == "l1":
            left = UNIT - self.books
            return part * left // (part + 1) if self.group_of else left
        square = UNIT**2 - self.books**2
        return math.isqrt(part**2 * square // (part**2 + 1) if self.group_of else square)

    def _users(self, view: Presence) -> tuple[Relation, Relation | None]:
        """(user, size, groups), the number of a user's items and groups; and which groups each user is in."""
        if not self.group_of:
            return view.users.mutate(groups=literal(0)), None
        listed = np.array(self.group_of, dtype=np.int64)
        kept = np.flatnonzero(listed >= 0)
        places = view.engine.upload(numbers_table({"place": kept, "idx": listed[kept]}), "placing the groups")
        cells = view.cells.rename(place="idx").inner_join(places, "place")
        members = view.engine.keep(cells.select("user", "idx").distinct(), "finding the groups of each user")
        view.engine.drop(places)
        numbers = members.group_by("user").agg(groups=members.count())
        joined = view.users.left_join(numbers, "user")
        return joined.select("user", "size", groups=joined.groups.fill_null(0)), members

    def _weighted(self, users: Relation) -> Relation:
        """(user, weight, kept, missing, far, rest)."""
        largest = greatest(users.size, self.bound_on_items)
        if self.norm == "l1":
            weight = self._length // largest
        else:
            weight = (float(self._length) / (largest.cast("float64").sqrt() * _ABOVE)).floor().cast("int64")
        one = users.select("user", "size", "groups", weight=weight)
        part = one.weight.cast("float64") / float(self.full_weight)
        kept = (part * float(self.books)).floor().cast("int64")
        of_groups = (one.weight // GROUP_PART) * one.groups
        two = one.mutate(kept=kept, rest=UNIT - self.books - one.weight * one.size - of_groups)
        missing, far = self.books - two.kept, two.size > FAR * self.bound_on_items
        return two.select(
            "user",
            "weight",
            "kept",
            "rest",
            missing=ifelse(far, 0, missing),
            far=ifelse(far, missing, 0),
        )
