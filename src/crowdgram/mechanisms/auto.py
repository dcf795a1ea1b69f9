"""The default mechanism: pilot queries, the choice by predicted error, the estimate.

Laplace noise at a good contribution bound wins where items are few or users have few of them; rounds win where users
agree with the crowd, or have many items. The predicted errors of both come from one model of the crowd: users by rows,
how concentrated they are, and, where a centre could decide, the crowd's own distribution, each bought for a small part
of epsilon.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

import numpy as np

from ..arrays import Floats
from ..privacy import Cost, Guarantee, Looks, PureFinish, Ready, Reserve, Spending
from ..stages import Stage
from ..tables import ROW_LIMIT, UNIT, CappedRows, Concentration, Counts, UsersByRows
from .baselines import Laplace
from .budget import Allowance, Budget
from .costs import gaussian_way, histogram_way, items_between, pure_way
from .discovery import DiscoveryPlan, Finish, rehearse
from .estimate import Estimate, from_noisy_sums
from .measurements import inverse_variance_mean
from .mechanism import PURE_LEAST, Discovering, Mechanism, Searching, check_whole
from .pilot_queries import (
    CENTRE,
    CONCENTRATION,
    GLANCE,
    HEAVY,
    PilotQuery,
    RowHistogram,
    buy_further_histograms,
    look_at_rows,
    looked_for,
    pilot_reserves,
)
from .prior import Prior
from .request import Request
from .rounds import Facts, run_rounds
from .row_bound import Disagreement, Spread, average_error, best_bound, bias_of, cost_if_known, share_above
from .user_sizes import Crowds

__all__ = ["Adaptive", "Auto"]


MOST_ROUNDS = 12
"""That a caller may ask for."""
SPENDABLE = 1 - 1e-9
"""Of a budget that is divided into shares: the sum of rounded parts must not exceed it."""
CONCENTRATION_POWER = -0.4, 0.2
"""Mean and standard deviation of the power of rows that concentration goes with, before it is measured: users with more
rows have more items, but not as many more.
"""
WEIGHTING_DISTANCE = 0.27
"""Total variation between equal weights and weights by rows, if rows are log-normal with a spread of 0.7."""
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

    def reserves(self, guarantee: Guarantee, request: Request, items: int) -> list[Reserve]:
        return pilot_reserves(guarantee, items, rows=request.row_cap > 1)

    def ways(self, trial: Looks, items: int | None) -> Sequence[Cost]:
        if trial.guarantee.delta == 0.0:
            return [pure_way(trial)]
        return [gaussian_way(trial, *map(round_coordinates, items_between(items)))]

    def run(self, counts: Counts, budget: Ready, request: Request, /) -> Estimate:
        spending, pilot = self._pilot(counts, budget, request)
        return _rounds(counts, spending, pilot, self.rounds, request.prior)

    def _pilot(self, counts: Counts, budget: Ready, request: Request) -> tuple[Looks, _Pilot]:
        items = looked_for(counts.items, request)
        spending = budget.looks(self.reserves(budget.guarantee, request, items))
        request.report(Stage.PROFILING)
        pilot = _look_at_crowd(counts, spending, items, request, choosing=self.finish == "either")
        request.report(Stage.ESTIMATING)
        return spending, pilot


@dataclass(frozen=True)
class Auto(Adaptive):
    """Whichever of Laplace noise and adaptive rounds is predicted to err less.

    rounds: how many, if it chooses them. prior: as for `Adaptive`; both ways use it, and the choice does not.

    Guarantee: the pilot queries are reserved by public values before the table is looked at; the choice and all that
    follows depends on noisy values; rounds divide what `remaining_mu` leaves when all of the reserve is spent, and a
    plain finish spends what is left of epsilon. That is the situation of Theorem 4 in docs/proofs/accounting.md.
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

    def ways(self, trial: Looks, items: int | None) -> Sequence[Cost]:
        found = [histogram_way(trial)] if items is None else []
        rounds = super().ways(trial, items) if trial.guarantee.delta > 0.0 else ()
        return [*found, pure_way(trial), *rounds]

    def run(self, counts: Counts, budget: Ready, request: Request, /) -> Estimate:
        spending, pilot = self._pilot(counts, budget, request)
        if _prefer_rounds(counts, spending, pilot):
            return _rounds(counts, spending, pilot, self.rounds, request.prior)
        return _plain(counts, spending.finish_purely(), pilot, request.prior)


