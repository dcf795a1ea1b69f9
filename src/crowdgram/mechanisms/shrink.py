"""Empirical-Bayes shrinkage: what the noisy values of all items say about each of them.

A noisy value x_i = theta_i + noise of known shape and size says more when the values of all items are seen: if most
lie near zero, a small one is likelier noise than signal. The distribution of the theta is estimated from the x by
maximum likelihood over all distributions on a fine grid (Kiefer and Wolfowitz 1956; Jiang and Zhang 2009), and each
x_i is replaced by its posterior mean. Post-processing: it sees noisy values and public noise scales only, and costs
no privacy.

Where items lie far apart compared with the noise there is nothing to borrow. A flat prior worth `PSEUDO_ITEMS` items
for each standard deviation of noise keeps the estimate from merging neighbours there; where items crowd, it is
negligible.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ..arrays import Floats, Integers

__all__ = ["NoiseShape", "Posterior", "Shrunk", "expected", "posteriors", "shrink"]

NoiseShape = Literal["gaussian", "laplace"]

PSEUDO_ITEMS = 3.0
GRID_STEPS = 3
"""Grid points for each standard deviation of noise."""
QUADRATURE_REACH: dict[str, int] = {"gaussian": 6, "laplace": 8}
"""Standard deviations beyond which a value cannot be noise around a grid point."""
ITERATIONS = 60
LONG = 400
"""Iterations without a flat prior, which has them converge slowly near zero."""
FEWEST = 20
"""Groups of items smaller than this are left as they are."""


@dataclass(frozen=True)
class Shrunk:
    """Posterior means, mean absolute deviations and variances, one for each item."""

    means: Floats
    spreads: Floats
    variances: Floats


def shrink(values: Floats, deviations: Floats, shape: NoiseShape) -> Shrunk:
    """Shrink `values`, whose noise has the given standard deviations. The theta are taken to be non-negative.

    Items whose noise is alike (within a factor of 2^(1/2)) share a prior: noise scales follow earlier estimates, so
    items with other scales are other kinds of items.
    """
    mean_absolute = np.sqrt(2 / np.pi) if shape == "gaussian" else np.sqrt(0.5)
    means, spreads, variances = np.maximum(values, 0.0), mean_absolute * deviations, deviations**2
    for members, deviation in _alike(deviations):
        if len(members) >= FEWEST:
            means[members], spreads[members], variances[members] = _moments(values[members], deviation, shape)
    return Shrunk(means, spreads, variances)


def expected(values: Floats, deviations: Floats, of: Callable[[Floats], Floats], *, signed: bool = False) -> Floats:
    """The posterior mean of a function of each theta, under Gaussian noise: what |theta| or -theta log(theta) is likely
    to have been, where the function of the noisy value itself is biased.

    `signed`: theta may be negative. No flat prior: a sum over items is wanted here, and the fitted prior by itself says
    how much of it is noise.
    """
    found = np.empty_like(values)
    for members, deviation in _alike(deviations):
        fit = _fit(values[members], deviation, "gaussian", signed=signed, pseudo_items=0.0, iterations=LONG)
        found[members] = (fit.posterior * of(fit.theta)).sum(axis=1)[fit.which]
    return found


@dataclass(frozen=True)
class Posterior:
    """What some items may be: item members[j] is theta[which[j]] with the chances posterior[which[j]]; theta has a
    distance of `step`.
    """

    members: Integers
    which: Integers
    theta: Floats
    posterior: Floats
    step: float


def posteriors(values: Floats, deviations: Floats, shape: NoiseShape) -> Iterator[Posterior]:
    """The posteriors that `shrink` takes its means of. Items too few to share a prior have a flat one."""
    for members, deviation in _alike(deviations):
        iterations = ITERATIONS if len(members) >= FEWEST else 0
        fit = _fit(values[members], deviation, shape, signed=False, pseudo_items=PSEUDO_ITEMS, iterations=iterations)
        yield Posterior(members, fit.which, fit.theta, fit.posterior, deviation / GRID_STEPS)


def _alike(deviations: Floats) -> Iterator[tuple[Integers, float]]:
    """Items whose noise is alike, with their common deviation."""
    groups = np.rint(2 * np.log2(deviations / deviations.min())).astype(np.int64)
    for group in np.unique(groups):
        members = np.nonzero(groups == group)[0]
        yield members, float(np.sqrt(np.mean(deviations[members] ** 2)))


@dataclass(frozen=True)
class _Fit:
    """centres: of the bins of values; which: the bin of each value; theta: the grid that a bin sees, a row each;
    posterior: its probabilities.
    """

    centres: Floats
    which: Integers
    theta: Floats
    posterior: Floats


def _moments(values: Floats, deviation: float, shape: NoiseShape) -> tuple[Floats, Floats, Floats]:
    """Posterior mean, mean absolute deviation and variance under the fitted prior."""
    fit = _fit(values, deviation, shape, signed=False, pseudo_items=PSEUDO_ITEMS, iterations=ITERATIONS)
    mean = (fit.posterior * fit.theta).sum(axis=1)
    away = fit.theta - mean[:, None]
    spread, variance = (fit.posterior * np.abs(away)).sum(axis=1), (fit.posterior * away**2).sum(axis=1)
    return np.interp(values, fit.centres, mean), spread[fit.which], variance[fit.which]


def _fit(
    values: Floats, deviation: float, shape: NoiseShape, *, signed: bool, pseudo_items: float, iterations: int
) -> _Fit:
    """The posterior of each value, under the prior fitted to all of them.

    Values are binned to a sixth of a deviation and see only the grid within QUADRATURE_REACH, so time and memory grow
    with the number of distinct bins, which is small, and not with items times grid.
    """
    step = deviation / GRID_STEPS
    bins, which, counts = np.unique(np.floor(values / (step / 2)), return_inverse=True, return_counts=True)
    centres = np.bincount(which, weights=values, minlength=len(bins)) / counts
    band = np.arange(-QUADRATURE_REACH[shape] * GRID_STEPS, QUADRATURE_REACH[shape] * GRID_STEPS + 1)
    nodes = np.rint(centres / step).astype(np.int64)[:, None] + band[None, :]
    valid = nodes >= 0 if not signed else np.full(nodes.shape, True)
    nodes = np.where(valid, nodes, 0)
    scaled = (centres[:, None] - nodes * step) / deviation
    likelihood = np.exp(-0.5 * scaled**2) if shape == "gaussian" else np.exp(-np.sqrt(2) * np.abs(scaled))
    likelihood = np.where(valid, likelihood, 0.0)
    likelihood[~valid.any(axis=1), 0] = 1.0  # far below zero: only theta = 0 is left
    distinct, place = np.unique(nodes, return_inverse=True)
    place = place.reshape(nodes.shape)
    prior = np.full(len(distinct), 1.0)
    for _ in range(iterations):
        joint = likelihood * prior[place]
        responsibility = joint * (counts / joint.sum(axis=1))[:, None]
        found = np.bincount(place.ravel(), weights=responsibility.ravel(), minlength=len(distinct))
        prior = found + pseudo_items / GRID_STEPS
    posterior = likelihood * prior[place]
    posterior /= posterior.sum(axis=1, keepdims=True)
    return _Fit(centres, which, nodes.astype(np.float64) * step, posterior)
