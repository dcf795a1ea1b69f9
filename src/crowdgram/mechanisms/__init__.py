"""Mechanisms: from private counts to an estimate, through recorded noise only."""

from __future__ import annotations

from .auto import Adaptive, Auto
from .baselines import Gaussian, Laplace, SampleOne
from .discovery import DEFAULT_SHARE, DiscoveryPlan, discover, open_search, plan_discovery, rehearse
from .estimate import CONFIDENCE, Estimate
from .few import estimate_few
from .looks import FOUND, pilot_reserves
from .mechanism import MOST_RESERVED, PURE_LEAST, Discovering, Mechanism, check_whole
from .opening import FoundByHistogram, FoundByRounds, find_items
from .request import Request, Weight
from .shrink import expected

__all__ = [
    "CONFIDENCE",
    "DEFAULT_SHARE",
    "FOUND",
    "MOST_RESERVED",
    "PURE_LEAST",
    "Adaptive",
    "Auto",
    "Discovering",
    "DiscoveryPlan",
    "Estimate",
    "FoundByHistogram",
    "FoundByRounds",
    "Gaussian",
    "Laplace",
    "Mechanism",
    "Request",
    "SampleOne",
    "Weight",
    "check_whole",
    "discover",
    "estimate_few",
    "expected",
    "find_items",
    "open_search",
    "pilot_reserves",
    "plan_discovery",
    "rehearse",
]