def round_coordinates(items: int) -> int:
    """How many coordinates of Gaussian noise rounds may draw in all: ten levels of k + 1 and a histogram a round."""
    return 128 * items + 4096


@dataclass(frozen=True)
class _Concentration:
    """The mean of ||N(u)||^2 / m_u^2 for users of m rows: square (m / at)^power. error: of square."""

    square: float
    error: float
    at: float = 1.0
    power: float = 0.0

    def of(self, masses: Floats) -> Floats:
        expected: Floats = np.clip(self.square * (masses / self.at) ** self.power, 0.0, 1.0)
        return expected


@dataclass
class _Pilot:
    """What pilot queries told.

    items: how many they were sized for. row_cap: rows of one user that count at most: 1 if users weigh the same,
    ROW_LIMIT if the bound is to be found. rows: users by rows, if they have more than one that counts. users: how many,
    with its standard deviation. telling: users times the square distance at which the choice is even. centre: noisy
    capped counts, their bound and the standard deviation of their noise. counted: users and the standard deviation,
    from a look in which all weigh the same.
    """

    items: int
    row_cap: int
    rows: RowHistogram | None
    users: float
    users_error: float
    concentration: _Concentration
    telling: float = 0.0
    centre: tuple[Floats, int, float] | None = None
    counted: tuple[float, float] | None = None

    @property
    def all_users(self) -> tuple[float, float] | None:
        """How many users there are, and its standard deviation; None if the total of the estimate tells it."""
        if self.row_cap == 1 or self.rows is None:
            return None
        return self.rows.users if self.counted is None else inverse_variance_mean(*self.counted, *self.rows.users)

    @property
    def given(self) -> bool:
        """Whether the caller gave the contribution bound: the answer is then for rows within it, and nothing is to be
        found.
        """
        return self.rows is not None and 1 < self.row_cap < ROW_LIMIT

    @property
    def crowds(self) -> Crowds:
        """Users by mass: rows where they are counted, else all alike."""
        if self.rows is not None and self.rows.crowds is not None:
            return self.rows.crowds.capped(self.row_cap)
        rows = float(self.row_cap)
        users = np.array([[max(self.users, 1.0)]])
        return Crowds(
            np.array([rows]),
            np.zeros(1),
            users,
            np.ones(1),
            self.users_error,
            rows,
            np.zeros((1, 1)),
            np.array([0]),
            np.array([0]),
        )


def _look_at_crowd(counts: Counts, spending: Looks, items: int, request: Request, *, choosing: bool) -> _Pilot:
    """Buy what is needed. If there is nothing to choose, looks take all of what was reserved: rounds pay for it."""
    if request.row_cap > 1:
        rows = request.seen_rows or look_at_rows(counts.sum(UsersByRows(RowHistogram.edges())).values, spending, items)
        if rows.crowds is not None:
            crowds = rows.crowds.capped(request.row_cap)
            return _pilot_by_rows(counts, spending, rows, crowds, items, request.row_cap, choosing)
        # Too few users to be seen: if the caller gave no bound, every user weighs the same.
        row_cap = request.max_rows_per_user or 1
        return _Pilot(items, row_cap, rows, *_concentration(counts, spending, items, row_cap, CONCENTRATION, 0.0))
    glance = _Pilot(items, 1, None, *_concentration(counts, spending, items, 1, GLANCE, 0.0))
    telling = max(glance.users, 1.0) * _even_distance(spending, glance, counts.items) if choosing else 0.0
    return _Pilot(items, 1, None, *_concentration(counts, spending, items, 1, CONCENTRATION, telling), telling)


