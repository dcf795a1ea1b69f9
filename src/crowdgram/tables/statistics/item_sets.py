"""Each user's set of items, and bounded sums over items that nobody has listed.

For tables without a public domain. The items that occur are private themselves: they are numbered inside the engine,
and neither their names nor how many there are may leave before noise and a threshold have chosen among them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...arrays import Integers
from ...errors import InvalidArgument
from ..arrow import numbers_table
from ..engines import Engine
from ..kinds import convert_all
from ..relations import Relation, least, row_number
from ..rows import Rows
from .base import UNIT, Bound, BoundedSum, OneUser, Result, Statistic, Vector, digest, digest_of, fetch_totals

if TYPE_CHECKING:
    import ibis.expr.datatypes as dt

__all__ = [
    "GAIN",
    "SETS_BOUND",
    "SPREAD",
    "ItemSets",
    "WeightedSets",
    "item_set_of",
    "item_sets",
    "largest_part",
    "number_items",
    "placed_items",
]

GAIN = 2**8
"""The largest gain; gains are whole numbers from 0."""

SPREAD = 4
"""No item gets more than SPREAD times what it would get if the user's items shared alike."""

SETS_BOUND = Bound(UNIT, "l2")

_UP = 1.0 + 2.0**-50


@dataclass(frozen=True)
class ItemSets:
    """Every user's set of at most `most` items, in the engine. Private: nothing here may leave without noise.

    members: (user, idx); users: (user, size); places: (*keys, idx) for each item that is in a set. items: how many
    there are, which is private too. types: of the item columns.
    """

    engine: Engine
    keys: tuple[str, ...]
    members: Relation
    users: Relation
    places: Relation
    items: int
    most: int
    types: tuple[dt.DataType, ...]

    def sum(self, statistic: Statistic[ItemSets, Result]) -> Result:
        return statistic.sum(self)

    def named(self, places: Integers) -> list[Any]:
        """The items at these places, which noise and a threshold have chosen; tuples if there are several columns.

        In the order of their values: the engine's own order could tell of the rows.
        """
        return list(placed_items(self.engine, self.places, self.keys, self.types, places))

    def drop(self) -> None:
        """Free the engine's tables."""
        for table in (self.members, self.users, self.places):
            self.engine.drop(table)


@dataclass(frozen=True)
class WeightedSets(Statistic[ItemSets, BoundedSum[Integers]]):
    """For each item the sum over users of v_i(u) = min(W_u G_i, floor(min(1, SPREAD / sqrt(d_u)) UNIT)).

    where: G are `gains`, one for each item, from noisy values only, d_u is the size of u's set and W_u = floor(UNIT /
    sqrt(sum of G_i^2 over u's set)).

    Bound: ||v(u)||_2 <= UNIT exactly, entries non-negative. No entry exceeds `largest_part(d_u)`. Proof:
    docs/proofs/discovery.md.
    """

    gains: Integers

    def __post_init__(self) -> None:
        if np.any(self.gains < 0) or np.any(self.gains > GAIN):
            raise InvalidArgument(f"gains: need to be from 0 to {GAIN}.", argument="gains")

    @property
    def bound(self) -> Bound:
        return SETS_BOUND

    def sum(self, view: ItemSets) -> BoundedSum[Integers]:
        return BoundedSum(self.totals(view), self.bound)

    def totals(self, view: ItemSets) -> Integers:
        """One number for each item that is in a set."""
        if self.gains.shape != (view.items,):
            raise InvalidArgument("gains: need an entry for each item.", argument="gains")
        active = np.flatnonzero(self.gains)
        if not len(active):
            return np.zeros(view.items, dtype=np.int64)
        table = view.engine.upload(numbers_table({"idx": active, "gain": self.gains[active]}), "placing gains")
        held = view.members.inner_join(table, "idx").select("user", "idx", "gain")
        squares = held.group_by("user").agg(squares=(held.gain * held.gain).sum())
        owners = squares.inner_join(view.users, "user")
        weight = (float(UNIT) / (owners.squares.cast("float64").sqrt() * _UP)).floor()
        top = least(float(UNIT), float(SPREAD * UNIT) / (owners.size.cast("float64").sqrt() * _UP)).floor()
        weighted = owners.select("user", weight=weight.cast("int64"), top=top.cast("int64"))
        joined = held.inner_join(weighted, "user")
        grouped = joined.group_by("idx").agg(total=least(joined.weight * joined.gain, joined.top).sum())
        totals = fetch_totals(view.engine, grouped, view.items, "summing sets of items")
        view.engine.drop(table)
        return totals

    def of_user(self, user: OneUser) -> Vector:
        gains = {item: int(self.gains[item]) for item in user.counts}
        squares = sum(gain * gain for gain in gains.values())
        if not squares:
            return {}
        weight = math.floor(float(UNIT) / (math.sqrt(float(squares)) * _UP))
        top = math.floor(min(float(UNIT), float(SPREAD * UNIT) / (math.sqrt(float(len(gains))) * _UP)))
        return {item: min(weight * gain, top) for item, gain in gains.items()}


