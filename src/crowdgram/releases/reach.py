"""Reach: how many users have each item, by the same pipeline as a release."""

from __future__ import annotations

from typing import Literal, Unpack, overload

from ..present.reach import warn_of_little_reach
from ..privacy import Adjacency, Guarantee
from ..results.grouped_reach import GroupedReach
from ..results.reach import Reach
from .budgets import LedgerLike
from .exception_hygiene import sanitize_errors
from .items import with_bins
from .pipeline import Asked, Progress, run
from .query import Column, Columns, Query

__all__ = ["reach"]


class _Asked(Asked, total=False):
    max_items_per_user: int | None


@overload
def reach(table: object, *, by: None = None, groups: None = None, **asked: Unpack[_Asked]) -> Reach: ...
@overload
def reach(table: object, *, by: Column, groups: object = None, **asked: Unpack[_Asked]) -> GroupedReach: ...
@sanitize_errors(then=warn_of_little_reach)
def reach(
    table: object,
    *,
    user: Column,
    item: Columns,
    epsilon: float,
    delta: float = 0.0,
    domain: object = None,
    count: str | None = None,
    where: object = None,
    by: Column | None = None,
    groups: object = None,
    other: str | None = None,
    adjacency: Adjacency | Literal["add-remove", "replace"] = Adjacency.ADD_REMOVE,
    max_items_per_user: int | None = None,
    ledger: LedgerLike | None = None,
    progress: Progress | None = None,
) -> Reach | GroupedReach:
    """Release how many users have each item at least once, and which share of all users, under user-level differential
    privacy.

    table, user, item, epsilon, delta, domain, where, adjacency, ledger, progress: as for `release`. If `item` is a list
        of columns, an item is a combination of their values.
    count: a column of whole numbers. A row whose count is missing, negative or zero is dropped, and gives no item; how
        large a count is does not matter.
    by, groups: users of each item in each group, and users of each group: as for `release`. The result is a
        `GroupedReach`. A user may be in many groups; all of it has the one guarantee.
    other: the name of the item for all that is outside the domain: the users who have any of it ("other" if items are
        discovered).
    max_items_per_user: how many items of one user count fully; users with more count in part for each of their items,
        and are not dropped. By default it is found privately, for a small part of the budget. Intervals allow for what
        it leaves out.

    Laplace noise, which needs no delta, or Gaussian noise is chosen by predicted error. If noise is most of the result
    there is an `AccuracyWarning` (`Reach.too_little`).

    Guarantee: the returned reach satisfies `reach.guarantee`, recomputed from `reach.events`: everything else that
    leaves this function (errors, stages) depends on the schema, on public arguments and on noisy values only.
    """
    from ..mechanisms import ItemUsers  # releases need none of it

    domain, groups = with_bins(item, by, domain, groups)
    query = Query(
        user=user,
        item=item,
        guarantee=Guarantee(epsilon, delta, Adjacency.parse(adjacency)),
        domain=domain,
        count=count,
        where=where,
        by=by,
        groups=groups,
        other=other,
        weight="users",
        mechanism=ItemUsers(max_items_per_user),
    )
    made = run(table, query, ledger=ledger, progress=progress)
    assert isinstance(made, Reach | GroupedReach)
    return made
