"""Lower bounds: with fewer users than this, no mechanism of a kind can promise an expected l1 error of alpha.

`le_cam`, `assouad` and `fano` are the paper's Theorems 9, 4 and 11 with their errata corrected, for a construction of
your own. `counts_only_users` (Theorem 1), `pure_users` (Theorem 3) and `private_users` run them on the paper's
construction, which perturbs the uniform distribution pairwise,

    q_v = (1 + 3a v_1, 1 - 3a v_1, ..., 1 + 3a v_n, 1 - 3a v_n) / k,   v in {-1, 1}^n, n = k/2, 0 < a <= 1/3,

and take the best a. Where the theorems bound the chance of a bad coupling by Markov's inequality with a factor of 10,
these use the binomial tail that it has; so they hold for every epsilon, and say something for epsilon = 1. An odd k
counts as k - 1. Privacy is that of replacing a user's rows; for add-remove see `replaced`. Derivations: docs/theory.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy import special

from ..arrays import Floats
from .ranges import real, whole

__all__ = [
    "assouad",
    "counts_only_error",
    "counts_only_users",
    "error_sum",
    "fano",
    "le_cam",
    "private_error",
    "private_users",
    "pure_error",
    "pure_users",
    "replaced",
    "sampling_error",
    "sampling_users",
]


_MOST_USERS = 10**15
_SHIFTS = np.geomspace(1e-9, 1 / 3, 120)


def le_cam(total_variation: float, distance: float, epsilon: float, delta: float = 0.0) -> float:
    """Theorem 9: the worst error probability of any private test of two (mixtures of) distributions is at least

        1/2 max(1 - TV, 0.9 exp(-10 epsilon D) - 10 D delta),

    where: TV is their total variation over all users' data; D the expected number of users whose data differ in some
    coupling (an f-coupling, for tests that see f only).
    """
    tv, far = _coupled("Theorem 9 (Le Cam)", total_variation, distance)
    return max(0.0, (1 - tv) / 2, _markov(far, *_budget("Theorem 9 (Le Cam)", epsilon, delta)) / 2)


def assouad(tau: float, total_variations: npt.ArrayLike, distance: float, epsilon: float, delta: float = 0.0) -> float:
    """Theorem 4: the expected loss of any private estimator, at the worst of the 2^n distributions, is at least

        max(tau/2 sum_i (1 - TV_i), n tau/2 (0.9 exp(-10 epsilon D) - 10 D delta)),

    where: the loss of u for v is at least 2 tau times the number of coordinates where they differ; TV_i, one for each
    of the n coordinates, is the total variation of the two mixtures that coordinate i tells apart; D bounds the
    expected number of users that differ in an f-coupling of them. For the paper's construction n = k/2, not k.
    """
    theorem = "Theorem 4 (Assouad)"
    tau = real(theorem, "tau", tau, 0.0, math.inf)
    far = real(theorem, "distance", distance, 0.0, math.inf, with_low=True)
    each = np.atleast_1d(np.asarray(total_variations, dtype=np.float64))
    for one in each:
        real(theorem, "total_variations", float(one), 0.0, 1.0, with_low=True)
    private = each.size * _markov(far, *_budget(theorem, epsilon, delta))
    return max(0.0, tau / 2 * float((1 - each).sum()), tau / 2 * private)


def fano(separation: float, divergence: float, distance: float, log_hypotheses: float, epsilon: float) -> float:
    """Theorem 11: the expected loss of any epsilon-private estimator, at the worst of M distributions, is at least

        separation/2 max(1 - (KL + log 2)/log M, 0.9 (M-1) / (M-1 + exp(10 epsilon D))),

    where: every two are `separation` apart in the loss, KL = `divergence` bounds their divergence over all users'
    data, D the expected number of users that differ in a coupling, log M = `log_hypotheses`, M >= 2. The second is what
    the paper's proof gives; it is at least 0.2 separation min(1, M/exp(10 epsilon D)) for M >= 9, where 0.4 is printed.
    """
    theorem = "Theorem 11 (Fano)"
    apart = real(theorem, "separation", separation, 0.0, math.inf)
    kl = real(theorem, "divergence", divergence, 0.0, math.inf, with_low=True)
    far = real(theorem, "distance", distance, 0.0, math.inf, with_low=True)
    logs = real(theorem, "log_hypotheses", log_hypotheses, math.log(2), math.inf, with_low=True)
    epsilon, _ = _budget(theorem, epsilon, 0.0)
    private = 0.9 * float(special.expit(_log_others(logs) - 10 * epsilon * far))
    return apart / 2 * max(0.0, 1 - (kl + math.log(2)) / logs, private)


def error_sum(failure: npt.ArrayLike, changed: npt.ArrayLike, epsilon: float, delta: float = 0.0) -> Floats:
    """The two error probabilities of a private test add up to at least 2 (1 - f - delta_T) / (1 + exp(epsilon T)),

    where: in a coupling more than T = `changed` users differ with chance f = `failure`, and delta_T =
    delta (exp(epsilon T) - 1)/(exp(epsilon) - 1) is the delta of a group of T. Theorem 9's proof without Markov.
    """
    steps = np.asarray(changed, dtype=np.float64)
    with np.errstate(over="ignore"):
        group = delta * np.expm1(np.minimum(epsilon * steps, 700.0)) / math.expm1(epsilon)
    sums: Floats = 2 * (1 - np.asarray(failure) - group) * special.expit(-epsilon * steps)
    return np.maximum(sums, 0.0)


def sampling_error(users: int, items: int, rows: int) -> float:
    """Below this no estimate of `users` users' rows can be, private or not: 1.5 a (1 - TV), at the best a.

    Theorem 4's first term; TV <= sqrt(1 - B^(2 s m)), B = 1 - (2/k)(1 - sqrt(1 - 9a^2)) the Bhattacharyya coefficient
    of one row.
    """
    s, k, m = _sizes("The sampling bound", users, items, rows)
    return _best(1 - _far(s * m, k))


def counts_only_error(users: int, items: int, rows: int, epsilon: float, delta: float = 0.0) -> float:
    """Theorem 1: below this no mechanism that sees the summed counts only can be.

    The number of rows that differ between the two mixtures is Bin(s m, 6a/k); moved to the front they belong to
    ceil(rows/m) users, which the summed counts cannot tell. So f = Pr[Bin(s m, 6a/k) > m T] in `error_sum`, and
    Theorem 4 with tau = 6a/k and n = k/2 gives an error of at least 1.5 a times that sum, at the best a and T.
    """
    theorem = "Theorem 1 (summed counts)"
    s, k, m = _sizes(theorem, users, items, rows)
    epsilon, delta = _budget(theorem, epsilon, delta)
    steps = _steps(s, 4 / epsilon)
    failure = _exceeds(s * m, 6 * _SHIFTS[:, None] / k, m * steps)
    return max(sampling_error(s, items, m), _best(error_sum(failure, steps, epsilon, delta)))


def private_error(users: int, items: int, rows: int, epsilon: float, delta: float = 0.0) -> float:
    """Below this no (epsilon, delta)-private mechanism can be, whatever it sees.

    Theorem 4 with f the identity: coupling users one by one, Bin(s, TV_1) of them differ, where TV_1 <= min(6 a m/k,
    sqrt(1 - B^(2m))) is the total variation of one user's rows. Of order sqrt(k)/(sqrt(m) alpha epsilon) for m >= k:
    weaker in k than Theorem 3, but it allows for delta.
    """
    theorem = "The bound for every private mechanism"
    s, k, m = _sizes(theorem, users, items, rows)
    epsilon, delta = _budget(theorem, epsilon, delta)
    steps = _steps(s, 4 / epsilon)
    one_user = np.minimum(6 * _SHIFTS * m / k, _far(m, k))
    failure = _exceeds(s, one_user[:, None], steps)
    return max(sampling_error(s, items, m), _best(error_sum(failure, steps, epsilon, delta)))


def pure_error(users: int, items: int, rows: int, epsilon: float) -> float:
    """Theorem 3: below this no epsilon-private mechanism (delta = 0) can be.

    Theorem 11 over a code of M words of length n = k/2, at Hamming distance d or more, which exists for
    M >= 2^n / sum_{i<d} C(n, i) (Gilbert and Varshamov). Two words are 12 a d/k apart; one user's rows at most
    TV_1 <= min(3 a m, sqrt(1 - (1 - 9a^2)^m)); so with f = Pr[Bin(s, TV_1) > T] the error is at least
    (6 a d/k) (1 - f) (M-1)/(M-1 + exp(epsilon T)), at the best a, d and T. Or `private_error`, where that is more.
    """
    theorem = "Theorem 3 (pure privacy)"
    s, k, m = _sizes(theorem, users, items, rows)
    epsilon, _ = _budget(theorem, epsilon, 0.0)
    best = private_error(s, items, m, epsilon)
    one_user = np.minimum(3 * _SHIFTS * m, np.sqrt(-np.expm1(m * np.log1p(-((3 * _SHIFTS) ** 2) * (1 - 1e-15)))))
    for d in sorted({max(1, round(share * (k // 2))) for share in np.linspace(0.06, 0.48, 8)}):
        logs = _log_code(k // 2, d)
        if logs < math.log(2):
            continue
        steps = _steps(s, 1.5 * (logs + 3) / epsilon)
        right = special.expit(_log_others(logs) - epsilon * steps)
        failure = _exceeds(s, one_user[:, None], steps)
        best = max(best, float((6 * _SHIFTS[:, None] * d / k * (1 - failure) * right).max()))
    return best


def sampling_users(items: int, rows: int, alpha: float) -> int:
    """At least so many users are needed for an expected l1 error of alpha, private or not. See `sampling_error`."""
    return _invert("The sampling bound", alpha, lambda s: sampling_error(s, items, rows))


def counts_only_users(items: int, rows: int, alpha: float, epsilon: float, delta: float = 0.0) -> int:
    """Theorem 1: at least so many users are needed by a mechanism that sees the summed counts only.

    Of order k/(m alpha^2) + k/(alpha epsilon): the second term does not fall with m. See `counts_only_error`.
    """
    return _invert("Theorem 1 (summed counts)", alpha, lambda s: counts_only_error(s, items, rows, epsilon, delta))


def private_users(items: int, rows: int, alpha: float, epsilon: float, delta: float = 0.0) -> int:
    """At least so many users are needed by any (epsilon, delta)-private mechanism. See `private_error`."""
    return _invert(
        "The bound for every private mechanism", alpha, lambda s: private_error(s, items, rows, epsilon, delta)
    )


def pure_users(items: int, rows: int, alpha: float, epsilon: float) -> int:
    """Theorem 3: at least so many users are needed by any epsilon-private mechanism with delta = 0.

    Of order k/(m alpha^2) + k/(sqrt(m) alpha epsilon). See `pure_error`.
    """
    return _invert("Theorem 3 (pure privacy)", alpha, lambda s: pure_error(s, items, rows, epsilon))


def replaced(epsilon: float, delta: float = 0.0) -> tuple[float, float]:
    """What add-remove privacy promises for replacing a user, which is one removed and one added."""
    epsilon, delta = _budget("Group privacy", epsilon, delta)
    return 2 * epsilon, min(1.0, (1 + math.exp(epsilon)) * delta)


def _markov(distance: float, epsilon: float, delta: float) -> float:
    return 0.9 * math.exp(-10 * epsilon * distance) - 10 * distance * delta


def _log_others(logs: float) -> float:
    """log(M - 1) from log M."""
    return logs + math.log1p(-math.exp(-logs))


def _log_code(n: int, d: int) -> float:
    """log of 2^n / sum_{i<d} C(n, i); by Chernoff's bound where the exact value underflows."""
    inside = float(special.bdtr(d - 1, n, 0.5))
    if inside > 1e-290:
        return -math.log(inside)
    x = (d - 1) / n
    return n * (math.log(2) + float(special.xlogy(x, x) + special.xlogy(1 - x, 1 - x)))


