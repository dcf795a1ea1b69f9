"""The choice between plain Laplace noise and rounds, by the predicted errors of both.

Both come from one model of the crowd: users by rows, and how much they differ.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..arrays import Floats
from ..privacy import Looks
from ..tables import UNIT, Counts
from .budget import Allowance
from .pilot import Pilot, look_at_rows_again
from .pilot_queries import HALVES, ROWS_AGAIN
from .row_bound import (
    Disagreement,
    Spread,
    average_error,
    best_bound,
    costs_at_one_bound,
    costs_if_known,
    worth_knowing,
)
from .tastes import look_at_tastes, part_for_tastes
from .user_sizes import Crowds

__all__ = ["RoundsModel", "allowance_for", "prefer_rounds", "round_coordinates"]


SPENDABLE = 1 - 1e-9
"""Of a budget that is divided into shares: the sum of rounded parts must not exceed it."""
ROUNDS_EFFICIENCY = 0.7
"""What the answers of all rounds together are worth, as a part of the budget that is divided over them (0.6 to 0.9 on
invented crowds who agree), ..."""
SEEING_COST = 3, 10.0
"""... less what it takes to see the crowd: so many histograms of distances. Their noise per bin has a standard
deviation of users over the second number.
"""
DISTANCE_MIX = (0.5, 0.35, 0.15), (0.5, 1.0, 2.0)
"""How far users are from a centre: parts of them, and their distances over the root mean square of all."""
UNMEASURED = 0.5
"""What is left of the bias of a bound if levels measure how users differ with their distance."""
BLIND = 1e9
"""The noise of rounds that cannot see the crowd."""
STRANGER = math.inf
"""The factor of users who have one item."""


def prefer_rounds(counts: Counts, spending: Looks, pilot: Pilot, items: int) -> RoundsModel | None:
    """What rounds are predicted to do, if they are predicted to err less than plain noise, each at its own best bound.

    Rows are looked at once more while knowing the crowd is worth its price, alone or together with tastes. So is
    another half of the items, while rounds seem to err less or knowing tastes is worth its price: rounds need to know
    how much users differ. The first half comes before rows, because it costs less. `items`: how many to size looks for.
    """
    if pilot.users < 2 * pilot.users_error:  # nobody is seen: rounds would see nothing either
        return None
    reserved = {event.purpose for event in spending.reserved}
    again = [query for query in ROWS_AGAIN if query.purpose in reserved]
    while allowance_for(spending, counts.items).total > 0:  # at a tiny delta many looks may leave rounds nothing
        prices = _Prices.of(spending, pilot, counts.items)
        both, worth = prices.worth_of_both, prices.worth_of_tastes
        first, seen = pilot.tastes.looks == 0, pilot.tastes.looks == len(HALVES)
        price = part_for_tastes(spending.guarantee, items, pilot.weighing)
        by_tastes = not seen and (prices.rounds_err_less or max(worth, both if first else 0.0) > price)
        if again and pilot.sees_rows and not (first and by_tastes):
            epsilon = again[0].most(items) * spending.guarantee.epsilon
            if max(prices.worth_of_rows, both) > epsilon / spending.remaining_epsilon():
                look_at_rows_again(counts, spending, pilot, again.pop(0), epsilon)
                continue
        if not by_tastes:
            return prices.model if prices.rounds_err_less else None
        pilot.tastes = look_at_tastes(counts, spending, items, pilot.weighing, pilot.tastes, worth)
    return None


@dataclass(frozen=True, eq=False)
class _Prices:
    """The predicted l1 errors for each taste (rows) and each crowd (columns) that is possible, with their weights:
    of plain noise; of rounds, whose bound is chosen beforehand; and of rounds if the crowd were known. model: what
    rounds are predicted to do.
    """

    tastes: Floats
    crowds: Floats
    plain: Floats
    rounds: Floats
    rounds_if_known: Floats
    model: RoundsModel

    @classmethod
    def of(cls, spending: Looks, pilot: Pilot, items: int) -> _Prices:
        budget, tastes, crowds = allowance_for(spending, items), pilot.tastes, pilot.crowds.settled.likely
        disagreements = [Disagreement.prior(most).mean for most in tastes.apart(items).tolist()]
        kinds = zip(tastes.tastes.tolist(), tastes.strange.tolist(), disagreements, strict=True)
        models = [RoundsModel.of(budget, pilot, *kind, items) for kind in kinds]
        prices = [model.prices(crowds) for model in models]
        rounds, known = (np.array(each) for each in zip(*prices, strict=True))
        by_disagreement = {each: _plain_prices(spending, pilot, crowds, items, each) for each in set(disagreements)}
        plain = np.array([by_disagreement[each] for each in disagreements])
        nearest = int(np.argmin(np.abs(np.log(rounds / average_error(tastes.weights, rounds))) @ crowds.weights))
        return cls(tastes.weights, crowds.weights, plain, rounds, known, models[nearest])

    @property
    def rounds_err_less(self) -> bool:
        return self._expected(self.rounds) < self._expected(self.plain)

    @property
    def worth_of_tastes(self) -> float:
        """The part of the error that the choice would save if tastes were known."""
        best = np.minimum(*(average_error(self.crowds, each.T) for each in (self.plain, self.rounds)))
        return self._saved(float(average_error(self.tastes, best)))

    @property
    def worth_of_rows(self) -> float:
        """The part of the error that the choice would save if the crowd were known."""
        best = np.minimum(*(average_error(self.tastes, each) for each in (self.plain, self.rounds_if_known)))
        return self._saved(float(average_error(self.crowds, best)))

    @property
    def worth_of_both(self) -> float:
        """The part of an error that the choice would save, in its mean logarithm, if the crowd and tastes were known.

        An unlikely crowd of heavy users that would make any release err a hundred times more decides what is expected,
        and hides what the choice costs in all the others.
        """
        chosen = self.rounds if self.rounds_err_less else self.plain
        ratios = np.log(chosen / np.minimum(self.plain, self.rounds_if_known))
        return 1 - math.exp(-float(self.tastes @ ratios @ self.crowds))

    def _saved(self, known: float) -> float:
        return 1 - known / min(self._expected(self.plain), self._expected(self.rounds))

    def _expected(self, prices: Floats) -> float:
        return float(average_error(self.crowds, average_error(self.tastes, prices)))


def _plain_prices(spending: Looks, pilot: Pilot, crowds: Crowds, items: int, disagreement: float) -> Floats:
    """The predicted l1 errors of Laplace noise at its best bounds, which strata of users tell, or at the one that was
    given.
    """
    noise = items * spending.laplace_scale(UNIT, spending.remaining_epsilon()) / UNIT
    if pilot.given:
        return noise * pilot.row_cap / (crowds.users @ crowds.sizes)
    return costs_if_known(crowds, noise, disagreement)


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
    sizes lie around masses. disagreement: of heavy users with the crowd, as far as levels leave it.
    """

    noise: float
    spread: Spread
    disagreement: float

    @classmethod
    def of(
        cls, budget: Allowance, pilot: Pilot, taste: float, strange: float, disagreement: float, items: int
    ) -> RoundsModel:
        """For users of m rows with a mean square distance of (1 - ||p||^2) (t + (1 - t) / m), t the taste, but for
        strangers.

        Scales divide the noise over items; for Zipf laws that is worth the factor (k ||p||^2)^-0.1.
        """
        square = pilot.tastes.square
        share = ROUNDS_EFFICIENCY - SEEING_COST[0] * budget.share_for(max(pilot.users, 1.0) / SEEING_COST[1])
        fitted = (items * square) ** -0.1
        noise = budget.mean_absolute * items * fitted * budget.deviation(share) if share > 0 else BLIND

        def distance(masses: Floats, factor: float) -> Floats:
            chance = (1 - taste) / masses if pilot.row_cap > 1 else 0.0 * masses
            own = (1 - square) * np.minimum(taste * min(factor, 1e9) ** 2 + chance, 1.0)
            return np.sqrt(own if budget.shape == "gaussian" else np.minimum(1.0, 2 / math.pi * items * own))

        shares = (*((1 - strange) * part for part in DISTANCE_MIX[0]), strange)
        return cls(noise, Spread(shares, (*DISTANCE_MIX[1], STRANGER), distance), UNMEASURED * disagreement)

    def prices(self, crowds: Crowds) -> tuple[Floats, Floats]:
        """The predicted l1 errors: at one bound for all crowds, as rounds cannot mend it once they have summed; and at
        the best bound of each.
        """
        return costs_at_one_bound(crowds, self.noise, self.disagreement, self.spread)

    def worth_knowing(self, pilot: Pilot) -> float:
        return worth_knowing(pilot.crowds, self.noise, self.disagreement, self.spread)

    def noise_part(self, pilot: Pilot) -> float:
        return best_bound(pilot.crowds, self.noise, self.disagreement, self.spread).noise
