"""Mechanisms: from private counts to an estimate, through recorded noise only."""

from __future__ import annotations

from .auto import reserve
from .discovery import DEFAULT_SHARE, DiscoveryPlan, discover, plan_discovery, rehearse
from .estimate import CONFIDENCE, Estimate
from .registry import MECHANISMS, PURE, Mechanism, check_mechanism, finish_of
from .request import Request, Weight

__all__ = [
    "CONFIDENCE",
    "DEFAULT_SHARE",
    "MECHANISMS",
    "PURE",
    "DiscoveryPlan",
    "Estimate",
    "Mechanism",
    "Request",
    "Weight",
    "check_mechanism",
    "discover",
    "finish_of",
    "plan_discovery",
    "rehearse",
    "reserve",
]
