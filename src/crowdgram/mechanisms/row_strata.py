"""Rows by item in strata of users: what they tell of the crowd, and the contribution bound once they are known.

A bound has to be chosen before rows are summed, by a noisy histogram. If it showed heavy users who are not there, the
bound is far too large. Strata (`RowsByStratum`) let it be lowered afterwards: users with far fewer rows than the bound
are summed apart, with less noise. What the strata hold also says which of the crowds that seemed possible are not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ..arrays import Floats
from ..tables import UNIT
from .row_bound import Disagreement, average_error, costs_if_known, expected_errors, points
from .simplex import project
from .user_sizes import ROUGHNESS, Crowds, surprise

__all__ = ["RowStrata", "best_strata", "light_strata"]

STRATA_STEPS = 4, 16
"""Users with so many times fewer rows than the contribution bound may be a stratum of their own, and again ..."""
LOWEST_STRATUM = 64
"""... down to so many times fewer. Steps of 4 add 3% to the noise, and steps of 16 next to nothing."""


def light_strata(row_cap: int, step: int) -> tuple[int, ...]:
    """The bounds of the strata below `row_cap`, which are this factor apart."""
    powers = range(math.ceil(math.log(LOWEST_STRATUM, step)), 0, -1)
    return tuple(row_cap // step**j for j in powers if row_cap >= step**j)


def best_strata(row_cap: int, crowds: Crowds, noise: float, disagreement: float) -> tuple[int, ...]:
    """The bounds of the strata below `row_cap` that promise the least error, if strata will tell which crowd is there.
    noise: in l1, of a sum in which a user weighs 1.
    """
    crowds = crowds.likely

    def expected(lights: tuple[int, ...]) -> float:
        bounds = np.array([*lights, row_cap], dtype=np.float64)
        widened = np.linalg.norm(np.minimum(bounds / bounds[:, None], 1.0), axis=1)
        known = costs_if_known(crowds, noise * widened, disagreement, bounds)
        return float(average_error(crowds.weights, known))

    return min((light_strata(row_cap, step) for step in STRATA_STEPS), key=expected)


@dataclass(frozen=True, eq=False)
class RowStrata:
    """Noisy rows by item of each stratum (rows), in units of UNIT over the stratum's bound; bounds: on the rows of a
    user, increasing. deviation: the standard deviation of the noise.
    """

    bounds: Floats
    sums: Floats
    deviation: float

    @property
    def masses(self) -> tuple[Floats, float]:
        """What strata hold, in users who have their bound, and its standard deviation."""
        masses: Floats = self.sums.sum(axis=1) / UNIT
        return masses, self.deviation * math.sqrt(self.sums.shape[1]) / UNIT

    @property
    def widened(self) -> Floats:
        """The noise of all strata together at each of the bounds, over that of one sum."""
        widened: Floats = np.linalg.norm(self._weights, axis=1)
        return widened

    def within(self, place: int) -> Floats:
        """Rows by item if nobody counts for more than bounds[place]: strata above it weigh as one of that bound."""
        total: Floats = self._weights[place] @ self.sums
        return total

    @cached_property
    def _weights(self) -> Floats:
        """What each stratum weighs at each of the bounds. Strata below the bound are shrunk (James and Stein): one that
        holds nothing but noise would add that, and nothing else.
        """
        items = self.sums.shape[1]
        noise = (items - 2) * self.deviation**2
        kept = np.clip(1 - noise / np.maximum((self.sums**2).sum(axis=1), 1e-300), 0.0, 1.0)
        below = self.bounds < self.bounds[:, None]
        weights: Floats = np.minimum(self.bounds / self.bounds[:, None], 1.0) * np.where(below, kept, 1.0)
        return weights

    def shortfall(self, place: int) -> float:
        """What users of the strata above bounds[place] lack of it, over all rows within it: they count for the part of
        it that they have of their own stratum's bound, which is a step above the one below it.
        """
        masses, error = self.masses
        counted = float(np.maximum(masses[place + 1 :], error).sum())
        step = float(self.bounds[place + 1] / self.bounds[place]) if place + 1 < len(self.bounds) else 1.0
        return (step - 1) / 2 * counted / max(float(self.within(place).sum()) / UNIT, counted, error)

    def learned(self, crowds: Crowds) -> Crowds:
        """The crowds with the probabilities that they have once it is known what strata hold."""
        users, sizes, _ = points(crowds)
        places = np.minimum(np.searchsorted(self.bounds, sizes), len(self.bounds) - 1)
        each = np.minimum(sizes, self.bounds[-1]) / self.bounds[places]
        expected = np.array([(users * each)[:, places == j].sum(axis=1) for j in range(len(self.bounds))]).T
        found, error = self.masses
        spread = np.hypot(error, ROUGHNESS * expected)
        with np.errstate(divide="ignore"):
            fit = np.log(crowds.weights)
        fit -= (surprise((found - expected) / spread, laplace=True) + np.log(spread)).sum(axis=1)
        weights = np.exp(fit - fit.max())
        return replace(crowds, weights=weights / weights.sum())

    def best(self, crowds: Crowds, noise: float, disagreement: float) -> int:
        """The place of the bound that is predicted to err least. noise: in l1, of a sum in which a user weighs 1."""
        return int(np.argmin(expected_errors(crowds, self.bounds, noise * self.widened, disagreement)))

    def disagreement(self, prior: Disagreement) -> Disagreement:
        """What is believed of the disagreement of heavy users: how those of the last stratum differ from the others."""
        if len(self.bounds) == 1:
            return prior
        ratios = self.bounds[:-1] / self.bounds[-2]
        few, many = ratios @ self.sums[:-1], self.sums[-1]
        deviations = self.deviation * float(np.linalg.norm(ratios)), self.deviation
        root = math.sqrt(self.sums.shape[1])
        masses = [max(float(each.sum()), root * one) for each, one in zip((few, many), deviations, strict=True)]
        last = len(self.bounds) - 1
        rows = self.within(last)
        shares = project(rows / max(float(rows.sum()), float(self.widened[last]) * root * self.deviation))
        noise = math.hypot(*(one / mass for one, mass in zip(deviations, masses, strict=True)))
        return prior.learned(many / masses[1] - few / masses[0], noise, shares)
