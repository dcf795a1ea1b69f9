"""Synthetic items, and draws of what the table's own answer may be: simulation from a release.

The release is public and so is all that is drawn from it: ordinary randomness is right here, and a seed may be known.
It protects nobody and is no noise: nothing that takes part in a release may import this module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..arrays import Floats
from ..errors import InvalidArgument
from ..mechanisms import posteriors
from ..privacy import LaplaceEvent
from .covariance import Measured
from .values import Measure, check_measure

if TYPE_CHECKING:
    from .release import Release
    from .values import Item

__all__ = ["draw_vectors", "sample"]

MOST = 10**8
MOVES = 10
"""Steps towards the sum that a draw should have; each leaves a part of the difference if items reach 0."""
SEEN_PART = 0.1
"""Of a difference in the sum, for an item that is clearly seen; one that is lost in noise has 1 more."""
LEAST_SUM = 0.05
"""Of a divisor that may be nothing: shares are then anything, and must not be all of it."""


def sample(release: Release, n: int, seed: int | None) -> list[Item]:
    """n items, drawn independently with the released probabilities."""
    _check(n, MOST, seed)
    ends = np.cumsum(release.probabilities)
    # Uniform numbers are below 1 and the last end is 1, so every place is in range, and none has probability 0.
    places = np.searchsorted(ends / ends[-1], np.random.default_rng(seed).random(int(n)), side="right")
    return [release.items[place] for place in places.tolist()]


def draw_vectors(release: Release, n: int, measure: Measure, seed: int | None) -> Floats:
    """n draws of the shares, or of the counts, of all items, a row each.

    Sums as measured, relative to the divisor, have independent noise: theta_i is drawn by its posterior under the prior
    that shrinkage fits, and a bias is added. Their sum is known too: 1, up to the noise of the divisor, so draws are
    moved to a sum of that kind, and shares are theta / sum_i theta. Counts are theta times the total, with the error
    of its own; if the divisor is not made of the theta, they are shares times the total.
    """
    check_measure(measure)
    total = release.total
    if measure == "counts" and total is None:
        raise InvalidArgument(
            "measure='counts': needs a total, which this release does not have. Draw shares instead.",
            argument="measure",
        )
    _check(n, MOST // len(release), seed)
    generator, measured = np.random.default_rng(seed), Measured.of(release)
    theta = _thetas(release, measured, int(n), generator)
    biased = measure == "shares" or total is None or total.biased
    if biased:
        theta += np.sqrt(measured.other) * generator.standard_normal(theta.shape)
        np.maximum(theta, 0.0, out=theta)
    if measure == "shares" or measured.divisor.own == 0:
        sums = 1 + measured.spread * generator.standard_normal((int(n), 1))
        theta = _moved(theta, np.maximum(sums, LEAST_SUM), measured)
        theta /= theta.sum(axis=1, keepdims=True)
    if measure == "shares" or total is None:
        return theta
    return theta * np.maximum(total.value * (1 + total.error * generator.standard_normal((int(n), 1))), 0.0)


def _thetas(release: Release, measured: Measured, n: int, generator: np.random.Generator) -> Floats:
    """Each item by its own posterior, spread evenly around the points of its grid."""
    found = np.empty((n, len(release)))
    laplace = bool(release.events) and isinstance(release.events[-1], LaplaceEvent)
    deviations = np.sqrt(np.maximum(measured.noise, 1e-300))
    for one in posteriors(measured.x, deviations, "laplace" if laplace else "gaussian"):
        ends = np.cumsum(one.posterior, axis=1)
        order = np.argsort(one.which, kind="stable")
        starts = np.searchsorted(one.which[order], np.arange(len(ends) + 1))
        for row in range(len(ends)):
            members = one.members[order[starts[row] : starts[row + 1]]]
            u = generator.random((n, len(members))) * ends[row, -1]
            places = np.minimum(np.searchsorted(ends[row], u, side="right"), ends.shape[1] - 1)
            spread = one.step * (generator.random((n, len(members))) - 0.5)
            found[:, members] = np.abs(one.theta[row][places] + spread)
    return found


def _moved(theta: Floats, sums: Floats, measured: Measured) -> Floats:
    """Non-negative vectors of these sums, near `theta`: the difference is divided by the variances of the noise among
    the items that can take it, a few times over, and what then is left by size. Items that are clearly seen take less
    of it: what a draw has too much is in those that are lost in noise.
    """
    noise = np.maximum(measured.noise, 1e-300)
    weights = noise * (SEEN_PART + 1 / (1 + np.maximum(measured.x, 0.0) ** 2 / noise))
    for _ in range(MOVES):
        missing = sums - theta.sum(axis=1, keepdims=True)
        free = np.where((theta > 0) | (missing > 0), weights, 0.0)
        theta = np.maximum(theta + free * (missing / np.maximum(free.sum(axis=1, keepdims=True), 1e-300)), 0.0)
    found = theta.sum(axis=1, keepdims=True)
    return np.where(found > 0, theta * (sums / np.where(found > 0, found, 1.0)), sums / theta.shape[1])


def _check(n: object, most: int, seed: object) -> None:
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or not 0 <= n <= most:
        raise InvalidArgument(f"n={n!r}: needs to be a whole number from 0 to {most}.", argument="n")
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0):
        raise InvalidArgument(f"seed={seed!r}: needs to be a whole number of at least 0, or None.", argument="seed")
