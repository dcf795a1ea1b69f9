"""Bounded integer sums: the only way from private counts to a number.

A user's contribution is an integer vector with a bounded norm; what is summed are integers, so the bound holds for the code
under any engine and any order of summation. The sums below are *not* private: each goes to `crowdgram.privacy.noise`
with the sensitivity that it states and to nowhere else. Proof: docs/proofs/bounded-sums.md.

    l1_sum         W_u N(u),                  ||.||_1 <= unit
    sampled_sum    w_u at one row of u,       ||.||_1 <= unit
    Distances.sum  W_u 2^e (2^b N(u) - m_u C), ||.||_2 <= radius
    histograms     one bin of u,              one entry, of 1
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

import ibis
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..errors import InvalidArgument
from .counts import ROW_LIMIT, Counts

if TYPE_CHECKING:
    import ibis.expr.types as ir

__all__ = [
    "MAX_RADIUS",
    "UNIT",
    "Centre",
    "CentredSum",
    "Distances",
    "distances",
    "l1_sum",
    "rows_histogram",
    "sampled_sum",
]

Integers = npt.NDArray[np.int64]

UNIT = 2**30
"""What one user may weigh in all. 2^33 users (everybody alive) then sum to less than 2^63."""

MAX_RADIUS = 2**50
"""Radii are exact doubles, and a discrete Gaussian of a few hundred radii still fits 64-bit integers."""

_SAMPLE_DIGITS = 13  # hexadecimal: 52 bits, exact in a double


def l1_sum(counts: Counts, row_cap: int) -> Integers:
    """T_i = sum_u W_u N_i(u), with W_u = floor(UNIT / max(m_u, row_cap)).

    where: N(u) is user u's count vector, m_u = sum_i N_i(u) <= ROW_LIMIT. A user with at most `row_cap` rows has the full weight
    UNIT / row_cap a row; one with more is scaled down to `row_cap` rows, never dropped. `row_cap=1` gives every user the same
    weight.

    Sensitivity: user u adds W_u N(u), and ||W_u N(u)||_1 = W_u m_u <= UNIT exactly. So UNIT in l1 and in l2 when a user is added or
    removed; when one is replaced, 2 UNIT in l1 and, the two vectors being non-negative, sqrt(2) UNIT in l2.
    """
    _check_row_cap(row_cap)
    weighted = counts.users.select("user", weight=_base_weight(counts.users, row_cap, UNIT))
    return _weighted_totals(counts, weighted, "summing counts")


def sampled_sum(counts: Counts, salt: str, row_cap: int) -> Integers:
    """T_i = sum_u w_u 1{the sampled row of u is item i}, with w_u = floor(UNIT min(m_u, row_cap) / row_cap).

    The row of user u is number `hash(salt, u) mod m_u` of u's rows in the order of the domain: a function of u's own rows and
    of a salt drawn without looking at the table. (An index of u among the users would not do: it moves when somebody
    else comes or goes.) In expectation over the hash, w_u N(u)/m_u.

    Sensitivity: one entry of at most UNIT for each user; as `l1_sum`.
    """
    _check_row_cap(row_cap)
    users = counts.users
    weight = (UNIT * ibis.least(users.rows, row_cap)) // row_cap
    number = _hashed(salt, users.user) % users.rows
    drawn = users.select("user", number=number.cast("int64"), weight=weight.cast("int64"))
    cells = counts.cells
    up_to = cells.n.sum().over(group_by=cells.user, order_by=cells.idx, rows=(None, 0))
    ranged = cells.select("user", "idx", "n", up_to=up_to)
    joined = ranged.inner_join(drawn, "user")
    hit = joined.filter((joined.number < joined.up_to) & (joined.number >= joined.up_to - joined.n))
    return _totals(counts, hit.group_by("idx").agg(total=hit.weight.sum()), "summing sampled rows")


@dataclass(frozen=True)
class Centre:
    """What users are measured against: public values and earlier noisy outputs only.

    coordinates: C_i = round(c_i 2^bits) for an estimate c; exponents: e_i >= 0, so that item i is scaled by 2^e_i.
    """

    coordinates: Integers
    exponents: Integers
    bits: int

    def __post_init__(self) -> None:
        largest = int(self.exponents.max(initial=0))
        if self.coordinates.shape != self.exponents.shape:
            raise InvalidArgument("coordinates and exponents need one entry for each item.")
        if not 0 <= self.bits <= 24 or int(self.exponents.min(initial=0)) < 0 or largest > 9:
            raise InvalidArgument(f"bits={self.bits} needs to be in 0..24 and exponents (largest {largest}) in 0..9.")
        if np.any(self.coordinates < 0) or np.any(self.coordinates > 2**self.bits):
            raise InvalidArgument("coordinates need to be in 0..2^bits.")

    @classmethod
    def origin(cls, items: int) -> Centre:
        """No centre and no scales: plain counts."""
        zeros = np.zeros(items, dtype=np.int64)
        return cls(zeros, zeros, 0)

    @property
    def is_origin(self) -> bool:
        return not self.coordinates.any() and not self.exponents.any()

    def square(self) -> int:
        """K = sum_i 4^e_i C_i^2, exactly."""
        return sum(4 ** int(e) * int(c) ** 2 for e, c in zip(self.exponents, self.coordinates, strict=True) if c)


@dataclass(frozen=True)
class CentredSum:
    """T_i = sum_u W_u N_i(u) for each item, and the centre it was taken against."""

    totals: Integers
    centre: Centre
    radius: int

    @property
    def total_weight(self) -> int:
        """D = sum_u W_u m_u, which is sum_i T_i."""
        return int(self.totals.sum(dtype=object)) if len(self.totals) else 0

    def vector(self) -> list[int]:
        """sum_u v(u)_i = 2^e_i (2^b T_i - C_i D), in exact integers."""
        D, b = self.total_weight, self.centre.bits
        terms = zip(self.totals.tolist(), self.centre.coordinates.tolist(), self.centre.exponents.tolist(), strict=True)
        return [((t << b) - c * D) << e for t, c, e in terms]


@dataclass(frozen=True)
class Distances:
    """How far each user is from a centre, kept in the engine as (user, rows, distance). Private.

    distance >= ||g(u)||_2 (1 + 2^-51), with g(u) = 2^e (2^b N(u) - m_u C): an upper bound that makes up for all rounding.
    """

    counts: Counts
    centre: Centre
    table: ir.Table

    def histogram(self, edges: Sequence[float], row_cap: int) -> Integers:
        """How many users have W_u distance in (edges[j-1], edges[j]] with the unclipped weight W_u; one bin a user, the last open.

        Sensitivity: one entry of 1 moves when a user is added or removed, two when one is replaced.
        """
        base = _base_weight(self.table, row_cap, UNIT).cast("float64")
        return _histogram(self.counts, self.table, base * self.table.distance, edges)

    def sum(self, radius: int, row_cap: int, unit: int = UNIT) -> CentredSum:
        """Sum v(u) = W_u g(u), with W_u = floor(min(unit / max(m_u, row_cap), radius / distance(u))).

        Sensitivity: W_u ||g(u)||_2 <= radius exactly (docs/proofs/bounded-sums.md): `radius` in l2 when a user is added or removed,
        2 radius when one is replaced (sqrt(2) radius if the centre is the origin: then the vectors are non-negative).
        """
        _check_row_cap(row_cap)
        if not 1 <= radius <= MAX_RADIUS:
            raise InvalidArgument(f"radius={radius} needs to be in 1..2^50. Use a smaller unit or fewer bits.")
        if not 1 <= unit <= UNIT:
            raise InvalidArgument(f"unit={unit} needs to be in 1..2^30.")
        base = _base_weight(self.table, row_cap, unit).cast("float64")
        clipped = ibis.least(base, ibis.literal(float(radius), "float64") / self.table.distance)
        weighted = self.table.select("user", weight=clipped.floor().cast("int64"))
        totals = _weighted_totals(self.counts, weighted, "summing centred counts")
        return CentredSum(totals, self.centre, radius)

    def drop(self) -> None:
        """Free the engine's table."""
        self.counts.engine.drop(self.table)


