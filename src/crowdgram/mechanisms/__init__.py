"""Mechanisms: from private counts to an estimate, through recorded noise only."""

from __future__ import annotations

from .auto import reserve
from .discovery import DEFAULT_SHARE, DiscoveryPlan, discover, plan_discovery, rehearse
from .estimate import CONFIDENCE, Estimate
from .plans import PURE_LEAST, plan_opening, plan_release
from .registry import MECHANISMS, PURE, Mechanism, check_mechanism
from .request import Request, Weight
from .shrink import expected

__all__ = [
    "CONFIDENCE",
    "DEFAULT_SHARE",
    "MECHANISMS",
    "PURE",
    "PURE_LEAST",
    "DiscoveryPlan",
    "Estimate",
    "Mechanism",
    "Request",
    "Weight",
    "check_mechanism",
    "discover",
    "expected",
    "plan_discovery",
    "plan_opening",
    "plan_release",
    "rehearse",
    "reserve",
]
