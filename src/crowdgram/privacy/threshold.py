"""The threshold that hides which coordinates are in a table at all.

Noise is drawn for the coordinates that are there and for no others, so that one that only a single user has would
give that user away if it came out. It comes out only above the threshold, and passes that with a chance which is paid
for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import ndtri

from crowdgram.errors import InvalidArgument

__all__ = ["LEAST_DELTA", "lone_laplace_threshold", "lone_threshold"]

LEAST_DELTA = 1e-60
"""Below, the terms that the proof neglects would count."""

# What the rounding of a continuous Gaussian to the discrete one (of width TAU = 2) adds at most, but for a chance of
# 1e-86 in all rounds together.
ROUNDING = 40
MOST_SEARCH_ROUNDS = 16


def lone_threshold(tops: Sequence[int], rounds: int, sigma: float, delta: float) -> int:
    """A threshold that no coordinate of one user alone exceeds, but for a chance of `delta`.

    Formula: T = max_n ceil(r tops[n-1] + 40 r + s z_n), z_n = Phi^-1((1 - d)^(1/n)), where n = 1..len(tops) is how many
    coordinates the user has, tops[n-1] bounds what the user adds to each of them in a round, r is `rounds`,
    s = sqrt(r) `sigma`, `sigma` the discrete Gaussian noise of a round, and d is `delta` less one part in a million.

    Guarantee: let coordinate i have the value v_i + sum_t Z_ti over r rounds, Z_ti independent discrete Gaussians of
    scale sigma, and v_i <= r tops[n-1] whatever the noise is (v may depend on it). Then P[some of the n coordinates
    exceeds T] <= delta. Rounded up. Reference: docs/proofs/discovery.md, Lemma 3; for one round and real numbers Gopi
    et al., "Differentially Private Set Union" (arXiv 2002.09745).
    """
    if not LEAST_DELTA <= delta < 0.5:
        raise InvalidArgument(
            f"delta={delta!r}: needs to be at least {LEAST_DELTA:g} and below a half for a threshold.", argument="delta"
        )
    if not tops or not 1 <= rounds <= MOST_SEARCH_ROUNDS or not 2.0 < sigma < math.inf:
        raise InvalidArgument(
            f"tops: needs an entry, rounds a number from 1 to {MOST_SEARCH_ROUNDS}, sigma one above 2.", argument="tops"
        )
    spread, numbers = math.sqrt(rounds) * sigma, np.arange(1, len(tops) + 1)
    z = -ndtri(-np.expm1(math.log1p(-delta * (1.0 - 1e-6)) / numbers))
    highest = float(np.max(rounds * np.asarray(tops, dtype=np.float64) + spread * z))
    # Doubles are good to 2^-50 of the largest term; ndtri's own error is within the millionth of delta.
    slack = 2.0**-48 * (rounds * max(tops) + spread * float(np.max(np.abs(z))))
    return math.ceil(highest + slack) + ROUNDING * rounds


def lone_laplace_threshold(mass: int, most: int, scale: float, delta: float) -> int:
    """The threshold for one sum with Laplace noise, where a user has an l1 norm of at most `mass` over `most` entries.

    Formula: T = ceil(V + b log((1 + (c - 1) e^(-V/b)) / ((1 + e^(-1/b)) d)) - 1), where V = `mass`, c = `most`, b =
    `scale`, d = `delta`.

    Guarantee: let coordinates i = 1..n, n <= c, have the values v_i + Z_i, v_i >= 0 with sum at most V, Z_i independent
    discrete Laplace noise of scale b. Then P[some of them exceeds T] <= delta. Rounded up. Reference:
    docs/proofs/discovery.md, Lemma 5.
    """
    if not LEAST_DELTA <= delta < 0.5:
        raise InvalidArgument(
            f"delta={delta!r}: needs to be at least {LEAST_DELTA:g} and below a half for a threshold.", argument="delta"
        )
    if mass < 1 or most < 1 or not (scale > 0.0 and math.isfinite(scale)):
        raise InvalidArgument("mass, most, scale: need to be above 0, and finite.", argument="mass")
    others = math.log1p((most - 1) * math.exp(-mass / scale))
    beyond = scale * (others - math.log1p(math.exp(-1.0 / scale)) - math.log(delta))
    # Doubles are good to 2^-50 of the largest term.
    slack = 2.0**-48 * (mass + scale * (1.0 + others - math.log(delta)))
    return max(math.ceil(mass + beyond - 1.0 + slack), mass)
