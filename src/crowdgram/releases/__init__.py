"""Releases: the whole way from a table to a result with its guarantee."""

from __future__ import annotations

from .budgets import Charge, largest_epsilon, recover
from .pipeline import release
from .reach import reach
from .verifying import verify_ledger

__all__ = ["Charge", "largest_epsilon", "reach", "recover", "release", "verify_ledger"]
