"""Users measured against a centre: how far they stray, and bounded sums of how they stray.

User u's deviation from a public centre c is the integer vector g(u) = s (2^b N(u) - m_u C), with C = round(2^b c)
and a whole number s_i for each item. Users who agree with the centre have short ones, so their sum needs little noise.
`Distances.levels` splits every deviation over several radii, with one more coordinate for the users' mass. Proof of
every bound: docs/proofs/bounded-sums.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

import ibis
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..errors import InvalidArgument
from .counts import Counts
from .sums import UNIT, base_weight, check_row_cap, user_histogram, weighted_totals

if TYPE_CHECKING:
    import ibis.expr.types as ir

__all__ = [
    "MAX_BITS",
    "MAX_MASS_SCALE",
    "MAX_RADIUS",
    "MAX_STRETCH",
    "Centre",
    "CentredSum",
    "Distances",
    "Norm",
    "distances",
]

Integers = npt.NDArray[np.int64]
Norm = Literal["l1", "l2"]

MAX_BITS = 24
MAX_STRETCH = 2**9
MAX_MASS_SCALE = 2**33
"""As large as s_i 2^b can be."""
MAX_RADIUS = 2**50
"""Radii are exact doubles, and noise of many radii still fits 64-bit integers."""


@dataclass(frozen=True)
class Centre:
    """What users are measured against: public values and earlier noisy outputs only.

    coordinates: C_i = round(c_i 2^bits) for an estimate c; stretches: s_i >= 1, by which item i is scaled.
    """

    coordinates: Integers
    stretches: Integers
    bits: int

    def __post_init__(self) -> None:
        largest = int(self.stretches.max(initial=1))
        if self.coordinates.shape != self.stretches.shape:
            raise InvalidArgument("coordinates and stretches need one entry for each item.")
        if not 0 <= self.bits <= MAX_BITS or int(self.stretches.min(initial=1)) < 1 or largest > MAX_STRETCH:
            raise InvalidArgument(
                f"bits={self.bits} needs to be in 0..{MAX_BITS} and stretches (largest {largest}) in 1..{MAX_STRETCH}."
            )
        if np.any(self.coordinates < 0) or np.any(self.coordinates > 2**self.bits):
            raise InvalidArgument("coordinates need to be in 0..2^bits.")
        if _exact_sum(self.coordinates) > 2**self.bits + len(self.coordinates):
            raise InvalidArgument(
                "coordinates need to be those of a distribution: rounded, they sum to 2^bits at most."
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

    def _levels(self) -> list[int]:
        return [int(s) for s in np.unique(self.stretches)]


@dataclass(frozen=True)
class CentredSum:
    """T_i = sum_u W_u N_i(u) for each item; the centre that it was taken against, and the scale B of the mass."""

    totals: Integers
    centre: Centre
    mass_scale: int

    @property
    def total_weight(self) -> int:
        """D = sum_u W_u m_u, which is sum_i T_i."""
        return _exact_sum(self.totals)

    def vector(self) -> list[int]:
        """sum_u v(u)_i = s_i (2^b T_i - C_i D), and B D last, in exact integers."""
        D, b = self.total_weight, self.centre.bits
        terms = zip(self.totals.tolist(), self.centre.coordinates.tolist(), self.centre.stretches.tolist(), strict=True)
        return [((t << b) - c * D) * s for t, c, s in terms] + [self.mass_scale * D]


@dataclass(frozen=True)
class Distances:
    """How far each user is from a centre in `norm`, in the engine as (user, rows, distance). Private.

    distance >= ||g(u)|| (1 + 5 2^-53): an upper bound that makes up for all rounding.
    """

    counts: Counts
    centre: Centre
    norm: Norm
    table: ir.Table

    def histogram(self, edges: Sequence[float], row_cap: int, unit: int = UNIT) -> Integers:
        """How many users have W_u distance in (edges[j-1], edges[j]], with the unclipped weight W_u = floor(unit /
        max(m_u, row_cap)).

        Sensitivity: one entry of 1 moves when a user is added or removed, two when one is replaced.
        """
        base = self._unclipped(row_cap, unit)
        return user_histogram(self.counts.engine, self.table, base * self.table.distance, edges)

    def levels(self, radii: Sequence[int], row_cap: int, unit: int = UNIT, mass_scale: int = 0) -> list[CentredSum]:
        """Split every user's vector (g(u), B m_u) over the radii R_1 < R_2 < ..., and sum each part by itself.

        Level j sums v_j(u) = W_uj (g(u), B m_u). Its norm is what of min(w_u d_u, R_j) lies above R_(j-1), R_0 = 0:

            W_uj = floor(min( min(w_u, R_j / d_u) - R_(j-1) / d_u,  (R_j - R_(j-1)) / d_u )), or 0 if that is negative

        where: w_u = floor(unit / max(m_u, row_cap)); d_u is the norm of (g(u), B m_u), rounded up; B is `mass_scale`.
        All levels of a user add up to the vector w_u (g(u), B m_u), clipped at the last radius; each is rounded down.

        Sensitivity: ||v_j(u)|| <= R_j - R_(j-1) exactly, in `norm`, by the second term alone: that much when a user is
        added or removed, twice that when one is replaced (in l2 sqrt(2) times if the centre is the origin: then the
        vectors are non-negative).
        """
        if not radii or any(low >= high for low, high in pairwise([0, *radii])) or radii[-1] > MAX_RADIUS:
            raise InvalidArgument(
                f"radii={list(radii)} need to increase within 1..2^50. Use a smaller unit or fewer bits."
            )
        if not 0 <= mass_scale <= MAX_MASS_SCALE:
            raise InvalidArgument(f"mass_scale={mass_scale} needs to be in 0..2^33.")
        base, distance = self._unclipped(row_cap, unit), self._with_mass(mass_scale)
        weights = {}
        for j, (low, high) in enumerate(pairwise([0, *radii])):
            reached = ibis.least(base, _double(high) / distance) - _double(low) / distance
            within = ibis.least(reached, _double(high - low) / distance)
            weights[f"w{j}"] = ibis.greatest(within, _double(0)).floor().cast("int64")
        weighted = self.table.select("user", **weights)
        totals = weighted_totals(self.counts, weighted, list(weights), "summing deviations")
        return [CentredSum(each, self.centre, mass_scale) for each in totals]

    def _unclipped(self, row_cap: int, unit: int) -> Any:
        """w_u = floor(unit / max(m_u, row_cap)), as a double."""
        check_row_cap(row_cap)
        if not 1 <= unit <= UNIT:
            raise InvalidArgument(f"unit={unit} needs to be in 1..2^30.")
        return base_weight(self.table, row_cap, unit).cast("float64")

    def _with_mass(self, mass_scale: int) -> Any:
        """The norm of (g(u), B m_u), from above by more than rounding can lose."""
        if not mass_scale:
            return self.table.distance
        mass = self.table.rows.cast("float64") * _double(mass_scale)
        if self.norm == "l1":
            return (self.table.distance + mass) * (1.0 + 2.0**-49)
        return (self.table.distance * self.table.distance + mass * mass).sqrt() * (1.0 + 2.0**-49)

    def drop(self) -> None:
        """Free the engine's table."""
        self.counts.engine.drop(self.table)


