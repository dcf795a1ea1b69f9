"""Many releases against one budget: what each costs, and when the next one still fits.

Releases come one after another, and whoever asks for the next has seen the last: what it may cost depends on
earlier outcomes. So the budget is a *filter*, not a composition of parameters that were fixed beforehand. It
keeps a few *boxes*, each a set of totals that promises its own part of delta, fixed when the budget is set up.
Releases may go on as long as the totals lie in one of them: paths that end in different boxes have their parts
of delta added. Proof: docs/proofs/ledger.md.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from fractions import Fraction
from typing import Any

import numpy as np

from crowdgram.errors import InvalidArgument, PrivacyViolation
from crowdgram.privacy.accounting import ETA, gaussian_event_mu
from crowdgram.privacy.events import Event, ExponentialEvent, GaussianEvent, LaplaceEvent, ThresholdEvent
from crowdgram.privacy.gaussian import gaussian_deltas, gaussian_epsilon, gaussian_mu
from crowdgram.privacy.guarantee import Guarantee
from crowdgram.privacy.losses import float_up, pure_epsilon

__all__ = ["Box", "Cost", "Filter", "Plan", "Total", "cost_of", "filled_epsilon", "opaque_cost", "total"]

# Of delta: for Gaussian noise with all pure events in mu, for each box with a part of epsilon kept for pure
# finishes, for the plain sum of what releases promise, and for what adds to delta outright (thresholds, and
# releases of which only the promise is known). They add to 1.
ALL_IN_MU = Fraction(1, 2)
WITH_PURE = {Fraction(eighths, 8): Fraction(1, 16) for eighths in (2, 4, 6, 7)}
PLAIN_SUM = Fraction(1, 8)
OUTRIGHT = Fraction(1, 8)

# An epsilon-private event is at most a Gaussian one of mu^2 = (pi/2) epsilon^2; this is above pi/2.
HALF_PI = Fraction(math.nextafter(math.pi / 2, 2.0))

# Sums of epsilons and of deltas may exceed the budget by this part, so that three times 0.1 fits 0.3. It is
# part of what a budget promises.
ROOM = 1 + Fraction(1, 2**40)

# Gaussian coordinates of all releases together, and what their discreteness costs at most: twice this in
# epsilon.
MOST_COORDINATES = 2**64
DISCRETENESS = MOST_COORDINATES * ETA


@dataclass(frozen=True, slots=True)
class Cost:
    """What a release spends, in every currency that a box may count in. Costs of releases add up.

    epsilon, delta: what it promises. pure: the epsilons of all its pure events; finish: of those that are not
    looks; finish_squared, looks_squared: sums of squares of the epsilons of either. mu_squared, dimension: of
    its Gaussian events. outright: what adds to delta as it is. (Looks are the small pure events that a
    mechanism reserves before it reads the table.)
    """

    epsilon: float
    delta: float
    pure: float = 0.0
    finish: float = 0.0
    finish_squared: float = 0.0
    looks_squared: float = 0.0
    mu_squared: float = 0.0
    dimension: int = 0
    outright: float = 0.0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            good = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
            if not good or value < 0 or (field.name == "dimension" and not isinstance(value, int)):
                raise InvalidArgument(
                    f"{field.name}={value!r}: needs to be a finite number of at least 0.", argument=field.name
                )

    def within(self, other: Cost) -> bool:
        """Whether it is at most `other` in every currency."""
        return all(getattr(self, field.name) <= getattr(other, field.name) for field in fields(self))

    def to_dict(self) -> dict[str, Any]:
        """The cost in plain values, for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Cost:
        """The cost that `to_dict` wrote."""
        if set(values) != {field.name for field in fields(cls)}:
            raise InvalidArgument(
                f"values: has the keys {sorted(values)}, and needs those of a cost.", argument="values"
            )
        return cls(**values)


@dataclass(frozen=True, slots=True)
class Plan:
    """What a release may cost, known before it reads the table: one of `ways`, whatever its noise turns out to be.

    looks: the purposes of the events that count as looks. known: whether the events tell what was spent; if
    they do not, a release costs what it promised.
    """

    ways: tuple[Cost, ...]
    looks: frozenset[str] = frozenset()
    known: bool = True

    def __post_init__(self) -> None:
        if not self.ways:
            raise InvalidArgument("ways: needs at least one.", argument="ways")

    @property
    def most(self) -> Cost:
        """The largest of all ways in every currency: what a release counts as until it is finished."""
        return Cost(*(max(getattr(way, field.name) for way in self.ways) for field in fields(Cost)))

    def settled(self, events: Sequence[Event], guarantee: Guarantee) -> Cost:
        """What a finished release cost; PrivacyViolation if that is none of the ways."""
        cost = cost_of(events, guarantee, self.looks) if self.known else opaque_cost(guarantee)
        if not any(cost.within(way) for way in self.ways):
            raise PrivacyViolation(
                "the release drew more than was charged for it; nothing is released. This is a bug: please report it."
            )
        return cost


