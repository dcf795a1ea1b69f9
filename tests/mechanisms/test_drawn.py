"""What clipping does to users who draw from the centre, against every outcome there is and against simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special

from crowdgram.mechanisms.drawn import clipped
from crowdgram.mechanisms.histograms import Crowding


def outcomes(rows, c):
    """All that a user's rows can be over three items, with their chances."""
    made = []
    for first in range(rows + 1):
        for second in range(rows - first + 1):
            n = np.array([first, second, rows - first - second])
            chance = math.exp(special.gammaln(rows + 1) - special.gammaln(n + 1).sum() + (n * np.log(c)).sum())
            made.append((n / rows - c, chance))
    away, chances = (np.array(each) for each in zip(*made, strict=True))
    assert chances.sum() == pytest.approx(1)
    return away, chances


def brute(kinds, c, stretches, part):
    """Shift and scatter for kinds of users (number, rows, mass), clipped at `part` of the typical distance."""
    drawn, sizes = [], []
    for users, rows, mass in kinds:
        away, chances = outcomes(rows, c)
        length = mass * np.sqrt(((away * stretches) ** 2).sum(axis=1))
        drawn.append((users, mass, away, chances, length))
        sizes.append(math.sqrt(float(chances @ length**2)))
    radius = part * float(np.mean(sizes))
    total = weight = own = moved = 0.0
    shift = np.zeros(3)
    for users, mass, away, chances, length in drawn:
        kept = chances * np.minimum(1, radius / np.maximum(length, 1e-300))
        total += users * mass
        weight += users * mass * kept.sum()
        shift += users * mass * (kept @ away)
    for users, mass, away, chances, length in drawn:
        change = np.minimum(1, radius / np.maximum(length, 1e-300)) / (weight / total) - 1
        moved += users * mass**2 * ((chances * change**2) @ away**2)
        own += users * mass**2 * (chances @ away**2)
    users, _, mass = (np.array(each, dtype=float) for each in zip(*kinds, strict=True))
    return Crowding(users, np.array(sizes), mass), radius, shift / weight, np.sqrt(moved / own)


@pytest.mark.parametrize("part", [0.5, 0.8, 1.1])
@pytest.mark.parametrize("kinds", [[(100, 12, 1.0)], [(100, 9, 0.45), (50, 20, 1.0)]], ids=["equal", "uneven"])
@pytest.mark.parametrize("c", [[0.6, 0.3, 0.1], [0.8, 0.15, 0.05]], ids=["near", "far"])
def test_three_items_over_all_outcomes(c, kinds, part):
    c = np.array(c)
    stretches = np.rint(4 * (c.max() / c) ** (1 / 3))
    crowd, radius, shift, moved = brute(kinds, c, stretches, part)
    made = clipped(crowd, np.array([float(rows) for _, rows, _ in kinds]), c, stretches, radius)
    assert made.shift == pytest.approx(shift, abs=0.3 * np.abs(shift).max())
    assert made.moved == pytest.approx(moved, rel=0.25)
    assert np.abs(shift).max() > 1e-4  # there is something to get right


def test_many_items_by_simulation():
    """Fixed seed: 200 items, 50 rows. The slope is known to about 7%."""
    generator = np.random.default_rng(1)
    c = 1 / np.arange(1, 201)
    c /= c.sum()
    stretches = np.rint(4 * (c.max() / c) ** (1 / 3))
    away = generator.multinomial(50, c, size=60_000) / 50 - c
    length = np.sqrt(((away * stretches) ** 2).sum(axis=1))
    typical = float(np.sqrt((length**2).mean()))
    radius = 0.85 * typical
    kept = np.minimum(1, radius / length)
    shift = kept @ away / kept.sum()
    moved = np.sqrt(((kept / kept.mean() - 1) ** 2) @ away**2 / (away**2).sum(axis=0))
    made = clipped(Crowding(np.array([1.0]), np.array([typical]), np.ones(1)), np.array([50.0]), c, stretches, radius)
    assert 0.75 < float(shift @ made.shift / (made.shift @ made.shift)) < 1.25
    assert made.moved[:40] == pytest.approx(moved[:40], rel=0.3)


def test_two_items_know_all_of_each_other():
    """x_2 = -x_1: what one loses, the other gains."""
    c, stretches = np.array([0.9, 0.1]), np.array([4.0, 8.0])
    crowd = Crowding(np.array([10.0]), np.array([1.0]), np.ones(1))
    made = clipped(crowd, np.array([15.0]), c, stretches, 0.8)
    assert made.shift[0] == pytest.approx(-made.shift[1], rel=1e-3)
    assert made.shift[0] > 0


def test_no_clipping_moves_nothing():
    c = np.array([0.5, 0.3, 0.2])
    made = clipped(Crowding(np.array([9.0]), np.array([0.1]), np.ones(1)), np.array([20.0]), c, np.full(3, 4.0), 50.0)
    assert made.shift == pytest.approx(0, abs=1e-12)
    assert made.moved == pytest.approx(0, abs=1e-9)


def test_a_centre_at_the_edge_is_no_trouble():
    for c in ([1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [1.0]):
        centre = np.array(c)
        made = clipped(
            Crowding(np.array([9.0]), np.array([0.1]), np.ones(1)),
            np.array([3.0]),
            centre,
            np.full(len(centre), 4.0),
            0.05,
        )
        assert np.isfinite(made.shift).all()
        assert np.isfinite(made.moved).all()