def distances(counts: Counts, centre: Centre, norm: Norm = "l2") -> Distances:
    """Measure every user against `centre`. One pass over the counts; none in l2 if the centre is even."""
    if len(centre.coordinates) != counts.items:
        raise InvalidArgument(f"centre has {len(centre.coordinates)} coordinates, the domain {counts.items} items.")
    table = _l2(counts, centre) if norm == "l2" else _l1(counts, centre)
    kept = counts.engine.keep(table, "measuring users against the centre")
    return Distances(counts, centre, norm, kept)


def _l2(counts: Counts, centre: Centre) -> ir.Table:
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
    return _table(terms, ((ends - second) + (ends + second) * 2.0**-48).sqrt())


def _terms(counts: Counts, centre: Centre) -> ir.Table:
    """(user, rows, A_u, E_u), by a pass over the cells."""
    squares = centre.stretches**2
    joined = _beside(counts, {"s": squares, "c": squares * centre.coordinates})
    return joined.group_by("user").agg(
        rows=joined.n.sum().cast("int64"),
        a=(joined.s * (joined.n * joined.n)).sum().cast("int64"),
        e=(joined.c * joined.n).sum().cast("int64"),
    )


def _even_terms(counts: Counts, centre: Centre) -> ir.Table:
    """The same integers where s_i = s and C_i = C: A_u = s^2 sum_i N_i^2 and E_u = s^2 C m_u."""
    users = counts.users
    square, coordinate = int(centre.stretches.max(initial=1)) ** 2, int(centre.coordinates.max(initial=0))
    return users.select(
        "user",
        "rows",
        a=users.squares * ibis.literal(square, "int64"),
        e=users.rows * ibis.literal(square * coordinate, "int64"),
    )


def _l1(counts: Counts, centre: Centre) -> ir.Table:
    """||g(u)||_1 = m_u Q + sum over u's own items of s_i (|2^b N_i - m_u C_i| - m_u C_i), in 64-bit integers.

    Items that u does not have add s_i m_u C_i each; with Q = sum_i s_i C_i public they need not be enumerated.
    """
    joined = _beside(counts, {"s": centre.stretches, "c": centre.coordinates})
    rows = counts.users.select("user", "rows")
    cells = joined.inner_join(rows, "user")
    expected = cells.rows * cells.c
    stray = cells.s * ((cells.n * 2**centre.bits - expected).abs() - expected)
    summed = cells.group_by("user").agg(rows=cells.rows.max(), stray=stray.sum().cast("int64"))
    # An integer, so 1 bounds all but 0 from below; a user at the centre adds nothing, whatever the weight.
    length = ibis.greatest(summed.rows * centre.length() + summed.stray, ibis.literal(1, "int64"))
    return _table(summed, length.cast("float64"))


def _table(own: ir.Table, norm: Any) -> ir.Table:
    return own.select("user", "rows", distance=norm * (1.0 + 2.0**-50))


def _beside(counts: Counts, columns: dict[str, Integers]) -> ir.Table:
    """The cells with public values of their items beside them."""
    places = counts.engine.upload(pa.table({"idx": np.arange(counts.items), **columns}), "placing the centre")
    return counts.cells.inner_join(places, "idx")


def _double(number: int) -> Any:
    """An integer below 2^53, as the engine's double."""
    return ibis.literal(float(number), "float64")


def _exact_sum(values: Integers) -> int:
    """The sum in unbounded integers: high and low halves apart, each far from overflow."""
    return (int((values >> 32).sum()) << 32) + int((values & 0xFFFFFFFF).sum())


def _double_above(number: int) -> float:
    rounded = float(number)
    return rounded if Fraction(rounded) >= number else math.nextafter(rounded, math.inf)
