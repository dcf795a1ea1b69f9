"""One release's budget as it is spent, phase by phase.

`Spending` is the record of what was drawn. What may be drawn next is a phase, and a phase has the methods that are
legal in it and no others:

    Spending.open()  -> Opening      nothing is asked yet
    Opening.looks()  -> Looks        the items are listed: looks of a list that is public (Theorem 7)
    Opening.search() -> Search       the items must be found: a threshold, and looks as well (Theorem 6)
    Opening.start()  -> PureStart    pure events, then .finish() -> AnyFinish (Theorem 5)
    Looks.rounds()   -> Rounds       Gaussian rounds, or
    Looks.finish_purely() -> PureFinish
    Search.rounds()  -> SearchRounds Gaussian rounds that find the items, then .end() -> Found, then Found.looks()

What a theorem wants fixed by public values is given when a phase begins, before its first draw.

A phase ends when the next one begins; using it afterwards is a `PrivacyViolation`. The theorems are those of
docs/proofs/accounting.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction

from crowdgram.errors import PrivacyViolation

from . import accounting
from .drawing import DrawsChoices, DrawsGaussian, DrawsLaplace, Phase, Reserve, within
from .events import (
    Event,
    GaussianEvent,
    LaplaceEvent,
    ThresholdEvent,
)
from .guarantee import Adjacency, Guarantee
from .losses import PureEvent, pure_epsilon
from .noise import EXACT, Sampler
from .paid_looks import mu_after_looks

__all__ = [
    "AnyFinish",
    "Found",
    "Looks",
    "Opening",
    "PureFinish",
    "PureStart",
    "Ready",
    "Reserve",
    "Rounds",
    "Search",
    "SearchRounds",
    "Spending",
]


class Spending:
    """The record of one release: its guarantee, and every event so far.

    Every draw is checked against the guarantee *before* noise is drawn, and recorded with it, so that `events` is all
    that the table was asked. `sampler` draws the noise; only an audit or a test gives another than OpenDP's.
    """

    def __init__(self, guarantee: Guarantee, *, sampler: Sampler = EXACT) -> None:
        self.guarantee = guarantee
        self._sampler = sampler
        self._events: list[Event] = []
        self._reserved: dict[str, LaplaceEvent] = {}
        self._pure_delta = 0.0
        self._list_is_paid = False
        self._phase: Phase | None = None

    @property
    def sampler(self) -> Sampler:
        return self._sampler

    @property
    def events(self) -> tuple[Event, ...]:
        return tuple(self._events)

    def open(self) -> Opening:
        """The first phase."""
        if self._phase is not None:
            raise PrivacyViolation("a budget is opened once.")
        return Opening(self)

    def settled(self) -> Guarantee:
        """The guarantee, after it was recomputed from the recorded events. Raises if it does not hold."""
        accounting.check(self._events, self.guarantee)
        return self.guarantee


class Ready(Phase):
    """The items are known, and looks at them may begin: `Opening` if they are listed, `Found` if they were found."""

    def looks(self, reserves: Iterable[Reserve] = ()) -> Looks:
        """List the Laplace events that may take place, by public values, and begin to look at the table.

        Whether one takes place, and with how much of its epsilon, may then depend on noisy outcomes. Gaussian rounds
        pay for those that did (Theorem 7); if items were searched for, for all of the list (Theorem 6).
        """
        self._check_current()
        self._reserve(reserves)
        listed = sum(map(pure_epsilon, self.reserved), Fraction(0))
        if not self._spending._list_is_paid and listed > Fraction(self.guarantee.epsilon):
            raise PrivacyViolation("the looks of the list add to more than epsilon: no path may stop after them all.")
        return Looks(self._spending)


class Opening(Ready):
    """Nothing is asked yet."""

    def search(
        self,
        purpose: str,
        *,
        delta: float,
        rounds: int,
        mu: float,
        pure_delta: float = 0.0,
        reserves: Iterable[Reserve] = (),
    ) -> Search:
        """Record a threshold that may fail with chance `delta`, set looks aside, and begin to find items.

        rounds, mu: how many Gaussian rounds find them, and what each of them spends. pure_delta: the part of delta for
        paths that finish purely after these rounds; Gaussian rounds that follow do without it (Theorem 6).
        """
        self._check_current()
        if not 0.0 <= pure_delta < 1.0 or Fraction(delta) + Fraction(pure_delta) > Fraction(self.guarantee.delta):
            raise PrivacyViolation(
                f"pure_delta={pure_delta!r}: needs to be at least 0, and within delta together with the threshold's."
            )
        self._record(ThresholdEvent(purpose, delta))
        self._spending._list_is_paid = True
        self._reserve(reserves)
        # One user's items come or go under add-remove. Under replace one's go and another's come: each has half.
        chance = delta if self.guarantee.adjacency is Adjacency.ADD_REMOVE else delta / 2
        return Search(self._spending, chance, rounds, mu, pure_delta)

    def start(self) -> PureStart:
        """Begin with pure events that any finish may follow."""
        self._check_current()
        return PureStart(self._spending)


class Looks(DrawsLaplace):
    """Laplace events that were reserved, once each. Then the release goes on by rounds, or finishes purely."""

    def remaining_mu(self, dimension: int) -> float:
        """What rounds would have for Gaussian noise on `dimension` coordinates in all."""
        return self._remaining_mu(dimension)

    def mu_after_list(self, dimension: int) -> float:
        """What rounds would have if all of the list were drawn, from the smallest on. Other orders leave as much to
        within a part in a hundred; if delta is tiny, some leave nothing.
        """
        if self._spending._list_is_paid:
            return self._remaining_mu(dimension)
        looks = sorted(self.reserved, key=pure_epsilon)
        return min(
            mu_after_looks(self.guarantee, looks), accounting.remaining_mu(self.guarantee, self.reserved, dimension)
        )

    def remaining_epsilon(self) -> float:
        """What a pure finish would have."""
        return accounting.remaining_epsilon(self.guarantee, self.events, self._spending._pure_delta)

    def rounds(self) -> Rounds:
        """Go on with Gaussian rounds. The choice may depend on noisy outcomes."""
        self._check_current()
        return Rounds(self._spending)

    def finish_purely(self) -> PureFinish:
        """Go on with pure events only. The choice may depend on noisy outcomes."""
        self._check_current()
        return PureFinish(self._spending)

    def _check(self, event: Event) -> None:
        reserved = self._spending._reserved.get(event.purpose)
        if reserved is None:
            raise PrivacyViolation(
                f"{event.purpose!r} was not reserved. Give every look to `looks()` before the first draw."
            )
        if not self._spending._list_is_paid and any(isinstance(past, GaussianEvent) for past in self.events):
            raise PrivacyViolation(f"{event.purpose!r} would follow Gaussian noise, which has taken what looks left.")
        again = event.purpose in {past.purpose for past in self.events}
        if again or not (isinstance(event, LaplaceEvent) and within(event, reserved)):
            raise PrivacyViolation(f"{event.purpose!r} would spend more than was reserved for it.")
        accounting.check([*self.events, event], self.guarantee)


class Rounds(DrawsGaussian):
    """Gaussian rounds that divide what the looks have left."""

    def remaining_mu(self, dimension: int) -> float:
        """What is left for Gaussian noise on `dimension` coordinates in all."""
        return self._remaining_mu(dimension)

    def _check(self, event: Event) -> None:
        self._check_round(event)


class PureFinish(DrawsLaplace, DrawsChoices):
    """Pure events whose epsilons add to at most epsilon together with all before. Delta pays for thresholds only; if
    Gaussian rounds found the items, also for the `pure_delta` of `Opening.search`.
    """

    def remaining_epsilon(self) -> float:
        """What is left for one more event."""
        return accounting.remaining_epsilon(self.guarantee, self.events, self._spending._pure_delta)

    def _check(self, event: Event) -> None:
        paid = self._spending._pure_delta or not any(isinstance(past, GaussianEvent) for past in self.events)
        left = self.remaining_epsilon() if paid else 0.0
        if not isinstance(event, PureEvent) or pure_epsilon(event) > Fraction(left):
            raise PrivacyViolation(f"{event.purpose!r} would spend more than a pure finish has left.")
        super()._check(event)


class Search(Looks):
    """Items are being found: looks that were reserved, and then Gaussian rounds, or a pure finish instead of them.

    chance: what the threshold may fail with, for each user whose rows change.
    """

    def __init__(self, spending: Spending, chance: float, rounds: int, mu: float, pure_delta: float) -> None:
        super().__init__(spending)
        self.chance = chance
        self._planned = rounds, mu, pure_delta

    def rounds(self) -> SearchRounds:
        """Find the items by Gaussian rounds."""
        self._check_current()
        return SearchRounds(self._spending, *self._planned)


class SearchRounds(Rounds):
    """Gaussian rounds that find the items: as many, and each for as much, as was said before the table was asked."""

    def __init__(self, spending: Spending, rounds: int, mu: float, pure_delta: float) -> None:
        super().__init__(spending)
        self._left, self._mu, self._pure_delta = rounds, mu, pure_delta

    def end(self) -> Found:
        """Say that the items are found. What a pure finish has left depends on these rounds, so all must be drawn."""
        self._check_current()
        if self._left:
            raise PrivacyViolation(f"a search for items ends after all of its rounds: {self._left} are left.")
        self._spending._pure_delta = self._pure_delta
        self._check_list()
        return Found(self._spending)

    def _check_list(self) -> None:
        """A release may stop after any of its looks. So all of them are paid by what a pure finish has, or, with the
        opening, by what Gaussian rounds have (Theorem 6).
        """
        reserved = self._spending._reserved
        opening = [event for event in self.events if event.purpose not in reserved]
        if self._pure_delta:
            pure = accounting.remaining_epsilon(self.guarantee, opening, self._pure_delta)
            if sum(map(pure_epsilon, reserved.values())) <= Fraction(pure):
                return
        accounting.check(self._committed(), self._for_rounds())

    def _check(self, event: Event) -> None:
        super()._check(event)
        planned = isinstance(event, GaussianEvent) and event.sigma == accounting.gaussian_sigma(
            event.sensitivity, self._mu
        )
        if not (planned and self._left):
            raise PrivacyViolation(f"{event.purpose!r} is not among the rounds that the search began with.")
        self._left -= 1


class Found(Ready):
    """The items were found by Gaussian rounds. Looks at them were reserved before those: what was found, and how many
    items there are, is a noisy outcome, and must not decide what is on the list (Theorem 6).
    """

    def _reserve(self, reserves: Iterable[Reserve]) -> None:
        wanted = list(reserves)
        for one in wanted:
            if one.purpose not in self._spending._reserved:
                raise PrivacyViolation(f"{one.purpose!r} was not reserved before the search for items.")
        super()._reserve(wanted)


class PureStart(DrawsLaplace, DrawsChoices):
    """Pure events, whose epsilons add to at most epsilon, before any finish."""

    def _check(self, event: Event) -> None:
        left = accounting.remaining_epsilon(self.guarantee, self.events)
        if not isinstance(event, PureEvent) or pure_epsilon(event) > Fraction(left):
            raise PrivacyViolation(f"{event.purpose!r} would spend more than a pure start has left.")
        super()._check(event)

    def finish(self) -> AnyFinish:
        """Go on with events of any kind, which keep what is left by themselves."""
        self._check_current()
        return AnyFinish(self._spending)


class AnyFinish(DrawsLaplace, DrawsGaussian, DrawsChoices):
    """Events that keep `rest` by themselves, whatever came before, so that their number, kind and parameters may be
    chosen from noisy outcomes of the start (Theorem 5). Outcomes of the finish itself must not choose them: what is
    asked may depend on these, but not with how much noise. No check sees that; the mechanism's proof has to.

    rest: what is left when the start is charged at its pure epsilon: (epsilon less their sum, delta).
    """

    def __init__(self, spending: Spending) -> None:
        left = accounting.remaining_epsilon(spending.guarantee, spending.events)
        if left <= 0.0:
            raise PrivacyViolation("nothing is left of epsilon to finish with.")
        super().__init__(spending)
        self.rest = replace(spending.guarantee, epsilon=left)
        self._since = len(spending.events)

    def selection_epsilon(self, changed: int, share: float = 1.0) -> float:
        """The range of each of many choices that spends `share` of what is left."""
        own = accounting.selection_epsilon(self.rest, self.events[self._since :], changed, share)
        return min(own, accounting.selection_epsilon(self.guarantee, self.events, changed, share))

    def remaining_mu(self, dimension: int) -> float:
        """What is left for Gaussian noise on `dimension` coordinates."""
        own = accounting.remaining_mu(self.rest, self.events[self._since :], dimension)
        return min(own, accounting.remaining_mu(self.guarantee, self.events, dimension))

    def _check(self, event: Event) -> None:
        super()._check(event)
        accounting.check([*self.events[self._since :], event], self.rest)
