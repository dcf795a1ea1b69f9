"""Exact samplers of discrete Laplace and Gaussian noise, for many draws at once.

All is done in integers, and every random decision is an event of a `Chance`, so that the noise has its law exactly:
there is no distance to charge. What is vectorised is the common case; the rare rest is decided in rationals.
Proof: docs/proofs/samplers.md.

Reference: Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential Privacy" (arXiv 2004.00010), for the
Gaussian from the Laplace; the binary digits of a geometric variable are independent, which is folklore.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from crowdgram.arrays import Booleans, Integers
from crowdgram.privacy.chances import Chance, Chances, Entropy, exponential, exponential_rest, logistic

__all__ = ["discrete_gaussian", "discrete_laplace"]

DRAWN_AT_ONCE = 2**15
"""Draws at once: what they need stays in a processor's cache."""

FEW_DRAWS = 2**9
"""Up to here all digits are drawn in one step: of few draws, the steps take longer than what they do."""

SAFE = 2**61
"""Up to here geometric variables are 64-bit integers, beyond they are unbounded: noise and a value of +-2^62 add up."""

FINE = 7
"""Binary digits of each of the two parts behind the point, in which the exponent of an acceptance is written."""
GUARD = 13
"""What is left of the exponent is below 2^-GUARD."""
SIGMA_DIGITS = 25
"""The standard deviation is taken in units in which it has this many binary digits."""
MOST_UNITS = 2**31
"""Distances of more units are decided in rationals: beyond 64 standard deviations."""


def discrete_laplace(scale: float, size: int, entropy: Entropy) -> Integers:
    """`size` independent draws with P[z] proportional to exp(-|z| / scale), for the rational that the double is."""
    return _in_chunks(Fraction(scale), size, entropy, _laplace)


def discrete_gaussian(sigma: float, size: int, entropy: Entropy) -> Integers:
    """`size` independent draws with P[z] proportional to exp(-z^2 / (2 sigma^2)), in the same way."""
    return _in_chunks(Fraction(sigma), size, entropy, _gaussian)


def _in_chunks(scale: Fraction, size: int, entropy: Entropy, draw: Callable[[Fraction, int, Entropy], Any]) -> Integers:
    chunks = [draw(scale, min(DRAWN_AT_ONCE, size - start), entropy) for start in range(0, size, DRAWN_AT_ONCE)]
    return np.concatenate([np.zeros(0, dtype=np.int64), *chunks])


