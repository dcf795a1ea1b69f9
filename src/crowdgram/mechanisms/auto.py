"""The default mechanism: pilot queries, the choice by predicted error, the estimate.

Laplace noise at a good contribution bound wins where items are few or users have few of them; rounds win where users
agree with the crowd, or have many items. `choice` decides between them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..arrays import Floats
from ..privacy import Guarantee, LaplaceEvent, Looks, PureFinish, Ready, Reserve, Spending
from ..stages import Stage
from ..tables import ROW_LIMIT, UNIT, CappedRows, Counts, RowsByStratum, UsersByRows
from .baselines import Laplace
from .budget import Budget
from .choice import RoundsModel, allowance_for, prefer_rounds, round_coordinates
from .discovery import DiscoveryPlan, Finish, rehearse
from .estimate import Estimate, from_noisy_sums
from .mechanism import PURE_LEAST, Discovering, Mechanism, Searching, check_whole
from .noisy_bins import Bins
from .pilot import Pilot, look_at_crowd
from .pilot_queries import (
    HISTOGRAM_UNIT,
    RowHistogram,
    buy_further_histograms,
    looked_for,
    pilot_reserves,
)
from .prior import Prior
from .request import Request
from .rounds import run_rounds
from .row_bound import (
    Disagreement,
    average_error,
    best_bound,
    bias_of,
    moved_squares,
    share_above,
)
from .row_strata import RowStrata, best_strata
from .simplex import project
from .tastes import look_at_tastes
from .user_sizes import Crowds
from .users_by_distance import Facts

if TYPE_CHECKING:
    from ..privacy import Cost

__all__ = ["Adaptive", "Auto"]


MOST_ROUNDS = 12
"""That a caller may ask for."""
WEIGHTING_DISTANCE = 0.27
"""Total variation between equal weights and weights by rows, if rows are log-normal with a spread of 0.7."""
PAID, LEAST_PAID, MOST_PAID = 0.25, 0.02, 0.5
"""Before rounds, a further histogram of users by rows costs them this part of what knowing the crowd would save. It is
left out if its share of the budget would be below the second number, and all of them have at most the third.
"""
MOST_LOOKS_BEFORE_ROUNDS = 4


@dataclass(frozen=True)
class Adaptive(Discovering):
    """Adaptive rounds, without choosing.

    rounds: how many; by default as many as it takes until the centre is good enough, at most 6.
    prior: what is known beforehand: a mapping of items to shares, or an earlier release. It has to be public, or
    released already. If it is wrong, the release is hardly less accurate than without it.
    """

    name = "adaptive"
    finish: ClassVar[Finish] = "gaussian"
    rounds: int | None = None
    prior: Any = None

    def __post_init__(self) -> None:
        check_whole("rounds", self.rounds, MOST_ROUNDS)
        if self.prior is not None:
            object.__setattr__(self, "prior", Prior.of(self.prior))

    def instead(self, _: Guarantee) -> Sequence[Mechanism]:
        return [Laplace()]

    def reserves(self, guarantee: Guarantee, request: Request, items: int | None) -> list[Reserve]:
        return pilot_reserves(guarantee, items, rows=request.row_cap > 1)

    def ways(self, trial: Looks, items: int | None) -> Sequence[Cost]:
        from .costs import gaussian_way, items_between, pure_way  # for a ledger only

        if trial.guarantee.delta == 0.0:
            return [pure_way(trial)]
        return [gaussian_way(trial, *map(round_coordinates, items_between(items)))]

    def run(self, counts: Counts, budget: Ready, request: Request, /) -> Estimate:
        spending, pilot = self._pilot(counts, budget, request)
        items = looked_for(counts.items, request)
        pilot.tastes = look_at_tastes(counts, spending, items, pilot.weighing, pilot.tastes)
        return _rounds(counts, spending, pilot, self.rounds, request.prior)

    def _pilot(self, counts: Counts, budget: Ready, request: Request) -> tuple[Looks, Pilot]:
        spending = budget.looks(self.reserves(budget.guarantee, request, None if request.found else counts.items))
        request.report(Stage.PROFILING)
        pilot = look_at_crowd(counts, spending, looked_for(counts.items, request), request)
        request.report(Stage.ESTIMATING)
        return spending, pilot


class Auto(Adaptive):
    """Whichever of Laplace noise and adaptive rounds is predicted to err less.

    rounds: how many, if it chooses them. prior: as for `Adaptive`; both ways use it, and the choice does not.

    Guarantee: the pilot queries are listed by public values before the table is looked at; which of them take place,
    the choice and all that follows depends on noisy values; rounds divide what `remaining_mu` leaves, and a plain
    finish spends what is left of epsilon. That is the situation of Theorem 7 in docs/proofs/accounting.md (after a
    search for items: Theorem 6).
    """

    name = "auto"
    finish = "either"
    histogram = True

    def instead(self, guarantee: Guarantee) -> Sequence[Mechanism]:
        return [*([self._rounds_only()] if guarantee.delta > 0.0 else ()), Laplace()]

    def _rounds_only(self) -> Adaptive:
        """The rounds with the same options, without the choice."""
        return Adaptive(**{option.name: getattr(self, option.name) for option in fields(Adaptive)})

    def search(self, guarantee: Guarantee, share: float | None) -> tuple[Searching, DiscoveryPlan]:
        """Followed by rounds without a choice if the search leaves too little for plain Laplace noise to be one."""
        follows, plan = super().search(guarantee, share)
        left = rehearse(Spending(guarantee).open(), plan).looks().remaining_epsilon()
        if left < PURE_LEAST * guarantee.epsilon:
            return self._rounds_only().search(guarantee, share)
        return follows, plan

    def reserves(self, guarantee: Guarantee, request: Request, items: int | None) -> list[Reserve]:
        return pilot_reserves(guarantee, items, rows=request.row_cap > 1, again=request.buys_rows)

    def ways(self, trial: Looks, items: int | None) -> Sequence[Cost]:
        from .costs import histogram_way, pure_way

        found = [histogram_way(trial)] if items is None else []
        rounds = super().ways(trial, items) if trial.guarantee.delta > 0.0 else ()
        return [*found, pure_way(trial), *rounds]

    def run(self, counts: Counts, budget: Ready, request: Request, /) -> Estimate:
        spending, pilot = self._pilot(counts, budget, request)
        model = prefer_rounds(counts, spending, pilot, looked_for(counts.items, request))
        if model is not None:
            return _rounds(counts, spending, pilot, self.rounds, request.prior, model)
        return _plain(counts, spending.finish_purely(), pilot, request.prior)


def _plain(counts: Counts, spending: PureFinish, pilot: Pilot, prior: Floats | None) -> Estimate:
    """Laplace noise on capped counts with all that is left, after as long a look at rows as pays for itself."""
    k = counts.items
    disagreement = Disagreement.prior()
    if pilot.rows is not None and not pilot.given:
        scale = spending.laplace_scale(UNIT, 1.0) / UNIT
        pilot.rows = buy_further_histograms(
            pilot.rows, counts.sum(UsersByRows(RowHistogram.edges())).values, spending, k * scale, disagreement.mean
        )
        if pilot.rows.crowds is not None:
            pilot.row_cap = ROW_LIMIT
    rows = _noisy_rows(counts, spending, pilot)
    parameters: dict[str, int | float | str] = {"branch": "laplace"}
    bias, most, total = 0.0, 0.0, None
    if pilot.row_cap == 1:
        total = pilot.users * UNIT, pilot.users_error * UNIT
    if rows.crowds is not None:
        above, low, high = share_above(rows.crowds, rows.bound)
        parameters |= {"rows_above_bound": above, "rows_above_bound_low": low, "rows_above_bound_high": high}
        if not pilot.given:
            bias, most = _clipping_bias(rows, pilot.tastes.mean_distance)
    elif pilot.rows is not None and not pilot.given:  # rows could not be seen, and equal weights stand in for them
        bias, most = 2 * WEIGHTING_DISTANCE * disagreement.mean, 2 * WEIGHTING_DISTANCE * disagreement.root_mean_square
    if pilot.row_cap > 1:
        parameters["max_rows_per_user"] = rows.bound
    scatter = _scatter(pilot)
    made = from_noisy_sums(
        rows.sums,
        rows.event,
        parameters,
        widened=rows.widened,
        bias=(bias, most),
        total=total,
        sampling_variance=scatter,
        row_bound=rows.bound,
        public=prior,
    )
    if rows.shortfall > 0 and made.total is not None:
        made = replace(made, total=replace(made.total, error=rows.shortfall))
    return replace(made, users=pilot.all_users)


def _clipping_bias(rows: _NoisyRows, scatter: float) -> tuple[float, float]:
    """The l1 bias of a bound: what is expected of it, and its root mean square. Heavy users disagree with the crowd
    together, and each by itself, as users do who are this far from it, squared; in all by no more than is possible.
    """
    crowds, bound, disagreement = rows.crowds, rows.bound, rows.disagreement
    assert crowds is not None
    moved, strange = (each[:, 0] for each in bias_of(crowds, np.array([float(bound)])))
    shares = project(rows.sums / max(float(rows.sums.sum()), 1.0))
    length = math.sqrt(2 / math.pi * scatter) * float(np.sqrt(shares * (1 - shares)).sum())
    alone = length / math.sqrt(max(1 - float(shares @ shares), 1e-300)) * np.sqrt(moved_squares(crowds, bound))

    def together(part: float) -> Floats:
        return np.minimum(np.hypot(part * moved, alone), moved) + strange

    expected = float(average_error(crowds.weights, together(disagreement.mean)))
    return expected, math.sqrt(float(crowds.weights @ together(disagreement.root_mean_square) ** 2))


@dataclass(frozen=True, eq=False)
class _NoisyRows:
    """Rows by item, in units of UNIT over the `bound` on rows; their noise, over that of the event; and what is
    believed of the crowd, if its rows were seen, and of the disagreement of heavy users. shortfall: what users above
    the bound lack of it in the sums, over all rows within it.
    """

    sums: Floats
    event: LaplaceEvent
    widened: float
    bound: int
    crowds: Crowds | None
    disagreement: Disagreement
    shortfall: float = 0.0


def _noisy_rows(counts: Counts, spending: PureFinish, pilot: Pilot) -> _NoisyRows:
    """Rows by item with all that is left of epsilon. If the bound was chosen, they are summed in strata of users, and
    the bound is chosen once more, among those of the strata, by what these hold.
    """
    k, disagreement = counts.items, Disagreement.prior()
    crowds = None if pilot.rows is None else pilot.rows.crowds
    noise = k * spending.laplace_scale(UNIT, spending.remaining_epsilon()) / UNIT
    row_cap = pilot.row_cap if pilot.given else best_bound(pilot.crowds, noise, disagreement.mean).rows
    lights = () if crowds is None or pilot.given else best_strata(row_cap, crowds, noise, disagreement.mean)
    sums = counts.sum(RowsByStratum(row_cap, k, lights) if lights else CappedRows(row_cap))
    noisy, event = spending.laplace(
        "counts by item", sums.values, bound=sums.bound.l1, epsilon=spending.remaining_epsilon()
    )
    if crowds is None or not lights:
        return _NoisyRows(noisy.astype(np.float64), event, 1.0, row_cap, crowds, disagreement)
    bounds = (*lights, row_cap)
    strata = RowStrata(
        np.array(bounds, dtype=np.float64), noisy.reshape(-1, k).astype(np.float64), math.sqrt(2) * event.scale
    )
    crowds = strata.learned(crowds)
    place = strata.best(crowds, noise, disagreement.mean)
    return _NoisyRows(
        strata.within(place),
        event,
        float(strata.widened[place]),
        bounds[place],
        crowds,
        strata.disagreement(disagreement),
        strata.shortfall(place),
    )


def _scatter(pilot: Pilot) -> float:
    """The sampling variance of the table's own answer, summed over items: users' shares of all mass, squared, times how
    far users are from the crowd.
    """
    users, sizes = pilot.crowds.typical, pilot.crowds.sizes
    return pilot.tastes.mean_distance * float((users * sizes**2).sum() / max(float((users * sizes).sum()) ** 2, 1e-300))


def _rounds(
    counts: Counts,
    spending: Looks,
    pilot: Pilot,
    rounds: int | None,
    prior: Floats | None,
    model: RoundsModel | None = None,
) -> Estimate:
    allowance = allowance_for(spending, counts.items)
    phase = spending.rounds() if allowance.shape == "gaussian" else spending.finish_purely()
    budget = Budget.of(allowance, phase)
    if model is not None and pilot.rows is not None and pilot.sees_rows:
        _look_again(counts, budget, pilot, pilot.rows, model)
    rows = pilot.rows.crowds if pilot.rows is not None and pilot.row_cap > 1 else None
    rows = None if rows is None else rows.capped(pilot.row_cap)
    facts = Facts(pilot.row_cap, rows, pilot.users, pilot.users_error, pilot.tastes)
    return replace(run_rounds(counts, budget, facts, rounds, prior), users=pilot.all_users)


def _look_again(counts: Counts, budget: Budget, pilot: Pilot, rows: RowHistogram, model: RoundsModel) -> None:
    """Have the pilot look at users by rows once more, for a share of the budget that costs rounds a part of what
    knowing all would save; and again while it is worth that.
    """
    edges = np.array(RowHistogram.edges(), dtype=np.float64)
    spent, histogram = 0.0, None
    for look in range(1, MOST_LOOKS_BEFORE_ROUNDS + 1):
        worth, noise = model.worth_knowing(pilot), model.noise_part(pilot)
        kept = (1 + PAID * worth / noise) ** (-2 if budget.shape == "gaussian" else -1)
        share = min((1 - kept) * (1 - spent), MOST_PAID - spent)
        if share < LEAST_PAID:
            return
        if histogram is None:  # most releases take no such look, and none needs the sum twice
            histogram = counts.sum(UsersByRows(RowHistogram.edges())) * HISTOGRAM_UNIT
        noisy = budget.noisy(f"users by rows, for rounds, look {look}", histogram, share)
        deviation = budget.deviation(share, non_negative=True)
        bins = Bins(noisy / HISTOGRAM_UNIT, np.full(len(edges), deviation), edges, budget.shape == "laplace")
        seen = RowHistogram.of(rows.bins + bins)
        if seen.crowds is None:
            return
        pilot.rows = rows = seen
        spent += share
