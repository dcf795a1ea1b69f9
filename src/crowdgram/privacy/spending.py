"""One release's budget as it is spent: no noise is drawn that is not recorded, and none that was not affordable."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from ..errors import PrivacyViolation
from . import accounting, noise
from .events import (
    Event,
    ExponentialEvent,
    GaussianEvent,
    LaplaceEvent,
    SelectionEvent,
    SparseLaplaceEvent,
    ThresholdEvent,
)
from .guarantee import Adjacency, Guarantee
from .losses import PureEvent, pure_epsilon

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
        self._opening = 0
        self._pure_delta = 0.0
        self._purely = False

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
        are given what is left when all of what was reserved is spent (docs/proofs/accounting.md, Theorem 4). What is
        reserved already stays so when less is asked for: after an opening, only what is fixed by public values counts.
        A threshold, whose delta is public, may come before.
        """
        looked = any(not isinstance(event, ThresholdEvent) for event in self._events[self._opening :])
        if looked and purpose not in self._reserved:
            raise PrivacyViolation(
                f"{purpose!r} is reserved after the table was looked at: reserve before the first event."
            )
        wanted = LaplaceEvent(purpose, self._l1(bound), self.laplace_scale(bound, epsilon), 1)
        if not self._within(wanted, self._reserved.setdefault(purpose, wanted)):
            raise PrivacyViolation(f"{purpose!r} is reserved again, for more than before.")

    def end_opening(self, *, pure_delta: float) -> None:
        """Say that all events so far were fixed by public values, or reserved: reserves may still follow.

        `pure_delta`: the part of delta that is for paths which finish purely after Gaussian events of the opening;
        Gaussian rounds do without it (docs/proofs/accounting.md, Theorem 6).
        """
        if self._opening or self._purely or self._finish is not None or not 0.0 <= pure_delta < 1.0:
            raise PrivacyViolation("an opening ends once, before all else, with a pure_delta from 0 to below 1.")
        self._opening, self._pure_delta = len(self._events), pure_delta

    def finish_purely(self) -> None:
        """Say that only pure events follow, whose epsilons add to at most epsilon together with all before.

        May be decided from noisy outcomes, as long as all that took place is pure, or a threshold; deltas of
        thresholds are then all that is spent of delta (docs/proofs/accounting.md, Theorem 4).
        """
        if self._opening or self._purely or self._finish is not None or self._gaussian():
            raise PrivacyViolation("a pure finish begins once, before an opening ends, and after no Gaussian noise.")
        self._purely = True

    def threshold(self, purpose: str, *, delta: float) -> float:
        """Record a threshold that may fail with chance `delta`; what of it each user whose rows change may use.

        One user's items come or go under add-remove. Under replace one's go and another's come: each has half.
        """
        if self._reserved or self._opening or self._purely or self._finish is not None:
            raise PrivacyViolation(f"{purpose!r}: a threshold is part of an opening.")
        self._spend(ThresholdEvent(purpose, delta))
        return delta if self.guarantee.adjacency is Adjacency.ADD_REMOVE else delta / 2

    def laplace_scale(self, bound: int, epsilon: float) -> float:
        """The scale that `laplace` would use."""
        return accounting.laplace_scale(self._l1(bound), epsilon)

    def gaussian_sigma(self, bound: int, mu: float, *, non_negative: bool = False) -> float:
        """The sigma that `gaussian` would use."""
        return accounting.gaussian_sigma(self._l2(bound, non_negative), mu)

    def laplace(
        self, purpose: str, sums: Integers, *, bound: int, epsilon: float, dimension: int | None = None
    ) -> tuple[Integers, LaplaceEvent]:
        """Add discrete Laplace noise to sums of vectors of l1 norm at most `bound`, for `epsilon`.

        `dimension`: a public bound on the number of sums, where that number is private.
        """
        self._check_dimension(purpose, len(sums), dimension)
        scale = self.laplace_scale(bound, epsilon)
        event = LaplaceEvent(purpose, self._l1(bound), scale, dimension or max(len(sums), 1))
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
        self._check_dimension(purpose, len(sums), dimension)
        sensitivity = self._l2(bound, non_negative)
        sigma = self.gaussian_sigma(bound, mu, non_negative=non_negative)
        event = GaussianEvent(purpose, sensitivity, sigma, dimension or max(len(sums), 1))
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
        if not all(isinstance(event, PureEvent) for event in self._events):
            raise PrivacyViolation("a budget is finished after a pure start only.")
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
        return accounting.remaining_mu(self._for_rounds(), self._committed(), dimension)

    def remaining_epsilon(self) -> float:
        """What is left for one more pure event."""
        return accounting.remaining_epsilon(self.guarantee, self._events, self._pure_delta)

    def settled(self) -> Guarantee:
        """The guarantee, after it was recomputed from the recorded events. Raises if it does not hold."""
        accounting.check(self._events, self.guarantee)
        return self.guarantee

    def _spend(self, event: Event) -> None:
        if self._purely:
            if not isinstance(event, PureEvent):
                raise PrivacyViolation(f"{event.purpose!r} is not pure, and a pure finish has begun.")
            if pure_epsilon(event) > Fraction(self.remaining_epsilon()):
                raise PrivacyViolation(f"{event.purpose!r} would spend more than a pure finish has left.")
        reserved = self._reserved.get(event.purpose)
        if reserved is not None:
            again = event.purpose in {past.purpose for past in self._events}
            if again or not (isinstance(event, LaplaceEvent) and self._within(event, reserved)):
                raise PrivacyViolation(f"{event.purpose!r} would spend more than was reserved for it.")
        elif self._opening and isinstance(event, PureEvent):
            # Not on the list, so it is part of a pure finish, and that has its limit.
            left = self.remaining_epsilon() if self._pure_delta else 0.0
            if pure_epsilon(event) > Fraction(left):
                raise PrivacyViolation(f"{event.purpose!r} would spend more than a pure finish may after the opening.")
        if self._finish is not None:
            rest, since = self._finish
            accounting.check([*self._events[since:], event], rest)
        if isinstance(event, GaussianEvent):
            accounting.check([*self._committed(), event], self._for_rounds())
        else:
            accounting.check([*self._events, event], self.guarantee)
        self._events.append(event)

    def _for_rounds(self) -> Guarantee:
        """What Gaussian rounds must keep: all but the part of delta that is for the other way to go on."""
        if not self._pure_delta:
            return self.guarantee
        return replace(self.guarantee, delta=max(math.nextafter(self.guarantee.delta - self._pure_delta, 0.0), 0.0))

    def _gaussian(self) -> bool:
        return any(isinstance(event, GaussianEvent) for event in self._events)

    @staticmethod
    def _check_dimension(purpose: str, size: int, dimension: int | None) -> None:
        if dimension is not None and size > dimension:
            raise PrivacyViolation(f"{purpose!r} has more coordinates than its public bound {dimension}.")

    def _finishing(self) -> tuple[Guarantee, int]:
        if self._finish is None:
            raise PrivacyViolation("call finish() first: it says what is left.")
        return self._finish

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


def _choice_scale(sensitivity: int, epsilon: float, monotone: bool) -> float:
    """The smallest scale whose exponential mechanism has a bounded range of `epsilon`, rounded up."""
    return accounting.laplace_scale(sensitivity if monotone else 2 * sensitivity, epsilon)
