"""The search for a root, against scipy's."""

from __future__ import annotations

import math

import pytest
from scipy.optimize import brentq

from crowdgram.privacy.roots import find_root

TOLERANCE = 2.0**-44
CURVES = {
    "log": lambda x, c: math.log(x / c),
    "cube": lambda x, c: x**3 - c**3,
    "steep": lambda x, c: 1.0 - (c / x) ** 4,
    "falling": lambda x, c: math.exp(-x) - math.exp(-c),
    "step": lambda x, c: -1.0 if x < c else 1.0,
}


@pytest.mark.parametrize("name", CURVES)
def test_it_finds_what_scipy_finds(name):
    asked = [0, 0]
    for power in range(-20, 21):
        root = 1.3 * 1.25**power

        def curve(x, place=0, root=root):
            asked[place] += 1
            return CURVES[name](x, root)

        found = find_root(curve, root / 7, root * 900, TOLERANCE)
        expected = brentq(lambda x: curve(x, 1), root / 7, root * 900, xtol=1e-300, rtol=TOLERANCE)
        assert found == pytest.approx(root, rel=4 * TOLERANCE)
        assert found == pytest.approx(expected, rel=8 * TOLERANCE)
    assert asked[0] < 1.3 * asked[1]
