"""The release: what comes out. A frozen value; all that can be asked of it costs no further privacy."""

from __future__ import annotations

import datetime
import math
import os
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from ..errors import InvalidArgument, MissingDependency, UnknownItem
from ..escaping import printable
from ..mechanisms.estimate import TOO_LITTLE, Divisor
from ..privacy import Event, Guarantee, ThresholdEvent, to_dp_event

if TYPE_CHECKING:
    import dp_accounting
    import matplotlib.axes
    import pandas
    import polars
    import pyarrow

__all__ = [
    "OWN_SUM",
    "Difference",
    "Item",
    "ItemEstimate",
    "Other",
    "Quantity",
    "Release",
    "Value",
    "label",
    "optional_library",
    "pandas_frame",
    "plain",
]

Floats = npt.NDArray[np.float64]

OWN_SUM = Divisor(own=1.0)
"""Of shares that were divided by their own sum."""
_FIGURES = ("probability", "standard_error", "lower", "upper", "is_other")


@dataclass(frozen=True)
class Other:
    """The one item that stands for all items that are not listed.

    Not a string, so that no item of the table can be taken for it: `Other("other") != "other"`. Its name is unlike
    that of every listed item. With several item columns it stands in each of them, or in all but that of the groups.
    """

    name: str

    def __str__(self) -> str:
        return self.name

    @classmethod
    def apart_from(cls, items: Iterable[object], name: str) -> Other:
        """An item of this name, with a star or more to it if a listed item, or a value of one, is called so."""
        taken = set()
        for item in items:
            taken |= {label(item), *map(str, item)} if isinstance(item, tuple) else {str(item)}
        while name in taken:
            name += "*"
        return cls(name)


Value = int | str | bool | datetime.date | datetime.datetime | uuid.UUID | Other
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


@dataclass(frozen=True)
class Quantity:
    """A number computed from a release, such as its entropy, for the answer without noise.

    value: what it is likely to be; not what the noisy probabilities give as they stand, which is biased; nan where it
    could be anything. lower, upper: an interval at level `confidence`, which covers the table's own answer. Where much
    is lost in noise it is far wider than chance alone would make it: it holds all that the lost items may be.
    """

    value: float
    lower: float
    upper: float
    confidence: float

    def __float__(self) -> float:
        return self.value

    @property
    def is_known(self) -> bool:
        """Whether there is anything to say: if not, the value is nan, and the interval all that is possible."""
        return not math.isnan(self.value)


@dataclass(frozen=True)
class Difference:
    """One item of two releases: its probability in the first and in the second, and first minus second, with errors."""

    item: Item
    first: float
    second: float
    difference: float
    standard_error: float
    lower: float
    upper: float


