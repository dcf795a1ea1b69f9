"""The algorithms of "Learning discrete distributions: user vs item-level privacy" (Liu, Suresh, Yu, Kumar, Riley 2020)."""

from __future__ import annotations
