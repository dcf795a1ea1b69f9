"""Parts of the rounds that have an answer of their own."""

from __future__ import annotations

import math

import numpy as np
import pytest

from crowdgram.mechanisms.measurements import agreed


def test_agreed_is_the_mean_by_inverse_variance():
    assert agreed(1.0, 1.0, 4.0, 2.0) == pytest.approx((1.6, math.sqrt(0.8)))
    values, deviation = agreed(np.array([0.0, 2.0]), 1.0, np.array([2.0, 2.0]), 1.0)
    assert values.tolist() == [1.0, 2.0]
    assert deviation == pytest.approx(math.sqrt(0.5))
