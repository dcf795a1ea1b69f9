"""Releases: the whole way from a table to a result with its guarantee."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .budgets import Charge, largest_epsilon, recover
from .pipeline import release
from .reach import reach

if TYPE_CHECKING:
    from .verifying import verify_ledger

__all__ = ["Charge", "largest_epsilon", "reach", "recover", "release", "verify_ledger"]


def __getattr__(name: str) -> object:
    """What verifies a ledger needs one, and most releases have none: to load it takes 15 ms."""
    if name != "verify_ledger":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .verifying import verify_ledger

    return verify_ledger