def _pilot_by_rows(
    counts: Counts, spending: Looks, rows: RowHistogram, crowds: Crowds, items: int, row_cap: int, choosing: bool
) -> _Pilot:
    """Light users and heavy ones are looked at apart: those with many rows mostly have more items."""
    users = crowds.typical
    cap = max(1, round(crowds.quantile(0.5)))
    weights = users * np.minimum(crowds.sizes / cap, 1.0) ** 2
    unknown = _Pilot(items, row_cap, rows, float(users.sum()), crowds.error, _Concentration(1.0, 1.0))
    telling = float(weights.sum()) * _even_distance(spending, unknown, counts.items) if choosing else 0.0
    heavy = _concentration(counts, spending, items, cap, HEAVY, telling)[2]
    logs = np.log(crowds.sizes)
    places = [float(each @ logs / each.sum()) for each in (users, weights)]
    *counted, light = _concentration(counts, spending, items, 1, CONCENTRATION, LIGHT_LOOK_FACTOR * telling)
    apart = max(places[1] - places[0], 0.01)
    doubt = math.hypot(light.error / light.square, heavy.error / heavy.square) / apart
    trust = CONCENTRATION_POWER[1] ** 2 / (CONCENTRATION_POWER[1] ** 2 + doubt**2)
    power = trust * math.log(heavy.square / light.square) / apart + (1 - trust) * CONCENTRATION_POWER[0]
    concentration = replace(heavy, at=math.exp(places[1]), power=float(np.clip(power, -1.0, 0.0)))
    return replace(unknown, concentration=concentration, telling=telling, counted=(counted[0], counted[1]))


def _even_distance(spending: Looks, pilot: _Pilot, items: int) -> float:
    """The square distance of users from the crowd at which rounds and plain noise err the same; 1 if none is."""
    budget, plain = _allowance(spending, items), _plain_price(spending, pilot, items)
    low, high = 1 / STRAY_RANGE, 1.0

    def rounds(square: float) -> float:
        return _rounds_price(budget, replace(pilot, concentration=_Concentration(square, 0.0)), 0.0, 1 / items, items)

    if rounds(low) > plain or rounds(high) < plain:
        return 1.0
    while high > 1.1 * low:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if rounds(middle) > plain else (middle, high)
    return low


def _concentration(
    counts: Counts, spending: Looks, items: int, cap: int, look: PilotQuery, telling: float
) -> tuple[float, float, _Concentration]:
    """Users with a standard deviation, and the mean of ||N(u)||^2 / m_u^2 over them, by capped mass squared."""
    epsilon = look.fitted(items, telling, spending.guarantee.epsilon)
    sums = counts.sum(Concentration(cap))
    noisy, event = spending.laplace(look.purpose, sums.values, bound=sums.bound.l1, epsilon=epsilon)
    near, far = (noisy / UNIT).tolist()
    error = math.sqrt(2) * event.scale / UNIT
    total = max(near + far, 2 * error)
    square = min(max(near / total, 1 / counts.items), 1.0)
    return total, math.sqrt(2) * error, _Concentration(square, error * math.hypot(1 - square, square) / total)


def _prefer_rounds(counts: Counts, spending: Looks, pilot: _Pilot) -> bool:
    """Compare predicted errors, each at its own best bound; look at the centre where that could decide.

    Before any centre is known users look as far out as their norm; once centred, as sqrt(E||N/m||^2 - ||p||^2), p the
    crowd's own distribution; and no nearer than chance makes them, who draw 1/m of it with m rows.
    """
    k = counts.items
    if pilot.users < 2 * pilot.users_error:  # nobody is seen: rounds would see nothing either
        return False
    budget = _allowance(spending, k)
    plain = _plain_price(spending, pilot, k)
    if _rounds_price(budget, pilot, -pilot.concentration.error, 1 / k, k) < plain:
        return True
    most = pilot.concentration.square
    if _rounds_price(budget, pilot, most, most, k) > plain:
        return False
    square, error = _look_at_centre(counts, spending, pilot)
    least = max(square - error, 1 / k)
    # How far users are once they are centred is uncertain by both looks, within what is possible. Before them anything
    # is: half of the belief is spread evenly, half of it evenly over orders of magnitude.
    error = math.hypot(error, pilot.concentration.error)
    low, high = max(most / STRAY_RANGE, most - square - 3 * error), min(most, max(most - square, 0.0) + 3 * error)
    edges = np.geomspace(min(low, 0.99 * high), high, 13)
    own = np.sqrt(edges[1:] * edges[:-1])
    weights = np.log(edges[1:] / edges[:-1]) / math.log(STRAY_RANGE) + np.diff(edges) / most
    weights *= np.exp(-(((own - (most - square)) / error) ** 2) / 2)
    prices = [_rounds_price(budget, pilot, most - float(each), least, k) for each in own]
    expected = math.exp(float(weights @ np.log(prices) / weights.sum()))  # an error is judged by its factor
    return bool(expected < _plain_price(spending, pilot, k))


