"""The row cap: how many rows of one user to pay for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .cost import DISAGREEMENT, reweighting
from .profile import FINE_ROW_EDGES, RowProfile

__all__ = ["BETWEEN", "CapCost", "best_row_cap"]

BETWEEN = 4
"""Points that a bin's users are spread over: the best cap may lie inside a bin."""


@dataclass(frozen=True)
class CapCost:
    """A row cap, its predicted cost, and the two parts of it: cost^2 = noise^2 + bias^2."""

    row_cap: int
    cost: float
    noise: float
    bias: float

    @classmethod
    def without_bias(cls, row_cap: int, noise: float) -> CapCost:
        return cls(row_cap, noise, noise, 0.0)


def best_row_cap(profile: RowProfile, noise: float) -> CapCost:
    """The cap M that minimises  (noise M / D(M))^2  +  (2 disagreement TV(M))^2.

    where: noise is the predicted l1 noise, over all items, of a sum in which a user weighs 1; D(M) = sum_u min(m_u,
    M); TV(M) is the total variation between the users' shares of all rows before and after the cap. Squares, as an
    item's noise and its bias are independent. Post-processing of the noisy profile.
    """
    caps = np.array(FINE_ROW_EDGES, dtype=np.float64)
    users, rows = profile.spread_out(BETWEEN)
    after = users * np.minimum(rows, caps[:, None])
    noises = noise * caps / after.sum(axis=1)
    biases = 2 * DISAGREEMENT * reweighting(users * rows, after)
    costs = np.hypot(noises, biases)
    # Among equals the largest: where all users have as many rows, any smaller cap costs the same, and keeps less.
    best = int(np.nonzero(costs <= costs.min() * (1 + 1e-9))[0].max())
    return CapCost(int(caps[best]), float(costs[best]), float(noises[best]), float(biases[best]))
