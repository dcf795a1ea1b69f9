"""Events of exactly known probability, decided by random bits: the atoms of the samplers in `discrete`.

A `Chance` is a real number p that can be computed to any number of binary digits. An event of probability p happens if
a uniform random number U is below p. The digits of U are drawn as they are needed: 16 decide all but one case in
65,536. So the decision is exact, although no number here is ever rounded or a float. Proof: docs/proofs/samplers.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np

from crowdgram.arrays import Booleans, Integers

__all__ = ["ALWAYS", "Chance", "Chances", "Entropy", "exponential", "exponential_rest", "logistic"]

Entropy = Callable[[int], bytes]
"""As many random bytes as asked for: uniform and independent of all before."""

Bounds = Callable[[int], tuple[int, int]]

FIRST_DIGITS, NEXT_DIGITS = 16, 64
"""Binary digits that are compared at first, and then at each step."""


class Chance:
    """A probability p by its bounds: bounds(n) gives integers low <= 2^n p <= high that close in on it as n grows.

    p must be irrational, or `bounds` exact for it: otherwise its digits might never be known.
    """

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self.first = self.digits(FIRST_DIGITS)

    def digits(self, places: int) -> int:
        """floor(2^places p)."""
        extra = 24
        while True:
            low, high = self._bounds(places + extra)
            if low >> extra == high >> extra:
                return low >> extra
            extra *= 2

    def decide(self, entropy: Entropy) -> bool:
        """Whether U < p, if the first digits of U are those of p."""
        places = FIRST_DIGITS
        while True:
            places += NEXT_DIGITS
            word = int.from_bytes(entropy(NEXT_DIGITS // 8), "little")
            own = self.digits(places) % (1 << NEXT_DIGITS)
            if word != own:
                return word < own

    def events(self, size: int, entropy: Entropy) -> Booleans:
        """Whether each of `size` independent events of probability p happens."""
        drawn = np.frombuffer(entropy(2 * size), dtype="<u2")
        if self.first == 2**FIRST_DIGITS:  # p = 1
            return np.ones(size, dtype=np.bool_)
        own = np.uint16(self.first)
        happens: Booleans = drawn < own
        for place in np.flatnonzero(drawn == own):
            happens[place] = self.decide(entropy)
        return happens


class Chances:
    """Several chances, of which each event names its own."""

    def __init__(self, chances: Sequence[Chance]) -> None:
        self._chances = tuple(chances)
        self._first = np.array([chance.first for chance in chances], dtype=np.int32)

    def events(self, which: Integers, entropy: Entropy) -> Booleans:
        """Whether an event of probability p[which] happens, for each entry of `which`; they are independent."""
        drawn = np.frombuffer(entropy(2 * len(which)), dtype="<u2").astype(np.int32)
        own = self._first[which]
        happens: Booleans = drawn < own
        for place in np.flatnonzero(drawn == own):
            happens[place] = self._chances[which[place]].decide(entropy)
        return happens

    def each(self, size: int, entropy: Entropy) -> Booleans:
        """Whether each of `size` events of every chance happens, a row for each chance; all are independent."""
        drawn = np.frombuffer(entropy(2 * len(self._chances) * size), dtype="<u2").reshape(len(self._chances), size)
        own = self._first[:, np.newaxis]
        happens: Booleans = drawn < own
        for place in np.flatnonzero(drawn == own):
            happens.flat[place] = self._chances[place // size].decide(entropy)
        return happens


ALWAYS = Chance(lambda places: (2**places, 2**places))


def exponential(rate: Fraction) -> Chance:
    """e^-rate, for a rate of at least 0."""
    return ALWAYS if rate == 0 else Chance(lambda places: exp_bounds(rate, places))


def logistic(rate: Fraction, times: int = 1) -> Chance:
    """times / (1 + e^rate), for a rate above 0 and one or two times."""

    def bounds(places: int) -> tuple[int, int]:
        low, high = exp_bounds(rate, places)
        one = 2**places
        return times * low * one // (one + low), -(-times * high * one // (one + high))  # x/(1 + x) grows with x

    return Chance(bounds)


def exponential_rest(rate: Fraction, doublings: int) -> Chance:
    """2^doublings (1 - e^-rate), for a rate from 0 to 2^-doublings."""
    if rate == 0:
        return Chance(lambda _: (0, 0))

    def bounds(places: int) -> tuple[int, int]:
        low, high = exp_bounds(rate, places + doublings)
        one = 2 ** (places + doublings)
        return one - high, one - low

    return Chance(bounds)


def exp_bounds(rate: Fraction, places: int) -> tuple[int, int]:
    """Integers low <= 2^places e^-rate <= high, for a rate above 0; a few units apart.

    With y = rate / 2^s <= 1/2, e^-y is a series of alternating terms that fall, so that what is left out is at most
    the first term left out. Then it is squared s times. Each step rounds low down and high up.
    """
    halvings = (rate.numerator // rate.denominator).bit_length() + 1
    guard = places + 16 + 2 * halvings
    y_low = (rate.numerator << guard) // (rate.denominator << halvings)
    low, high = _falling(y_low + 1, guard)[0], _falling(y_low, guard)[1]
    for _ in range(halvings):
        low, high = low * low >> guard, -(-high * high >> guard)
    return low >> (guard - places), -(-high >> (guard - places))


def _falling(y: int, places: int) -> tuple[int, int]:
    """Bounds on 2^places e^(-y / 2^places), for y from 0 to 2^places."""
    low = high = least = most = 1 << places
    number = 0
    while number == 0 or most > 1:
        number += 1
        least, most = (least * y >> places) // number, -(-most * y >> places) // number + 1
        if number % 2:
            low, high = low - most, high - least
        else:
            low, high = low + least, high + most
    # Of what follows, the first term is the largest, and at most `most`.
    return low - most, high + most
