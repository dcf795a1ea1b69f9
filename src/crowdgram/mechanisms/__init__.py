"""Mechanisms: from private counts to an estimate, through recorded noise only."""

from __future__ import annotations

from .baselines import MECHANISMS, Weight, check_mechanism
from .estimate import CONFIDENCE, Estimate

__all__ = ["CONFIDENCE", "MECHANISMS", "Estimate", "Weight", "check_mechanism"]
