"""Mechanisms: from private counts to an estimate, through recorded noise only."""

from __future__ import annotations

from .estimate import CONFIDENCE, Estimate
from .registry import MECHANISMS, Weight, check_mechanism

__all__ = ["CONFIDENCE", "MECHANISMS", "Estimate", "Weight", "check_mechanism"]
