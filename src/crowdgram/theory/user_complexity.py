"""Upper bounds on user complexity: so many users are enough, with every constant written out.

The user complexity S(A, m, alpha) of an algorithm A is the least number of users for which its expected l1 error is
at most alpha for every distribution over k items (the paper's equation 1). Users have m rows each, and privacy is that
of the paper: one user's rows are replaced, the number of users is public.

Dense, sparse and variable take `constants`: "paper" has the paper's epsilon' and alpha' and its binomial constant
1/350, errata corrected; "tight" has the measured binomial constant, composition by zero-concentrated privacy, and
Lemma 2 with its estimate capped at 4/m. docs/theory.md derives each line.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from .binomial_constant import MEASURED_CONSTANT
from .binomial_distance import PAPER_CONSTANT
from .ranges import OutOfRange, real, whole

__all__ = [
    "Constants",
    "binomial_users",
    "dense_users",
    "gaussian_users",
    "joined_users",
    "laplace_users",
    "median_users",
    "sample_one_users",
    "selection_users",
    "small_binomial_users",
    "sparse_users",
    "variable_users",
]

Constants = Literal["paper", "tight"]

_SMALL_MEAN = 4.0  # SmallBinom serves p <= 4/m


def laplace_users(items: int, rows: int, alpha: float, epsilon: float) -> int:
    """Lemma 1, Laplace: enough users for noise Lap(2m/epsilon) on each summed count.

    E l1 <= sqrt((k-1)/(s m)) + 2k/(s epsilon): sampling by Cauchy-Schwarz, and E|Lap(b)| = b. Solved for s.
    """
    k, m, alpha, epsilon = _problem("Lemma 1 (Laplace)", items, rows, alpha, epsilon, most_epsilon=math.inf)
    return _solve(alpha, (k - 1) / m, 2 * k / epsilon)


def gaussian_users(items: int, rows: int, alpha: float, epsilon: float, delta: float) -> int:
    """Lemma 1, Gaussian, for epsilon <= 1: enough users for noise of variance 4 log(1.25/delta) m^2/epsilon^2.

    E l1 <= sqrt((k-1)/(s m)) + k sqrt(2/pi) 2 sqrt(log(1.25/delta)) / (s epsilon), as E|N(0, v)| = sqrt(2v/pi).
    """
    k, m, alpha, epsilon = _problem("Lemma 1 (Gaussian)", items, rows, alpha, epsilon)
    delta = _delta("Lemma 1 (Gaussian)", delta)
    deviation = 2 * math.sqrt(math.log(1.25 / delta)) / epsilon
    return _solve(alpha, (k - 1) / m, math.sqrt(2 / math.pi) * k * deviation)


def sample_one_users(items: int, alpha: float, epsilon: float) -> int:
    """Section 2, one sampled row of each user: Lemma 1 for m = 1. More rows a user do not help."""
    k, _, alpha, epsilon = _problem("Section 2 (sample one row)", items, 1, alpha, epsilon, most_epsilon=math.inf)
    return laplace_users(k, 1, alpha, epsilon)


def selection_users(hypotheses: float, distance: float, epsilon: float, beta: float) -> float:
    """Lemma 9, Algorithm 1 (PHS): with so many samples it returns, but for a chance beta, a hypothesis within
    4 `distance` in total variation, if one of them is within `distance`.

    max(8 log(4d/beta) / distance^2, 8 log(2d/beta) / (distance epsilon)), d = `hypotheses` (the paper prints m): the
    first by Hoeffding over d sets with slack distance/4, the second by the exponential mechanism, which must beat a
    score of s distance/4. Distances are in total variation (Bun et al. 2019), half of l1.
    """
    theorem = "Lemma 9 (private hypothesis selection)"
    d = real(theorem, "hypotheses", hypotheses, 1.0, math.inf, with_low=True)
    tau = real(theorem, "distance", distance, 0.0, 1.0)
    epsilon = real(theorem, "epsilon", epsilon, 0.0, math.inf)
    beta = real(theorem, "beta", beta, 0.0, 1.0)
    return max(8 * math.log(4 * d / beta) / tau**2, 8 * math.log(2 * d / beta) / (tau * epsilon))


def binomial_users(rows: int, alpha: float, epsilon: float, beta: float, constant: float = PAPER_CONSTANT) -> float:
    """Theorem 6, Algorithm 2 (Binom): enough users that |p - p-hat| <= 0.8 alpha max(1/m, sqrt(p(1-p)/m)), but for a
    chance beta; with beta = alpha/(5m) the expected error is at most alpha max(...).

    PHS at total variation c alpha/10 over ceil(20m/(c alpha)) + 1 hypotheses, c = `constant`: it returns one within
    0.4 c alpha, which is 0.8 c alpha in l1, and Theorem 5's lower bound turns that into 0.8 alpha on the scale. So
    800 log(4d/beta)/(c alpha)^2 and 80 log(2d/beta)/(c alpha epsilon), where the paper prints 16 and 16.
    """
    theorem = "Theorem 6"
    m = whole(theorem, "rows", rows, 1)
    alpha = real(theorem, "alpha", alpha, 0.0, 1.0)
    constant = real(theorem, "constant", constant, 0.0, 2.0)
    return selection_users(_cover(m, alpha, constant), constant * alpha / 10, epsilon, beta)


def small_binomial_users(
    rows: int, alpha: float, gamma: float, epsilon: float, beta: float, constants: Constants = "paper"
) -> float:
    """Lemma 2, Algorithm 4 (SmallBinom), for p <= 4/m and m >= 8: enough users that, but for a chance beta,
    |p - p-hat| <= alpha sqrt(p/m) + alpha^2/m + gamma/m.

    "paper": max(64 e^12 4, 16 e^12 (1/alpha^2 + 1/(gamma epsilon))) log(3/beta), c = 4; it needs gamma <= 1, or the
    Laplace term would break the first condition. "tight": with the estimate capped at 4/m, where (1-p)^m has slope at
    least m/K, K = (1-4/m)^(1-m), Bernstein gives K^2 2/alpha^2 and K/(gamma epsilon), the greater of the two.
    """
    theorem = "Lemma 2"
    m = whole(theorem, "rows", rows, 8)
    alpha, gamma = real(theorem, "alpha", alpha, 0.0, 1.0), real(theorem, "gamma", gamma, 0.0, 1.0)
    epsilon = real(theorem, "epsilon", epsilon, 0.0, math.inf)
    logs = math.log(3 / real(theorem, "beta", beta, 0.0, 1.0))
    if constants == "paper":
        big = math.exp(3 * _SMALL_MEAN)
        return logs * max(64 * big * _SMALL_MEAN, 16 * big * (1 / alpha**2 + 1 / (gamma * epsilon)))
    steep = _inverse_slope(m)
    return logs * max(2 * steep**2 / alpha**2, steep / (gamma * epsilon))


def dense_users(
    items: int, rows: int, alpha: float, epsilon: float, delta: float, constants: Constants = "paper"
) -> int:
    """Theorem 7, Algorithm 3 (Dense), for k <= m and epsilon <= 1.

    Theorem 6 for each item at alpha' = min(sqrt(m) alpha / (2 sqrt(k)), 1), beta = alpha'/(5m): the errors sum to
    alpha' (k/m + sqrt(k/m)) <= alpha. "paper": epsilon' = epsilon / (4 sqrt(k log(1/delta))). "tight": k choices of
    bounded range epsilon' are k epsilon'^2/8-zCDP.
    """
    theorem = "Theorem 7 (dense)"
    k, m, alpha, epsilon = _problem(theorem, items, rows, alpha, epsilon)
    delta, constant = _delta(theorem, delta), _constant(constants)
    if k > m:
        raise OutOfRange(f"{theorem} needs at most as many items as rows a user; there are {k} items and {m} rows.")
    inner = min(math.sqrt(m / k) * alpha / 2, 1.0)
    each = _split(epsilon, delta, k, constants).choice
    return math.ceil(binomial_users(m, inner, each, inner / (5 * m), constant))


def sparse_users(
    items: int, rows: int, alpha: float, epsilon: float, delta: float, constants: Constants = "paper"
) -> int:
    """Theorem 8, Algorithm 5 (Sparse), for k >= m >= 8 and epsilon <= 1.

    Theorem 6 at alpha'' for every item, and Lemma 2 at alpha', gamma where p' < 2/m; beta = alpha/(40k). At most m/4
    items have p >= 4/m and at most 4m have p >= 1/(4m), so the expected error is at most
    0.8 (1/2 + 8) alpha'' + alpha' sqrt(k/m) + alpha'^2 k/m + gamma k/m + 2 k beta. "paper": alpha'' = alpha/240,
    alpha' = sqrt(m/k) alpha/8, gamma = m alpha/(8k), epsilon' = epsilon / (8 sqrt(m log(1/delta))). "tight": alpha'' =
    alpha/17, alpha' = sqrt(m/k) alpha/4, gamma = m alpha/(5k), and zCDP over the min(k, 2m) items that can change.
    """
    theorem = "Theorem 8 (sparse)"
    k, m, alpha, epsilon = _problem(theorem, items, rows, alpha, epsilon, least_rows=8)
    delta, constant = _delta(theorem, delta), _constant(constants)
    if k < m:
        raise OutOfRange(f"{theorem} needs at least as many items as rows a user; there are {k} items and {m} rows.")
    share, budget = _sparse_shares(k, m, alpha, constants), _split_sparse(epsilon, delta, k, m, constants)
    beta = alpha / (40 * k)
    return math.ceil(
        max(
            binomial_users(m, share.large, budget.choice, beta, constant),
            small_binomial_users(m, share.small, share.gamma, budget.count, beta, constants),
        )
    )


def joined_users(
    items: int, rows: int, alpha: float, epsilon: float, delta: float, constants: Constants = "paper"
) -> int:
    """Theorem 2: dense for k <= m, else sparse; below 8 rows a user, where sparse does not apply, Lemma 1's Laplace.

    (For m < 8 Lemma 1 is of Theorem 2's order too: sqrt(m) is at most a constant.)
    """
    k, m, alpha, epsilon = _problem("Theorem 2", items, rows, alpha, epsilon)
    if k <= m:
        return dense_users(k, m, alpha, epsilon, delta, constants)
    if m < 8:
        _delta("Theorem 2", delta)
        return laplace_users(k, m, alpha, epsilon)
    return sparse_users(k, m, alpha, epsilon, delta, constants)


def median_users(most_rows: int, epsilon: float, beta: float) -> float:
    """Lemma 10, the private median of rows per user (Appendix E): with so many users, but for a chance beta,
    m-hat >= median/2, at least s/4 users have m-hat rows, s-hat >= 3s/8 and |s-hat - s_mhat| <= s/8.

    8 E with E = 2 v log(v/beta) / epsilon, the error of a sum of v = floor(log2(most_rows)) + 2 noisy bins.
    """
    return 8 * _tally_error(most_rows, epsilon, beta)


def variable_users(
    items: int,
    median_rows: int,
    most_rows: int,
    alpha: float,
    epsilon: float,
    delta: float,
    constants: Constants = "paper",
) -> int:
    """Theorems 12 to 15, Appendix E: users with different numbers of rows, epsilon <= 1.

    Half the budget finds m-hat, a power of two of at least median/2, and s-hat; the other half runs dense (k <= m-hat)
    or sparse on the s/4 or more users who have m-hat rows. m-hat is not known beforehand, so the bound is the worst
    over what it may be. Hoeffding on s/4 users with slack tau/8 gives 128 where the paper has 32; the exponential
    mechanism 64/3; the error of s-hat 64/3 E.
    """
    theorem = "Theorem 12 (variable)"
    k, median, alpha, epsilon = _problem(theorem, items, median_rows, alpha, epsilon)
    most = whole(theorem, "most_rows", most_rows, median)
    delta, constant = _delta(theorem, delta), _constant(constants)
    least = 2 ** max(math.ceil(math.log2(median)) - 1, 0)
    beta = alpha / (40 * k)
    drift = _tally_error(most, epsilon / 2, beta)
    needed = [8 * drift]
    if k <= most:  # m-hat may be at least k: dense, at the least accuracy asked of it
        inner = min(math.sqrt(max(least, k) / k) * alpha / 2, 1.0)
        each = _split(epsilon / 2, delta / 2, k, constants).choice
        needed.append(_variable_selection(most, inner, each, beta, constant, drift))
    if k > least:  # m-hat may be below k: sparse
        if least < 8:
            raise OutOfRange(
                f"Theorem 15 (variable, sparse) needs a median of more than 8 rows a user; it is {median}."
            )
        largest = min(k, 2 ** math.floor(math.log2(most)))
        for m in {least, largest}:  # each term is monotone in m-hat, so its worst is at an end
            share = _sparse_shares(k, m, alpha, constants)
            budget = _split_sparse(epsilon / 2, delta / 2, k, m, constants)
            needed.append(_variable_selection(most, share.large, budget.choice, beta, constant, drift))
            needed.append(_variable_small(m, most, share, budget.count, epsilon / 2, beta, constants, drift))
    return math.ceil(max(needed))


def _variable_selection(most: int, alpha: float, epsilon: float, beta: float, constant: float, drift: float) -> float:
    tau, d = constant * alpha / 10, _cover(most, alpha, constant)
    return max(
        64 * drift / (3 * tau),
        128 * math.log(4 * d / beta) / tau**2,
        64 * math.log(2 * d / beta) / (3 * tau * epsilon),
    )


def _variable_small(
    m: int,
    most: int,
    share: _Shares,
    epsilon: float,
    epsilon_median: float,
    beta: float,
    constants: Constants,
    drift: float,
) -> float:
    """Lemma 14, the variable form of Lemma 2: "paper" as printed, but for 256; "tight" as derived."""
    logs = math.log(3 / beta)
    if constants == "paper":
        big = math.exp(3 * _SMALL_MEAN)
        median_term = 32 * math.log(3 * most / beta) ** 2 / (share.gamma * epsilon_median)
        return big * max(
            256 * _SMALL_MEAN * logs,
            128 * logs / share.small**2 + median_term + 16 * logs / (share.gamma * epsilon),
        )
    steep = _inverse_slope(m)
    return max(8 * steep**2 * logs / share.small**2, 8 / 3 * steep * (drift + logs / epsilon) / share.gamma)


@dataclass(frozen=True)
class _Shares:
    """How the error is shared out in the sparse regime: the paper's alpha'', alpha' and gamma."""

    large: float
    small: float
    gamma: float


@dataclass(frozen=True)
class _Budget:
    """Epsilon of one choice (PHS) and of one noisy count (SmallBinom)."""

    choice: float
    count: float


def _sparse_shares(k: int, m: int, alpha: float, constants: Constants) -> _Shares:
    if constants == "paper":
        return _Shares(alpha / 240, math.sqrt(m / k) * alpha / 8, m * alpha / (8 * k))
    # 6.8/17 + 1/4 + 1/16 + 1/5 + 1/20 < 1, for alpha <= 1
    return _Shares(alpha / 17, math.sqrt(m / k) * alpha / 4, m * alpha / (5 * k))


def _split(epsilon: float, delta: float, changed: int, constants: Constants) -> _Budget:
    """The budget of each of `changed` choices."""
    if constants == "paper":
        each = epsilon / (4 * math.sqrt(changed * math.log(1 / delta)))
        return _Budget(each, each)
    rho = _rho(epsilon, delta)
    return _Budget(math.sqrt(8 * rho / changed), math.sqrt(2 * rho / changed))


def _split_sparse(epsilon: float, delta: float, k: int, m: int, constants: Constants) -> _Budget:
    """The budget of each choice and each count where both are made for every item."""
    if constants == "paper":
        each = epsilon / (8 * math.sqrt(min(k, m) * math.log(1 / delta)))
        return _Budget(each, each)
    rho, changed = _rho(epsilon, delta) / 2, min(k, 2 * m)
    return _Budget(math.sqrt(8 * rho / changed), math.sqrt(2 * rho / changed))


def _rho(epsilon: float, delta: float) -> float:
    """The zCDP that gives (epsilon, delta): rho + 2 sqrt(rho log(1/delta)) = epsilon (Bun and Steinke 2016, 1.3)."""
    logs = math.log(1 / delta)
    return float((math.sqrt(logs + epsilon) - math.sqrt(logs)) ** 2)


def _cover(m: int, alpha: float, constant: float) -> int:
    return math.ceil(20 * m / (constant * alpha)) + 1


def _inverse_slope(m: int) -> float:
    """1 / (least slope of 1 - (1-p)^m, over m, for p <= 4/m)."""
    return float((1 - _SMALL_MEAN / m) ** (1 - m))


def _tally_error(most_rows: int, epsilon: float, beta: float) -> float:
    theorem = "Lemma 10 (private median)"
    bins = math.floor(math.log2(whole(theorem, "most_rows", most_rows, 1))) + 2
    beta = real(theorem, "beta", beta, 0.0, 1.0)
    return 2 * bins * math.log(bins / beta) / real(theorem, "epsilon", epsilon, 0.0, math.inf)


def _solve(alpha: float, sampling: float, noise: float) -> int:
    """The least whole s with sqrt(sampling/s) + noise/s <= alpha."""
    root = (math.sqrt(sampling) + math.sqrt(sampling + 4 * noise * alpha)) / (2 * alpha)
    return max(1, math.ceil(root**2))


def _problem(
    theorem: str,
    items: int,
    rows: int,
    alpha: float,
    epsilon: float,
    *,
    most_epsilon: float = 1.0,
    least_rows: int = 1,
) -> tuple[int, int, float, float]:
    return (
        whole(theorem, "items", items, 2),
        whole(theorem, "rows", rows, least_rows),
        real(theorem, "alpha", alpha, 0.0, 1.0),
        real(theorem, "epsilon", epsilon, 0.0, most_epsilon),
    )


def _delta(theorem: str, delta: float) -> float:
    """Up to 1/2, so that log(1/delta) is not next to nothing and the printed epsilon' composes."""
    return real(theorem, "delta", delta, 0.0, 0.5)


def _constant(constants: Constants) -> float:
    if constants not in ("paper", "tight"):
        raise OutOfRange(f"constants={constants!r}: needs to be 'paper' or 'tight'.")
    return PAPER_CONSTANT if constants == "paper" else MEASURED_CONSTANT
