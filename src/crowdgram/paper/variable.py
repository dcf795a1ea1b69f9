"""Appendix E: users with different numbers of rows.

A private histogram of rows per user gives m-hat, the rows of each user that are used, and s-hat, about how many users
have so many. The rest is the algorithm for equal users, on the users with at least m-hat rows and m-hat rows of each.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..arrays import Floats
from ..errors import InvalidArgument
from ..privacy import Adjacency, PureStart
from ..privacy.accounting import gaussian_mu
from ..tables import ROW_LIMIT, Counts, Tally, UsersByRows
from .histograms import visible
from .regimes import Constants, Learned, learn
from .selection import changed_symbols

__all__ = ["RowsFound", "doubling_edges", "learn_variable", "rows_median", "rows_quantile"]


COARSE_HISTOGRAM_UNIT = 2**10
"""A user counts 2^10 in a histogram, so that the noise's integer steps are far below its scale."""
TIGHT_HISTOGRAM, TIGHT_USERS = 0.02, 0.03
"""Parts of epsilon for m-hat and s-hat with tight constants."""
THRESHOLD = 6.5
"""Standard deviations that a bin must exceed to be taken as real, with tight constants."""


@dataclass(frozen=True)
class RowsFound:
    """m-hat (`rows`) and s-hat (`users`): about `users` users have at least `rows` rows. doubts: see `Learned`."""

    rows: int
    users: int
    doubts: tuple[str, ...] = ()


def doubling_edges(most_rows: int = ROW_LIMIT) -> list[int]:
    """Upper ends of the bins {1}, {2, 3}, {4..7}, ... up to `most_rows`: floor(log2 most_rows) + 1 bins (erratum 16).

    The paper's bin for users without rows is left out: such a user is not in the table.
    """
    edges = [2**j - 1 for j in range(1, most_rows.bit_length())]
    return [*edges, most_rows]


def rows_median(counts: Counts, spending: PureStart, *, epsilon: float, beta: float) -> RowsFound:
    """Lemma 10's private median of rows per user, up to a factor of 2."""
    return rows_quantile(counts, spending, epsilon=epsilon, beta=beta)


def rows_quantile(
    counts: Counts,
    spending: PureStart,
    *,
    epsilon: float,
    beta: float,
    quantile: float = 0.5,
    most_rows: int = ROW_LIMIT,
) -> RowsFound:
    """A private quantile of rows per user: m-hat = b_j for the largest j with T'_j >= (1 - quantile) T'_0 - eta v
    log(v/beta).

    where: t_i counts the users in bin i of `doubling_edges`, t'_i = t_i + Lap(eta), T'_j = sum_{i >= j} t'_i, v is
    the number of bins, eta = 1/epsilon under add-remove and 2/epsilon under replace; s-hat = T'_j. Corrects errata
    6 (the noisy total T'_0 for s: in a table s is private under replace too, since a user may lose all rows of the
    domain) and 16. Where the margin eta v log(v/beta) is more than a quarter of the total, Lemma 10 does not apply;
    (1 - quantile)/2 of the total is then asked for, and `doubts` say so.

    Guarantee: one LaplaceEvent; the histogram moves by 1 in l1 under add-remove and by 2 under replace.
    """
    if not 0.0 < quantile < 1.0:
        raise InvalidArgument(f"quantile={quantile!r}: needs to be above 0 and below 1.", argument="quantile")
    if not 0.0 < beta < 1.0:
        raise InvalidArgument(f"beta={beta!r}: Lemma 10 needs 0 < beta < 1.", argument="beta")
    edges = doubling_edges(most_rows)
    tails, eta = _noisy_tails(counts, spending, edges, epsilon)
    v, total = len(edges), float(tails[0])
    margin = eta * v * math.log(v / beta)
    doubts: tuple[str, ...] = ()
    if margin > total / 4:
        doubts = (f"Lemma 10 needs at least about {4 * margin:.0f} users to find their rows",)
    reach = max((1 - quantile) * total - margin, (1 - quantile) * total / 2, 3 * eta * math.sqrt(2 * v))
    found = np.nonzero(tails >= reach)[0]
    j = int(found.max()) if len(found) else 0
    return RowsFound(_lowest(edges, j), max(1, round(float(tails[j]))), doubts)


