"""The profile: cheap private facts about the crowd, bought first and used to choose everything else.

Two histograms of users, on log-spaced bins with discrete Laplace noise: by rows, and by concentration ||N(u)||_2 /
m_u (1 for a user with one item, near the crowd's own for users who are like the crowd). Each is looked at cheaply
first and again, dearer, only where the first look showed too little: a large crowd pays next to nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from ..privacy import Spending
from ..tables import ROW_LIMIT, UNIT, Centre, Counts, distances, rows_histogram
from .cost import scatter
from .histograms import Crowding, grown, near, spread_out, unimodal, visible
from .measurements import agreed

__all__ = [
    "FINE_ROW_EDGES",
    "HISTOGRAM_UNIT",
    "ROW_EDGES",
    "Profile",
    "RowBins",
    "RowProfile",
    "buy_profile",
    "buy_rows",
    "look_again",
    "look_closer",
    "reserve_profile",
]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

FINE_ROW_EDGES: tuple[int, ...] = tuple(sorted({round(2 ** (j / 4)) for j in range(81)}))
ROW_EDGES: tuple[int, ...] = tuple(sorted({round(2 ** (j / 2)) for j in range(41)}))
"""1, 2, 3, 4, 6, 8, 11, 16, ... up to ROW_LIMIT, where every user ends; and the same with steps half as large, for
crowds that fill them.
"""

CONCENTRATION_EDGES = np.append(2.0 ** (-np.arange(0.5, 11, 0.5)[::-1]), [0.975, 1.0])
"""The last bin is for users with one item (nearly): counted with those next to them they would look less alike
than they are.
"""

HISTOGRAM_UNIT = 2**20
"""A user counts 2^20 in a histogram, so that the noise's integer steps are far below its scale."""

FIRST_LOOK, SECOND_LOOK = 0.004, 0.016
"""Parts of epsilon for the two looks at each histogram."""

BARELY = 4.0
"""Standard errors by which a crowd that no histogram shows must stand out as a whole."""

HINT, HINT_ERROR = 4.5, 0.08
"""... and a bin in such a crowd, to be taken for a hint at the square concentration, of this standard error."""

ENOUGH = 60
"""A first look is enough if it shows this many standard deviations of users."""

THRESHOLD = 6.5
"""Standard deviations of Laplace noise that a bin must exceed: one release in five hundred sees a bin that is not
there.
"""

ALONE = 1.4
"""... and by this factor more if it is far from most users: a false bin of very heavy users would rule all that
follows.
"""

THIRD_LEAST, THIRD_MOST = 0.01, 0.035
"""Parts of epsilon for a third look at rows, before a pure finish. Below, the second was as good."""
SPREADS = (0.03, 0.25, 0.5, 0.75, 1.0, 1.25)
"""Standard deviations of the logarithm of rows that a crowd is taken to have, where its rows cannot be seen."""
PLACE_STEP = 0.15
SIZES = (0.8, 0.9, 1.0, 1.1, 1.2)
"""... the steps in which its centre is sought, and by how much its size may be off."""

DETAIL = 120
"""A third look aims at a standard deviation of one user in this many."""
NARROW = 3
"""Many users in so few bins leave no doubt about the cap."""

assert ROW_EDGES[-1] == ROW_LIMIT
assert set(ROW_EDGES) <= set(FINE_ROW_EDGES)
_WIDE = np.searchsorted(ROW_EDGES, FINE_ROW_EDGES)
"""The wide bin that each fine one lies in."""


