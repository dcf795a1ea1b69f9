"""What the phases of a budget are made of: a check of every event before its noise is drawn, and the kinds of draws.

A phase names the kinds that are legal in it as its bases (`spending`). The theorems are those of
docs/proofs/accounting.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from crowdgram.arrays import Integers
from crowdgram.errors import PrivacyViolation

from . import accounting
from .events import (
    Event,
    ExponentialEvent,
    GaussianEvent,
    LaplaceEvent,
    SelectionEvent,
    SparseLaplaceEvent,
)
from .guarantee import Adjacency, Guarantee
from .losses import float_up
from .noise import Labels
from .paid_looks import ROUND_COORDINATES, mu_after_looks

if TYPE_CHECKING:
    from .spending import Spending

__all__ = ["DrawsChoices", "DrawsGaussian", "DrawsLaplace", "Phase", "Reserve", "within"]

_SQRT2_ABOVE = math.nextafter(math.sqrt(2), math.inf)


@dataclass(frozen=True)
class Reserve:
    """A Laplace event that may take place: its purpose, the l1 bound on one user's vector, its largest epsilon."""

    purpose: str
    bound: int
    epsilon: float


class Phase:
    """What every phase has. Sensitivities are given for one user's vector; the adjacency turns them into the change of
    a sum:

        one user's bound          add-remove    replace
        l1 norm <= B              B             2 B
        l2 norm <= B              B             2 B
        l2 norm <= B, entries>=0  B             sqrt(2) B
    """

    def __init__(self, spending: Spending) -> None:
        self._spending = spending
        spending._phase = self

    @property
    def guarantee(self) -> Guarantee:
        return self._spending.guarantee

    @property
    def events(self) -> tuple[Event, ...]:
        return self._spending.events

    @property
    def reserved(self) -> tuple[LaplaceEvent, ...]:
        """What was set aside, whether it has taken place or not."""
        return tuple(self._spending._reserved.values())

    def laplace_scale(self, bound: int, epsilon: float) -> float:
        """The scale that Laplace noise for `epsilon` has on sums of vectors of l1 norm at most `bound`."""
        return accounting.laplace_scale(self._l1(bound), epsilon)

    def gaussian_sigma(self, bound: int, mu: float, *, non_negative: bool = False) -> float:
        """The sigma that Gaussian noise for `mu` has on sums of vectors of l2 norm at most `bound`."""
        return accounting.gaussian_sigma(self._l2(bound, non_negative), mu)

    def salt(self) -> str:
        """128 random bits, for choices that must be unpredictable, such as which row of a user is sampled."""
        return self._spending._sampler.salt()

    def _record(self, event: Event) -> None:
        """Check an event, and record it."""
        self._check_current()
        self._check(event)
        self._spending._events.append(event)

    def _check(self, event: Event) -> None:
        """Raise unless the event may take place in this phase, after all before it."""
        self._check_free(event)
        accounting.check([*self.events, event], self.guarantee)

    def _check_free(self, event: Event) -> None:
        if event.purpose in self._spending._reserved:
            raise PrivacyViolation(f"{event.purpose!r} is reserved for a look.")

    def _check_current(self) -> None:
        if self._spending._phase is not self:
            raise PrivacyViolation(
                f"the phase {type(self).__name__} of this budget is over: use the one that followed."
            )

    def _reserve(self, reserves: Iterable[Reserve]) -> None:
        """Set Laplace events aside. What is reserved already stays so when less is asked for.

        All of the list together keeps the guarantee: a release may draw any part of it, and stop.
        """
        known = self._spending._reserved
        drawn = {event.purpose for event in self.events}
        for one in reserves:
            if one.purpose in drawn and one.purpose not in known:
                raise PrivacyViolation(f"{one.purpose!r} has taken place: give a reserve a purpose of its own.")
            scale = self.laplace_scale(one.bound, one.epsilon)
            wanted = LaplaceEvent(one.purpose, self._l1(one.bound), scale, 1)
            if not within(wanted, known.setdefault(one.purpose, wanted)):
                raise PrivacyViolation(f"{one.purpose!r} is reserved again, for more than before.")
        accounting.check(self._committed(), self.guarantee)

    def _remaining_mu(self, dimension: int) -> float:
        """What Gaussian rounds have left, for noise on `dimension` coordinates in all.

        If items are searched for, all of the list is paid, drawn or not (Theorem 6); else what was drawn (Theorem 7).
        """
        if self._spending._list_is_paid:
            return accounting.remaining_mu(self._for_rounds(), self._committed(), dimension)
        left = self._mu_squared_after_looks() - _mu_squared(self.events)
        return accounting.remaining_mu(self.guarantee, self.events, dimension, most=math.sqrt(max(left, 0)))

    def _check_round(self, event: Event) -> None:
        """Raise unless Gaussian rounds may go on with this one, after all before it."""
        self._check_free(event)
        if not isinstance(event, GaussianEvent):
            raise PrivacyViolation(f"{event.purpose!r} is not Gaussian: rounds draw no other noise.")
        if self._spending._list_is_paid:
            accounting.check([*self._committed(), event], self._for_rounds())
            return
        if _mu_squared([*self.events, event]) > self._mu_squared_after_looks():
            raise PrivacyViolation(f"{event.purpose!r} would spend more than the looks left.")
        accounting.check([*self.events, event], self.guarantee)

    def _mu_squared_after_looks(self) -> Fraction:
        looks = [event for event in self.events if isinstance(event, LaplaceEvent)]
        return Fraction(mu_after_looks(self.guarantee, looks)) ** 2

    def _committed(self) -> list[Event]:
        """What Gaussian rounds reckon with after a search: all that was reserved, and all else that took place."""
        reserved = self._spending._reserved
        return [*reserved.values(), *(event for event in self.events if event.purpose not in reserved)]

    def _for_rounds(self) -> Guarantee:
        """What Gaussian rounds must keep: all but the part of delta that is for the other way to go on."""
        part = self._spending._pure_delta
        if not part:
            return self.guarantee
        return replace(self.guarantee, delta=max(math.nextafter(self.guarantee.delta - part, 0.0), 0.0))

    def _l1(self, bound: int) -> int:
        return bound if self.guarantee.adjacency is Adjacency.ADD_REMOVE else 2 * bound

    def _l2(self, bound: int, non_negative: bool) -> float:
        whole = float_up(Fraction(bound))
        if self.guarantee.adjacency is Adjacency.ADD_REMOVE:
            return whole
        return math.nextafter(_SQRT2_ABOVE * whole, math.inf) if non_negative else 2.0 * whole


