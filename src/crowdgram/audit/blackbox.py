"""The attack of an outsider: many releases of both tables, and only what came out.

It sees what the exact attack takes for granted (that the sampler draws what it is asked for) and it needs many runs. A
statistic and its threshold are learned on the first half of the runs; the rates of passing it are counted on the rest.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import Literal

import numpy as np

from ..arrays import Floats
from ..errors import AccuracyWarning
from ..mechanisms import Estimate
from ..privacy import EXACT, Guarantee, Sampler, Spending
from ..privacy.accounting import gaussian_sigma, laplace_scale
from ..privacy.gaussian import gaussian_mu
from .attack import Case, Finding
from .bounds import epsilon_from_rates, gaussian_epsilon_from_rates
from .pairs import Tables, open_tables, pairs_for

__all__ = ["attack_releases", "attack_sampler"]

THRESHOLDS = 60


def attack_releases(
    case: Case,
    *,
    runs: int,
    confidence: float = 0.99,
    pairs: Iterable[Tables] | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> Finding:
    """Attack by `runs` releases of each table of each pair, with the real sampler."""
    chosen = tuple(pairs_for(case.claim.adjacency) if pairs is None else pairs)
    best, where = 0.0, chosen[0].name
    for pair in chosen:
        progress(pair.name)
        with open_tables(pair) as tables, warnings.catch_warnings():
            warnings.simplefilter("ignore", AccuracyWarning)
            seen = [
                np.array([_features(case.mechanism(t, Spending(case.claim), case.request)) for _ in range(runs)])
                for t in tables
            ]
        found = _bound(seen[0], seen[1], case.claim, (1 - confidence) / len(chosen))
        if found > best:
            best, where = found, pair.name
    return Finding(case.name, case.weight, case.claim, best, confidence, where, "black box", 2 * len(chosen) * runs)


def attack_sampler(
    kind: Literal["laplace", "gaussian"],
    claim: Guarantee,
    *,
    draws: int = 20_000,
    confidence: float = 0.99,
    sampler: Sampler = EXACT,
) -> Finding:
    """Attack the noise itself: one number, moved by its sensitivity, drawn many times.

    For Gaussian noise the bound is on mu, and the epsilon that of mu: the claim is about mu too.
    """
    sensitivity = 2**30
    if kind == "laplace":
        scale = laplace_scale(sensitivity, claim.epsilon)
        seen = [sampler.laplace(np.full(draws, at), scale, None) for at in (sensitivity, 0)]
    else:
        scale = gaussian_sigma(sensitivity, gaussian_mu(claim.epsilon, claim.delta))
        seen = [sampler.gaussian(np.full(draws, at), scale, None) for at in (sensitivity, 0)]
    first, second = (values.astype(np.float64)[:, None] for values in seen)
    found = _bound(first, second, claim, 1 - confidence, gaussian=kind == "gaussian")
    return Finding(f"sampler: {kind}", "-", claim, found, confidence, "one number", "black box", 2 * draws)


def _features(estimate: Estimate) -> Floats:
    """What a release shows, as numbers: shares, and the noise's size, which tells the divisor."""
    spread = np.log(np.maximum(estimate.standard_errors, 1e-300))
    return np.concatenate([estimate.probabilities, estimate.lower, estimate.upper, spread])


def _bound(first: Floats, second: Floats, claim: Guarantee, doubt: float, *, gaussian: bool = False) -> float:
    """Learn a direction and a threshold on one half, count on the other; from both sides, half of the doubt each."""
    half = len(first) // 2
    learn, test = (first[:half], second[:half]), (first[half:], second[half:])
    spread = np.sqrt(0.5 * (learn[0].var(axis=0) + learn[1].var(axis=0)))
    used = spread > 1e-12 * np.maximum(np.abs(learn[0]).max(axis=0), 1e-300)
    # What does not vary at all tells the tables apart if it differs between them.
    fixed = ~used & (learn[0][:1] != learn[1][:1])[0]
    direction = np.where(used, (learn[0].mean(axis=0) - learn[1].mean(axis=0)) / np.where(used, spread, 1.0) ** 2, 0.0)
    direction = np.where(fixed, 1e300 * np.sign(learn[0][0] - learn[1][0]), direction)
    best = 0.0
    for sign in (1.0, -1.0):
        ours, theirs = (0, 1) if sign > 0 else (1, 0)
        marks = [sign * sample @ direction for sample in (learn[ours], learn[theirs], test[ours], test[theirs])]
        bound = gaussian_epsilon_from_rates if gaussian else epsilon_from_rates

        def judged(at: float, one: Floats, other: Floats, bound: Callable[..., float] = bound) -> float:
            return bound(int((one >= at).sum()), int((other >= at).sum()), len(one), claim.delta, doubt / 2)

        candidates = np.quantile(marks[0], np.linspace(0.0, 1.0, THRESHOLDS))
        chosen = max(candidates.tolist(), key=lambda at: judged(at, marks[0], marks[1]))
        best = max(best, judged(chosen, marks[2], marks[3]))
    return best
