"""A simulated crowd in memory, and the release's own mechanisms run on it.

What a mechanism reads of a table are sums of statistics over users. Here the users are drawn by ordinary seeded
randomness from a public `Shape`, and the sums are computed in doubles by numpy. Noise is numpy's too: it is as large as
that of a release and protects nobody. So a mechanism takes the same steps as in a release, and its error can be seen.

If a crowd is large, each simulated user stands for several. The noise is that of all users, and the error is measured
against the answer of the simulated ones, so that having fewer of them changes it little.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from scipy import sparse

from ..arrays import Floats, Integers
from ..mechanisms import Discovering, Estimate, Mechanism, Request, Weight
from ..mechanisms.discovery import DiscoveryPlan, rehearse
from ..privacy import Guarantee, Labels, Spending
from ..tables import UNIT, BoundedSum, CappedRows, Centre, Norm, RowsByStratum, SimulatedCrowd, UsersByHalf, UsersByRows
from ..tables.statistics import HALF_BINS, Level, UsersByDistance, half_of_items
from .shapes import Shape

__all__ = ["Crowd", "run_mechanism", "simulate"]

MOST_DRAWS = 1_000_000
"""Rows that are drawn for a crowd at most, or (user, item) cells if these are fewer; but 200 users are always drawn."""


class Crowd(SimulatedCrowd):
    """Simulated users with their rows by item, each of whom stands for `weights` users. It has no engine."""

    def __init__(self, cells: sparse.csr_matrix, weights: Floats) -> None:
        self.by_item = cells.T.tocsr()
        self.by_user, self.weights = cells, weights
        self.rows = np.asarray(cells.sum(axis=1)).ravel()
        squared = cells.copy()
        squared.data = squared.data**2
        self.by_user_squared = squared
        self.squares = np.asarray(squared.sum(axis=1)).ravel()
        super().__init__(None, None, None, cells.shape[1])  # type: ignore[arg-type]

    def answer(self, weight: Weight) -> Floats:
        """The table's own answer, without privacy."""
        return self.totals(np.ones_like(self.rows) if weight == "rows" else 1 / self.rows, normalise=True)

    def totals(self, each: Floats, *, normalise: bool = False) -> Floats:
        """For each item, the sum of its rows times `each` of their users."""
        found: Floats = self.by_item @ (each * self.weights)
        return found / found.sum() if normalise else found

    def sum(self, statistic: Any) -> Any:
        """The sums that pilot queries and plain noise ask for."""
        if isinstance(statistic, CappedRows):
            return _whole(self.totals(np.floor(UNIT / np.maximum(self.rows, statistic.row_cap))), statistic)
        if isinstance(statistic, RowsByStratum):
            place, most = np.searchsorted(statistic.lights, self.rows), np.maximum(self.rows, statistic.row_cap)
            weights = [UNIT // light for light in statistic.lights], np.floor(UNIT / most)
            each = [(place == j) * weight for j, weight in enumerate((*weights[0], weights[1]))]
            return _whole(np.concatenate([self.totals(one) for one in each]), statistic)
        if isinstance(statistic, UsersByHalf):
            inside = self.by_user @ half_of_items(self.items, statistic.number).astype(np.float64)
            places = np.floor(HALF_BINS * inside / self.rows) + 1
            places = np.where(inside == 0, 0, np.where(inside == self.rows, HALF_BINS + 1, places)).astype(np.int64)
            weights = self.weights * np.floor(UNIT * np.minimum(self.rows / statistic.row_cap, 1.0))
            return _whole(np.bincount(places, weights, HALF_BINS + 2).astype(np.float64), statistic)
        if isinstance(statistic, UsersByRows):
            return self.histogram(self.rows, statistic)
        raise TypeError(f"{type(statistic).__name__} is not simulated.")

    def histogram(self, values: Floats, statistic: UsersByRows | UsersByDistance) -> BoundedSum[Integers]:
        edges = np.asarray(statistic.edges, dtype=np.float64)
        places = np.minimum(np.searchsorted(edges, values), len(edges) - 1)
        return _whole(np.bincount(places, self.weights, len(edges)).astype(np.float64), statistic)

    def distances(self, centre: Centre, norm: Norm) -> Any:
        return _Measured(self, centre, norm)


def _whole(values: Floats, statistic: Any) -> BoundedSum[Integers]:
    return BoundedSum(np.rint(values).astype(np.int64), statistic.bound)


class _Measured:
    """`Distances` of a simulated crowd, by the formulas of `tables.statistics.centred`."""

    def __init__(self, counts: Crowd, centre: Centre, norm: Norm) -> None:
        self.counts, self.centre, self.norm = counts, centre, norm
        scale, rows = 2.0**centre.bits, counts.rows
        s, c = centre.stretches.astype(np.float64), centre.coordinates.astype(np.float64)
        if norm == "l2":
            first = scale**2 * (counts.by_user_squared @ s**2)
            second = 2 * scale * rows * (counts.by_user @ (s**2 * c))
            third = rows**2 * float((s * c) @ (s * c))
            # The engines add 2^-48 of these terms, for rounding.
            self.distance = np.sqrt(np.maximum(first - second + third, 0.0) + (first + second + third) * 2.0**-48)
            return
        cells = counts.by_user
        user = np.repeat(np.arange(len(rows)), np.diff(cells.indptr))
        expected = rows[user] * c[cells.indices]
        stray = s[cells.indices] * (np.abs(cells.data * scale - expected) - expected)
        self.distance = np.maximum(rows * float(s @ c) + np.bincount(user, stray, len(rows)), 1.0)

    def histogram(self, edges: Sequence[float], row_cap: int, unit: int) -> BoundedSum[Integers]:
        statistic = UsersByDistance(self.centre, self.norm, row_cap, unit, edges)
        return self.counts.histogram(self._unclipped(row_cap, unit) * self.distance, statistic)

    def levels(
        self, radii: Sequence[int], row_cap: int, unit: int, mass_scale: int = 0
    ) -> list[BoundedSum[Sequence[int]]]:
        counts, centre = self.counts, self.centre
        mass = counts.rows * float(mass_scale)
        d = self.distance + mass if self.norm == "l1" else np.hypot(self.distance, mass)
        reached = self._unclipped(row_cap, unit) * d
        low, parts = 0.0, []
        for radius in radii:
            parts.append(np.floor(np.clip(reached - low, 0.0, radius - low) / d) * counts.weights)
            low = float(radius)
        totals = counts.by_item @ np.stack(parts, axis=1)
        found, low = [], 0
        for j, radius in enumerate(radii):
            sums = totals[:, j]
            whole = float(sums.sum())
            values = centre.stretches * (sums * 2.0**centre.bits - centre.coordinates * whole)
            bound = Level(centre, self.norm, row_cap, unit, low, radius, mass_scale).bound
            found.append(BoundedSum(np.append(values, mass_scale * whole), bound))
            low = radius
        return found  # type: ignore[return-value]

    def drop(self) -> None:
        """Nothing is kept in an engine."""

    def _unclipped(self, row_cap: int, unit: int) -> Floats:
        weights: Floats = np.floor(unit / np.maximum(self.counts.rows, row_cap))
        return weights


@dataclass(frozen=True)
class _Numpy:
    """Noise of the right size by ordinary randomness: for simulated crowds only."""

    rng: np.random.Generator

    def laplace(self, values: Any, scale: float, _: Labels | None, /) -> Integers:
        return self._added(values, self.rng.laplace(0.0, scale, len(values)))

    def gaussian(self, values: Any, sigma: float, _: Labels | None, /) -> Integers:
        return self._added(values, sigma * self.rng.standard_normal(len(values)))

    def choose(self, scores: Integers, scale: float, /) -> Integers:
        raise NotImplementedError

    def salt(self) -> str:
        return "simulated"

    def _added(self, values: Any, noise: Floats) -> Integers:
        sums = np.rint(np.asarray(values, dtype=np.float64) + noise)
        return np.clip(sums, -(2.0**62), 2.0**62).astype(np.int64)


def run_mechanism(
    crowd: Crowd,
    mechanism: Mechanism,
    guarantee: Guarantee,
    weight: Weight,
    *,
    bound: int | None = None,
    discovery_share: float | None = None,
    seed: int = 0,
) -> Estimate:
    """What a release of this crowd may be. The same arguments give the same estimate.

    discovery_share: if items are to be found, the part of the budget for it. It is spent as a search by rounds spends
    it, and all items are taken as found.
    """
    request = Request(weight, bound, lambda _: None)
    sampler = _Numpy(np.random.default_rng([seed, 1]))
    if discovery_share is None:
        return mechanism.run(crowd, Spending(mechanism.promised(guarantee), sampler=sampler).open(), request)
    assert isinstance(mechanism, Discovering)
    follows, plan = _search(mechanism, guarantee, discovery_share)
    reserves = follows.reserves(guarantee, request, None)
    left = rehearse(Spending(guarantee, sampler=sampler).open(), plan, reserves)
    return follows.run(crowd, left, replace(request, found=True))


@lru_cache(maxsize=16)
def _search(mechanism: Discovering, guarantee: Guarantee, share: float) -> tuple[Discovering, DiscoveryPlan]:
    """What a search may spend, and what follows it: the same in every run."""
    follows, plan = mechanism.search(guarantee, share)
    assert isinstance(follows, Discovering)
    return follows, plan


def simulate(shape: Shape, seed: int = 0) -> Crowd:
    """Draw a crowd: everybody, or as many users as MOST_DRAWS allows, with more of the heavy ones among them."""
    rng = np.random.default_rng([seed, 0])
    rows, weights = _users(shape, rng)
    cells = _by_items(shape, rows, rng) if rows.mean() > shape.items else _by_rows(shape, rows, rng)
    return Crowd(cells, weights)


def _users(shape: Shape, rng: np.random.Generator) -> tuple[Integers, Floats]:
    """Rows of each simulated user, and the number of users for whom each stands.

    Half of the simulated users are spread evenly over all users, the other half over all rows: each is at a place of
    equal mass of the mixture, and stands for the inverse of its density there.
    """
    cost = max(1.0, min(shape.rows, float(shape.items)))
    most = max(200, int(MOST_DRAWS / cost))
    if shape.users <= most:
        rows = shape.rows_at(rng.random(shape.users))
        return rows.astype(np.int64), np.ones(shape.users)
    places = (np.arange(200_000) + 0.5) / 200_000
    density = 0.5 + 0.5 * shape.rows_at(places) / shape.rows
    reached = np.cumsum(density) / density.sum()
    chosen = np.interp((np.arange(most) + rng.random(most)) / most, reached, places)
    rows = shape.rows_at(chosen)
    weights = 1 / (0.5 + 0.5 * rows / shape.rows)
    return rows.astype(np.int64), weights * (shape.users / weights.sum())


def _by_rows(shape: Shape, rows: Integers, rng: np.random.Generator) -> sparse.csr_matrix:
    """Draw row by row. With tastes, by Polya's urn: row j of a user, from 0, repeats one of the rows before it with
    chance j t / (1 - t + j t).
    """
    chances = rng.random(int(rows.sum()))
    user = np.repeat(np.arange(len(rows)), rows)
    if shape.tastes > 0:
        start = np.repeat(np.cumsum(rows) - rows, rows)
        place = np.arange(len(start))
        before, t = place - start, shape.tastes
        fresh = rng.random(len(place)) * (1 - t + t * before) < 1 - t
        shown = np.where(fresh, place, start + np.floor(rng.random(len(place)) * before).astype(np.int64))
        rest = np.flatnonzero(~fresh)
        while len(rest := rest[~fresh[shown[rest]]]):
            shown[rest] = shown[shown[rest]]
        item = _items_at(shape, chances[fresh])[(np.cumsum(fresh) - 1)[shown]]
    else:
        item = _items_at(shape, chances)
    return _counted(user * shape.items + item, (len(rows), shape.items))


def _items_at(shape: Shape, chances: Floats) -> Integers:
    """The items that these chances from 0 to 1 fall on."""
    steps = np.cumsum(shape.shares)
    items: Integers = np.searchsorted(steps / steps[-1], chances, side="right").clip(max=shape.items - 1)
    return items


def _counted(places: Integers, shape: tuple[int, int]) -> sparse.csr_matrix:
    """How often each place of a matrix is named, where places are numbered row by row."""
    found, numbers = np.unique(places, return_counts=True)
    row, column = np.divmod(found, shape[1])
    starts = np.searchsorted(row, np.arange(shape[0] + 1))
    return sparse.csr_matrix((numbers.astype(np.float64), column, starts), shape=shape)


def _by_items(shape: Shape, rows: Integers, rng: np.random.Generator) -> sparse.csr_matrix:
    """Draw each user's counts at once: multinomial, of the crowd's distribution or of one that is the user's own."""
    shares = np.broadcast_to(shape.shares, (len(rows), shape.items))
    if shape.tastes > 0:
        own = rng.standard_gamma((1 - shape.tastes) / shape.tastes * shares)
        total = own.sum(axis=1, keepdims=True)
        shares = np.where(total > 0, own / np.where(total > 0, total, 1.0), shares)
    return sparse.csr_matrix(rng.multinomial(rows, shares).astype(np.float64))