class DrawsLaplace(Phase):
    def laplace(
        self,
        purpose: str,
        sums: Integers,
        *,
        bound: int,
        epsilon: float,
        dimension: int | None = None,
        labels: Labels | None = None,
    ) -> tuple[Integers, LaplaceEvent]:
        """Add discrete Laplace noise to sums of vectors of l1 norm at most `bound`, for `epsilon`.

        `dimension`: a public bound on the number of sums, if that number is private. `labels` names the sums then, to
        a sampler that must know; that of releases never asks.
        """
        scale = self.laplace_scale(bound, epsilon)
        event = LaplaceEvent(purpose, self._l1(bound), scale, _dimension(purpose, len(sums), dimension))
        self._record(event)
        return self._spending._sampler.laplace(sums, event.scale, labels), event


class DrawsGaussian(Phase):
    def gaussian(
        self,
        purpose: str,
        sums: Integers | Sequence[int],
        *,
        bound: int,
        mu: float,
        non_negative: bool = False,
        dimension: int | None = None,
        labels: Labels | None = None,
    ) -> tuple[Integers, GaussianEvent]:
        """Add discrete Gaussian noise to sums of vectors of l2 norm at most `bound`, for `mu`.

        `dimension`, `labels`: as for Laplace noise.
        """
        sigma = self.gaussian_sigma(bound, mu, non_negative=non_negative)
        sensitivity = self._l2(bound, non_negative)
        event = GaussianEvent(purpose, sensitivity, sigma, _dimension(purpose, len(sums), dimension))
        self._record(event)
        return self._spending._sampler.gaussian(sums, event.sigma, labels), event


class DrawsChoices(Phase):
    def sparse_laplace(
        self, purpose: str, sums: Integers, *, bound: int, changed: int, epsilon: float
    ) -> tuple[Integers, SparseLaplaceEvent]:
        """Add discrete Laplace noise, for `epsilon` a coordinate, to sums of which neighbours change at most `changed`.

        `bound`: how far each of those may move. Both are for the adjacency, as a set of changed coordinates is.
        """
        scale = accounting.laplace_scale(bound, epsilon)
        event = SparseLaplaceEvent(purpose, bound, scale, max(len(sums), 1), changed)
        self._record(event)
        return self._spending._sampler.laplace(sums, event.scale, None), event

    def choose(
        self, purpose: str, scores: Integers, *, sensitivity: int, epsilon: float, monotone: bool = False
    ) -> tuple[int, ExponentialEvent]:
        """Choose one candidate by the exponential mechanism, for a bounded range of `epsilon`.

        `sensitivity` bounds how far one score moves between neighbours, under the adjacency. `monotone`: all scores
        move the same way, so that their differences move by `sensitivity` instead of twice that.
        """
        event = ExponentialEvent(purpose, epsilon, max(len(scores), 1))
        self._record(event)
        scale = _choice_scale(sensitivity, event.epsilon, monotone)
        return int(self._spending._sampler.choose(scores.reshape(1, -1), scale)[0]), event

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
        self._record(event)
        scale = _choice_scale(sensitivity, event.epsilon, monotone)
        parts = [
            self._spending._sampler.choose(scores(first, min(first + at_once, selections)), scale)
            for first in range(0, selections, at_once)
        ]
        return np.concatenate(parts), event


def _mu_squared(events: Iterable[Event]) -> Fraction | float:
    """Of the Gaussian ones, all together; infinite if they have too little noise, or too many coordinates."""
    rounds = [event for event in events if isinstance(event, GaussianEvent)]
    mus = [accounting.gaussian_event_mu(event) for event in rounds]
    if sum(event.dimension for event in rounds) > ROUND_COORDINATES or not all(map(math.isfinite, mus)):
        return math.inf
    return sum((Fraction(mu) ** 2 for mu in mus), Fraction(0))


def within(event: LaplaceEvent, reserved: LaplaceEvent) -> bool:
    return event.sensitivity == reserved.sensitivity and event.scale >= reserved.scale


def _dimension(purpose: str, size: int, most: int | None) -> int:
    """The number of coordinates to record: that of the sums, or its public bound."""
    if most is not None and size > most:
        raise PrivacyViolation(f"{purpose!r} has more coordinates than its public bound {most}.")
    return most or max(size, 1)


def _choice_scale(sensitivity: int, epsilon: float, monotone: bool) -> float:
    """The smallest scale whose exponential mechanism has a bounded range of `epsilon`, rounded up."""
    return accounting.laplace_scale(sensitivity if monotone else 2 * sensitivity, epsilon)
