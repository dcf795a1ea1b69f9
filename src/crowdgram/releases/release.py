"""The release: what comes out. A frozen value; all that can be asked of it costs no further privacy."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from ..errors import InvalidArgument, MissingDependency
from ..privacy import Event, Guarantee, ThresholdEvent, to_dp_event

if TYPE_CHECKING:
    import dp_accounting
    import matplotlib.axes
    import pandas
    import polars
    import pyarrow

__all__ = ["ItemEstimate", "Other", "Release"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Other:
    """The one item that stands for all items that are not listed.

    Not a string, so that no item of the table can be taken for it: `Other("other") != "other"`. Its name is unlike
    that of every listed item.
    """

    name: str

    def __str__(self) -> str:
        return self.name

    @classmethod
    def apart_from(cls, items: Iterable[object], name: str) -> Other:
        """An item of this name, with a star or more to it if a listed item is called so."""
        taken = {str(item) for item in items}
        while name in taken:
            name += "*"
        return cls(name)


Item = int | str | Other


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

    items: in the order of the domain; the last may be an `Other`, for all rows of items that are not listed.
    probabilities: sum to 1. standard_errors: of the noise. lower, upper: an
    interval at level `confidence` for the table's own answer, which it would give without privacy.
    predicted_l1_error: of all probabilities together, against the table's own. sampling_errors: how far the table's
    own may be from the population that its users came from; None where the mechanism does not learn it. events: every
    draw of noise that the table paid for. mechanism, parameters: how it was made; public. weight: "rows" (share of
    all rows) or "users" (the average user). versions: of the software that made it.
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

    def __post_init__(self) -> None:
        columns = [self.probabilities, self.standard_errors, self.lower, self.upper]
        for values in columns if self.sampling_errors is None else [*columns, self.sampling_errors]:
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

    @property
    def other(self) -> Other | None:
        """The item that stands for all that are not listed, if there is one."""
        last = self.items[-1] if self.items else None
        return last if isinstance(last, Other) else None

    @property
    def threshold_delta(self) -> float:
        """The part of delta that was for finding the items; 0 where the domain was public."""
        return math.fsum(event.delta for event in self.events if isinstance(event, ThresholdEvent))

    def about_items(self) -> str | None:
        """Where the items come from, in one plain sentence; None for a public domain that is all."""
        if self.other is None:
            return None
        name = f"The item '{self.other}' stands for all items that are not listed"
        if not self.threshold_delta:
            return f"{name}."
        share = self.parameters.get("discovery_share")
        part = f"{share:.3g} of" if isinstance(share, float) else "part of"
        return f"The items were found in the table itself, and {part} the budget bought that. {name}."

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
                f"of='population': mechanism={self.mechanism!r} does not learn how users differ. Use mechanism='auto'."
            )
        reach = NormalDist().inv_cdf((1 + self.confidence) / 2) * self.sampling_errors
        middle, half = (self.lower + self.upper) / 2, (self.upper - self.lower) / 2
        wider = np.hypot(half, reach)
        return np.clip(middle - wider, 0.0, 1.0), np.clip(middle + wider, 0.0, 1.0)

    def to_arrow(self) -> pyarrow.Table:
        """A table with a row for each item."""
        import pyarrow as pa

        return pa.table(self._columns())

    def to_pandas(self) -> pandas.DataFrame:
        """A data frame with a row for each item."""
        columns, library = self._columns(), _optional("pandas")
        if self.other is not None and any(isinstance(item, int) for item in self.items):
            columns["item"] = library.array(columns["item"], dtype="Int64")  # a missing value would make it floats
        frame: pandas.DataFrame = library.DataFrame(columns)
        return frame

    def to_polars(self) -> polars.DataFrame:
        """A data frame with a row for each item."""
        frame: polars.DataFrame = _optional("polars").DataFrame(self._columns())
        return frame

    def to_dp_event(self, *, without_thresholds: bool = False) -> dp_accounting.DpEvent:
        """The release as a dp_accounting event, to compose with other releases of the same users.

        The event's noise multipliers are for this release's adjacency; compose it with events of the same adjacency.
        "auto" and "adaptive" choose what to draw as they go, so compose their events by Renyi accounting against a
        budget fixed beforehand (dp_accounting's RdpAccountant), which holds for choices made on the way. Items that
        were found in the table cost `threshold_delta`, which dp_accounting cannot express: add it to the accountant's
        delta yourself, and say so by `without_thresholds`.
        """
        return to_dp_event(self.events, without_thresholds=without_thresholds)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the release as JSON, whole or not at all."""
        from .files import save

        save(self, path)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Release:
        """Read a release that `save` wrote."""
        from .files import load

        return load(path)

    def plot(
        self, n: int = 20, *, truth: Mapping[Item, float] | None = None, ax: matplotlib.axes.Axes | None = None
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

    def _columns(self) -> dict[str, Any]:
        """In a column of strings the other item has its name; elsewhere it is missing. `is_other` says which it is."""
        listed: list[Any] = [item for item in self.items if not isinstance(item, Other)]
        marks: dict[str, Any] = {}
        if self.other is not None:
            marks["is_other"] = np.arange(len(self.items)) == len(listed)
            listed.append(self.other.name if all(isinstance(item, str) for item in listed) else None)
        return {
            "item": listed,
            "probability": np.array(self.probabilities),
            "standard_error": np.array(self.standard_errors),
            "lower": np.array(self.lower),
            "upper": np.array(self.upper),
            **marks,
        }


def _optional(library: str) -> Any:
    import importlib

    try:
        return importlib.import_module(library)
    except ImportError:
        raise MissingDependency(f"{library} is not installed: pip install 'crowdgram[{library}]'.") from None
