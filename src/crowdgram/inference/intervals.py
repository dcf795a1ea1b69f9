"""Intervals of items: for the table's own answer, or for the population that its users came from."""

from __future__ import annotations

from typing import Literal

import numpy as np

from ..arrays import Floats
from ..errors import InvalidArgument
from ..results.covariance import Measured, Quantiles
from ..results.release import Release

__all__ = ["Of", "intervals", "standard_errors", "unseen_variance"]

Of = Literal["table", "population"]


def intervals(release: Release, of: Of, *, simultaneous: bool = False) -> tuple[Floats, Floats]:
    """Lower and upper ends at the level of the release; of all items at once if `simultaneous`.

    "population": the middle stays, and the reach of noise and that of sampling add up by squares.
    """
    lower, upper = _simultaneous(release) if simultaneous else (release.lower, release.upper)
    if of == "table":
        return lower, upper
    if of != "population":
        raise InvalidArgument(f"of={of!r}: needs to be 'table' or 'population'.", argument="of")
    if release.sampling_errors is None:
        raise InvalidArgument(
            f"of='population': mechanism={release.mechanism!r} does not learn how users differ, and a part of a "
            "release does not know it. Use mechanism='auto', and the release as a whole.",
            argument="of",
        )
    reach = Quantiles.of(release, len(release) if simultaneous else 1).normal * release.sampling_errors
    middle, half = (lower + upper) / 2, (upper - lower) / 2
    wider = np.hypot(half, reach)
    return np.clip(middle - wider, 0.0, 1.0), np.clip(middle + wider, 0.0, 1.0)


def unseen_variance(release: Release) -> float:
    """If there is too little to say, what is missing may be of any kind: no item need be as rare as it looks."""
    if not release.too_little:
        return 0.0
    return (release.predicted_l1_error / 2 * float(release.probabilities.max())) ** 2


def _simultaneous(release: Release) -> tuple[Floats, Floats]:
    """Intervals that hold for all items at once, and are nowhere narrower than those that hold one by one."""
    k = len(release)
    one, all_of_them = Quantiles.of(release), Quantiles.of(release, k)
    if release.measured is None:  # how it was measured is not known: the same intervals, longer
        longer = all_of_them.normal / one.normal
        p = release.probabilities
        return np.clip(p - longer * (p - release.lower), 0.0, 1.0), np.clip(p + longer * (release.upper - p), 0.0, 1.0)
    measured = Measured.of(release)
    if k > 1 and all_of_them.normal * measured.spread >= 1:
        return np.zeros(k), np.ones(k)
    variances = measured.variances()
    own = np.minimum(measured.noise, variances)
    reach = all_of_them.reach(own, variances - own + measured.other + unseen_variance(release))
    lower, upper = np.clip(measured.x - reach, 0.0, 1.0), np.clip(measured.x.clip(0.0) + reach, 0.0, 1.0)
    return np.minimum(lower, release.lower), np.maximum(upper, release.upper)


def standard_errors(release: Release, of: Of) -> Floats:
    """Standard errors of noise; for the population, with those of sampling if they are known."""
    if of == "table" or release.sampling_errors is None:
        return release.standard_errors
    return np.hypot(release.standard_errors, release.sampling_errors)
