"""One release's budget as it is spent: no noise is drawn that is not recorded, and none that was not affordable."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from ..errors import PrivacyViolation
from . import accounting, noise
from .events import Event, GaussianEvent, LaplaceEvent, ThresholdEvent
from .guarantee import Adjacency, Guarantee

__all__ = ["Spending"]

Integers = npt.NDArray[np.int64]

_SQRT2_ABOVE = math.nextafter(math.sqrt(2), math.inf)


class Spending:
    """The events of one release against its guarantee.

    Every draw is checked against the guarantee *before* noise is drawn, and recorded with it, so that `events` is all
    that the table was asked. Sensitivities are given for one user's vector; the adjacency turns them into the change
    of a sum:

        one user's bound          add-remove    replace
        l1 norm <= B              B             2 B
        l2 norm <= B              B             2 B
        l2 norm <= B, entries>=0  B             sqrt(2) B
    """

    def __init__(self, guarantee: Guarantee) -> None:
        self.guarantee = guarantee
        self._events: list[Event] = []
        self._reserved: dict[str, LaplaceEvent] = {}
        self._opening = 0
        self._pure_delta = 0.0

    @property
    def events(self) -> tuple[Event, ...]:
        return tuple(self._events)

    def reserve(self, purpose: str, *, bound: int, epsilon: float) -> None:
        """Set a Laplace event aside, by public values, before the table is looked at.

        Whether it takes place, and with how much of its epsilon, may then depend on noisy outcomes: Gaussian rounds
        are given what is left when all of what was reserved is spent (docs/proofs/accounting.md, Theorem 4). What is
        reserved already stays so when less is asked for: after an opening, only what is fixed by public values counts.
        """
        if len(self._events) > self._opening:
            raise PrivacyViolation(
                f"{purpose!r} is reserved after the table was looked at: reserve before the first event."
            )
        wanted = LaplaceEvent(purpose, self._l1(bound), self.laplace_scale(bound, epsilon), 1)
        if not self._within(wanted, self._reserved.setdefault(purpose, wanted)):
            raise PrivacyViolation(f"{purpose!r} is reserved again, for more than before.")

    def end_opening(self, *, pure_delta: float) -> None:
        """Say that all events so far were fixed by public values: reserves may still follow.

        `pure_delta`: the part of delta that is for paths which finish purely after Gaussian events of the opening;
        Gaussian rounds do without it (docs/proofs/accounting.md, Theorem 5).
        """
        if self._reserved or not 0.0 <= pure_delta < 1.0:
            raise PrivacyViolation("an opening ends before anything is reserved, with a pure_delta from 0 to below 1.")
        self._opening, self._pure_delta = len(self._events), pure_delta

    def threshold(self, purpose: str, *, delta: float) -> float:
        """Record a threshold that may fail with chance `delta`; what of it each user whose rows change may use.

        One user's items come or go under add-remove. Under replace one's go and another's come: each has half.
        """
        self._spend(ThresholdEvent(purpose, delta))
        return delta if self.guarantee.adjacency is Adjacency.ADD_REMOVE else delta / 2

    def laplace_scale(self, bound: int, epsilon: float) -> float:
        """The scale that `laplace` would use."""
        return accounting.laplace_scale(self._l1(bound), epsilon)

    def gaussian_sigma(self, bound: int, mu: float, *, non_negative: bool = False) -> float:
        """The sigma that `gaussian` would use."""
        return accounting.gaussian_sigma(self._l2(bound, non_negative), mu)

    def laplace(self, purpose: str, sums: Integers, *, bound: int, epsilon: float) -> tuple[Integers, LaplaceEvent]:
        """Add discrete Laplace noise to sums of vectors of l1 norm at most `bound`, for `epsilon`."""
        event = LaplaceEvent(purpose, self._l1(bound), self.laplace_scale(bound, epsilon), max(len(sums), 1))
        self._spend(event)
        return noise.add_discrete_laplace(sums, event.scale), event

    def gaussian(
        self,
        purpose: str,
        sums: Integers | Sequence[int],
        *,
        bound: int,
        mu: float,
        non_negative: bool = False,
        dimension: int | None = None,
    ) -> tuple[Integers, GaussianEvent]:
        """Add discrete Gaussian noise to sums of vectors of l2 norm at most `bound`, for `mu`.

        `dimension`: a public bound on the number of sums, where that number is private.
        """
        if dimension is not None and len(sums) > dimension:
            raise PrivacyViolation(f"{purpose!r} has more coordinates than its public bound {dimension}.")
        sensitivity = self._l2(bound, non_negative)
        sigma = self.gaussian_sigma(bound, mu, non_negative=non_negative)
        event = GaussianEvent(purpose, sensitivity, sigma, dimension or max(len(sums), 1))
        self._spend(event)
        return noise.add_discrete_gaussian(sums, event.sigma), event

    def remaining_mu(self, dimension: int) -> float:
        """What is left for Gaussian noise on `dimension` coordinates in all."""
        guarantee = self.guarantee
        if self._pure_delta:
            guarantee = replace(guarantee, delta=max(math.nextafter(guarantee.delta - self._pure_delta, 0.0), 0.0))
        return accounting.remaining_mu(guarantee, self._committed(), dimension)

    def remaining_epsilon(self) -> float:
        """What is left for one more pure event."""
        return accounting.remaining_epsilon(self.guarantee, self._events, self._pure_delta)

    def settled(self) -> Guarantee:
        """The guarantee, after it was recomputed from the recorded events. Raises if it does not hold."""
        accounting.check(self._events, self.guarantee)
        return self.guarantee

    def _spend(self, event: Event) -> None:
        reserved = self._reserved.get(event.purpose)
        if reserved is not None:
            again = event.purpose in {past.purpose for past in self._events}
            if again or not (isinstance(event, LaplaceEvent) and self._within(event, reserved)):
                raise PrivacyViolation(f"{event.purpose!r} would spend more than was reserved for it.")
        elif self._opening and isinstance(event, LaplaceEvent):
            # Not on the list, so it is part of a pure finish, and that has its limit.
            left = self.remaining_epsilon() if self._pure_delta else 0.0
            if Fraction(event.sensitivity) > Fraction(left) * Fraction(event.scale):
                raise PrivacyViolation(f"{event.purpose!r} would spend more than a pure finish may after the opening.")
        past = self._committed() if isinstance(event, GaussianEvent) else self._events
        accounting.check([*past, event], self.guarantee)
        self._events.append(event)

    @staticmethod
    def _within(event: LaplaceEvent, reserved: LaplaceEvent) -> bool:
        return event.sensitivity == reserved.sensitivity and event.scale >= reserved.scale

    def _committed(self) -> list[Event]:
        """What Gaussian rounds must reckon with: all that was reserved, and all else that took place."""
        return [*self._reserved.values(), *(event for event in self._events if event.purpose not in self._reserved)]

    def _l1(self, bound: int) -> int:
        return bound if self.guarantee.adjacency is Adjacency.ADD_REMOVE else 2 * bound

    def _l2(self, bound: int, non_negative: bool) -> float:
        if self.guarantee.adjacency is Adjacency.ADD_REMOVE:
            return float(bound)
        return math.nextafter(_SQRT2_ABOVE * bound, math.inf) if non_negative else 2.0 * bound
