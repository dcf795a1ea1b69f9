"""Inference: entropy, distances and differences of results, with intervals for the answers without noise."""

from __future__ import annotations
