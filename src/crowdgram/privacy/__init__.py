"""Guarantees, the noise that keeps them and the accounting that checks them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crowdgram.later import load_later
from crowdgram.privacy.accounting import (
    check,
    delta_spent,
    epsilon_spent,
    gaussian_sigma,
    laplace_scale,
    remaining_epsilon,
    remaining_mu,
    selection_epsilon,
)
from crowdgram.privacy.events import (
    Event,
    ExponentialEvent,
    GaussianEvent,
    LaplaceEvent,
    SelectionEvent,
    SparseLaplaceEvent,
    ThresholdEvent,
    event_from_dict,
    event_to_dict,
    to_dp_event,
)
from crowdgram.privacy.guarantee import Adjacency, Guarantee
from crowdgram.privacy.noise import EXACT, OPENDP, Labels, Sampler, check_sampler
from crowdgram.privacy.spending import (
    AnyFinish,
    Found,
    Looks,
    Opening,
    PureFinish,
    PureStart,
    Ready,
    Reserve,
    Rounds,
    Search,
    SearchRounds,
    Spending,
)

if TYPE_CHECKING:
    from crowdgram.privacy.filters import Cost, Filter, Plan, cost_of, opaque_cost
    from crowdgram.privacy.ledger import Entry, Ledger, LedgerHead

__all__ = [
    "EXACT",
    "OPENDP",
    "Adjacency",
    "AnyFinish",
    "Cost",
    "Entry",
    "Event",
    "ExponentialEvent",
    "Filter",
    "Found",
    "GaussianEvent",
    "Guarantee",
    "Labels",
    "LaplaceEvent",
    "Ledger",
    "LedgerHead",
    "Looks",
    "Opening",
    "Plan",
    "PureFinish",
    "PureStart",
    "Ready",
    "Reserve",
    "Rounds",
    "Sampler",
    "Search",
    "SearchRounds",
    "SelectionEvent",
    "SparseLaplaceEvent",
    "Spending",
    "ThresholdEvent",
    "check",
    "check_sampler",
    "cost_of",
    "delta_spent",
    "epsilon_spent",
    "event_from_dict",
    "event_to_dict",
    "gaussian_sigma",
    "laplace_scale",
    "opaque_cost",
    "remaining_epsilon",
    "remaining_mu",
    "selection_epsilon",
    "to_dp_event",
]

# What a ledger needs, such as SQLite: most releases have none.
__getattr__ = load_later(
    __name__,
    {
        "Cost": "filters",
        "Entry": "ledger",
        "Filter": "filters",
        "Ledger": "ledger",
        "LedgerHead": "ledger",
        "Plan": "filters",
        "cost_of": "filters",
        "opaque_cost": "filters",
    },
)