def cost_of(events: Iterable[Event], guarantee: Guarantee, looks: Collection[str] = ()) -> Cost:
    """What a release with these events costs; `looks` are the purposes of events that count as looks.

    Formula: sums over events, in exact rationals, rounded up to doubles.
    """
    pure = finish = finish_squared = looks_squared = mu_squared = outright = Fraction(0)
    dimension = 0
    for event in events:
        if isinstance(event, GaussianEvent):
            mu_squared += Fraction(gaussian_event_mu(event)) ** 2
            dimension += event.dimension
        elif isinstance(event, LaplaceEvent | ExponentialEvent):
            epsilon = pure_epsilon(event)
            pure += epsilon
            if event.purpose in looks:
                looks_squared += epsilon**2
            else:
                finish += epsilon
                finish_squared += epsilon**2
        elif isinstance(event, ThresholdEvent):
            outright += Fraction(event.delta)
        else:
            raise InvalidArgument(f"{type(event).__name__} has no cost of its own: use opaque_cost.", argument="event")
    return Cost(
        guarantee.epsilon,
        guarantee.delta,
        float_up(pure),
        float_up(finish),
        float_up(finish_squared),
        float_up(looks_squared),
        float_up(mu_squared),
        dimension,
        float_up(outright),
    )


def opaque_cost(guarantee: Guarantee) -> Cost:
    """What a release costs of which only the promise is known: its epsilon as a pure one, and its delta outright."""
    epsilon, delta = guarantee.epsilon, guarantee.delta
    return Cost(epsilon, delta, epsilon, epsilon, float_up(Fraction(epsilon) ** 2), outright=delta)


@dataclass(frozen=True, slots=True)
class Total:
    """Sums of costs, exactly."""

    epsilon: Fraction
    delta: Fraction
    pure: Fraction
    finish: Fraction
    finish_squared: Fraction
    looks_squared: Fraction
    mu_squared: Fraction
    dimension: Fraction
    outright: Fraction

    def with_cost(self, cost: Cost) -> Total:
        """Together with one more cost."""
        return Total(*(getattr(self, field.name) + Fraction(getattr(cost, field.name)) for field in fields(Cost)))

    def gaussian(self, *, finishes: bool) -> Fraction:
        """mu^2 with looks, and perhaps finishes, counted in mu."""
        pure = self.looks_squared + self.finish_squared if finishes else self.looks_squared
        return self.mu_squared + HALF_PI * pure


def total(costs: Iterable[Cost]) -> Total:
    """The sum of costs, without rounding."""
    costs = tuple(costs)
    return Total(*(sum((Fraction(getattr(c, f.name)) for c in costs), Fraction(0)) for f in fields(Cost)))


@dataclass(frozen=True, slots=True)
class Box:
    """Totals with pure finishes of at most `epsilon` and all else at most `mu`; with epsilon 0 finishes count in mu."""

    epsilon: float
    mu: float

    def holds(self, spent: Total) -> bool:
        if self.epsilon == 0.0:
            return spent.gaussian(finishes=True) <= Fraction(self.mu) ** 2
        return spent.finish <= Fraction(self.epsilon) and spent.gaussian(finishes=False) <= Fraction(self.mu) ** 2

    def delta(self, epsilon: float) -> float:
        """The part of delta that the box promises, rounded up.

        Formula: e^H (p delta_mu(e - E) + (1 - p) delta_mu(e + E)), p = 1/(1 + e^-E), e = epsilon - 2H, where E and
        mu are the box's, H bounds what the discreteness of Gaussian noise costs, and delta_mu is the Gaussian curve.
        Reference: docs/proofs/ledger.md, Lemma 3.
        """
        left = epsilon - 4.0 * DISCRETENESS
        ends = np.nextafter(np.array([left - self.epsilon, left + self.epsilon]), -np.inf)
        near, far = gaussian_deltas(self.mu, ends).tolist()
        p = 1.0 / (1.0 + math.exp(-self.epsilon)) * (1.0 + 2.0**-50)
        return float(min((p * near + (1.0 - p + 2.0**-50) * far) * (1.0 + 2.0**-40), 1.0))


