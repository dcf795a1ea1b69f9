"""Functions of one row that give a value or null on every row, in every engine.

If an expression failed on some row, the failure would tell of that row. So expressions are composed of the functions
below and of nothing else (docs/proofs/filters.md). Each takes and gives values of six types:

    integer     64 bits             string      without a collation     date        in the years 1 to 9999
    real        a double            boolean                             timestamp   in microseconds, in these years

Three rules make each function total:

- Every value, constants included, is pinned to its type by a TRY_CAST. Ibis leaves out casts that it takes for
  unnecessary, gives constants no type, and forgets parentheses around some operators; it does none of that to a
  TRY_CAST that is built as a node.
- Whatever an operation cannot take is replaced by null in the *operand*, not avoided by a branch around the operation:
  engines may compute both branches.
- Integers are added, subtracted and multiplied as decimals that are wide enough, and then brought back to 64 bits, or
  to null.
"""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Callable, Sequence
from typing import Any

import ibis
import ibis.expr.datatypes as dt
import ibis.expr.operations as ops

from .engines import Engine
from .keys import moment

__all__ = ["Misfit", "Type", "type_of"]

Type = str
"""One of TYPES, "null" for a constant null, or "other" for a column that has none of these types."""

TYPES: dict[Type, dt.DataType] = {
    "integer": dt.int64,
    "real": dt.float64,
    "string": dt.string,
    "boolean": dt.boolean,
    "date": dt.date,
    "timestamp": dt.Timestamp(scale=6),
}
NUMBERS, MOMENTS = ("integer", "real"), ("date", "timestamp")
DATE_PARTS = ("year", "quarter", "month", "day", "hour", "minute", "second")
TRUNCATIONS = {
    "YEAR": "Y",
    "QUARTER": "Q",
    "MONTH": "M",
    "WEEK": "W",
    "DAY": "D",
    "HOUR": "h",
    "MINUTE": "m",
    "SECOND": "s",
}
DIRECTIVES = "YmdHMSyj"
LONGEST = 2**16
"""Characters of each text that are joined to others; what is behind them is cut off."""

_EXACT = 2**52
"""Integers up to here, and their quotients rounded down, are exact in doubles."""
_WIDE_INTEGER = dt.Decimal(19, 0)
"""All integers of 64 bits. Sums of two have 20 digits at most; products are at most 2^126, which has 38."""


class Misfit(Exception):
    """The types of the operands do not fit together, or a constant cannot serve."""


def type_of(value: Any) -> Type:
    found = value.type()
    if found.is_null():
        return "null"
    return next((name for name, dtype in TYPES.items() if found.copy(nullable=True) == dtype), "other")


def pin(value: Any, to: Type | dt.DataType) -> Any:
    """The value in this type, by a cast that cannot fail: it gives null if a value does not fit."""
    return ops.TryCast(value, TYPES[to] if isinstance(to, str) else to).to_expr()


def need(fits: bool) -> None:
    if not fits:
        raise Misfit


# --- columns and constants


def read(engine: Engine, column: Any) -> Any:
    """A column of the table. One of another type ("other") can be asked whether it is null, and nothing else."""
    dtype = column.type()
    if dtype.is_string() or dtype.is_uuid():
        return engine.exact(column if dtype.is_string() else pin(column, "string"))
    if dtype.is_date() or dtype.is_timestamp():
        return pin(moment(column), "date" if dtype.is_date() else "timestamp")
    for name, is_one in (("boolean", dtype.is_boolean()), ("integer", dtype.is_integer())):
        if is_one:
            return pin(column, name)
    return pin(column, "real") if dtype.is_decimal() or dtype.is_floating() else column


def constant(value: object, to: Type) -> Any:
    return pin(ibis.literal(value, TYPES[to]), to)


def as_one(values: Sequence[Any]) -> tuple[list[Any], Type]:
    """The values in one type, and which: integers beside reals as reals, dates beside timestamps as timestamps."""
    found = {type_of(value) for value in values} - {"null"}
    if len(found) == 2:
        found = next(({pair[1]} for pair in (NUMBERS, MOMENTS) if found == set(pair)), found)
    need(len(found) <= 1 and "other" not in found)
    to = found.pop() if found else "boolean"
    return [value if type_of(value) == to else pin(value, to) for value in values], to


# --- conditions


def compare(act: Callable[[Any, Any], Any], one: Any, other: Any) -> Any:
    (one, other), _ = as_one([one, other])
    return pin(act(one, other), "boolean")


