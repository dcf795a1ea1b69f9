"""Synthetic items, drawn from a released distribution.

The release is public and so is all that is drawn from it: ordinary randomness is right here, and a seed may be known.
It protects nobody and is no noise: nothing that takes part in a release may import this module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..errors import InvalidArgument

if TYPE_CHECKING:
    from .release import Release
    from .values import Item

__all__ = ["sample"]

MOST = 10**8


def sample(release: Release, n: int, seed: int | None) -> list[Item]:
    """n items, drawn independently with the released probabilities."""
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or not 0 <= n <= MOST:
        raise InvalidArgument(f"n={n!r}: needs to be a whole number from 0 to {MOST}.", argument="n")
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0):
        raise InvalidArgument(f"seed={seed!r}: needs to be a whole number of at least 0, or None.", argument="seed")
    ends = np.cumsum(release.probabilities)
    # Uniform numbers are below 1 and the last end is 1, so every place is in range, and none has probability 0.
    places = np.searchsorted(ends / ends[-1], np.random.default_rng(seed).random(int(n)), side="right")
    return [release.items[place] for place in places.tolist()]
