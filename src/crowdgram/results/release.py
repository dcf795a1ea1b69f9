"""The release: what comes out. A frozen value; all that can be asked of it costs no further privacy.

The class holds the fields and what follows from them at once. Everything else is a function in a module of its own
(`marginals`, `merge`, `sampling`; the packages `inference`, `export`, `present`), and a method here is one call to it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from ..arrays import Floats, Integers
from ..escaping import printable
from ..mechanisms.estimate import TOO_LITTLE, Divisor, Total
from ..privacy import Event, Guarantee
from .base import Result, check_number
from .covariance import total_of
from .marginals import conditional, marginal, missed_share
from .merge import merge_items
from .values import (
    Difference,
    Item,
    ItemCounts,
    ItemEstimate,
    Measure,
    Quantity,
    Value,
)

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

    from ..privacy import Ledger, LedgerHead

__all__ = ["OWN_SUM", "Release"]

OWN_SUM = Divisor(own=1.0)
"""Of shares that were divided by their own sum."""


@dataclass(frozen=True, eq=False)
class Release(Result):
    """A distribution over the items of a domain, released under `guarantee`.

    items: in the order of the domain; the last may be an `Other`, for all rows of items that are not listed.
    probabilities: sum to 1. standard_errors: of the noise. lower, upper: an interval at level `confidence`, which
    covers the table's own answer: the figure computed from the same rows without privacy. predicted_l1_error: of all
    probabilities together, against the table's own. sampling_errors: how far the table's own may be from the population
    that its users came from; None if the mechanism does not learn it. events: every draw of noise that the table paid
    for. mechanism, parameters: how it was made; public. weight: "rows" (share of all rows) or "users" (the average
    user). versions: of the software that made it. item_columns: the columns that items are values of; with several,
    items are tuples. measured: the shares as measured, before shrinkage; noise_errors: of their independent noise;
    divisor: of what they were divided by; other_errors: what else than noise the intervals allow for. Sums of items
    start from these four; without noise_errors, from the standard errors. total: what the shares are of, for counts.
    users: how many users the table has, with at least one row that counts; it is noisy, also if adjacency="replace".
    None: unknown; of a part of a release it always is. ledger_head: where the ledger stood when it was charged; None
    without one.
    """

    _figures: ClassVar = ("probability", "count", "standard_error", "lower", "upper", "is_other")

    items: tuple[Item, ...]
    probabilities: Floats
    standard_errors: Floats
    lower: Floats
    upper: Floats
    confidence: float
    predicted_l1_error: float
    guarantee: Guarantee
    events: tuple[Event, ...]
    mechanism: str
    weight: str
    sampling_errors: Floats | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    item_columns: tuple[str, ...] = ("item",)
    measured: Floats | None = None
    other_errors: Floats | None = None
    noise_errors: Floats | None = None
    divisor: Divisor = OWN_SUM
    total: Total | None = None
    users: Quantity | None = None
    ledger_head: LedgerHead | None = None

    def __repr__(self) -> str:
        g = self.guarantee
        return (
            f"<Release of {len(self)} items by {printable(self.mechanism)}, weight={self.weight!r}, "
            f"epsilon={g.epsilon:g}, delta={g.delta:g}, {g.adjacency.value}>"
        )

    @property
    def too_little(self) -> bool:
        """Whether the release is mostly noise: its predicted l1 error is above one half."""
        return self.predicted_l1_error > TOO_LITTLE

    @property
    def rows_above_bound(self) -> Quantity | None:
        """The share of all rows that the bound on one user's rows leaves out, by estimate; None if it is unknown.

        It is of users enough to be seen: a few users with far more rows may hold more.
        """
        value, low, high = (self.parameters.get(f"rows_above_bound{end}") for end in ("", "_low", "_high"))
        return None if value is None or low is None or high is None else Quantity(value, low, high, self.confidence)

    @property
    def rows(self) -> Quantity | None:
        """How many rows count, with an interval; None if that is unknown, as it is with weight="users".

        If there is a contribution bound (`total.row_bound`), they are the rows within it.
        """
        return total_of(self) if self.weight == "rows" else None

    @cached_property
    def missed(self) -> Quantity | None:
        """The share of all that belongs to items which are not listed: what a search for items has missed. None if
        there is no item for them. With groups, the items for all others of every group are counted together.
        """
        return missed_share(self)

    def probability(self, item: Item) -> float:
        """The probability of one item of the domain."""
        return float(self.probabilities[self._place(item)])

    def estimate(self, item: Item) -> ItemEstimate:
        """One item with its standard error and interval."""
        return self._estimate_at(self._place(item))

    def top(self, n: int = 10) -> list[ItemEstimate]:
        """The n most probable items, most probable first."""
        check_number(n)
        order = np.argsort(-self.probabilities, kind="stable")[:n]
        return [self._estimate_at(int(place)) for place in order]

    def marginal(self, *columns: str) -> Release:
        """The distribution over some of the item columns, with errors of its own. Costs no privacy."""
        return marginal(self, columns)

    def conditional(self, *columns: str, given: Mapping[str, Value] | None = None, **fixed: Value) -> Release:
        """The distribution over item columns among the items whose other columns are as given. Costs no privacy.

            release.conditional("page", country="DE")

        Without `columns`: over all columns that are not fixed. `given`: for columns whose names are no Python names.
        """
        return conditional(self, columns, {**(given or {}), **fixed})

    def merged(
        self,
        mapping: Mapping[Any, Any] | Callable[[Any], Any],
        *,
        other: str | None = None,
        column: str | None = None,
    ) -> Release:
        """The distribution over groups of items, with errors of its own. Costs no privacy.

            release.merged({"apple": "fruit", "pear": "fruit"})
            release.merged(lambda day: day.month, column="month")

        mapping: what each item becomes; a function is asked for every listed item. What a mapping does not hold stays
        as it is, or becomes part of the item called `other`, if that is given; so does what becomes None. column: the
        name of the new item column. An `Other` stays one.
        """
        return merge_items(self, mapping, other, column)

    def sample(self, n: int, *, seed: int | None = None) -> list[Item]:
        """n synthetic items, drawn independently with the released probabilities. Costs no privacy.

        The randomness is ordinary: the release is public already, and nothing is hidden by it. The items belong to no
        users, and say no more than the probabilities do.
        """
        from .sampling import sample

        return sample(self, n, seed)

    def draws(self, n: int, *, measure: Measure = "shares", seed: int | None = None) -> Floats:
        """n draws of the whole vector, a row each: what the table's own answer may be, given the release.

        For simulation: a figure computed from each draw varies as its uncertainty says. Draws allow for noise, the
        total, bias, and what shrinkage makes of rare items. Shares of a draw sum to 1; with measure="counts" a draw
        is of counts. The randomness is ordinary: the release is public already. Costs no privacy.
        """
        from .sampling import draw_vectors

        return draw_vectors(self, n, measure, seed)

    def counts(self, *, simultaneous: bool = False) -> ItemCounts:
        """How often each item is in the table, with intervals that allow for share and total together.

            release.counts().top(3)

        With weight="rows": rows, within the contribution bound if there is one. With weight="users": users, each
        divided over their items as their rows are. `ItemCounts.about` says which. Costs no privacy. simultaneous: all
        intervals hold at once.
        """
        from ..inference.counts import counts

        return counts(self, simultaneous=simultaneous)

    def intervals(
        self, of: Literal["table", "population"] = "table", *, simultaneous: bool = False
    ) -> tuple[Floats, Floats]:
        """Lower and upper ends at level `confidence`.

        "table": they cover the table's own answer: the figure computed from the same rows without privacy. With a
        given `max_rows_per_user` and with "paper" that answer is narrower (docs/how-to/read-a-release.md).
        "population": they cover the population that its users came from, of which they are taken as a sample.
        simultaneous: all of them hold at once at that level, and are wider for it.
        """
        from ..inference.intervals import intervals

        return intervals(self, of, simultaneous=simultaneous)

    def ranks(self) -> tuple[Integers, Integers]:
        """Between which ranks each item is, 1 for the largest: the best and the worst, in the order of the items.

        They hold for all items at once, at level `confidence`. What stands for all items that are not listed has no
        rank: it is left out, and has 0.
        """
        from ..inference.ranks import ranks

        return ranks(self)

    def rank(self, item: Item) -> tuple[int, int]:
        """Between which ranks one item is, 1 for the largest: (2, 4) is between 2nd and 4th. See `ranks`."""
        from ..inference.ranks import rank

        return rank(self, item)

    def difference(
        self,
        item: Item,
        to: Item | None = None,
        *,
        other: Release | None = None,
        measure: Measure = "shares",
    ) -> Quantity:
        """One item minus another, or minus itself in another release, with an interval. Costs no privacy.

            release.difference("home", "search")
            january.difference("home", other=february, measure="counts")

        to: the other item, or the item's own name if that is left out. other: the release that `to` is of, with
        independent noise.
        """
        from ..inference.contrasts import difference

        return difference(self, item, to, other, measure)

    def ratio(
        self,
        item: Item,
        to: Item | None = None,
        *,
        other: Release | None = None,
        measure: Measure = "shares",
    ) -> Quantity:
        """One item over another, or over itself in another release, with an interval. Costs no privacy.

        Arguments are those of `difference`. The upper end is infinite if what is below may be nothing.
        """
        from ..inference.contrasts import ratio

        return ratio(self, item, to, other, measure)

    def entropy(self, *, base: float = 2.0, of: Literal["table", "population"] = "table") -> Quantity:
        """The entropy of the distribution, in bits unless `base` says otherwise. Costs no privacy.

        An item "other" counts as one item. If much of the mass is in items that are lost in noise, the interval is
        wide: they may share it evenly or not.
        """
        from ..inference.entropy import entropy

        return entropy(self, base, of)

    def distance(
        self,
        other: Release,
        kind: Literal["l1", "tv", "l2"] = "l1",
        *,
        of: Literal["table", "population"] = "table",
    ) -> Quantity:
        """How far two distributions are from each other, corrected for noise, with an interval. Costs no privacy.

        kind: "l1", the sum of absolute differences; "tv", half of it; "l2", the root of the sum of squares. Both need
        the same items, in any order; if both have an item for all others, what only one of them lists is counted there.
        The noise of the two is taken to be independent: it is, for two releases, for parts of them, and for two groups
        of one release. of: "population" allows for sampling too, for two tables of different users.
        """
        from ..inference.distances import distance

        return distance(self, other, kind, of)

    def differences(
        self, other: Release, n: int = 10, *, of: Literal["table", "population"] = "table"
    ) -> list[Difference]:
        """The n items that differ most from `other`, first those that surely do. Costs no privacy.

        Items are matched as by `distance`. Each interval holds at level `confidence` by itself: of many items that do
        not differ, some will seem to.
        """
        from ..inference.distances import differences

        return differences(self, other, n, of)

    def columns(self, *, measure: Measure = "shares") -> dict[str, Any]:
        """The columns of a frame: the item columns, then the figures. measure: "shares", or "counts" (see `counts`).

        In a column of strings the other item has its name; elsewhere it is missing. `is_other`, which is there only if
        there are such items, says which they are.
        """
        from ..export.tabular import columns

        return columns(self, measure)

    def to_arrow(self, *, measure: Measure = "shares") -> pyarrow.Table:
        """A table with a row for each item."""
        from ..export.tabular import to_arrow

        return to_arrow(self, measure)

    def to_pandas(self, *, measure: Measure = "shares") -> pandas.DataFrame:
        """A data frame with a row for each item."""
        from ..export.tabular import to_pandas

        return to_pandas(self, measure)

    def to_polars(self, *, measure: Measure = "shares") -> polars.DataFrame:
        """A data frame with a row for each item."""
        from ..export.tabular import to_polars

        return to_polars(self, measure)

    def to_csv(self, path: str | os.PathLike[str], *, measure: Measure = "shares", overwrite: bool = False) -> None:
        """Write the table of `to_arrow` as CSV, whole or not at all. overwrite: also over a file that is there."""
        from ..export import write_csv

        write_csv(self, path, measure, overwrite=overwrite)

    def to_parquet(self, path: str | os.PathLike[str], *, measure: Measure = "shares", overwrite: bool = False) -> None:
        """Write the table of `to_arrow` as Parquet, whole or not at all. overwrite: also over a file that is there."""
        from ..export import write_parquet

        write_parquet(self, path, measure, overwrite=overwrite)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Release:
        """Read a release that `save` wrote; of a grouped one, the joint release."""
        from ..export import load_joint

        return load_joint(path)

    def to_html(
        self,
        path: str | os.PathLike[str],
        *,
        title: str | None = None,
        measure: Measure = "shares",
        overwrite: bool = False,
    ) -> None:
        """Write a page to read in a browser, whole or not at all: items with intervals, the guarantee, how it was made.

        It is one file that loads nothing, with a list of all items to search and sort. overwrite: also over a file that
        is there. `crowdgram.report` puts several releases on one page.
        """
        from ..present.report import write_html

        write_html(self, path, title, measure, overwrite=overwrite)

    def about_items(self) -> str | None:
        """The sentences that say where the items come from; None if the domain is public and there is no other item."""
        from ..present.wording import about_items

        return about_items(self)

    def facts(self, *, ledger: Ledger | None = None) -> dict[str, Any]:
        """What a reviewer asks for, as plain values: unit, adjacency, epsilon and delta, mu and the epsilon of pure
        draws, epsilon at delta 1e-5, every draw and its part of the budget, bounds, bias, what is not protected.

        ledger: the one that the release was charged to, for what all of its releases come to. Costs no privacy.
        """
        from ..present.facts import facts

        return facts(self, ledger)

    def _repr_html_(self) -> str:
        from ..present.notebook import release_view

        return release_view(self)

    def _estimate_at(self, place: int) -> ItemEstimate:
        return ItemEstimate(
            self.items[place],
            float(self.probabilities[place]),
            float(self.standard_errors[place]),
            float(self.lower[place]),
            float(self.upper[place]),
        )
