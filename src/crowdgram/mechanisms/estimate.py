"""What a mechanism returns: a distribution, with how far it may be off."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from scipy import special

from ..arrays import Floats, Integers
from ..privacy import GaussianEvent, LaplaceEvent
from ..tables import UNIT
from .shrink import NoiseShape, Shrunk, shrink
from .simplex import project

__all__ = [
    "CONFIDENCE",
    "TOO_LITTLE",
    "Divisor",
    "Estimate",
    "Total",
    "combine",
    "from_noisy_sums",
    "half_width",
    "spread_bias",
]

Parameters = Mapping[str, int | float | str]

CONFIDENCE = 0.95
TOO_LITTLE = 0.5
"""A release with a predicted l1 error above this is mostly noise."""


@dataclass(frozen=True, eq=False)
class Estimate:
    """A distribution over the domain, from noisy values only.

    standard_errors: of the noise in each share, that of the divisor included. lower, upper: a `CONFIDENCE` interval for
    what the table itself would have given without privacy: noise, and the bias of clipping. sampling_errors: how
    far the table itself may be from the population that its users came from, where the mechanism learns enough to
    say. predicted_l1_error: of the distribution, against the table's own. parameters: the public parameters that the
    mechanism worked with. measured: the shares as measured, before shrinkage and projection: what intervals are
    around, and what sums of items start from; noise_errors: of their independent noise; divisor: of what they were
    divided by. other_errors: what else than noise the intervals allow for (the bias of clipping), as standard
    deviations. total: what the shares are of; users: how many there are, and its standard deviation, if that is
    measured apart from the total. None: unknown.
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
    noise_errors: Floats | None = None
    divisor: Divisor | None = None
    total: Total | None = None
    users: tuple[float, float] | None = None


@dataclass(frozen=True)
class Total:
    """What the shares are of: a share as measured times `value` is a count of rows, or of users if all weigh the same.

    It is the divisor in these units, so it has the divisor's noise too. error: the standard deviation of what else it
    may be off by, relative to it. row_bound: rows of one user that count at most; None if all do. biased: whether
    counts are off by what the shares may be off by beside noise; not if they are counts of bounded rows, which were
    measured as such.
    """

    value: float
    error: float = 0.0
    row_bound: int | None = None
    biased: bool = False


@dataclass(frozen=True)
class Divisor:
    """The divisor is own x (sum of the noisy values) + (1 - own) x (another estimate of the total). error: the second
    term's standard deviation over the divisor.
    """

    own: float = 0.0
    error: float = 0.0

    def variances(self, shares: Floats, noise: Floats) -> Floats:
        """Of shares x_i / (own sum_j x_j + rest), for independent noise in the x_i:

        noise_i^2 (1 - 2 own p_i) + own^2 p_i^2 sum_j noise_j^2 + p_i^2 error^2.
        """
        p = np.clip(shares, 0.0, 1.0)
        square = noise**2
        found: Floats = square * (1 - 2 * self.own * p) + p**2 * (self.own**2 * float(square.sum()) + self.error**2)
        return np.maximum(found, 0.0)


def combine(
    *,
    raw: Floats,
    noise: Floats,
    shrunk: Shrunk,
    bias: Floats,
    shape: NoiseShape,
    divisor: Divisor,
    sampling_variance: float | None,
    parameters: Parameters,
    expected_bias: Floats | None = None,
    within: Floats | None = None,
) -> Estimate:
    """Make an estimate of noisy shares and what shrinkage made of them.

    raw: shares as measured, with independent noise of standard deviation `noise`, but for the divisor. bias: standard
    deviations of what clipping may have done to them. The probabilities are the shrunk shares, projected. Intervals are
    around the shares as measured, whose errors are known, and wide enough to hold the probability; a share measured
    below 0 is as good as one of 0, or its interval would be narrower than noise allows.
    expected_bias: what it is expected to be, for the predicted error. `sampling_variance`: of the table's own answer,
    summed over items. `within`: the part of the expected bias that shrinkage was told of.
    """
    probabilities = project(shrunk.means)
    full = divisor.variances(raw, noise)
    beside = np.maximum(full - noise**2, 0.0) + bias**2
    told = np.zeros(1) if within is None else within
    spreads = shrunk.spreads**2
    likely = beside - bias**2 + (bias if expected_bias is None else expected_bias) ** 2 - told**2
    multinomial = probabilities * (1 - probabilities)
    sampling = None
    if sampling_variance is not None:
        sampling = np.sqrt(sampling_variance * multinomial / max(float(multinomial.sum()), 1e-300))
    if shrunk.follow is not None:  # a bias moves the shares no further than it moves what they are made of
        likely = likely * shrunk.follow**2
        if sampling is not None:  # a prior is of a population, or another table: it cannot tell whom this one drew
            spreads = np.maximum(spreads, 2 / math.pi * ((1 - shrunk.follow) * sampling) ** 2)
    predicted = float(min(2.0, np.sqrt(spreads + 2 / math.pi * np.maximum(likely, 0.0)).sum()))
    if predicted > TOO_LITTLE:  # what is missing may be of any kind: no item need be as rare as it looks
        beside = beside + (predicted / 2 * probabilities.max()) ** 2
    reach = np.hypot(half_width(shape, np.minimum(noise, np.sqrt(full))), half_width("gaussian", np.sqrt(beside)))
    return Estimate(
        probabilities=probabilities,
        standard_errors=np.sqrt(full),
        lower=np.minimum(np.clip(raw - reach, 0.0, 1.0), probabilities),
        upper=np.maximum(np.clip(raw.clip(0.0) + reach, 0.0, 1.0), probabilities),
        predicted_l1_error=predicted,
        sampling_errors=sampling,
        parameters=dict(parameters),
        measured=raw,
        other_errors=bias,
        noise_errors=noise,
        divisor=divisor,
    )


