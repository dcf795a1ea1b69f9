"""The choice between plain Laplace noise and rounds, by the predicted errors of both.

Both come from one model of the crowd: users by rows, how concentrated they are, and, where a centre could decide, the
crowd's own distribution, each bought for a small part of epsilon.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from ..arrays import Floats
from ..privacy import Looks
from ..tables import UNIT, Counts, UsersByRows
from .budget import Allowance
from .pilot import ConcentrationLaw, Pilot, look_at_centre, look_at_concentration
from .pilot_queries import CONCENTRATION, GLANCE, HEAVY, RowHistogram, look_at_rows
from .request import Request
from .row_bound import Disagreement, Spread, best_bound, cost_if_known, worth_knowing
from .user_sizes import Crowds

__all__ = ["RoundsModel", "allowance_for", "look_at_crowd", "prefer_rounds", "round_coordinates"]


SPENDABLE = 1 - 1e-9
"""Of a budget that is divided into shares: the sum of rounded parts must not exceed it."""
CONCENTRATION_POWER = -0.4, 0.2
"""Mean and standard deviation of the power of rows that concentration goes with, before it is measured: users with more
rows have more items, but not as many more.
"""
LIGHT_LOOK_FACTOR = 4.0
"""`telling` counts 4 times for the look at all users, which halves its epsilon: they are more numerous and more
concentrated than heavy ones.
"""
STRAY_RANGE = 1000.0
"""The mean square distance of users from a centre is taken to be at most their mean square norm, and at least a part of
1 / STRAY_RANGE of it.
"""
ROUNDS_EFFICIENCY = 0.75
"""What the answers of all rounds together are worth, as a part of the budget that is divided over them, ..."""
SEEING_COST = 3, 10.0
"""... less what it takes to see the crowd: so many histograms of distances. Their noise per bin has a standard
deviation of users over the second number.
"""
DISTANCE_MIX = (0.5, 0.35, 0.15), (0.5, 1.0, 2.0)
"""How far users are from a centre: parts of them, and their distances over the root mean square of all."""


def look_at_crowd(counts: Counts, spending: Looks, items: int, request: Request, *, choosing: bool) -> Pilot:
    """Buy what is needed. If there is nothing to choose, looks take all of what was reserved: rounds pay for it."""
    if request.row_cap > 1:
        rows = request.seen_rows or look_at_rows(counts.sum(UsersByRows(RowHistogram.edges())).values, spending, items)
        if rows.crowds is not None:
            crowds = rows.crowds.capped(request.row_cap)
            return _pilot_by_rows(counts, spending, rows, crowds, items, request.row_cap, choosing)
        # Too few users to be seen: if the caller gave no bound, every user weighs the same.
        row_cap = request.max_rows_per_user or 1
        return Pilot(items, row_cap, rows, *look_at_concentration(counts, spending, items, row_cap, CONCENTRATION, 0.0))
    glance = Pilot(items, 1, None, *look_at_concentration(counts, spending, items, 1, GLANCE, 0.0))
    telling = max(glance.users, 1.0) * _even_distance(spending, glance, counts.items) if choosing else 0.0
    return Pilot(items, 1, None, *look_at_concentration(counts, spending, items, 1, CONCENTRATION, telling), telling)


def _pilot_by_rows(
    counts: Counts, spending: Looks, rows: RowHistogram, crowds: Crowds, items: int, row_cap: int, choosing: bool
) -> Pilot:
    """Light users and heavy ones are looked at apart: those with many rows mostly have more items."""
    users = crowds.typical
    cap = max(1, round(crowds.quantile(0.5)))
    weights = users * np.minimum(crowds.sizes / cap, 1.0) ** 2
    unknown = Pilot(items, row_cap, rows, float(users.sum()), crowds.error, ConcentrationLaw(1.0, 1.0))
    telling = float(weights.sum()) * _even_distance(spending, unknown, counts.items) if choosing else 0.0
    heavy = look_at_concentration(counts, spending, items, cap, HEAVY, telling)[2]
    logs = np.log(crowds.sizes)
    places = [float(each @ logs / each.sum()) for each in (users, weights)]
    *counted, light = look_at_concentration(counts, spending, items, 1, CONCENTRATION, LIGHT_LOOK_FACTOR * telling)
    apart = max(places[1] - places[0], 0.01)
    doubt = math.hypot(light.error / light.square, heavy.error / heavy.square) / apart
    trust = CONCENTRATION_POWER[1] ** 2 / (CONCENTRATION_POWER[1] ** 2 + doubt**2)
    power = trust * math.log(heavy.square / light.square) / apart + (1 - trust) * CONCENTRATION_POWER[0]
    concentration = replace(heavy, at=math.exp(places[1]), power=float(np.clip(power, -1.0, 0.0)))
    return replace(unknown, concentration=concentration, telling=telling, counted=(counted[0], counted[1]))


def _even_distance(spending: Looks, pilot: Pilot, items: int) -> float:
    """The square distance of users from the crowd at which rounds and plain noise err the same; 1 if none is."""
    budget, plain = allowance_for(spending, items), _plain_price(spending, pilot, items)
    low, high = 1 / STRAY_RANGE, 1.0

    def rounds(square: float) -> float:
        even = replace(pilot, concentration=ConcentrationLaw(square, 0.0))
        return RoundsModel.of(budget, even, 0.0, 1 / items, items).price(even)

    if rounds(low) > plain or rounds(high) < plain:
        return 1.0
    while high > 1.1 * low:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if rounds(middle) > plain else (middle, high)
    return low


def prefer_rounds(counts: Counts, spending: Looks, pilot: Pilot) -> RoundsModel | None:
    """What rounds are predicted to do, if they are predicted to err less than plain noise, each at its own best bound;
    look at the centre where that could decide.

    Before any centre is known users look as far out as their norm; once centred, as sqrt(E||N/m||^2 - ||p||^2), p the
    crowd's own distribution; and no nearer than chance makes them, who draw 1/m of it with m rows.
    """
    k = counts.items
    if pilot.users < 2 * pilot.users_error:  # nobody is seen: rounds would see nothing either
        return None
    budget = allowance_for(spending, k)
    plain = _plain_price(spending, pilot, k)
    far = RoundsModel.of(budget, pilot, -pilot.concentration.error, 1 / k, k)
    if far.price(pilot) < plain:
        return far
    most = pilot.concentration.square
    if RoundsModel.of(budget, pilot, most, most, k).price(pilot) > plain:
        return None
    square, error = look_at_centre(counts, spending, pilot)
    least = max(square - error, 1 / k)
    # How far users are once they are centred is uncertain by both looks, within what is possible. Before them anything
    # is: half of the belief is spread evenly, half of it evenly over orders of magnitude.
    error = math.hypot(error, pilot.concentration.error)
    low, high = max(most / STRAY_RANGE, most - square - 3 * error), min(most, max(most - square, 0.0) + 3 * error)
    edges = np.geomspace(min(low, 0.99 * high), high, 13)
    own = np.sqrt(edges[1:] * edges[:-1])
    weights = np.log(edges[1:] / edges[:-1]) / math.log(STRAY_RANGE) + np.diff(edges) / most
    weights *= np.exp(-(((own - (most - square)) / error) ** 2) / 2)
    models = [RoundsModel.of(budget, pilot, most - float(each), least, k) for each in own]
    prices = np.array([model.price(pilot) for model in models])
    expected = math.exp(float(weights @ np.log(prices) / weights.sum()))  # an error is judged by its factor
    if expected >= _plain_price(spending, pilot, k):
        return None
    return models[int(np.argmin(np.abs(np.log(prices / expected))))]


def _plain_price(spending: Looks, pilot: Pilot, items: int) -> float:
    """The predicted l1 error of Laplace noise at its best bound, or at the one that was given."""
    noise = items * spending.laplace_scale(UNIT, spending.remaining_epsilon()) / UNIT
    if pilot.given:
        return noise * pilot.row_cap / float((pilot.crowds.typical * pilot.crowds.sizes).sum())
    return cost_if_known(pilot.crowds.settled, noise, Disagreement.prior().mean)


def round_coordinates(items: int) -> int:
    """How many coordinates of Gaussian noise rounds may draw in all: ten levels of k + 1 and a histogram a round."""
    return 128 * items + 4096


def allowance_for(spending: Looks, items: int) -> Allowance:
    """All that is left, for rounds: in mu where there is a delta, else in epsilon."""
    adjacency = spending.guarantee.adjacency
    if spending.guarantee.delta > 0:
        return Allowance(adjacency, "gaussian", spending.remaining_mu(round_coordinates(items)) * SPENDABLE)
    return Allowance(adjacency, "laplace", spending.remaining_epsilon() * SPENDABLE)


@dataclass(frozen=True)
class RoundsModel:
    """What rounds are predicted to do. noise: in l1, of a sum in which users have a size of at most 1. spread: how
    sizes lie around masses.
    """

    noise: float
    spread: Spread

    @classmethod
    def of(cls, budget: Allowance, pilot: Pilot, removed: float, square: float, items: int) -> RoundsModel:
        """For a centre that takes `removed` off the mean square norm of users for their mass, and scales that fit a
        crowd of ||p||^2 = square.

        Scales divide the noise over items; for Zipf laws that is worth the factor (k ||p||^2)^-0.1.
        """
        share = ROUNDS_EFFICIENCY - SEEING_COST[0] * budget.share_for(max(pilot.users, 1.0) / SEEING_COST[1])
        fitted = (items * square) ** -0.1
        noise = budget.mean_absolute * items * fitted * budget.deviation(share) if share > 0 else math.inf
        left = 1 - removed / pilot.concentration.square

        def distance(masses: Floats, factor: float) -> Floats:
            norms = pilot.concentration.of(masses)
            chance = (
                np.minimum(1 / masses, norms) * (1 - max(removed, 0.0)) if pilot.row_cap > 1 else norms / STRAY_RANGE
            )
            own = np.maximum(chance + np.maximum(left * norms - chance, 0.0) * factor**2, norms / STRAY_RANGE)
            return np.sqrt(own if budget.shape == "gaussian" else np.minimum(1.0, 2 / math.pi * items * own))

        return cls(noise, Spread(DISTANCE_MIX[0], DISTANCE_MIX[1], distance))

    def price(self, pilot: Pilot) -> float:
        """The predicted l1 error."""
        if not math.isfinite(self.noise):
            return math.inf
        return cost_if_known(pilot.crowds.settled, self.noise, Disagreement.prior().mean, self.spread)

    def worth_knowing(self, pilot: Pilot) -> float:
        return worth_knowing(pilot.crowds, self.noise, Disagreement.prior().mean, self.spread)

    def noise_part(self, pilot: Pilot) -> float:
        return best_bound(pilot.crowds, self.noise, Disagreement.prior().mean, self.spread).noise