def _far(rows: int, k: int) -> Floats:
    """A bound on the total variation, over `rows` rows, of two distributions that differ in one pair; for each a."""
    lost = (2 / k) * (1 - np.sqrt(np.maximum(1 - (3 * _SHIFTS) ** 2, 0.0)))
    with np.errstate(divide="ignore"):
        far: Floats = np.sqrt(-np.expm1(2 * rows * np.log1p(-lost)))
    return far


def _best(error_sums: Floats) -> float:
    """max over a (first axis) of 1.5 a times the sum of a test's two errors: (tau/2)(k/2) = 1.5 a."""
    shifts = _SHIFTS.reshape(-1, *[1] * (error_sums.ndim - 1))
    return float((1.5 * shifts * error_sums).max())


def _steps(users: int, most: float, points: int = 32) -> Floats:
    """Numbers of changed users T to try, up to `most` or all."""
    top = max(1.0, min(float(users), math.ceil(most)))
    return np.unique(np.floor(np.geomspace(1.0, top, points) + 1e-9))


def _exceeds(trials: int, chance: Floats, level: Floats) -> Floats:
    """Pr[Bin(trials, chance) > level]."""
    level = np.minimum(np.broadcast_to(level, np.broadcast_shapes(np.shape(chance), np.shape(level))), trials)
    beyond = level >= trials
    start = np.where(beyond, 1.0, level + 1)
    tail = special.betainc(start, np.where(beyond, 1.0, trials - level), np.minimum(chance, 1.0))
    return np.where(beyond, 0.0, tail)


