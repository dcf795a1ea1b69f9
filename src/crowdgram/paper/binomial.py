"""Algorithm 2, Binom: learn Bin(m, p) by PHS over a cover; and Algorithm 4, SmallBinom: p from who has the item at
all."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..arrays import Floats
from ..errors import InvalidArgument
from ..privacy import AnyFinish, GaussianEvent, SparseLaplaceEvent
from ..tables import Tallies
from ..theory import MEASURED_CONSTANT
from .selection import Hypotheses, Selected, changed_symbols, check_paid, phs

__all__ = [
    "BINOMIAL_CONSTANT",
    "SmallBinom",
    "angular_cover",
    "binom",
    "binom_cover",
    "binom_users",
    "linear_cover",
    "small_binom",
]


BINOMIAL_CONSTANT = MEASURED_CONSTANT
"""The c of Theorem 5: l1(Bin(m, p), Bin(m, q)) >= c min(m|p-q|, sqrt(m)|p-q|/sqrt(p(1-p)), 1). The paper proves
1/350; 0.634 holds for every m up to 1000 and is the limit (erratum 10; docs/theory.md). Both settings use it: with
1/350 the cover alone would have millions of points."""

MOST_HYPOTHESES = 2**15
"""No cover has more: if the printed one would, one of the covering radius that its proof needs is taken, and
if even that would, the finest one of so many. (By then the theorem asks for billions of users.)"""

SMALL_UNIT = 2**10
"""A user counts 2^10 where noise is added, so that the noise's integer steps are far below its scale."""


def linear_cover(spacing: float) -> Floats:
    """{0, spacing, 2 spacing, ..., 1}."""
    if not 0.0 < spacing <= 1.0:
        raise InvalidArgument(
            f"spacing={spacing!r}: a cover needs a spacing above 0 and at most 1.", argument="spacing"
        )
    return np.unique(np.append(np.arange(0.0, 1.0, spacing), 1.0))


def angular_cover(m: int, radius: float) -> Floats:
    """A cover in which every p has a p' with min(m|p-p'|, sqrt(m)|p-p'|/sqrt(p(1-p))) <= radius.

    Uniform in arcsin(sqrt(p)), along which sqrt(m)|dp|/sqrt(p(1-p)) is 2 sqrt(m) times the length, so that steps of
    radius/sqrt(m) will do; linear, in steps of 2 radius/m, below 1/m, and mirrored. O(sqrt(m)/radius) points, where the
    printed linear cover has O(m/radius).
    """
    if not 0.0 < radius <= 1.0:
        raise InvalidArgument(f"radius={radius!r}: a cover needs a radius above 0 and at most 1.", argument="radius")
    small = min(1.0 / m, 0.5)
    line = np.arange(0.0, small, 2.0 * radius / m)
    start, end = math.asin(math.sqrt(small)), math.pi / 4
    steps = max(1, math.ceil((end - start) * math.sqrt(m) / radius))
    half = np.concatenate([line, np.sin(np.linspace(start, end, steps + 1)) ** 2])
    return np.unique(np.concatenate([half, 1.0 - half]))


def binom_cover(m: int, alpha: float) -> Floats:
    """The cover of Algorithm 2: {0, c alpha/(20 m), ..., 1}, or if that has more than MOST_HYPOTHESES points, one of
    the covering radius that its proof needs, c alpha/10, or of the least radius that so many points allow.
    """
    spacing = BINOMIAL_CONSTANT * alpha / (20 * m)
    if 1.0 / spacing <= MOST_HYPOTHESES:
        return linear_cover(spacing)
    finest = (1.0 + 0.5 * math.pi * math.sqrt(m)) / MOST_HYPOTHESES
    return angular_cover(m, min(max(BINOMIAL_CONSTANT * alpha / 10, finest), 1.0))


