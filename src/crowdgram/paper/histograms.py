"""Which bins of a noisy histogram are real: post-processing of bins whose noise has a known standard deviation."""

from __future__ import annotations

import numpy as np

from ..arrays import Floats

__all__ = ["visible"]


WINDOWS = (1, 2, 4, 8)


def visible(bins: Floats, deviation: float, threshold: float) -> Floats:
    """Keep the bins that stand out of the noise, alone or in a window of 2, 4 or 8; zero elsewhere.

    `threshold` is in standard deviations. Spread over a window, users who are in no bin enough can be seen together;
    a window is opened only where nothing was seen in it or beside it, so that the neighbours of a full bin do not
    come in with it.
    """
    keep = np.zeros(len(bins), dtype=bool)
    cumulative = np.concatenate([[0.0], np.cumsum(bins)])
    for width in WINDOWS:
        limit = (threshold if width == 1 else max(0.85 * threshold, 4.0)) * deviation * np.sqrt(width)
        found = keep.copy()
        for first in range(len(bins) - width + 1):
            beside = keep[max(first - 1, 0) : first + width + 1]
            if cumulative[first + width] - cumulative[first] > limit and not beside.any():
                found[first : first + width] = True
        keep = found
    return np.where(keep, np.maximum(bins, 0.0), 0.0)
