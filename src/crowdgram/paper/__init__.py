"""The algorithms of "Learning discrete distributions: user vs item-level privacy" (Liu and others, 2020), made
right."""

from __future__ import annotations
