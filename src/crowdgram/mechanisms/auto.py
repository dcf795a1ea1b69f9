"""The default mechanism: profile the crowd, choose by predicted error, estimate.

Plain Laplace noise with a chosen cap wins where items are few or users have few distinct items; adaptive rounds win
where users agree with the crowd, or have many items. Which it is follows from the profile, and where the profile
cannot tell (users who may agree closely over few items look like users who do not, before a centre is known), from a
closer look.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..privacy import Spending
from ..tables import UNIT, Counts, l1_sum
from .cost import DISAGREEMENT, best_radius
from .estimate import Estimate, from_noisy_sums
from .histograms import Crowding
from .measurements import agreed
from .profile import Profile, buy_profile, look_again, look_closer, reserve_profile
from .request import Request
from .rounds import MAX_ROUNDS, Budget, run_rounds
from .row_cap import CapCost, best_row_cap
from .schedule import Outlook, reachable

__all__ = ["adaptive", "auto", "reserve", "round_coordinates"]

PROBE_PURPOSE = "a closer look, for the choice"
PROBE_MOST, PROBE_LEAST = 0.025, 0.003
"""Parts of epsilon for the closer look, by how large the crowd is."""
PROBE_FEW_ITEMS = 0.06
"""... and at most where items are few: then even a few hundred users can be served, if the choice is right."""

CLEARLY = 0.8
"""Rounds must be predicted to cost this factor of plain Laplace noise to be preferred on the closer look's word."""
MILD = 2.0
"""Rounds that can lose this much at most may be tried on a weaker promise: they can win by far more."""

DOUBTS = 1.0
"""Standard errors of the closer look that users may be given credit for."""

SPENDABLE = 1 - 1e-9
"""Of a pure budget that is divided into shares: the sum of rounded parts must not exceed it."""


def auto(counts: Counts, spending: Spending, request: Request) -> Estimate:
    """Whichever of plain Laplace noise and adaptive rounds is predicted to err less.

    Guarantee: the pure events (profile, closer look) are reserved by public values before the table is looked at;
    the choice and all that follows depends on noisy values; rounds divide what `remaining_mu` leaves when all of the
    reserve is spent, and a plain finish spends what is left of epsilon. That is the situation of Theorem 4 in
    docs/proofs/accounting.md.
    """
    reserve(spending, counts.items, rows=request.buys_rows)
    profile, crowd = _profile(counts, spending, request)
    request.report("estimating")
    if profile.blind:
        profile, crowd = look_closer(counts, spending, profile, PROBE_PURPOSE, _probe_most(counts.items))
    choice = _choose(counts, spending, profile, crowd)
    if choice.rounds:
        return _rounds(counts, spending, profile, crowd, request)
    return _plain(counts, spending, profile, choice.between)


def adaptive(counts: Counts, spending: Spending, request: Request) -> Estimate:
    """Adaptive rounds, without choosing."""
    reserve_profile(spending, rows=request.buys_rows)
    profile, crowd = _profile(counts, spending, request)
    request.report("estimating")
    return _rounds(counts, spending, profile, crowd, request)


def reserve(spending: Spending, items: int, *, rows: bool = True) -> None:
    """Set aside all that `auto` may spend before it is known which way it goes."""
    reserve_profile(spending, rows=rows)
    spending.reserve(PROBE_PURPOSE, bound=UNIT, epsilon=_probe_most(items) * spending.guarantee.epsilon)


def round_coordinates(items: int) -> int:
    """How many coordinates of Gaussian noise rounds may draw in all: k + 1 a round and 44 a look, with room."""
    return 16 * items + 1000


@dataclass(frozen=True)
class _Decision:
    """Whether to run rounds, and by how much users differ (the variance that chance does not explain), where known."""

    rounds: bool
    between: float | None


