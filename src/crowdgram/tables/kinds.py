"""Kinds of columns: what may be an item or a user, and how a public value becomes one.

    kind        column types                       Python value
    integer     all widths, signed or not          int
    string      strings, categories, enums         str
    boolean     booleans                           bool
    date        dates                              datetime.date
    timestamp   timestamps; with a zone, in UTC    datetime.datetime without zone
    uuid        UUIDs                              uuid.UUID

A column's kind comes from the schema. Floats and decimals have none: when two of them are the same is for the caller
to say, by a cast. A timestamp may be an item but not a user: the engine rounds it to microseconds, and users that
merge are no longer the unit that is protected (docs/proofs/filters.md). Dates and timestamps outside the years 1 to
9999 are null: beyond, functions of some engines fail, and whether a release fails would depend on a row.

Strings are compared as they are, code point by code point: "é" in one piece and "é" in two are two items.
"""

from __future__ import annotations

import contextlib
import datetime
import operator
import re
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa

from ..errors import InvalidDomain, InvalidTable
from .arrow import numbers_table, string_column
from .roles import DOMAIN, Role

if TYPE_CHECKING:
    import ibis.expr.datatypes as dt

__all__ = [
    "Kind",
    "PlainType",
    "Value",
    "arrow_keys",
    "check_column",
    "convert",
    "convert_all",
    "kind_of",
    "plain_type",
]

Kind = Literal["integer", "string", "boolean", "date", "timestamp", "uuid"]
Value = int | str | bool | datetime.date | datetime.datetime | uuid.UUID

_DIGIT_LINES = re.compile(r"[+-]?[0-9]{1,30}(\n[+-]?[0-9]{1,30})*")
_PLURAL: dict[Kind, str] = {
    "integer": "integers",
    "string": "strings",
    "boolean": "booleans",
    "date": "dates",
    "timestamp": "timestamps",
    "uuid": "UUIDs",
}


@dataclass(frozen=True)
class PlainType:
    """The type of a column of integers or strings, as Ibis would have it, for tables that need no Ibis."""

    arrow: pa.DataType

    def __str__(self) -> str:
        return str(self.arrow)

    def is_integer(self) -> bool:
        return bool(pa.types.is_integer(self.arrow))

    def is_string(self) -> bool:
        return bool(self.arrow == pa.string())

    @property
    def bounds(self) -> PlainType:
        return self

    @property
    def lower(self) -> int:
        return -self.upper - 1 if pa.types.is_signed_integer(self.arrow) else 0

    @property
    def upper(self) -> int:
        bits: int = self.arrow.bit_width - pa.types.is_signed_integer(self.arrow)
        return (1 << bits) - 1

    def to_pyarrow(self) -> pa.DataType:
        return self.arrow


def plain_type(arrow: pa.DataType) -> PlainType | None:
    """The type of a column that Arrow has in this one; None if only Ibis can say it."""
    if pa.types.is_string(arrow) or pa.types.is_large_string(arrow):
        return PlainType(pa.string())
    return PlainType(arrow) if pa.types.is_integer(arrow) else None


def kind_of(dtype: dt.DataType) -> Kind | None:
    """The kind of a column of this type; None if it has none."""
    if dtype.is_integer():
        return "integer"
    for name in ("string", "boolean", "date", "timestamp", "uuid"):
        if getattr(dtype, f"is_{name}")():
            return name
    return None


def check_column(role: Literal["user", "item", "by"], column: str, dtype: dt.DataType) -> None:
    """Refuse a column whose type cannot serve, by the schema alone."""
    kind = kind_of(dtype)
    if kind is not None and not (role == "user" and kind == "timestamp"):
        return
    allowed = f"integers, strings, dates, {'' if role == 'user' else 'timestamps, '}booleans or UUIDs"
    hint = ""
    if dtype.is_floating():
        hint = " (pandas turns integers with missing values into floats: use astype('Int64'))"
    elif dtype.is_decimal():
        hint = " to an integer or a string, so that it is you who says when two of them are the same"
    intervals = dtype.is_numeric() and role != "user"
    binned = " Or put its numbers into intervals: crowdgram.Bins, or --bins." if intervals else ""
    raise InvalidTable(
        f"{role}={column!r}: has type {dtype}, and needs {allowed}. Cast it first{hint}.{binned}", column=column
    )


def arrow_keys(values: Sequence[Value], dtype: dt.DataType) -> pa.Array:
    """Public values as an Arrow column that joins with `key`."""
    kind = kind_of(dtype)
    if kind in ("string", "uuid"):
        return string_column([str(value) for value in values] if kind == "uuid" else values)  # type: ignore[arg-type]
    if kind == "timestamp":
        return pa.array(values, pa.timestamp("us"))
    if kind == "integer" and dtype.bounds.upper < 2**63:
        whole, wanted = numbers_table({"key": np.array(values, dtype=np.int64)}).column(0), dtype.to_pyarrow()
        return whole if whole.type == wanted else whole.cast(wanted)  # slow to load
    return pa.array(values, dtype.to_pyarrow())