def distances(counts: Counts, centre: Centre) -> Distances:
    """Measure every user against `centre`.

    ||g(u)||^2 = 4^b A_u - 2^(b+1) m_u B_u + m_u^2 K, with A_u = sum_i 4^e_i N_i^2 and B_u = sum_i 4^e_i C_i N_i summed in 64-bit
    integers, so that their order cannot matter, and K public. The rest is a fixed sequence of correctly rounded double operations;
    2^-48 of the terms' magnitude is added, sixteen times what they can lose.
    """
    if len(centre.coordinates) != counts.items:
        raise InvalidArgument(f"centre has {len(centre.coordinates)} coordinates, the domain {counts.items} items.")
    engine, cells = counts.engine, counts.cells
    if centre.is_origin:
        own = cells.group_by("user").agg(rows=cells.n.sum().cast("int64"), a=(cells.n * cells.n).sum().cast("int64"))
        upper: Any = own.a.cast("float64") * (1.0 + 2.0**-48)
        places = None
    else:
        squares = 4**centre.exponents
        places = engine.upload(
            pa.table({"idx": np.arange(counts.items), "s": squares, "c": squares * centre.coordinates}),
            "placing the centre",
        )
        joined = cells.inner_join(places, "idx")
        own = joined.group_by("user").agg(
            rows=joined.n.sum().cast("int64"),
            a=(joined.s * (joined.n * joined.n)).sum().cast("int64"),
            b=(joined.c * joined.n).sum().cast("int64"),
        )
        upper = _squared_distance(own, centre)
    table = own.select("user", "rows", distance=upper.sqrt() * (1.0 + 2.0**-50))
    kept = engine.keep(table, "measuring users against the centre")
    if places is not None:
        engine.drop(places)
    return Distances(counts, centre, kept)


