"""The bounds that other tools are given: the best there are, found by simulation with the true answer in hand.

No user has the true answer, so this flatters the tools. Crowdgram is given none of it. A user who keeps m of their rows
keeps each with the same chance: for shares its mean and variance are simulated, for counts of users and for items that
have to be found its mean. Noise is three draws that all bounds share.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from crowdgram.mechanisms.simplex import project
from crowdgram.privacy.gaussian import gaussian_mu

__all__ = ["bounds_of", "shares_of"]

Floats = npt.NDArray[np.float64]
DRAWS = 3
STEPS_PER_DOUBLING = 2


@dataclass(frozen=True)
class Crowd:
    """Users' counts, and noise for each item: of scale 1 for the guarantee, and normal for the draw of rows."""

    counts: sparse.csr_matrix
    laplace: Floats
    gaussian: Floats
    normal: Floats
    epsilon: float
    delta: float

    @property
    def sizes(self) -> Floats:
        """Distinct items of each user."""
        return np.diff(self.counts.indptr).astype(np.float64)


def bounds_of(counts: sparse.csr_matrix, epsilon: float, delta: float) -> dict[str, dict[str, Any]]:
    """For each question the best bounds, by name of what is bounded.

    rows: "rows" of a user with Laplace noise; "norm", the l2 norm of a user's counts, with Gaussian noise;
    "cross_laplace" and "cross_gaussian", the "most" items of a user and rows "per_item" with one of the noises;
    "cross_or_rows", the best of these but "norm".
    users: the "most" items of a user with the better of both noises, or ("most_laplace") with one of them.
    found: "rows" of a user, if items have to pass a threshold by their rows, or ("rows_by_users") by their users;
    "cross", items and rows per item; and the "most" items of a user for counts of users.
    """
    rng = np.random.default_rng(7)
    k = counts.shape[1]
    crowd = Crowd(
        counts,
        rng.laplace(size=(DRAWS, k)) / epsilon,
        rng.normal(size=(DRAWS, k)) / gaussian_mu(epsilon, delta),
        rng.normal(size=(DRAWS, k)),
        epsilon,
        delta,
    )
    return {"rows": _rows(crowd), "users": _users(crowd), "found": _found(crowd)}


def _rows(crowd: Crowd) -> dict[str, Any]:
    counts, truth = crowd.counts, _sum(crowd.counts)
    rows = np.asarray(counts.sum(axis=1)).ravel()
    norms = np.sqrt(np.asarray(counts.multiply(counts).sum(axis=1)).ravel())

    def error(kept: Floats, noise: Floats, variance: Floats | float = 0.0) -> float:
        noisy = kept + noise + np.sqrt(variance) * crowd.normal
        return float(np.mean([np.abs(shares_of(one) - truth / truth.sum()).sum() for one in noisy]))

    most = float(rows.max())

    def error_by_rows(m: float) -> float:
        keeps = np.minimum(1, m / rows)
        return error(_sum(counts, keeps), m * crowd.laplace, _sum(counts, keeps * (1 - keeps)))

    by_rows = _best(_steps(most), error_by_rows)
    by_norm = _best(
        _steps(float(norms.max()), whole=False),
        lambda norm: error(_sum(counts, np.minimum(1, norm / norms)), norm * crowd.gaussian),
    )
    crossed: dict[str, list[tuple[float, int, int]]] = {"laplace": [], "gaussian": []}
    for per_item in _steps(float(counts.data.max()), per_doubling=1):
        capped = counts.copy()
        capped.data = np.minimum(capped.data, per_item)
        for items in _steps(float(crowd.sizes.max()), per_doubling=1):
            keeps = np.minimum(1, items / crowd.sizes)
            kept, variance = _sum(capped, keeps), _sum(capped.multiply(capped).tocsr(), keeps * (1 - keeps))
            for noise, scale in (("laplace", items), ("gaussian", math.sqrt(items))):
                drawn = per_item * scale * getattr(crowd, noise)
                crossed[noise].append((error(kept, drawn, variance), items, per_item))
    best = {noise: min(tried) for noise, tried in crossed.items()}
    kind = min(best, key=lambda noise: best[noise])
    cross = {"most": best[kind][1], "per_item": best[kind][2], "noise": kind}
    return {
        "rows": {"rows": by_rows},
        "norm": {"norm": by_norm},
        "cross_or_rows": {"rows": by_rows, "noise": "laplace"} if error_by_rows(by_rows) < best[kind][0] else cross,
        **{f"cross_{noise}": {"most": one[1], "per_item": one[2]} for noise, one in best.items()},
    }


