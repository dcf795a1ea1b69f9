"""One release's budget as it is spent: no noise is drawn that is not recorded, and none that was not affordable."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ..errors import PrivacyViolation
from . import accounting, noise
from .events import Event, GaussianEvent, LaplaceEvent
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

    @property
    def events(self) -> tuple[Event, ...]:
        return tuple(self._events)

    def reserve(self, purpose: str, *, bound: int, epsilon: float) -> None:
        """Set a Laplace event aside, by public values, before the table is looked at.

        Whether it takes place, and with how much of its epsilon, may then depend on noisy outcomes: Gaussian rounds
        are given what is left when all of what was reserved is spent (docs/proofs/accounting.md, Theorem 4).
        """
        if self._events:
            raise PrivacyViolation(
                f"{purpose!r} is reserved after the table was looked at: reserve before the first event."
            )
        self._reserved[purpose] = LaplaceEvent(purpose, self._l1(bound), self.laplace_scale(bound, epsilon), 1)

    def laplace_scale(self, bound: int, epsilon: float) -> float:
        """The scale that `laplace` would use."""
        return accounting.laplace_scale(self._l1(bound), epsilon)

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
    ) -> tuple[Integers, GaussianEvent]:
        """Add discrete Gaussian noise to sums of vectors of l2 norm at most `bound`, for `mu`."""
        sensitivity = self._l2(bound, non_negative)
        event = GaussianEvent(purpose, sensitivity, accounting.gaussian_sigma(sensitivity, mu), max(len(sums), 1))
        self._spend(event)
        return noise.add_discrete_gaussian(sums, event.sigma), event

    def remaining_mu(self, dimension: int) -> float:
        """What is left for Gaussian noise on `dimension` coordinates in all."""
        return accounting.remaining_mu(self.guarantee, self._committed(), dimension)

    def remaining_epsilon(self) -> float:
        """What is left for one more pure event."""
        return accounting.remaining_epsilon(self.guarantee, self._events)

    def settled(self) -> Guarantee:
        """The guarantee, after it was recomputed from the recorded events. Raises if it does not hold."""
        accounting.check(self._events, self.guarantee)
        return self.guarantee

    def _spend(self, event: Event) -> None:
        reserved = self._reserved.get(event.purpose)
        if reserved is not None and not (
            isinstance(event, LaplaceEvent)
            and event.sensitivity == reserved.sensitivity
            and event.scale >= reserved.scale
            and event.purpose not in {past.purpose for past in self._events}
        ):
            raise PrivacyViolation(f"{event.purpose!r} would spend more than was reserved for it.")
        past = self._committed() if isinstance(event, GaussianEvent) else self._events
        accounting.check([*past, event], self.guarantee)
        self._events.append(event)

    def _committed(self) -> list[Event]:
        """What Gaussian rounds must reckon with: all that was reserved, and all else that took place."""
        return [*self._reserved.values(), *(event for event in self._events if event.purpose not in self._reserved)]

    def _l1(self, bound: int) -> int:
        return bound if self.guarantee.adjacency is Adjacency.ADD_REMOVE else 2 * bound

    def _l2(self, bound: int, non_negative: bool) -> float:
        if self.guarantee.adjacency is Adjacency.ADD_REMOVE:
            return float(bound)
        return math.nextafter(_SQRT2_ABOVE * bound, math.inf) if non_negative else 2.0 * bound