def _look_at_centre(counts: Counts, spending: Looks, pilot: _Pilot) -> tuple[float, float]:
    """||p||^2 of the crowd and its standard deviation, from Laplace noise on capped counts."""
    k = counts.items
    cap = max(1, round(pilot.crowds.quantile(0.5))) if pilot.row_cap > 1 else 1
    epsilon = CENTRE.fitted(pilot.items, pilot.telling, spending.guarantee.epsilon)
    sums = counts.sum(CappedRows(cap))
    noisy, event = spending.laplace(CENTRE.purpose, sums.values, bound=sums.bound.l1, epsilon=epsilon)
    values, deviation = noisy / UNIT, math.sqrt(2) * event.scale / UNIT
    pilot.centre = values, cap, deviation
    users, sizes = pilot.crowds.typical, pilot.crowds.sizes
    known = float((users * np.minimum(sizes / cap, 1.0)).sum())
    known_error = math.hypot(0.03 * known if pilot.row_cap > 1 else 0.0, pilot.users_error)
    own = known_error**2 / (known_error**2 + k * deviation**2)
    total = max(own * float(values.sum()) + (1 - own) * known, math.sqrt(k) * deviation / 4)
    noise, total_error = deviation / total, math.sqrt(own * k) * deviation / total
    square = min(max(float((values**2).sum()) / total**2 - k * noise**2, 1 / k), 1.0)
    # The fourth moment of Laplace noise is 6 times the square of its variance.
    error = math.sqrt(4 * square * noise**2 + 5 * k * noise**4 + 4 * square**2 * total_error**2)
    return square, error


def _plain(counts: Counts, spending: PureFinish, pilot: _Pilot, prior: Floats | None) -> Estimate:
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
    row_cap = _plain_bound(spending, pilot, k)
    sums = counts.sum(CappedRows(row_cap))
    noisy, event = spending.laplace(
        "counts by item", sums.values, bound=sums.bound.l1, epsilon=spending.remaining_epsilon()
    )
    parameters: dict[str, int | float | str] = {"branch": "laplace"}
    bias, most, total = 0.0, 0.0, None
    if pilot.row_cap == 1:
        total = pilot.users * UNIT, pilot.users_error * UNIT
    if pilot.rows is not None and pilot.rows.crowds is not None:
        crowds = pilot.rows.crowds
        above, low, high = share_above(crowds, row_cap)
        parameters |= {"rows_above_bound": above, "rows_above_bound_low": low, "rows_above_bound_high": high}
        if not pilot.given:
            moved, strange = bias_of(crowds, row_cap)
            disagreement = _measured(disagreement, pilot, noisy / UNIT, math.sqrt(2) * event.scale / UNIT, row_cap, k)
            bias = float(average_error(crowds.weights, disagreement.mean * moved + strange))
            square = disagreement.root_mean_square**2 * float(crowds.weights @ moved**2)
            most = math.sqrt(square + float(crowds.weights @ strange**2))
    elif pilot.rows is not None and not pilot.given:  # rows could not be seen, and equal weights stand in for them
        bias, most = 2 * WEIGHTING_DISTANCE * disagreement.mean, 2 * WEIGHTING_DISTANCE * disagreement.root_mean_square
    if pilot.row_cap > 1:
        parameters["max_rows_per_user"] = row_cap
    scatter = _scatter(pilot, noisy / UNIT)
    made = from_noisy_sums(
        noisy,
        event,
        parameters,
        bias=(bias, most),
        total=total,
        sampling_variance=scatter,
        row_bound=row_cap,
        public=prior,
    )
    return replace(made, users=pilot.all_users)


def _measured(
    prior: Disagreement, pilot: _Pilot, sums: Floats, deviation: float, row_cap: int, items: int
) -> Disagreement:
    """What the difference between the look at the centre, at a lower bound, and the answer says of the disagreement."""
    if pilot.centre is None or pilot.rows is None or pilot.rows.crowds is None:
        return prior
    early, cap, early_deviation = pilot.centre
    if cap >= row_cap:
        return prior
    crowds = pilot.rows.crowds
    totals = [
        max(float(each.sum()), 1.0, math.sqrt(items) * one)
        for each, one in ((early, early_deviation), (sums, deviation))
    ]
    away = early / totals[0] - sums / totals[1]
    p = np.maximum(sums / totals[1], 0.1 / items)
    one_noise = (early_deviation / totals[0]) ** 2 + (deviation / totals[1]) ** 2
    noise = one_noise * (1 + items * p**2)  # the divisors' too
    form = np.sqrt(p * (1 - np.minimum(p, 0.99)))
    moved = float(crowds.weights @ (bias_of(crowds, cap)[0] - bias_of(crowds, row_cap)[0]))
    one = math.sqrt(math.pi / 2) * moved * form / float(form.sum())
    variance = noise + np.outer(prior.values**2, one**2)
    return prior.given(-0.5 * (np.log(variance) + away**2 / variance).sum(axis=1))


