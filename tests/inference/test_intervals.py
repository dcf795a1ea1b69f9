"""Intervals of items, for the table and for the population."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from crowdgram.errors import InvalidArgument
from crowdgram.inference.intervals import standard_errors

from ..results.synthetic import made


def release(sampling=None):
    one = made(np.array([0.6, 0.4]), np.array([0.03, 0.04]), "ab", ("item",))
    return replace(one, sampling_errors=sampling)


def test_intervals_of_the_table_are_its_own():
    one = release(np.array([0.04, 0.03]))
    assert one.intervals() == (one.lower, one.upper)
    assert standard_errors(one, "table") is one.standard_errors


def test_noise_and_sampling_add_up_by_squares():
    one = release(np.array([0.04, 0.03]))
    lower, upper = one.intervals("population")
    assert (upper - lower) / 2 == pytest.approx([1.96 * 0.05] * 2, rel=1e-4)
    assert (upper + lower) / 2 == pytest.approx([0.6, 0.4])
    assert standard_errors(one, "population") == pytest.approx([0.05] * 2)


def test_intervals_of_the_population_stay_between_0_and_1():
    lower, upper = release(np.array([1.0, 1.0])).intervals("population")
    assert (lower.tolist(), upper.tolist()) == ([0.0, 0.0], [1.0, 1.0])


@pytest.mark.parametrize(("of", "words"), [("population", "mechanism='auto'"), ("all", "of='all'"), (None, "of=None")])
def test_intervals_that_cannot_be(of, words):
    with pytest.raises(InvalidArgument, match=words):
        release().intervals(of)