@dataclass(frozen=True)
class RowBins:
    """Users by rows as measured: `users[j]` of them, with noise of this standard deviation, have at most `edges[j]`
    rows and more than `edges[j - 1]`.
    """

    users: Floats
    deviation: float
    edges: tuple[int, ...]

    def unevenness(self, users: float) -> float:
        """How uneven the rows of `users` are likely to be, as a standard deviation over their mean, even if no bin
        stands out: the root of the mean square over what the bins leave possible.
        """
        return float(np.sqrt((self._likely(users).sum(axis=1) * np.expm1(np.array(SPREADS) ** 2)).sum()))

    def cut(self, users: float, row_cap: int) -> float:
        """How far a row cap is likely to move the answer of `users` who agree, in sampling errors: heavy users may be
        too few to be seen.

        With shares b of all rows before the cap and a after it, sqrt(sum (a - b)^2 / rows / sum b^2 / rows).
        """
        steps = np.linspace(-4, 4, 65)
        density = np.exp(-(steps**2) / 2)
        rows = np.exp(self._places[None, :, None] + np.array(SPREADS)[:, None, None] * steps)
        before, after = (
            each / (each * density).sum(axis=-1, keepdims=True) for each in (rows, np.minimum(rows, row_cap))
        )
        moved = ((after - before) ** 2 / rows * density).sum(axis=-1) / (before**2 / rows * density).sum(axis=-1)
        return float(np.sqrt((self._likely(users) * moved).sum()))

    @property
    def _places(self) -> Floats:
        return np.arange(0.0, math.log(self.edges[-1]), PLACE_STEP)

    def _likely(self, users: float) -> Floats:
        """The posterior of log-normal rows, by spread and place: every log-deviation in SPREADS as likely as the others
        before the bins are seen, and every place, and crowds a little smaller or larger than `users`.
        """
        edges = np.log(np.array(self.edges) + 0.5)
        below = special.ndtr((edges - self._places[:, None]) / np.array(SPREADS)[:, None, None])
        shares = np.diff(below, axis=-1, prepend=0.0)[:, :, None, :]
        expected = users * np.array(SIZES)[:, None] * shares
        fit = -((self.users - expected) ** 2).sum(axis=-1) / (2 * self.deviation**2)
        likelihood = np.exp(fit - fit.max()).sum(axis=2)
        likely: Floats = likelihood / likelihood.sum()
        return likely


@dataclass(frozen=True)
class RowProfile:
    """Noisy numbers of users by rows: `users[j]` of them with about `rows[j]` rows, at most `edges[j]`. Bins lost
    in the noise are zero.

    measured: what that is made of.
    """

    users: Floats
    rows: Floats
    measured: RowBins

    @classmethod
    def of(cls, measured: RowBins) -> RowProfile | None:
        """What noisy bins show; None if nothing stands out."""
        bins, deviation = measured.users, measured.deviation
        seen = visible(bins, deviation, THRESHOLD, ALONE)
        if not seen.any():
            return None
        upper = np.array(measured.edges, dtype=np.float64)
        smallest = np.concatenate([[1.0], upper[:-1] + 1])
        users = near(unimodal(bins), grown(bins, seen, deviation), 1)
        return cls(users, np.sqrt(smallest * upper), measured)

    @property
    def edges(self) -> tuple[int, ...]:
        return self.measured.edges

    def spread_out(self, parts: int) -> tuple[Floats, Floats]:
        """Users and their rows, each bin spread evenly on the log scale over `parts` points."""
        upper = np.array(self.edges, dtype=np.float64)
        smallest = self.rows**2 / upper
        inside = (np.arange(parts) + 0.5) / parts
        rows = smallest[:, None] * (upper / smallest)[:, None] ** inside
        return np.repeat(self.users / parts, parts), rows.ravel()

    @property
    def undoubted(self) -> bool:
        """Whether users are in few bins, and so many of them that these cannot be noise."""
        few = np.count_nonzero(self.users) <= NARROW
        return bool(few and self.users.max() > 2 * THRESHOLD * self.measured.deviation)

    @property
    def largest(self) -> int:
        """The upper edge of the last bin that is not empty."""
        return self.edges[int(np.nonzero(self.users)[0].max())]


