"""One release's budget as it is spent: no noise is drawn that is not recorded, and none that was not affordable."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from ..errors import PrivacyViolation
from . import accounting, noise
from .events import Event, ExponentialEvent, GaussianEvent, LaplaceEvent, SelectionEvent, SparseLaplaceEvent
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
        self._finish: tuple[Guarantee, int] | None = None

    @property
    def events(self) -> tuple[Event, ...]:
        return tuple(self._events)

    @property
    def reserved(self) -> tuple[LaplaceEvent, ...]:
        """What was set aside, whether it has taken place or not."""
        return tuple(self._reserved.values())

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

    def sparse_laplace(
        self, purpose: str, sums: Integers, *, bound: int, changed: int, epsilon: float
    ) -> tuple[Integers, SparseLaplaceEvent]:
        """Add discrete Laplace noise, for `epsilon` a coordinate, to sums of which neighbours change at most `changed`.

        `bound`: how far each of those may move. Both are for the adjacency, as a set of changed coordinates is.
        """
        scale = accounting.laplace_scale(bound, epsilon)
        event = SparseLaplaceEvent(purpose, bound, scale, max(len(sums), 1), changed)
        self._spend(event)
        return noise.add_discrete_laplace(sums, event.scale), event

    def choose(
        self, purpose: str, scores: Integers, *, sensitivity: int, epsilon: float, monotone: bool = False
    ) -> tuple[int, ExponentialEvent]:
        """Choose one candidate by the exponential mechanism, for a bounded range of `epsilon`.

        `sensitivity` bounds how far one score moves between neighbours, under the adjacency. `monotone`: all scores
        move the same way, so that their differences move by `sensitivity` instead of twice that.
        """
        event = ExponentialEvent(purpose, epsilon, max(len(scores), 1))
        self._spend(event)
        chosen = noise.choose_each(scores.reshape(1, -1), _choice_scale(sensitivity, event.epsilon, monotone))
        return int(chosen[0]), event

    def choose_each(
        self,
        purpose: str,
        scores: Callable[[int, int], Integers],
        *,
        selections: int,
        choices: int,
        changed: int,
        sensitivity: int,
        epsilon: float,
        monotone: bool = False,
        at_once: int = 256,
    ) -> tuple[Integers, SelectionEvent]:
        """Make `selections` independent choices, each as in `choose`, of which neighbours change at most `changed`.

        `scores(first, last)` gives the scores of some of the choices, a row for each and a column for each
        candidate; it is called for at most `at_once` rows at a time, after the event is recorded.
        """
        event = SelectionEvent(purpose, epsilon, choices, selections, changed)
        self._spend(event)
        scale = _choice_scale(sensitivity, event.epsilon, monotone)
        parts = [
            noise.choose_each(scores(first, min(first + at_once, selections)), scale)
            for first in range(0, selections, at_once)
        ]
        return np.concatenate(parts), event

    def finish(self) -> Guarantee:
        """What is left when all that took place is charged at its pure epsilon: (epsilon less their sum, delta).

        After this call the events that follow must keep what is left by themselves, whatever came before, so that their
        number and kind may be chosen from noisy outcomes (docs/proofs/accounting.md, Theorem 5).
        """
        if self._finish is not None or self._reserved:
            raise PrivacyViolation("a budget is finished once, and not after events were reserved.")
        left = accounting.remaining_epsilon(self.guarantee, self._events)
        if left <= 0.0:
            raise PrivacyViolation("nothing is left of epsilon to finish with.")
        rest = replace(self.guarantee, epsilon=left)
        self._finish = rest, len(self._events)
        return rest

    def selection_epsilon(self, changed: int, share: float = 1.0) -> float:
        """The range of each of many choices that spends `share` of what is left, after `finish`."""
        rest, since = self._finishing()
        own = accounting.selection_epsilon(rest, self._events[since:], changed, share)
        joint = accounting.selection_epsilon(self.guarantee, self._events, changed, share)
        return min(own, joint)

    def finishing_mu(self, dimension: int) -> float:
        """What is left for Gaussian noise on `dimension` coordinates, after `finish`."""
        rest, since = self._finishing()
        own = accounting.remaining_mu(rest, self._events[since:], dimension)
        return min(own, accounting.remaining_mu(self.guarantee, self._events, dimension))

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
        if self._finish is not None:
            rest, since = self._finish
            accounting.check([*self._events[since:], event], rest)
        past = self._committed() if isinstance(event, GaussianEvent) else self._events
        accounting.check([*past, event], self.guarantee)
        self._events.append(event)

    def _finishing(self) -> tuple[Guarantee, int]:
        if self._finish is None:
            raise PrivacyViolation("call finish() first: it says what is left.")
        return self._finish

    def _committed(self) -> list[Event]:
        """What Gaussian rounds must reckon with: all that was reserved, and all else that took place."""
        return [*self._reserved.values(), *(event for event in self._events if event.purpose not in self._reserved)]

    def _l1(self, bound: int) -> int:
        return bound if self.guarantee.adjacency is Adjacency.ADD_REMOVE else 2 * bound

    def _l2(self, bound: int, non_negative: bool) -> float:
        if self.guarantee.adjacency is Adjacency.ADD_REMOVE:
            return float(bound)
        return math.nextafter(_SQRT2_ABOVE * bound, math.inf) if non_negative else 2.0 * bound


def _choice_scale(sensitivity: int, epsilon: float, monotone: bool) -> float:
    """The smallest scale whose exponential mechanism has a bounded range of `epsilon`, rounded up."""
    return accounting.laplace_scale(sensitivity if monotone else 2 * sensitivity, epsilon)