@dataclass(frozen=True, slots=True)
class Filter:
    """A budget of (epsilon, delta) for any number of releases, each chosen after the results of those before.

    Guarantee: whoever starts releases only while `fits` says so has (epsilon, delta)-differential privacy, each to
    one part in 2^40, for everything that all of them show together. Reference: docs/proofs/ledger.md, Theorem 4.

    composition: "tight" (boxes) or "plain" (promises are summed); it has to be fixed before the first result is seen.
    """

    epsilon: float
    delta: float
    boxes: tuple[Box, ...]

    @classmethod
    def of(cls, guarantee: Guarantee) -> Filter:
        """The boxes of a budget; none if delta is 0."""
        epsilon, delta = guarantee.epsilon, guarantee.delta
        if delta == 0.0:
            return cls(epsilon, 0.0, ())
        parts = {Fraction(0): ALL_IN_MU, **WITH_PURE}
        boxes = [_widest(part, epsilon, delta * float(share)) for part, share in parts.items()]
        return cls(epsilon, delta, tuple(box for box in boxes if box.mu > 0.0))

    def is_sound(self) -> bool:
        """Whether the boxes together promise no more than their part of delta."""
        if not self.boxes:
            return True
        promised = sum((Fraction(box.delta(self.epsilon)) for box in self.boxes), Fraction(0))
        return promised + (PLAIN_SUM + OUTRIGHT) * Fraction(self.delta) <= Fraction(self.delta)

    def first_composition(self, plan: Plan) -> str:
        """How all releases are to be composed, by what the first may cost."""
        return "tight" if self.boxes and self.fits("tight", total(()), plan) else "plain"

    def fits(self, composition: str, before: Total, plan: Plan) -> bool:
        """Whether a release of this plan may start: whichever way it takes, the totals lie in some box."""
        return all(self.holds(composition, before.with_cost(way)) for way in plan.ways)

    def holds(self, composition: str, spent: Total) -> bool:
        if composition == "plain":
            return self._plain(spent, Fraction(self.delta))
        if spent.outright > OUTRIGHT * Fraction(self.delta) or spent.dimension > MOST_COORDINATES:
            return False
        purely = spent.mu_squared == 0 and spent.pure <= Fraction(self.epsilon) * ROOM
        summed = self._plain(spent, PLAIN_SUM * Fraction(self.delta))
        return purely or summed or any(box.holds(spent) for box in self.boxes)

    def as_epsilon(self, composition: str, spent: Total) -> float:
        """For readers: about the epsilon of a budget, of the same delta and make, that the totals would just fill.

        At most the budget's own. Not a promise: what is promised is the budget's epsilon.
        """
        return min(self.epsilon, filled_epsilon(composition, spent, self.delta))

    def _plain(self, spent: Total, delta: Fraction) -> bool:
        return spent.epsilon <= Fraction(self.epsilon) * ROOM and spent.delta <= delta * ROOM

    def to_dict(self) -> dict[str, Any]:
        """The filter in plain values, for JSON."""
        return {"epsilon": self.epsilon, "delta": self.delta, "boxes": [asdict(box) for box in self.boxes]}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Filter:
        """The filter that `to_dict` wrote; refused unless its boxes keep what they promise."""
        boxes = tuple(Box(float(one["epsilon"]), float(one["mu"])) for one in values["boxes"])
        made = cls(float(values["epsilon"]), float(values["delta"]), boxes)
        # The curve is for a mu above 0, and a box holds what is below its square.
        ranged = all(0.0 <= box.epsilon <= made.epsilon and 0.0 < box.mu < math.inf for box in boxes)
        if not ranged or not made.is_sound():
            raise InvalidArgument("the boxes of a filter promise more than its delta.", argument=None)
        return made


def filled_epsilon(composition: str, spent: Total, delta: float) -> float:
    """For readers: about the epsilon of a budget of this delta that the totals would just fill; inf if none does."""
    figures = [math.inf]
    whole = Fraction(delta)
    if spent.delta <= (whole if composition == "plain" else PLAIN_SUM * whole) * ROOM:
        figures.append(float_up(spent.epsilon))
    if composition == "plain" or spent.outright > OUTRIGHT * whole:
        return min(figures)
    if spent.mu_squared == 0:
        figures.append(float_up(spent.pure))
    if delta > 0.0:
        in_mu = math.sqrt(spent.gaussian(finishes=True))
        figures.append(gaussian_epsilon(in_mu, delta * float(ALL_IN_MU)))
        beside = math.sqrt(spent.gaussian(finishes=False))
        for part, share in WITH_PURE.items():
            finish = float(spent.finish / part)
            figures.append(max(finish, gaussian_epsilon(beside, delta * float(share)) / float(1 - part)))
    return min(figures)


def _widest(part: Fraction, epsilon: float, delta: float) -> Box:
    """The box with this part of epsilon for pure finishes and the largest mu that keeps delta; 0 if there is none."""
    pure = float(part * Fraction(epsilon))
    delta = delta * (1.0 - 2.0**-48)  # so that the parts, rounded, still add to no more than the whole
    low, high = 0.0, gaussian_mu(epsilon, delta)
    while high - low > 2.0**-40 * high:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if Box(pure, middle).delta(epsilon) <= delta else (low, middle)
    return Box(pure, low)
