"""Releases: the whole way from a table to a result with its guarantee."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..later import load_later
from .budgets import Charge, largest_epsilon, recover
from .pipeline import release
from .reach import reach

if TYPE_CHECKING:
    from .verifying import verify_ledger

__all__ = ["Charge", "largest_epsilon", "reach", "recover", "release", "verify_ledger"]

# What verifies a ledger: most releases have none.
__getattr__ = load_later(__name__, {"verify_ledger": "verifying"})
