"""Checks of a release that is not made: all that can fail for a public reason, by the code that a release runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ..mechanisms import Auto, Weight
from ..privacy import Guarantee
from .budgets import Charge, LedgerLike, check_left, open_ledger
from .exception_hygiene import sanitize_errors
from .items import with_bins
from .pipeline import open_table, read_public
from .promises import promise_of
from .query import Column, Columns, Query

__all__ = ["Checked", "check"]


@dataclass(frozen=True)
class Checked:
    """What was found right, by the schema and by public arguments. columns: the type of each. items: how many the
    public lists make; None if items are to be found. ledger: that it has enough left, in words; None without one.
    discovery_share: the part of the budget that finds items; None if they are listed.
    """

    columns: Mapping[str, str]
    items: int | None
    ledger: str | None
    discovery_share: float | None = None

    def sentences(self) -> list[str]:
        """The same in words."""
        listed = ", ".join(f"{name} ({kind})" for name, kind in self.columns.items())
        items = "the items are to be found, for part of the budget" if self.items is None else f"{self.items:,} items"
        said = [f"The table can be read: {listed}; {items}. No row was read, and nothing was charged."]
        return said if self.ledger is None else [*said, self.ledger]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def _nothing(_: object) -> None:
    """Nothing follows a check."""


@sanitize_errors(then=_nothing)
def check(
    table: object,
    *,
    user: Column,
    item: Columns,
    guarantee: Guarantee,
    domain: object = None,
    count: str | None = None,
    where: object = None,
    by: Column | None = None,
    groups: object = None,
    other: str | None = None,
    weight: Weight = "rows",
    max_rows_per_user: int | None = None,
    ledger: LedgerLike | None = None,
) -> Checked:
    """Check columns, types, lists and ledger as a release by `auto` does; raise the error that it would raise.

    Guarantee: no row is read, no noise is drawn and nothing is charged. What leaves depends on the schema, on public
    arguments and on the ledger.
    """
    domain, groups = with_bins(item, by, domain, groups)
    query = Query(
        user=user,
        item=item,
        guarantee=guarantee,
        domain=domain,
        count=count,
        where=where,
        by=by,
        groups=groups,
        other=other,
        weight=weight,
        mechanism=Auto(),
        max_rows_per_user=max_rows_per_user,
    )
    promised, _ = promise_of(query)
    budget = open_ledger(ledger, promised)
    rows = open_table(table, query, budget)
    with rows.engine:
        _, _, items, request = read_public(rows, query, _nothing)
        columns = {name: str(kind) for name, kind in zip(rows.names, rows.item_types, strict=True)}
    size = None if items is None else len(items)
    share = query.discovery_share if items is None else None
    if budget is None:
        return Checked(columns, size, None, share)
    check_left(budget, Charge(promised, query.mechanism, request, size, query.discovery_share))
    enough = f"The ledger has enough left for epsilon={promised.epsilon:g}, delta={promised.delta:g}."
    return Checked(columns, size, enough, share)
