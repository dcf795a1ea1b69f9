"""The row cap, found privately: how many rows of one user to pay for.

A small part of the budget buys a noisy histogram of rows per user on log-spaced bins. From it, for every cap, the noise that the
cap costs and the bias that it causes can be predicted; the cap with the smallest sum wins.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from ..privacy import Spending
from ..tables import ROW_LIMIT, Counts, rows_histogram

__all__ = ["ROW_EDGES", "RowProfile", "best_row_cap", "buy_row_profile"]

Floats = npt.NDArray[np.float64]

ROW_EDGES: tuple[int, ...] = tuple(sorted({round(2 ** (j / 2)) for j in range(41)}))
"""1, 2, 3, 4, 6, 8, 11, 16, ... up to ROW_LIMIT, where every user ends."""

HISTOGRAM_UNIT = 2**20
"""A user counts 2^20 in a histogram, so that the noise's integer steps are far below its scale."""

PROFILE_SHARE = 0.05
"""Of epsilon (Laplace), or of mu^2 (Gaussian)."""

DISAGREEMENT = 0.3
"""How much the distributions of light and heavy users differ (tau in docs/design.md): a general prior, not tuned to a table."""

assert ROW_EDGES[-1] == ROW_LIMIT


@dataclass(frozen=True)
class RowProfile:
    """Noisy numbers of users by rows: `users[j]` of them with about `rows[j]` rows. Bins lost in the noise are zero."""

    users: Floats
    rows: Floats


def buy_row_profile(counts: Counts, spending: Spending, noise: Literal["laplace", "gaussian"]) -> RowProfile:
    """Buy the histogram of rows per user for PROFILE_SHARE of the budget.

    Guarantee: one user is in one bin, worth HISTOGRAM_UNIT; `Spending` turns that into the adjacency's sensitivity.
    A bin counts only if the noise alone would reach it in any bin with probability below 5%.
    """
    histogram = rows_histogram(counts, ROW_EDGES) * HISTOGRAM_UNIT
    purpose = "histogram of rows per user"
    if noise == "laplace":
        epsilon = PROFILE_SHARE * spending.guarantee.epsilon
        noisy, laplace = spending.laplace(purpose, histogram, bound=HISTOGRAM_UNIT, epsilon=epsilon)
        floor = laplace.scale * np.log(len(ROW_EDGES) / 0.05)
    else:
        mu = spending.remaining_mu(len(ROW_EDGES)) * PROFILE_SHARE**0.5
        noisy, gaussian = spending.gaussian(purpose, histogram, bound=HISTOGRAM_UNIT, mu=mu, non_negative=True)
        floor = 3.2 * gaussian.sigma
    users = np.where(noisy >= floor, noisy, 0).astype(np.float64) / HISTOGRAM_UNIT
    edges = np.array(ROW_EDGES, dtype=np.float64)
    smallest = np.concatenate([[1.0], edges[:-1] + 1])
    return RowProfile(users, np.sqrt(smallest * edges))


def best_row_cap(profile: RowProfile, noise_per_user: float) -> int:
    """The cap M that minimises  noise_per_user M / D(M)  +  2 tau TV(M).

    where: noise_per_user is the predicted l1 noise, over all items, of a sum in which a user weighs 1; D(M) = sum_u min(m_u, M);
    TV(M) is the total variation between the users' shares of all rows before and after the cap. Post-processing of the
    noisy profile. If no bin stands out there is nothing to choose by, and every user weighs the same (M = 1).
    """
    if not profile.users.any():
        return 1
    before = profile.users * profile.rows
    before_share = before / before.sum()
    costs = []
    for cap in ROW_EDGES:
        after = profile.users * np.minimum(profile.rows, cap)
        moved = np.abs(after / after.sum() - before_share).sum() / 2
        costs.append(noise_per_user * cap / after.sum() + 2 * DISAGREEMENT * moved)
    # Among equals the largest: where all users have as many rows, any smaller cap costs the same, and keeps less.
    return max(cap for cap, cost in zip(ROW_EDGES, costs, strict=True) if cost <= min(costs) * (1 + 1e-9))
