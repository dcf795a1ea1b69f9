"""The algorithms of "Learning discrete distributions: user vs item-level privacy" (Liu and others, 2020)."""

from __future__ import annotations

from .mechanism import Paper

__all__ = ["Paper"]
