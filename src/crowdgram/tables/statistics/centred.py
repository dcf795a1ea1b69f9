"""Users measured against a centre: how far they stray, and bounded sums of how they stray.

User u's deviation from a public centre c is the integer vector g(u) = s (2^b N(u) - m_u C), with C = round(2^b c)
and a whole number s_i for each item. Users who agree with the centre have short ones, so their sum needs little noise.
`Distances.levels` splits every deviation over several radii, with one more coordinate for the users' mass. Proof of
every bound: docs/proofs/bounded-sums.md.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np

from ...arrays import Floats, Integers, distinct
from ...errors import InvalidArgument
from ..arrow import numbers_table
from ..counts import Counts
from ..relations import Relation, Value, greatest, least
from .base import (
    UNIT,
    Bound,
    BoundedSum,
    Norm,
    OneUser,
    Result,
    Statistic,
    Vector,
    base_weight,
    check_row_cap,
    weighted_totals,
)
from .histograms import bin_of, check_edges, user_histogram

__all__ = [
    "MAX_BITS",
    "MAX_MASS_SCALE",
    "MAX_RADIUS",
    "MAX_STRETCH",
    "Centre",
    "Distances",
    "Level",
    "SimulatedCrowd",
    "UsersByDistance",
    "beside",
    "distances",
    "sum_levels",
]

MAX_BITS = 24
MAX_STRETCH = 2**9
MAX_MASS_SCALE = 2**33
"""As large as s_i 2^b can be."""
MAX_RADIUS = 2**50
"""Radii are exact doubles, and noise of many radii still fits 64-bit integers."""

_UP, _UP_WITH_MASS, _GUARD = 1.0 + 2.0**-50, 1.0 + 2.0**-49, 2.0**-48


@dataclass(frozen=True, eq=False)
class Centre:
    """What users are measured against: public values and earlier noisy outputs only.

    coordinates: C_i = round(c_i 2^bits) for an estimate c; stretches: s_i >= 1, by which item i is scaled.
    """

    coordinates: Integers
    stretches: Integers
    bits: int

    @property
    def shares(self) -> Floats:
        """The estimate c, as it is in integers."""
        shares: Floats = self.coordinates / 2**self.bits
        return shares

    @property
    def scales(self) -> Floats:
        """1 over the stretches."""
        scales: Floats = 1.0 / self.stretches
        return scales

    def __post_init__(self) -> None:
        largest = int(self.stretches.max(initial=1))
        if self.coordinates.shape != self.stretches.shape:
            raise InvalidArgument("coordinates, stretches: need one entry for each item.", argument="coordinates")
        if not 0 <= self.bits <= MAX_BITS or int(self.stretches.min(initial=1)) < 1 or largest > MAX_STRETCH:
            raise InvalidArgument(
                f"bits={self.bits}: needs to be in 0..{MAX_BITS}, and stretches (largest {largest}) in "
                f"1..{MAX_STRETCH}.",
                argument="bits",
            )
        if np.any(self.coordinates < 0) or np.any(self.coordinates > 2**self.bits):
            raise InvalidArgument("coordinates: need to be in 0..2^bits.", argument="coordinates")
        if _exact_sum(self.coordinates) > 2**self.bits + len(self.coordinates):
            raise InvalidArgument(
                "coordinates: need to be those of a distribution: rounded, they sum to 2^bits at most.",
                argument="coordinates",
            )

    @classmethod
    def origin(cls, items: int) -> Centre:
        """No centre and no scales: plain counts."""
        return cls(np.zeros(items, dtype=np.int64), np.ones(items, dtype=np.int64), 0)

    @property
    def is_even(self) -> bool:
        """Whether all items have the same coordinate and the same stretch, as the uniform distribution has."""
        return all(bool((values == values[:1]).all()) for values in (self.coordinates, self.stretches))

    def square(self) -> int:
        """K = sum_i s_i^2 C_i^2, exactly."""
        return sum(s**2 * _exact_sum(self.coordinates[self.stretches == s] ** 2) for s in self._levels())

    def length(self) -> int:
        """Q = sum_i s_i C_i, exactly."""
        return sum(s * _exact_sum(self.coordinates[self.stretches == s]) for s in self._levels())

    def deviation(self, user: OneUser) -> list[int]:
        """g(u), exactly."""
        rows, scale = user.rows, 2**self.bits
        pairs = zip(self.stretches.tolist(), self.coordinates.tolist(), strict=True)
        return [s * (scale * user.counts.get(j, 0) - rows * c) for j, (s, c) in enumerate(pairs)]

    def distance(self, user: OneUser, norm: Norm) -> float:
        """||g(u)|| from above: the double that the engines compute (see `distances`), operation by operation."""
        if norm == "l1":
            return float(max(sum(abs(x) for x in self.deviation(user)), 1)) * _UP
        rows, squares = float(user.rows), {j: int(self.stretches[j]) ** 2 for j in user.counts}
        a = sum(squares[j] * n * n for j, n in user.counts.items())
        e = sum(squares[j] * int(self.coordinates[j]) * n for j, n in user.counts.items())
        first, second = float(a) * float(4**self.bits), (rows * float(e)) * float(2 ** (self.bits + 1))
        ends = first + (rows * rows) * _double_above(self.square())
        return math.sqrt((ends - second) + (ends + second) * _GUARD) * _UP

    def _levels(self) -> list[int]:
        return [int(s) for s in distinct(self.stretches)]


@dataclass(frozen=True)
class Distances:
    """How far each user is from a centre in `norm`, in the engine as (user, rows, distance). Private.

    distance >= ||g(u)|| (1 + 5 2^-53): an upper bound that makes up for all rounding.
    """

    counts: Counts
    centre: Centre
    norm: Norm
    table: Relation

    def sum(self, statistic: Statistic[Distances, Result]) -> Result:
        return statistic.sum(self)

    def histogram(self, edges: Sequence[float], row_cap: int, unit: int) -> BoundedSum[Integers]:
        """Users by distance: `UsersByDistance` of this centre."""
        return self.sum(UsersByDistance(self.centre, self.norm, row_cap, unit, edges))

    def levels(self, radii: Sequence[int], row_cap: int, unit: int, mass_scale: int = 0) -> list[BoundedSum[list[int]]]:
        """Split every user's vector (g(u), B m_u) over the radii R_1 < R_2 < ...: a `Level` for each, in one pass.

        All levels of a user add up to the vector w_u (g(u), B m_u), clipped at the last radius; each is rounded down.
        """
        if not radii:
            raise InvalidArgument("radii: needs at least one.", argument="radii")
        common = (self.centre, self.norm, row_cap, unit)
        return sum_levels(self, [Level(*common, low, high, mass_scale) for low, high in pairwise([0, *radii])])

    def drop(self) -> None:
        """Free the engine's table."""
        self.counts.engine.drop(self.table)


