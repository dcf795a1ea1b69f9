"""The paper's steps as printed where that breaks privacy or accuracy, for measuring only. No release can reach them.

Each function returns a `Measured`: what the paper claims for the literal step, and the true privacy loss of it on a
pair of neighbouring tables, exactly or bounded from below.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import scipy
from scipy import special

__all__ = [
    "Measured",
    "appendix_e_zeros",
    "changed_symbols",
    "exact_s_threshold",
    "exponential_mechanism",
    "fresh_subsamples",
    "phs_distribution",
    "small_binom_noise",
]


@dataclass(frozen=True)
class Measured:
    """The claimed epsilon beside the true one of the literal version: exact, or a lower bound; `how` it was found."""

    claimed: float
    actual: float
    exact: bool
    how: str


def phs_distribution(
    counts: Sequence[int], m: int, cover: Sequence[float], alpha: float, exponent: float
) -> dict[float, float]:
    """Algorithm 1 pair by pair over all m + 1 outcomes, P[H] proportional to exp(exponent S(H)).

    The printed algorithm has exponent 1/(2 epsilon); the right one has epsilon/2.
    """
    s = len(counts)
    outcomes = np.arange(m + 1)
    masses = [scipy.stats.binom.pmf(outcomes, m, p) for p in cover]
    data = np.bincount(counts, minlength=m + 1)
    scores = []
    for mine in masses:
        gammas = [float(s)]
        for other in masses:
            inside = mine > other
            if mine[inside].sum() - other[inside].sum() > 3 * alpha:
                gammas.append(max(0.0, float(data[inside].sum()) - s * (float(other[inside].sum()) + 1.5 * alpha)))
        scores.append(min(gammas))
    weights = exponent * np.array(scores)
    weights = np.exp(weights - special.logsumexp(weights))
    return dict(zip(cover, weights.tolist(), strict=True))


def exponential_mechanism(epsilon: float = 0.1) -> Measured:
    """Erratum 1: exp(S/(2 epsilon)), on 40 users of whom one moves from 0 to m."""
    m, alpha, cover = 10, 0.1, (0.1, 0.9)
    before, after = [0] * 20 + [m] * 20, [0] * 19 + [m] * 21
    printed = [phs_distribution(counts, m, cover, alpha, 1 / (2 * epsilon)) for counts in (before, after)]
    return Measured(
        epsilon,
        _largest_ratio(*printed),
        exact=True,
        how="both output distributions of PHS with two hypotheses and 40 users, one of whom is replaced",
    )


def small_binom_noise(epsilon: float = 1.0, s: int = 1000) -> Measured:
    """Erratum 2: Z ~ Lap(1/epsilon) on a mean that one user moves by 1/s: private s times over, and useless."""
    return Measured(
        epsilon,
        epsilon / s,
        exact=True,
        how=f"Laplace noise of scale 1/epsilon on the mean of s={s} users, whose sensitivity is 1/s",
    )


def changed_symbols(epsilon: float = 1.0) -> Measured:
    """Erratum 3: m = 1, k = 2, one user's row moves from the first item to the second; min(k, m) = 1 choice is paid."""
    m, alpha, cover = 1, 0.05, (0.1, 0.9)
    users = 200
    first, second = [1] * 160 + [0] * 40, [0] * 160 + [1] * 40
    moved = ([1] * 159 + [0] * 41, [0] * 159 + [1] * 41)
    assert len(first) == len(second) == users
    joint = []
    for pair in ((first, second), moved):
        ones = [phs_distribution(counts, m, cover, alpha, epsilon / 2) for counts in pair]
        joint.append({(a, b): ones[0][a] * ones[1][b] for a, b in product(cover, cover)})
    return Measured(
        epsilon,
        _largest_ratio(*joint),
        exact=True,
        how="joint output of two symbols (k=2, m=1, 200 users, one replaced), each of range epsilon, paid as one",
    )


def appendix_e_zeros(epsilon: float = 1.0, delta: float = 1e-6, k: int = 10_000, rows: int = 10) -> Measured:
    """Erratum 4: a user drops below m-hat = `rows` rows, and sum 1{N_i = 0} falls by 1 for every symbol they lacked.

    SmallBinom alone, whose output is part of what the algorithm releases, has Laplace noise of scale 1/epsilon_2 with
    epsilon_2 = (epsilon/2) / (8 sqrt(min(k, m-hat) log(2/delta))); k - m-hat symbols move by 1. Claimed: (epsilon/2,
    delta/2). The composition is computed with optimistic rounding: a lower bound.
    """
    from dp_accounting.pld import privacy_loss_distribution

    small = (epsilon / 2) / (8 * math.sqrt(min(k, rows) * math.log(2 / delta)))
    one = privacy_loss_distribution.from_laplace_mechanism(
        1 / small,
        sensitivity=1,
        pessimistic_estimate=False,
        value_discretization_interval=small / 16,
        use_connect_dots=False,
    )
    actual = one.self_compose(k - rows).get_epsilon_for_delta(delta / 2)
    return Measured(
        epsilon / 2,
        float(actual),
        exact=False,
        how=f"privacy loss of {k - rows} Laplace noises shifted by 1 (k={k}, m-hat={rows}, delta={delta / 2:g})",
    )


def fresh_subsamples(epsilon: float = 1.0, k: int = 1000) -> Measured:
    """Erratum 5: m-hat = 1, a user with one row of each of k items, and a fresh draw of the row for each symbol.

    Each symbol is touched with probability 1/k by its own draw. Where the Laplace noise of every symbol falls above
    both values, the likelihood ratio is (1 + (e^epsilon - 1)/k)^k, against e^epsilon for one draw for all symbols.
    """
    return Measured(
        epsilon,
        k * math.log1p(math.expm1(epsilon) / k),
        exact=True,
        how=f"likelihood ratio where all k={k} noisy counts are high; one draw for all symbols keeps to epsilon",
    )


def exact_s_threshold(epsilon: float = 1.0, s: int = 100, beta: float = 0.1) -> Measured:
    """Erratum 6: s-hat >= s/2 - eta v log(v/beta) always, with the exact s.

    An s-hat in the half-open interval of width 1/2 above that threshold has positive probability with s users and none
    with s + 1: no epsilon holds.
    """
    bins, noise = 2, 2 / epsilon
    threshold = s / 2 - noise * bins * math.log(bins / beta)
    # The last bin is j* when its noisy count reaches the threshold, and s-hat is that count.
    law = scipy.stats.laplace(loc=math.ceil(threshold), scale=noise)
    chance = float(law.cdf(threshold + 0.5) - law.cdf(threshold))
    return Measured(
        epsilon,
        math.inf,
        exact=True,
        how=f"s-hat just above the threshold (chance {chance:.2g}) cannot occur when one user is added",
    )


def _largest_ratio(one: Mapping[Any, float], other: Mapping[Any, float]) -> float:
    return max(abs(math.log(one[key] / other[key])) for key in one)
