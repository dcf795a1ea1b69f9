"""The query: the public arguments of a release, checked before anything is opened."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from ..errors import InvalidArgument, PrivacyWarning
from ..mechanisms import Costed, Discover, Searching, Weight, check_whole
from ..privacy import Guarantee
from ..tables import ROW_LIMIT
from .items import missing_lists

__all__ = ["Column", "Columns", "Query", "check_weight"]

LARGE_DELTA, MAX_DELTA = 1e-3, 0.1
"""The first and more gives a warning; the second and more is refused."""
LARGE_EPSILON = 10.0
"""More gives a warning."""

Column = str | Mapping[str, object]
"""The name of a column, or a name for an expression; for an item or a group, also for bins."""
Columns = Column | Sequence[Column]


@dataclass(frozen=True, kw_only=True)
class Query:
    """The arguments of `release`, or of `reach`, but for the table, the ledger and `progress`."""

    user: Column
    item: Columns
    guarantee: Guarantee
    mechanism: Costed
    domain: object = None
    count: str | None = None
    where: object = None
    by: Column | None = None
    groups: object = None
    other: str | None = None
    weight: Weight = "rows"
    max_rows_per_user: int | None = None

    def __post_init__(self) -> None:
        _check_strength(self.guarantee)
        check_weight(self.weight)
        self.mechanism.check(self.guarantee, self.weight)
        # With weight "users" a row cap is accepted and not needed: every user weighs the same.
        check_whole("max_rows_per_user", self.max_rows_per_user, ROW_LIMIT)
        if self.other is not None and (not isinstance(self.other, str) or not self.other.strip()):
            raise InvalidArgument(
                f"other={self.other!r}: needs to be a name for the item that stands for all others, or None.",
                argument="other",
            )
        if not self.grouped and self.groups is not None:
            raise InvalidArgument(
                f"groups={self.groups!r}: needs by. Say which column holds the groups.", argument="groups"
            )
        if self.missing:
            self._check_discovery()

    @property
    def grouped(self) -> bool:
        return self.by is not None

    @property
    def missing(self) -> list[str]:
        """The arguments that give no list, so that items must be found."""
        return missing_lists(self.domain, self.groups, grouped=self.grouped)

    @property
    def bound(self) -> dict[str, str]:
        """A parameter of the release that says so if the contribution bound is the caller's: part of the question."""
        given = self.weight == "rows" and self.max_rows_per_user is not None
        return {"row_bound": "given"} if given else {}

    @property
    def discovery_share(self) -> float:
        """The part of the budget that finds items, if a list is missing."""
        return next((one.share for one in (self.domain, self.groups) if isinstance(one, Discover)), Discover().share)

    def _check_discovery(self) -> None:
        """Refuse to find items if that cannot be paid for, or what follows cannot be."""
        if isinstance(self.groups, Discover) and self.groups.share != self.discovery_share:
            raise InvalidArgument(
                f"groups={self.groups}: needs the share of domain={self.domain}, as groups and items are found "
                "together. Give it once.",
                argument="groups",
            )
        lists = " and ".join(self.missing)
        if self.guarantee.delta == 0:
            raise InvalidArgument(
                f"delta=0: without {lists}, the items need to be found in the table, and that needs a small chance "
                "delta. Give a delta such as 1e-6, or a public list.",
                argument="delta",
            )
        if not isinstance(self.mechanism, Searching):
            raise InvalidArgument(
                f"mechanism={self.mechanism.name!r}: needs {lists}, as it is for items that are known. Give a list, "
                "or use mechanism='auto'.",
                argument="mechanism",
            )


def check_weight(weight: object) -> Weight:
    """`weight`, if it is one."""
    if not isinstance(weight, str) or weight not in ("rows", "users"):
        raise InvalidArgument(
            f"weight={weight!r}: needs to be 'rows' (share of all rows) or 'users' (the average user).",
            argument="weight",
        )
    return cast(Weight, weight)


def _check_strength(guarantee: Guarantee) -> None:
    """Refuse a delta that makes the guarantee meaningless, and warn of what makes it weak."""
    epsilon, delta, weak = guarantee.epsilon, guarantee.delta, []
    advice = "Keep it far below one over the number of users, such as 1e-6."
    if delta >= MAX_DELTA:
        raise InvalidArgument(
            f"delta={delta:g}: needs to be below {MAX_DELTA:g}. With this delta, a release that shows all "
            f"rows of one user in {1 / delta:.2g} would satisfy the guarantee. {advice}",
            argument="delta",
        )
    if delta >= LARGE_DELTA:
        weak.append(
            f"delta={delta:g} is large: a release that shows all rows of one user in {1 / delta:.0f} would satisfy the "
            f"guarantee. {advice}"
        )
    if epsilon > LARGE_EPSILON:
        weak.append(
            f"epsilon={epsilon:g} is large: one user's rows may make an outcome {math.exp(epsilon):.2g} times as "
            "probable, so the guarantee says little. Try epsilon=1."
        )
    for said in weak:
        # The caller of `release`, behind `sanitize_errors` and the query that it makes.
        warnings.warn(said, PrivacyWarning, stacklevel=6)
