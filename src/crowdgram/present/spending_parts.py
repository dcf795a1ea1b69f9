"""Where the budget of a release went: the part of each draw of noise, and of what the draws are for.

Pure draws (Laplace noise, private choices) add up by epsilon. If there is Gaussian noise, draws add up by the squares
of mu; a pure draw of epsilon then counts as Gaussian noise that hides as much, mu^2 = (pi/2) epsilon^2
(docs/proofs/ledger.md). Parts are for readers: what is promised is the guarantee.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from ..privacy import Event, ExponentialEvent, GaussianEvent, LaplaceEvent, SelectionEvent, ThresholdEvent
from ..privacy.accounting import gaussian_event_mu
from ..privacy.losses import pure_epsilon

__all__ = ["Part", "mu_of", "parts_of_budget", "pure_epsilon_of", "shares_of_events"]

_FINDING, _MEASURING, _PILOT = "Finding the items", "Measuring the items", "Pilot queries"
_ABOUT = {
    _FINDING: "which items enough users have",
    _MEASURING: "the figures of this page",
    _PILOT: "how many rows or items users have, and how alike users are, to choose what follows",
}
_PURPOSES = (
    (_FINDING, r"items, round \d+|threshold|items of users"),
    (
        _PILOT,
        r"users by (rows|items|half)|users with enough|number of users|round \d+: users by",
    ),
)
"""By how their purposes begin; all other draws measure the items."""


@dataclass(frozen=True)
class Part:
    """What one kind of work took of the budget. draws: how often noise was drawn for it."""

    name: str
    about: str
    share: float
    draws: int


def parts_of_budget(events: Sequence[Event]) -> list[Part]:
    """The budget by kind of work, in the order in which it is done; shares sum to 1."""
    shares = shares_of_events(events)
    found = {name: [0.0, 0] for name in (_PILOT, _FINDING, _MEASURING)}
    for event, share in zip(events, shares, strict=True):
        own = found[_kind(event.purpose)]
        own[0] += share
        own[1] += 1
    return [Part(name, _ABOUT[name], share, int(draws)) for name, (share, draws) in found.items() if draws]


def shares_of_events(events: Sequence[Event]) -> list[float]:
    """The part of each draw; a threshold has none, as it costs a part of delta alone."""
    pure = all(isinstance(event, LaplaceEvent | ExponentialEvent | ThresholdEvent) for event in events)
    costs = [_cost(event, pure=pure) for event in events]
    whole = math.fsum(costs) or 1.0
    return [cost / whole for cost in costs]


def mu_of(events: Sequence[Event]) -> float:
    """mu of all Gaussian noise together: the root of the sum of squares; 0 without any."""
    return math.sqrt(math.fsum(gaussian_event_mu(event) ** 2 for event in events if isinstance(event, GaussianEvent)))


def pure_epsilon_of(events: Sequence[Event]) -> float:
    """The sum of the epsilons of all pure draws."""
    return math.fsum(
        float(pure_epsilon(event)) for event in events if not isinstance(event, GaussianEvent | ThresholdEvent)
    )


def _cost(event: Event, *, pure: bool) -> float:
    if isinstance(event, ThresholdEvent):
        return 0.0
    if isinstance(event, GaussianEvent):
        return gaussian_event_mu(event) ** 2
    if isinstance(event, LaplaceEvent | ExponentialEvent):
        epsilon = float(pure_epsilon(event))
        return epsilon if pure else math.pi / 2 * epsilon**2
    own = event.epsilon if isinstance(event, SelectionEvent) else event.sensitivity / event.scale
    return event.changed * math.pi / 2 * own**2


def _kind(purpose: str) -> str:
    return next((name for name, pattern in _PURPOSES if re.match(pattern, purpose)), _MEASURING)
