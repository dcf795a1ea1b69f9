"""All statistics of users, with parameters to try and the users in whom each of them reaches its bound.

A statistic that is not here fails `test_every_statistic_is_in_the_list`.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from crowdgram.tables import (
    GAIN,
    MAX_BITS,
    MAX_MASS_SCALE,
    MAX_RADIUS,
    ROW_LIMIT,
    UNIT,
    Centre,
    ItemReach,
    RootOfItems,
    Tally,
)
from crowdgram.tables.statistics import (
    CappedRows,
    Level,
    OneUser,
    RowsByStratum,
    SampledRow,
    UsersByDistance,
    UsersByHalf,
    UsersByItems,
    UsersByRows,
    WeightedSets,
)

EDGES = [1, 2, 3, 5, 8, 16, 40, 100, 1000]
DISTANCE_EDGES = [2.0**j for j in range(10, 60, 3)]
FEW_EDGES = [1, ROW_LIMIT]

LEVELS = [
    ([12345], 3, 2**20, 0),
    ([2**40, 2**42, 2**44, 2**44 + 1], 1, 2**30, 0),
    ([1, 2, 3], 1, 2**30, 1),
    ([2**30, 2**36, MAX_RADIUS - 1, MAX_RADIUS], 1000, 2**28, 3 * 2**20 + 1),
    ([2**45, MAX_RADIUS], 1, 2**30, MAX_MASS_SCALE),
]
"""Radii, row cap, unit and the scale of the mass."""


def of_counts(items, every=True):
    """Statistics of `Counts` with so many items; a few of them, that hold each kind of query, if not `every`."""
    yield from map(CappedRows, (1, 3, 1000) if every else (3,))
    yield from (
        RowsByStratum(cap, items, lights)
        for cap, lights in (((1, (1,)), (9, ()), (9, (1, 2, 4)), (1000, (15, 125))) if every else ((9, (1, 2)),))
    )
    yield from (UsersByHalf(items, cap % 2, cap) for cap in ((1, 4, 1000, ROW_LIMIT) if every else (3,)))
    yield from map(UsersByRows, ([5], EDGES) if every else (EDGES,))
    yield from (SampledRow(cap, "salt") for cap in ((1, 4) if every else (4,)))
    yield from (Tally(rows, "salt") for rows in ((1, 4, 17) if every else (4,)))


def of_totals():
    """Statistics of `UserTotals`."""
    return UsersByRows(EDGES), RootOfItems(16)


def of_presence(items, every=True):
    """Statistics of `Presence` with so many items; if not `every`, either norm, and with groups or without."""
    yield UsersByItems(EDGES)
    groups = (*(item // 2 for item in range(items - 1)), -1)
    yield ItemReach(2, "l1", 2**26)
    yield ItemReach(2, "l2", 2**26, groups)
    if every:
        yield ItemReach(2, "l2", 2**26)
        yield ItemReach(2, "l1", 2**26, groups)
        for norm in ("l1", "l2"):
            yield ItemReach(1, norm, 0, tuple(range(items)))
            yield from (ItemReach(bound, norm, books) for bound, books in ((1, 0), (1, 1), (3, UNIT // 5), (10**6, 7)))


def of_sets(items, every=True):
    """Statistics of `ItemSets` with so many items."""
    gains = [(np.arange(items) * 37) % (GAIN + 1)]
    if every:
        gains += [
            np.where(np.arange(items) == items // 2, GAIN, 1),
            np.full(items, GAIN),
            np.where(np.arange(items) % 3, 64, 0),
            np.zeros(items, dtype=np.int64),
        ]
    return map(WeightedSets, gains)


def of_distances(centre, norm, every=True):
    """Statistics of `Distances` from a centre: histograms, and levels."""
    units = (2**14, UNIT) if every else (2**14,)
    histograms = [UsersByDistance(centre, norm, 2, unit, DISTANCE_EDGES) for unit in units]
    return histograms, [level for given in (LEVELS if every else LEVELS[2:4]) for level in levels(centre, norm, *given)]


def levels(centre, norm, radii, row_cap, unit=UNIT, mass_scale=0):
    """What `Distances.levels` sums."""
    return [Level(centre, norm, row_cap, unit, low, high, mass_scale) for low, high in pairwise([0, *radii])]


def centre_for(items, bits=16):
    weights = 1.0 / np.arange(1, items + 1)
    coordinates = np.floor(weights / weights.sum() * 2**bits).astype(np.int64)
    return Centre(coordinates, np.arange(items, dtype=np.int64) % 7 + 1, bits)


def measures(items, every=True):
    """Centres with a norm: the origin, an uneven centre, the uniform one with the finest scales, and one that rounds to
    zero.
    """
    if not every:
        return [(centre_for(items), "l1"), (centre_for(items, MAX_BITS), "l2")]
    ones = np.ones(items, dtype=np.int64)
    uniform = Centre(ones * round(2**MAX_BITS / items), ones * 4, MAX_BITS)
    centres = (Centre.origin(items), centre_for(items), uniform, Centre(0 * ones, ones, 9))
    return [(centre, norm) for centre in centres for norm in ("l1", "l2")]


_ORIGIN = Centre.origin(5)
_HEAVY, _ALL = OneUser(7, {2: ROW_LIMIT}), OneUser(7, dict.fromkeys(range(5), 2**10))

REACHED = [
    (CappedRows(3), _HEAVY),
    (RowsByStratum(3, 5, (1, 2)), _HEAVY),
    (SampledRow(3, "salt"), _HEAVY),
    (UsersByHalf(5, 0, 3), _ALL),
    (UsersByRows(FEW_EDGES), _HEAVY),
    (RootOfItems(4), _ALL),
    (UsersByItems(FEW_EDGES), _ALL),
    (ItemReach(2, "l1", 2**26), _ALL),
    (ItemReach(2, "l2", 2**26), _ALL),
    (ItemReach(2, "l1", 2**26, tuple(range(5))), _ALL),
    (ItemReach(2, "l2", 2**26, tuple(range(5))), _ALL),
    (Tally(4, "salt"), OneUser(7, dict.fromkeys(range(4), 1))),
    (WeightedSets(np.full(5, GAIN)), _ALL),
    (UsersByDistance(_ORIGIN, "l2", 2, UNIT, DISTANCE_EDGES), _HEAVY),
    (Level(_ORIGIN, "l1", 1, UNIT, 2**20, 2**29), OneUser(7, {2: 3})),
    (Level(centre_for(5), "l2", 1, UNIT, 2**30, 2**40), OneUser(7, {2: 3})),
]
"""Every statistic, and a user who adds as much as the bound allows, but for rounding."""