def learn_variable(
    counts: Counts,
    spending: PureStart,
    *,
    alpha: float | None = None,
    constants: Constants = "paper",
    rows: int | None = None,
    checked: bool = True,
) -> tuple[Learned, RowsFound]:
    """Theorem 12's algorithm: m-hat and s-hat first, then Dense or Sparse on the users with at least m-hat rows.

    constants="paper": epsilon/2 for m-hat and s-hat, epsilon/2 for the rest. constants="tight": 5 percent for both,
    m-hat chosen by predicted error. `rows`: m-hat, where it is known; users with fewer rows still take no part, and
    s-hat is bought all the same, as how many there are is private. A user's m-hat rows are drawn once, before they
    are split by symbol (erratum 5).

    Guarantee: that of `spending`. The first part is pure; what follows keeps (epsilon less the first part, delta) by
    itself for every m-hat and s-hat. Proof: docs/proofs/paper.md, Theorem 4.
    """
    epsilon, k = spending.guarantee.epsilon, counts.items
    if rows is not None:
        part = TIGHT_USERS if constants == "tight" else 0.5
        found = RowsFound(rows, _noisy_users(counts, spending, rows, part * epsilon))
    elif constants == "tight":
        found = _best_rows(counts, spending)
    else:
        beta = (0.1 if alpha is None else min(max(alpha, 1e-6), 1.0)) / (40 * k)
        found = rows_median(counts, spending, epsilon=epsilon / 2, beta=beta)
    tallies = counts.sum(Tally(found.rows, spending.salt()))
    learned = learn(
        tallies, spending.finish(), users=found.users, alpha=alpha, constants=constants, variable=True, checked=checked
    )
    return learned, found


def _best_rows(counts: Counts, spending: PureStart) -> RowsFound:
    """m-hat by predicted error from a noisy histogram, and then s-hat by itself, with noise of one bin only."""
    epsilon = spending.guarantee.epsilon
    edges = sorted({round(2 ** (j / 4)) for j in range(81)})
    tails, _ = _noisy_tails(counts, spending, edges, TIGHT_HISTOGRAM * epsilon, real=True)
    errors = [
        _predicted_error(counts.items, _lowest(edges, j), float(users), spending) for j, users in enumerate(tails)
    ]
    rows = _lowest(edges, int(np.argmin(errors))) if tails[0] > 0 else 1
    return RowsFound(rows, _noisy_users(counts, spending, rows, TIGHT_USERS * epsilon))


def _predicted_error(k: int, m: int, users: float, spending: PureStart) -> float:
    """Up to factors that do not depend on m: noise and sampling, sqrt(k/m) (1/(s weight) + 1/sqrt(s)); with noise of
    SmallBinom, k sqrt(changed)/(s m mu), in the sparse regime.
    """
    if users < 1:
        return math.inf
    guarantee = spending.guarantee
    mu = gaussian_mu(guarantee.epsilon, guarantee.delta)
    changed = changed_symbols(k, m, guarantee.adjacency)
    weight = mu / math.sqrt(changed)
    if guarantee.adjacency is Adjacency.ADD_REMOVE:
        weight = max(weight, 2 * mu / math.sqrt(k))
    error = math.sqrt(min(k, m) / m) * (1 / (users * weight) + 1 / math.sqrt(users))
    if k > m:
        error += k * math.sqrt(changed) / (users * m * mu) + math.sqrt(k / (users * m))
    return error


def _noisy_tails(
    counts: Counts, spending: PureStart, edges: list[int], epsilon: float, *, real: bool = False
) -> tuple[Floats, float]:
    """Noisy numbers of users in bin j or above, and eta. `real`: of the bins that stand out of the noise only."""
    histogram = counts.sum(UsersByRows(edges)) * COARSE_HISTOGRAM_UNIT
    noisy, event = spending.laplace("users by rows", histogram.values, bound=histogram.bound.l1, epsilon=epsilon)
    eta = event.scale / COARSE_HISTOGRAM_UNIT
    bins = noisy / COARSE_HISTOGRAM_UNIT
    if real:
        bins = visible(bins, math.sqrt(2) * eta, THRESHOLD)
    return np.cumsum(bins[::-1])[::-1], eta


def _noisy_users(counts: Counts, spending: PureStart, rows: int, epsilon: float) -> int:
    """s-hat: users with at least `rows` rows, with Laplace noise. One user moves the count by 1."""
    edges = [rows - 1, ROW_LIMIT] if rows > 1 else [ROW_LIMIT]
    takers = counts.sum(UsersByRows(edges)) * COARSE_HISTOGRAM_UNIT
    noisy, _ = spending.laplace("users with enough rows", takers.values[-1:], bound=takers.bound.l1, epsilon=epsilon)
    return max(1, round(float(noisy[0]) / COARSE_HISTOGRAM_UNIT))


def _lowest(edges: list[int], j: int) -> int:
    """The fewest rows of a user in bin j."""
    return edges[j - 1] + 1 if j else 1