class _Geometric:
    """G = 0, 1, 2, ... with P[G = g] proportional to exp(-g / scale).

    G = L + 2^J H: the digits of L < 2^J and H are independent, digit j of L is 1 with probability 1 / (1 + e^(2^j /
    scale)), and H counts the events of probability e^(-2^J / scale) before one does not happen.
    """

    def __init__(self, scale: Fraction) -> None:
        self.digits = max((16 * scale.numerator // scale.denominator).bit_length(), 1)
        self._low = [logistic(2**place / scale) for place in range(self.digits)]
        self._high = exponential(2**self.digits / scale)

    def draw(self, size: int, entropy: Entropy) -> Integers:
        low: Integers = np.zeros(size, dtype=np.int64)
        if size <= FEW_DRAWS:
            ones = Chances(self._low).each(size, entropy).astype(np.int64)
            low = np.bitwise_or.reduce(ones << np.arange(self.digits)[:, np.newaxis], axis=0)
        else:
            for place, chance in enumerate(self._low):
                low |= chance.events(size, entropy).astype(np.int64) << place
        high, counted = np.zeros(size, dtype=np.int64), np.arange(size)
        while len(counted := counted[self._high.events(len(counted), entropy)]):
            high[counted] += 1
        if (int(high.max(initial=0)) + 1) << self.digits > SAFE:
            exact: Integers = low.astype(object) + high.astype(object) * 2**self.digits
            return exact
        return low + (high << self.digits)


@lru_cache(maxsize=32)
def _laplace_parts(scale: Fraction) -> tuple[Chance, _Geometric]:
    """The chance of noise that is not 0, 2 / (1 + e^(1 / scale)); and what its size exceeds 1 by."""
    return logistic(1 / scale, times=2), _Geometric(scale)


def _laplace(scale: Fraction, size: int, entropy: Entropy) -> Integers:
    not_zero, geometric = _laplace_parts(scale)
    there = not_zero.events(size, entropy)
    sign = 1 - 2 * (np.frombuffer(entropy(size), dtype=np.uint8) & 1).astype(np.int64)
    return sign * there * (1 + geometric.draw(size, entropy))


class _Gaussian:
    """Laplace noise of scale t = floor(sigma) + 1 that is kept with chance e^-x, x = (|z| - sigma^2/t)^2 / (2 sigma^2).

    In units in which sigma has SIGMA_DIGITS binary digits, |z| - sigma^2/t is at least d = max(|A - C| - 1, 0), with
    |z| and sigma^2/t rounded down to A and C. So x is at least m / 4^FINE, m = floor(d^2 / V), with V = 2 sigma^2 /
    4^FINE rounded up, and exceeds it by less than 2^-GUARD. Noise is kept if four independent events happen: of chance
    e^-(whole part of m / 4^FINE), e^-(its first FINE digits), e^-(its other digits), and e^-(what is left of x).
    """

    def __init__(self, sigma: Fraction) -> None:
        self.sigma = sigma
        whole = sigma.numerator // sigma.denominator
        self.proposal = Fraction(whole + 1)
        self._shift = SIGMA_DIGITS - whole.bit_length()
        unit = Fraction(2) ** self._shift
        self._centre = int(sigma**2 / self.proposal * unit)
        self._divisor = -int(-2 * (sigma * unit) ** 2 // 4**FINE)

    def kept(self, drawn: Integers, entropy: Entropy) -> Booleans:
        """Which draws are kept."""
        sizes = abs(drawn)
        near, floors = self.floors(sizes)
        usual = floors >> 2 * FINE < 2**FINE
        kept, far = np.zeros(len(drawn), dtype=np.bool_), np.ones(len(drawn), dtype=np.bool_)
        far[near[usual]] = False
        for place in np.flatnonzero(far):
            kept[place] = _happens(exponential(self.exponent(int(sizes[place]))), entropy)
        left, floors = near[usual], floors[usual]
        for part, chances in zip((2 * FINE, FINE, 0), _digit_chances(), strict=True):
            happens = chances.events((floors >> part) & (2**FINE - 1), entropy)
            left, floors = left[happens], floors[happens]
        kept[left] = True
        # 1 - e^-rest is below 2^-GUARD: all but one in 2^GUARD draws are kept whatever the rest is.
        risky = np.frombuffer(entropy(2 * len(left)), dtype="<u2") & (2**GUARD - 1) == 0
        for place, floor in zip(left[risky].tolist(), floors[risky].tolist(), strict=True):
            rest = self.exponent(int(sizes[place])) - Fraction(floor, 4**FINE)
            kept[place] = not _happens(exponential_rest(rest, GUARD), entropy)
        return kept

    def floors(self, sizes: Integers) -> tuple[Integers, Integers]:
        """Places of noise whose size is within MOST_UNITS units of sigma^2/t, and m for it."""
        if int(sizes.max(initial=0)) >> 62 - max(self._shift, 0):
            sizes = sizes.astype(object)  # a shift would leave 64 bits
        units = sizes << self._shift if self._shift >= 0 else sizes >> -self._shift
        least = np.maximum(abs(units - self._centre) - 1, 0)
        near = np.flatnonzero(least < MOST_UNITS)
        return near, least[near].astype(np.int64) ** 2 // self._divisor

    def exponent(self, size: int) -> Fraction:
        """x for noise of this size."""
        return (size - self.sigma**2 / self.proposal) ** 2 / (2 * self.sigma**2)


@lru_cache(maxsize=32)
def _gaussian_parts(sigma: Fraction) -> _Gaussian:
    return _Gaussian(sigma)


@lru_cache(maxsize=1)
def _digit_chances() -> tuple[Chances, Chances, Chances]:
    """e^-n, e^-(n / 2^FINE) and e^-(n / 4^FINE) for n below 2^FINE."""
    parts = [[exponential(Fraction(n, 2**digits)) for n in range(2**FINE)] for digits in (0, FINE, 2 * FINE)]
    return Chances(parts[0]), Chances(parts[1]), Chances(parts[2])


def _gaussian(sigma: Fraction, size: int, entropy: Entropy) -> Integers:
    parts = _gaussian_parts(sigma)
    noise, missing = np.zeros(size, dtype=np.int64), np.arange(size)
    while len(missing):
        drawn = _laplace(parts.proposal, len(missing), entropy)
        kept = parts.kept(drawn, entropy)
        if drawn.dtype == object:
            noise = noise.astype(object)
        noise[missing[kept]] = drawn[kept]
        missing = missing[~kept]
    return noise


def _happens(chance: Chance, entropy: Entropy) -> bool:
    return bool(chance.events(1, entropy)[0])
