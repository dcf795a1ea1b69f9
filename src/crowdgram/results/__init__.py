"""Results: the value that a release returns, and the algebra on it: groups, marginals, conditionals, merged items."""

from __future__ import annotations

from .grouped import GroupedRelease
from .release import Difference, Item, ItemEstimate, Other, Quantity, Release, Value

__all__ = ["Difference", "GroupedRelease", "Item", "ItemEstimate", "Other", "Quantity", "Release", "Value"]
