"""What a mechanism returns: a distribution, with how far the noise may have moved it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from scipy import special

from ..privacy import GaussianEvent, LaplaceEvent
from .simplex import project

__all__ = ["CONFIDENCE", "Estimate", "from_noisy_sums"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Estimate:
    """A distribution over the domain, from noisy values only.

    standard_errors: of the noise in each probability. lower, upper: a `CONFIDENCE` interval for what the same sums would
    have given without noise. parameters: the public parameters that the mechanism worked with.
    """

    probabilities: Floats
    standard_errors: Floats
    lower: Floats
    upper: Floats
    parameters: Mapping[str, int | float | str] = field(default_factory=dict)


def from_noisy_sums(
    sums: Integers, event: LaplaceEvent | GaussianEvent, parameters: Mapping[str, int | float | str]
) -> Estimate:
    """Normalise noisy sums by their own total and project onto the simplex.

    The total of k noisy sums is off by about sqrt(k) of one sum's noise, far less than the k of the l1 error, so it need not
    be bought apart. It is kept above its own noise: where a table is too small to be seen, the noise is not blown up.
    """
    deviation, reach = _spread(event)
    noisy = sums.astype(np.float64)
    total = max(float(noisy.sum()), deviation * math.sqrt(len(noisy)))
    raw = noisy / total
    probabilities = project(raw)
    return Estimate(
        probabilities=probabilities,
        standard_errors=np.full(len(raw), deviation / total),
        lower=np.minimum(np.clip(raw - reach / total, 0.0, 1.0), probabilities),
        upper=np.maximum(np.clip(raw + reach / total, 0.0, 1.0), probabilities),
        parameters=dict(parameters),
    )


def _spread(event: LaplaceEvent | GaussianEvent) -> tuple[float, float]:
    """Standard deviation of the event's noise, and the half-width that it keeps to with probability CONFIDENCE."""
    if isinstance(event, LaplaceEvent):
        return math.sqrt(2) * event.scale, -math.log(1 - CONFIDENCE) * event.scale
    return event.sigma, float(special.ndtri((1 + CONFIDENCE) / 2)) * event.sigma
