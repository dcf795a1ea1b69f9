"""From noisy numbers to a distribution."""

from __future__ import annotations

import numpy as np

from ..arrays import Floats

__all__ = ["project"]


def project(values: Floats) -> Floats:
    """The distribution nearest to `values` in l2: max(values - t, 0) with the t that makes it sum to 1.

    Post-processing: it sees noisy values only. Reference: Held, Wolfe, Crowder 1974; sorting as in Duchi et al. 2008.
    """
    descending = np.sort(values)[::-1]
    excess = np.cumsum(descending) - 1.0
    kept = np.nonzero(descending - excess / np.arange(1, len(values) + 1) > 0)[0][-1]
    projected = np.maximum(values - excess[kept] / (kept + 1), 0.0)
    distribution: Floats = projected / projected.sum()
    return distribution
