"""The stages of a release, which `progress` gets. Which of them come follows from public and noisy
values."""

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

    @property
    def done(self) -> float:
        """The share of a release's work that is done when this stage starts, as it is for a large table in the embedded
        engine: a constant, which tells nothing of any table.
        """
        return _DONE[self]


_DONE = {
    Stage.OPENING: 0.0,
    Stage.CHARGING: 0.04,
    Stage.COUNTING: 0.05,
    Stage.FINDING: 0.5,
    Stage.COUNTING_FOUND: 0.6,
    Stage.CHOOSING_ROWS: 0.65,
    Stage.PROFILING: 0.65,
    Stage.BOUNDING: 0.65,
    Stage.ESTIMATING: 0.7,
    Stage.SUMMING: 0.75,
    Stage.SUMMING_SAMPLE: 0.75,
    Stage.NOISE: 0.9,
    Stage.CHECKING: 0.95,
    Stage.STORING: 0.97,
    Stage.SAVING: 0.98,
}
