"""The crowd that a plan is for: how many users and rows there are, and how much users differ.

Users differ in two ways, each with three presets. Their numbers are those of ten public tables (docs/how-to/plan.md): a
"typical" crowd has the median of the ten, a "very different" one is near their upper end.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from ..arrays import Floats
from ..errors import InvalidArgument
from ..tables import ROW_LIMIT

__all__ = [
    "MOST_PLANNED_ITEMS",
    "MOST_PLANNED_USERS",
    "PRESETS",
    "TAIL_PRESETS",
    "TASTE_PRESETS",
    "Preset",
    "Shape",
    "number_of",
    "zipf_shares",
]

Preset = Literal["alike", "typical", "very different"]
PRESETS: tuple[Preset, ...] = get_args(Preset)

TAIL_PRESETS: dict[Preset, float] = {"alike": 0.0, "typical": 1.25, "very different": 2.0}
"""Rows per user are log-normal with this sigma: n users then weigh as much as n / exp(sigma^2) with equal rows."""
TASTE_PRESETS: dict[Preset, float] = {"alike": 0.0, "typical": 0.1, "very different": 0.5}
"""The chance that two rows of one user have the same item because they are that user's: the correlation within users.
A user's own distribution is Dirichlet((1 - t) / t p), where p is the crowd's.
"""

MOST_PLANNED_USERS = 10**9
MOST_PLANNED_ITEMS = 10**6
_MOST_SIGMA, _MOST_TASTE = 3.0, 0.95


@dataclass(frozen=True, eq=False)
class Shape:
    """users; rows of one user on average; the crowd's distribution; sigma of log-normal rows; correlation within users.

    Nothing here comes from a private table, but for figures of a release that is made already.
    """

    users: int
    rows: float
    shares: Floats
    tails: float
    tastes: float

    @property
    def items(self) -> int:
        return len(self.shares)

    def rows_at(self, places: Floats) -> Floats:
        """Rows of the users at these places from 0 to 1, in the order of their rows: whole numbers of at least 1,
        whose mean over all places is `rows`.
        """
        from scipy import special

        if self.tails == 0.0 or self.rows == 1:
            least = math.floor(self.rows)
            return least + (places < self.rows - least).astype(np.float64)
        grid = np.exp(self.tails * special.ndtri((np.arange(4096) + 0.5) / 4096))
        low, high = 1e-6, self.rows
        while high > 1.0001 * low:  # least rows are 1, so that the median of the log-normal is below its usual place
            middle = math.sqrt(low * high)
            low, high = (middle, high) if whole_rows(middle, grid).mean() < self.rows else (low, middle)
        return whole_rows(high, np.exp(self.tails * special.ndtri(places)))


def whole_rows(median: float, spread: Floats) -> Floats:
    """Whole numbers of rows, of at least 1."""
    rows: Floats = np.clip(np.rint(median * spread), 1.0, ROW_LIMIT)
    return rows


def zipf_shares(items: int, zipf: float) -> Floats:
    """The share of item i, from 1, is proportional to i^-zipf."""
    weights = np.arange(1, items + 1, dtype=np.float64) ** -zipf
    shares: Floats = weights / weights.sum()
    return shares


def number_of(name: str, value: object, presets: dict[Preset, float]) -> float:
    """A preset, or a number in its place."""
    if isinstance(value, str) and value.replace("-", " ") in presets:
        return presets[value.replace("-", " ")]  # type: ignore[index]
    most = _MOST_SIGMA if presets is TAIL_PRESETS else _MOST_TASTE
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
        listed = ", ".join(map(repr, PRESETS))
        raise InvalidArgument(
            f"{name}={value!r}: needs to be one of {listed}, or a number from 0 to {most:g}.", argument=name
        )
    return float(value)
