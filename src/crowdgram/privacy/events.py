"""What happened: one frozen value for each draw of noise.

The meaning of an event never changes; a new mechanism gets a new event. Sensitivities are for the adjacency
of the release they were drawn for, so events need not know which adjacency that is.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, TypeAlias

from crowdgram.errors import InvalidArgument

if TYPE_CHECKING:
    from dp_accounting import DpEvent

__all__ = [
    "Event",
    "ExponentialEvent",
    "GaussianEvent",
    "LaplaceEvent",
    "SelectionEvent",
    "SparseLaplaceEvent",
    "ThresholdEvent",
    "event_from_dict",
    "event_to_dict",
    "to_dp_event",
]


@dataclass(frozen=True, slots=True)
class GaussianEvent:
    """Independent discrete Gaussian noise on each coordinate of an integer vector.

    Formula: P[noise = z] proportional to exp(-z^2 / (2 sigma^2)) over the integers z, for `dimension`
    coordinates. `sensitivity` bounds the l2 distance of the vectors of two neighbouring tables. Where the
    number of coordinates is private itself, `dimension` is a public bound on it.
    """

    purpose: str
    sensitivity: float
    sigma: float
    dimension: int

    def __post_init__(self) -> None:
        _check_purpose(self.purpose)
        object.__setattr__(self, "sensitivity", _positive("sensitivity", self.sensitivity))
        object.__setattr__(self, "sigma", _positive("sigma", self.sigma))
        object.__setattr__(self, "dimension", _positive_integer("dimension", self.dimension))


@dataclass(frozen=True, slots=True)
class LaplaceEvent:
    """Independent discrete Laplace noise on each coordinate of an integer vector.

    Formula: P[noise = z] proportional to exp(-|z| / scale) over the integers z, for `dimension` coordinates.
    `sensitivity` (an integer) bounds the l1 distance of the vectors of two neighbouring tables. Where the number of
    coordinates is private itself, `dimension` is a public bound on it.
    """

    purpose: str
    sensitivity: int
    scale: float
    dimension: int

    def __post_init__(self) -> None:
        _check_purpose(self.purpose)
        object.__setattr__(self, "sensitivity", _positive_integer("sensitivity", self.sensitivity))
        object.__setattr__(self, "scale", _positive("scale", self.scale))
        object.__setattr__(self, "dimension", _positive_integer("dimension", self.dimension))


@dataclass(frozen=True, slots=True)
class ExponentialEvent:
    """A private choice of one among `choices`, of bounded range `epsilon`.

    Formula: for neighbours T, T' there is a t in [0, epsilon] (it may depend on the pair) such that
    t - epsilon <= log(P[M(T) = j] / P[M(T') = j]) <= t for every choice j. The exponential mechanism with
    weights exp(epsilon score_j / (2 sensitivity)) is such a choice.

    Reference: Durfee and Rogers, "Practical Differentially Private Top-k Selection" (arXiv 1905.04273).
    """

    purpose: str
    epsilon: float
    choices: int

    def __post_init__(self) -> None:
        _check_purpose(self.purpose)
        object.__setattr__(self, "epsilon", _positive("epsilon", self.epsilon))
        object.__setattr__(self, "choices", _positive_integer("choices", self.choices))


@dataclass(frozen=True, slots=True)
class SelectionEvent:
    """`selections` private choices, each one among `choices` and of bounded range `epsilon`, drawn independently.

    Formula: given what was released before, the choices are independent, and each is an ExponentialEvent of this
    epsilon. For any two neighbours at most `changed` of them differ in distribution at all.
    """

    purpose: str
    epsilon: float
    choices: int
    selections: int
    changed: int

    def __post_init__(self) -> None:
        _check_purpose(self.purpose)
        object.__setattr__(self, "epsilon", _positive("epsilon", self.epsilon))
        for name in ("choices", "selections", "changed"):
            object.__setattr__(self, name, _positive_integer(name, getattr(self, name)))


@dataclass(frozen=True, slots=True)
class SparseLaplaceEvent:
    """Independent discrete Laplace noise on an integer vector of which a neighbour changes few coordinates.

    Formula: P[noise = z] proportional to exp(-|z| / scale) over the integers z, for `dimension` coordinates. For any
    two neighbours at most `changed` coordinates differ, each by at most `sensitivity` (an integer).
    """

    purpose: str
    sensitivity: int
    scale: float
    dimension: int
    changed: int

    def __post_init__(self) -> None:
        _check_purpose(self.purpose)
        object.__setattr__(self, "scale", _positive("scale", self.scale))
        for name in ("sensitivity", "dimension", "changed"):
            object.__setattr__(self, name, _positive_integer(name, getattr(self, name)))


@dataclass(frozen=True, slots=True)
class ThresholdEvent:
    """Coordinates that are not in the table are left out, and a threshold hides which ones are.

    Formula: for neighbours T, T' with the coordinates I and I' in the table, P[a coordinate of I without I' passes
    for T] + P[a coordinate of I' without I would pass for T, had it been there as zero] <= delta, and the same with T
    and T' exchanged. The noise itself is an event of its own.

    Guarantee: leaving out what is not there moves the outcome's distribution by at most `delta` in total variation,
    so delta is added to that of all other events. Reference: docs/proofs/discovery.md, Theorem 1.
    """

    purpose: str
    delta: float

    def __post_init__(self) -> None:
        _check_purpose(self.purpose)
        delta = _positive("delta", self.delta)
        if delta >= 1.0:
            raise InvalidArgument(f"delta={self.delta!r}: needs to be below 1.", argument="delta")
        object.__setattr__(self, "delta", delta)


Event: TypeAlias = (
    GaussianEvent | LaplaceEvent | ExponentialEvent | SelectionEvent | SparseLaplaceEvent | ThresholdEvent
)

_EVENT_TYPES: dict[str, type[Event]] = {
    "gaussian": GaussianEvent,
    "laplace": LaplaceEvent,
    "exponential": ExponentialEvent,
    "selection": SelectionEvent,
    "sparse-laplace": SparseLaplaceEvent,
    "threshold": ThresholdEvent,
}


def event_to_dict(event: Event) -> dict[str, Any]:
    """The event in plain values with its "kind", for JSON."""
    for kind, cls in _EVENT_TYPES.items():
        if type(event) is cls:
            return {"kind": kind, **asdict(event)}
    raise InvalidArgument(
        f"event: is a {type(event).__name__}, and needs to be one of {sorted(_EVENT_TYPES)}.", argument="event"
    )


def event_from_dict(values: Mapping[str, Any]) -> Event:
    """The event that `event_to_dict` wrote."""
    kind = values.get("kind")
    cls = _EVENT_TYPES.get(kind) if isinstance(kind, str) else None
    if cls is None:
        raise InvalidArgument(f"kind={kind!r}: needs to be one of {sorted(_EVENT_TYPES)}.", argument="kind")
    needed = {field.name for field in fields(cls)}
    given = set(values) - {"kind"}
    if given != needed:
        raise InvalidArgument(
            f"kind={kind!r}: needs the keys {sorted(needed)}, not {sorted(given)}. Pass what event_to_dict() returned.",
            argument="kind",
        )
    return cls(**{name: values[name] for name in needed})


def to_dp_event(events: Iterable[Event], *, without_thresholds: bool = False) -> DpEvent:
    """The same events in dp_accounting's language, so that its accountants can be asked too.

    dp_accounting has no event that is a chance delta and nothing else, so a ThresholdEvent is refused, unless the
    caller takes it upon itself to add its delta (`without_thresholds`).

    Formula: a Gaussian event becomes a continuous one of noise multiplier sqrt(sigma^2 - 4) / sensitivity, a
    Laplace event one of noise multiplier scale / sensitivity, a choice of bounded range epsilon becomes
    (epsilon^2/8)-zCDP; a family of choices `changed` times that, and sparse Laplace noise `changed` Laplace events.

    Guarantee: conservative but for the discreteness loss, below 1e-33 a coordinate for Gaussian events
    (docs/proofs/discrete-gaussian.md) and of order 1/(8 scale^2) in delta for Laplace events
    (docs/proofs/laplace.md). The promise of a release rests on crowdgram.privacy.accounting, not on this
    translation.
    """
    import dp_accounting

    translated: list[DpEvent] = []
    for event in events:
        match event:
            case GaussianEvent():
                spread = (event.sigma - 2.0) * (event.sigma + 2.0)
                if spread <= 0.0:
                    translated.append(dp_accounting.NonPrivateDpEvent())
                    continue
                multiplier = math.sqrt(spread) / event.sensitivity * (1.0 - 2.0**-50)
                translated.append(dp_accounting.GaussianDpEvent(multiplier))
            case LaplaceEvent():
                translated.append(dp_accounting.LaplaceDpEvent(event.scale / event.sensitivity * (1.0 - 2.0**-50)))
            case ExponentialEvent():
                # Bounded range epsilon implies (epsilon^2/8)-zCDP: Cesar and Rogers, "Bounding,
                # Concentrating, and Truncating: Unifying Privacy Loss Composition for Data Analytics" (arXiv
                # 2004.07223).
                translated.append(dp_accounting.ZCDpEvent(event.epsilon**2 / 8.0))
            case SelectionEvent():
                translated.append(dp_accounting.ZCDpEvent(event.changed * event.epsilon**2 / 8.0))
            case SparseLaplaceEvent():
                one = dp_accounting.LaplaceDpEvent(event.scale / event.sensitivity * (1.0 - 2.0**-50))
                translated.append(dp_accounting.SelfComposedDpEvent(one, event.changed))
            case ThresholdEvent():
                if not without_thresholds:
                    raise InvalidArgument(
                        "without_thresholds=False: dp_accounting has no event for the threshold with "
                        f"delta={event.delta:g}. Use without_thresholds=True, and add this delta to the "
                        "accountant's.",
                        argument="without_thresholds",
                    )
    return dp_accounting.ComposedDpEvent(translated)


def _check_purpose(purpose: object) -> None:
    if not isinstance(purpose, str) or not purpose:
        raise InvalidArgument(
            f"purpose={purpose!r}: needs to say in a word or two what the noise is for.", argument="purpose"
        )


def _positive(name: str, value: Any) -> float:
    is_bool = isinstance(value, bool) or type(value).__name__ in ("bool", "bool_")
    if not is_bool and hasattr(value, "__index__"):
        value = value.__index__()  # NumPy's integers would be compared after rounding
    try:
        number = math.nan if is_bool or isinstance(value, str) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not (math.isfinite(number) and number > 0.0):
        raise InvalidArgument(f"{name}={value!r}: needs to be a finite number above 0.", argument=name)
    # An integer beyond 2^53 may fall between two doubles: a sensitivity is rounded up, nothing else is
    # rounded.
    if number != value and name != "sensitivity":
        raise InvalidArgument(f"{name}={value!r}: needs to be a number that a double can hold exactly.", argument=name)
    return math.nextafter(number, math.inf) if number < value else number


def _positive_integer(name: str, value: Any) -> int:
    is_bool = isinstance(value, bool) or type(value).__name__ in ("bool", "bool_")
    if is_bool or not hasattr(value, "__index__") or value.__index__() < 1:
        raise InvalidArgument(f"{name}={value!r}: needs to be a whole number, at least 1.", argument=name)
    number: int = value.__index__()
    return number
