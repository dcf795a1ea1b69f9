"""Users who draw their rows from the centre: what clipping them by their distance does to each item.

Whoever has a row of a rare item is farther out, is clipped more, and the item with them. So clipping takes from rare
items on average, and by chance it moves every item away from the table's own answer, by more than weights that have
nothing to do with items would.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from .histograms import Crowding

__all__ = ["Clipped", "clipped"]

Floats = npt.NDArray[np.float64]

FEW = 24
"""Items that are worked out; the others lie between two of them."""

_EDGES = np.array([0, 0.001, 0.005, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95, 0.98, 0.995, 0.999, 1])
_LEVELS, _WEIGHTS = (_EDGES[1:] + _EDGES[:-1]) / 2, np.diff(_EDGES)
_STEPS, _WIDE = 32, 4.5
"""Numbers of rows that are tried, and how many standard deviations they reach to either side."""


@dataclass(frozen=True)
class Clipped:
    """What clipping does to each item.

    shift: how far it moves the crowd's mean, on average. moved: how far it moves the table's own answer by chance, in
    sampling errors of the item.
    """

    shift: Floats
    moved: Floats


def clipped(crowd: Crowding, rows: Floats, centre: Floats, stretches: Floats, radius: float) -> Clipped:
    """Clip at `radius` users who draw `rows` rows each from `centre`; crowd: their numbers, masses and root mean square
    distances.

    With x a user's deviation from the centre and w = min(1, radius / ||x||), where ||x||^2 = sum_j (stretch_j x_j)^2:

        shift_i = sum_u mass E[w x_i] / sum_u mass E[w]
        moved_i^2 = sum_u mass^2 E[(w / mean w - 1)^2 x_i^2] / sum_u mass^2 E[x_i^2]

    The rows n_i of item i are binomial. Given them the other items share the other rows, so that, with q_j = c_j / (1 -
    c_i), ||x||^2 is on average  stretch_i^2 x_i^2 + sum_j stretch_j^2 (q_j^2 x_i^2 + q_j (1 - q_j) (m - n_i) / m^2);
    its last part varies like a gamma variable.
    """
    order = np.argsort(centre)
    few = np.unique(centre[order], return_index=True)[1]
    few = order[few[np.linspace(0, len(few) - 1, min(FEW, len(few))).astype(np.int64)]]
    c, squares = np.clip(centre, 1e-12, 1 - 1e-12), stretches**2
    own, own_square = c[few], squares[few]
    near = np.maximum((c**2 * squares).sum() - own**2 * own_square, 0.0) / (1 - own) ** 2
    far = np.maximum(((c * squares).sum() - own * own_square) / (1 - own) - near, 0.0)
    parts = c * (1 - c) * squares
    whole = np.maximum(np.rint(rows), 1.0)[None, :, None]
    # The variance of (n - m c)^2, n binomial, over m^2: 2 (c (1 - c))^2 + c (1 - c) (1 - 6 c (1 - c)) / m.
    tails = parts * squares * (1 - 6 * c * (1 - c))
    others = np.maximum(parts.sum() - parts[few], 1e-100)[:, None]
    scatter = 2 * ((parts**2).sum() - parts[few] ** 2)[:, None] + (tails.sum() - tails[few])[:, None] / whole[:, :, 0]
    rest = _gamma(np.clip(scatter / others**2, 1e-9, 2.0))[:, :, None, :]

    drawn, chances = _binomial(whole, own[:, None, None])
    chances = chances[..., None] * _WEIGHTS
    x = (drawn / whole - own[:, None, None])[..., None]
    square = (own_square + near)[:, None, None, None] * x**2
    square = square + (far[:, None, None] * (whole - drawn) / whole**2)[..., None] * rest

    def mean(values: Floats) -> Floats:
        expected: Floats = (values * chances).sum(axis=(2, 3))
        return expected

    typical = np.maximum(mean(square), 1e-300)[:, :, None, None]
    distance = crowd.size[None, :, None, None] * np.sqrt(square / typical)
    kept = np.minimum(1.0, radius / np.maximum(distance, 1e-300))
    mass = crowd.users * crowd.mass
    weight = (mean(kept) * mass).sum(axis=1) / mass.sum()
    shift = (mean(kept * x) * mass).sum(axis=1) / mass.sum() / weight
    by_mass = crowd.users * crowd.mass**2
    change = (mean((kept / weight[:, None, None, None] - 1) ** 2 * x**2) * by_mass).sum(axis=1)
    moved = np.sqrt(change / np.maximum((mean(x**2) * by_mass).sum(axis=1), 1e-300))
    return Clipped(np.interp(centre, centre[few], shift), np.interp(centre, centre[few], moved))


def _binomial(rows: Floats, share: Floats) -> tuple[Floats, Floats]:
    """Numbers of rows of an item, over a last axis, and their chances."""
    mean, deviation = rows * share, np.sqrt(rows * share * (1 - share))
    least = np.maximum(np.floor(mean - _WIDE * deviation), 0.0)
    step = np.maximum(np.ceil((np.ceil(mean + _WIDE * deviation) + 2 - least) / _STEPS), 1.0)
    drawn = least + step * np.arange(_STEPS)
    left = np.maximum(rows - drawn, 0.0)
    ways = special.gammaln(rows + 1) - special.gammaln(drawn + 1) - special.gammaln(left + 1)
    logs = ways + special.xlogy(drawn, share) + special.xlog1py(left, -share)
    chances = np.where(drawn <= rows, np.exp(logs - logs.max(axis=-1, keepdims=True)), 0.0)
    return np.minimum(drawn, rows), chances / chances.sum(axis=-1, keepdims=True)


def _gamma(variances: Floats) -> Floats:
    """Quantiles, over a last axis, of gamma variables with mean 1 and these variances."""
    quantiles = special.gammaincinv(1 / variances[..., None], _LEVELS) * variances[..., None]
    scaled: Floats = quantiles / (quantiles * _WEIGHTS).sum(axis=-1, keepdims=True)
    return scaled
