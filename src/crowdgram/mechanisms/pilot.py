"""What pilot queries tell of a crowd: users by rows, how many they are, and how much they differ."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..privacy import Looks
from ..tables import ROW_LIMIT, UNIT, Counts, UsersByRows
from .measurements import inverse_variance_mean
from .pilot_queries import CROWD, PilotQuery, RowHistogram, look_at_rows, look_at_users
from .request import Request
from .row_bound import Disagreement, best_bound
from .tastes import Tastes, Weighing
from .user_sizes import Crowds

__all__ = ["Pilot", "look_at_crowd", "look_at_rows_again"]

USERS_KNOWN_TO = 0.03
"""The relative error to which the number of users is wanted."""


@dataclass
class Pilot:
    """What pilot queries told.

    row_cap: rows of one user that count at most: 1 if users weigh the same, ROW_LIMIT if the bound is to be found.
    rows: users by rows, if they have more than one that counts. users: how many, with its standard deviation. tastes:
    how much they differ; weighing: whose tastes those are.
    """

    row_cap: int
    rows: RowHistogram | None
    users: float
    users_error: float
    tastes: Tastes
    weighing: Weighing

    @property
    def all_users(self) -> tuple[float, float] | None:
        """How many users there are, and its standard deviation; None if the total of the estimate tells it."""
        if self.row_cap == 1 or self.rows is None:
            return None
        return self.users, self.users_error

    @property
    def given(self) -> bool:
        """Whether the caller gave the contribution bound: the answer is then for rows within it, and nothing is to be
        found.
        """
        return self.rows is not None and 1 < self.row_cap < ROW_LIMIT

    @property
    def sees_rows(self) -> bool:
        """Whether users by rows tell which contribution bound to take."""
        return self.rows is not None and self.rows.crowds is not None and not self.given

    @property
    def crowds(self) -> Crowds:
        """Users by mass: rows where they are counted, else all alike."""
        if self.rows is not None and self.rows.crowds is not None:
            return self.rows.crowds.capped(self.row_cap)
        rows = float(self.row_cap)
        users = np.array([[max(self.users, 1.0)]])
        return Crowds(
            np.array([rows]),
            np.zeros(1),
            users,
            np.ones(1),
            self.users_error,
            rows,
            np.zeros((1, 1)),
            np.array([0]),
            np.array([0]),
        )


def look_at_crowd(counts: Counts, spending: Looks, items: int, request: Request) -> Pilot:
    """Buy users by rows and their number. `items`: how many to size looks for. How much users differ is not asked
    here: whether that is worth its price is a matter of the choice.
    """
    tastes = Tastes.prior(counts.items)
    if request.row_cap == 1:
        users = _counted(counts, spending, items, *look_at_users(counts, spending))
        return Pilot(1, None, *users, tastes, Weighing(users))
    rows = request.seen_rows or look_at_rows(counts.sum(UsersByRows(RowHistogram.edges())).values, spending, items)
    users = _counted(counts, spending, items, *rows.users)
    if rows.crowds is None:
        # Too few users to be seen: if the caller gave no bound, every user weighs the same.
        return Pilot(request.max_rows_per_user or 1, rows, *users, tastes, Weighing(users))
    weighing = _weighing(counts, spending, rows.crowds, request.row_cap)
    return Pilot(request.row_cap, rows, *users, tastes, weighing)


def look_at_rows_again(counts: Counts, spending: Looks, pilot: Pilot, query: PilotQuery, epsilon: float) -> None:
    """Buy users by rows once more, and weigh users by what is known then. If nobody stands out any more, what was
    known before stands.
    """
    assert pilot.rows is not None
    histogram = counts.sum(UsersByRows(RowHistogram.edges())).values
    rows = pilot.rows.look_again(histogram, spending, query.purpose, epsilon)
    if rows.crowds is not None:
        pilot.rows, pilot.weighing = rows, _weighing(counts, spending, rows.crowds, pilot.row_cap)


def _weighing(counts: Counts, spending: Looks, crowds: Crowds, row_cap: int) -> Weighing:
    """Whoever holds most rows decides: users weigh by their rows, up to what Laplace noise would take of them."""
    crowds = crowds.capped(row_cap)
    noise = counts.items * spending.laplace_scale(UNIT, spending.guarantee.epsilon) / UNIT
    bound = min(best_bound(crowds, noise, Disagreement.prior().mean).rows, row_cap)
    weighed = crowds.typical * np.minimum(crowds.sizes / bound, 1.0)
    total = float(weighed.sum())
    several = total, crowds.error * total / float(crowds.typical.sum())
    return Weighing(several, bound, (crowds.sizes, weighed))


def _counted(counts: Counts, spending: Looks, items: int, number: float, error: float) -> tuple[float, float]:
    """The number of users and its standard deviation. If it is not known well enough, it is asked for in a part of
    epsilon that tells it, if there are as many as it seems.
    """
    if error <= USERS_KNOWN_TO * number:
        return number, error
    part = math.sqrt(2) / (USERS_KNOWN_TO * max(number, error) * spending.guarantee.epsilon)
    more = look_at_users(counts, spending, CROWD, min(part, CROWD.most(items)))
    return inverse_variance_mean(number, error, *more)