def _choose(counts: Counts, spending: Spending, profile: Profile, crowd: Crowding) -> _Decision:
    """Compare predicted costs, each at its own best cap or radius; look closer where centring could decide.

    Before any centre is known users look as far out as their norm; once centred, as sqrt(E||N/m||^2 - ||p||^2), p the
    crowd's own distribution. The first estimate is for ||p||^2 alone, and that needs little.
    """
    k = counts.items
    budget = _round_budget(spending, k)
    cap = _plain_cost(spending, profile, k)
    uncentred = _uncentred_cost(budget, crowd, k)
    if profile.blind:
        return _Decision(budget.shape == "gaussian" and _few_agree(spending, budget, profile, k), None)
    if uncentred < cap.cost:
        return _Decision(True, None)
    square = profile.mean_square_concentration
    by_chance = profile.inverse_mean_rows
    best = uncentred * math.sqrt(min(1.0, 0.5 * by_chance / square))
    if budget.shape == "laplace":
        best = _pure_rounds_cost(cap, k, 0.5 * by_chance)
    if best > CLEARLY * cap.cost:
        return _Decision(False, None)
    crowd_square, doubt = _probe(counts, spending, profile, cap, square)
    excess = square - (crowd_square + (1 - crowd_square) * profile.mean_inverse_rows)  # what chance does not explain
    chance = (1 - crowd_square) * by_chance
    own, least_own = max(excess, 0.0) + chance, max(excess - DOUBTS * doubt, 0.0) + chance
    cap = _plain_cost(spending, profile, k)

    def centred(variance: float) -> float:
        if budget.shape == "laplace":
            return _pure_rounds_cost(cap, k, max(variance, 1e-9))
        return uncentred * math.sqrt(min(1.0, max(variance, 1e-9) / square))

    promising = centred(own) < CLEARLY * cap.cost
    if budget.shape == "gaussian":
        # A try that can lose by a factor must promise to win by as much.
        loss = max(uncentred / cap.cost, 1.0)
        tolerable, wanted = loss < MILD, min(CLEARLY, 1 / loss)
    else:
        tolerable, wanted = profile.rows is not None, CLEARLY
    possible = tolerable and centred(least_own) < wanted * cap.cost
    return _Decision(promising or possible, max(excess, 0.0))


def _few_agree(spending: Spending, budget: Budget, profile: Profile, items: int) -> bool:
    """Whether a crowd too small for histograms looks close to some common distribution.

    The only centre that needs no estimate is the uniform distribution, from which users are sqrt(E||N/m||^2 - 1/k)
    away. A better centre is nearer: half of that square is taken to be the centre's own. Not seen well: no.
    """
    if not profile.barely_seen:
        return False
    radius = math.sqrt(max(profile.mean_square_concentration - 1 / items, 0.0) / 2)
    plain = spending.laplace_scale(UNIT, spending.remaining_epsilon()) / UNIT
    return budget.mean_absolute * budget.deviation(1.0) * radius < plain


def _probe(counts: Counts, spending: Spending, profile: Profile, cap: CapCost, largest: float) -> tuple[float, float]:
    """||p||^2 of the crowd, and a standard error, from Laplace noise on capped counts for a small part of epsilon.

    The error depends on ||p||^2 itself, which is at most `largest`, what it is if users agree: half-way is taken.
    """
    k, epsilon = counts.items, spending.guarantee.epsilon
    expected = _capped_mass(profile, cap.row_cap)
    least = spending.laplace_scale(UNIT, 1.0) / UNIT * 140 / max(expected, 1.0)
    part = min(PROBE_MOST * epsilon, max(PROBE_LEAST * epsilon, least))
    noisy, event = spending.laplace(PROBE_PURPOSE, l1_sum(counts, cap.row_cap), bound=UNIT, epsilon=part)
    values = noisy / UNIT
    deviation = math.sqrt(2) * event.scale / UNIT
    known = 0.15 if profile.equal or profile.rows is not None else 1.0  # rows may be far below a given cap
    total, total_error = agreed(float(values.sum()), math.sqrt(k) * deviation, expected, known * expected)
    total = max(total, (1 - known) * 0.5 * expected, math.sqrt(k) * deviation)
    noise, total_error = deviation / total, total_error / total
    square = float(((values / total) ** 2).sum()) - k * noise**2
    square = min(max(square, 1 / k), 1.0)
    middle = max(square, (square + largest) / 2)
    # The fourth moment of Laplace noise is 6 times the square of its variance.
    doubt = 2 * math.sqrt(middle) * noise + math.sqrt(5 * k) * noise**2 + 2 * total_error * middle
    return square, doubt


