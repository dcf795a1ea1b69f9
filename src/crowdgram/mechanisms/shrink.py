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

from ..arrays import Floats, Integers, distinct

__all__ = ["NoiseShape", "Posterior", "Shrunk", "expected", "posteriors", "shrink"]

NoiseShape = Literal["gaussian", "laplace"]

PSEUDO_ITEMS = 3.0
GRID_STEPS = 3
"""Grid points for each standard deviation of noise."""
QUADRATURE_REACH: dict[str, int] = {"gaussian": 6, "laplace": 8}
"""Standard deviations beyond which a value cannot be noise around a grid point."""
ITERATIONS = 60
LONG = 400
"""Iterations without a flat prior, which has them converge slowly near zero; and of kinds that are hard to tell."""
SMALL_FIT = 2**14
"""Bins of values times grid points up to which one matrix for all of them takes half the time of a band each."""
FEWEST = 20
"""Groups of items smaller than this are left as they are."""
STRATUM = 1000
"""Items of like shares in a public prior that share a fitted prior, at least."""
NEAR = 0.02, 0.1, 0.3, 1.0
"""How far items may be from a public prior that is right, or out of date: standard deviations, relative to it."""
NOISY = 0.3, 1.0
"""... or over the noise of the values: a prior that was released has noise of its own."""
PRIOR_SEEN = 5.0
"""Standard deviations by which a right prior would stand out of the noise, from which on errors may rest on it."""
PSEUDO_KIND = 0.1
"""Items that each of these kinds has in any case."""
STRATUM_SPAN = 2.0**0.5
"""Their shares in it may differ by this factor: then what is fitted is the ratio to them."""


@dataclass(frozen=True, eq=False)
class Shrunk:
    """Posterior means, mean absolute deviations and variances, one for each item. follow: how far a mean moves with its
    value, and so with a bias of it, if a public prior holds it back; None without one.
    """

    means: Floats
    spreads: Floats
    variances: Floats
    follow: Floats | None = None

    def at(self, members: Integers) -> Shrunk:
        return Shrunk(self.means[members], self.spreads[members], self.variances[members])

    def put(self, members: Integers, other: Shrunk, units: Floats | float = 1.0) -> None:
        """Replace some of the items. units: what the others are measured in."""
        self.means[members], self.spreads[members] = other.means * units, other.spreads * units
        self.variances[members] = other.variances * units**2
        if self.follow is not None and other.follow is not None:
            self.follow[members] = other.follow


def shrink(values: Floats, deviations: Floats, shape: NoiseShape, public: Floats | None = None) -> Shrunk:
    """Shrink `values`, whose noise has the given standard deviations. The theta are taken to be non-negative.

    Items whose noise is alike (within a factor of 2^(1/2)) share a prior: noise scales follow earlier estimates, so
    items with other scales are other kinds of items. public: a public prior, positive shares. Then items that are alike
    in it too share a fitted prior, of theta over the public share. What the public prior is worth is so learned from
    the values: if it says nothing of them, each stratum of it is fitted by what all items are. If there is so little to
    see that even a right one could not be told, means follow it, and errors are those without it.
    """
    mean_absolute = np.sqrt(2 / np.pi) if shape == "gaussian" else np.sqrt(0.5)
    follow = None if public is None else np.ones(len(values))
    found = Shrunk(np.maximum(values, 0.0), mean_absolute * deviations, deviations**2, follow)
    lone = np.ones(len(values), dtype=bool)
    support = 1.0 if public is None else min(1.0, float(((public / deviations) ** 2).sum()) / PRIOR_SEEN**2)
    for members, deviation in _alike(deviations):
        if len(members) < FEWEST:
            continue
        lone[members] = False
        if public is None:
            found.put(members, _moments(values[members], deviation, shape)[0])
            continue
        for stratum, units in _strata(members, public):
            each = _Values(values[stratum] / units, deviations[stratum] / units, public[stratum] / units)
            common = float(np.sqrt(np.mean(each.deviations**2)))
            found.put(stratum, _near_or(each, *_moments(each.values, common, shape), support), units)
    if public is not None and lone.any():  # too few to share a fitted prior: a flat one stands in for it
        few = np.flatnonzero(lone)
        each = _Values(values[few], deviations[few], public[few])
        flat = 1 / (max(float(each.values.max()), 0.0) + 4 * float(each.deviations.max()))
        found.put(few, _near_or(each, found.at(few), np.full(len(few), flat), support))
    return found


@dataclass(frozen=True, eq=False)
class _Values:
    """Noisy values, the standard deviations of their noise, and what a public prior says that they are."""

    values: Floats
    deviations: Floats
    public: Floats