def _scatter(pilot: _Pilot, sums: Floats) -> float:
    """The sampling variance of the table's own answer, summed over items: users' shares of all mass, squared, times how
    far users are from the crowd.
    """
    shares = np.maximum(sums, 0.0) / max(float(np.maximum(sums, 0.0).sum()), 1e-300)
    own = max(pilot.concentration.square - float((shares**2).sum()), 0.0)
    users, sizes = pilot.crowds.typical, pilot.crowds.sizes
    return own * float((users * sizes**2).sum() / max(float((users * sizes).sum()) ** 2, 1e-300))


def _rounds(counts: Counts, spending: Looks, pilot: _Pilot, rounds: int | None, prior: Floats | None) -> Estimate:
    rows = pilot.rows.crowds if pilot.rows is not None and pilot.row_cap > 1 else None
    rows = None if rows is None else rows.capped(pilot.row_cap)
    facts = Facts(pilot.row_cap, rows, pilot.users, pilot.users_error, pilot.concentration.square)
    allowance = _allowance(spending, counts.items)
    phase = spending.rounds() if allowance.shape == "gaussian" else spending.finish_purely()
    return replace(run_rounds(counts, Budget.of(allowance, phase), facts, rounds, prior), users=pilot.all_users)


def _allowance(spending: Looks, items: int) -> Allowance:
    """All that is left, for rounds: in mu where there is a delta, else in epsilon."""
    adjacency = spending.guarantee.adjacency
    if spending.guarantee.delta > 0:
        return Allowance(adjacency, "gaussian", spending.remaining_mu(round_coordinates(items)) * SPENDABLE)
    return Allowance(adjacency, "laplace", spending.remaining_epsilon() * SPENDABLE)


def _plain_bound(spending: PureFinish, pilot: _Pilot, items: int) -> int:
    """The contribution bound for Laplace noise: the best one, or the one that was given."""
    if pilot.given:
        return pilot.row_cap
    noise = items * spending.laplace_scale(UNIT, spending.remaining_epsilon()) / UNIT
    return best_bound(pilot.crowds, noise, Disagreement.prior().mean).rows


def _plain_price(spending: Looks, pilot: _Pilot, items: int) -> float:
    """The predicted l1 error of Laplace noise at its best bound, or at the one that was given."""
    noise = items * spending.laplace_scale(UNIT, spending.remaining_epsilon()) / UNIT
    if pilot.given:
        return noise * pilot.row_cap / float((pilot.crowds.typical * pilot.crowds.sizes).sum())
    return cost_if_known(pilot.crowds.settled, noise, Disagreement.prior().mean)


def _rounds_price(budget: Allowance, pilot: _Pilot, removed: float, square: float, items: int) -> float:
    """The predicted l1 error of rounds, where a centre takes `removed` off the mean square norm of users for their
    mass, and scales fit a crowd of ||p||^2 = square.

    Scales divide the noise over items; for Zipf laws that is worth the factor (k ||p||^2)^-0.1.
    """
    share = ROUNDS_EFFICIENCY - SEEING_COST[0] * budget.share_for(max(pilot.users, 1.0) / SEEING_COST[1])
    if share <= 0:
        return math.inf
    fitted = (items * square) ** -0.1
    noise = budget.mean_absolute * items * fitted * budget.deviation(share)
    left = 1 - removed / pilot.concentration.square

    def distance(masses: Floats, factor: float) -> Floats:
        norms = pilot.concentration.of(masses)
        chance = np.minimum(1 / masses, norms) * (1 - max(removed, 0.0)) if pilot.row_cap > 1 else norms / STRAY_RANGE
        own = np.maximum(chance + np.maximum(left * norms - chance, 0.0) * factor**2, norms / STRAY_RANGE)
        return np.sqrt(own if budget.shape == "gaussian" else np.minimum(1.0, 2 / math.pi * items * own))

    spread = Spread(DISTANCE_MIX[0], DISTANCE_MIX[1], distance)
    return cost_if_known(pilot.crowds.settled, noise, Disagreement.prior().mean, spread)
