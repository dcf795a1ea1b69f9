"""The exact samplers: their law from its parts, bit by bit, and what they draw against it and against OpenDP's."""

from __future__ import annotations

import math
import os
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import stats

from crowdgram.privacy import OPENDP, chances, discrete, noise
from crowdgram.privacy.chances import ALWAYS, Chance, Chances, exponential, exponential_rest, logistic
from crowdgram.privacy.discrete import FINE, GUARD, MOST_UNITS, discrete_gaussian, discrete_laplace

FALSE_ALARM = 1e-6
RATES = [Fraction(1, 2**60), Fraction(1.2345e-7), Fraction(1, 3), Fraction(63, 64), Fraction(355, 113), Fraction(127)]
SCALES = [1.0, 1.5, 3.7, 1000.3, 123456.789, 2.0**30 / 0.7, 2.0**56]
DIGITS = 400


def real(value):
    return mpmath.mpf(value.numerator) / value.denominator


def known(chance):
    """The probability of a chance, to 400 binary digits."""
    return mpmath.mpf(chance.digits(DIGITS)) / 2**DIGITS


@pytest.fixture(autouse=True)
def precise():
    with mpmath.workprec(600):
        yield


def scripted(*parts):
    """Entropy that gives these bytes, and fails if it is asked for others."""
    left = list(parts)

    def entropy(size):
        given = left.pop(0)
        assert len(given) == size
        return given

    return entropy


def words(values):
    return np.asarray(values, dtype="<u2").tobytes()


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("places", [16, 40, 104, 300])
def test_bounds_hold_what_they_bound(rate, places):
    low, high = chances.exp_bounds(rate, places)
    assert low <= mpmath.exp(-real(rate)) * 2**places <= high
    assert high - low <= 4


@pytest.mark.parametrize("rate", RATES)
def test_chances_have_the_digits_of_their_numbers(rate):
    small = rate / 2**20  # below 2^-GUARD
    for chance, expected in (
        (exponential(rate), mpmath.exp(-real(rate))),
        (logistic(rate), 1 / (1 + mpmath.exp(real(rate)))),
        (logistic(rate, times=2), 2 / (1 + mpmath.exp(real(rate)))),
        (exponential_rest(small, GUARD), 2**GUARD * -mpmath.expm1(-real(small))),
    ):
        for places in (16, 80, 144, DIGITS):
            assert chance.digits(places) == int(mpmath.floor(expected * 2**places))
        assert chance.first == chance.digits(16)
    assert exponential(Fraction(0)) is ALWAYS
    assert exponential_rest(Fraction(0), GUARD).digits(80) == 0


@pytest.mark.parametrize("rate", [Fraction(1, 3), Fraction(9), Fraction(40)])
def test_all_first_words_are_decided_as_the_number_says(rate):
    """Of all 65,536 words, those below the digits of p happen, those above do not, and the one between is undecided."""
    chance, every = exponential(rate), np.arange(2**16)
    second = chance.digits(80) % 2**64
    for word, happens in ((second - 1, True), (second + 1, False)):
        expected = every < chance.first
        expected[chance.first] = happens
        asked = scripted(words(every), word.to_bytes(8, "little"))
        assert chance.events(2**16, asked).tolist() == expected.tolist()
    third = chance.digits(144) % 2**64
    for word, happens in ((third - 1, True), (third + 1, False)):
        tied = scripted(words([chance.first]), second.to_bytes(8, "little"), word.to_bytes(8, "little"))
        assert chance.events(1, tied).tolist() == [happens]


def test_each_event_has_its_own_chance():
    several = [exponential(Fraction(rate)) for rate in (0, 1, 5)]
    table, every = Chances(several), np.arange(2**16)
    for place, chance in enumerate(several):
        more = [] if chance is ALWAYS else [bytes(8)]  # the lowest of all words: below the digits of p
        happens = table.events(np.full(2**16, place), scripted(words(every), *more))
        assert int(happens.sum()) == min(chance.first + 1, 2**16)
    assert table.events(np.array([0, 2, 0]), scripted(words([2**16 - 1, 2**15, 0]))).tolist() == [True, False, True]
    assert ALWAYS.events(3, scripted(bytes(6))).all()


def test_events_of_every_chance_at_once():
    """Row by row, as of each chance alone; of two ties, the first is decided above p and the second below."""
    several = [exponential(Fraction(rate)) for rate in (1, 2, 5)]
    drawn = [[chance.first - 1, chance.first + 1, 2**16 - 1] for chance in several]
    drawn[0][2], drawn[2][1] = several[0].first, several[2].first
    happens = Chances(several).each(3, scripted(words(drawn), b"\xff" * 8, bytes(8)))
    assert happens.tolist() == [[True, False, False], [True, False, False], [True, True, False]]
    assert Chances(several).each(0, scripted(b"")).shape == (3, 0)


