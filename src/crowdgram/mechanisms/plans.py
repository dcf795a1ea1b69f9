"""What a release may cost, worked out from public values before the table is read.

A ledger charges it. Mechanisms choose on the way, so there may be several ways; what was drawn in the end is one of
them, or less.
"""

from __future__ import annotations

from fractions import Fraction

from ..privacy import Cost, Guarantee, Plan, Spending, cost_of, opaque_cost
from .auto import reserve, round_coordinates
from .profile import reserve_profile
from .registry import PURE
from .request import Request

__all__ = ["plan_release"]

ROUNDED = 1 + Fraction(1, 2**38)
"""Shares of mu^2 are rounded; `remaining_mu` leaves as much room."""


def plan_release(mechanism: str, guarantee: Guarantee, request: Request, items: int) -> Plan:
    """The ways that a release of a public domain with this many items may take.

    Guarantee: whatever the table holds, what is drawn costs at most one of the ways in every currency. A ledger checks
    that once more before it lets a release out.
    """
    trial = Spending(guarantee)
    if mechanism == "auto":
        reserve(trial, items, rows=request.buys_rows)
    elif mechanism == "adaptive":
        reserve_profile(trial, rows=request.buys_rows)
    elif mechanism in ("laplace", "gaussian", "sample-one"):
        if request.buys_rows:
            reserve_profile(trial, rows=True)
    else:
        return Plan((opaque_cost(guarantee),), known=False)
    ways = []
    if guarantee.delta == 0.0 or mechanism in PURE or mechanism == "auto":
        ways.append(_pure_way(trial))
    if guarantee.delta > 0.0 and mechanism not in PURE:
        coordinates = items if mechanism == "gaussian" else round_coordinates(items)
        ways.append(_gaussian_way(trial, coordinates))
    return Plan(tuple(ways), frozenset(event.purpose for event in trial.reserved))


def _pure_way(trial: Spending) -> Cost:
    """All looks that may take place, and a finish that brings the sum of all epsilons to the whole."""
    whole, square = trial.guarantee.epsilon, float(Fraction(trial.guarantee.epsilon) ** 2 * ROUNDED)
    looks = cost_of(trial.reserved, trial.guarantee, {event.purpose for event in trial.reserved}).looks_squared
    return Cost(whole, trial.guarantee.delta, whole, whole, square, looks)


def _gaussian_way(trial: Spending, coordinates: int) -> Cost:
    """All looks that may take place, and Gaussian rounds that divide what all of them together leave."""
    looks = cost_of(trial.reserved, trial.guarantee, {event.purpose for event in trial.reserved})
    mu_squared = float(Fraction(trial.remaining_mu(coordinates)) ** 2 * ROUNDED)
    return Cost(
        trial.guarantee.epsilon,
        trial.guarantee.delta,
        pure=looks.pure,
        looks_squared=looks.looks_squared,
        mu_squared=mu_squared,
        dimension=coordinates,
    )
