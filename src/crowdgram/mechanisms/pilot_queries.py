"""Pilot queries: cheap private facts, bought before the way is chosen.

What each may cost is reserved by public values before the table is looked at; whether it takes place, and with how much
of that, may follow from noisy values.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeGuard

import numpy as np

from ..arrays import Floats, Integers
from ..privacy import Event, Guarantee, LaplaceEvent, Looks, PureFinish, Reserve
from ..tables import ROW_LIMIT, UNIT, Counts, UsersByRows
from .noisy_bins import Bins, merged
from .request import Request
from .row_bound import Disagreement, part_saved_if_known
from .tuning import TUNING
from .user_sizes import Crowds, read

__all__ = [
    "CROWD",
    "FOUND",
    "HALVES",
    "HISTOGRAM_UNIT",
    "ROWS_AGAIN",
    "USERS",
    "PilotQuery",
    "RowHistogram",
    "buy_further_histograms",
    "look_at_rows",
    "look_at_users",
    "looked_for",
    "pilot_reserves",
    "row_reserves",
]


HISTOGRAM_UNIT = 2**20
EDGES: tuple[int, ...] = tuple(sorted({round(2 ** (j / 4)) for j in range(81)}))
"""1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 13, 16, ... up to ROW_LIMIT, where every user ends."""
ALL: Floats = np.array(EDGES, dtype=np.float64)
assert EDGES[-1] == ROW_LIMIT
MANY_ITEMS = 200
"""Items from which on looks are as small as they get."""
FOUND = 100
"""The number of items that is assumed if they are discovered: pilot queries are reserved before that."""


@dataclass(frozen=True)
class PilotQuery:
    """A pilot query: its purpose, and the part of epsilon that it costs at most. If items are few it may be larger,
    by a power of MANY_ITEMS / items and up to `grows` times: noise in the answer grows with their number, and what it
    must not hide does not.
    """

    purpose: str
    part: float
    bound: int
    grows: float = 1.0
    power: float = 1.0

    def most(self, items: int) -> float:
        return self.part * min(math.pow(max(MANY_ITEMS / items, 1.0), self.power), self.grows)

    def reserve(self, guarantee: Guarantee, items: int | None) -> Reserve:
        """items: None if they have yet to be found."""
        return Reserve(self.purpose, self.bound, self.most(FOUND if items is None else items) * guarantee.epsilon)


ROWS_FIRST = PilotQuery("users by rows, first look", TUNING.first_look, HISTOGRAM_UNIT)
ROWS_SECOND = PilotQuery("users by rows, second look", TUNING.second_look, HISTOGRAM_UNIT, grows=6.0, power=0.6)
ROWS_AGAIN = tuple(
    PilotQuery(f"users by rows, {which} look", TUNING.second_look / 2, HISTOGRAM_UNIT, grows=6.0, power=0.6)
    for which in ("third", "fourth")
)
"""Before the choice, if that depends on heavy users who may be there or not."""
USERS = PilotQuery("number of users", 0.005, HISTOGRAM_UNIT)
"""How many users there are, roughly: enough if they are many."""
CROWD = PilotQuery("number of users, once more", TUNING.users_look, HISTOGRAM_UNIT, grows=4.0)
"""... and to within what is needed, if they are few."""
HALVES = tuple(
    PilotQuery(f"users by half of the items, {which}", TUNING.halves_look, UNIT, grows=8.0, power=1.5)
    for which in ("first", "second")
)


def looked_for(items: int, request: Request) -> int:
    """How many items to take looks to be for. Those that were discovered were not known when looks were reserved."""
    return max(items, FOUND) if request.found else items


def pilot_reserves(guarantee: Guarantee, items: int | None, *, rows: bool, again: bool = False) -> list[Reserve]:
    """What pilot queries may cost, to be set aside before anything is looked at. items: None if they have yet to be
    found. again: a choice may look at rows once more; but not after a search, where all of the list is paid.
    """
    again = again and items is not None
    looks = [*([ROWS_FIRST, ROWS_SECOND] if rows else [USERS]), *(ROWS_AGAIN if again else ()), CROWD, *HALVES]
    return [look.reserve(guarantee, items) for look in looks]


def row_reserves(guarantee: Guarantee, items: int | None) -> list[Reserve]:
    """What users by rows may cost."""
    return [look.reserve(guarantee, items) for look in (ROWS_FIRST, ROWS_SECOND)]


@dataclass(frozen=True)
class RowHistogram:
    """Users by rows: the noisy histogram, and what it leaves possible; None if nothing stands out."""

    bins: Bins
    crowds: Crowds | None

    @staticmethod
    def edges() -> tuple[int, ...]:
        return EDGES

    @property
    def users(self) -> tuple[float, float]:
        """How many users there are, and its standard deviation: the sum of all bins, seen or not."""
        return float(self.bins.users.sum()), float(np.linalg.norm(self.bins.deviations))

    @classmethod
    def of(cls, bins: Bins) -> RowHistogram:
        return cls(bins, read(bins, strangers=True))

    def look_again(
        self, histogram: Integers, spending: Looks | PureFinish, purpose: str, epsilon: float
    ) -> RowHistogram:
        """With one more noisy histogram of users, of whom `histogram` are in the bins of EDGES."""
        more = _noisy_histogram(histogram, spending, purpose, epsilon, _fitted(self.crowds))
        return RowHistogram.of(self.bins + more)


def look_at_users(
    counts: Counts, spending: Looks, query: PilotQuery = USERS, part: float = USERS.part
) -> tuple[float, float]:
    """How many users there are, and its standard deviation, for a part of epsilon. A user adds one entry of
    HISTOGRAM_UNIT.
    """
    sums = counts.sum(UsersByRows((ROW_LIMIT,))) * HISTOGRAM_UNIT
    epsilon = part * spending.guarantee.epsilon
    noisy, event = spending.laplace(query.purpose, sums.values, bound=sums.bound.l1, epsilon=epsilon)
    return float(noisy[0]) / HISTOGRAM_UNIT, math.sqrt(2) * event.scale / HISTOGRAM_UNIT


def look_at_rows(histogram: Integers, spending: Looks, items: int, *, thrifty: bool = True) -> RowHistogram:
    """Buy users by rows, of whom `histogram` are in the bins of EDGES: one look, and a second where that is worth it.
    If the first shows nobody, there are few users, and the second is as small as it gets: small groups among few users
    do not weigh much, and plain noise may buy more. Not `thrifty`: all of the list is paid already.
    """
    epsilon = spending.guarantee.epsilon
    rows = RowHistogram.of(_noisy_histogram(histogram, spending, ROWS_FIRST.purpose, ROWS_FIRST.part * epsilon, ALL))
    part = ROWS_SECOND.part if thrifty and rows.crowds is None else ROWS_SECOND.most(items)
    if thrifty and rows.crowds is not None:
        noise = items * spending.laplace_scale(UNIT, epsilon) / UNIT
        if part_saved_if_known(rows.crowds, noise, Disagreement.prior().mean) < part:
            return rows
    return rows.look_again(histogram, spending, ROWS_SECOND.purpose, part * epsilon)


def _fitted(crowds: Crowds | None) -> Floats:
    """Edges for the next look: narrow bins where the crowd is, and twice as wide beyond. There users are few, and the
    wider a bin, the fewer stand out of its noise.
    """
    if crowds is None:
        return ALL
    fine = int((2 * crowds.seen >= ALL).sum())
    return np.append(ALL[:fine], ALL[fine:][::-1][::2][::-1])


def buy_further_histograms(
    rows: RowHistogram, histogram: Integers, spending: PureFinish, noise: float, disagreement: float
) -> RowHistogram:
    """Buy histograms of users by rows while knowing the crowd exactly would save more than one costs the answer. Each
    has the epsilon of all before it together. They are no looks, which are reserved, but part of a pure finish.

    noise: the l1 noise of the answer for an epsilon and a bound of 1.
    """
    whole = spending.guarantee.epsilon
    number = 5
    while True:
        # The epsilon of one histogram that would tell as much as all so far.
        known = math.sqrt(2) * spending.laplace_scale(1, 1.0) / float(rows.bins.deviations.min())
        left = spending.remaining_epsilon()
        spent = sum(event.sensitivity / event.scale for event in spending.events if _of_rows(event))
        epsilon = min(known, TUNING.further_histograms * whole - spent, left / 2)
        if epsilon < 0.25 * known:
            return rows
        if rows.crowds is not None and part_saved_if_known(rows.crowds, noise / left, disagreement) < epsilon / left:
            return rows
        rows = rows.look_again(histogram, spending, f"users by rows, look {number}", epsilon)
        number += 1


def _of_rows(event: Event) -> TypeGuard[LaplaceEvent]:
    return isinstance(event, LaplaceEvent) and event.purpose.startswith("users by rows")


def _noisy_histogram(
    histogram: Integers, spending: Looks | PureFinish, purpose: str, epsilon: float, edges: Floats
) -> Bins:
    """A noisy histogram with `edges`, which are among EDGES. A user is in one bin, however wide."""
    exact = merged(histogram, ALL, edges) * HISTOGRAM_UNIT
    noisy, event = spending.laplace(purpose, exact, bound=HISTOGRAM_UNIT, epsilon=epsilon)
    deviation = math.sqrt(2) * event.scale / HISTOGRAM_UNIT
    return Bins(noisy / HISTOGRAM_UNIT, np.full(len(edges), deviation), edges, laplace=True)