def _users(crowd: Crowd) -> dict[str, Any]:
    presence = (crowd.counts > 0).astype(np.float64)
    truth = _sum(presence)

    def error(items: int, noise: Floats) -> float:
        kept = _sum(presence, np.minimum(1, items / crowd.sizes))
        return float(np.mean([np.abs(np.maximum(kept + one, 0) - truth).sum() for one in noise]))

    steps = list(_steps(float(crowd.sizes.max())))
    laplace = min((error(items, items * crowd.laplace), items) for items in steps)
    gaussian = min((error(items, math.sqrt(items) * crowd.gaussian), items) for items in steps)
    best = min((laplace, "laplace"), (gaussian, "gaussian"))
    return {
        "most": {"most": best[0][1], "noise": best[1]},
        "most_laplace": {"most": laplace[1]},
        "most_gaussian": {"most": gaussian[1]},
    }


def _found(crowd: Crowd) -> dict[str, Any]:
    """With Laplace noise and the least threshold that an item of one user passes with a chance of delta."""
    rows = np.asarray(crowd.counts.sum(axis=1)).ravel()
    presence = (crowd.counts > 0).astype(np.float64)

    def error(kept: Floats, truth: Floats, bound: int) -> float:
        threshold = 1 + bound / crowd.epsilon * math.log(bound / (2 * crowd.delta))
        noisy = [kept + bound * one for one in crowd.laplace]
        return float(np.mean([np.abs(np.where(one > threshold, one, 0) - truth).sum() for one in noisy]))

    all_rows, all_users = _sum(crowd.counts), _sum(presence)
    m = _best(_steps(float(rows.max())), lambda m: error(_sum(crowd.counts, np.minimum(1, m / rows)), all_rows, int(m)))
    items = _best(
        _steps(float(crowd.sizes.max())),
        lambda items: error(_sum(presence, np.minimum(1, items / crowd.sizes)), all_users, int(items)),
    )
    by_users = _best(_steps(float(rows.max())), lambda m: _error_by_users(crowd, rows, m))
    found = {"rows": {"rows": m}, "rows_by_users": {"rows": by_users}}
    return {**found, "most": {"most": items}, "cross": _found_cross(crowd)}


def _error_by_users(crowd: Crowd, rows: Floats, m: float) -> float:
    """Of counts of rows, at most m of a user, if an item has to pass a threshold by its users who keep a row of it."""
    keeps, counts = np.minimum(1, m / rows), crowd.counts
    seen = counts.copy()
    seen.data = 1 - (1 - np.repeat(keeps, np.diff(counts.indptr))) ** counts.data
    found = _sum(seen) > 1 + m / crowd.epsilon * math.log(m / (2 * crowd.delta))
    noisy, truth = [_sum(counts, keeps) + m * one for one in crowd.laplace], _sum(counts)
    return float(np.mean([np.abs(np.where(found, one, 0) - truth).sum() for one in noisy]))


def _found_cross(crowd: Crowd) -> dict[str, Any]:
    """Half of the budget finds items by their users, half counts their rows."""
    presence, truth, tried = (crowd.counts > 0).astype(np.float64), _sum(crowd.counts), []
    for per_item in _steps(float(crowd.counts.data.max()), per_doubling=1):
        capped = crowd.counts.copy()
        capped.data = np.minimum(capped.data, per_item)
        for most in _steps(float(crowd.sizes.max()), per_doubling=1):
            weights = np.minimum(1, most / crowd.sizes)
            users, kept = _sum(presence, weights), _sum(capped, weights)
            found = users > 1 + 2 * most / crowd.epsilon * math.log(most / (2 * crowd.delta))
            noisy = [kept + 2 * most * per_item * one for one in crowd.laplace]
            error = float(np.mean([np.abs(np.where(found, one, 0) - truth).sum() for one in noisy]))
            tried.append((error, most, per_item))
    _, most, per_item = min(tried)
    return {"most": most, "per_item": per_item, "noise": "laplace"}


def shares_of(noisy: Floats) -> Floats:
    """Noisy counts as shares: divided by their total and projected onto the simplex."""
    total = float(noisy.sum())
    return project(noisy / total) if total > 0 else np.full(len(noisy), 1 / len(noisy))


def _sum(counts: sparse.csr_matrix, weights: Floats | None = None) -> Floats:
    """For each item the sum over users of weight times count."""
    return np.asarray(counts.T @ (np.ones(counts.shape[0]) if weights is None else weights)).ravel()


def _best(steps: Iterable[float], error: Callable[[float], float]) -> float:
    return min((error(step), step) for step in steps)[1]


def _steps(most: float, *, whole: bool = True, per_doubling: int = STEPS_PER_DOUBLING) -> list[Any]:
    """From 1 to the most that a user has."""
    steps = np.geomspace(1, most, math.ceil(per_doubling * math.log2(max(most, 1))) + 1)
    return sorted({round(step) for step in steps}) if whole else [float(step) for step in steps]
