"""What is done without NumPy's own function has NumPy's own result, to the bit."""

from __future__ import annotations

import numpy as np
import pytest

from crowdgram.arrays import distinct, median


@pytest.mark.parametrize("size", [0, 1, 2, 7, 1000])
def test_distinct_numbers(size):
    random = np.random.default_rng(size)
    for values in (random.integers(-5, 5, size), random.normal(size=size).round(1), random.normal(size=(size, 2))):
        found, wanted = distinct(values), np.unique(values)
        assert found.dtype == wanted.dtype
        assert found.tobytes() == wanted.tobytes() or np.array_equal(found, wanted)  # -0.0 is 0.0


@pytest.mark.parametrize("rows", [1, 2, 3, 8, 101])
def test_medians(rows):
    values = np.random.default_rng(rows).lognormal(size=(rows, 17))
    assert median(values).tobytes() == np.median(values, axis=0).tobytes()
