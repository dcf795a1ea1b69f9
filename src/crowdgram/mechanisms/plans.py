"""What a release may cost, worked out from public values before the table is read.

A ledger charges it. Mechanisms choose on the way, so there may be several ways; what was drawn in the end is one of
them, or less.
"""

from __future__ import annotations

from fractions import Fraction

from ..privacy import Cost, Guarantee, Looks, Plan, Ready, Spending, cost_of, opaque_cost
from .auto import round_coordinates
from .discovery import MOST_COORDINATES, DiscoveryPlan, plan_discovery, rehearse
from .looks import FOUND
from .opening import reserves_for
from .registry import LOOKING, MECHANISMS, PURE, finish_of
from .request import Request

__all__ = ["PURE_LEAST", "plan_opening", "plan_release"]

ROUNDED = 1 + Fraction(1, 2**38)
"""Shares of mu^2 are rounded; `remaining_mu` leaves as much room."""

PURE_LEAST = 0.25
"""Part of epsilon that a discovery must leave for Laplace noise: enough for a profile and for something to follow."""


def plan_opening(guarantee: Guarantee, mechanism: str, share: float | None) -> tuple[str, DiscoveryPlan]:
    """Which mechanism follows a discovery, and what the discovery may spend.

    "auto" is "adaptive" where the discovery leaves too little for plain Laplace noise to be a choice.
    """
    most = Request("rows", None, None, lambda _: None)  # of all requests it sets most aside

    reserves = reserves_for(guarantee, mechanism, most, FOUND)
    plan = plan_discovery(guarantee, share, finish_of(mechanism), looks=mechanism in LOOKING, reserves=reserves)
    if mechanism == "auto":
        found = rehearse(Spending(guarantee).open(), plan)
        if found.looks().remaining_epsilon() < PURE_LEAST * guarantee.epsilon:
            return plan_opening(guarantee, "adaptive", share)
    return mechanism, plan


def plan_release(
    mechanism: str, guarantee: Guarantee, request: Request, items: int | None, share: float | None = None
) -> Plan:
    """The ways that a release may take whose domain has so many items; None: they are found, for `share` of the budget.

    Guarantee: whatever the table holds, what is drawn costs at most one of the ways in every currency. A ledger checks
    that once more before it lets a release out.
    """
    ready: Ready = Spending(guarantee).open()
    if items is None:
        mechanism, opening = plan_opening(guarantee, mechanism, share)
        reserves = reserves_for(guarantee, mechanism, request, FOUND)
        ready = rehearse(Spending(guarantee).open(), opening, reserves)
    elif mechanism not in MECHANISMS:
        return Plan((opaque_cost(guarantee),), known=False)
    else:
        reserves = reserves_for(guarantee, mechanism, request, items)
    trial = ready.looks(reserves)
    ways = []
    if items is None and mechanism in LOOKING:
        ways.append(_histogram_way(trial))
    if guarantee.delta == 0.0 or mechanism in PURE or mechanism == "auto":
        ways.append(_pure_way(trial))
    if guarantee.delta > 0.0 and mechanism not in PURE:
        ways.append(_gaussian_way(trial, mechanism, items))
    return Plan(tuple(ways), frozenset(event.purpose for event in trial.reserved))


def _histogram_way(trial: Looks) -> Cost:
    """A threshold, and pure events, some of them looks, with all of epsilon."""
    opening, looks = _known(trial)
    whole = trial.guarantee.epsilon
    return Cost(
        whole,
        trial.guarantee.delta,
        pure=whole,
        finish=whole,
        finish_squared=float(Fraction(whole) ** 2 * ROUNDED),
        looks_squared=looks.looks_squared,
        outright=opening.outright,
    )


def _pure_way(trial: Looks) -> Cost:
    """The opening, all looks that may take place, and a finish that brings the sum of all epsilons to what is left."""
    opening, looks = _known(trial)
    whole = trial.remaining_epsilon()
    return Cost(
        trial.guarantee.epsilon,
        trial.guarantee.delta,
        pure=whole,
        finish=whole,
        finish_squared=float(Fraction(whole) ** 2 * ROUNDED),
        looks_squared=looks.looks_squared,
        mu_squared=opening.mu_squared,
        dimension=opening.dimension,
        outright=opening.outright,
    )


def _gaussian_way(trial: Looks, mechanism: str, items: int | None) -> Cost:
    """The opening, all looks that may take place, and Gaussian rounds that divide what all of them together leave."""
    opening, looks = _known(trial)
    # How many items are found is not known yet: the fewest leave the most, and the most have the most coordinates.
    fewest, most = (1, MOST_COORDINATES) if items is None else (items, items)
    if mechanism != "gaussian":
        fewest, most = round_coordinates(fewest), round_coordinates(most)
    rounds = Fraction(trial.remaining_mu(fewest)) ** 2
    return Cost(
        trial.guarantee.epsilon,
        trial.guarantee.delta,
        pure=looks.pure,
        looks_squared=looks.looks_squared,
        mu_squared=float((Fraction(opening.mu_squared) + rounds) * ROUNDED),
        dimension=opening.dimension + most,
        outright=opening.outright,
    )


def _known(trial: Looks) -> tuple[Cost, Cost]:
    """What the opening costs, and what the looks may."""
    looks = cost_of(trial.reserved, trial.guarantee, {event.purpose for event in trial.reserved})
    return cost_of(trial.events, trial.guarantee), looks
