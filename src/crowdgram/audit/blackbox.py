"""The attack of an outsider: many releases of both tables, and only what came out.

It sees what the exact attack takes for granted (that the sampler draws what it is asked for) and it needs many runs. A
statistic and its threshold are learned on the first runs; the rates of passing it are counted on the rest.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ..arrays import Floats, Integers
from ..errors import AccuracyWarning, PrivacyWarning
from ..privacy import EXACT, Guarantee, Labels, Sampler, Spending
from ..privacy.accounting import gaussian_sigma, laplace_scale
from ..privacy.gaussian import gaussian_mu
from .attack import Case, Finding
from .bounds import epsilon_from_rates, gaussian_epsilon_from_rates
from .pairs import Tables, open_tables, pairs_for
from .views import View, as_table, view_of

__all__ = ["attack_releases", "attack_sampler"]

LEARNED = 0.25
"""The part of the runs that statistic and threshold are learned on."""
THRESHOLDS = 60
SALTS = 64
"""Different salts of all releases of an attack."""
RIDGES = (0.01, 0.3)
"""What is added to the correlations of figures before a direction is made of them: as many as figures, they are poorly
known.
"""


@dataclass(frozen=True)
class _FewSalts:
    """The real sampler, with salts from a list, so that an engine that caches has seen the queries of a release before.

    What is proved of a release holds for every salt, and so for a list of them that was drawn without looking at a
    table. Noise and choices are drawn anew for every release.
    """

    real: Sampler
    salts: tuple[str, ...]

    def laplace(self, values: Integers | Sequence[int], scale: float, labels: Labels | None, /) -> Integers:
        return self.real.laplace(values, scale, labels)

    def gaussian(self, values: Integers | Sequence[int], sigma: float, labels: Labels | None, /) -> Integers:
        return self.real.gaussian(values, sigma, labels)

    def choose(self, scores: Integers, scale: float, /) -> Integers:
        return self.real.choose(scores, scale)

    def salt(self) -> str:
        return self.salts[int(self.real.salt(), 16) % len(self.salts)]


def attack_releases(
    case: Case,
    *,
    runs: int,
    confidence: float = 0.99,
    pairs: Iterable[Tables] | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> Finding:
    """Attack by `runs` releases of each table of each pair, with the real sampler.

    The attacker knows both tables, may make releases of them at will, and sees all of the file that a release is saved
    as. Every pair and side has its part of the doubt.
    """
    chosen = tuple((case.pairs or pairs_for(case.claim.adjacency)) if pairs is None else pairs)
    best, where = 0.0, chosen[0].name
    for pair in chosen:
        progress(pair.name)
        with open_tables(pair) as tables, warnings.catch_warnings():
            warnings.simplefilter("ignore", AccuracyWarning)
            warnings.simplefilter("ignore", PrivacyWarning)
            sampler = _FewSalts(EXACT, tuple(EXACT.salt() for _ in range(SALTS)))
            seen: tuple[list[View], list[View]] = ([], [])
            for _ in range(runs):  # in turn: a release holds its date, which is not to tell the tables apart
                for views, table in zip(seen, tables, strict=True):
                    spending = Spending(case.claim, sampler=sampler)
                    views.append(view_of(case.mechanism(table, spending, case.request)))
        found = _bound(*_figures(*seen), case.claim, (1 - confidence) / len(chosen))
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


def _figures(first: list[View], second: list[View]) -> tuple[Floats, Floats]:
    """All that is shown in the runs that are learned on, of either table."""
    learned = max(1, int(LEARNED * len(first)))
    places = sorted({place for view in (*first[:learned], *second[:learned]) for place in view})
    return as_table(first, places), as_table(second, places)


def _bound(first: Floats, second: Floats, claim: Guarantee, doubt: float, *, gaussian: bool = False) -> float:
    """Learn a statistic and a threshold on some runs, count on the rest; from both sides, half of the doubt each."""
    learned = max(1, int(LEARNED * len(first)))
    statistics = _statistics(first[:learned], second[:learned])
    bound = gaussian_epsilon_from_rates if gaussian else epsilon_from_rates

    def judged(at: float, one: Floats, other: Floats) -> float:
        return bound(int((one >= at).sum()), int((other >= at).sum()), len(one), claim.delta, doubt / 2)

    best = 0.0
    for ours, theirs, sign in ((first, second, 1.0), (second, first, -1.0)):
        tried = []
        for statistic in (sign * statistics).T:
            one, other = ours[:learned] @ statistic, theirs[:learned] @ statistic
            thresholds = np.unique(np.quantile(one, np.linspace(0.0, 1.0, THRESHOLDS), method="higher"))
            tried += [(judged(at, one, other), at, statistic) for at in thresholds.tolist()]
        _, at, statistic = max(tried, key=lambda found: found[0])
        best = max(best, judged(at, ours[learned:] @ statistic, theirs[learned:] @ statistic))
    return best


def _statistics(first: Floats, second: Floats) -> Floats:
    """Directions that may tell the tables apart, a column each: every figure by itself, towards the table where it is
    larger, and Fisher's discriminants of all of them.
    """
    apart = first.mean(axis=0) - second.mean(axis=0)
    spread = np.sqrt(0.5 * (first.var(axis=0) + second.var(axis=0)))
    varies = spread > 1e-12 * np.maximum(np.abs(first).max(axis=0), np.abs(second).max(axis=0))
    telling = np.flatnonzero(varies | (apart != 0.0))
    alone = np.zeros((len(apart), len(telling)))
    alone[telling, np.arange(len(telling))] = np.where(apart[telling] < 0.0, -1.0, 1.0)
    varying = np.flatnonzero(varies)
    scaled = [(one[:, varying] - one[:, varying].mean(axis=0)) / spread[varying] for one in (first, second)]
    square = (scaled[0].T @ scaled[0] + scaled[1].T @ scaled[1]) / (len(first) + len(second))
    discriminants = np.zeros((len(apart), len(RIDGES)))
    for column, ridge in enumerate(RIDGES):
        wanted = apart[varying] / spread[varying]
        discriminants[varying, column] = (
            np.linalg.solve(square + ridge * np.eye(len(varying)), wanted) / spread[varying]
        )
    return np.concatenate([alone, discriminants], axis=1)