@dataclass(frozen=True)
class Profile:
    """The crowd in a few noisy numbers. Masses are relative: 1 is a user who counts fully.

    users: how many. row_cap: rows of one user that count at most; 1 where every user weighs the same (`equal`). rows:
    users by rows, or None where not bought. concentration: users by ||N(u)||_2 / m_u. blind: the crowd is too small for
    the histogram to show anything, and the concentration is a guess; barely_seen: or one number, from a closer look.
    unseen: users by rows where that was bought and shows nothing. hint: the mean square concentration of bins that
    stand out by a lower bar.
    """

    users: float
    row_cap: int
    equal: bool
    rows: RowProfile | None
    concentration: Crowding
    blind: bool
    barely_seen: bool = False
    unseen: RowBins | None = None
    hint: float | None = None

    def masses(self) -> tuple[Floats, Floats]:
        """Users and their relative masses min(rows / row_cap, 1)."""
        if self.rows is None:
            return np.array([self.users]), np.ones(1)
        return self.rows.users, np.minimum(self.rows.rows / self.row_cap, 1.0)

    def by_rows(self, parts: int) -> tuple[Floats, Floats, Floats]:
        """Users, their rows (1 where unknown) and masses, each bin spread over `parts` points; without empty bins."""
        if self.rows is None:
            return np.array([self.users]), np.ones(1), np.ones(1)
        users, rows = self.rows.spread_out(parts)
        users, rows = users[users > 0], rows[users > 0]
        return users, rows, np.minimum(rows / self.row_cap, 1.0)

    @property
    def mass(self) -> float:
        users, mass = self.masses()
        return float((users * mass).sum())

    @property
    def mass_moment(self) -> float:
        """sum mass^3 / sum mass: the mean of mass^2, by mass."""
        users, mass = self.masses()
        return float((users * mass**3).sum() / (users * mass).sum())

    @cached_property
    def cut(self) -> float:
        """How far the row cap is likely to move the answer of users who agree, in sampling errors."""
        return 0.0 if self.rows is None else self.rows.measured.cut(self.users, self.row_cap)

    @property
    def inverse_mean_rows(self) -> float:
        """1 / (mean rows per user): what chance adds to the squared distance of users, weighted by rows. 0 where rows
        are unknown.
        """
        if self.rows is None:
            return 0.0
        return float(self.rows.users.sum() / (self.rows.users * self.rows.rows).sum())

    @property
    def mean_inverse_rows(self) -> float:
        """The mean of 1 / rows: the same, where users weigh the same."""
        if self.rows is None:
            return 0.0
        return float((self.rows.users / self.rows.rows).sum() / self.rows.users.sum())

    def scatter(self, between: float, drawn: float, row_cap: int | None = None) -> float:
        """The sampling variance of the crowd's own answer, as in `cost.scatter`; with a row cap, of how far the cap
        moves it.
        """
        if self.rows is None:
            return scatter(np.array([self.users]), np.array([1 / self.users]), np.ones(1), between, 0.0)
        users, rows = self.rows.users, self.rows.rows
        shares = rows / (users * rows).sum()
        if row_cap is not None:
            capped = np.minimum(rows, row_cap)
            shares = capped / (users * capped).sum() - shares
        return scatter(users, shares, rows, between, drawn)

    @property
    def chance(self) -> float:
        """The mean of mass^2 / rows, by mass: how far users stray by chance alone, for a variance of 1 a row. 0
        where rows are unknown.
        """
        if self.rows is None:
            return 0.0
        users, mass = self.masses()
        return float((users * mass**3 / self.rows.rows).sum() / (users * mass).sum())

    @property
    def mean_square_concentration(self) -> float:
        """The mean over users of ||N(u)||^2 / m_u^2, from the bins that stand out."""
        return self.concentration.mean_square()

    def uncentred(self, concentration: Crowding) -> Crowding:
        """Users by ||N(u)|| relative to a full user: mass times concentration, taken as independent."""
        users, mass = self.masses()
        present = users > 0
        shares = concentration.users / concentration.users.sum()
        return Crowding(
            users=np.outer(users[present], shares).ravel(),
            size=np.outer(mass[present], concentration.size).ravel(),
            mass=np.repeat(mass[present], len(shares)),
        )


ROWS_PURPOSE = "users by rows"
CONCENTRATION_PURPOSE = "users by concentration"


def reserve_profile(spending: Spending, *, rows: bool) -> None:
    """Set aside what the profile may cost, before anything is looked at."""
    for purpose in [ROWS_PURPOSE, CONCENTRATION_PURPOSE] if rows else [CONCENTRATION_PURPOSE]:
        for look, share in _LOOKS:
            spending.reserve(f"{purpose}, {look}", bound=HISTOGRAM_UNIT, epsilon=share * spending.guarantee.epsilon)


