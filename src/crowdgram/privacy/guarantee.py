"""What is promised: a guarantee of user-level differential privacy, as a value and as a sentence."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from crowdgram.adjacency import Adjacency
from crowdgram.errors import InvalidArgument

__all__ = ["MAX_EPSILON", "Adjacency", "Guarantee"]

MAX_EPSILON = 100.0


@dataclass(frozen=True, slots=True)
class Guarantee:
    """(epsilon, delta)-differential privacy of everything one unit contributed.

    Formula: P[M(T) in S] <= e^epsilon P[M(T') in S] + delta for every set S of outcomes and all neighbours T,
    T', where epsilon and delta are the fields, and `adjacency` and `unit` say which tables are neighbours.

    Reference: Dwork and Roth, "The Algorithmic Foundations of Differential Privacy" (2014), Definition 2.4.
    """

    epsilon: float
    delta: float = 0.0
    adjacency: Adjacency = Adjacency.ADD_REMOVE
    unit: str = "user"

    def __post_init__(self) -> None:
        epsilon = _number("epsilon", self.epsilon, "Try epsilon=1.")
        if not 0.0 < epsilon <= MAX_EPSILON:
            raise InvalidArgument(
                f"epsilon={self.epsilon!r}: needs to be above 0 and at most {MAX_EPSILON:g}, as a "
                "larger one gives no meaningful privacy. Try epsilon=1.",
                argument="epsilon",
            )
        delta = _number("delta", self.delta, "Try delta=1e-6.")
        if not 0.0 <= delta < 1.0:
            raise InvalidArgument(
                f"delta={self.delta!r}: needs to be at least 0 and below 1. Try delta=1e-6, and keep it "
                "far below one over the number of users.",
                argument="delta",
            )
        if not isinstance(self.unit, str) or not self.unit.strip():
            raise InvalidArgument(
                f"unit={self.unit!r}: needs to be a word such as 'user'. Leave it out for 'user'.", argument="unit"
            )
        object.__setattr__(self, "epsilon", epsilon)
        object.__setattr__(self, "delta", delta)
        object.__setattr__(self, "adjacency", Adjacency.parse(self.adjacency))

    def sentence(self) -> str:
        """The guarantee in one sentence."""
        if self.adjacency is Adjacency.ADD_REMOVE:
            change = f"Adding or removing all rows of any one {self.unit}"
        else:
            change = f"Replacing all rows of any one {self.unit} by any others"
        factor = f"e^{self.epsilon:g} = {_plain(math.exp(self.epsilon))}"
        chance = f", except for a chance of {self.delta:g}" if self.delta else ""
        return f"{change} changes the probability of any outcome by at most a factor of {factor}{chance}."

    def to_dict(self) -> dict[str, Any]:
        """The guarantee in plain values, for JSON."""
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "adjacency": self.adjacency.value,
            "unit": self.unit,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Guarantee:
        """The guarantee that `to_dict` wrote."""
        known = {"epsilon", "delta", "adjacency", "unit"}
        unknown = sorted(set(values) - known)
        if unknown or "epsilon" not in values:
            raise InvalidArgument(
                f"a guarantee has the keys {sorted(known)}, of which 'epsilon' is needed; "
                f"got {sorted(values)}. Pass what Guarantee.to_dict() returned.",
                argument=None,
            )
        return cls(**values)


def _number(name: str, value: object, next_step: str) -> float:
    """A finite number as a float. Scalars of numpy are accepted; bool and text are not."""
    is_bool = isinstance(value, bool) or type(value).__name__ in ("bool", "bool_")  # numpy.bool as well
    if is_bool or not hasattr(value, "__float__"):
        raise InvalidArgument(f"{name}={value!r}: needs to be a number. {next_step}", argument=name)
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise InvalidArgument(f"{name}={value!r}: needs to be a number. {next_step}", argument=name) from None
    if not math.isfinite(number):
        raise InvalidArgument(f"{name}={value!r}: needs to be a finite number. {next_step}", argument=name)
    return number


def _plain(factor: float) -> str:
    """A factor in a readable form: 2.72, 1.05, 22026, 2.69e+43."""
    if factor < 100.0:
        return f"{factor:.3g}" if factor >= 1.1 else f"{factor:.5g}"
    return f"{factor:.0f}" if factor < 1e6 else f"{factor:.3g}"
