"""Releases: the whole way from a table to a distribution with its guarantee."""

from __future__ import annotations

from .budgets import largest_epsilon, recover
from .files import load, save, write_csv, write_parquet, write_whole
from .grouped import GroupedRelease
from .pipeline import release
from .release import Difference, ItemEstimate, Other, Quantity, Release

__all__ = [
    "Difference",
    "GroupedRelease",
    "ItemEstimate",
    "Other",
    "Quantity",
    "Release",
    "largest_epsilon",
    "load",
    "recover",
    "release",
    "save",
    "write_csv",
    "write_parquet",
    "write_whole",
]
