"""The algorithms of Liu, Suresh, Yu, Kumar and Riley, "Learning discrete distributions: user vs item-level privacy" (2020)."""

from __future__ import annotations
