"""Mechanisms: from private counts to an estimate, through recorded noise only."""

from __future__ import annotations

from .discovery import DEFAULT_SHARE, DiscoveryPlan, discover, open_discovery, plan_discovery, rehearse
from .estimate import CONFIDENCE, Estimate
from .few import estimate_few
from .looks import FOUND, reserve_pilot
from .opening import Opened, find_items
from .plans import PURE_LEAST, plan_opening, plan_release
from .registry import MECHANISMS, PURE, Mechanism, check_mechanism
from .request import Request, Weight
from .shrink import expected

__all__ = [
    "CONFIDENCE",
    "DEFAULT_SHARE",
    "FOUND",
    "MECHANISMS",
    "PURE",
    "PURE_LEAST",
    "DiscoveryPlan",
    "Estimate",
    "Mechanism",
    "Opened",
    "Request",
    "Weight",
    "check_mechanism",
    "discover",
    "estimate_few",
    "expected",
    "find_items",
    "open_discovery",
    "plan_discovery",
    "plan_opening",
    "plan_release",
    "rehearse",
    "reserve_pilot",
]
