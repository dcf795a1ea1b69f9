"""What a mechanism is: its name, what it serves, what it may cost, and how it runs, in one object.

The objects stand beside their code: `baselines`, `auto`, and `paper.mechanism`. `releases.registry` lists them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from ..errors import InvalidArgument
from ..privacy import Adjacency, Guarantee, Looks, Opening, Ready, Reserve, Spending
from ..tables import Counts
from .discovery import DiscoveryPlan, Finish, plan_discovery, rehearse
from .estimate import Estimate
from .request import Request, Weight

if TYPE_CHECKING:
    from ..privacy import Cost, Plan

__all__ = ["MOST_RESERVED", "PURE_LEAST", "Costed", "Discovering", "Mechanism", "Searching", "check_whole"]

PURE_LEAST = 0.25
"""Part of epsilon that a discovery must leave for Laplace noise: enough for a profile and for something to follow."""

MOST_RESERVED = Request("rows", None, lambda _: None)
"""Of all requests, the one that sets most aside for looks."""


@dataclass(frozen=True)
class Costed(ABC):
    """What a release can be made by: its name, what it serves, and what it may cost. Fields are its own options.

    pure: it draws Laplace noise only, on every path, so that it promises delta=0 whatever delta is offered. (A
    mechanism that chooses Laplace noise because of noisy values is not: the promise is about all that it might have
    done.) needs_delta: why it cannot serve delta=0, if it cannot.
    """

    name: ClassVar[str]
    pure: ClassVar[bool] = False
    needs_delta: ClassVar[str] = ""
    weights: ClassVar[tuple[Weight, ...]] = ("rows", "users")
    adjacencies: ClassVar[tuple[Adjacency, ...]] = tuple(Adjacency)

    def check(self, guarantee: Guarantee, weight: Weight) -> None:
        """Refuse, before any row is read, what it cannot serve."""
        for asked, value, served in (
            ("weight", weight, self.weights),
            ("adjacency", guarantee.adjacency.value, [one.value for one in self.adjacencies]),
        ):
            if value not in served:
                raise InvalidArgument(
                    f"{asked}={value!r}: cannot be served by mechanism={self.name!r}, which needs "
                    f"{' or '.join(map(repr, served))}.",
                    argument=asked,
                )
        if self.needs_delta and guarantee.delta == 0.0:
            raise InvalidArgument(
                f"mechanism={self.name!r}: cannot serve delta=0. {self.needs_delta}", argument="mechanism"
            )

    def promised(self, guarantee: Guarantee) -> Guarantee:
        """What a release over listed items promises if it is offered `guarantee`."""
        return replace(guarantee, delta=0.0) if self.pure else guarantee

    def instead(self, guarantee: Guarantee) -> Sequence[Costed]:  # noqa: ARG002
        """What may still fit if a ledger has too little left for this one."""
        return ()

    def plan(self, guarantee: Guarantee, request: Request, items: int | None, share: float | None = None) -> Plan:
        """What a release may cost, from public values, for a ledger to charge before the table is read.

        items: how many there are; None if they are found, for `share` of the budget. What says no more is charged as
        opaque: its epsilon as a pure one, its delta outright.
        """
        from ..privacy import Plan, opaque_cost

        del request, items, share
        return Plan((opaque_cost(guarantee),), known=False)


class Mechanism(Costed):
    """From the counts of listed items, a budget and a question to an estimate.

    counts: whether it measures the total, so that there are counts.
    """

    counts: ClassVar[bool] = True

    @abstractmethod
    def run(self, counts: Counts, budget: Opening, request: Request, /) -> Estimate:
        """Estimate the distribution. Everything is drawn through `budget`."""


class Searching(Costed):
    """What can also follow a search for items, because its costs are known, way by way.

    finish: what it may draw last, which a search must leave room for. histogram: True if a single noisy histogram may
    replace it after a search. False if it would change the noise or the question.
    """

    finish: ClassVar[Finish]
    histogram: ClassVar[bool] = False

    @abstractmethod
    def reserves(self, guarantee: Guarantee, request: Request, items: int | None) -> list[Reserve]:
        """All looks that it may take, by public values. items: how many there are; None if they have yet to be found.
        Looks at more items are not larger.
        """

    @abstractmethod
    def ways(self, trial: Looks, items: int | None) -> Sequence[Cost]:
        """What each way to finish may cost, once all of `reserves` is set aside."""

    def search(self, guarantee: Guarantee, share: float | None) -> tuple[Searching, DiscoveryPlan]:
        """What a search for items may spend, and what follows it."""
        reserves = self.reserves(guarantee, MOST_RESERVED, None)
        return self, plan_discovery(guarantee, share, self.finish, looks=self.histogram, reserves=reserves)

    def plan(self, guarantee: Guarantee, request: Request, items: int | None, share: float | None = None) -> Plan:
        """The ways that a release may take.

        Guarantee: whatever the table holds, what is drawn costs at most one of the ways in every currency. A ledger
        checks that once more before it lets a release out.
        """
        from ..privacy import Plan

        if items is None:
            follows, searching = self.search(guarantee, share)
            reserves = follows.reserves(guarantee, request, None)
            trial = rehearse(Spending(guarantee).open(), searching, reserves).looks()
            ways = follows.ways(trial, None)
        else:
            trial = Spending(guarantee).open().looks(self.reserves(guarantee, request, items))
            ways = self.ways(trial, items)
        return Plan(tuple(ways), frozenset(event.purpose for event in trial.reserved))


class Discovering(Searching, Mechanism):
    """A mechanism that can also follow a search for items."""

    @abstractmethod
    def run(self, counts: Counts, budget: Ready, request: Request, /) -> Estimate: ...


def check_whole(name: str, value: object, most: int) -> None:
    """Refuse what is neither None nor a whole number from 1 to `most`."""
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InvalidArgument(f"{name}={value!r}: needs to be a whole number of at least 1.", argument=name)
    if value > most:
        raise InvalidArgument(f"{name}={value}: needs to be at most {most}.", argument=name)