@pytest.mark.parametrize("scale", SCALES)
def test_few_draws_are_what_many_would_be(scale, monkeypatch):
    """From the same bytes, in which no word is that of a chance: digits are drawn in the same order."""
    geometric = discrete._Geometric(Fraction(scale))
    found = []
    for few in (0, 2**9):
        monkeypatch.setattr(discrete, "FEW_DRAWS", few)  # both ways for one size
        found.append(geometric.draw(20, np.random.default_rng(1).bytes).tolist())
    assert found[0] == found[1]
    assert len(set(found[0])) > 3


@pytest.mark.parametrize("scale", SCALES[:5])
def test_the_parts_of_laplace_noise_make_its_law(scale):
    """From the digits of the chances: P[0] = (1 - a)/(1 + a), and G is geometric, digit by digit."""
    not_zero, geometric = discrete._laplace_parts(Fraction(scale))
    a = mpmath.exp(-1 / mpmath.mpf(scale))
    assert mpmath.almosteq(known(not_zero), 2 * a / (1 + a), rel_eps=mpmath.mpf(2) ** -350)
    digits, more = [known(chance) for chance in geometric._low], known(geometric._high)
    size = 2**geometric.digits
    assert size >= 16 * scale
    for value in {0, 1, 2, 3, 7, size // 3, size - 1, size, 2 * size + 5}:
        low, high = value % size, value // size
        chance = more**high * (1 - more)
        for place, one in enumerate(digits):
            chance *= one if low >> place & 1 else 1 - one
        assert mpmath.almosteq(chance, (1 - a) * a**value, rel_eps=mpmath.mpf(2) ** -300)


def answers(chance, happens):
    """Random bytes with which an event happens, or does not."""
    if not happens:
        return [words([2**16 - 1])]
    return [words([0])] if chance.first else [words([0]), bytes(8)]  # a tie: the next digits are 0 too, and below p's


def test_a_geometric_variable_is_put_together_of_its_digits(monkeypatch):
    monkeypatch.setattr(discrete, "FEW_DRAWS", 0)  # digit by digit, as of many draws
    geometric = discrete._Geometric(Fraction(1.5))
    assert geometric.digits == 5
    asked = [answers(chance, 0b10011 >> place & 1) for place, chance in enumerate(geometric._low)]
    asked += [answers(geometric._high, happens) for happens in (True, True, False)]
    found = geometric.draw(1, scripted(*(part for one in asked for part in one)))
    assert found.tolist() == [0b10011 + 2 * 32]


@pytest.mark.parametrize("sigma", SCALES)
def test_the_parts_of_an_acceptance_make_its_chance(sigma):
    """m / 4^FINE <= x < m / 4^FINE + 2^-GUARD, in rationals; and the four events together have the chance e^-x."""
    parts = discrete._Gaussian(Fraction(sigma))
    spread = [round(sigma * one / 8) for one in range(100)]
    sizes = np.array(sorted({*range(40), *spread, round(20 * sigma), round(60 * sigma)}), dtype=np.int64)
    near, floors = parts.floors(sizes)
    assert near.tolist() == list(range(len(sizes)))
    whole, first, second = discrete._digit_chances()
    for size, floor in zip(sizes.tolist(), floors.tolist(), strict=True):
        rest = parts.exponent(size) - Fraction(floor, 4**FINE)
        assert 0 <= rest < Fraction(1, 2**GUARD)
        if size % 7 or floor >> 2 * FINE >= 2**FINE:
            continue
        digits = (floor >> 2 * FINE, floor >> FINE & 127, floor & 127)
        made = mpmath.mpf(1)
        for chance, digit in zip((whole, first, second), digits, strict=True):
            made *= known(chance._chances[digit])
        made *= 1 - known(exponential_rest(rest, GUARD)) / 2**GUARD
        assert mpmath.almosteq(made, mpmath.exp(-real(parts.exponent(size))), rel_eps=mpmath.mpf(2) ** -150)
    t = parts.proposal
    x = parts.exponent(5)
    assert Fraction(5) / t + x == Fraction(25) / (2 * Fraction(sigma) ** 2) + Fraction(sigma) ** 2 / (2 * t**2)


@pytest.mark.parametrize("sigma", [1.0, 1000.3, 2.0**56])
def test_far_noise_is_decided_in_rationals(sigma):
    """Beyond 128 in the exponent, beyond MOST_UNITS units, and beyond 64 bits."""
    parts = discrete._Gaussian(Fraction(sigma))
    for size in (math.ceil(18 * sigma), math.ceil(140 * sigma), 2**70):
        drawn = np.array([size, -size], dtype=object if size >= 2**62 else np.int64)
        assert parts.kept(drawn, lambda count: b"\xff" * count).tolist() == [False, False]
        if size < 20 * sigma:  # U = 0 is below any chance, but is seen to be only after as many digits as that has
            assert parts.kept(drawn, lambda count: bytes(count)).tolist() == [True, True]
    assert not len(parts.floors(np.array([math.ceil(140 * sigma) * (MOST_UNITS >> 31)]))[0])


@pytest.mark.parametrize("sigma", [1.0, 3.7, 1000.3])
def test_risky_noise_is_lost_by_its_rest_alone(sigma):
    parts = discrete._Gaussian(Fraction(sigma))
    size = round(0.4 * sigma) + 1
    _, [floor] = parts.floors(np.array([size]))
    rest = parts.exponent(size) - Fraction(int(floor), 4**FINE)
    chance = exponential_rest(rest, GUARD)
    kept = [bytes(2), bytes(2), bytes(2)]  # each of the three digits: below any chance that is not nearly 0
    for word, stays in ((chance.first - 1, False), (chance.first + 1, True)):
        if 0 <= word < 2**16:
            asked = scripted(*kept, words([2**GUARD]), words([word]))
            assert parts.kept(np.array([size]), asked).tolist() == [stays]
    assert parts.kept(np.array([size]), scripted(*kept, words([1]))).tolist() == [True]


def test_noise_beyond_64_bits_saturates(monkeypatch):
    huge = np.array([2**70, -(2**70), 5, 2**63], dtype=object)
    monkeypatch.setattr(noise, "discrete_laplace", lambda *_: huge)  # a draw that is too rare to wait for
    noisy = noise.add_discrete_laplace([0, 0, 2**62, -(2**62)], 2.0)
    assert noisy.tolist() == [2**63 - 1, -(2**63), 2**62 + 5, 2**62]


@pytest.mark.parametrize(("times", "kind"), [(1, np.int64), (2, object)])
def test_a_geometric_variable_leaves_64_bits_as_it_must(times, kind, monkeypatch):
    class Some(Chance):
        left = times

        def events(self, size, entropy):
            self.left -= 1
            return np.full(size, self.left >= 0)

    geometric = discrete._Geometric(Fraction(2.0**55) + 1)
    # digits that are too rare to wait for
    monkeypatch.setattr(geometric, "_high", Some(lambda places: (2**places, 2**places)))
    found = geometric.draw(3, os.urandom)
    assert found.dtype == kind
    assert {int(one) >> geometric.digits for one in found} == {times}


def cells(kind, scale, reach):
    """The probabilities of -reach..reach and of all else."""
    z = np.arange(-reach, reach + 1)
    far = np.arange(-int(60 * scale) - 10, int(60 * scale) + 11)
    weigh = (lambda x: np.exp(-np.abs(x) / scale)) if kind == "laplace" else (lambda x: np.exp(-(x**2) / 2 / scale**2))
    p = weigh(z) / math.fsum(weigh(far))
    return np.append(p, 1 - math.fsum(p))


def counted(noise, reach):
    inside = np.abs(noise) <= reach
    return np.append(np.bincount(noise[inside] + reach, minlength=2 * reach + 1), np.count_nonzero(~inside))


@pytest.mark.parametrize("draw", [discrete_laplace, discrete_gaussian])
@pytest.mark.parametrize(("scale", "reach"), [(1.0, 3), (3.7, 12), (20.25, 60)])
def test_many_draws_fit_the_exact_probabilities(draw, scale, reach):
    kind = "laplace" if draw is discrete_laplace else "gaussian"
    found = counted(draw(scale, 300_000, os.urandom), reach)
    assert stats.chisquare(found, 300_000 * cells(kind, scale, reach)).pvalue > FALSE_ALARM
    assert stats.chisquare(found, 300_000 * cells(kind, 1.05 * scale, reach)).pvalue < FALSE_ALARM  # its power


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize("scale", [3.7, 2.0**30 / 0.7])
def test_they_draw_what_opendp_draws(kind, scale):
    zeros = np.zeros(20_000, dtype=np.int64)
    theirs = getattr(OPENDP, kind)(zeros, scale, None)
    ours = getattr(noise.EXACT, kind)(np.zeros(100_000, dtype=np.int64), scale, None)
    edges = np.unique(np.quantile(ours, np.linspace(0.02, 0.98, 40)))
    table = [np.bincount(np.searchsorted(edges, one), minlength=len(edges) + 1) for one in (ours, theirs)]
    table = np.array(table)[:, np.sum(table, axis=0) > 0]
    assert stats.chi2_contingency(table).pvalue > FALSE_ALARM


@pytest.mark.parametrize("draw", [discrete_laplace, discrete_gaussian])
def test_last_digits_are_as_likely_as_each_other(draw):
    drawn = draw(2.0**40, 100_000, os.urandom)
    for modulus in (2, 3, 8, 17):
        assert stats.chisquare(np.bincount(drawn % modulus)).pvalue > FALSE_ALARM
    assert not len(draw(2.0, 0, os.urandom))
