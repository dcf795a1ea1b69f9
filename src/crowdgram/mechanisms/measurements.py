"""Two measurements of one quantity, combined."""

from __future__ import annotations

from typing import overload

from ..arrays import Floats

__all__ = ["inverse_variance_mean"]


@overload
def inverse_variance_mean(
    one: float, deviation: float, other: float, other_deviation: float
) -> tuple[float, float]: ...


@overload
def inverse_variance_mean(
    one: Floats, deviation: float, other: Floats, other_deviation: float
) -> tuple[Floats, float]: ...


@overload
def inverse_variance_mean(
    one: Floats, deviation: Floats, other: Floats, other_deviation: float | Floats
) -> tuple[Floats, Floats]: ...


def inverse_variance_mean(
    one: float | Floats, deviation: float | Floats, other: float | Floats, other_deviation: float | Floats
) -> tuple[float | Floats, float | Floats]:
    """The mean of two measurements by inverse variance, and its standard deviation."""
    weight, other_weight = deviation**-2, other_deviation**-2
    precision = weight + other_weight
    return (one * weight + other * other_weight) / precision, precision**-0.5