class SimulatedCrowd(Counts):
    """Counts of invented users, in memory: they need no engine. `planning` has them, and nothing else."""

    @abstractmethod
    def distances(self, centre: Centre, norm: Norm) -> Distances:
        """Every user measured against `centre`."""


def distances(counts: Counts, centre: Centre, norm: Norm = "l2") -> Distances:
    """Measure every user against `centre`. One pass over the counts; none in l2 if the centre is even."""
    if isinstance(counts, SimulatedCrowd):
        return counts.distances(centre, norm)
    if len(centre.coordinates) != counts.items:
        raise InvalidArgument(
            f"centre: has {len(centre.coordinates)} coordinates, and needs one for each of {counts.items} items.",
            argument="centre",
        )
    table = _l2(counts, centre) if norm == "l2" else _l1(counts, centre)
    kept = counts.engine.keep(table, "measuring users against the centre")
    return Distances(counts, centre, norm, kept)


@dataclass(frozen=True)
class _Measured(Statistic[Distances, Result]):
    """A statistic of users who are measured against a centre, with the unclipped weight w_u = floor(unit / max(m_u,
    row_cap)).
    """

    centre: Centre
    norm: Norm
    row_cap: int
    unit: int

    def __post_init__(self) -> None:
        check_row_cap(self.row_cap)
        if not 1 <= self.unit <= UNIT:
            raise InvalidArgument(f"unit={self.unit}: needs to be in 1..2^30.", argument="unit")

    def _unclipped(self, view: Distances) -> Value:
        """w_u, as a double."""
        if view.centre is not self.centre or view.norm != self.norm:
            raise InvalidArgument("users were measured against another centre, or in another norm.", argument=None)
        return base_weight(view.table, self.row_cap, self.unit).cast("float64")

    def _unclipped_of(self, user: OneUser) -> float:
        return float(self.unit // max(user.rows, self.row_cap))


@dataclass(frozen=True)
class UsersByDistance(_Measured[BoundedSum[Integers]]):
    """How many users have w_u distance in (edges[j-1], edges[j]]; one bin a user, the last open.

    Bound: one entry, of 1.
    """

    edges: Sequence[float]

    def __post_init__(self) -> None:
        super().__post_init__()
        check_edges(self.edges)

    @property
    def bound(self) -> Bound:
        return Bound(1, entries=1)

    def sum(self, view: Distances) -> BoundedSum[Integers]:
        value = self._unclipped(view) * view.table.distance
        return BoundedSum(user_histogram(view.counts.engine, view.table, value, self.edges), self.bound)

    def of_user(self, user: OneUser) -> Vector:
        return {bin_of(self._unclipped_of(user) * self.centre.distance(user, self.norm), self.edges): 1}


@dataclass(frozen=True)
class Level(_Measured[BoundedSum[list[int]]]):
    """The sum of v(u) = W_u (g(u), B m_u), whose norm is what of min(w_u d_u, high) lies above low.

        W_u = floor(min( min(w_u, high / d_u) - low / d_u,  (high - low) / d_u )), or 0 if that is negative

    where: d_u is the norm of (g(u), B m_u), rounded up; B is `mass_scale`. The last coordinate is that of the mass.

    Bound: ||v(u)|| <= high - low exactly, in `norm`, by the second term alone.
    """

    low: int
    high: int
    mass_scale: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.low < self.high <= MAX_RADIUS:
            raise InvalidArgument(
                f"radii: {self.low} and {self.high} need to increase within 1..2^50. Use a smaller unit or fewer bits.",
                argument="radii",
            )
        if not 0 <= self.mass_scale <= MAX_MASS_SCALE:
            raise InvalidArgument(f"mass_scale={self.mass_scale}: needs to be in 0..2^33.", argument="mass_scale")

    @property
    def bound(self) -> Bound:
        return Bound(self.high - self.low, self.norm, non_negative=False)

    def sum(self, view: Distances) -> BoundedSum[list[int]]:
        return sum_levels(view, [self])[0]

    def weights(self, view: Distances) -> Value:
        """W_u for each user of the view."""
        base, distance = self._unclipped(view), self._with_mass(view)
        reached = least(base, float(self.high) / distance) - float(self.low) / distance
        within = least(reached, float(self.high - self.low) / distance)
        return greatest(within, 0.0).floor().cast("int64")

    def weight_of(self, user: OneUser) -> int:
        """W_u of one user: the same operations on doubles, in the same order."""
        base, d = self._unclipped_of(user), self.distance_of(user)
        reached = min(base, float(self.high) / d) - float(self.low) / d
        return math.floor(max(min(reached, float(self.high - self.low) / d), 0.0))

    def of_user(self, user: OneUser) -> Vector:
        weight = self.weight_of(user)
        return {j: weight * x for j, x in enumerate([*self.centre.deviation(user), self.mass_scale * user.rows])}

    def totals(self, sums: Integers) -> BoundedSum[list[int]]:
        """sum_u v(u)_i = s_i (2^b T_i - C_i D), and B D last, of T_i = sum_u W_u N_i(u) and D = sum_i T_i; exactly."""
        D, bits, places, stretches = _exact_sum(sums), self.centre.bits, self.centre.coordinates, self.centre.stretches
        # In 64 bits where both terms are below 2^62, as nearly always; the rest one by one.
        sizes = (sums * float(2**bits) + places * float(D)) * stretches
        small = np.int64(D if D < 2**62 else 0)
        values: list[int] = (((sums << bits) - places * small) * stretches).tolist()
        for j in np.flatnonzero((sizes >= 2.0**62) | (small != D)).tolist():
            values[j] = ((int(sums[j]) << bits) - int(places[j]) * D) * int(stretches[j])
        return BoundedSum([*values, self.mass_scale * D], self.bound)

    def distance_of(self, user: OneUser) -> float:
        """d_u of one user."""
        own = self.centre.distance(user, self.norm)
        if not self.mass_scale:
            return own
        mass = float(user.rows) * float(self.mass_scale)
        return (own + mass if self.norm == "l1" else math.sqrt(own * own + mass * mass)) * _UP_WITH_MASS

    def _with_mass(self, view: Distances) -> Value:
        """d_u: the norm of (g(u), B m_u), from above by more than rounding can lose."""
        distance = view.table.distance
        if not self.mass_scale:
            return distance
        mass = view.table.rows.cast("float64") * float(self.mass_scale)
        return (distance + mass if self.norm == "l1" else (distance * distance + mass * mass).sqrt()) * _UP_WITH_MASS


def sum_levels(view: Distances, levels: Sequence[Level]) -> list[BoundedSum[list[int]]]:
    """Each level by itself, in one pass over the counts."""
    weights = {f"w{j}": level.weights(view) for j, level in enumerate(levels)}
    weighted = view.table.select("user", **weights)
    totals = weighted_totals(view.counts, weighted, list(weights), "summing deviations")
    return [level.totals(each) for level, each in zip(levels, totals, strict=True)]


def _l2(counts: Counts, centre: Centre) -> Relation:
    """||g(u)||_2 = sqrt(4^b A_u - 2^(b+1) m_u E_u + m_u^2 K), from above.

    A_u = sum_i s_i^2 N_i^2 and E_u = sum_i s_i^2 C_i N_i are summed in 64-bit integers, so that their order cannot
    matter, and K is public. The rest is a fixed sequence of correctly rounded double operations; 2^-48 of the terms'
    magnitude is added, several times what they can lose.
    """
    terms = _even_terms(counts, centre) if centre.is_even else _terms(counts, centre)
    rows, bits = terms.rows.cast("float64"), centre.bits
    first = terms.a.cast("float64") * float(4**bits)
    second = (rows * terms.e.cast("float64")) * float(2 ** (bits + 1))
    third = (rows * rows) * _double_above(centre.square())
    ends = first + third
    return _table(terms, ((ends - second) + (ends + second) * _GUARD).sqrt())


def _terms(counts: Counts, centre: Centre) -> Relation:
    """(user, rows, A_u, E_u), by a pass over the cells."""
    squares = centre.stretches**2
    joined = beside(counts, {"s": squares, "c": squares * centre.coordinates})
    return joined.group_by("user").agg(
        rows=joined.n.sum(),
        a=(joined.s * (joined.n * joined.n)).sum(),
        e=(joined.c * joined.n).sum(),
    )


def _even_terms(counts: Counts, centre: Centre) -> Relation:
    """The same integers where s_i = s and C_i = C: A_u = s^2 sum_i N_i^2 and E_u = s^2 C m_u."""
    users = counts.users
    square, coordinate = int(centre.stretches.max(initial=1)) ** 2, int(centre.coordinates.max(initial=0))
    return users.select("user", "rows", a=users.squares * square, e=users.rows * (square * coordinate))


def _l1(counts: Counts, centre: Centre) -> Relation:
    """||g(u)||_1 = m_u Q + sum over u's own items of s_i (|2^b N_i - m_u C_i| - m_u C_i), in 64-bit integers.

    Items that u does not have add s_i m_u C_i each; with Q = sum_i s_i C_i public they need not be enumerated.
    """
    joined = beside(counts, {"s": centre.stretches, "c": centre.coordinates})
    rows = counts.users.select("user", "rows")
    cells = joined.inner_join(rows, "user")
    expected = cells.rows * cells.c
    stray = cells.s * ((cells.n * 2**centre.bits - expected).abs() - expected)
    summed = cells.group_by("user").agg(rows=cells.rows.max(), stray=stray.sum())
    # An integer, so 1 bounds all but 0 from below; a user at the centre adds nothing, whatever the weight.
    length = greatest(summed.rows * centre.length() + summed.stray, 1)
    return _table(summed, length.cast("float64"))


def _table(own: Relation, norm: Value) -> Relation:
    return own.select("user", "rows", distance=norm * _UP)


def beside(counts: Counts, columns: dict[str, Integers]) -> Relation:
    """The cells with public values of their items beside them."""
    places = counts.engine.upload(numbers_table({"idx": np.arange(counts.items), **columns}), "placing the centre")
    return counts.cells.inner_join(places, "idx")


def _exact_sum(values: Integers) -> int:
    """The sum in unbounded integers: high and low halves apart, each far from overflow."""
    return (int((values >> 32).sum()) << 32) + int((values & 0xFFFFFFFF).sum())


def _double_above(number: int) -> float:
    rounded = float(number)
    return rounded if Fraction(rounded) >= number else math.nextafter(rounded, math.inf)
