"""How many users, how many rows of each, or which epsilon an error needs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from ..errors import InvalidArgument

__all__ = ["RANGES", "Range", "solve"]


@dataclass(frozen=True)
class Range:
    """Where a value is looked for, from `low` to `high`, starting at `start`; errors usually go with its inverse to
    this power. What to say if none is enough.
    """

    low: float
    high: float
    start: float
    power: float
    words: str
    instead: str


RANGES = {
    "users": Range(50, 10**8, 10_000, 0.8, "users", "a larger epsilon or more rows per user"),
    "rows_per_user": Range(1, 10**5, 100, 0.5, "rows per user", "more users or a larger epsilon"),
    "epsilon": Range(0.001, 10, 1, 1.0, "epsilon", "more users or more rows per user"),
}
FARTHEST = 30.0
"""No step is longer than this factor."""
CLOSE = 1.08
"""An error is close enough if it is at most the target, and at least the target over this."""
MOST_STEPS = 14


def solve(name: str, target: float, error: Callable[[float], float]) -> float:
    """The value of `name` at which `error`, which falls with it, is `target` or a little less.

    Errors go with a power of users, of rows and of epsilon, so steps are in logarithms: by the usual power until the
    target is between two values, then by false position. InvalidArgument if it is out of reach.
    """
    span, goal = RANGES[name], target / math.sqrt(CLOSE)
    low: tuple[float, float] | None = None
    high: tuple[float, float] | None = None
    here = span.start
    for _ in range(MOST_STEPS):
        at = max(error(here), 1e-12)
        if target / CLOSE <= at <= target:
            return here
        if at > target:
            if here >= span.high:
                raise _out_of_reach(name, target, at)
            low = here, at
        else:
            if here <= span.low:
                return here
            high = here, at
        if low is None or high is None:
            factor = min(max((at / goal) ** (1 / span.power), 1 / FARTHEST), FARTHEST)
            here = min(max(here * factor, span.low), span.high)
            continue
        if high[0] <= 1.03 * low[0]:
            break
        part = math.log(low[1] / goal) / math.log(low[1] / high[1])
        here = low[0] * (high[0] / low[0]) ** min(max(part, 0.1), 0.9)  # neither end stays for ever
    return here if high is None else high[0]


def _out_of_reach(name: str, target: float, least: float) -> InvalidArgument:
    span = RANGES[name]
    far = f"an epsilon up to {span.high:g}" if name == "epsilon" else f"up to {span.high:,.0f} {span.words}"
    return InvalidArgument(
        f"target_error={target:g}: cannot be reached by {far}, where the error is still {least:.2g}. Give a larger "
        f"target, {span.instead}.",
        argument="target_error",
    )
