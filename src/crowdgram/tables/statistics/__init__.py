"""Statistics of users: bounded integer sums, each with its bound, its query, and what one user adds.

From private counts to a number there is one way: `view.sum(statistic)`, with a view of the users in the engine.

    view           statistics
    Counts         CappedRows, RowsByStratum, SampledRow, UsersByHalf, UsersByRows, Tally
    Distances      UsersByDistance, Level
    UserTotals     UsersByRows, RootOfItems
    HeldItems      CappedRows, of a few items of each user
    ItemSets       WeightedSets
    Presence       UsersByItems, ItemReach

Those of `reach`, `tallies` and `user_totals` are not here: `tables` loads them when they are asked for.
"""

from __future__ import annotations

from .base import UNIT, Bound, BoundedSum, Norm, OneUser, Statistic
from .capped import CappedRows, RowsByStratum, SampledRow
from .centred import (
    MAX_BITS,
    MAX_MASS_SCALE,
    MAX_RADIUS,
    MAX_STRETCH,
    Centre,
    Distances,
    Level,
    SimulatedCrowd,
    UsersByDistance,
    distances,
)
from .halves import HALF_BINS, UsersByHalf, half_of_items
from .histograms import UsersByItems, UsersByRows
from .item_sets import GAIN, SETS_BOUND, SPREAD, ItemSets, WeightedSets, item_set_of, item_sets, largest_part

__all__ = [
    "GAIN",
    "HALF_BINS",
    "MAX_BITS",
    "MAX_MASS_SCALE",
    "MAX_RADIUS",
    "MAX_STRETCH",
    "SETS_BOUND",
    "SPREAD",
    "UNIT",
    "Bound",
    "BoundedSum",
    "CappedRows",
    "Centre",
    "Distances",
    "ItemSets",
    "Level",
    "Norm",
    "OneUser",
    "RowsByStratum",
    "SampledRow",
    "SimulatedCrowd",
    "Statistic",
    "UsersByDistance",
    "UsersByHalf",
    "UsersByItems",
    "UsersByRows",
    "WeightedSets",
    "distances",
    "half_of_items",
    "item_set_of",
    "item_sets",
    "largest_part",
]
