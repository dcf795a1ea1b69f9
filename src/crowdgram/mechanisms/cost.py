"""Predicted error: what a cap or a radius costs in noise, and what it costs in bias.

All predictions are l1 errors of the released distribution, made from noisy values. Raw: not capped at 2 and not
saturated; capped predictions chose worse (docs/estimator.md).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .histograms import Crowding

__all__ = ["DISAGREEMENT", "RadiusCost", "best_radius", "cost_at", "reshuffling", "reweighting", "scatter"]

Floats = npt.NDArray[np.float64]

DISAGREEMENT = 0.5
"""How far (in total variation) the distributions of users that a cap tells apart are taken to differ, where
nothing better is known.
"""

NEARLY = 1.01
"""Radii whose cost is within 1% of the best are as good; the largest of them clips least."""


BETWEEN = 200
"""Radii tried between the least size and the largest."""


@dataclass(frozen=True)
class RadiusCost:
    """The radius, its predicted cost, the part of it that is bias, the mean weight that clipping leaves, and how far
    weights spread around it.
    """

    radius: float
    cost: float
    bias: float
    kept: float
    spread: float


def reweighting(before: Floats, after: Floats) -> Floats:
    """Total variation between the users' shares of the sum before and after clipping, over the last axis.

    Clipping turns user u's share of the total from one vector of shares into another; the answer moves by at most
    twice their total variation, times how much users differ. Clipping everybody alike changes nothing.
    """
    shares = before / before.sum()
    clipped = after / after.sum(axis=-1, keepdims=True)
    variation: Floats = np.abs(clipped - shares).sum(axis=-1) / 2
    return variation


def reshuffling(crowd: Crowding, radius: float) -> float:
    """How far clipping at `radius` moves the crowd's mean by chance, in sampling errors of that mean.

    Users who agree are drawn from one distribution, and clipping draws other shares from the same sample: unbiased, but
    not the table's own answer. With shares b before and a after, and users who stray from the crowd by size / mass:
    sqrt(sum (a - b)^2 (size / mass)^2 / sum b^2 (size / mass)^2).
    """
    stray = (crowd.size / crowd.mass) ** 2
    before = crowd.mass / crowd.total_mass
    after = crowd.mass * np.minimum(1.0, radius / crowd.size)
    after = after / float((crowd.users * after).sum())
    moved, own = (float((crowd.users * share**2 * stray).sum()) for share in (after - before, before))
    return float(np.sqrt(moved / own))


def scatter(users: Floats, shares: Floats, rows: Floats, between: float, drawn: float) -> float:
    """The variance of sum_u share_u x_u, summed over items: users who differ by a variance `between`, and whose rows
    are drawn with a variance `drawn` each.
    """
    return float((users * shares**2 * (between + drawn / rows)).sum())


def best_radius(crowd: Crowding, noise: float, disagreement: float) -> RadiusCost:
    """The radius r that minimises  (noise r / D(r))^2  +  (2 disagreement TV(r))^2.

    where: noise is the l1 noise of a sum of vectors of norm 1 in which D users count fully; D(r) = sum_u mass_u
    min(1, r / size_u); TV(r) as in `reweighting`. Squares, as an item's noise and its bias are independent.
    """
    size = crowd.size[crowd.users > 0]
    between = np.geomspace(size.min(), size.max() * 1.05, BETWEEN)  # the best radius may lie between two sizes
    radii = np.union1d(size, between)
    cost = _costs(crowd, radii, noise, disagreement)[0]
    best = int(np.nonzero(cost <= cost.min() * NEARLY)[0].max())
    return cost_at(crowd, float(radii[best]), noise, disagreement)


def cost_at(crowd: Crowding, radius: float, noise: float, disagreement: float) -> RadiusCost:
    """What a given radius costs."""
    cost, bias, kept, square = (float(each[0]) for each in _costs(crowd, np.array([radius]), noise, disagreement))
    return RadiusCost(radius, cost, bias, kept, float(np.sqrt(max(square - kept**2, 0.0))))


def _costs(crowd: Crowding, radii: Floats, noise: float, disagreement: float) -> tuple[Floats, Floats, Floats, Floats]:
    """For each radius: cost, bias, and the means of the weight and of its square, by mass."""
    present = crowd.users > 0
    size, before = crowd.size[present], (crowd.users * crowd.mass)[present]
    weight = np.minimum(1.0, radii[:, None] / size[None, :])
    after = before * weight
    total = after.sum(axis=1)
    bias = 2 * disagreement * reweighting(before, after)
    return (
        np.hypot(noise * radii / total, bias),
        bias,
        total / before.sum(),
        (after * weight).sum(axis=1) / before.sum(),
    )
