"""What pilot queries tell of a crowd: users by rows, how concentrated they are, and a rough centre."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..arrays import Floats
from ..privacy import Looks
from ..tables import ROW_LIMIT, UNIT, CappedRows, Concentration, Counts
from .measurements import inverse_variance_mean
from .pilot_queries import CENTRE, PilotQuery, RowHistogram
from .user_sizes import Crowds

__all__ = ["ConcentrationLaw", "Pilot", "look_at_centre", "look_at_concentration"]


@dataclass(frozen=True)
class ConcentrationLaw:
    """The mean of ||N(u)||^2 / m_u^2 for users of m rows: square (m / at)^power. error: of square."""

    square: float
    error: float
    at: float = 1.0
    power: float = 0.0

    def of(self, masses: Floats) -> Floats:
        expected: Floats = np.clip(self.square * (masses / self.at) ** self.power, 0.0, 1.0)
        return expected


@dataclass
class Pilot:
    """What pilot queries told.

    items: how many they were sized for. row_cap: rows of one user that count at most: 1 if users weigh the same,
    ROW_LIMIT if the bound is to be found. rows: users by rows, if they have more than one that counts. users: how many,
    with its standard deviation. telling: users times the square distance at which the choice is even. centre: noisy
    capped counts, their bound and the standard deviation of their noise. counted: users and the standard deviation,
    from a look in which all weigh the same.
    """

    items: int
    row_cap: int
    rows: RowHistogram | None
    users: float
    users_error: float
    concentration: ConcentrationLaw
    telling: float = 0.0
    centre: tuple[Floats, int, float] | None = None
    counted: tuple[float, float] | None = None

    @property
    def all_users(self) -> tuple[float, float] | None:
        """How many users there are, and its standard deviation; None if the total of the estimate tells it."""
        if self.row_cap == 1 or self.rows is None:
            return None
        return self.rows.users if self.counted is None else inverse_variance_mean(*self.counted, *self.rows.users)

    @property
    def given(self) -> bool:
        """Whether the caller gave the contribution bound: the answer is then for rows within it, and nothing is to be
        found.
        """
        return self.rows is not None and 1 < self.row_cap < ROW_LIMIT

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


def look_at_concentration(
    counts: Counts, spending: Looks, items: int, cap: int, look: PilotQuery, telling: float
) -> tuple[float, float, ConcentrationLaw]:
    """Users with a standard deviation, and the mean of ||N(u)||^2 / m_u^2 over them, by capped mass squared."""
    epsilon = look.fitted(items, telling, spending.guarantee.epsilon)
    sums = counts.sum(Concentration(cap))
    noisy, event = spending.laplace(look.purpose, sums.values, bound=sums.bound.l1, epsilon=epsilon)
    near, far = (noisy / UNIT).tolist()
    error = math.sqrt(2) * event.scale / UNIT
    total = max(near + far, 2 * error)
    square = min(max(near / total, 1 / counts.items), 1.0)
    return total, math.sqrt(2) * error, ConcentrationLaw(square, error * math.hypot(1 - square, square) / total)


def look_at_centre(counts: Counts, spending: Looks, pilot: Pilot) -> tuple[float, float]:
    """||p||^2 of the crowd and its standard deviation, from Laplace noise on capped counts."""
    k = counts.items
    cap = max(1, round(pilot.crowds.quantile(0.5))) if pilot.row_cap > 1 else 1
    epsilon = CENTRE.fitted(pilot.items, pilot.telling, spending.guarantee.epsilon)
    sums = counts.sum(CappedRows(cap))
    noisy, event = spending.laplace(CENTRE.purpose, sums.values, bound=sums.bound.l1, epsilon=epsilon)
    values, deviation = noisy / UNIT, math.sqrt(2) * event.scale / UNIT
    pilot.centre = values, cap, deviation
    users, sizes = pilot.crowds.typical, pilot.crowds.sizes
    known = float((users * np.minimum(sizes / cap, 1.0)).sum())
    known_error = math.hypot(0.03 * known if pilot.row_cap > 1 else 0.0, pilot.users_error)
    own = known_error**2 / (known_error**2 + k * deviation**2)
    total = max(own * float(values.sum()) + (1 - own) * known, math.sqrt(k) * deviation / 4)
    noise, total_error = deviation / total, math.sqrt(own * k) * deviation / total
    square = min(max(float((values**2).sum()) / total**2 - k * noise**2, 1 / k), 1.0)
    # The fourth moment of Laplace noise is 6 times the square of its variance.
    error = math.sqrt(4 * square * noise**2 + 5 * k * noise**4 + 4 * square**2 * total_error**2)
    return square, error