def _invert(theorem: str, alpha: float, error: Callable[[int], float]) -> int:
    """The least s at which the bound no longer excludes an error of alpha. The bounds fall as s grows."""
    alpha = real(theorem, "alpha", alpha, 0.0, 2.0)
    if error(1) <= alpha:
        return 1
    low, high = 1, 2
    while error(high) > alpha:
        if high > _MOST_USERS:
            return high
        low, high = high, 2 * high
    while high > low + 1:
        middle = (low + high) // 2
        low, high = (middle, high) if error(middle) > alpha else (low, middle)
    return high


def _sizes(theorem: str, users: int, items: int, rows: int) -> tuple[int, int, int]:
    k = whole(theorem, "items", items, 2)
    return whole(theorem, "users", users, 1), k - k % 2, whole(theorem, "rows", rows, 1)


def _budget(theorem: str, epsilon: float, delta: float) -> tuple[float, float]:
    return real(theorem, "epsilon", epsilon, 0.0, math.inf), real(theorem, "delta", delta, 0.0, 1.0, with_low=True)


def _coupled(theorem: str, total_variation: float, distance: float) -> tuple[float, float]:
    tv = real(theorem, "total_variation", total_variation, 0.0, 1.0, with_low=True)
    return tv, real(theorem, "distance", distance, 0.0, math.inf, with_low=True)
