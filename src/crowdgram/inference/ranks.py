"""Between which ranks items are.

If all intervals hold at once, an item is below every item whose lower end is above its upper end, and above every item
whose upper end is below its lower end; nothing else is known. So ranks hold for all items at once, too (Klein, Wright
and Wieczorek 2020). The divisor moves all shares alike and plays no part. Two sorted arrays tell it: nothing of the
size of pairs of items is made.
"""

from __future__ import annotations

import numpy as np

from ..arrays import Integers
from ..errors import InvalidArgument
from ..results.covariance import Measured, Quantiles
from ..results.release import Release
from ..results.values import Item, is_unlisted, unlisted
from .intervals import intervals, unseen_variance

__all__ = ["rank", "ranks"]


def ranks(release: Release) -> tuple[Integers, Integers]:
    """The best and the worst rank of each item; 0 for what stands for all that are not listed."""
    listed = ~np.array(unlisted(release.items), dtype=bool)
    lower, upper = intervals(release, "table", simultaneous=True)
    if release.measured is not None:
        measured = Measured.of(release)
        reach = Quantiles.of(release, int(listed.sum()) or 1).reach(
            measured.noise, measured.other + unseen_variance(release)
        )
        # An interval that begins at 0 whatever was measured stays so.
        lower = np.where(release.lower > 0, measured.x - reach, np.minimum(measured.x - reach, 0.0))
        upper = measured.x.clip(0.0) + reach
    best, worst = np.zeros(len(release), dtype=np.int64), np.zeros(len(release), dtype=np.int64)
    low, high = lower[listed], upper[listed]
    best[listed] = 1 + len(low) - np.searchsorted(np.sort(low), high, side="right")
    worst[listed] = len(high) - np.searchsorted(np.sort(high), low, side="left")
    return best, worst


def rank(release: Release, item: Item) -> tuple[int, int]:
    """The best and the worst rank of one item."""
    release.probability(item)  # refuses what is not there
    if is_unlisted(item):
        raise InvalidArgument(
            f"item={item!r}: stands for all items that are not listed, so it has no rank.", argument="item"
        )
    best, worst = ranks(release)
    place = release.items.index(item)
    return int(best[place]), int(worst[place])
