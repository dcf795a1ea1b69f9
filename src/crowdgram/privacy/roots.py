"""A root of a function that changes its sign, in a few evaluations.

`scipy.optimize` has such a search, and takes longer to load than most releases take to run.
"""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["find_root"]


def find_root(value_at: Callable[[float], float], low: float, high: float, tolerance: float) -> float:
    """A point within `tolerance`, relative to it, of a change of sign between `low` and `high`, both above 0.

    Each step is an inverse quadratic interpolation through the last three points if these lie so that it converges,
    and halves the interval otherwise. The caller checks what it needs of the result.

    Reference: Chandrupatla, "A new hybrid quadratic/bisection algorithm for finding the zero of a nonlinear function
    without using derivatives", Advances in Engineering Software 28 (1997).
    """
    b, a = low, high  # a: the last point; the sign changes between a and b; c: the point before
    at_b, at_a = value_at(b), value_at(a)
    c, at_c = a, at_a
    part = 0.5
    for _ in range(200):
        point = a + part * (b - a)
        at_point = value_at(point)
        if (at_point > 0.0) == (at_a > 0.0):
            c, at_c = a, at_a
        else:
            c, b, at_c, at_b = b, a, at_b, at_a
        a, at_a = point, at_point
        best, at_best = (a, at_a) if abs(at_a) < abs(at_b) else (b, at_b)
        least = tolerance * abs(best) / abs(b - c) if b != c else 1.0
        if least > 0.5 or at_best == 0.0:
            return best
        part = 0.5
        across, up = (a - b) / (c - b), (at_a - at_b) / (at_c - at_b)
        if 1.0 - (1.0 - across) ** 0.5 < up < across**0.5:
            part = at_a / (at_b - at_a) * at_c / (at_b - at_c)
            part += (c - a) / (b - a) * at_a / (at_c - at_a) * at_b / (at_c - at_b)
        part = min(max(part, least), 1.0 - least)
    return best
