"""One crowd that rises and falls: the nearest to a noisy histogram, against a search over all that pool neighbours."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from crowdgram.mechanisms.unimodal import rise_and_fall


def nearest(users, widths):
    """Of all ways to pool neighbouring bins into one density each, the nearest that rises once and falls once."""
    density, best, found = users / widths, np.inf, None
    for cuts in product([False, True], repeat=len(users) - 1):
        pool = np.append(0, np.cumsum(cuts)).astype(np.int64)
        fit = (np.bincount(pool, users) / np.bincount(pool, widths))[pool]
        top = int(np.argmax(fit))
        if (np.diff(fit[: top + 1]) >= 0).all() and (np.diff(fit[top:]) <= 0).all():
            error = float(widths @ (fit - density) ** 2)
            best, found = min((best, found), (error, fit), key=lambda one: one[0])
    return np.maximum(found, 0.0) * widths


@pytest.mark.parametrize("seed", range(30))
def test_it_is_the_nearest_of_all(seed):
    rng = np.random.default_rng(seed)
    users, widths = rng.normal(3.0, 5.0, 1 + seed % 8), rng.uniform(0.2, 1.5, 1 + seed % 8)
    assert rise_and_fall(users, widths) == pytest.approx(nearest(users, widths))
