"""Mechanisms: from private counts to an estimate, through recorded noise only."""

from __future__ import annotations

from .discovery import DEFAULT_SHARE, DiscoveryPlan, discover, open_search, plan_discovery, rehearse
from .estimate import CONFIDENCE, Estimate
from .few import estimate_few
from .looks import FOUND, pilot_reserves
from .opening import FoundByHistogram, FoundByRounds, find_items
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
    "FoundByHistogram",
    "FoundByRounds",
    "Mechanism",
    "Request",
    "Weight",
    "check_mechanism",
    "discover",
    "estimate_few",
    "expected",
    "find_items",
    "open_search",
    "pilot_reserves",
    "plan_discovery",
    "plan_opening",
    "plan_release",
    "rehearse",
]
