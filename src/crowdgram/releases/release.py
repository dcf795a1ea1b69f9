"""The release: what comes out. A frozen value; all that can be asked of it costs no further privacy."""

from __future__ import annotations

import datetime
import os
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from ..errors import InvalidArgument, MissingDependency
from ..privacy import Event, Guarantee, to_dp_event

if TYPE_CHECKING:
    import dp_accounting
    import matplotlib.axes
    import pandas
    import polars
    import pyarrow

__all__ = ["Item", "ItemEstimate", "Release", "Value", "label", "optional_library", "plain"]

Floats = npt.NDArray[np.float64]
Value = int | str | bool | datetime.date | datetime.datetime | uuid.UUID
Item = Value | tuple[Value, ...]
"""A value of the item column; a tuple of values where there are several columns."""


@dataclass(frozen=True)
class ItemEstimate:
    """One item of a release."""

    item: Item
    probability: float
    standard_error: float
    lower: float
    upper: float


@dataclass(frozen=True, eq=False)
class Release:
    """A distribution over the items of a domain, released under `guarantee`.

    items: in the order of the domain. probabilities: sum to 1. standard_errors: of the noise. lower, upper: an
    interval at level `confidence` for the table's own answer, which it would give without privacy.
    predicted_l1_error: of all probabilities together, against the table's own. sampling_errors: how far the table's
    own may be from the population that its users came from; None where the mechanism does not learn it. events: every
    draw of noise that the table paid for. mechanism, parameters: how it was made; public. weight: "rows" (share of
    all rows) or "users" (the average user). versions: of the software that made it. item_columns: the columns that
    items are values of; with several, items are tuples. measured: the shares as measured, before shrinkage;
    other_errors: what else than noise the intervals allow for. Sums of items start from these two.
    """

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

    def __post_init__(self) -> None:
        columns = [self.probabilities, self.standard_errors, self.lower, self.upper]
        optional = [self.sampling_errors, self.measured, self.other_errors]
        for values in [*columns, *(one for one in optional if one is not None)]:
            if len(values) != len(self.items):
                raise InvalidArgument(f"a release of {len(self.items)} items has a column of {len(values)} values.")
            values.flags.writeable = False

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Release):
            return NotImplemented
        from .files import to_document

        return to_document(self) == to_document(other)

    __hash__ = None  # type: ignore[assignment]

    def __len__(self) -> int:
        return len(self.items)

    def probability(self, item: Item) -> float:
        """The probability of one item of the domain."""
        return float(self.probabilities[self._place(item)])

    def estimate(self, item: Item) -> ItemEstimate:
        """One item with its standard error and interval."""
        return self._at(self._place(item))

    def top(self, n: int = 10) -> list[ItemEstimate]:
        """The n most probable items, most probable first."""
        if isinstance(n, bool) or not isinstance(n, int) or n < 0:
            raise InvalidArgument(f"n={n!r}: needs to be a whole number of at least 0.")
        order = np.argsort(-self.probabilities, kind="stable")[:n]
        return [self._at(int(place)) for place in order]

    def intervals(self, of: Literal["table", "population"] = "table") -> tuple[Floats, Floats]:
        """Lower and upper ends at level `confidence`, for the table's own answer or for the population behind it.

        The first allow for noise and clipping. The second allow for sampling too: the users are taken as drawn from a
        population.
        """
        if of == "table":
            return self.lower, self.upper
        if of != "population":
            raise InvalidArgument(f"of={of!r}: needs to be 'table' or 'population'.")
        if self.sampling_errors is None:
            raise InvalidArgument(
                f"of='population': mechanism={self.mechanism!r} does not learn how users differ, and a part of a "
                "release does not know it. Use mechanism='auto', and the release as a whole."
            )
        reach = NormalDist().inv_cdf((1 + self.confidence) / 2) * self.sampling_errors
        middle, half = (self.lower + self.upper) / 2, (self.upper - self.lower) / 2
        wider = np.hypot(half, reach)
        return np.clip(middle - wider, 0.0, 1.0), np.clip(middle + wider, 0.0, 1.0)

    def marginal(self, *columns: str) -> Release:
        """The distribution over some of the item columns, with errors of its own. Costs no privacy."""
        from .parts import marginal

        return marginal(self, columns)

    def conditional(self, *columns: str, given: Mapping[str, Value] | None = None, **fixed: Value) -> Release:
        """The distribution over item columns among the items whose other columns are as given. Costs no privacy.

            release.conditional("page", country="DE")

        Without `columns`: over all columns that are not fixed. `given`: for columns whose names are no Python names.
        """
        from .parts import conditional

        return conditional(self, columns, {**(given or {}), **fixed})

    def to_arrow(self) -> pyarrow.Table:
        """A table with a row for each item."""
        import pyarrow as pa

        return pa.table(self.columns())

    def to_pandas(self) -> pandas.DataFrame:
        """A data frame with a row for each item."""
        frame: pandas.DataFrame = optional_library("pandas").DataFrame(self.columns())
        return frame

    def to_polars(self) -> polars.DataFrame:
        """A data frame with a row for each item."""
        frame: polars.DataFrame = optional_library("polars").DataFrame(self.columns())
        return frame

    def to_dp_event(self) -> dp_accounting.DpEvent:
        """The release as a dp_accounting event, to compose with other releases of the same users.

        The event's noise multipliers are for this release's adjacency; compose it with events of the same adjacency.
        "auto" and "adaptive" choose what to draw as they go, so compose their events by Renyi accounting against a
        budget fixed beforehand (dp_accounting's RdpAccountant), which holds for choices made on the way.
        """
        return to_dp_event(self.events)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the release as JSON, whole or not at all."""
        from .files import save

        save(self, path)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Release:
        """Read a release that `save` wrote; of a grouped one, the joint release."""
        from .files import load

        loaded = load(path)
        return loaded if isinstance(loaded, Release) else loaded.joint

    def plot(
        self, n: int = 20, *, truth: Mapping[Any, float] | None = None, ax: matplotlib.axes.Axes | None = None
    ) -> matplotlib.axes.Axes:
        """Draw the n most probable items with their intervals; `truth` adds public values to compare with."""
        from .draw import plot

        return plot(self, n, truth, ax)

    def __repr__(self) -> str:
        g = self.guarantee
        return (
            f"<Release of {len(self)} items by {self.mechanism}, weight={self.weight!r}, "
            f"epsilon={g.epsilon:g}, delta={g.delta:g}, {g.adjacency.value}>"
        )

    def _repr_html_(self) -> str:
        from .draw import to_html

        return to_html(self)

    @cached_property
    def _places(self) -> dict[Item, int]:
        return {item: place for place, item in enumerate(self.items)}

    def _place(self, item: Item) -> int:
        try:
            return self._places[item]
        except (KeyError, TypeError):
            raise InvalidArgument(f"item={item!r} is not in the domain of this release.") from None

    def _at(self, place: int) -> ItemEstimate:
        return ItemEstimate(
            self.items[place],
            float(self.probabilities[place]),
            float(self.standard_errors[place]),
            float(self.lower[place]),
            float(self.upper[place]),
        )

    def columns(self, *, named: bool = False) -> dict[str, Any]:
        """The columns of a frame: "item" (or the item columns, where there are several or `named`), then the rest."""
        one = len(self.item_columns) == 1
        names = ["item"] if one and not named else self.item_columns
        rows: Any = [(item,) for item in self.items] if one else self.items
        parts = zip(names, zip(*rows, strict=True), strict=True)
        return {
            **{name: [plain(value) for value in values] for name, values in parts},
            "probability": np.array(self.probabilities),
            "standard_error": np.array(self.standard_errors),
            "lower": np.array(self.lower),
            "upper": np.array(self.upper),
        }


def label(item: Item) -> str:
    """An item in words."""
    return ", ".join(map(str, item)) if isinstance(item, tuple) else str(item)


def plain(value: Value) -> Any:
    """A value as frames take it: UUIDs are text there."""
    return str(value) if isinstance(value, uuid.UUID) else value


def optional_library(library: str) -> Any:
    """A library that Crowdgram can do without, or an error that says how to get it."""
    import importlib

    try:
        return importlib.import_module(library)
    except ImportError:
        raise MissingDependency(f"{library} is not installed: pip install 'crowdgram[{library}]'.") from None
