"""The request to a mechanism: public choices of the caller, and noisy values bought before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ..arrays import Floats
from ..stages import Stage
from ..tables import ROW_LIMIT

if TYPE_CHECKING:
    from .pilot_queries import RowHistogram

__all__ = ["Report", "Request", "Weight"]

Weight = Literal["rows", "users"]
Report = Callable[[Stage], None]


@dataclass(frozen=True)
class Request:
    """Public choices, and noisy values bought before. `report` is called with each stage. `found`: items were
    discovered. `seen_rows`: users by rows with noise, if they were bought before items were known. `prior`: a public
    distribution over the items, of positive shares. `group_of`: the number of each item's group, or -1, if users of
    groups are to be counted.
    """

    weight: Weight
    max_rows_per_user: int | None
    report: Report
    found: bool = False
    seen_rows: RowHistogram | None = None
    prior: Floats | None = None
    group_of: tuple[int, ...] = ()

    @property
    def buys_rows(self) -> bool:
        """Whether the contribution bound has to be found, for a small part of the budget."""
        return self.weight == "rows" and self.max_rows_per_user is None

    @property
    def row_cap(self) -> int:
        """How many rows of one user count at most, as far as the caller says."""
        return 1 if self.weight == "users" else self.max_rows_per_user or ROW_LIMIT
