"""Columns that are more than names: expressions, bins, counts and filters, and all types that only Ibis can say.

They are built over the opened table in Ibis, of functions of one row, and handed on as the SQL that it writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import ibis
from ibis.expr.types.joins import Join

from ..errors import InvalidArgument, InvalidTable
from . import row_functions as row
from .bins import Bins
from .engines import Engine, shield
from .expressions import checked, evaluate
from .keys import key
from .kinds import check_column
from .relations import Relation
from .roles import WHERE, Role
from .row_wise import check_row_wise
from .rows import COUNT_LIMIT
from .spelling import Spelling, spelling_of
from .within import Within

if TYPE_CHECKING:
    import ibis.expr.datatypes as dt
    import ibis.expr.types as ir

    from .engines.base import Table

__all__ = ["Computed", "compute"]

Asked = tuple[str, object]
"""A column: its name, and an expression or bins if it is not a column of the table."""


@dataclass(frozen=True)
class Computed:
    """The rows as a query, the types of the item columns, and what their expressions say of their letters."""

    table: Relation
    types: tuple[dt.DataType, ...]
    spellings: tuple[tuple[Spelling, ...], ...]


def compute(
    engine: Engine,
    opened: Table,
    user: Asked,
    items: Sequence[Asked],
    count: str | None,
    where: object,
    within: Within | None,
    *,
    grouped: bool,
    text: bool,
) -> Computed:
    """The columns `user`, `item`, `item_1`, ... and perhaps `n` of the rows that the filters keep. No row is read.

    grouped: the first item is the group. text: the source has no types for numbers.
    """
    table = engine.as_ibis(opened)
    if isinstance(table, Join):  # it would take in what is built over it, and could not be told from that
        table = table.select(*table.columns)
    users = _column(user, engine, table, "user", text)
    columns = {}
    for place, one in enumerate(items):
        role: Literal["item", "by"] = "by" if grouped and place == 0 else "item"
        columns["item" if place == 0 else f"item_{place}"] = _column(one, engine, table, role, text)
    types = tuple(column.type() for column in columns.values())
    selected = {name: key(engine, column) for name, column in {"user": users, **columns}.items()}
    if count is not None:
        selected["n"] = _count(table[count], count, text)
    kept, verdicts = table, [] if where is None else [_verdict(engine, table, where)]
    if within is not None:
        verdicts.append(within.verdict(engine, table))
    if verdicts:
        kept, selected = _kept(table, verdicts, selected)
    spellings = tuple(spelling_of(column) for column in columns.values())
    made = kept.select(**selected)
    check_row_wise(engine, made, table, "opening the table")
    return Computed(shield("opening the table", lambda: engine.relation(made)), types, spellings)


def _column(
    asked: tuple[str, object], engine: Engine, table: ir.Table, role: Literal["user", "item", "by"], text: bool
) -> Any:
    """A column of the table, or what an expression or bins make of its columns, if its type can serve.

    `text`: the source has no types for numbers.
    """
    name, made = asked
    if isinstance(made, Bins) and role != "user":
        column = _binned(made, engine, table, Role(role, name), text)
    else:
        column = table[name] if made is None else evaluate(made, engine, table, Role(role, name))
    check_column(role, name, column.type())
    return column


def _binned(bins: Bins, engine: Engine, table: ir.Table, role: Role, text: bool) -> Any:
    """The interval of each row. In a text file, what is not written as a number is null."""
    value = evaluate(bins.values, engine, table, role)
    if text and row.type_of(value) == "string":
        value = row.cast(value, "real")
    if row.type_of(value) not in row.NUMBERS:
        raise InvalidArgument(
            f"{role}: bins need numbers, and the values have type {value.type()}. Cast them first.",
            argument=role.argument,
        )
    return checked(bins.place(value), engine, table, role, str(role))


def _verdict(engine: Engine, table: ir.Table, where: object) -> Any:
    """The filter's verdict on each row: true, false or null."""
    verdict = evaluate(where, engine, table, WHERE)
    verdict = verdict.cast("boolean") if verdict.type().is_null() else verdict
    if not verdict.type().is_boolean():
        shown = f"={where!r}" if isinstance(where, str) else ""
        raise InvalidArgument(
            f"where{shown}: gives {verdict.type()}, and needs a condition, which is true or false.", argument="where"
        )
    return verdict


def _kept(table: ir.Table, verdicts: list[Any], selected: dict[str, Any]) -> tuple[ir.Table, dict[str, Any]]:
    """The verdict of all filters is one more column of the row; what is not true is dropped."""
    verdict = verdicts[0] if len(verdicts) == 1 else row.every(verdicts)
    widened = table.select(**selected, kept=verdict)
    return widened.filter(widened.kept), {name: widened[name] for name in selected}


def _count(column: Any, name: str, text: bool) -> Any:
    """How many rows a row stands for: a whole number from 1 to COUNT_LIMIT, or null.

    `text`: the source has no types for numbers. There, what is not written as a whole number counts for nothing.
    """
    dtype = column.type()
    if text and dtype.is_string():
        # "3.0" is how pandas writes a 3 if another count is missing.
        whole_number = column.re_search(r"^\s*\+?[0-9]{1,30}(\.0{1,30})?\s*$")
        digits = ibis.ifelse(whole_number, column.strip(), ibis.null("string"))
        column = digits.try_cast("float64")  # exact below 2^53, and whatever is above COUNT_LIMIT is cut to it
    elif not (dtype.is_integer() or (dtype.is_decimal() and dtype.scale == 0)):
        hint = (
            " (pandas turns integers with missing values into floats: use astype('Int64'))"
            if dtype.is_floating()
            else ""
        )
        raise InvalidTable(
            f"count={name!r}: has type {dtype}, and needs whole numbers. Cast it to integers{hint}.",
            column=name,
        )
    limit = ibis.literal(COUNT_LIMIT, "int64")
    whole = ibis.cases((column > COUNT_LIMIT, limit), (column > 0, column.try_cast("int64")))
    return whole.cast("int64")
