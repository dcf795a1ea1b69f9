"""How to split what is left over the rounds to come.

A round's noise is proportional to the radius, and the radius to how far users are from the centre: r = sqrt(own^2 +
error^2), where `own` is how far they stray from the crowd and `error` how far the centre is from it. A cheap round
first makes the error smaller and the last round's radius with it. Which shares are best follows from a few numbers;
this file tries them out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

__all__ = ["Outlook", "next_share", "reachable"]

MENU = (0.02, 0.04, 0.08, 0.16, 0.3)
"""Shares of what is left that a round may take if it is not the last."""

WORTHWHILE = 1.03
"""A further round must promise this factor: predictions are not exact."""


@dataclass(frozen=True)
class Outlook:
    """What the plan rests on. Distances are relative to a full user.

    own: how far users are from the crowd. error: how far the centre is. contraction: the error of a centre made by a
    round with all of the budget and radius 1. power: noise falls with the share to this power (1/2 for Gaussian
    noise, 1 for Laplace).
    """

    own: float
    error: float
    contraction: float
    power: float


AHEAD = 6
"""Rounds looked ahead: every one multiplies the work by the length of the menu, and the first few decide."""


def next_share(outlook: Outlook, left: float, rounds: int) -> float:
    """The share of `left` to spend on the next of at most `rounds` rounds; 1 means that it is the last."""
    return _best(outlook.own, outlook.error, outlook.contraction, outlook.power, left, min(rounds, AHEAD))[1]


def reachable(outlook: Outlook, rounds: int) -> float:
    """The noise that a whole budget can reach, relative to one round with all of it and radius 1."""
    return _best(outlook.own, outlook.error, outlook.contraction, outlook.power, 1.0, min(rounds, AHEAD))[0]


def _best(own: float, error: float, contraction: float, power: float, left: float, rounds: int) -> tuple[float, float]:
    """The smallest noise that can be reached (per unit of budget and mass), and the share that starts towards it."""
    radius = math.hypot(own, error)
    best = (radius / left**power, 1.0)
    if rounds <= 1:
        return best
    for share in MENU:
        spent = share * left
        here = radius / spent**power
        after = 1 / math.hypot(1 / error, 1 / (contraction * here)) if error > 0 else contraction * here
        later = _best(own, min(after, error or after), contraction, power, left - spent, rounds - 1)[0]
        reached = 1 / math.hypot(1 / later, 1 / here)
        if reached * WORTHWHILE < best[0]:
            best = (reached, share)
    return best
