"""What a release promises, and whether its budget is enough for it: before anything is opened."""

from __future__ import annotations

from ..errors import InvalidArgument
from ..mechanisms import (
    MOST_RESERVED,
    PURE_LEAST,
    Costed,
    DiscoveryPlan,
    Mechanism,
    Searching,
    pilot_reserves,
    rehearse,
)
from ..privacy import Guarantee, Spending
from .budgets import MIN_EPSILON
from .query import Query

__all__ = ["promise_of"]

MIN_MU = 1e-5
"""Below this and MIN_EPSILON, the result would be all noise, and some of the noise would not fit 64-bit integers."""

USUAL_EPSILON, USUAL_DELTA = 0.01, 1e-12
"""With at least as much of both, looks leave far more than MIN_MU. To compute how much takes 0.02 CPU s."""


def promise_of(query: Query) -> tuple[Guarantee, tuple[Searching, DiscoveryPlan] | None]:
    """What a release promises; if items are to be found, what a search may spend and what follows it. A budget that is
    too small is refused. Nothing is opened.
    """
    if query.missing:
        return query.guarantee, _plan(query)
    _check_affordable(query.guarantee, query.mechanism)
    return query.mechanism.promised(query.guarantee), None


def mu_after_all_looks(guarantee: Guarantee) -> float:
    """What Gaussian noise has if all pilot queries are drawn."""
    # Fewer items reserve more, and 1 item the most.
    reserves = pilot_reserves(guarantee, items=1, rows=True, again=True)
    return Spending(guarantee).open().looks(reserves).mu_after_list(1)


def _plan(query: Query) -> tuple[Searching, DiscoveryPlan]:
    """What a search may spend and which mechanism runs on the rest; refuse what leaves nothing. No row is read."""
    guarantee, mechanism = query.guarantee, query.mechanism
    assert isinstance(mechanism, Searching)
    _check_affordable(guarantee, None)
    follows, plan = mechanism.search(guarantee, query.discovery_share)
    # What a pure finish has left does not depend on looks that may never take place, and is more than all of them.
    reserves = [] if follows.pure else follows.reserves(guarantee, MOST_RESERVED, None)
    found = rehearse(Spending(guarantee).open(), plan, reserves).looks()
    if follows.pure:
        enough = found.remaining_epsilon() >= PURE_LEAST * guarantee.epsilon
    else:
        enough = found.remaining_mu(1) >= MIN_MU
    if plan.mu < MIN_MU or not enough:
        raise InvalidArgument(
            f"epsilon={guarantee.epsilon:g}, delta={guarantee.delta:g}: Discover(share={plan.share:g}) leaves nothing "
            f"for mechanism={mechanism.name!r}. Give a larger epsilon or delta, another share, or a public domain.",
            argument="epsilon",
        )
    return follows, plan


def _check_affordable(guarantee: Guarantee, mechanism: Costed | None) -> None:
    """Refuse, before any row is read, a budget so small that its noise would not fit 64-bit integers.

    mechanism: what draws Gaussian noise by all of it; None if a search comes first.
    """
    given = f"epsilon={guarantee.epsilon:g}, delta={guarantee.delta:g}"
    if guarantee.epsilon < MIN_EPSILON:
        raise InvalidArgument(
            f"{given}: needs an epsilon of at least {MIN_EPSILON:g}; below, all is noise. Try epsilon=1.",
            argument="epsilon",
        )
    usual = guarantee.epsilon >= USUAL_EPSILON and guarantee.delta >= USUAL_DELTA
    if mechanism is None or usual or not mechanism.promised(guarantee).delta > 0.0:
        return
    if mu_after_all_looks(guarantee) < MIN_MU:
        instead = "use mechanism='laplace'" if isinstance(mechanism, Mechanism) else "delta=0"
        raise InvalidArgument(
            f"{given}: leaves nothing for mechanism={mechanism.name!r}. Give a larger epsilon, a larger delta, "
            f"such as 1e-6, or {instead}.",
            argument="epsilon",
        )
