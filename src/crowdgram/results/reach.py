"""Reach: how many users have each item. A frozen value; all that can be asked of it costs no further privacy.

It is no `Release`: a user who has several items counts for each of them, so that counts do not sum to the number of
users, nor shares to 1, and what needs a distribution (entropy, distances, marginals, samples) has no meaning here.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np

from ..arrays import Floats
from ..mechanisms.estimate import TOO_LITTLE
from ..privacy import Event, Guarantee
from .base import Result, check_number
from .values import Item, Quantity

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

    from ..privacy import Ledger, LedgerHead

__all__ = ["FIGURES", "Reach", "ReachedItem"]

FIGURES = ("users", "standard_error", "lower", "upper", "share", "share_lower", "share_upper", "is_other")
"""The columns of frames beside those of the items."""


@dataclass(frozen=True)
class ReachedItem:
    """One item: how many users have it, and which share of all users, each with an interval."""

    item: Item
    users: float
    standard_error: float
    lower: float
    upper: float
    share: float
    share_lower: float
    share_upper: float


class ReachOutput:
    """What a reach, and a reach by groups, is written and turned into."""

    def to_arrow(self) -> pyarrow.Table:
        """A table with a row for each item; by groups, for each group and item, with the group's number of users."""
        from ..export.tabular import to_arrow

        return to_arrow(cast(Any, self))

    def to_pandas(self) -> pandas.DataFrame:
        """The table of `to_arrow` as a data frame."""
        from ..export.tabular import to_pandas

        return to_pandas(cast(Any, self))

    def to_polars(self) -> polars.DataFrame:
        """The table of `to_arrow` as a data frame."""
        from ..export.tabular import to_polars

        return to_polars(cast(Any, self))

    def to_csv(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the table of `to_arrow` as CSV, whole or not at all. overwrite: also over a file that is there."""
        from ..export import write_csv

        write_csv(cast(Any, self), path, overwrite=overwrite)

    def to_parquet(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the table of `to_arrow` as Parquet, whole or not at all. overwrite: also over a file that is there."""
        from ..export import write_parquet

        write_parquet(cast(Any, self), path, overwrite=overwrite)

    def to_html(self, path: str | os.PathLike[str], *, title: str | None = None, overwrite: bool = False) -> None:
        """Write a page to read in a browser, whole or not at all: one file that loads nothing.

        overwrite: also over a file that is there.
        """
        from ..present.report import write_html

        write_html(cast(Any, self), path, title, overwrite=overwrite)


@dataclass(frozen=True, eq=False)
class Reach(ReachOutput, Result):
    """How many users have each item at least once, released under `guarantee`.

    items: in the order of the domain; the last may be an `Other`: the users who have any item that is not listed.
    counts: of users, by item. standard_errors: of their noise. lower, upper: an interval at level `confidence`, which
    covers the table's own number. users: how many users there are, with at least one item. left_out: how many users
    the bound on one user's items takes off an item that all users have; intervals allow for it; None if it takes
    nothing off. predicted_l1_error: of all counts together, in users. events: every draw of noise that the table paid
    for. parameters: how it was made; public. versions: of the software that made it. item_columns: the columns that
    items are values of; with several, items are tuples. ledger_head: where the ledger stood when it was charged;
    None without one. predicted_errors: the part of each item in predicted_l1_error.
    """

    _figures: ClassVar = FIGURES

    items: tuple[Item, ...]
    counts: Floats
    standard_errors: Floats
    lower: Floats
    upper: Floats
    confidence: float
    users: Quantity
    left_out: Quantity | None
    predicted_l1_error: float
    guarantee: Guarantee
    events: tuple[Event, ...]
    parameters: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    item_columns: tuple[str, ...] = ("item",)
    ledger_head: LedgerHead | None = None
    predicted_errors: Floats | None = None

    def __repr__(self) -> str:
        g = self.guarantee
        return f"<Reach of {len(self)} items, epsilon={g.epsilon:g}, delta={g.delta:g}, {g.adjacency.value}>"

    @property
    def too_little(self) -> bool:
        """Whether the counts are mostly noise: their predicted l1 error is above half of their sum."""
        return self.predicted_l1_error > TOO_LITTLE * float(self.counts.sum())

    @cached_property
    def shares(self) -> Floats:
        """The share of all users who have each item. Shares do not sum to 1."""
        return _frozen(np.minimum(self.counts / self.users.value, 1.0))

    @cached_property
    def share_intervals(self) -> tuple[Floats, Floats]:
        """Lower and upper ends of `shares` at level `confidence`: the errors of a count and of the number of users
        together, whose noise is taken to be independent.
        """
        n, shares = self.users.value, self.counts / self.users.value
        below = np.hypot((self.counts - self.lower) / n, shares * (self.users.upper - n) / n)
        above = np.hypot((self.upper - self.counts) / n, shares * (n - self.users.lower) / n)
        return _frozen(np.clip(shares - below, 0.0, 1.0)), _frozen(np.clip(shares + above, 0.0, 1.0))

    def estimate(self, item: Item) -> ReachedItem:
        """One item, with errors."""
        return self._at(self._place(item))

    def top(self, n: int = 10) -> list[ReachedItem]:
        """The n items that most users have, first those that most have."""
        check_number(n)
        return [self._at(int(place)) for place in np.argsort(-self.counts, kind="stable")[:n]]

    def columns(self) -> dict[str, Any]:
        """The columns of a frame: the item columns, then `users` with its errors and `share` with its interval.

        In a column of strings the other item has its name; elsewhere it is missing. `is_other`, which is there only if
        there is such an item, says which it is.
        """
        from ..export.tabular import columns

        return columns(self)

    def facts(self, *, ledger: Ledger | None = None) -> dict[str, Any]:
        """What a reviewer asks for, as plain values; see `Release.facts`."""
        from ..present.facts import facts

        return facts(self, ledger)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Reach:
        """Read what `save` wrote."""
        from ..export import load_reach

        return load_reach(path)

    def _repr_html_(self) -> str:
        from ..present.reach import reach_view

        return reach_view(self)

    def _at(self, place: int) -> ReachedItem:
        low, high = self.share_intervals
        arrays = (self.counts, self.standard_errors, self.lower, self.upper, self.shares, low, high)
        return ReachedItem(self.items[place], *(float(values[place]) for values in arrays))


def _frozen(values: Floats) -> Floats:
    values.flags.writeable = False
    return values