def convert_all(
    values: Iterable[object], dtype: dt.DataType, role: Role = DOMAIN, column: str = "item"
) -> tuple[Value, ...]:
    """`convert` of each; all at once if they are plain strings or integers, of which there may be millions."""
    given: list[Any] = list(values)
    kind, types = kind_of(dtype), set(map(type, given))
    if types == {str} and kind == "string" and _is_unicode(given):
        return tuple(given)
    # One search over all is faster than one each. int() takes more than digits, but not two lines at once.
    if types == {str} and kind == "integer" and re.fullmatch(_DIGIT_LINES, "\n".join(given)):
        with contextlib.suppress(ValueError):
            given, types = list(map(int, given)), {int}
    if types == {int} and kind == "integer" and dtype.bounds.lower <= min(given) and max(given) <= dtype.bounds.upper:
        return tuple(given)
    return tuple(convert(value, dtype, role, column) for value in given)


def convert(value: object, dtype: dt.DataType, role: Role = DOMAIN, column: str = "item") -> Value:
    """A public value in the column's type, or an error that names both."""
    kind = kind_of(dtype)
    assert kind is not None  # checked when the table was opened
    if getattr(value, "shape", None) == () and hasattr(value, "item") and kind != "integer":
        value = value.item()  # a numpy scalar
    found: Value | None = None
    if isinstance(value, datetime.date) and value != value:
        value = None  # pandas' NaT
    if kind == "integer":
        found = _integer(value, dtype, role)
    elif kind == "string":
        found = _string(value, role)
    elif kind == "boolean":
        found = value if isinstance(value, bool) else {"true": True, "false": False}.get(_lower(value))
    elif kind == "date":
        found = _date(value)
    elif kind == "timestamp":
        found = _timestamp(value, zoned=getattr(dtype, "timezone", None) is not None)
    elif isinstance(value, uuid.UUID):
        found = value
    elif isinstance(value, str) and re.fullmatch(r"[0-9a-fA-F]{8}(-?[0-9a-fA-F]{4}){3}-?[0-9a-fA-F]{12}", value):
        found = uuid.UUID(value)
    if found is None:
        raise InvalidDomain(
            f"{role}: holds {value!r} ({type(value).__name__}), and needs {_PLURAL[kind]}, as column {column!r} has.",
            argument=role.argument,
        )
    return found


def _is_unicode(values: Iterable[Any]) -> bool:
    try:
        "".join(values).encode()
    except UnicodeEncodeError:
        return False
    return True


def _lower(value: object) -> str:
    return value.strip().lower() if isinstance(value, str) else ""


def _whole(value: object) -> int | None:
    """`value` as an integer, if it is one. Arrays have the method too, and refuse."""
    if isinstance(value, bool | np.bool_) or not hasattr(type(value), "__index__"):
        return None
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        return None


def _integer(value: object, dtype: dt.DataType, role: Role) -> int | None:
    number = _whole(value)
    if isinstance(value, str) and re.fullmatch(r"\s*[+-]?[0-9]{1,30}\s*", value):
        number = int(value)
    if number is not None and not dtype.bounds.lower <= number <= dtype.bounds.upper:
        raise InvalidDomain(
            f"{role}: holds {number}, and needs numbers that fit the item column's type {dtype}.",
            argument=role.argument,
        )
    return number


def _string(value: object, role: Role) -> str | None:
    number = _whole(value)
    if number is not None:
        return str(number)
    if not isinstance(value, str):
        return None
    try:
        return value.encode().decode()  # a plain `str`, whatever subclass it came as
    except UnicodeEncodeError:
        raise InvalidDomain(
            f"{role}: holds {value!r}, and needs valid Unicode text. Remove the lone surrogate.", argument=role.argument
        ) from None


def _date(value: object) -> datetime.date | None:
    if isinstance(value, datetime.datetime):
        return value.date() if value == datetime.datetime(value.year, value.month, value.day) else None
    if isinstance(value, datetime.date):
        return value
    try:
        return datetime.date.fromisoformat(value.strip()) if isinstance(value, str) else None
    except ValueError:
        return None


def _timestamp(value: object, *, zoned: bool) -> datetime.datetime | None:
    if isinstance(value, str):
        try:
            value = datetime.datetime.fromisoformat(value.strip())
        except ValueError:
            return None
    if isinstance(value, datetime.datetime):
        if value.tzinfo is not None:
            if not zoned:
                return None
            value = value.astimezone(datetime.UTC).replace(tzinfo=None)
        plain = (value.year, value.month, value.day, value.hour, value.minute, value.second, value.microsecond)
        return datetime.datetime(*plain)  # not a pandas subclass
    if isinstance(value, datetime.date):
        return datetime.datetime(value.year, value.month, value.day)
    return None
