"""Users by distance from a centre: what a noisy histogram of distances tells of them, and what users by rows add."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..arrays import Floats
from ..tables import Distances
from .budget import Budget
from .noisy_bins import Bins
from .pilot_queries import HISTOGRAM_UNIT
from .row_bound import average_error
from .shells import Users, floor_shares
from .tastes import Tastes
from .tuning import TUNING
from .user_sizes import Crowds, read

__all__ = ["USER_UNIT", "Facts", "UsersByDistance", "look_at_distances"]

USER_UNIT = 2**28
"""What a full user weighs in integers: 2^8 a row where rows are counted."""
LOW, HIGH = 2.0**-14, 4.0
"""Distances from the centre that are told apart, relative to the largest possible one."""
POSSIBLE = 5
"""Crowds that the bias of an answer is worked out for."""
FARTHER = 2.5
"""Times their root mean square distance that users are away at most, but for strangers."""
HIDDEN = 0.25
"""Users who hold half of all rows are hidden if they are fewer in a bin than this, over the noise of a bin: in an
octave, four bins, half the noise of an octave.
"""
AROUND = (1 / 6, 0.6), (4 / 6, 1.0), (1 / 6, 1.7)
"""Parts of the users of one number of rows, and how far they are, over their root mean square distance: its logarithm
has a spread of 0.3, as on the tables that were tried (0.12 to 0.45).
"""
UNSEEN = 4.0
"""Octaves beyond what is seen that users may be in who are missing from a histogram of distances."""


@dataclass(frozen=True)
class Facts:
    """What pilot queries told. row_cap: rows of one user that count at most; 1 where users weigh the same. rows: users
    by rows, where they were asked for; else all are taken to have as many as count. users: how many, and its standard
    deviation. tastes: how much they differ.
    """

    row_cap: int
    rows: Crowds | None
    users: float
    users_error: float
    tastes: Tastes

    @property
    def square(self) -> float:
        """The mean of ||N(u)||^2 / m_u^2."""
        return self.tastes.square + self.tastes.mean_distance

    @property
    def largest_mass(self) -> float:
        return float(self.row_cap) if self.rows is None else min(float(self.row_cap), 4 * self.rows.quantile(1.0))


@dataclass(frozen=True)
class UsersByDistance:
    """Users by size and mass, as far as a histogram of distances tells: typical, and a few that are as likely as each
    other.
    """

    typical: Users
    possible: list[Users]
    spread: float

    @property
    def median_distance(self) -> float:
        """The distance, over mass, that half of the users keep to."""
        users, distances = self.typical.users, self.typical.sizes / self.typical.masses
        order = np.argsort(distances)
        cumulative = np.cumsum(users[order]) / users.sum()
        return float(distances[order][np.searchsorted(cumulative, 0.5)])

    @property
    def mean_distance(self) -> float:
        """How far users are, over their mass, by mass."""
        one = self.typical
        return float((one.users * one.sizes).sum() / (one.users * one.masses).sum())

    def clipped_at(self, part: float) -> float:
        """The radius, over the mass of all, within which clipping leaves this part of the mass."""
        one = self.typical
        masses, radii = one.users * one.masses, np.sort(one.sizes)
        left = np.minimum(radii[:, None] / one.sizes, 1.0) @ masses
        return float(radii[np.searchsorted(left, part * masses.sum())] / masses.sum())


def look_at_distances(
    measured: Distances, budget: Budget, facts: Facts, share: float, number: int, error: float
) -> UsersByDistance | None:
    """Buy a histogram of distances; None if nobody is known of. `error`: the centre's own square error."""
    placed = measured.centre
    scales, centre = placed.scales, placed.shares
    full = USER_UNIT / facts.row_cap * 2.0**placed.bits
    farthest = float(placed.stretches.max()) * math.sqrt(2)
    reach = facts.largest_mass * farthest * HIGH
    f = floor_shares(centre)
    spread = float((f / scales**2).sum()) if budget.norm == "l2" else float((np.sqrt(f) / scales).sum()) ** 2
    nearest = max(LOW * float(placed.stretches.min()), _nearest(facts, spread, error, farthest))
    steps = math.ceil(math.log2(reach / nearest) / TUNING.step)
    edges: Floats = reach * np.exp2(TUNING.step * (np.arange(steps + 1) - steps))
    histogram = measured.histogram((edges * full).tolist(), facts.row_cap, USER_UNIT) * HISTOGRAM_UNIT
    noisy = budget.noisy(f"round {number}: users by distance", histogram, share)
    deviation = budget.deviation(share, non_negative=True)
    bins = Bins(noisy / HISTOGRAM_UNIT, np.full(len(edges), deviation), edges, budget.shape == "laplace")
    found = None if _hidden(facts, deviation) else read(bins, eager=True)
    known = facts.users - 3 * facts.users_error
    if found is None or found.typical.sum() + 3 * found.error < known / 2:
        return _expected(facts, spread, error, farthest) if known > 0 else None
    versions = []
    strangers = _strangers(facts, spread)
    for users, (at, strange) in zip((found.typical, *found.spread_out(POSSIBLE)), strangers, strict=True):
        users = _with_missing(users, found.sizes, facts, found.error)
        users = _within_rows(users, found.sizes, facts, spread, error, farthest)
        users, part = _with_strangers(users, found.sizes, at, strange)
        masses = np.full(len(users), float(facts.row_cap)) if facts.rows is None else _masses(users, facts)
        present = users > 0
        points = found.sizes[present, None] * 2.0 ** (TUNING.step * np.array([-0.25, 0.25]))
        halved, mass, strangers_part = (np.repeat(each[present], 2) for each in (users / 2, masses, part))
        versions.append(Users(halved, points.ravel(), mass, strangers_part))
    return UsersByDistance(versions[0], versions[1:], spread)


