"""The shape of a crowd from an earlier release: from what is public in it, and nothing else."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass

import numpy as np
from scipy import special

from ..arrays import Floats
from ..errors import InvalidArgument
from ..export import load
from ..results import GroupedRelease, Release
from .shapes import TAIL_PRESETS, TASTE_PRESETS

__all__ = ["Likeness", "likeness"]

_ROUGHEST, _MOST_TASTE = 0.5, 0.95


@dataclass(frozen=True, eq=False)
class Likeness:
    """What an earlier release tells: users, rows of one on average, shares of items, tails, tastes; None: not told.
    weight: what the release was by.
    """

    shares: Floats
    weight: str
    users: float | None
    rows: float | None
    tails: float | None
    tastes: float | None


def likeness(given: object, rows: float | None = None) -> Likeness:
    """Read a release, or the file of one. rows: of a user on average, if the caller says it."""
    found = load(given) if isinstance(given, str | os.PathLike) else given
    release = found.joint if isinstance(found, GroupedRelease) else found
    if not isinstance(release, Release):
        raise InvalidArgument(
            f"like={given!r}: needs to be a release, or the file of one. A plan is for shares.", argument="like"
        )
    if release.predicted_l1_error > _ROUGHEST:
        raise InvalidArgument(
            f"like: the release is mostly noise (predicted l1 error {release.predicted_l1_error:.2f}), so it does not "
            "say what its crowd is like. Give users, rows per user and items instead.",
            argument="like",
        )
    users = None if release.users is None or not release.users.is_known else max(release.users.value, 1.0)
    if rows is None and users is not None and release.rows is not None and release.rows.is_known:
        above = release.rows_above_bound  # rows that count are those within the bound
        rows = max(release.rows.value / users / (1 - min(above.value, 0.9) if above is not None else 1.0), 1.0)
    tails = _tails(release, rows)
    return Likeness(
        np.maximum(release.probabilities, 0.0), release.weight, users, rows, tails, _tastes(release, users, rows, tails)
    )


def _tails(release: Release, rows: float | None) -> float | None:
    """Sigma of log-normal rows, from the part of rows above the contribution bound, if Laplace noise measured it.

    For log-normal rows of mean r, the part of all rows that lies above a bound c is Phi(s/2 - a) - (c/r) Phi(-s/2 - a),
    with a = log(c/r)/s.
    """
    above, bound = release.rows_above_bound, release.parameters.get("max_rows_per_user")
    if above is None or not isinstance(bound, int) or rows is None or release.parameters.get("row_bound") == "given":
        return None

    def part(sigma: float) -> float:
        a = math.log(bound / rows) / sigma
        return float(special.ndtr(sigma / 2 - a) - bound / rows * special.ndtr(-sigma / 2 - a))

    low, high = 0.01, TAIL_PRESETS["very different"] * 1.5
    if part(low) >= above.value:
        return 0.0
    while high - low > 0.01:
        middle = (low + high) / 2
        low, high = (middle, high) if part(middle) < above.value else (low, middle)
    return high


def _tastes(release: Release, users: float | None, rows: float | None, tails: float | None) -> float | None:
    """The correlation within users, from what the release says of its sampling error: the inverse of
    `expected.sampling_variance`.
    """
    if release.sampling_errors is None or users is None or rows is None:
        return None
    p = release.probabilities
    spread = float((p * (1 - p)).sum())
    sigma = TAIL_PRESETS["typical"] if tails is None else tails
    alone = math.exp(sigma**2) if release.weight == "rows" else 1.0
    if spread <= 0:
        return None
    each = float((release.sampling_errors**2).sum()) / spread * users / alone
    one = 1 / (rows * alone) if release.weight == "rows" else 1 / rows
    if rows <= 1 or one >= 1:
        return TASTE_PRESETS["alike"]
    return float(np.clip((each - one) / (1 - one), 0.0, _MOST_TASTE))