def _near_or(each: _Values, without: Shrunk, density: Floats, support: float) -> Shrunk:
    """Shrink by a mixture: theta is normal around the public share, with one of the deviations NEAR and NOISY, or is
    what it is `without` the public prior, by which the values have this density. How many items are of which kind is
    fitted. support: how far errors may rest on that.
    """
    own = each.deviations**2
    prior = np.vstack([np.outer(NEAR, each.public), np.outer(NOISY, each.deviations)]) ** 2
    trust = prior / (prior + own)
    means = np.vstack([without.means, np.maximum(each.public + trust * (each.values - each.public), 0.0)])
    variances = np.vstack([without.variances, trust * own])
    spreads = np.vstack([without.spreads, np.sqrt(2 / np.pi * trust * own)])
    logs = -0.5 * ((each.values - each.public) ** 2 / (prior + own) + np.log(2 * np.pi * (prior + own)))
    densities = np.vstack([density, np.exp(logs)]) + 1e-300
    weights = np.full(len(densities), 1 / len(densities))
    for _ in range(LONG):
        chances = weights[:, None] * densities
        chances /= chances.sum(axis=0)
        weights = chances.sum(axis=1) + PSEUDO_KIND
        weights /= weights.sum()
    best = (chances * means).sum(axis=0)
    apart = np.abs(means - best)
    with_prior = (chances * np.hypot(spreads, apart)).sum(axis=0), (chances * (variances + apart**2)).sum(axis=0)
    return Shrunk(
        best,
        support * with_prior[0] + (1 - support) * without.spreads,
        support * with_prior[1] + (1 - support) * without.variances,
        1.0 - support * (chances[1:] * (1.0 - trust)).sum(axis=0),
    )


def _strata(members: Integers, public: Floats) -> Iterator[tuple[Integers, Floats]]:
    """Items that are neighbours by their public share, at least STRATUM of them, and the units in which they are
    compared: their public shares if these are within a factor of STRATUM_SPAN, else 1.
    """
    order = members[np.argsort(-public[members], kind="stable")]
    shares = public[order]
    first = 0
    while first < len(order):
        span = int(np.searchsorted(-shares, -shares[first] / STRATUM_SPAN, side="right"))
        end = max(span, first + STRATUM)
        if len(order) - end < STRATUM:
            end = len(order)
        stratum, own = order[first:end], shares[first:end]
        yield stratum, own if own[0] <= STRATUM_SPAN * (1 + 1e-9) * own[-1] else np.ones(len(own))
        first = end


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


@dataclass(frozen=True, eq=False)
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
    for group in distinct(groups):
        members = np.nonzero(groups == group)[0]
        yield members, float(np.sqrt(np.mean(deviations[members] ** 2)))


@dataclass(frozen=True, eq=False)
class _Fit:
    """centres: of the bins of values; which: the bin of each value; theta: the grid that a bin sees, a row each;
    posterior: its probabilities; density: that of a value in the bin.
    """

    centres: Floats
    which: Integers
    theta: Floats
    posterior: Floats
    density: Floats


def _moments(values: Floats, deviation: float, shape: NoiseShape) -> tuple[Shrunk, Floats]:
    """Posterior mean, mean absolute deviation and variance under the fitted prior, and the density of each value."""
    fit = _fit(values, deviation, shape, signed=False, pseudo_items=PSEUDO_ITEMS, iterations=ITERATIONS)
    mean = (fit.posterior * fit.theta).sum(axis=1)
    away = fit.theta - mean[:, None]
    spread, variance = (fit.posterior * np.abs(away)).sum(axis=1), (fit.posterior * away**2).sum(axis=1)
    moments = Shrunk(np.interp(values, fit.centres, mean), spread[fit.which], variance[fit.which])
    return moments, fit.density[fit.which]


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
    if (size := len(bins) * len(distinct)) <= SMALL_FIT:  # the same as below, by two products with a matrix
        cells = np.arange(len(bins))[:, None] * len(distinct) + place
        whole = np.bincount(cells.ravel(), weights=likelihood.ravel(), minlength=size).reshape(len(bins), -1)
        for _ in range(iterations):
            prior = prior * ((counts / (whole @ prior)) @ whole) + pseudo_items / GRID_STEPS
        iterations = 0
    for _ in range(iterations):
        joint = likelihood * prior[place]
        responsibility = joint * (counts / joint.sum(axis=1))[:, None]
        found = np.bincount(place.ravel(), weights=responsibility.ravel(), minlength=len(distinct))
        prior = found + pseudo_items / GRID_STEPS
    posterior = likelihood * prior[place]
    sums = posterior.sum(axis=1, keepdims=True)
    density = sums[:, 0] / prior.sum() / (deviation * np.sqrt(2 * np.pi if shape == "gaussian" else 2))
    return _Fit(centres, which, nodes.astype(np.float64) * step, posterior / sums, density)