def spread_bias(bias: float, shares: Floats) -> Floats:
    """An l1 bias divided over items like sqrt(p (1 - p)), as standard deviations: what sums of items then make of it is
    what an item of their share has.
    """
    form = np.sqrt(np.maximum(shares * (1 - shares), 0.0))
    form /= max(float(form.sum()), 1e-300)
    divided: Floats = math.sqrt(math.pi / 2) * bias * np.sqrt((form**2 + shares**2) / 2)
    return divided


def from_noisy_sums(
    sums: Integers | Floats,
    event: LaplaceEvent | GaussianEvent,
    parameters: Parameters,
    *,
    widened: float = 1.0,
    bias: tuple[float, float] = (0.0, 0.0),
    total: tuple[float, float] | None = None,
    sampling_variance: float | None = None,
    row_bound: int | None = None,
    sampled: bool = False,
    public: Floats | None = None,
) -> Estimate:
    """Normalise noisy sums, shrink, and project onto the simplex.

    They are divided by their own total, whose noise is sqrt(k) times that of one, and by what else is known of it:
    `total`, a value and its standard deviation, in units of the sums. The divisor is kept above its own noise: where a
    table is too small to be seen, the noise is not blown up. widened: the noise of a sum, over that of the event. bias:
    in l1, its expectation and its root mean square. row_bound: that of the sums, if they are `CappedRows` or as many.
    sampled: the sums are of one row of each user, drawn by chance: their variance is at most that of a multinomial.
    public: a public prior, for shrinkage.
    """
    shape: NoiseShape = "laplace" if isinstance(event, LaplaceEvent) else "gaussian"
    deviation = widened * (math.sqrt(2) * event.scale if isinstance(event, LaplaceEvent) else event.sigma)
    noisy = sums.astype(np.float64)
    own_error = deviation * math.sqrt(len(noisy))
    own = 1.0 if total is None else total[1] ** 2 / (total[1] ** 2 + own_error**2)
    found = own * float(noisy.sum()) + (0.0 if total is None else (1 - own) * total[0])
    known = (1 - own) * (0.0 if total is None else total[1])
    divided = max(found, math.hypot(own * own_error, known))
    raw, noise = noisy / divided, np.full(len(noisy), deviation / divided)
    shrunk = shrink(raw, noise, shape, public)
    shares = project(shrunk.means)
    drawn = np.sqrt(shares * (1 - shares) / max(divided / UNIT, 1.0)) if sampled else np.zeros(1)
    made = combine(
        raw=raw,
        noise=noise,
        shrunk=shrunk,
        bias=np.hypot(spread_bias(bias[1], shares), drawn),
        expected_bias=np.hypot(spread_bias(bias[0], shares), drawn),
        shape=shape,
        divisor=Divisor(own, known / divided),
        sampling_variance=sampling_variance,
        parameters=parameters,
    )
    if row_bound is None:
        return made
    return replace(made, total=Total(divided * row_bound / UNIT, row_bound=row_bound, biased=sampled))


def half_width(shape: NoiseShape, deviations: Floats) -> Floats:
    """What noise of these standard deviations keeps to with probability CONFIDENCE."""
    if shape == "laplace":
        return -math.log(1 - CONFIDENCE) * deviations / math.sqrt(2)
    return float(special.ndtri((1 + CONFIDENCE) / 2)) * deviations
