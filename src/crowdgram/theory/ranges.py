"""Ranges: what a theorem needs of its arguments, checked in one place.

This package stands apart from the rest of Crowdgram, so it has its own error.
"""

from __future__ import annotations

import math
from numbers import Integral, Real

__all__ = ["OutOfRange", "real", "whole"]


class OutOfRange(ValueError):
    """An argument is outside the range that a theorem is proved for. The message names both."""


def whole(theorem: str, name: str, value: object, low: int, high: float = math.inf) -> int:
    """`value` as an int, if it is a whole number from `low` to `high`."""
    if isinstance(value, Integral) and not isinstance(value, bool) and low <= int(value) <= high:
        return int(value)
    upper = "" if math.isinf(high) else f" and at most {high:g}"
    raise OutOfRange(f"{theorem} needs {name} to be a whole number of at least {low}{upper}; it is {value!r}.")


def real(theorem: str, name: str, value: object, low: float, high: float, *, with_low: bool = False) -> float:
    """`value` as a float, if low < value <= high (low <= value with `with_low`)."""
    if isinstance(value, Real) and not isinstance(value, bool):
        number = float(value)
        if math.isfinite(number) and number <= high and (low < number or (with_low and low == number)):
            return number
    above = f"at least {low:g}" if with_low else f"above {low:g}"
    upper = "" if math.isinf(high) else f" and at most {high:g}"
    raise OutOfRange(f"{theorem} needs {name} to be {above}{upper}; it is {value!r}.")
