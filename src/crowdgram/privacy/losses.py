"""Privacy loss of the pure mechanisms (discrete Laplace, choices of bounded range, families), composed pessimistically.

The curve of each event is known in closed form; it is bounded by straight lines (in e^epsilon) between its
values on a grid of step h, "connecting the dots", which is the curve of a loss that takes only the values i
h. Such losses add by convolution. The convolution is a direct sum of non-negative terms, not an FFT: its
error is relative to each probability, so that delta = 1e-12 and far less is as sound as delta = 0.1. Proof:
docs/proofs/accounting.md.

Reference: Doroshenko, Ghazi, Kamath, Kumar and Manurangsi, "Connect the Dots" (arXiv 2207.04380), Algorithm
1.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from crowdgram.arrays import Floats
from crowdgram.privacy.events import ExponentialEvent, LaplaceEvent, SelectionEvent, SparseLaplaceEvent
from crowdgram.privacy.families import BLOCK, family_hinges
from crowdgram.privacy.gaussian import gaussian_deltas

__all__ = ["GridLoss", "PureEvent", "bounded_range_deltas", "compose_losses", "laplace_deltas", "pure_epsilon"]

PureEvent: TypeAlias = LaplaceEvent | ExponentialEvent | SelectionEvent | SparseLaplaceEvent

# The grid has at most this many steps on each side of 0, and no step finer than FINEST_STEP; what a step h
# costs is of order h^2/8 in epsilon for each event.
STEPS = 4096
FINEST_STEP = 2.0**-12
# Above this sensitivity the smooth bound on the discrete Laplace's curve is used; it is loose by 1/(8
# scale^2) only.
EXACT_SENSITIVITY = 2**20
# Pure events that together exceed this epsilon are worth nothing, whatever delta is.
LARGEST_EPSILON = 1000
_U = 2.0**-53


@dataclass(frozen=True, slots=True)
class GridLoss:
    """A bound on a privacy curve: delta(e) <= sum_i masses[i] (1 - exp(e - (first + i) step))_+ for all real
    e.

    The masses are not negative; they add to 1 or a little more. `rounding` is the relative error that the
    arithmetic which made the masses, and the sum that uses them, may have lost.
    """

    step: float
    first: int
    masses: Floats
    rounding: float

    def delta_with_gaussian(self, mu: float, epsilon: float) -> float:
        """An upper bound on delta for these events composed with Gaussian ones of `mu` in all.

        Formula: delta(epsilon) <= sum_i masses[i] delta_mu(epsilon - (first + i) step),
        where delta_mu is the Gaussian curve (for mu = 0, the curve of no noise at all: (1 - e^epsilon)_+).

        Guarantee: rounded up. The losses i step are exact doubles; the difference is rounded down.
        Reference: docs/proofs/accounting.md, Lemma 2.
        """
        losses = self.step * np.arange(self.first, self.first + len(self.masses))
        left = np.nextafter(epsilon - losses, -np.inf)
        delta = float(self.masses @ gaussian_deltas(mu, left))
        return min(delta * (1.0 + self.rounding), 1.0)


@lru_cache(maxsize=1024)  # all events are summed up again before each draw
def pure_epsilon(event: PureEvent) -> Fraction:
    """The event's pure epsilon, exactly: sensitivity/scale, or the range of the choice, times what may change.

    Reference: docs/proofs/laplace.md, Lemma 1; docs/proofs/bounded-range.md, Lemma 1.
    """
    match event:
        case LaplaceEvent():
            return Fraction(event.sensitivity) / Fraction(event.scale)
        case SparseLaplaceEvent():
            return event.changed * Fraction(event.sensitivity) / Fraction(event.scale)
        case SelectionEvent():
            return event.changed * Fraction(event.epsilon)
        case ExponentialEvent():
            return Fraction(event.epsilon)


def compose_losses(events: Sequence[PureEvent]) -> GridLoss | None:
    """The loss of all pure events together, adaptively chosen; None if their epsilons exceed any use.

    Guarantee: an upper bound at every epsilon, with all rounding charged (see `_connect_dots` for a single
    event; a convolution of n terms has relative error at most (n + 2) 2^-53, below 1e-12 here).
    """
    return _composed(tuple(events))


@lru_cache(maxsize=64)  # the same list is asked for when events are reserved, drawn and checked
def _composed(events: tuple[PureEvent, ...]) -> GridLoss | None:
    epsilons = [pure_epsilon(event) for event in events]
    total = sum(epsilons, Fraction(0))
    if total > LARGEST_EPSILON:
        return None
    step = _short(max(float(total) / STEPS, FINEST_STEP))
    first, masses, blocks = 0, np.ones(1), 0
    for event, epsilon in zip(events, epsilons, strict=True):
        if isinstance(event, SelectionEvent | SparseLaplaceEvent):
            for block_first, block in _blocks(event, step):
                masses = np.convolve(masses, block)
                first += block_first
                blocks += 1
            continue
        reach = math.ceil(epsilon / Fraction(step))
        grid = step * np.arange(-reach, reach + 1, dtype=np.float64)
        masses = np.convolve(masses, _connect_dots(step, event_deltas(event, grid), float(epsilon)))
        first -= reach
    masses.setflags(write=False)
    return GridLoss(step, first, masses, rounding=1e-11 * (len(events) + blocks + 1))


def _blocks(event: SelectionEvent | SparseLaplaceEvent, step: float) -> Iterator[tuple[int, Floats]]:
    """The hinges of a family, in blocks of at most BLOCK changed outcomes.

    Discrete Laplace noise shifted by up to `sensitivity` is (sensitivity/scale)-private: a pair of range twice that,
    centred at 0.
    """
    if isinstance(event, SelectionEvent):
        eta, centred = event.epsilon, False
    else:
        eta, centred = 2.0 * float_up(Fraction(event.sensitivity) / Fraction(event.scale)), True
    sizes = [BLOCK] * (event.changed // BLOCK)
    if event.changed % BLOCK:
        sizes.append(event.changed % BLOCK)
    for size in sizes:
        yield family_hinges(eta, size, step, centred)


def event_deltas(event: LaplaceEvent | ExponentialEvent, epsilons: Floats) -> Floats:
    """An upper bound (up to a few units of rounding) on the event's privacy curve at each of `epsilons`."""
    if isinstance(event, LaplaceEvent):
        return laplace_deltas(event.sensitivity, event.scale, epsilons)
    return bounded_range_deltas(event.epsilon, epsilons)


