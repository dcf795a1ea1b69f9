"""Intervals of items: for the table's own answer, or for the population that its users came from."""

from __future__ import annotations

from statistics import NormalDist
from typing import Literal

import numpy as np

from ..arrays import Floats
from ..errors import InvalidArgument
from ..results.release import Release

__all__ = ["Of", "intervals", "standard_errors"]

Of = Literal["table", "population"]


def intervals(release: Release, of: Of) -> tuple[Floats, Floats]:
    """Lower and upper ends at the level of the release.

    "population": the middle stays, and the reach of noise and that of sampling add up by squares.
    """
    if of == "table":
        return release.lower, release.upper
    if of != "population":
        raise InvalidArgument(f"of={of!r}: needs to be 'table' or 'population'.", argument="of")
    if release.sampling_errors is None:
        raise InvalidArgument(
            f"of='population': mechanism={release.mechanism!r} does not learn how users differ, and a part of a "
            "release does not know it. Use mechanism='auto', and the release as a whole.",
            argument="of",
        )
    reach = NormalDist().inv_cdf((1 + release.confidence) / 2) * release.sampling_errors
    middle, half = (release.lower + release.upper) / 2, (release.upper - release.lower) / 2
    wider = np.hypot(half, reach)
    return np.clip(middle - wider, 0.0, 1.0), np.clip(middle + wider, 0.0, 1.0)


def standard_errors(release: Release, of: Of) -> Floats:
    """Standard errors of noise; for the population, with those of sampling if they are known."""
    if of == "table" or release.sampling_errors is None:
        return release.standard_errors
    return np.hypot(release.standard_errors, release.sampling_errors)
