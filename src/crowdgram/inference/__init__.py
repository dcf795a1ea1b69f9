"""Inference: intervals, entropy, distances and differences of results, for the answers without noise."""

from __future__ import annotations
