"""Figures as text, with as many digits as their intervals bear."""

from __future__ import annotations

import math

from ..results.values import Measure, Quantity

__all__ = ["decimals", "figure", "interval", "percent", "percent_of", "short"]

_MOST = 10


def decimals(lower: float, upper: float, value: float = 0.0) -> int:
    """Decimals of a percentage: so many that half of the interval, rounded, has one digit, or two if the first is a 1.

    Without an interval: three digits of the value.
    """
    half = 50.0 * (upper - lower)
    if half <= 0.0:
        return 2 if value <= 0.0 else _within(2 - math.floor(math.log10(100.0 * value)))
    found = _within(math.ceil(-math.log10(half)))
    return _within(found + 1) if half * 10.0**found < 2.0 else found


def percent(value: float, places: int) -> str:
    """A share as a percentage; one that would be rounded to nothing is "<0.1%"."""
    if value <= 0.0:
        return "0%"
    text = f"{100.0 * value:.{places}f}"
    return f"<{10.0**-places:.{places}f}%" if float(text) == 0.0 else f"{text}%"


def percent_of(value: float, lower: float, upper: float) -> str:
    """A share as a percentage, with the digits of its interval."""
    return percent(value, decimals(lower, upper, value))


def figure(value: float, lower: float, upper: float, measure: Measure) -> str:
    """A share as a percentage, or a count as a whole number."""
    return percent_of(value, lower, upper) if measure == "shares" else f"{value:,.0f}"


def interval(value: float, lower: float, upper: float, measure: Measure) -> str:
    """The interval of `figure`, in the same digits."""
    if measure == "counts":
        return f"{lower:,.0f} to {upper:,.0f}"
    places = decimals(lower, upper, value)
    low = "0" if lower <= 0.0 else f"{100.0 * lower:.{places}f}"
    return f"{low} to {100.0 * upper:.{places}f}%"


def short(quantity: Quantity | None) -> str | None:
    """A number of users or rows; None if it is unknown."""
    return None if quantity is None else f"{quantity.value:,.0f}"


def _within(places: int) -> int:
    return min(max(places, 0), _MOST)
