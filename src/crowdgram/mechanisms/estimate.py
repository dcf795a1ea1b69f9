"""What a mechanism returns: a distribution, with how far it may be off."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from scipy import special

from ..privacy import GaussianEvent, LaplaceEvent
from .shrink import NoiseShape, Shrunk, shrink
from .simplex import project

__all__ = ["CONFIDENCE", "Estimate", "combine", "from_noisy_sums", "half_width"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Parameters = Mapping[str, int | float | str]

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Estimate:
    """A distribution over the domain, from noisy values only.

    standard_errors: of the noise in each probability. lower, upper: a `CONFIDENCE` interval for what the table itself
    would have given without privacy: noise, and the bias that clipping is predicted to cause. sampling_errors: how
    far the table itself may be from the population that its users came from, where the mechanism learns enough to
    say. predicted_l1_error: of the distribution, against the table's own. parameters: the public parameters that the
    mechanism worked with. measured: the shares as measured, before shrinkage and projection: what intervals are
    around, and what sums of items start from. other_errors: what else than noise the intervals allow for (predicted
    bias, other weights), as standard deviations.
    """

    probabilities: Floats
    standard_errors: Floats
    lower: Floats
    upper: Floats
    predicted_l1_error: float
    sampling_errors: Floats | None = None
    parameters: Parameters = field(default_factory=dict)
    measured: Floats | None = None
    other_errors: Floats | None = None


def combine(
    *,
    raw: Floats,
    deviations: Floats,
    shrunk: Shrunk,
    bias: float,
    sampling: Floats | None,
    shape: NoiseShape,
    reweighted: Floats | float,
    parameters: Parameters,
    unsure: Floats | float = 0.0,
) -> Estimate:
    """Make an estimate of unbiased noisy shares and what shrinkage made of them.

    The probabilities are the shrunk shares, projected. Intervals are around the shares as measured, whose noise is
    known, and wide enough to hold the probability. `bias` is a predicted l1 bias; an item's part of it is taken in
    proportion to sqrt(p (1 - p)). `sampling`: standard errors of the table itself. `reweighted`: how far other weights
    than were asked for may move the answer, in sampling errors. `unsure`: how well corrections are known, as standard
    deviations.
    """
    probabilities = project(shrunk.means)
    spread = np.sqrt(probabilities * (1 - probabilities))
    biases = math.sqrt(math.pi / 2) * bias * spread / max(float(spread.sum()), 1e-300)
    other_weights = np.zeros_like(spread) if sampling is None else reweighted * sampling
    other_weights = np.hypot(other_weights, unsure)
    other = np.hypot(biases, other_weights)
    reach = np.hypot(half_width(shape, deviations), half_width("gaussian", other))
    moved = math.sqrt(2 / math.pi) * float(other_weights.sum())
    return Estimate(
        probabilities=probabilities,
        standard_errors=deviations,
        lower=np.minimum(np.clip(raw - reach, 0.0, 1.0), probabilities),
        upper=np.maximum(np.clip(raw + reach, 0.0, 1.0), probabilities),
        predicted_l1_error=float(min(2.0, math.hypot(shrunk.spreads.sum(), moved, bias))),
        sampling_errors=sampling,
        parameters=dict(parameters),
        measured=raw,
        other_errors=other,
    )


def from_noisy_sums(
    sums: Integers,
    event: LaplaceEvent | GaussianEvent,
    parameters: Parameters,
    *,
    bias: float = 0.0,
    sampling_variance: float | None = None,
    moved_variance: float = 0.0,
    reweighted: float = 0.0,
) -> Estimate:
    """Normalise noisy sums by their own total, shrink, and project onto the simplex.

    The total of k noisy sums is off by about sqrt(k) of one sum's noise, far less than the k of the l1 error, so it
    need not be bought apart. It is kept above its own noise: where a table is too small to be seen, the noise is not
    blown up. `sampling_variance`: of the table's own answer, summed over items, where known. `bias` is what a cap costs
    if heavy users are of another kind; `moved_variance`, summed over items, if they are not; the larger counts.
    """
    shape: NoiseShape = "laplace" if isinstance(event, LaplaceEvent) else "gaussian"
    deviation = math.sqrt(2) * event.scale if isinstance(event, LaplaceEvent) else event.sigma
    noisy = sums.astype(np.float64)
    total = max(float(noisy.sum()), deviation * math.sqrt(len(noisy)))
    raw, deviations = noisy / total, np.full(len(noisy), deviation / total)
    shrunk = shrink(raw, deviations, shape)
    multinomial = project(shrunk.means) * (1 - project(shrunk.means))
    spread = np.sqrt(multinomial / max(float(multinomial.sum()), 1e-300))
    bias = max(bias, math.sqrt(2 / math.pi * moved_variance) * float(spread.sum()))
    return combine(
        raw=raw,
        deviations=deviations,
        shrunk=shrunk,
        bias=bias,
        sampling=None if sampling_variance is None else math.sqrt(sampling_variance) * spread,
        shape=shape,
        reweighted=reweighted,
        parameters=parameters,
    )


def half_width(shape: NoiseShape, deviations: Floats) -> Floats:
    """What noise of these standard deviations keeps to with probability CONFIDENCE."""
    if shape == "laplace":
        return -math.log(1 - CONFIDENCE) * deviations / math.sqrt(2)
    return float(special.ndtri((1 + CONFIDENCE) / 2)) * deviations
