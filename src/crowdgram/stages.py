"""The stages of a release, which `progress` gets. They are the same for all tables."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["Stage"]


class Stage(StrEnum):
    """What a release is doing. A stage is its text too, so that `progress=print` shows it."""

    OPENING = "opening the table"
    CHARGING = "charging the ledger"
    COUNTING = "counting rows by user and item"
    FINDING = "finding the items, for part of the budget"
    COUNTING_FOUND = "counting rows of the items that were found"
    PROFILING = "profiling the crowd"
    BOUNDING = "finding the contribution bound"
    CHOOSING_ROWS = "finding the rows to use"
    SUMMING = "summing counts"
    SUMMING_SAMPLE = "summing sampled rows"
    NOISE = "adding noise"
    ESTIMATING = "estimating"
    CHECKING = "checking the guarantee"
    STORING = "storing the release in the ledger"
    SAVING = "saving the release"
