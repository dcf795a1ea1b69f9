"""What a statistic of users is: a bound, a query for the engine, and what one user adds, in plain Python.

A statistic is a sum over users of integer vectors. The vector of a user is a function of that user's rows, of public
values and of noisy ones, and its norm has a bound. What is summed are integers, so the bound holds for the code under
any engine and any order of summation. A sum is *not* private: it goes to the budget with its bound, which draws noise
for it, and to nowhere else. Proof: docs/proofs/bounded-sums.md.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeVar

import numpy as np

from ...arrays import Integers
from ...errors import InvalidArgument, PrivacyViolation
from .. import counts as counting
from ..arrow import integers
from ..relations import Relation, Value, concat, greatest

if TYPE_CHECKING:
    import pyarrow as pa

    from ..counts import Counts
    from ..engines import Engine

__all__ = [
    "UNIT",
    "Bound",
    "BoundedSum",
    "Norm",
    "OneUser",
    "Statistic",
    "Sum",
    "Vector",
    "base_weight",
    "check_row_cap",
    "dense",
    "digest",
    "digest_of",
    "fetch_totals",
    "hash_of",
    "hashed",
    "weighted_totals",
]

Norm = Literal["l1", "l2"]
Vector = dict[Any, int]
"""What one user adds, by coordinate; coordinates that are not here are 0."""

UNIT = 2**30
"""What one user may weigh in all. 2^33 users (everybody alive) then sum to less than 2^63."""

_HASH_DIGITS = 13  # hexadecimal: 52 bits, exact in a double


@dataclass(frozen=True)
class Bound:
    """What holds of the vector that one user adds: its norm is at most `size`.

    non_negative: whether no entry is negative. entries: how many are not 0 at most, where that is known.
    """

    size: int
    norm: Norm = "l1"
    non_negative: bool = True
    entries: int | None = None

    @property
    def l1(self) -> int:
        if self.norm != "l1":
            raise PrivacyViolation("this sum is bounded in l2 only: Laplace noise does not protect it.")
        return self.size

    @property
    def l2(self) -> int:
        """No vector is longer in l2 than in l1."""
        return self.size


class Sum(Protocol):
    """A sum over users, with the bound on what each of them added. Private."""

    @property
    def bound(self) -> Bound: ...

    def vector(self) -> Vector:
        """The sum by coordinate, without zeros."""
        ...


Values = TypeVar("Values", bound=Sequence[int] | Integers, covariant=True)


@dataclass(frozen=True)
class BoundedSum(Generic[Values]):
    """One number for each coordinate: 64-bit integers in an array, or Python's in a list if they may be larger."""

    values: Values
    bound: Bound

    def __mul__(self: BoundedSum[Integers], factor: int) -> BoundedSum[Integers]:
        """The sum, and the bound, in a smaller unit: both times a positive whole number."""
        return BoundedSum(self.values * factor, replace(self.bound, size=self.bound.size * factor))

    def vector(self) -> Vector:
        return {j: int(value) for j, value in enumerate(self.values) if value}


@dataclass(frozen=True)
class OneUser:
    """What a table holds of one user: the identifier, and a positive number of rows for each item.

    Items are their places in the domain, or in the list of items that occur.
    """

    name: Any
    counts: Mapping[Any, int]

    @property
    def rows(self) -> int:
        return sum(self.counts.values())


View = TypeVar("View", contravariant=True)
Result = TypeVar("Result", bound=Sum, covariant=True)


class Statistic(ABC, Generic[View, Result]):
    """A sum over users, by parameters that are its fields: public values and earlier noisy outputs.

    View: the table of users in the engine that it is a sum over. For every view,

        view.sum(statistic).vector() = sum over its users of statistic.of_user(user),

    and every statistic.of_user(user) is within statistic.bound. The tests hold both for all statistics.
    """

    @property
    @abstractmethod
    def bound(self) -> Bound:
        """What holds of every user's vector."""

    @abstractmethod
    def sum(self, view: View) -> Result:
        """The sum over all users of the view, computed by its engine."""

    @abstractmethod
    def of_user(self, user: OneUser) -> Vector:
        """What one user adds, in exact integers."""


def check_row_cap(row_cap: int) -> None:
    """Refuse a cap outside the limits that keep every product in 64 bits."""
    if not 1 <= row_cap <= counting.ROW_LIMIT:
        raise InvalidArgument(f"row_cap={row_cap}: needs to be in 1..{counting.ROW_LIMIT}.", argument="row_cap")


def base_weight(users: Relation, row_cap: int, unit: int) -> Value:
    """The weight of a user that nothing clips: floor(unit / max(m_u, row_cap)). Exact even if an engine divides
    in doubles: both are far below 2^52.
    """
    return unit // greatest(users.rows, row_cap)


def weighted_totals(counts: Counts, weighted: Relation, weights: Sequence[str], stage: str) -> list[Integers]:
    """T_i = sum_u W_u N_i(u) for each of the `weights`, columns of a table with one row for each user; in one pass."""
    joined = counts.cells.inner_join(weighted, "user")
    grouped = joined.group_by("idx").agg(**{name: (joined.n * joined[name]).sum() for name in weights})
    found = counts.engine.fetch(grouped, stage)
    return [dense(found, name, counts.items) for name in weights]


def fetch_totals(engine: Engine, grouped: Relation, size: int, stage: str) -> Integers:
    """The column `total` of a table by `idx`, as one number for each of `size` coordinates."""
    return dense(engine.fetch(grouped, stage), "total", size)


def dense(found: pa.Table, name: str, size: int) -> Integers:
    """A column by `idx`, with zeros at the places that are missing."""
    totals = np.zeros(size, dtype=np.int64)
    totals[integers(found.column("idx"))] = integers(found.column(name))
    return totals


def digest(salt: str, *values: Value) -> Value:
    """md5(salt:value:...) in hexadecimal digits."""
    return concat(salt, *(part for value in values for part in (":", value.cast("string")))).md5()


def digest_of(salt: str, *values: Any) -> str:
    """`digest` in plain Python, for values that engines write as Python does: integers, strings, dates."""
    return hashlib.md5(":".join([salt, *map(str, values)]).encode(), usedforsecurity=False).hexdigest()


def hashed(salt: str, user: Value) -> Value:
    """The first 52 bits of the digest as an integer."""
    return digest(salt, user).start(_HASH_DIGITS).hexadecimal()


def hash_of(salt: str, user: Any) -> int:
    """`hashed` in plain Python."""
    return int(digest_of(salt, user)[:_HASH_DIGITS], 16)