def same(one: Any, other: Any) -> Any:
    """Whether two values are equal, null being equal to null."""
    return compare(lambda a, b: a.identical_to(b), one, other)


def condition(value: Any) -> Any:
    found = type_of(value)
    need(found in ("boolean", "null"))
    return pin(value, "boolean") if found == "null" else value


def every(conditions: Sequence[Any], act: Callable[[Any, Any], Any] = operator.and_) -> Any:
    """All of the conditions; with `or_`, any. As a balanced tree, since engines limit how deep expressions nest."""
    if len(conditions) == 1:
        return condition(conditions[0])
    half = len(conditions) // 2
    return act(every(conditions[:half], act), every(conditions[half:], act))


def negated(value: Any) -> Any:
    return pin(~condition(value), "boolean")


def is_null(value: Any) -> Any:
    return pin(value.isnull(), "boolean")


def among(value: Any, options: Sequence[Any]) -> Any:
    (value, *options), _ = as_one([value, *options])
    return pin(value.isin(options), "boolean")


def choose(arms: Sequence[tuple[Any, Any]], default: Any) -> Any:
    values, to = as_one([*(value for _, value in arms), default])
    made = ibis.cases(
        *((condition(when), value) for (when, _), value in zip(arms, values, strict=False)), else_=values[-1]
    )
    return pin(made, to)


def several(act: Callable[..., Any], values: Sequence[Any]) -> Any:
    """`coalesce`, `greatest` or `least`."""
    values, to = as_one(values)
    return pin(act(*values), to)


def null_if(one: Any, other: Any) -> Any:
    (one, other), to = as_one([one, other])
    return pin(one.nullif(other), to)


# --- numbers


def arithmetic(act: Callable[[Any, Any], Any], one: Any, other: Any) -> Any:
    """A sum, a difference or a product."""
    (one, other), to = as_one([one, other])
    need(to in NUMBERS)
    return pin(act(one, other) if to == "real" else act(pin(one, _WIDE_INTEGER), pin(other, _WIDE_INTEGER)), to)


def divided(one: Any, other: Any) -> Any:
    need({type_of(one), type_of(other)} <= {*NUMBERS, "null"})
    return pin(pin(one, "real") / pin(other, "real").nullif(constant(0.0, "real")), "real")


def floor_divided(one: Any, other: Any) -> Any:
    """Integers rounded down; null beyond 2^52, where doubles are not exact."""
    need({type_of(one), type_of(other)} <= {"integer", "null"})
    return rounded("floor", divided(_within(pin(one, "integer")), _within(pin(other, "integer"))))


def remainder(one: Any, other: Any) -> Any:
    need({type_of(one), type_of(other)} <= {"integer", "null"})
    one = pin(one, "integer").nullif(constant(-(2**63), "integer"))  # by -1, it is no remainder that fails
    return pin(one % pin(other, "integer").nullif(constant(0, "integer")), "integer")


def absolute(value: Any) -> Any:
    need(type_of(value) in NUMBERS)
    return pin(value.abs() if type_of(value) == "real" else pin(value, _WIDE_INTEGER).abs(), type_of(value))


def opposite(value: Any) -> Any:
    need(type_of(value) in NUMBERS)
    return pin(-value, "real") if type_of(value) == "real" else arithmetic(operator.sub, constant(0, "integer"), value)


def rounded(act: str, value: Any) -> Any:
    """`floor`, `ceil` or `round` of a number, as an integer; null beyond 2^52."""
    need(type_of(value) in NUMBERS)
    return value if type_of(value) == "integer" else pin(getattr(_within(value), act)(), "integer")


def _within(value: Any) -> Any:
    ends = (
        constant(sign * (_EXACT if type_of(value) == "integer" else float(_EXACT)), type_of(value)) for sign in (-1, 1)
    )
    first, last = ends
    return pin(ibis.ifelse((value >= first) & (value <= last), value, ibis.null(value.type())), type_of(value))


# --- texts


def text(value: Any) -> Any:
    need(type_of(value) in ("string", "null"))
    return pin(value, "string") if type_of(value) == "null" else value


def changed(act: str, value: Any) -> Any:
    """`lower`, `upper` or `strip`."""
    return pin(getattr(text(value), act)(), "string")


def length(value: Any) -> Any:
    return pin(text(value).length(), "integer")


