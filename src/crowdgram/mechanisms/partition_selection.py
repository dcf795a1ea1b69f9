"""The beginning of a release without a domain: what is set aside, how the items are found, and what was found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..privacy import Found, Opening, PureFinish, Search
from ..tables import Rows, UsersByRows, UserTotals, user_totals
from .discovery import DiscoveryPlan, discover, open_search, users_needed
from .mechanism import Searching
from .pilot_queries import FOUND, RowHistogram, look_at_rows
from .request import Request
from .single_histogram import (
    HistogramItems,
    ItemsPerUser,
    RowWeights,
    choose_row_weights,
    find_by_histogram,
    query_items_per_user,
    users_needed_by_histogram,
)

__all__ = ["FoundByHistogram", "FoundByRounds", "find_items"]

WORTH = 5 / 8
"""What rounds make of the items of a user by adapting: as if the threshold were lower by this factor."""

TOLERABLE = 0.08
"""The l1 bias that one histogram may be predicted to have, by rows. It saves more than that."""

MOST_OF_THEM = 0.6
"""The part of users whose rows must be seen for that prediction to be believed."""


@dataclass(frozen=True)
class FoundByHistogram:
    """Items that one histogram found and measured. `estimate_from_histogram` goes on with the pure finish it began."""

    measured: HistogramItems
    spending: PureFinish

    @property
    def items(self) -> list[Any]:
        return self.measured.items


@dataclass(frozen=True)
class FoundByRounds:
    """Items that Gaussian rounds found; a mechanism goes on. seen_rows: what was bought about rows on the way."""

    items: list[Any]
    spending: Found
    seen_rows: RowHistogram | None = None


def find_items(
    rows: Rows, opening: Opening, plan: DiscoveryPlan, mechanism: Searching, request: Request, *, whole: bool
) -> FoundByHistogram | FoundByRounds:
    """Find the items of tallied rows, one way or the other.

    `whole`: whether `rows` are all rows that count; else one histogram cannot serve as the estimate. Guarantee: looks
    are reserved by public values before they are taken, and the way is chosen from noisy values
    (docs/proofs/discovery.md, Theorem 6).
    """
    search = open_search(opening, plan, mechanism.reserves(opening.guarantee, request, None))
    seen_rows = None
    if plan.looks and whole and (request.weight == "users" or request.max_rows_per_user in (None, 1)):
        held = user_totals(rows)
        if request.buys_rows:
            seen_rows = look_at_rows(held.sum(UsersByRows(RowHistogram.edges())).values, search, FOUND)
        weights = None if seen_rows is None else choose_row_weights(seen_rows)
        look = _items_per_user_if_histogram(held, search, plan, weights)
        held.drop()
        if look is not None:
            return FoundByHistogram(*find_by_histogram(rows, search, look, weights))
    return FoundByRounds(*discover(rows, search, plan), seen_rows)


def _items_per_user_if_histogram(
    held: UserTotals, search: Search, plan: DiscoveryPlan, weights: RowWeights | None
) -> ItemsPerUser | None:
    """The look, if by it one histogram is predicted to find more, and may be used at all.

    An item needs T_1 users with one item each in a histogram, and T_2 in rounds. Users with d items give it 1/d in the
    one and 1/sqrt(d) in the other, so that one user in all gives 1 and sqrt(d): histograms are better as long as
    mean(sqrt(d)) is below T_2/T_1, less what rounds gain by adapting.
    """
    if weights is not None and weights.bias > TOLERABLE:
        return None
    look = query_items_per_user(held, search)
    if look is None:
        return None
    if weights is not None and weights.unseen is None and weights.users < MOST_OF_THEM * look.users:
        return None
    limit = WORTH * users_needed(search, plan) / users_needed_by_histogram(search, look, weights)
    return look if look.root < limit else None
