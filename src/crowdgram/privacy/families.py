"""Privacy loss of families: many small outcomes drawn together, of which a neighbour changes only some.

A family of n changed outcomes, each of bounded range eta, is bounded by n copies of one pair with two outcomes;
which pair is worst depends on epsilon, but it is the same for all n (docs/proofs/bounded-range.md, Theorem 3). That
is tighter than composing the curve of a single choice n times, by about 15 percent of epsilon, because the outcomes
of a family are not chosen adaptively. Laplace noise on one coordinate, shifted by 1, is such a pair with the range
centred at 0.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy.special import betainc

from crowdgram.arrays import Floats, Integers

__all__ = ["BLOCK", "family_deltas", "family_hinges"]


BLOCK = 256
"""Families are composed in blocks of this many outcomes: the best pair is then sought among BLOCK + 1 only."""
_INSIDE = 1e-11
"""What betainc may be off by, relative to each of the two probabilities that are subtracted; measured below 1e-12."""
_CORE, _PER_DEVIATION, _GROWTH = 10.0, 12.0, 1.15
"""Nodes of the polygon: 12 for each deviation of the loss up to 10 of them, then in this ratio."""


def family_deltas(eta: float, n: int, epsilons: Floats, *, centred: bool) -> Floats:
    """The curve of n independent outcomes of bounded range eta, at epsilons of at least 0.

    Formula: max over t of P[Y <= l] - e^epsilon Q[Y <= l] with l the largest integer below (n t - epsilon)/eta,
    where Y ~ Bin(n, (1 - e^-t)/(1 - e^-eta)) under Q and Bin(n, 1 - (1 - e^(t-eta))/(1 - e^-eta)) under P. For each
    l the best t is (epsilon + (l + 1) eta)/(n + 1), clipped to [0, eta], so that n + 1 values are compared. With
    `centred` t is eta/2: the curve of n outcomes that are (eta/2)-private each.

    Guarantee: rounded up by 1e-11 of the first probability. Reference: docs/proofs/bounded-range.md, Theorem 3; Dong,
    Durfee and Rogers (arXiv 1909.13830), Theorem 3; for `centred`, Kairouz, Oh and Viswanath (arXiv 1311.0776).
    """
    e = epsilons[:, None]
    if centred:
        t = np.full_like(e, eta / 2)
        low = np.ceil((n * t - e) / eta) - 1.0
        # A rounded ceiling may be one off; a smaller l only lowers the value, and the right one is among the three.
        low = low + np.array([[-1.0, 0.0, 1.0]])
        t = np.broadcast_to(t, low.shape)
    else:
        low = np.arange(n, dtype=np.float64)[None, :]
        t = np.clip((e + (low + 1.0) * eta) / (n + 1.0), 0.0, eta)
    valid = (low >= 0.0) & (low < n)
    low = np.clip(low, 0.0, n - 1.0)
    # P[Bin(n, w) <= l] = I_{1-w}(n - l, l + 1).
    top = -math.expm1(-eta)
    stays_q = np.clip(-np.expm1(t - eta) / top * np.exp(-t), 0.0, 1.0)
    stays_p = np.clip(-np.expm1(t - eta) / top, 0.0, 1.0)
    inside_p = betainc(n - low, low + 1.0, stays_p)
    inside_q = betainc(n - low, low + 1.0, stays_q)
    found = inside_p * (1.0 + _INSIDE) - np.exp(np.minimum(e, 700.0)) * inside_q * (1.0 - _INSIDE)
    deltas: Floats = np.where(valid, found, 0.0).max(axis=1)
    reach = n * eta / 2 if centred else n * eta
    return np.where(epsilons >= reach, 0.0, np.clip(deltas, 0.0, 1.0))


@lru_cache(maxsize=64)
def family_hinges(eta: float, n: int, step: float, centred: bool) -> tuple[int, Floats]:
    """First grid index and masses, on a grid of `step`, whose hinges bound the family's curve everywhere.

    The polygon (in e^epsilon) through the curve's values at some grid points bounds the convex curve from above;
    values left of 0 follow from delta(-e) = 1 - e^-e + e^-e delta(e), as the family is symmetric. Masses are raised
    by 2^-46 of the values they are made of, which exceeds the rounding of the few operations between.
    Reference: docs/proofs/accounting.md, Lemma 3.
    """
    places = _places(eta, n, step, centred)
    at = (step * places).astype(np.float64)
    right = family_deltas(eta, n, at, centred=centred)
    right[-1] = 0.0
    fall = np.exp(-at)
    left = -np.expm1(-at) + fall * right
    nodes = np.concatenate([-places[::-1], places[1:]])
    values = np.concatenate([left[::-1], right[1:]])
    values[0] = -math.expm1(-step * float(places[-1]))
    gaps = -np.expm1(-step * np.diff(nodes))  # 1 - e^(x_i - x_{i+1})
    falls = -np.diff(values) / gaps  # minus the slope right of node i, times e^(x_{i+1})
    before = np.append(1.0 - values[0], falls)
    after = np.append(falls * (1.0 - gaps), 0.0)
    scale = np.append(1.0, values[:-1] / gaps) + np.append(values[:-1] / gaps, 0.0)
    masses = np.maximum(before - after, 0.0) + 2.0**-46 * scale
    spread = np.zeros(2 * int(places[-1]) + 1)
    spread[(nodes + places[-1]).astype(np.int64)] = masses
    return -int(places[-1]), spread


def _places(eta: float, n: int, step: float, centred: bool) -> Integers:
    """Grid indices from 0 to beyond the largest loss: dense where the loss lies, sparse in the tail."""
    reach = math.ceil((n * eta / 2 if centred else n * eta) * (1 + 1e-12) / step) + 1
    deviation = eta * math.sqrt(n) / 2
    middle = n * eta * eta / 8
    dense = max(1, math.floor(deviation / _PER_DEVIATION / step))
    edge = min(reach, math.ceil((middle + _CORE * deviation) / step))
    core = np.arange(0, edge + 1, dense)
    tail = [int(core[-1])]
    while tail[-1] < reach:
        tail.append(min(reach, max(tail[-1] + dense, math.floor(tail[-1] * _GROWTH))))
    return np.unique(np.concatenate([core, tail]))