def binom(
    tallies: Tallies,
    spending: AnyFinish,
    *,
    users: int,
    epsilon: float,
    alpha: float,
    changed: int,
    cover: Floats | None = None,
    monotone: bool = False,
) -> Selected:
    """Algorithm 2 (Binom), for every symbol: |p - p-hat| <= alpha max(1/m, sqrt(p(1-p)/m)) with enough users.

    PHS(H, D, c alpha/10, epsilon) over H = {Bin(m, p): p in the cover}.

    where: c is BINOMIAL_CONSTANT, m is `tallies.rows`, s is `users`. Theorem 6 needs 0 < alpha <= 1. Corrects
    errata 7 (the accuracy in total variation) and 10 (c), and 1, 3 and 4 through `phs`.

    Guarantee: that of `phs`. Reference: Theorem 6; Theorem 13 with users who have different numbers of rows.
    """
    if not 0.0 < alpha <= 1.0:
        raise InvalidArgument(f"alpha={alpha!r}: Theorem 6 needs an alpha above 0 and at most 1.", argument="alpha")
    if not epsilon > 0.0:
        raise InvalidArgument(f"epsilon={epsilon!r}: Theorem 6 needs an epsilon above 0.", argument="epsilon")
    points = binom_cover(tallies.rows, alpha) if cover is None else cover
    hypotheses = Hypotheses.of(tallies.rows, points, BINOMIAL_CONSTANT * alpha / 10)
    return phs(tallies, hypotheses, spending, users=users, epsilon=epsilon, changed=changed, monotone=monotone)


def binom_users(m: int, alpha: float, epsilon: float, beta: float) -> float:
    """The users that Theorem 6 needs for one symbol: 8 log(4d/beta) (1/a^2 + 1/(a epsilon)), a = c alpha/10.

    With errata 7, 8 and 9: d is the size of the cover. Reference: Bun, Kamath, Steinke and Wu (arXiv 1905.13229),
    as the paper's Lemma 9 states it.
    """
    a = BINOMIAL_CONSTANT * alpha / 10
    return 8 * math.log(4 * len(binom_cover(m, alpha)) / beta) * (1 / a**2 + 1 / (a * epsilon))


@dataclass(frozen=True)
class SmallBinom:
    """p-hat for each symbol, and the standard deviation of its noise. `event`: what was drawn."""

    probabilities: Floats
    deviations: Floats
    event: SparseLaplaceEvent | GaussianEvent


def small_binom(
    tallies: Tallies,
    spending: AnyFinish,
    *,
    users: int,
    changed: int,
    epsilon: float | None = None,
    mu: float | None = None,
) -> SmallBinom:
    """Algorithm 4 (SmallBinom) and its modification in Appendix E (Lemma 14), for every symbol.

    1 - (1 - p-hat)^m = clip((sum_u 1{N(u) > 0} + Z)/s, 0, 1), and p-hat <= 4/m.

    where: m is `tallies.rows`, s is `users`, Z ~ Lap(1/epsilon), or Gaussian of `mu` over all symbols together. Lemma 2
    needs p <= min(4/m, 1/2). Corrects errata 2 (Z/s, not Z), 4 (users who have the item are counted, not those who do
    not) and 13 (the cap).

    Guarantee: a user changes the counts of at most `changed` symbols, each by 1: min(k, m) under add-remove, min(k, 2m)
    under replace. Laplace: each count is epsilon-private. Gaussian: the l2 distance is at most sqrt(changed). Proof:
    docs/proofs/paper.md, Theorem 2.
    """
    m, seen = tallies.rows, tallies.seen() * SMALL_UNIT
    check_paid(users, changed, changed_symbols(tallies.items, m, spending.guarantee.adjacency))
    event: SparseLaplaceEvent | GaussianEvent
    if epsilon is not None:
        noisy, event = spending.sparse_laplace(
            "users who have each item", seen, bound=SMALL_UNIT, changed=changed, epsilon=epsilon
        )
        deviation = math.sqrt(2) * event.scale / SMALL_UNIT
    elif mu is not None:
        # One user's vector has at most min(k, m) ones: its l2 norm, rounded up. The budget turns it into that of a
        # change.
        norm = math.isqrt(SMALL_UNIT**2 * min(tallies.items, m) - 1) + 1
        noisy, event = spending.gaussian("users who have each item", seen, bound=norm, mu=mu, non_negative=True)
        deviation = event.sigma / SMALL_UNIT
    else:
        raise InvalidArgument("epsilon: needs to be given, or mu: how much SmallBinom may spend.", argument="epsilon")
    share = np.clip(noisy / (SMALL_UNIT * users), 0.0, 1.0)
    cap = min(4.0 / m, 1.0)
    with np.errstate(divide="ignore"):
        found = np.minimum(-np.expm1(np.log1p(-share) / m), cap)
    slope = m * (1.0 - found) ** (m - 1)
    return SmallBinom(found, np.minimum(deviation / users / np.maximum(slope, 1e-300), cap), event)
