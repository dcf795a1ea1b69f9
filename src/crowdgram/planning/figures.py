"""The figures of a crowd that a plan is asked for, checked."""

from __future__ import annotations

import numpy as np

from ..arrays import Floats
from ..errors import InvalidArgument
from .shapes import MOST_PLANNED_ITEMS, MOST_PLANNED_USERS, zipf_shares
from .solving import RANGES

__all__ = ["check_numbers", "shares_of", "shown_share"]


def shares_of(items: object, zipf: object) -> Floats:
    """The crowd's distribution: shares of so many items by Zipf's law."""
    if items is None:
        raise InvalidArgument(
            "items=None: needs how many items there are, or may be. A plan does not look for them.", argument="items"
        )
    whole = isinstance(items, int | np.integer) and not isinstance(items, bool)
    if not whole or not 2 <= items <= MOST_PLANNED_ITEMS:  # type: ignore[operator]
        raise InvalidArgument(
            f"items={items!r}: needs to be a whole number from 2 to {MOST_PLANNED_ITEMS:,}.", argument="items"
        )
    if isinstance(zipf, bool) or not isinstance(zipf, int | float) or not 0 <= zipf <= 5:
        raise InvalidArgument(f"zipf={zipf!r}: needs to be a number from 0 (all items alike) to 5.", argument="zipf")
    return zipf_shares(int(items), float(zipf))  # type: ignore[call-overload]


def shown_share(share: object, shares: Floats) -> float:
    """The share of an item to speak of: one that items of this crowd have, or nearly."""
    least, most = float(shares[shares > 0].min()), float(shares.max())
    if share is None:
        return min(max(0.01, least), most)
    if isinstance(share, bool) or not isinstance(share, int | float) or not least / 2 <= share <= min(2 * most, 1.0):
        raise InvalidArgument(
            f"share={share!r}: needs to be that of an item. Those of {len(shares):,} items go from {least:.2g} to "
            f"{most:.2g}.",
            argument="share",
        )
    return float(share)


def check_numbers(given: dict[str, float | None], against: object) -> None:
    """Users and rows per user, where they are given, and whose answer a target is for."""
    limits = {"users": (1, MOST_PLANNED_USERS), "rows_per_user": (1, RANGES["rows_per_user"].high)}
    for name, (low, high) in limits.items():
        value = given[name]
        if value is None:
            continue
        number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
        if not number or not low <= value <= high:
            raise InvalidArgument(f"{name}={value!r}: needs to be a number from {low} to {high:,.0f}.", argument=name)
    if against not in ("table", "population"):
        raise InvalidArgument(f"against={against!r}: needs to be 'table' or 'population'.", argument="against")