@dataclass(frozen=True, eq=False)
class Release:
    """A distribution over the items of a domain, released under `guarantee`.

    items: in the order of the domain; the last may be an `Other`, for all rows of items that are not listed.
    probabilities: sum to 1. standard_errors: of the noise. lower, upper: an interval at level `confidence`, which
    covers the table's own answer, what SQL would have given without privacy. predicted_l1_error: of all probabilities
    together, against the table's own. sampling_errors: how far the table's own may be from the population that its
    users came from; None where the mechanism does not learn it. events: every draw of noise that the table paid for.
    mechanism, parameters: how it was made; public. weight: "rows" (share of all rows) or "users" (the average user).
    versions: of the software that made it. item_columns: the columns that items are values of; with several, items are
    tuples. measured: the shares as measured, before shrinkage; noise_errors: of their independent noise; divisor: of
    what they were divided by; other_errors: what else than noise the intervals allow for. Sums of items start from
    these four; where there are no noise_errors, from the standard errors.
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
    noise_errors: Floats | None = None
    divisor: Divisor = OWN_SUM

    def __post_init__(self) -> None:
        columns = [self.probabilities, self.standard_errors, self.lower, self.upper]
        optional = [self.sampling_errors, self.measured, self.other_errors, self.noise_errors]
        for values in [*columns, *(one for one in optional if one is not None)]:
            if len(values) != len(self.items):
                raise InvalidArgument(f"a release of {len(self.items)} items has a column of {len(values)} values.")
            values.flags.writeable = False

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Release):
            return NotImplemented
        pairs = [(getattr(self, one.name), getattr(other, one.name)) for one in fields(self)]
        return _types(self.items) == _types(other.items) and all(
            np.array_equal(a, b) if isinstance(a, np.ndarray) or isinstance(b, np.ndarray) else a == b for a, b in pairs
        )

    __hash__ = None  # type: ignore[assignment]

    def __len__(self) -> int:
        return len(self.items)

    def __contains__(self, item: object) -> bool:
        """Whether an item is listed."""
        try:
            return item in self._places
        except TypeError:  # not hashable
            return False

    def __iter__(self) -> Iterator[Item]:
        """The items, in their order."""
        return iter(self.items)

    @property
    def heads(self) -> tuple[str, ...]:
        """The names of the item columns in tables and pictures. One that is called like a figure is "item" there."""
        one = self.item_columns[0]
        return ("item",) if len(self.item_columns) == 1 and one in _FIGURES else self.item_columns

    @property
    def other(self) -> Item | None:
        """The item that stands for all that are not listed, if there is one. With several columns, a tuple of `Other`.

        It is the last one. With groups, each group may have another such item of its own.
        """
        last = self.items[-1] if self.items else None
        return last if all(isinstance(value, Other) for value in _values(last)) else None

    @property
    def threshold_delta(self) -> float:
        """The part of delta that was for finding the items; 0 where the domain was public."""
        return math.fsum(event.delta for event in self.events if isinstance(event, ThresholdEvent))

    @property
    def too_little(self) -> bool:
        """Whether there is too little to say: the predicted l1 error is above a half, so that noise is most of it."""
        return self.predicted_l1_error > TOO_LITTLE

    @property
    def rows_above_bound(self) -> Quantity | None:
        """The share of all rows that the bound on one user's rows leaves out, by estimate; None if it is unknown.

        It is of users enough to be seen: a few users with far more rows may hold more.
        """
        value, low, high = (self.parameters.get(f"rows_above_bound{end}") for end in ("", "_low", "_high"))
        return None if value is None or low is None or high is None else Quantity(value, low, high, self.confidence)

    @cached_property
    def missed(self) -> Quantity | None:
        """The share of all that belongs to items which are not listed: what a search for items has missed. None where
        there is no item for them. With groups, the items for all others of every group are counted together.
        """
        from .marginals import summed

        unlisted = self._unlisted
        if not unlisted.any():
            return None
        if unlisted.sum() == 1:
            one = self._at(int(np.argmax(unlisted)))
        else:
            one = summed(self, ("listed", "missed"), unlisted.astype(np.int64), ("item",), {}).estimate("missed")
        return Quantity(one.probability, one.lower, one.upper, self.confidence)

    def about_items(self) -> str | None:
        """Where the items come from, in plain words; None for a public domain that is all."""
        from ..present.wording import items

        return items(self)

    def texts(self, item: Item) -> tuple[str, ...]:
        """The values of an item in words. In a column where all times are midnight, the days."""
        values = _values(item)
        return tuple(
            str(value.date() if whole and isinstance(value, datetime.datetime) else value)
            for value, whole in zip(values, self._whole_days, strict=True)
        )

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
        """Lower and upper ends at level `confidence`.

        "table": they cover the table's own answer, what SQL would have given without privacy: noise and clipping.
        "population": they cover the population that its users came from, of which they are taken as a sample.
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
        from .marginals import marginal

        return marginal(self, columns)

    def conditional(self, *columns: str, given: Mapping[str, Value] | None = None, **fixed: Value) -> Release:
        """The distribution over item columns among the items whose other columns are as given. Costs no privacy.

            release.conditional("page", country="DE")

        Without `columns`: over all columns that are not fixed. `given`: for columns whose names are no Python names.
        """
        from .marginals import conditional

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
        from .merge import merged

        return merged(self, mapping, other, column)

    def entropy(self, *, base: float = 2.0, of: Literal["table", "population"] = "table") -> Quantity:
        """The entropy of the distribution, in bits unless `base` says otherwise. Costs no privacy.

        An item "other" counts as one item. Where much of the mass is in items that are lost in noise, the interval is
        wide: they may share it evenly or not.
        """
        from ..inference.distances import entropy

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
        The noise of the two is taken to be independent: it is,
        for two releases, for parts of them, and for two groups of one release. of: "population" allows for sampling
        too, for two tables of different users.
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

    def sample(self, n: int, *, seed: int | None = None) -> list[Item]:
        """n synthetic items, drawn independently with the released probabilities. Costs no privacy.

        The randomness is ordinary: the release is public already, and nothing is hidden by it. The items belong to no
        users, and say no more than the probabilities do.
        """
        from .sampling import sample

        return sample(self, n, seed)

    def to_arrow(self) -> pyarrow.Table:
        """A table with a row for each item."""
        import pyarrow as pa

        return pa.table(self.columns())

    def to_pandas(self) -> pandas.DataFrame:
        """A data frame with a row for each item."""
        return pandas_frame(self.columns())

    def to_polars(self) -> polars.DataFrame:
        """A data frame with a row for each item."""
        frame: polars.DataFrame = optional_library("polars").DataFrame(self.columns())
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
        from ..export.json_file import save

        save(self, path)

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write the table of `to_arrow` as CSV, whole or not at all."""
        from ..export.json_file import write_csv

        write_csv(self, path)

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """Write the table of `to_arrow` as Parquet, whole or not at all."""
        from ..export.json_file import write_parquet

        write_parquet(self, path)

    def to_html(self, path: str | os.PathLike[str], *, title: str | None = None) -> None:
        """Write a page to read in a browser, whole or not at all: items with intervals, the guarantee, how it was made.

        It is one file that loads nothing. It draws the most probable items, and says of how many.
        """
        from ..present.report import write_html

        write_html(self, path, title)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Release:
        """Read a release that `save` wrote; of a grouped one, the joint release."""
        from ..export.json_file import load_joint

        return load_joint(path)

    def plot(
        self, n: int = 20, *, truth: Mapping[Any, float] | None = None, ax: matplotlib.axes.Axes | None = None
    ) -> matplotlib.axes.Axes:
        """Draw the n most probable items with their intervals; `truth` adds public values to compare with."""
        from ..present.plots import plot

        return plot(self, n, truth, ax)

    def __repr__(self) -> str:
        g = self.guarantee
        return (
            f"<Release of {len(self)} items by {printable(self.mechanism)}, weight={self.weight!r}, "
            f"epsilon={g.epsilon:g}, delta={g.delta:g}, {g.adjacency.value}>"
        )

    def _repr_html_(self) -> str:
        from ..present.plots import in_a_notebook

        return in_a_notebook(self)

    @cached_property
    def _places(self) -> dict[Item, int]:
        return {item: place for place, item in enumerate(self.items)}

    @cached_property
    def _unlisted(self) -> npt.NDArray[np.bool_]:
        """Which items stand for all that are not listed, of all or of a group."""
        return np.array([any(isinstance(value, Other) for value in _values(item)) for item in self.items], dtype=bool)

    @cached_property
    def _whole_days(self) -> tuple[bool, ...]:
        """In which columns every time is midnight: those of date_trunc."""
        columns = zip(*(_values(item) for item in self.items), strict=True)
        return tuple(
            all(value.time() == datetime.time() for value in column if isinstance(value, datetime.datetime))
            for column in columns
        )

    def _place(self, item: Item) -> int:
        try:
            return self._places[item]
        except (KeyError, TypeError):
            raise UnknownItem(f"item={item!r} is not in the domain of this release.") from None

    def _at(self, place: int) -> ItemEstimate:
        return ItemEstimate(
            self.items[place],
            float(self.probabilities[place]),
            float(self.standard_errors[place]),
            float(self.lower[place]),
            float(self.upper[place]),
        )

    def columns(self) -> dict[str, Any]:
        """The columns of a frame: the item columns, then the rest.

        In a column of strings the other item has its name; elsewhere it is missing. `is_other`, which is there only if
        there are such items, says which they are.
        """
        one = len(self.item_columns) == 1
        rows: Any = [(item,) for item in self.items] if one else self.items
        parts = zip(self.heads, zip(*rows, strict=True), strict=True)
        others = np.array([any(isinstance(value, Other) for value in row) for row in rows])
        return {
            **{name: _column(values) for name, values in parts},
            "probability": np.array(self.probabilities),
            "standard_error": np.array(self.standard_errors),
            "lower": np.array(self.lower),
            "upper": np.array(self.upper),
            **({"is_other": others} if others.any() else {}),
        }


def label(item: object) -> str:
    """An item in words."""
    if not isinstance(item, tuple):
        return str(item)
    return str(item[0]) if all(isinstance(value, Other) for value in item) else ", ".join(map(str, item))


def plain(value: Value) -> Any:
    """A value as frames take it: UUIDs are text there."""
    return str(value) if isinstance(value, uuid.UUID) else value


def pandas_frame(columns: Mapping[str, Any]) -> pandas.DataFrame:
    """A data frame in which integers and booleans stay what they are where one is missing."""
    library = optional_library("pandas")
    kept = dict(columns)
    for name, values in columns.items():
        present = (
            {type(value) for value in values} - {type(None)} if isinstance(values, list) and None in values else None
        )
        if present == {bool}:
            kept[name] = library.array(values, dtype="boolean")
        elif present == {int}:
            largest = max(value for value in values if value is not None)
            kept[name] = library.array(values, dtype="Int64" if largest < 2**63 else "UInt64")
    frame: pandas.DataFrame = library.DataFrame(kept)
    return frame


def _column(values: Sequence[Value]) -> list[Any]:
    texts = all(isinstance(value, (str, Other)) for value in values)
    return [(value.name if texts else None) if isinstance(value, Other) else plain(value) for value in values]


def _types(items: tuple[Item, ...]) -> list[list[type]]:
    """The types of all values: True and 1 are equal, but not the same item."""
    return [[type(value) for value in _values(item)] for item in items]


def _values(item: Any) -> tuple[Any, ...]:
    return item if isinstance(item, tuple) else (item,)


def optional_library(library: str) -> Any:
    """A library that Crowdgram can do without, or an error that says how to get it."""
    import importlib

    try:
        return importlib.import_module(library)
    except ImportError:
        raise MissingDependency(f"{library} is not installed: pip install 'crowdgram[{library}]'.") from None