def placed_items(
    engine: Engine, numbered: Relation, keys: Sequence[str], types: Sequence[dt.DataType], places: Integers
) -> dict[Any, int]:
    """The items at these places of (*keys, idx), with their places, in the order of their values."""
    if not len(places):
        return {}
    wanted = engine.upload(numbers_table({"idx": places}), "placing items")
    chosen = numbered.inner_join(wanted, "idx").select(*keys, "idx")
    found = engine.fetch(chosen, "reading the items that were found")
    engine.drop(wanted)
    columns = [convert_all(found.column(key).to_pylist(), dtype) for key, dtype in zip(keys, types, strict=True)]
    items: Sequence[Any] = columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))
    return dict(sorted(zip(items, found.column("idx").to_pylist(), strict=True)))


def number_items(engine: Engine, table: Relation, keys: Sequence[str]) -> tuple[Relation, int]:
    """(*keys, idx) for every item that occurs, kept in the engine; and how many there are, which is private."""
    distinct = table.select(*keys).distinct()
    numbered = distinct.mutate(idx=row_number(order_by=[distinct[key] for key in keys]))
    places = engine.keep(numbered, "numbering items")
    items = engine.fetch(places.agg(items=places.count()), "numbering items").column(0)[0].as_py()
    return places, int(items)


def largest_part(size: int) -> int:
    """A bound on every entry that a user with `size` items adds in `WeightedSets`: min(1, SPREAD / sqrt(size)) UNIT."""
    return min(UNIT, math.isqrt((SPREAD * UNIT) ** 2 // size) + 1)


def item_sets(rows: Rows, salt: str, most: int) -> ItemSets:
    """Every user's distinct items. `rows` has one row for each user and item (see `tally_rows`).

    A user with more than `most` items keeps those `most` whose hash(salt, user, item) is smallest: a function of the
    user's own items and of a salt drawn without looking at the table.
    """
    engine, keys = rows.engine, rows.keys
    pairs = rows.table.select("user", *keys)
    sizes = engine.keep(pairs.group_by("user").agg(size=pairs.count()), "counting items by user")
    # Users within the limit keep everything; only the others' items are hashed and sorted.
    heavy = pairs.semi_join(sizes.filter(sizes.size > most), "user")
    light = pairs.anti_join(sizes.filter(sizes.size > most), "user")
    order = [digest(salt, heavy.user, *(heavy[key] for key in keys)), *(heavy[key] for key in keys)]
    ranked = heavy.mutate(rank=row_number([heavy.user], order))
    drawn = ranked.filter(ranked.rank < most).select("user", *keys)
    chosen = engine.keep(light.union(drawn), "limiting items per user")
    places, items = number_items(engine, chosen, keys)
    numbered = chosen.inner_join(places, *keys).select("user", "idx")
    members = engine.keep(engine.gather_users(numbered, "numbering items"), "numbering items")
    users = engine.keep(sizes.select("user", size=least(sizes.size, most)), "counting items by user")
    engine.drop(sizes)
    engine.drop(chosen)
    return ItemSets(engine, keys, members, users, places, items, most, rows.item_types)


def item_set_of(user: OneUser, salt: str, most: int) -> OneUser:
    """`item_sets` of one user, in plain Python: items are values, or tuples of them if there are several columns."""

    def order(item: Any) -> tuple[str, Any]:
        return digest_of(salt, user.name, *(item if isinstance(item, tuple) else (item,))), item

    return OneUser(user.name, dict.fromkeys(sorted(user.counts, key=order)[:most], 1))
