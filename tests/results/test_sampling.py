"""Synthetic items follow the released probabilities."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from crowdgram.errors import InvalidArgument

from .synthetic import exact, grouped, made, zipf


def test_samples_follow_the_release():
    release = made(np.array([0.6, 0.3, 0.1, -0.2]), np.full(4, 1e-3), ["a", "b", "c", "never"], ("item",))
    drawn = release.sample(100_000, seed=1)
    counts = pd.Series(drawn).value_counts()
    assert "never" not in counts
    for item, p in zip(release.items, release.probabilities, strict=True):
        assert abs(counts.get(item, 0) - 1e5 * p) <= 5 * math.sqrt(1e5 * p * (1 - p))
    assert release.sample(50, seed=1) == drawn[:50]
    assert release.sample(50) != release.sample(50)  # the same with a chance of 1e-19
    assert release.sample(0) == []
    assert isinstance(exact(zipf(3)).sample(1)[0], int)
    assert grouped().joint.sample(1, seed=0)[0] in grouped().joint.items


@pytest.mark.parametrize("options", [{"n": -1}, {"n": 1.5}, {"n": True}, {"n": 10**9}, {"n": 1, "seed": -1}])
def test_samples_that_cannot_be(options):
    with pytest.raises(InvalidArgument, match="needs to be a whole number"):
        exact(zipf(3)).sample(**options)
