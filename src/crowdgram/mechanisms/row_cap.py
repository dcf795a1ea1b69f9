"""The row cap: how many rows of one user to pay for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .cost import DISAGREEMENT, reweighting
from .profile import RowProfile

__all__ = ["CapCost", "best_row_cap"]


@dataclass(frozen=True)
class CapCost:
    """A row cap, its predicted cost, and the part of it that is bias."""

    row_cap: int
    cost: float
    bias: float


def best_row_cap(profile: RowProfile, noise: float) -> CapCost:
    """The cap M that minimises  noise M / D(M)  +  2 disagreement TV(M).

    where: noise is the predicted l1 noise, over all items, of a sum in which a user weighs 1; D(M) = sum_u min(m_u,
    M); TV(M) is the total variation between the users' shares of all rows before and after the cap. Post-processing
    of the noisy profile.
    """
    caps = np.array(profile.edges, dtype=np.float64)
    after = profile.users * np.minimum(profile.rows, caps[:, None])
    bias = 2 * DISAGREEMENT * reweighting(profile.users * profile.rows, after)
    costs = noise * caps / after.sum(axis=1) + bias
    # Among equals the largest: where all users have as many rows, any smaller cap costs the same, and keeps less.
    best = int(np.nonzero(costs <= costs.min() * (1 + 1e-9))[0].max())
    return CapCost(profile.edges[best], float(costs[best]), float(bias[best]))
