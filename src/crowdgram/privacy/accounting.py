"""What was spent and what is left: all events of a release, together, against its guarantee.

Rounds may be chosen from the outcomes of earlier ones (adaptive composition). Gaussian events add in mu^2,
pure ones (discrete Laplace, choices of bounded range) through their privacy losses, and both join in one sum;
a threshold adds its delta. See docs/proofs/accounting.md. Everything is rounded to the side that overstates
what was spent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

import numpy as np

from crowdgram.errors import InvalidArgument, PrivacyViolation
from crowdgram.privacy.events import Event, GaussianEvent, SelectionEvent, ThresholdEvent
from crowdgram.privacy.gaussian import gaussian_delta, gaussian_deltas, gaussian_epsilon, gaussian_mu
from crowdgram.privacy.guarantee import Guarantee
from crowdgram.privacy.losses import GridLoss, PureEvent, compose_losses, float_up, pure_epsilon
from crowdgram.privacy.roots import find_root

__all__ = [
    "TAU",
    "check",
    "delta_spent",
    "epsilon_spent",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_event_mu",
    "gaussian_mu",
    "gaussian_sigma",
    "laplace_scale",
    "remaining_epsilon",
    "remaining_mu",
    "selection_epsilon",
]

# The width, in units of the integers, of the randomised rounding that turns a continuous Gaussian into the
# discrete one.
TAU = 2.0
# The loss of one coordinate: log((1 + kappa)/(1 - kappa)) with kappa = 2 sum_j exp(-2 pi^2 TAU^2 j^2), which
# lies just above 4 exp(-2 pi^2 TAU^2) = 2.05e-34. Reference: docs/proofs/discrete-gaussian.md, Lemma 1.
ETA = 5.0 * math.exp(-2.0 * math.pi**2 * TAU**2)
# `remaining_mu` keeps back this part of mu, so that shares of it may be rounded and still add to no more than
# it.
ROOM_FOR_SHARES = 2.0**-40
# `remaining_epsilon` keeps back this part of delta: as computed, the Gaussian curve is not monotone to the last digits,
# and is read again at an epsilon that is rounded. They are about 2^-52 / mu of it.
ROOM_FOR_ROUNDING = 2.0**-20


def delta_spent(events: Iterable[Event], epsilon: float) -> float:
    """The delta for which all events together are (epsilon, delta)-differentially private.

    Formula: D + e^H sum_i m_i delta_mu(epsilon - 2H - l_i), where D is the sum of the deltas of thresholds, mu^2 =
    sum of gaussian_event_mu^2, H = ETA times the sum of the dimensions of Gaussian events, and m_i, l_i are the
    masses and losses of the pure events together (one mass 1 at loss 0 if there are none). Or D + e^H
    delta_mu(epsilon - E - 2H), E the sum of the epsilons of the pure events, if that is less. D alone if there are no
    Gaussian events and E is at most `epsilon`.

    Guarantee: for the unit and adjacency whose sensitivities the events hold; adaptive; rounded up.
    Reference: docs/proofs/accounting.md, Theorem 4; docs/proofs/discovery.md, Theorem 1.
    """
    _check_epsilon(epsilon)
    return _Spent.of(events).delta(epsilon)


def epsilon_spent(events: Iterable[Event], delta: float) -> float:
    """The epsilon for which all events together are (epsilon, delta)-differentially private.

    Formula: the smallest epsilon with delta_spent(events, epsilon) <= delta. For delta = 0 that is the exact
    sum of the epsilons of pure events, and infinite if there are Gaussian ones or thresholds.

    Guarantee: as for `delta_spent`, through which the value is re-checked before it is returned; rounded up.
    """
    if not 0.0 <= delta < 1.0:
        raise InvalidArgument(f"delta={delta!r}: needs to be at least 0 and below 1.", argument="delta")
    spent = _Spent.of(events)
    if spent.gaussian:
        # Somewhere below this the curve is under any useful delta; if not there, nowhere.
        start = 1.0
        while start < 1e12 and spent.delta(start) > delta:
            start *= 2.0
        return _least(lambda epsilon: spent.delta(epsilon) <= delta, start)
    if spent.thresholds > Fraction(delta):
        return math.inf
    simple = float_up(spent.pure)
    if delta == 0.0 or not math.isfinite(simple):
        return simple
    return _least(lambda epsilon: spent.delta(epsilon) <= delta, simple)


def check(events: Iterable[Event], guarantee: Guarantee) -> None:
    """Raise PrivacyViolation unless the events together keep the guarantee. Exact: no slack, no tolerance.

    Formula: delta_spent(events, guarantee.epsilon) <= guarantee.delta.

    Guarantee: if this returns, the events together have `guarantee`, for sensitivities that were taken for
    its unit and adjacency. Reference: docs/proofs/accounting.md, Theorem 4.
    """
    spent = delta_spent(events, guarantee.epsilon)
    if not spent <= guarantee.delta:
        raise PrivacyViolation(
            f"the recorded events spend delta={spent:.6g} at epsilon={guarantee.epsilon:g}, more than the "
            f"promised delta={guarantee.delta:g}; nothing is released. This is a bug: please report it."
        )


@lru_cache(maxsize=1024)  # all events are summed up again before each draw
def gaussian_event_mu(event: GaussianEvent) -> float:
    """The event's mu, discreteness included; infinite if sigma <= TAU.

    Formula: sensitivity / sqrt(sigma^2 - TAU^2), rounded up to the next double by an exact comparison.
    Reference: docs/proofs/discrete-gaussian.md, Theorem 2.
    """
    if event.sigma <= TAU:
        return math.inf
    spread = math.sqrt((event.sigma - TAU) * (event.sigma + TAU)) if event.sigma < 1e100 else event.sigma
    estimate = event.sensitivity / spread
    if not math.isfinite(estimate):
        return math.inf
    return _smallest_double(estimate, lambda mu: _keeps_mu(event.sensitivity, event.sigma, mu))


def gaussian_sigma(sensitivity: float, mu: float) -> float:
    """The smallest sigma whose GaussianEvent of this sensitivity has gaussian_event_mu <= mu.

    Formula: sqrt((sensitivity/mu)^2 + TAU^2), rounded up to the next double by an exact comparison.
    """
    _check_positive("sensitivity", sensitivity)
    _check_positive("mu", mu)
    sensitivity, mu = float(sensitivity), float(mu)
    estimate = math.hypot(sensitivity / mu, TAU)
    if not math.isfinite(estimate):
        raise InvalidArgument(
            f"mu={mu!r}: no finite sigma serves sensitivity {sensitivity!r}. Raise epsilon.", argument="mu"
        )
    return _smallest_double(estimate, lambda sigma: sigma > TAU and _keeps_mu(sensitivity, sigma, mu))


def laplace_scale(sensitivity: int, epsilon: float) -> float:
    """The smallest scale for which discrete Laplace noise of this integer l1 sensitivity is epsilon-private.

    Formula: sensitivity / epsilon, rounded up to the next double by an exact comparison.
    Reference: docs/proofs/laplace.md, Lemma 1.
    """
    if isinstance(sensitivity, bool) or not hasattr(sensitivity, "__index__") or sensitivity < 1:
        raise InvalidArgument(
            f"sensitivity={sensitivity!r}: needs to be a whole number, at least 1.", argument="sensitivity"
        )
    _check_positive("epsilon", epsilon)
    scale = float_up(Fraction(sensitivity.__index__()) / Fraction(float(epsilon)))
    if not math.isfinite(scale):
        raise InvalidArgument(
            f"epsilon={epsilon!r}: no finite scale serves sensitivity {sensitivity!r}. Raise epsilon.",
            argument="epsilon",
        )
    return scale


def remaining_mu(guarantee: Guarantee, events: Iterable[Event], dimension: int, *, most: float = math.inf) -> float:
    """The mu left for further Gaussian events of `dimension` coordinates in all; 0 if nothing is left. most: what they
    may have for another reason; that is found at once if it is left.

    Formula: the largest mu such that D + e^H sum_i m_i delta_M(epsilon - 2H - l_i) <= delta, M^2 = mu^2 + the
    earlier mu^2, with D, H and the sum as in `delta_spent`, less one part in 10^12.

    Guarantee: further Gaussian events whose exact squares of gaussian_event_mu add to at most mu^2, and whose
    dimensions add to at most `dimension`, keep the guarantee together with `events`: the value is re-checked
    before it is returned. The part held back leaves room to round the shares of each event.
    """
    if isinstance(dimension, bool) or not hasattr(dimension, "__index__") or dimension < 1:
        raise InvalidArgument(f"dimension={dimension!r}: needs to be a whole number, at least 1.", argument="dimension")
    return _remaining_mu(guarantee, tuple(events), dimension.__index__(), most)


@lru_cache(maxsize=256)  # a release asks several times, and so do releases of the same budget
def _remaining_mu(guarantee: Guarantee, events: tuple[Event, ...], dimension: int, most: float) -> float:
    spent = _Spent.of(events)

    def delta(mu: float) -> float:
        return spent.with_gaussian(mu, dimension).delta(guarantee.epsilon)

    def keeps(mu: float) -> bool:
        return delta(mu) <= guarantee.delta

    # Alone, Gaussian events can use this much; earlier events leave no more.
    low, high = 0.0, min(gaussian_mu(guarantee.epsilon, guarantee.delta), most)
    enough, too_much = low, high
    if high > 0.0 and keeps(high):
        low = high
    elif high > 0.0:
        enough, too_much = _bracket(delta, guarantee.delta, high)
    for _ in range(64):
        middle = 0.5 * (low + high)
        if middle in (low, high) or high - low < 2.0**-48 * high:
            break
        kept = middle <= enough or (middle < too_much and keeps(middle))
        low, high = (middle, high) if kept else (low, middle)
    # As computed, the curve is not monotone to the last digits, which are few if delta is tiny.
    for room in (ROOM_FOR_SHARES, ROOM_FOR_ROUNDING, 2.0**-10):
        mu = low * (1.0 - room)
        if mu > 0.0 and keeps(mu):
            return mu
    return 0.0


def _bracket(delta: Callable[[float], float], most: float, high: float) -> tuple[float, float]:
    """A mu with delta(mu) <= `most`, or 0, and one just above with a larger delta. At `high` it is larger."""

    def excess(mu: float) -> float:
        return math.log(delta(mu) / most)

    lows = high / 2, high / 2**6, high / 2**20, high / 2**64  # half of it, 64 times over, is as far as one looks
    low = next((low for low in lows if excess(low) < 0.0), None)
    if low is None:
        return 0.0, lows[-1]
    root = find_root(excess, low, high, 2.0**-44)
    enough, too_much = root * (1.0 - 2.0**-42), root * (1.0 + 2.0**-42)
    return (enough, too_much) if excess(enough) <= 0.0 < excess(too_much) else (0.0, high)


def selection_epsilon(guarantee: Guarantee, events: Iterable[Event], changed: int, share: float = 1.0) -> float:
    """The range of each choice of a SelectionEvent that changes `changed` of them; 0 if nothing is left.

    Formula: sqrt(share) times the largest epsilon for which `events` and the family keep the guarantee, to within 1
    part in 1000, from below. (What a family costs grows as the square of its range, so that a share of one half leaves
    about half of mu^2 to Gaussian rounds.)

    Guarantee: the value is re-checked through `delta_spent` before it is returned.
    """
    if isinstance(changed, bool) or not hasattr(changed, "__index__") or changed < 1:
        raise InvalidArgument(f"changed={changed!r}: needs to be a whole number, at least 1.", argument="changed")
    past = tuple(events)

    def keeps(epsilon: float) -> bool:
        family = SelectionEvent("trial", epsilon, 2, changed, changed)
        return _Spent.of([*past, family]).delta(guarantee.epsilon) <= guarantee.delta

    # Near what Gaussian noise of the same variance would allow; never less than what adding epsilons does.
    left = _Spent.of(past)
    least = 0.0 if left.gaussian else max(float(Fraction(guarantee.epsilon) - left.pure), 0.0) / changed
    guess = max(2.0 * gaussian_mu(guarantee.epsilon, guarantee.delta) / math.sqrt(changed), least)
    if guess <= 0.0:
        return 0.0
    low, high = 0.0, guess
    while keeps(high) and high < 2.0**10:
        low, high = high, 1.1 * high
    if low == 0.0:
        low = high
        while low > 2.0**-30 and not keeps(low):
            low, high = 0.9 * low, low
        if not keeps(low):
            return 0.0
    while high - low > 1e-3 * low:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if keeps(middle) else (low, middle)
    return low * math.sqrt(share)


def remaining_epsilon(guarantee: Guarantee, events: Iterable[Event], delta: float = 0.0) -> float:
    """The epsilon left for one further pure event, by simple subtraction; 0 if nothing is left.

    Formula: guarantee.epsilon - e - sum of the epsilons of the pure ones of `events`, exact, rounded down to a double,
    where e = 0 if there are no Gaussian events, and else the smallest e with e^H delta_mu(e - 2H) <= `delta`
    less one part in a million.

    Guarantee: a further event of this epsilon keeps (guarantee.epsilon, delta), adaptively chosen, if the Gaussian
    events were the first; the deltas of thresholds are not part of `delta`. Reference: docs/proofs/accounting.md,
    Theorem 6.
    """
    spent = _Spent.of(events)
    left = Fraction(guarantee.epsilon) - spent.pure
    if spent.gaussian:
        if not delta > 0.0:
            raise InvalidArgument(
                "events: Gaussian noise is among them, which has no epsilon to subtract without a delta. Use "
                "remaining_mu for what it leaves.",
                argument="events",
            )
        tail = _epsilon_of(spent.gaussian_only(), delta * (1.0 - ROOM_FOR_ROUNDING), guarantee.epsilon)
        if not math.isfinite(tail):
            return 0.0
        left -= Fraction(tail)
    return -float_up(-left) if left > 0 else 0.0


@dataclass(frozen=True, slots=True)
class _Spent:
    """The sums over events that their delta depends on."""

    gaussian: bool
    mu_squared: Fraction | None  # None: infinite
    dimension: int
    pure: Fraction
    loss: GridLoss | None  # None: no pure events, or too many for any use
    thresholds: Fraction  # the sum of their deltas

    @classmethod
    def of(cls, events: Iterable[Event]) -> _Spent:
        events = tuple(events)
        gaussians = [event for event in events if isinstance(event, GaussianEvent)]
        pures = [event for event in events if isinstance(event, PureEvent)]
        thresholds = [event for event in events if isinstance(event, ThresholdEvent)]
        if len(gaussians) + len(pures) + len(thresholds) != len(events):
            raise InvalidArgument("events: need to be events of crowdgram.privacy.", argument="events")
        mus = [gaussian_event_mu(event) for event in gaussians]
        squared = sum((Fraction(mu) ** 2 for mu in mus), Fraction(0)) if all(map(math.isfinite, mus)) else None
        return cls(
            gaussian=bool(gaussians),
            mu_squared=squared,
            dimension=sum(event.dimension for event in gaussians),
            pure=sum((pure_epsilon(event) for event in pures), Fraction(0)),
            loss=compose_losses(pures) if pures else None,
            thresholds=sum((Fraction(event.delta) for event in thresholds), Fraction(0)),
        )

    def with_gaussian(self, mu: float, dimension: int) -> _Spent:
        """Together with further Gaussian events."""
        squared = None if self.mu_squared is None else self.mu_squared + Fraction(mu) ** 2
        return replace(self, gaussian=True, mu_squared=squared, dimension=self.dimension + dimension)

    def gaussian_only(self) -> _Spent:
        """The Gaussian events by themselves."""
        return replace(self, pure=Fraction(0), loss=None, thresholds=Fraction(0))

    def delta(self, epsilon: float) -> float:
        noise = self._noise_delta(epsilon)
        return min(float_up(Fraction(noise) + self.thresholds), 1.0) if self.thresholds else noise

    def _noise_delta(self, epsilon: float) -> float:
        if not self.gaussian and self.pure <= Fraction(epsilon):
            return 0.0
        if self.mu_squared is None:
            return 1.0
        composed = self._composed(epsilon)
        if not self.pure or (left := Fraction(epsilon) - self.pure) < 0:
            return composed
        # Epsilons that add up: the grid of losses, whose step is rounded up, may say more if they are tiny.
        return min(composed, self.gaussian_only()._noise_delta(-float_up(-left)))

    def _composed(self, epsilon: float) -> float:
        """The Gaussian curve, spread over the losses of the pure events."""
        if self.mu_squared is None or (self.pure > 0 and self.loss is None):
            return 1.0
        mu = _sqrt_up(self.mu_squared)
        charge = self.dimension * ETA
        if charge:
            # Far below one unit of rounding for any real dimension; charged as at least that unit.
            epsilon = math.nextafter(epsilon - 2.0 * charge, -math.inf)
        if self.loss is not None:
            delta = self.loss.delta_with_gaussian(mu, epsilon)
        else:
            delta = float(gaussian_deltas(mu, np.array([epsilon]))[0])
        return min(math.nextafter(delta * math.exp(charge), math.inf), 1.0) if charge else delta


@lru_cache(maxsize=256)  # a release asks several times, and so do releases of the same budget
def _epsilon_of(noise: _Spent, delta: float, most: float) -> float:
    """The smallest epsilon up to `most` at which Gaussian noise has no larger delta; infinite if there is none."""
    return _least(lambda epsilon: noise.delta(epsilon) <= delta, most)


def _keeps_mu(sensitivity: float, sigma: float, mu: float) -> bool:
    """Whether sensitivity / sqrt(sigma^2 - TAU^2) <= mu, in exact rationals."""
    return Fraction(sensitivity) ** 2 <= Fraction(mu) ** 2 * (Fraction(sigma) ** 2 - Fraction(TAU) ** 2)


@lru_cache(maxsize=64)  # a curve is read at many epsilons
def _sqrt_up(square: Fraction) -> float:
    """The smallest double whose square is at least `square`; coarser, but no less, at the extremes."""
    if square == 0:
        return 0.0
    if square > 1e100:
        return math.inf
    if square < 1e-100:
        return 1e-50
    return _smallest_double(math.sqrt(float_up(square)), lambda root: Fraction(root) ** 2 >= square)


def _smallest_double(estimate: float, holds: Callable[[float], bool]) -> float:
    """The smallest double for which `holds` (and holds above it), from an estimate a few units off."""
    while not holds(estimate):
        estimate = math.nextafter(estimate, math.inf)
    while (below := math.nextafter(estimate, 0.0)) > 0.0 and holds(below):
        estimate = below
    return estimate


def _least(holds: Callable[[float], bool], high: float) -> float:
    """The smallest epsilon in [0, high] for which `holds`, from above; infinite if it fails at high."""
    if holds(0.0):
        return 0.0
    if not holds(high):
        return math.inf
    low = 0.0
    while (middle := 0.5 * (low + high)) not in (low, high) and high - low > 2.0**-50 * high:
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _check_epsilon(epsilon: float) -> None:
    if not (epsilon >= 0.0 and math.isfinite(epsilon)):
        raise InvalidArgument(f"epsilon={epsilon!r}: needs to be a finite number, at least 0.", argument="epsilon")


def _check_positive(name: str, value: float) -> None:
    if isinstance(value, bool) or not (value > 0.0 and math.isfinite(value)):
        raise InvalidArgument(f"{name}={value!r}: needs to be a finite number above 0.", argument=name)
