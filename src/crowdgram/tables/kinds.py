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
from typing import TYPE_CHECKING, Any, Literal

import ibis
import ibis.expr.datatypes as dt
import numpy as np
import pyarrow as pa

from ..errors import InvalidDomain, InvalidTable
from .arrow import numbers_table, string_column
from .roles import DOMAIN, Role

if TYPE_CHECKING:
    from .engines import Engine

__all__ = ["Kind", "Value", "arrow_keys", "check_column", "convert", "convert_all", "key", "kind_of", "moment"]

Kind = Literal["integer", "string", "boolean", "date", "timestamp", "uuid"]
Value = int | str | bool | datetime.date | datetime.datetime | uuid.UUID

_FIRST, _LAST = datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31, 23, 59, 59, 999999)
_MICROSECONDS = dt.Timestamp(scale=6)
_DIGIT_LINES = re.compile(r"[+-]?[0-9]{1,30}(\n[+-]?[0-9]{1,30})*")
_PLURAL: dict[Kind, str] = {
    "integer": "integers",
    "string": "strings",
    "boolean": "booleans",
    "date": "dates",
    "timestamp": "timestamps",
    "uuid": "UUIDs",
}


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


def key(engine: Engine, column: Any) -> Any:
    """The column as it is grouped and joined by every statistic: two values are one user, or one item, if and only if
    this gives them the same value.

    Integers and booleans as they are; strings code point by code point, whatever collation the column has; UUIDs as
    their text; dates and timestamps as `moment` has them. No two users merge: what could merge them (floats, decimals,
    timestamps, dates with parts of a day) has no place in a user column, by its type alone (`check_column`, and
    `arrow.check_users` for a type that engines do not have).
    """
    dtype = column.type()
    if dtype.is_uuid():
        return column.cast("string")
    return engine.exact(column) if dtype.is_string() else moment(column)


@ibis.udf.scalar.builtin(name="epoch_ns", signature=(("timestamp(9)",), "int64"))  # type: ignore[untyped-decorator]
def _nanoseconds(moment: Any) -> Any:
    """Since 1970; only DuckDB has such moments. Null if infinite."""


@ibis.udf.scalar.builtin(name="divide", signature=(("int64", "int64"), "int64"))  # type: ignore[untyped-decorator]
def _nearer_zero(number: Any, by: Any) -> Any:
    """A whole number divided, the rest left out. Ibis divides whole numbers as doubles, which hold 53 bits."""


@ibis.udf.scalar.builtin(name="make_timestamp", signature=(("int64",), "timestamp(6)"))  # type: ignore[untyped-decorator]
def _of_microseconds(number: Any) -> Any:
    """Since 1970."""


def moment(column: Any) -> Any:
    """A date, or a timestamp without zone, in microseconds, in the years 1 to 9999; else null. Others as they are."""
    dtype = column.type()
    if dtype.is_date():
        return _in_years(column)
    if not dtype.is_timestamp():
        return column
    if dtype.scale == 9:
        # Down, as from Arrow: a cast rounds to the nearest, which may be the first of the next month.
        number = _nanoseconds(column)
        return _in_years(_of_microseconds(_nearer_zero(number, 1000) - ibis.ifelse(number % 1000 < 0, 1, 0)))
    column = _in_years(column)  # before the cast, which fails beyond the range of microseconds
    # In UTC, which engines are set to until the end of a release.
    return _in_years(column.cast(_MICROSECONDS))


def _in_years(column: Any) -> Any:
    dtype = column.type()
    if dtype.is_date():
        first, last = (ibis.literal(end.date(), dt.date) for end in (_FIRST, _LAST))
    else:
        first, last = (ibis.literal(end, _MICROSECONDS).cast(dtype) for end in (_FIRST, _LAST))
    return ibis.ifelse((column >= first) & (column <= last), column, ibis.null(dtype))


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
    if isinstance(value, bool) or type(value).__name__ == "bool_" or not hasattr(type(value), "__index__"):
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
