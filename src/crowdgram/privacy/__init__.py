"""Guarantees, the noise that keeps them and the accounting that checks them."""

from __future__ import annotations

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
from crowdgram.privacy.filters import Cost, Filter, Plan, cost_of, opaque_cost
from crowdgram.privacy.guarantee import Adjacency, Guarantee
from crowdgram.privacy.ledger import Entry, Ledger, check_label
from crowdgram.privacy.noise import (
    add_discrete_gaussian,
    add_discrete_laplace,
    check_sampler,
    choose_each,
    fresh_salt,
)
from crowdgram.privacy.spending import Spending

__all__ = [
    "Adjacency",
    "Cost",
    "Entry",
    "Event",
    "ExponentialEvent",
    "Filter",
    "GaussianEvent",
    "Guarantee",
    "LaplaceEvent",
    "Ledger",
    "Plan",
    "SelectionEvent",
    "SparseLaplaceEvent",
    "Spending",
    "ThresholdEvent",
    "add_discrete_gaussian",
    "add_discrete_laplace",
    "check",
    "check_label",
    "check_sampler",
    "choose_each",
    "cost_of",
    "delta_spent",
    "epsilon_spent",
    "event_from_dict",
    "event_to_dict",
    "fresh_salt",
    "gaussian_sigma",
    "laplace_scale",
    "opaque_cost",
    "remaining_epsilon",
    "remaining_mu",
    "selection_epsilon",
    "to_dp_event",
]