def rows_histogram(counts: Counts, edges: Sequence[int]) -> Integers:
    """How many users have m_u in (edges[j-1], edges[j]]; one bin a user, the last open.

    Sensitivity: one entry of 1 moves when a user is added or removed, two when one is replaced.
    """
    return _histogram(counts, counts.users, counts.users.rows, edges)


def _squared_distance(own: ir.Table, centre: Centre) -> Any:
    rows, b = own.rows.cast("float64"), centre.bits
    first = own.a.cast("float64") * float(4**b)
    second = (rows * own.b.cast("float64")) * float(2 ** (b + 1))
    third = (rows * rows) * _double_above(centre.square())
    ends = first + third
    return (ends - second) + (ends + second) * 2.0**-48


def _double_above(number: int) -> float:
    rounded = float(number)
    return rounded if Fraction(rounded) >= number else math.nextafter(rounded, math.inf)


def _base_weight(users: ir.Table, row_cap: int, unit: int) -> Any:
    """floor(unit / max(m_u, row_cap)). Exact even where an engine divides in doubles: both are far below 2^52."""
    return (ibis.literal(unit, "int64") // ibis.greatest(users.rows, ibis.literal(row_cap, "int64"))).cast("int64")


def _weighted_totals(counts: Counts, weighted: ir.Table, stage: str) -> Integers:
    joined = counts.cells.inner_join(weighted, "user")
    grouped = joined.group_by("idx").agg(total=(joined.n * joined.weight).sum())
    return _totals(counts, grouped, stage)


def _totals(counts: Counts, grouped: ir.Table, stage: str) -> Integers:
    found = counts.engine.fetch(grouped.select("idx", total=grouped.total.cast("int64")), stage)
    totals = np.zeros(counts.items, dtype=np.int64)
    totals[found.column("idx").to_numpy()] = found.column("total").to_numpy()
    return totals


def _histogram(counts: Counts, table: ir.Table, value: Any, edges: Sequence[float]) -> Integers:
    if len(edges) < 1 or any(low >= high for low, high in zip(edges, edges[1:], strict=False)):
        raise InvalidArgument("edges need to be strictly increasing.")
    kind: Literal["int64", "float64"] = "int64" if value.type().is_integer() else "float64"
    whens = [(value <= ibis.literal(edge, kind), ibis.literal(j, "int64")) for j, edge in enumerate(edges[:-1])]
    last = ibis.literal(len(edges) - 1, "int64")
    binned = table.select(idx=ibis.cases(*whens, else_=last) if whens else last)
    grouped = binned.group_by("idx").agg(total=binned.count())
    found = counts.engine.fetch(grouped, "counting users by bin")
    bins = np.zeros(len(edges), dtype=np.int64)
    bins[found.column("idx").to_numpy()] = found.column("total").to_numpy()
    return bins


def _hashed(salt: str, user: Any) -> Any:
    """The first 52 bits of md5(salt:user) as an integer, by operations that every engine has."""
    digest = (ibis.literal(f"{salt}:") + user.cast("string")).hexdigest("md5")
    number: Any = ibis.literal(0, "int64")
    for place in range(_SAMPLE_DIGITS):
        code = digest.substr(place, 1).ascii_str().cast("int64")
        number = number * 16 + (code - ibis.ifelse(code < 58, 48, 87))
    return number


def _check_row_cap(row_cap: int) -> None:
    if not 1 <= row_cap <= ROW_LIMIT:
        raise InvalidArgument(f"row_cap={row_cap} needs to be in 1..{ROW_LIMIT}.")