def buy_rows(fine: Integers, spending: Spending) -> RowBins:
    """Buy users by rows, of whom `fine` are in the bins of FINE_ROW_EDGES.

    The first look is at fine bins. If they are lost in the noise, the second is at bins twice as wide, which hold
    more users each.
    """
    (_, first), (_, second) = _LOOKS
    noisy, deviation = _look(fine, spending, f"{ROWS_PURPOSE}, {_LOOKS[0][0]}", first)
    if _is_enough(noisy, deviation):
        return RowBins(noisy, deviation, FINE_ROW_EDGES)
    again, finer = _look(_merged(fine), spending, f"{ROWS_PURPOSE}, {_LOOKS[1][0]}", second)
    bins, _ = agreed(_merged(noisy), deviation * np.sqrt(np.bincount(_WIDE)), again, finer)
    return RowBins(bins, finer, ROW_EDGES)


def look_again(counts: Counts, spending: Spending, profile: Profile) -> Profile:
    """The crowd by rows once more, where it is spread thinly over bins or was not seen: which cap is best rests on the
    heaviest, and how far equal weights move an answer by rows on how uneven they are.

    Only for a pure finish: this look is not reserved.
    """
    known = profile.unseen if profile.rows is None else profile.rows.measured
    share = math.sqrt(2) * DETAIL / (max(profile.users, 1.0) * spending.guarantee.epsilon)
    if known is None or known.edges != ROW_EDGES or share < THIRD_LEAST:
        return profile
    if profile.rows is not None and profile.rows.undoubted:
        return profile
    histogram = rows_histogram(counts, ROW_EDGES)
    noisy, deviation = _look(histogram, spending, f"{ROWS_PURPOSE}, third look", min(share, THIRD_MOST))
    measured = RowBins(*agreed(known.users, known.deviation, noisy, deviation), ROW_EDGES)
    if profile.rows is None:
        return replace(profile, unseen=measured)
    rows = RowProfile.of(measured)
    if rows is None:  # what stood out was noise
        users = float(profile.concentration.users.sum())
        return replace(profile, users=users, row_cap=1, equal=True, rows=None, unseen=measured)
    return replace(profile, users=float(rows.users.sum()), row_cap=rows.largest, rows=rows)


def buy_profile(
    counts: Counts, spending: Spending, *, equal: bool, row_cap: int | None, seen_rows: RowBins | None = None
) -> tuple[Profile, Crowding]:
    """Buy the profile; also the crowd by norm, relative to a full user, as it stands before any centring.

    `equal`: every user weighs the same, and rows are not asked for. `row_cap`: what the user gave; rows are then not
    bought; nor are they where `seen_rows` was bought before. Guarantee: each look is a histogram in which one user is
    in one bin, worth HISTOGRAM_UNIT; `Spending` charges it.
    """
    rows: RowProfile | None = None
    unseen: RowBins | None = None
    if not equal and row_cap is None:
        bins = seen_rows or buy_rows(rows_histogram(counts, FINE_ROW_EDGES), spending)
        rows = RowProfile.of(bins)
        if rows is None:  # too few users to see: let every user weigh the same
            equal, unseen = True, bins
    edges = CONCENTRATION_EDGES
    histogram = _by_concentration(counts)
    noisy, deviation = _two_looks(histogram, spending, CONCENTRATION_PURPOSE)
    seen = visible(noisy, deviation, THRESHOLD)
    blind = not seen.any()
    hint = None
    if blind:
        hinted = visible(noisy, deviation, HINT)
        hint = _crowding(hinted).mean_square() if hinted.any() else None
        seen = np.where(edges == 0.5, 5 * deviation, 0.0)
    loose = seen if blind else near(unimodal(noisy), seen, 4)
    users = float(loose.sum())
    if rows is not None:
        users = float(rows.users.sum())
    profile = Profile(
        users=users,
        row_cap=1 if equal else row_cap or (rows.largest if rows is not None else 1),
        equal=equal,
        rows=rows,
        concentration=_crowding(seen),
        blind=blind,
        unseen=unseen,
        hint=hint,
    )
    return profile, profile.uncentred(_crowding(loose))


