"""Mechanisms: from private counts to an estimate, through recorded noise only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..later import load_later
from .auto import Adaptive, Auto
from .baselines import Gaussian, Laplace, SampleOne
from .discovery import DEFAULT_SHARE, Discover, DiscoveryPlan, discover, open_search, plan_discovery, rehearse
from .estimate import CONFIDENCE, Estimate
from .mechanism import MOST_RESERVED, PURE_LEAST, Costed, Discovering, Mechanism, Searching, check_whole
from .pilot_queries import pilot_reserves
from .prior import Prior
from .request import Request, Weight
from .shrink import expected, posteriors

if TYPE_CHECKING:
    from .partition_selection import FoundByHistogram, FoundByRounds, find_items
    from .reach import ItemUsers
    from .reach_estimate import ReachEstimate
    from .single_histogram import estimate_from_histogram

__all__ = [
    "CONFIDENCE",
    "DEFAULT_SHARE",
    "MOST_RESERVED",
    "PURE_LEAST",
    "Adaptive",
    "Auto",
    "Costed",
    "Discover",
    "Discovering",
    "DiscoveryPlan",
    "Estimate",
    "FoundByHistogram",
    "FoundByRounds",
    "Gaussian",
    "ItemUsers",
    "Laplace",
    "Mechanism",
    "Prior",
    "ReachEstimate",
    "Request",
    "SampleOne",
    "Searching",
    "Weight",
    "check_whole",
    "discover",
    "estimate_from_histogram",
    "expected",
    "find_items",
    "open_search",
    "pilot_reserves",
    "plan_discovery",
    "posteriors",
    "rehearse",
]

# What finds items, and what counts users by item: most releases do neither.
__getattr__ = load_later(
    __name__,
    {
        "FoundByHistogram": "partition_selection",
        "FoundByRounds": "partition_selection",
        "ItemUsers": "reach",
        "ReachEstimate": "reach_estimate",
        "estimate_from_histogram": "single_histogram",
        "find_items": "partition_selection",
    },
)
