"""Bounded integer sums: the only way from private counts to a number.

A user's contribution is an integer vector with a bounded norm; what is summed are integers, so the bound holds for
the code under any engine and any order of summation. The sums below are *not* private: each goes to
`crowdgram.privacy.noise` with the sensitivity that it states and to nowhere else. Proof: docs/proofs/bounded-sums.md.

    l1_sum         W_u N(u),                  ||.||_1 <= unit
    sampled_sum    w_u at one row of u,       ||.||_1 <= unit
    rows_histogram one bin of u,              one entry, of 1
    concentration_sum  two numbers of u,      ||.||_1 <= unit

Sums against a centre are in `distances`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

import ibis
import numpy as np
import numpy.typing as npt

from ..errors import InvalidArgument
from .counts import ROW_LIMIT, Counts
from .engine import Engine

if TYPE_CHECKING:
    import ibis.expr.types as ir

__all__ = [
    "UNIT",
    "base_weight",
    "check_row_cap",
    "concentration_sum",
    "digest",
    "hashed",
    "l1_sum",
    "rows_histogram",
    "sampled_sum",
    "user_histogram",
    "weighted_totals",
]

Integers = npt.NDArray[np.int64]

UNIT = 2**30
"""What one user may weigh in all. 2^33 users (everybody alive) then sum to less than 2^63."""

_SAMPLE_DIGITS = 13  # hexadecimal: 52 bits, exact in a double


def l1_sum(counts: Counts, row_cap: int) -> Integers:
    """T_i = sum_u W_u N_i(u), with W_u = floor(UNIT / max(m_u, row_cap)).

    where: N(u) is user u's count vector, m_u = sum_i N_i(u) <= ROW_LIMIT. A user with at most `row_cap` rows has the
    full weight UNIT / row_cap a row; one with more is scaled down to `row_cap` rows, never dropped. `row_cap=1` gives
    every user the same weight.

    Sensitivity: user u adds W_u N(u), and ||W_u N(u)||_1 = W_u m_u <= UNIT exactly. So UNIT in l1 and in l2 when a
    user is added or removed; when one is replaced, 2 UNIT in l1 and, the two vectors being non-negative, sqrt(2) UNIT
    in l2.
    """
    check_row_cap(row_cap)
    weighted = counts.users.select("user", weight=base_weight(counts.users, row_cap, UNIT))
    return weighted_totals(counts, weighted, ["weight"], "summing counts")[0]


def sampled_sum(counts: Counts, salt: str, row_cap: int) -> Integers:
    """T_i = sum_u w_u 1{the sampled row of u is item i}, with w_u = floor(UNIT min(m_u, row_cap) / row_cap).

    The row of user u is number `hash(salt, u) mod m_u` of u's rows in the order of the domain: a function of u's own
    rows and of a salt drawn without looking at the table. (An index of u among the users would not do: it moves when
    somebody else comes or goes.) In expectation over the hash, w_u N(u)/m_u.

    Sensitivity: one entry of at most UNIT for each user; as `l1_sum`.
    """
    check_row_cap(row_cap)
    users = counts.users
    weight = (UNIT * ibis.least(users.rows, row_cap)) // row_cap
    number = hashed(salt, users.user) % users.rows
    drawn = users.select("user", number=number.cast("int64"), weight=weight.cast("int64"))
    cells = counts.cells
    up_to = cells.n.sum().over(group_by=cells.user, order_by=cells.idx, rows=(None, 0))
    ranged = cells.select("user", "idx", "n", up_to=up_to)
    joined = ranged.inner_join(drawn, "user")
    hit = joined.filter((joined.number < joined.up_to) & (joined.number >= joined.up_to - joined.n))
    return _totals(counts, hit.group_by("idx").agg(total=hit.weight.sum()), ["total"], "summing sampled rows")[0]


def rows_histogram(counts: Counts, edges: Sequence[int]) -> Integers:
    """How many users have m_u in (edges[j-1], edges[j]]; one bin a user, the last open.

    Sensitivity: one entry of 1 moves when a user is added or removed, two when one is replaced.
    """
    return user_histogram(counts.engine, counts.users, counts.users.rows, edges)


def concentration_sum(counts: Counts, row_cap: int) -> Integers:
    """How concentrated users are, in two numbers: sum_u w_u ||N(u)||^2 / m_u^2, and the rest of sum_u w_u.

    where: w_u = (min(m_u, row_cap) / row_cap)^2. User u adds (a, t - a), with a = floor(UNIT sum_i N_i^2 / max(m_u,
    row_cap)^2) and t = floor(UNIT min(m_u, row_cap)^2 / row_cap^2). With `row_cap=1` every user weighs the same.

    Sensitivity: 0 <= a <= t <= UNIT, so (a, t - a) is non-negative and its l1 norm is at most UNIT.
    """
    check_row_cap(row_cap)
    users, cap = counts.users, ibis.literal(row_cap, "int64")
    longest, within = ibis.greatest(users.rows, cap).cast("float64"), ibis.least(users.rows, cap).cast("float64")
    unit = ibis.literal(float(UNIT), "float64")
    one = (users.squares.cast("float64") / (longest * longest) * unit).floor().cast("int64")
    total = (within * within / float(row_cap**2) * unit).floor().cast("int64")
    parts = users.select(a=one, b=total - one)
    found = counts.engine.fetch(
        parts.agg(a=parts.a.sum().cast("int64"), b=parts.b.sum().cast("int64")), "measuring concentration"
    )
    return np.array([found.column(name)[0].as_py() or 0 for name in ("a", "b")], dtype=np.int64)


def base_weight(users: ir.Table, row_cap: int, unit: int) -> Any:
    """The weight of a user that nothing clips: floor(unit / max(m_u, row_cap)). Exact even where an engine divides
    in doubles: both are far below 2^52.
    """
    return (ibis.literal(unit, "int64") // ibis.greatest(users.rows, ibis.literal(row_cap, "int64"))).cast("int64")


def weighted_totals(counts: Counts, weighted: ir.Table, weights: Sequence[str], stage: str) -> list[Integers]:
    """T_i = sum_u W_u N_i(u) for each of the `weights`, columns of a table with one row for each user; in one pass."""
    joined = counts.cells.inner_join(weighted, "user")
    grouped = joined.group_by("idx").agg(**{name: (joined.n * joined[name]).sum() for name in weights})
    return _totals(counts, grouped, weights, stage)


def _totals(counts: Counts, grouped: ir.Table, names: Sequence[str], stage: str) -> list[Integers]:
    found = counts.engine.fetch(grouped.select("idx", **{name: grouped[name].cast("int64") for name in names}), stage)
    every = []
    for name in names:
        totals = np.zeros(counts.items, dtype=np.int64)
        totals[found.column("idx").to_numpy()] = found.column(name).to_numpy()
        every.append(totals)
    return every


def user_histogram(engine: Engine, table: ir.Table, value: Any, edges: Sequence[float]) -> Integers:
    """How many rows of `table`, one a user, have `value` in (edges[j-1], edges[j]]; the last bin is open."""
    if len(edges) < 1 or any(low >= high for low, high in pairwise(edges)):
        raise InvalidArgument("edges need to be strictly increasing.")
    kind: Literal["int64", "float64"] = "int64" if value.type().is_integer() else "float64"
    whens = [(value <= ibis.literal(edge, kind), ibis.literal(j, "int64")) for j, edge in enumerate(edges[:-1])]
    last = ibis.literal(len(edges) - 1, "int64")
    binned = table.select(idx=ibis.cases(*whens, else_=last) if whens else last)
    grouped = binned.group_by("idx").agg(total=binned.count())
    found = engine.fetch(grouped, "counting users by bin")
    bins = np.zeros(len(edges), dtype=np.int64)
    bins[found.column("idx").to_numpy()] = found.column("total").to_numpy()
    return bins


def digest(salt: str, *values: Any) -> Any:
    """md5(salt:value:...) in hexadecimal digits."""
    text: Any = ibis.literal(salt)
    for value in values:
        text = text + ":" + value.cast("string")
    return text.hexdigest("md5")


def hashed(salt: str, user: Any) -> Any:
    """The first 52 bits of the digest as an integer, by operations that every engine has."""
    digits = digest(salt, user)
    number: Any = ibis.literal(0, "int64")
    for place in range(_SAMPLE_DIGITS):
        code = digits.substr(place, 1).ascii_str().cast("int64")
        number = number * 16 + (code - ibis.ifelse(code < 58, 48, 87))
    return number


def check_row_cap(row_cap: int) -> None:
    """Refuse a cap outside the limits that keep every product in 64 bits."""
    if not 1 <= row_cap <= ROW_LIMIT:
        raise InvalidArgument(f"row_cap={row_cap} needs to be in 1..{ROW_LIMIT}.")
