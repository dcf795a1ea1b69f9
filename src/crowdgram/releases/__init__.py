"""Releases: the whole way from a table to a result with its guarantee."""

from __future__ import annotations

from .budgets import largest_epsilon, recover
from .pipeline import release

__all__ = ["largest_epsilon", "recover", "release"]