def laplace_deltas(sensitivity: int, scale: float, epsilons: Floats) -> Floats:
    """The curve of discrete Laplace noise on an integer vector.

    Formula, for |e| < D/b: delta(e) = max over k = 0..D-1 of 1 - (a^(k+1) + e^e a^(D-k))/(1 + a), a =
    e^(-1/b), at most 1 - e^((e - D/b)/2) / cosh(1/(2b)); 0 from D/b up; 1 - e^e from -D/b down; where D is
    `sensitivity` (l1, an integer) and b is `scale`.

    Guarantee: bounds every vector of noises with shifts of l1 norm at most D; exact for a single coordinate
    shifted by D <= 2^20, and the smooth upper bound beyond. Reference: docs/proofs/laplace.md, Lemmas 2 and
    3.
    """
    top = float_up(Fraction(sensitivity) / Fraction(scale))
    if sensitivity > EXACT_SENSITIVITY:
        log_cosh = math.log1p(0.5 * math.expm1(0.5 / scale) ** 2 * math.exp(-0.5 / scale))
        inside = -np.expm1(np.minimum(0.5 * (epsilons - top) - log_cosh, 0.0))
    else:
        a = math.exp(-1.0 / scale)
        best = np.ceil(0.5 * (sensitivity - epsilons * scale)) - 1.0
        inside = np.zeros_like(epsilons)
        for offset in (-1.0, 0.0, 1.0):  # so that a rounded ceiling cannot miss the best k
            k = np.clip(best + offset, 0.0, sensitivity - 1.0)
            power = np.exp(np.minimum(epsilons - (sensitivity - k) / scale, 700.0))
            inside = np.maximum(inside, 1.0 - (np.exp(-(k + 1.0) / scale) + power) / (1.0 + a))
    return _within(top, epsilons, inside)


def bounded_range_deltas(eta: float, epsilons: Floats) -> Floats:
    """The curve that bounds every choice of bounded range eta.

    Formula, for |e| < eta: delta(e) = (e^(eta/2) - e^(e/2))^2 / (e^eta - 1); 0 from eta up; 1 - e^e from -eta
    down; where eta is the epsilon of an ExponentialEvent.

    Guarantee: the least curve that holds for all bounded ranges [t - eta, t]. Reference:
    docs/proofs/bounded-range.md, Theorem 2, after Dong, Durfee and Rogers (arXiv 1909.13830).
    """
    inside = np.expm1(np.minimum(0.5 * (epsilons - eta), 0.0)) ** 2 / -math.expm1(-eta)
    return _within(eta, epsilons, inside)


def _within(top: float, epsilons: Floats, inside: Floats) -> Floats:
    """`inside` between -top and top, the curves of losses that lie within [-top, top] outside."""
    outside = np.where(epsilons >= top, 0.0, -np.expm1(np.minimum(epsilons, 0.0)))
    return np.where(np.abs(epsilons) < top, inside, outside)


def _connect_dots(step: float, deltas: Floats, epsilon: float) -> Floats:
    """Masses on a contiguous grid whose curve passes through or above `deltas` and bounds the event's curve.

    Formula: m_i = (d_(i-1) - d_i)/(1 - e^-h) - (d_i - d_(i+1)) e^-h/(1 - e^-h) within, m_0 = (1 - d_0) - (d_0
    - d_1) e^-h/(1 - e^-h) and m_n = (d_(n-1) - d_n)/(1 - e^-h), where h is `step` and d are `deltas`; d_n
    must be 0 and d_0 = 1 - e^(first grid point).

    Guarantee: `deltas` are good to 8 (1 + epsilon) units u = 2^-53, so each mass is to 64 (1 + epsilon) u/(1
    - e^-h), by which it is raised; a negative one is raised to 0. Raising masses only raises the curve.
    """
    gap = -math.expm1(-step)
    falls = -np.diff(deltas) / gap
    masses = np.append(1.0 - deltas[0], falls) - np.append(falls * math.exp(-step), 0.0)
    raised: Floats = np.maximum(masses, 0.0) + 64.0 * (1.0 + epsilon) * _U / gap
    return raised


def _short(step: float) -> float:
    """`step` rounded up to 32 bits, so that its products with small integers are exact."""
    mantissa, exponent = math.frexp(step)
    return math.ldexp(math.ceil(math.ldexp(mantissa, 32)), exponent - 32)


def float_up(value: Fraction) -> float:
    """The smallest double that is at least `value`; infinite if there is none."""
    try:
        nearest = value.numerator / value.denominator
    except OverflowError:
        return math.inf
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)
