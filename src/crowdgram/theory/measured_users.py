"""Measured user complexity (the paper's equation 1): how many users a mechanism needs, found by running it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from ..arrays import Floats
from .ranges import OutOfRange, real, whole

__all__ = ["ErrorOf", "MeasuredUsers", "measured_users"]


ErrorOf = Callable[[int, int, int, Floats], float]
"""(items, rows a user, users, distribution) -> the l1 error of one fresh run."""


_FIRST = 3


@dataclass(frozen=True)
class MeasuredUsers:
    """The smallest number of users tried that was enough.

    error: the mean l1 error there, or with `success` the quantile, for the worst of the distributions.
    standard_error: of that mean; not a number for a single run, or for a quantile.
    not_enough: the largest number tried below `users` that was not enough; 0 if there was none.
    more: not even `users` were enough, and no more may be tried.
    """

    users: int
    error: float
    standard_error: float
    not_enough: int
    more: bool = False


def measured_users(
    error_of: ErrorOf,
    *,
    rows: int,
    alpha: float,
    distributions: Sequence[npt.ArrayLike],
    repetitions: int = 10,
    success: float | None = None,
    step: float = 1.05,
    guess: int = 100,
    most: int = 10**8,
) -> MeasuredUsers:
    """S(A, m, alpha) = min {s : max_p E l1(p, p-hat) <= alpha}, with the maximum over `distributions`.

    A size is enough if for every distribution the mean of `repetitions` runs is at most alpha; or, with
    `success=0.9`, if at least that share of them is (the paper's bounds "with probability at least 0.9"). Sizes are
    doubled or halved from `guess`, then bisected on a log scale until enough and not enough are within a factor `step`.

    Runs go where they decide something. Where the first three errors are all above 2 alpha, or all below alpha/2, they
    are enough to judge a size by its mean; where the mean of all runs is within two standard errors of alpha, as many
    runs again are made, twice at most.
    """
    theorem = "The measured user complexity"
    m = whole(theorem, "rows", rows, 1)
    alpha = real(theorem, "alpha", alpha, 0.0, 2.0)
    runs = whole(theorem, "repetitions", repetitions, 1)
    step = real(theorem, "step", step, 1.0, math.inf)
    most = whole(theorem, "most", most, 1)
    share = None if success is None else real(theorem, "success", success, 0.0, 1.0)
    truths = [np.asarray(one, dtype=np.float64) for one in distributions]
    if not truths or any(p.ndim != 1 or not np.isclose(p.sum(), 1.0) or np.any(p < 0) for p in truths):
        raise OutOfRange(f"{theorem} needs at least one distribution, each of non-negative numbers that sum to 1.")
    tried: dict[int, tuple[float, float]] = {}

    def enough(users: int) -> bool:
        tried[users] = max(_judge(partial(error_of, len(p), m, users, p), alpha, runs, share) for p in truths)
        return tried[users][0] <= alpha

    return _search(enough, tried, min(whole(theorem, "guess", guess, 1), most), step, most)


def _judge(run: Callable[[], float], alpha: float, repetitions: int, success: float | None) -> tuple[float, float]:
    if success is not None:
        # The least level that a share `success` of the runs keeps.
        errors = sorted(run() for _ in range(repetitions))
        return errors[math.ceil(success * repetitions) - 1], math.nan
    errors = [run() for _ in range(min(_FIRST, repetitions))]
    if not (min(errors) > 2 * alpha or max(errors) < alpha / 2):
        for blocks in (1, 2, 3):
            errors += [run() for _ in range(blocks * repetitions - len(errors))]
            if not abs(float(np.mean(errors)) - alpha) < 2 * _standard_error(errors):
                break
    return float(np.mean(errors)), _standard_error(errors)


def _standard_error(errors: Sequence[float]) -> float:
    return float(np.std(errors, ddof=1) / math.sqrt(len(errors))) if len(errors) > 1 else math.nan


def _search(
    enough: Callable[[int], bool], tried: dict[int, tuple[float, float]], guess: int, step: float, most: int
) -> MeasuredUsers:
    low, high = 0, guess
    while not enough(high):
        if high == most:
            return MeasuredUsers(most, *tried[most], not_enough=most, more=True)
        low, high = high, min(2 * high, most)
    while low == 0 and high > 1:
        below = high // 2
        if enough(below):
            high = below
        else:
            low = below
    while high > max(low, 1) * step and high > low + 1:
        middle = min(max(round(math.sqrt(max(low, 1) * high)), low + 1), high - 1)
        low, high = (low, middle) if enough(middle) else (middle, high)
    return MeasuredUsers(high, *tried[high], not_enough=low)
