"""Releases that are charged to a ledger: opening it, what would still fit, and getting a lost release back."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from ..errors import BudgetExceeded, InvalidArgument, LedgerFailure
from ..export.documents import parse, to_text
from ..mechanisms import Costed, Request
from ..privacy import Guarantee
from ..results.grouped import GroupedRelease
from ..results.grouped_reach import GroupedReach
from ..results.reach import Reach
from ..results.release import Release
from ..tables import Within

if TYPE_CHECKING:
    from ..privacy import Ledger, LedgerHead, Plan

__all__ = [
    "MIN_EPSILON",
    "Charge",
    "LedgerLike",
    "charge_ledger",
    "check_left",
    "largest_epsilon",
    "open_ledger",
    "period_parameters",
    "recover",
    "rows_within",
    "store_release",
    "would_fit",
]

LedgerLike: TypeAlias = "Ledger | str | os.PathLike[str]"

MIN_EPSILON = 1e-3
"""The smallest epsilon of a release. Below it, the result would be all noise."""

BYTES_FOR_ITEM = 600
"""Bytes on disk that a stored release takes for an item at most, with its journal; names of items come on top."""

FOUND_ITEMS = 2**16
"""Items that room is reserved for if they are to be found, so that their number is unknown."""


def open_ledger(ledger: object, guarantee: Guarantee) -> Ledger | None:
    """The ledger to charge, checked against the release before any table is opened; None without one."""
    if ledger is None:
        return None
    from ..privacy import Ledger  # most releases have none, and it is slow to load

    if not isinstance(ledger, Ledger | str | os.PathLike):
        raise InvalidArgument(f"ledger={ledger!r}: needs to be the path of a ledger, or a Ledger.", argument="ledger")
    found = ledger if isinstance(ledger, Ledger) else Ledger.open(ledger)
    found.check_period()
    found.check_adjacency(guarantee)
    return found


def rows_within(ledger: Ledger | None) -> Within | None:
    """The rows that a release may read: those of the ledger's period, if a column says which they are; None for all."""
    if ledger is None or ledger.period is None or ledger.period_column is None:
        return None
    return Within(ledger.period_column, ledger.period.start, ledger.period.end)


def period_parameters(ledger: Ledger | None) -> dict[str, str]:
    """The period that a release is charged to, for its parameters; none without periods."""
    return {} if ledger is None or ledger.period is None else {"period": ledger.period.name}


@dataclass(frozen=True)
class Charge:
    """What a ledger is charged for.

    items: how many there are; None if they are found, for `share` of the budget.
    """

    guarantee: Guarantee
    mechanism: Costed
    request: Request
    items: int | None
    share: float | None = None

    def plan(self) -> Plan:
        return self.mechanism.plan(self.guarantee, self.request, self.items, self.share)


def charge_ledger(ledger: Ledger, charge: Charge) -> LedgerHead:
    """Charge a release before it reads a row; where the ledger stands then. A refusal says what would fit."""
    plan = charge.plan()
    try:
        return ledger.charge(
            plan,
            charge.guarantee,
            mechanism=charge.mechanism.name,
            weight=charge.request.weight,
            room=BYTES_FOR_ITEM * (FOUND_ITEMS if charge.items is None else charge.items),
        )
    except BudgetExceeded as error:
        refusal = str(error)
    raise _refused(refusal, ledger, charge)


def check_left(ledger: Ledger, charge: Charge) -> None:
    """Refuse what the ledger has too little left for, in the words of `charge_ledger`. Nothing is charged."""
    try:
        ledger.check_left(charge.plan(), charge.guarantee)
        return
    except BudgetExceeded as error:
        refusal = str(error)
    raise _refused(refusal, ledger, charge)


def _refused(refusal: str, ledger: Ledger, charge: Charge) -> BudgetExceeded:
    """The ledger's refusal, with what would fit instead."""
    said, remaining = would_fit(ledger, charge)
    asked = charge.guarantee
    return BudgetExceeded(f"{refusal} {said}", epsilon=asked.epsilon, delta=asked.delta, remaining=remaining)


def store_release(
    ledger: Ledger, charged: LedgerHead, release: Release | GroupedRelease | Reach | GroupedReach
) -> None:
    """Store a finished release in its ledger, before anyone sees it."""
    try:
        ledger.settle(charged, release.events, to_text(release))
        return
    except LedgerFailure as error:
        reason = str(error)
    raise LedgerFailure(
        f"{reason} Release {charged.number} stays charged; as it could not be stored, it is not shown.",
        path=ledger.path,
    )


def would_fit(ledger: Ledger, charge: Charge) -> tuple[str, float]:
    """One sentence about what would fit instead; and the largest epsilon of the same mechanism, or 0."""
    guarantee, listed = charge.guarantee, charge.items is not None
    others = [
        replace(charge, mechanism=one, guarantee=one.promised(guarantee) if listed else guarantee)
        for one in charge.mechanism.instead(guarantee)
    ]
    tried = [(largest_epsilon(ledger, one), one.mechanism.name, one.guarantee.delta) for one in (charge, *others)]
    found = [f"epsilon={e:g} with mechanism={name!r} and delta={delta:g}" for e, name, delta in tried if e]
    said = f"What would fit: {', or '.join(found)}." if found else "Nothing would fit any more."
    return said, tried[0][0]


def largest_epsilon(ledger: Ledger, charge: Charge) -> float:
    """The largest epsilon, to three digits, of a release like this that the ledger has left; 0 if there is none."""

    def fits(epsilon: float) -> bool:
        return left(replace(charge, guarantee=replace(charge.guarantee, epsilon=epsilon)).plan())

    left = ledger.fitting()
    low, high = MIN_EPSILON, ledger.budget.epsilon  # an overall limit is no smaller
    if fits(high):
        return high
    if not fits(low):
        return 0.0
    while high > low * (1 + 1e-4):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if fits(middle) else (low, middle)
    unit = 10.0 ** (math.floor(math.log10(low)) - 2)
    shorter = float(f"{math.floor(low / unit * (1 + 1e-4)) * unit:.3g}")
    return shorter if shorter >= MIN_EPSILON and fits(shorter) else low


def recover(ledger: LedgerLike, number: int | None = None) -> Release | GroupedRelease | Reach | GroupedReach:
    """A finished release from its ledger: the last, or the one of this number. It costs no budget.

    Of a ledger that was opened for a period, the last is that of the period.
    """
    from ..privacy import Ledger

    found = ledger if isinstance(ledger, Ledger) else Ledger.open(ledger)
    return parse(found.document(number), found.written)
