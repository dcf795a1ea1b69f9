"""How users and items of a user's table are told apart: the value that every statistic groups and joins by."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any

import ibis
import ibis.expr.datatypes as dt

if TYPE_CHECKING:
    from .engines import Engine

__all__ = ["key", "moment"]

_FIRST, _LAST = datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31, 23, 59, 59, 999999)
_MICROSECONDS = dt.Timestamp(scale=6)


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
