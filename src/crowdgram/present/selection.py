"""Which items and groups are shown, if there are more than a reader can take in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..results.grouped import GroupedRelease
from ..results.grouped_reach import GroupedReach
from ..results.reach import Reach
from ..results.release import Release
from ..results.values import Item, ItemEstimate, Measure, Other, is_other

__all__ = ["common_items", "figures", "largest_groups", "top_listed"]


def top_listed(release: Release, n: int) -> list[ItemEstimate]:
    """The n most probable listed items; what stands for all that are not listed is no item among others."""
    return [one for one in release.top(n + 1) if one.item != release.other][:n]


def figures(release: Release, shown: Sequence[ItemEstimate], measure: Measure) -> list[ItemEstimate]:
    """The same items with what is shown of them: their probabilities, or their counts in the place of these."""
    if measure == "shares":
        return list(shown)
    counts = release.counts()
    found = (counts.estimate(one.item) for one in shown)
    return [ItemEstimate(one.item, one.count, one.standard_error, one.lower, one.upper) for one in found]


def largest_groups(grouped: GroupedRelease | GroupedReach, n: int) -> list[Any]:
    """The n groups with the largest shares, or with most users, largest first."""
    if isinstance(grouped, GroupedReach):
        return sorted(grouped.groups, key=lambda group: -grouped[group].users.value)[:n]
    found = grouped.shares.top(len(grouped.shares))
    return [one.item for one in found if not isinstance(one.item, Other)][:n]


def common_items(parts: Iterable[Release | Reach], n: int) -> list[Item]:
    """The n listed items with the largest mean probability over `parts`, or with most users, largest first; last, the
    `Other` if any.
    """
    sums: dict[Item, float] = {}
    for own in parts:
        values = own.counts if isinstance(own, Reach) else own.probabilities
        for item, value in zip(own.items, values.tolist(), strict=True):
            sums[item] = sums.get(item, 0.0) + value
    listed = sorted((item for item in sums if not is_other(item)), key=lambda item: -sums[item])
    return listed[:n] + [item for item in sums if is_other(item)]
