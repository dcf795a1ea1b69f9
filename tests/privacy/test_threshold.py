"""The threshold against exact tails: never too low, and hardly too high."""

from __future__ import annotations

import math
from functools import cache, lru_cache

import mpmath as mp
import pytest

from crowdgram.errors import InvalidArgument
from crowdgram.privacy.threshold import ROUNDING, lone_laplace_threshold, lone_threshold

from . import oracle


@lru_cache
def law(rounds: int, sigma: float) -> dict[int, mp.mpf]:
    """The distribution of a sum of discrete Gaussians, atom by atom."""
    found = {0: mp.mpf(1)}
    noise = oracle.discrete_gaussian_pmf(0, sigma, math.ceil(9 * sigma))
    for _ in range(rounds):
        joined: dict[int, mp.mpf] = {}
        for x, p in found.items():
            for z, q in noise.items():
                joined[x + z] = joined.get(x + z, mp.mpf(0)) + p * q
        found = joined
    return found


def chance(rounds: int, sigma: float, tops: list[int], threshold: int) -> mp.mpf:
    """The largest chance, over how many coordinates a user has, that one of them passes."""
    noise = law(rounds, sigma)
    tails = [mp.fsum(p for x, p in noise.items() if rounds * top + x > threshold) for top in tops]
    return max(1 - (1 - q) ** number for number, q in enumerate(tails, start=1))


@pytest.mark.parametrize("delta", [0.2, 1e-3, 1e-9])
@pytest.mark.parametrize(("rounds", "sigma"), [(1, 2.5), (1, 60.0), (3, 6.0)])
def test_it_holds_for_discrete_noise(rounds: int, sigma: float, delta: float) -> None:
    tops = [30, 21, 17, 15]
    found = lone_threshold(tops, rounds, sigma, delta)
    assert chance(rounds, sigma, tops, found) <= delta
    # But for the allowance for rounding, which is nothing beside noise of real size, it is the least there is.
    bare = found - ROUNDING * rounds
    assert chance(rounds, sigma, tops, bare + 1) <= delta < chance(rounds, sigma, tops, bare - 4)


@pytest.mark.parametrize("delta", [0.1, 1e-6, 1.25e-7, 1e-15, 1e-50])
@pytest.mark.parametrize("most", [1, 30, 1024])
def test_it_is_the_least_for_noise_of_real_size(delta: float, most: int) -> None:
    """Where the noise is as good as continuous: above the exact value, by a relative 1e-6 at most."""
    tops = [math.isqrt(2**70 // n) for n in range(1, most + 1)]
    rounds, sigma = 8, 2.0**37
    found = lone_threshold(tops, rounds, sigma, delta)
    exact = mp.mpf(0)
    for number in {1, 1 + most // 50, 1 + most // 2, most} - {most + 1}:
        with mp.workdps(120):
            q = -mp.expm1(mp.log1p(-mp.mpf(delta)) / number)
            z = mp.sqrt(2) * mp.erfinv(1 - 2 * q)
            exact = max(exact, rounds * tops[number - 1] + mp.sqrt(rounds) * sigma * z)
    assert exact < found < exact * (1 + 2e-6) + 2 * ROUNDING * rounds


@pytest.mark.parametrize(
    ("tops", "rounds", "sigma", "delta"),
    [
        ([], 1, 9.0, 0.1),
        ([1], 0, 9.0, 0.1),
        ([1], 17, 9.0, 0.1),
        ([1], 1, 2.0, 0.1),
        ([1], 1, math.nan, 0.1),
        ([1], 1, 9.0, 0.5),
        ([1], 1, 9.0, 1e-61),
        ([1], 1, 9.0, math.nan),
    ],
)
def test_what_it_cannot_serve(tops: list[int], rounds: int, sigma: float, delta: float) -> None:
    with pytest.raises(InvalidArgument):
        lone_threshold(tops, rounds, sigma, delta)


def lone_chance(mass: int, most: int, scale: float, threshold: int) -> mp.mpf:
    """The largest chance that one of at most `most` coordinates passes, over all ways to share out `mass`."""

    def tail(least: int) -> mp.mpf:
        """P[Z >= least], added up from the noise's probabilities."""
        a = mp.exp(-1 / mp.mpf(scale))
        if least <= 0:
            return 1 - a ** (1 - least) / (1 + a)
        return a**least / (1 + a)

    @cache
    def missed(left: int, number: int) -> mp.mpf:
        """The least chance that none of `number` coordinates passes, with `left` to share out."""
        if number == 1:
            return 1 - tail(threshold - left + 1)
        return min((1 - tail(threshold - part + 1)) * missed(left - part, number - 1) for part in range(left + 1))

    return max(1 - missed(mass, number) for number in range(1, most + 1))


@pytest.mark.parametrize("delta", [0.3, 1e-3, 2.5e-7])
@pytest.mark.parametrize(("mass", "scale"), [(1, 0.7), (8, 2.0), (8, 8.0), (20, 400.0)])
@pytest.mark.parametrize("most", [1, 2, 4])
def test_the_threshold_for_laplace_noise_holds_for_every_way_to_share(
    mass: int, scale: float, most: int, delta: float
) -> None:
    """Every integer way to share out the mass, atom by atom: never above delta; one lower and a lone item is above."""
    with mp.workdps(40):
        found = lone_laplace_threshold(mass, most, scale, delta)
        assert lone_chance(mass, most, scale, found) <= delta
        if delta < 0.1 and found > mass:  # where hardly any two of them pass together
            assert lone_chance(mass, most, scale, found - 1) > delta * 0.999


def test_the_tails_in_this_file_are_those_of_discrete_laplace_noise() -> None:
    with mp.workdps(30):
        scale = mp.mpf(3)
        weights = {z: mp.exp(-abs(z) / scale) for z in range(-400, 401)}
        total = mp.fsum(weights.values())
        for least in (1, 2, 9):
            exact = mp.fsum(w for z, w in weights.items() if z >= least) / total
            a = mp.exp(-1 / scale)
            assert abs(exact - a**least / (1 + a)) < 1e-25


def test_the_threshold_for_laplace_noise_is_what_the_books_say() -> None:
    """1 + log(1/(2 delta))/epsilon users, for one item each."""
    found = lone_laplace_threshold(2**30, 1, 2**30 / 0.9, 1e-6) / 2**30
    assert found == pytest.approx(1 + math.log(1 / 2e-6) / 0.9, rel=1e-7)


@pytest.mark.parametrize(
    ("mass", "most", "scale", "delta"),
    [(0, 1, 1.0, 0.1), (1, 0, 1.0, 0.1), (1, 1, 0.0, 0.1), (1, 1, math.inf, 0.1), (1, 1, 1.0, 0.5), (1, 1, 1.0, 0.0)],
)
def test_what_the_threshold_for_laplace_noise_cannot_serve(mass: int, most: int, scale: float, delta: float) -> None:
    with pytest.raises(InvalidArgument):
        lone_laplace_threshold(mass, most, scale, delta)
