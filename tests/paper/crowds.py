"""Tallies of users made here, and Algorithm 1 pair by pair: the oracle."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from math import comb

import numpy as np

from crowdgram.paper.selection import SCORE_UNIT
from crowdgram.tables import Tallies


def tallies_of(users, items, rows):
    """The tallies of users given as count vectors; those without exactly `rows` rows take no part."""
    takers = [user for user in users if sum(user) == rows]
    found = sorted(Counter((i, n) for user in takers for i, n in enumerate(user) if n).items())
    columns = [np.array(column, dtype=np.int64) for column in zip(*[(i, n, c) for (i, n), c in found], strict=True)]
    idx, times, number = columns or [np.zeros(0, dtype=np.int64)] * 3
    return Tallies(items, rows, len(takers), idx, times, number)


def sampled(p, rows, users, seed):
    """Tallies of users who draw `rows` rows each from p."""
    drawn = np.random.default_rng(seed).multinomial(rows, p, size=users)
    parts = []
    for item in range(len(p)):
        counts = np.bincount(drawn[:, item], minlength=rows + 1)
        times = np.nonzero(counts[1:])[0] + 1
        parts.append((np.full(len(times), item), times, counts[times]))
    idx, times, number = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Tallies(len(p), rows, users, idx, times, number)


def zipf(items):
    p = 1.0 / np.arange(1, items + 1)
    return p / p.sum()


def literal_scores(m, cover, alpha, data, users, everybody):
    """SCORE_UNIT S(H) in exact rationals, every pair over every outcome. `data[x]`: users with x, from 1 on."""
    masses = [[comb(m, x) * p**x * (1 - p) ** (m - x) for x in range(m + 1)] for p in cover]
    scores = []
    for mine in masses:
        gammas = [SCORE_UNIT * users]
        for other in masses:
            inside = [x for x in range(m + 1) if mine[x] > other[x]]
            p_i, p_j = sum(mine[x] for x in inside), sum(other[x] for x in inside)
            if p_i - p_j <= 3 * alpha:
                continue
            if 0 in inside:
                count = everybody - sum(data[x] for x in range(m + 1) if x not in inside)
            else:
                count = sum(data[x] for x in inside)
            offset = SCORE_UNIT * users * (p_j + Fraction(3, 2) * alpha)
            gammas.append(max(0, SCORE_UNIT * count + (-offset.numerator) // offset.denominator))
        scores.append(min(gammas))
    return scores