def _nearest(facts: Facts, spread: float, error: float, farthest: float) -> float:
    """The least size that bins tell apart: users are no nearer to a centre than its `error`, squared, and chance put
    those with the fewest rows, but for a factor of FARTHER, and for another one since the error is an estimate.

    A bin below would hold noise only. Taken for the crowd, it would shrink the radius to nothing, and the answer would
    be the centre, with next to no noise predicted.
    """
    if facts.rows is None:
        fewest, chance = float(facts.row_cap), 0.0
    else:
        fewest = float(facts.rows.sizes[np.argmax(facts.rows.typical > 0)])
        chance = spread * (1 - facts.tastes.square) / fewest
    return fewest * min(math.sqrt(chance + error), farthest) / FARTHER**2


def _hidden(facts: Facts, deviation: float) -> bool:
    """Whether noise of this standard deviation in a bin hides the users who hold half of all rows."""
    if facts.rows is None:
        return False
    users, rows = facts.rows.typical, facts.rows.sizes
    held = np.cumsum((users * rows)[::-1])[::-1]
    heavy = (held - users * rows < held[0] / 2) & (users > 0)
    if not heavy.any():
        return True
    bins = max(math.log2(rows[heavy].max() / rows[heavy].min()) / TUNING.step, 1.0)
    return float(users[heavy].sum()) / bins < HIDDEN * deviation


def _expected(facts: Facts, spread: float, error: float, farthest: float) -> UsersByDistance:
    """The crowd where a histogram of distances does not show the users that pilot queries counted: as far from the
    centre as chance, tastes and the centre's `error` put them, and `farthest` a row at most.
    """
    tastes, rows = facts.tastes, facts.rows
    alone = float(tastes.weights @ tastes.strange)
    typical = float(np.exp(tastes.weights @ np.log(tastes.tastes)))
    # Which taste goes with which crowd is as good as chance.
    likely = [typical, *(tastes.quantile((j + 0.5) / POSSIBLE) for j in (2, 1, 3, 0, 4))]
    if rows is None:
        masses, crowds = np.array([float(facts.row_cap)]), [(np.array([facts.users]), np.zeros(1))] * len(likely)
    else:
        masses = rows.sizes
        crowds = [(rows.typical, _typical_strangers(rows) / np.maximum(rows.typical, 1e-300))]
        crowds += [(rows.users[j], rows.strangers[j]) for j in rows.equally_likely(POSSIBLE).tolist()]
    versions = []
    for (users, strange), taste in zip(crowds, likely, strict=True):
        strange = np.minimum(strange, 1.0)
        chance = np.zeros(len(masses)) if rows is None else 1 / masses
        square = (
            spread * (1 - tastes.square) * np.array([np.minimum(taste + chance, 1.0), np.ones(len(masses))]) + error
        )
        near, far = np.minimum(np.sqrt(square), farthest) * masses
        own = users * (1 - strange) * (1 - alone)
        parts = [*((part * own, factor * near) for part, factor in AROUND), (users * (1 - strange) * alone, far)]
        found = np.concatenate([*(number for number, _ in parts), users * strange])
        sizes = np.concatenate([*(size for _, size in parts), far])
        who = np.repeat([0.0, 1.0], [len(parts) * len(masses), len(masses)])
        present = found > 0
        versions.append(Users(found[present], sizes[present], np.tile(masses, len(parts) + 1)[present], who[present]))
    return UsersByDistance(versions[0], versions[1:], spread)


