"""The opening of a release without a domain: what is set aside, which way to find the items, and what was found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..privacy import Spending
from ..tables import Rows, UsersByRows, UserTotals, user_totals
from .discovery import DiscoveryPlan, discover, open_discovery, reserve_looks, users_needed
from .few import Few, Look, RowWeights, few_needed, find_few, look_at_sizes, weigh_rows
from .looks import FOUND, look_at_rows, reserve_pilot, reserve_rows
from .looks import Rows as RowsSeen
from .request import Request

__all__ = ["Opened", "find_items", "set_aside"]

WORTH = 5 / 8
"""What rounds make of the items of a user by adapting: as if the threshold were lower by this factor."""

TOLERABLE = 0.08
"""The l1 bias that one histogram may be predicted to have where rows are asked for. It saves more than that."""

MOST_OF_THEM = 0.6
"""The part of users whose rows must be seen for that prediction to be believed."""


@dataclass(frozen=True)
class Opened:
    """What was found. few: with its measurements, where one histogram was chosen; else seen_rows: what was bought about
    rows on the way.
    """

    items: list[Any]
    few: Few | None = None
    seen_rows: RowsSeen | None = None


def set_aside(spending: Spending, mechanism: str, request: Request, items: int) -> None:
    """Reserve all looks that a mechanism may take, by public values; `items`: how many there are, or FOUND."""
    if mechanism in ("auto", "adaptive"):
        reserve_pilot(spending, items, rows=request.buys_rows)
    elif request.buys_rows:
        reserve_rows(spending, items)


def find_items(
    rows: Rows, spending: Spending, plan: DiscoveryPlan, mechanism: str, request: Request, *, whole: bool
) -> Opened:
    """Find the items of tallied rows, one way or the other, and close the opening of the release.

    `whole`: whether `rows` are all rows that count; else one histogram cannot serve as the estimate. Guarantee: looks
    are reserved by public values before they are taken, and the way is chosen from noisy values
    (docs/proofs/discovery.md, Theorem 6).
    """
    chance = open_discovery(spending, plan)
    seen_rows = None
    if plan.looks:
        reserve_looks(spending)
        set_aside(spending, mechanism, request, FOUND)
        if whole and (request.weight == "users" or request.max_rows_per_user in (None, 1)):
            held = user_totals(rows)
            if request.buys_rows:
                seen_rows = look_at_rows(held.sum(UsersByRows(RowsSeen.edges())).values, spending, FOUND)
            weights = None if seen_rows is None else weigh_rows(seen_rows)
            look = _look_for_few(held, spending, plan, weights, chance)
            held.drop()
            if look is not None:
                found = find_few(rows, spending, look, weights, chance)
                return Opened(found.items, found)
    items = discover(rows, spending, plan, chance)
    spending.end_opening(pure_delta=plan.pure_delta)
    return Opened(items, None, seen_rows)


def _look_for_few(
    held: UserTotals, spending: Spending, plan: DiscoveryPlan, weights: RowWeights | None, chance: float
) -> Look | None:
    """The look, if by it one histogram is predicted to find more, and may be used at all.

    An item needs T_1 users with one item each in a histogram, and T_2 in rounds. Users with d items give it 1/d in the
    one and 1/sqrt(d) in the other, so that one user in all gives 1 and sqrt(d): histograms are better as long as
    mean(sqrt(d)) is below T_2/T_1, less what rounds gain by adapting.
    """
    if weights is not None and weights.bias > TOLERABLE:
        return None
    look = look_at_sizes(held, spending)
    if look is None:
        return None
    if weights is not None and weights.unseen is None and weights.users < MOST_OF_THEM * look.users:
        return None
    limit = WORTH * users_needed(spending, plan, chance) / few_needed(spending, look, weights, chance)
    return look if look.root < limit else None
