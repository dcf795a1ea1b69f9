"""Figures have as many digits as their intervals bear."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowdgram import Quantity
from crowdgram.present.numbers import decimals, figure, interval, percent, percent_of, short


@pytest.mark.parametrize(
    ("value", "lower", "upper", "shown", "ends"),
    [
        (0.0512, 0.0482, 0.0542, "5.1%", "4.8 to 5.4%"),
        (0.0512, 0.0510, 0.0514, "5.12%", "5.10 to 5.14%"),
        (0.05123, 0.05111, 0.05135, "5.123%", "5.111 to 5.135%"),  # half of it is 0.012: two digits
        (0.7, 0.5, 0.9, "70%", "50 to 90%"),
        (0.003, 0.0, 1.0, "<1%", "0 to 100%"),  # nothing is known
        (0.0, 0.0, 0.002, "0%", "0 to 0.20%"),
        (1.2e-6, 1.1e-6, 1.3e-6, "0.000120%", "0.000110 to 0.000130%"),
        (0.25, 0.25, 0.25, "25.0%", "25.0 to 25.0%"),
    ],
)
def test_percentages(value, lower, upper, shown, ends):
    assert percent_of(value, lower, upper) == figure(value, lower, upper, "shares") == shown
    assert interval(value, lower, upper, "shares") == ends


@given(st.floats(0, 1), st.floats(0, 1), st.floats(1e-11, 1))
def test_an_interval_that_has_a_width_is_shown_with_one(value, lower, width):
    upper = lower + width
    low, high = interval(value, lower, upper, "shares").rstrip("%").split(" to ")
    assert float(high) > float(low)
    assert 0 <= decimals(lower, upper, value) <= 10


def test_counts_and_unknowns():
    assert figure(12345.6, 1, 2, "counts") == "12,346"
    assert interval(5, 0.0, 12345.6, "counts") == "0 to 12,346"
    assert short(Quantity(1234.5, 0, 1, 0.95)) == "1,234"
    assert short(None) is None
    assert decimals(0.1, 0.1, 0.0) == 2
    assert percent(0.5, 1) == "50.0%"
