"""Mechanisms: from private counts to an estimate, through recorded noise only."""

from __future__ import annotations

from .auto import reserve
from .estimate import CONFIDENCE, Estimate
from .plans import plan_release
from .registry import MECHANISMS, PURE, Mechanism, check_mechanism
from .request import Request, Weight

__all__ = [
    "CONFIDENCE",
    "MECHANISMS",
    "PURE",
    "Estimate",
    "Mechanism",
    "Request",
    "Weight",
    "check_mechanism",
    "plan_release",
    "reserve",
]