def _plain(counts: Counts, spending: Spending, profile: Profile, between: float | None) -> Estimate:
    """Laplace noise on capped counts with all that is left."""
    profile = look_again(counts, spending, profile)
    cap = _plain_cost(spending, profile, counts.items)
    sums = l1_sum(counts, cap.row_cap)
    noisy, event = spending.laplace("counts by item", sums, bound=UNIT, epsilon=spending.remaining_epsilon())
    shares = np.maximum(noisy, 0) / max(float(np.maximum(noisy, 0).sum()), 1.0)
    drawn = 1 - float((shares**2).sum())
    if between is None:
        between = max(profile.mean_square_concentration - (1 - drawn) - drawn * profile.mean_inverse_rows, 0.0)
    return from_noisy_sums(
        noisy,
        event,
        {"branch": "laplace", **({} if profile.equal else {"max_rows_per_user": cap.row_cap})},
        bias=cap.bias,
        reweighted=_reweighted(profile),
        sampling_variance=profile.scatter(between, drawn),
        moved_variance=0.0 if profile.rows is None else profile.scatter(between, drawn, cap.row_cap),
    )


def _rounds(counts: Counts, spending: Spending, profile: Profile, crowd: Crowding, request: Request) -> Estimate:
    budget = _round_budget(spending, counts.items)
    return run_rounds(counts, budget, profile, crowd, request.rounds, _reweighted(profile))


def _reweighted(profile: Profile) -> float:
    """How much equal weights may change an answer by rows, in sampling errors, where rows could not be seen."""
    return 0.0 if profile.unseen is None else profile.unseen.unevenness(profile.users)


def _round_budget(spending: Spending, items: int) -> Budget:
    """All that is left, for rounds: in mu where there is a delta, else in epsilon."""
    if spending.guarantee.delta > 0:
        return Budget(spending, "gaussian", spending.remaining_mu(round_coordinates(items)))
    return Budget(spending, "laplace", spending.remaining_epsilon() * SPENDABLE)


def _probe_most(items: int) -> float:
    """The part of epsilon that a closer look may cost at most."""
    return min(PROBE_FEW_ITEMS, max(PROBE_MOST, 2 / items))


def _profile(counts: Counts, spending: Spending, request: Request) -> tuple[Profile, Crowding]:
    request.report("profiling the crowd")
    return buy_profile(
        counts,
        spending,
        equal=request.weight == "users",
        row_cap=request.max_rows_per_user,
        seen_rows=request.seen_rows,
    )


def _plain_cost(spending: Spending, profile: Profile, items: int) -> CapCost:
    noise = items * spending.laplace_scale(UNIT, spending.remaining_epsilon()) / UNIT
    if profile.rows is None:
        return CapCost.without_bias(profile.row_cap, noise / max(profile.users, 1.0))
    return best_row_cap(profile.rows, noise)


def _uncentred_cost(budget: Budget, crowd: Crowding, items: int) -> float:
    noise = budget.mean_absolute * items * budget.deviation(1.0)
    if budget.shape == "laplace":
        return noise / crowd.total_mass
    return best_radius(crowd, noise, DISAGREEMENT).cost


def _pure_rounds_cost(cap: CapCost, items: int, variance: float) -> float:
    """Centred l1 rounds, for users whose squared l2 distance from the crowd is `variance`: in l1 at most sqrt(k
    variance).

    In units of a typical user, who is 1 from the origin: a plain round with all of the budget then costs what the
    best cap does.
    """
    own = min(1.0, math.sqrt(2 / math.pi * items * variance))
    return cap.noise * reachable(Outlook(own, 1.0, cap.noise, 1.0), MAX_ROUNDS)


def _capped_mass(profile: Profile, row_cap: int) -> float:
    """Total mass of the crowd, in users of `row_cap` rows."""
    if profile.rows is None:
        return profile.users
    return float((profile.rows.users * np.minimum(profile.rows.rows, row_cap)).sum() / row_cap)
