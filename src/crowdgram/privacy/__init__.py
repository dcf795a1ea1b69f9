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
from crowdgram.privacy.guarantee import Adjacency, Guarantee
from crowdgram.privacy.noise import add_discrete_gaussian, add_discrete_laplace, choose_each, fresh_salt
from crowdgram.privacy.spending import Spending

__all__ = [
    "Adjacency",
    "Event",
    "ExponentialEvent",
    "GaussianEvent",
    "Guarantee",
    "LaplaceEvent",
    "SelectionEvent",
    "SparseLaplaceEvent",
    "Spending",
    "ThresholdEvent",
    "add_discrete_gaussian",
    "add_discrete_laplace",
    "check",
    "choose_each",
    "delta_spent",
    "epsilon_spent",
    "event_from_dict",
    "event_to_dict",
    "fresh_salt",
    "gaussian_sigma",
    "laplace_scale",
    "remaining_epsilon",
    "remaining_mu",
    "selection_epsilon",
    "to_dp_event",
]