def _with_missing(users: Floats, sizes: Floats, facts: Facts, error: float) -> Floats:
    """Users that pilot queries counted and this histogram does not show are far out, too few in each bin to be seen."""
    lost = facts.users - users.sum() - 3 * math.hypot(facts.users_error, error)
    if lost <= 0:
        return users
    last = float(sizes[np.flatnonzero(users)[-1]])
    beyond = (sizes > last) & (sizes <= last * 2**UNSEEN)
    return users + np.where(beyond, lost / max(int(beyond.sum()), 1), 0.0)


def _strangers(facts: Facts, spread: float) -> list[tuple[Floats, Floats]]:
    """The sizes and the numbers of users who are known, by their rows, to have nothing in common with the crowd: in the
    typical crowd, if it has some rather than none, and in a few that are as likely as each other.
    """
    rows = facts.rows
    if rows is None:
        return [(np.zeros(0), np.zeros(0))] * (POSSIBLE + 1)
    at = rows.sizes * math.sqrt(spread * facts.square)
    strange = rows.users * rows.strangers
    return [(at, _typical_strangers(rows)), *((at, strange[one]) for one in rows.equally_likely(POSSIBLE))]


def _typical_strangers(rows: Crowds) -> Floats:
    """Strangers by rows, if there are some rather than none."""
    strange = rows.users * rows.strangers
    some = strange.any(axis=1)
    chance = float(rows.weights[some].sum())
    return average_error(rows.weights[some] / chance, strange[some]) if chance > 0.5 else np.zeros(len(rows.sizes))


def _with_strangers(users: Floats, sizes: Floats, at: Floats, strange: Floats) -> tuple[Floats, Floats]:
    """At least as many users as far out as strangers are, and the part of users who are strangers."""
    if not strange.any():
        return users, np.zeros(len(users))
    out = np.array([strange[at >= size].sum() for size in sizes])
    above = np.maximum(np.cumsum(users[::-1])[::-1], out)
    reached: Floats = -np.diff(above, append=0.0)
    theirs = -np.diff(out, append=0.0)
    return reached, np.clip(theirs / np.maximum(reached, 1e-9), 0.0, 1.0)


def _within_rows(users: Floats, sizes: Floats, facts: Facts, spread: float, error: float, farthest: float) -> Floats:
    """No larger part of users is as far out as have the rows for it: what a histogram shows beyond is noise. Chance,
    tastes and the centre's `error` put users of m rows at a distance of m sqrt(spread (taste + 1/m) + error), most of
    them within FARTHER times that; strangers, at `farthest` a row.
    """
    if facts.rows is None:
        return users
    rows, m, tastes = facts.rows.typical, facts.rows.sizes, facts.tastes
    own = (1 - tastes.square) * tastes.quantile(0.9)
    reached = m * np.minimum(FARTHER * np.sqrt(spread * (own + 1 / m) + error), farthest)
    strange = float(tastes.weights @ tastes.strange)
    able = np.array([(1 - strange) * rows[reached >= s].sum() + strange * rows[m * farthest >= s].sum() for s in sizes])
    able /= rows.sum()
    above = np.minimum(np.cumsum(users[::-1])[::-1], able * users.sum())
    within: Floats = -np.diff(above, append=0.0)
    return within


def _masses(users: Floats, facts: Facts) -> Floats:
    """Rows of the users in each bin of distances: the farthest have most rows."""
    assert facts.rows is not None
    rows = facts.rows.typical

    def above(histogram: Floats) -> Floats:
        reached: Floats = (np.cumsum(histogram[::-1])[::-1] - 0.5 * histogram) / histogram.sum()
        return reached

    masses: Floats = np.exp(np.interp(-above(users), -above(rows), np.log(facts.rows.sizes)))
    return np.minimum(masses, facts.row_cap)