def search(act: str, value: Any, part: Any) -> Any:
    """`startswith`, `endswith` or `contains`."""
    return pin(getattr(text(value), act)(text(part)), "boolean")


def like(engine: Engine, value: Any, pattern: str, *, fold: bool) -> Any:
    """SQL's LIKE, or ILIKE. A backslash is a character like any other."""
    pattern = engine.pattern(pattern)
    return pin(text(value).ilike(pattern) if fold else text(value).like(pattern), "boolean")


def joined(parts: Sequence[Any]) -> Any:
    """The first LONGEST characters of each part, one after the other; null if one is null.

    Texts may not grow with the number of operations on them: the engine would need memory that a row decides over.
    """
    need(len(parts) > 0)
    short = [text(part).left(LONGEST) for part in parts]
    return pin(functools.reduce(operator.add, short), "string")


def slice_of(value: Any, start: int, characters: int | None) -> Any:
    """From a place, counted from 0, so many characters."""
    need(0 <= start < 10**9 and (characters is None or 0 <= characters < 10**9))
    made = text(value).substr(start) if characters is None else text(value).substr(start, characters)
    return pin(made, "string")


def right(value: Any, characters: int) -> Any:
    need(0 <= characters < 10**9)
    return pin(text(value).right(characters), "string")


def _split(value: str, delimiter: str, place: int) -> str:
    raise NotImplementedError


# The engine's own: Ibis would split by a regular expression on Spark.
_split_part: Any = ibis.udf.scalar.builtin(
    _split, name="split_part", signature=((dt.string, dt.string, dt.int32), dt.string)
)


def piece(value: Any, delimiter: str, place: int) -> Any:
    """What stands between the delimiters at a place, counted from 1; the empty text if there are fewer."""
    need(delimiter != "" and 1 <= place < 10**9)
    return pin(_split_part(text(value), constant(delimiter, "string"), pin(ibis.literal(place), dt.int32)), "string")


# --- dates and times


def a_moment(value: Any) -> Any:
    need(type_of(value) in MOMENTS)
    return value


def truncated(value: Any, unit: str) -> Any:
    """Engines make a timestamp of a truncated date; what was a date stays one."""
    fine = pin(pin(a_moment(value), "timestamp").truncate(TRUNCATIONS[unit]), "timestamp")
    return pin(fine, "date") if type_of(value) == "date" and TRUNCATIONS[unit] in "YQMWD" else fine


def part(value: Any, name: str) -> Any:
    """A part of a moment by its name, or `weekday`, 0 for Monday."""
    value = a_moment(value)
    if name == "weekday":
        return pin(value.day_of_week.index(), "integer")
    need(name in DATE_PARTS and (name not in ("hour", "minute", "second") or type_of(value) == "timestamp"))
    return pin(getattr(value, name)(), "integer")


def formatted(value: Any, pattern: str) -> Any:
    """The moment by a pattern of `strftime`, directive by directive: engines differ in how they quote plain text."""
    value = a_moment(value)
    parts = [one for one in re.split(f"(%[{DIRECTIVES}])", pattern) if one]
    need(not any("%" in one for one in parts if not re.fullmatch(f"%[{DIRECTIVES}]", one)))
    made = [pin(value.strftime(one), "string") if one.startswith("%") else constant(one, "string") for one in parts]
    return pin(functools.reduce(operator.add, made), "string") if made else constant("", "string")


# --- casts


def cast(value: Any, to: Type) -> Any:
    found = type_of(value)
    need(found != "other")
    if found in (to, "null"):
        return pin(value, to)
    takes: dict[Type, tuple[Type, ...]] = {
        "integer": ("string", "boolean"),  # engines differ in how they round
        "real": ("string", "integer"),
        "string": tuple(TYPES),
        "boolean": ("string", "integer"),
        "date": ("string", "timestamp"),
        "timestamp": ("string", "date"),
    }
    need(found in takes[to])
    if to == "integer" and found == "string":  # and in what text they take for a number
        digits = value.re_search(r"^\s*[+-]?[0-9]{1,18}\s*$")
        value = ibis.ifelse(digits, value.strip(), ibis.null("string"))
    if to in MOMENTS and found == "string":  # of a bare time, Spark makes a moment of the day on which it is asked
        dated = value.re_extract(r"^\s*[0-9]{4,}[-/ ][0-9]{1,2}[-/ ][0-9][\s\S]*$", 0)
        return pin(moment(pin(dated, to)), to)
    return pin(value, to)
