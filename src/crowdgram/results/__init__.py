"""Results: the value that a release returns, and the algebra on it: groups, marginals, conditionals, merged items."""

from __future__ import annotations

from .grouped import GroupedRelease
from .grouped_reach import GroupedReach
from .reach import Reach, ReachedItem
from .release import Release
from .series import Series, SeriesPoint
from .values import Difference, Item, ItemCount, ItemCounts, ItemEstimate, Other, Quantity, Value

__all__ = [
    "Difference",
    "GroupedReach",
    "GroupedRelease",
    "Item",
    "ItemCount",
    "ItemCounts",
    "ItemEstimate",
    "Other",
    "Quantity",
    "Reach",
    "ReachedItem",
    "Release",
    "Series",
    "SeriesPoint",
    "Value",
]
