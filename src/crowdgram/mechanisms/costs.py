"""What each way to finish a release may cost, worked out from public values before the table is read."""

from __future__ import annotations

import math
from fractions import Fraction

from ..privacy import Cost, Looks, cost_of
from .discovery import MOST_ITEMS_OF_A_TABLE

__all__ = ["gaussian_way", "histogram_way", "items_between", "pure_way"]

ROUNDED = 1 + Fraction(1, 2**38)
"""Shares of mu^2 are rounded; `remaining_mu` leaves as much room."""


def histogram_way(trial: Looks) -> Cost:
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


def pure_way(trial: Looks) -> Cost:
    """The opening, all looks that may take place, and a finish that brings the sum of all epsilons to what is left."""
    opening, looks = _known(trial)
    # Rounded down here; with looks drawn, and rounded down again, the sum of all may lie a unit above that.
    whole = min(math.nextafter(trial.remaining_epsilon(), math.inf), trial.guarantee.epsilon)
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


def gaussian_way(trial: Looks, fewest: int, most: int) -> Cost:
    """The opening, all looks that may take place, and Gaussian rounds with what is left before the first of them: the
    more looks are drawn, the less rounds have.

    They have from `fewest` to `most` coordinates: the fewest leave the most.
    """
    opening, looks = _known(trial)
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


def items_between(items: int | None) -> tuple[int, int]:
    """The fewest and the most items there may be; None: they are found."""
    return (1, MOST_ITEMS_OF_A_TABLE) if items is None else (items, items)


def _known(trial: Looks) -> tuple[Cost, Cost]:
    """What the opening costs, and what the looks may."""
    looks = cost_of(trial.reserved, trial.guarantee, {event.purpose for event in trial.reserved})
    return cost_of(trial.events, trial.guarantee), looks