def look_closer(
    counts: Counts, spending: Spending, blind: Profile, purpose: str, share: float
) -> tuple[Profile, Crowding]:
    """A profile, and its crowd by norm, for a crowd that no histogram shows: two numbers instead of many.

    A user whose bin has the square concentration x adds x to the first and 1 - x to the second. Guarantee: rounded to
    whole numbers, the two are non-negative and sum to UNIT for each user.
    """
    bins = _by_concentration(counts)
    lower = CONCENTRATION_EDGES / 2**0.5
    lower[-2:] = CONCENTRATION_EDGES[-3:-1]
    squares = np.floor(CONCENTRATION_EDGES * lower * UNIT).astype(np.int64)
    squares[-1] = UNIT
    pairs = (squares.tolist(), (UNIT - squares).tolist())
    exact = [sum(n * x for n, x in zip(bins.tolist(), each, strict=True)) for each in pairs]
    sums = np.array([min(total, 2**62) for total in exact], dtype=np.int64)  # a cap moves nothing further apart
    noisy, event = spending.laplace(purpose, sums, bound=UNIT, epsilon=share * spending.guarantee.epsilon)
    near_one, far = (noisy / UNIT).tolist()
    users, deviation = near_one + far, 2 * event.scale / UNIT
    barely = users > BARELY * deviation
    if not barely:
        users = min(max(users, deviation), blind.users)
        concentration = blind.concentration
    else:
        square = near_one / users
        if blind.hint is not None:
            square, _ = agreed(square, deviation / users, blind.hint, HINT_ERROR)
        square = min(max(square, 1 / counts.items), 1.0)
        concentration = Crowding(np.array([users]), np.array([math.sqrt(square)]), np.ones(1))
    rows = users if blind.rows is None else blind.users
    profile = replace(blind, users=rows, concentration=concentration, barely_seen=barely)
    return profile, profile.uncentred(concentration)


_LOOKS = (("first look", FIRST_LOOK), ("second look", SECOND_LOOK))


def _two_looks(histogram: Integers, spending: Spending, purpose: str) -> tuple[Floats, float]:
    """Noisy numbers of users and their standard deviation: one look, and a second where that shows too little."""
    (first_name, first), (second_name, second) = _LOOKS
    noisy, deviation = _look(histogram, spending, f"{purpose}, {first_name}", first)
    if not _is_enough(noisy, deviation):
        again, finer = _look(histogram, spending, f"{purpose}, {second_name}", second)
        return agreed(noisy, deviation, again, finer)
    return noisy, deviation


def _look(histogram: Integers, spending: Spending, purpose: str, share: float) -> tuple[Floats, float]:
    """One noisy look at a histogram of users, for a share of epsilon."""
    noisy, event = spending.laplace(
        purpose, histogram * HISTOGRAM_UNIT, bound=HISTOGRAM_UNIT, epsilon=share * spending.guarantee.epsilon
    )
    return noisy / HISTOGRAM_UNIT, float(np.sqrt(2) * event.scale / HISTOGRAM_UNIT)


def _is_enough(noisy: Floats, deviation: float) -> bool:
    return bool(visible(noisy, deviation, THRESHOLD).sum() >= ENOUGH * deviation)


def _by_concentration(counts: Counts) -> Integers:
    origin = distances(counts, Centre.origin(counts.items))
    return origin.histogram((CONCENTRATION_EDGES * UNIT).tolist(), 1)


def _merged(bins: Any) -> Any:
    """Sums of fine bins by the wide bin that they lie in, in the type of the bins."""
    merged = np.zeros(len(ROW_EDGES), dtype=bins.dtype)
    np.add.at(merged, _WIDE, bins)
    return merged


def _crowding(bins: Floats) -> Crowding:
    """Users by concentration: bins spread out, but for the last, which is 1."""
    edges = CONCENTRATION_EDGES
    users, size = spread_out(bins[:-2], edges[:-2], 8)
    between = edges[-3] * (edges[-2] / edges[-3]) ** ((np.arange(8) + 0.5) / 8)
    users = np.concatenate([users, np.full(8, bins[-2] / 8), bins[-1:]])
    return Crowding(users, np.concatenate([size, between, [1.0]]), np.ones(len(users)))
