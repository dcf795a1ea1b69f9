"""How often items are in the table: shares times the total, with the errors of both together.

With a share as measured x_i = X_i / D (`results.covariance`), the count is x_i times the total, which is D in the units
of the table and has an error tau of its own, relative to it. The noise of the divisor is in both and cancels:

    count_i / total - theta_i  =  e_i + theta_i tau + b_i.

b_i is left out if the sums are counts of bounded rows as they stand (`Total.biased`).
"""

from __future__ import annotations

import numpy as np

from ..arrays import Floats
from ..errors import InvalidArgument
from ..mechanisms.estimate import Total
from ..results.covariance import Measured, Quantiles, total_of
from ..results.release import Release
from ..results.values import ItemCounts, Quantity
from .intervals import unseen_variance

__all__ = ["count_variances", "counts", "needed_total"]


def counts(release: Release, *, simultaneous: bool) -> ItemCounts:
    """The counts of all items, with intervals; of all at once if `simultaneous`."""
    total, whole = needed_total(release)
    measured = Measured.of(release)
    noise, other = count_variances(release, total)
    reach = Quantiles.of(release, len(release) if simultaneous else 1).reach(noise, other)
    found, middle = release.probabilities * total.value, measured.x * total.value
    # An item that may not be there at all, by its share, may have no count either; unless its share begins at 0 for a
    # bias that a count of bounded rows does not have.
    may_be_absent = (release.lower <= 0) & total.biased
    lower = np.where(may_be_absent, 0.0, np.maximum(middle - reach, 0.0))
    return ItemCounts(
        items=release.items,
        counts=found,
        standard_errors=np.sqrt(noise + other),
        lower=np.minimum(lower, found),
        upper=np.maximum(middle.clip(0.0) + reach, found),
        confidence=release.confidence,
        of=release.weight,
        row_bound=total.row_bound if release.weight == "rows" else None,
        total=whole,
    )


def needed_total(release: Release) -> tuple[Total, Quantity]:
    """The total of a release, with its interval; refuse if it is unknown."""
    whole = total_of(release)
    if release.total is None or whole is None:
        raise InvalidArgument(
            f"measure='counts': needs the total, which mechanism={release.mechanism!r} did not measure, or which was "
            "not saved with this release. Use shares, or make a release with mechanism='auto'.",
            argument="measure",
        )
    return release.total, whole


def count_variances(release: Release, total: Total) -> tuple[Floats, Floats]:
    """The variances of counts: of an item's own noise, and of all else."""
    measured = Measured.of(release)
    other = (measured.x * total.error) ** 2
    if total.biased:
        other = other + measured.other + unseen_variance(release)
    return measured.noise * total.value**2, other * total.value**2
