"""The private rows: a source with its columns chosen, filtered and checked, by the schema alone.

Whatever the columns are called, the table that the rest of the package works with has `user`; the keys `item`,
`item_1`, ... for the item columns; and `n` if rows are counted already. Filters and computed items look at one row
at a time, and so does a computed user: a user is a value of the user column or of that expression, and a row keeps it
(docs/proofs/filters.md).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import ibis
from ibis.expr.types.joins import Join

from ..errors import InvalidArgument, InvalidTable
from . import row_functions as row
from .addresses import as_database
from .bins import Bins
from .columns import LEFT_OUT, MissingColumn, check_columns
from .engines import Engine
from .expressions import checked, columns_of, evaluate, parse
from .kinds import check_column, key
from .queries import check_own_column
from .roles import WHERE, Role
from .row_wise import check_row_wise
from .sources import is_text, open_source
from .spelling import Spelling, spelling_of
from .sql_text import check_unicode
from .within import PERIOD_COLUMN, Within

if TYPE_CHECKING:
    import ibis.expr.datatypes as dt
    import ibis.expr.types as ir

__all__ = ["COUNT_LIMIT", "Rows", "open_rows"]

COUNT_LIMIT = 2**40
"""What one row may count for. Far above what any user may count for; it keeps sums in 64 bits."""

_RESERVED = ("probability", "count", "standard_error", "lower", "upper", "share", "total", "is_other")


@dataclass(frozen=True)
class Rows:
    """The private rows: an engine, and in it a table with the columns `user`, `keys` and perhaps `n`.

    names, item_types: of the item columns, as the caller knows them. spellings: for each, what its expression says of
    its letters. gathered: each user's rows are in one place of the engine (`Engine.gather_users`).
    """

    engine: Engine
    table: ir.Table
    names: tuple[str, ...] = ("item",)
    item_types: tuple[dt.DataType, ...] = ()
    spellings: tuple[tuple[Spelling, ...], ...] = ()
    gathered: bool = False

    def __post_init__(self) -> None:
        if not self.item_types:
            schema = self.table.schema()
            object.__setattr__(self, "item_types", tuple(schema[name] for name in self.keys))

    @property
    def keys(self) -> tuple[str, ...]:
        """The item columns of `table`: ("item",) for one, ("item", "item_1", ...) for several."""
        return tuple("item" if place == 0 else f"item_{place}" for place in range(len(self.names)))

    @property
    def item_type(self) -> dt.DataType:
        """The type of the (first) item column."""
        return self.item_types[0]

    @property
    def counted(self) -> bool:
        """Whether a row stands for `n` rows."""
        return "n" in self.table.columns


def open_rows(
    source: object,
    *,
    user: object,
    item: object,
    count: str | None = None,
    where: object = None,
    by: object = None,
    within: Within | None = None,
) -> Rows:
    """Open `source`, choose its columns and check them by the schema alone. No row is read.

    source: a path, glob or database; a pandas, polars, pyarrow, DuckDB, Spark or Ibis table.
    user: a column, or a mapping of a name to an expression. item: a column; a mapping of a name to an expression or to
    bins; or a list of these, for a joint distribution. by: one more such column, put before the others. count: a column
    of whole numbers that says how many rows a row stands for; a row whose count is missing, negative or zero is
    dropped. where: a filter, an expression of one row. within: the period whose rows are read.

    The caller closes `rows.engine`.
    """
    own = _user(user)
    if count is not None:
        _check_name("count", count)
    chosen = [*_chosen("by", by), *_chosen("item", item)]
    names = [name for name, _ in chosen]
    _check_names(own, names, count, grouped=by is not None)
    given = _expressions(own, chosen, by, where)
    plain = [name for name, expression in (own, *chosen) if expression is None] + ([count] if count else [])
    if within is not None:
        _check_name(str(PERIOD_COLUMN), within.column)
        plain.append(within.column)
        database = as_database(source)
        if database is not None and database.query is not None:
            check_own_column(database.query, within.column)
    engine, table = _open(source, _wanted(plain, given), own, chosen, by, count, given, within)
    try:
        if isinstance(table, Join):  # it would take in what is built over it, and could not be told from that
            table = table.select(*table.columns)
        text = is_text(source)
        users = _column(own, engine, table, "user", text)
        columns = {}
        for place, one in enumerate(chosen):
            role: Literal["item", "by"] = "by" if by is not None and place == 0 else "item"
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
        rows = Rows(engine, kept.select(**selected), tuple(names), types, spellings)
        check_row_wise(engine, rows.table, table, "opening the table")
        engine.check(rows.table, "opening the table")
        return rows
    except BaseException:
        engine.close()
        raise


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


def _open(
    source: object,
    wanted: list[str] | None,
    own: tuple[str, object],
    chosen: list[tuple[str, object]],
    by: object,
    count: str | None,
    given: list[tuple[Role, object]],
    within: Within | None,
) -> tuple[Engine, ir.Table]:
    """Open the source; if a column is missing, say which argument asked for it."""
    plain = [name for name, expression in chosen if expression is None]
    user = own[0] if own[1] is None else ""
    try:
        engine, table = open_source(source, wanted, user)
        if wanted is None:  # all columns: those that are named may not be among them
            named = [*([user] if user else []), *plain, *([count] if count else [])]
            named += [] if within is None else [within.column]
            try:
                check_columns(list(table.columns), named, "the file" if is_text(source) else None)
            except BaseException:
                engine.close()
                raise
        return engine, table
    except MissingColumn as error:
        column, said = error.column, str(error)
    asked, hint = "", "" if wanted is not None else f" {LEFT_OUT}"
    if column is not None and column in (user, count, *plain):
        role = "user" if column == user else "count" if column == count else "item"
        role = "by" if role == "item" and by is not None and chosen[0] == (column, None) else role
        asked = f"{role}={column!r}"
        if role != "count" and re.search(r"[(|+*/]", column):
            hint += (
                f" An expression needs a name: {{'name': {column!r}}}, or on the command line --{role} NAME=EXPRESSION."
            )
    elif within is not None and column == within.column:
        asked = f"{PERIOD_COLUMN}={column!r}"
    else:
        for argument, text in given:
            if isinstance(text, str) and column in columns_of(parse(text, argument)):
                asked = f"{argument}={text!r}"
                if f'"{column}"' in text:
                    hint += f" Double quotes are for names of columns; for text use single quotes: '{column}'."
                break
    raise InvalidTable(f"{asked}: {said}{hint}" if asked else f"{said}{hint}", column=column)


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


def _user(given: object) -> tuple[str, object]:
    """The user column, as (name, expression or None)."""
    if not isinstance(given, Mapping):
        _check_name("user", given)
        return str(given), None
    if len(given) != 1:
        raise InvalidArgument(
            f"user={given!r}: needs one name with one expression. Join two columns in it, as in \"a || '/' || b\".",
            argument="user",
        )
    name, expression = next(iter(given.items()))
    _check_name("user", name)
    return name, expression


def _chosen(role: str, given: object) -> list[tuple[str, object]]:
    """The columns asked for, as (name, expression or None)."""
    if given is None and role == "by":
        return []
    parts: Sequence[object] = [given] if isinstance(given, (str, Mapping)) else []
    if not parts and isinstance(given, Sequence) and not isinstance(given, (bytes, bytearray)):
        parts = given
    chosen: list[tuple[str, object]] = []
    for part in parts:
        if isinstance(part, Mapping):
            chosen += [(name, expression) for name, expression in part.items()]
        else:
            chosen.append((part, None))  # type: ignore[arg-type]
    if not chosen or any(not isinstance(name, str) or not name for name, _ in chosen):
        raise InvalidArgument(
            f"{role}={given!r}: needs the name of a column, a mapping of a name to an expression, or a list of these.",
            argument=role,
        )
    for name, _ in chosen:
        _check_name(role, name)
    if role == "by" and len(chosen) > 1:
        raise InvalidArgument(
            f"by={given!r}: needs one column. Join two in an expression such as \"a || '/' || b\".", argument="by"
        )
    return chosen


def _check_name(role: str, value: object) -> None:
    if not isinstance(value, str) or not value:
        raise InvalidArgument(f"{role}={value!r}: needs the name of a column, a non-empty string.", argument=role)
    check_unicode(value, Role(role))
    if "\0" in value:
        raise InvalidArgument(
            f"{role}={value!r}: holds a null character, which engines cut off. Rename the column.", argument=role
        )


def _check_names(own: tuple[str, object], names: list[str], count: str | None, *, grouped: bool) -> None:
    user = own[0] if own[1] is None else None  # the name of an expression is shown in errors alone
    for place, name in enumerate(names):
        what = "by" if grouped and place == 0 else "item"
        if name == user:
            raise InvalidArgument(
                f"user={user!r}: is {what} too, and they need to be two different columns.", argument="user"
            )
        if name == count:
            raise InvalidArgument(
                f"count={name!r}: is {what} too, and they need to be two different columns.", argument="count"
            )
        if name in names[:place] and grouped and name == names[0]:
            raise InvalidArgument(
                f"by={name!r}: is item too, and they need to be two different columns.", argument="by"
            )
        if name in names[:place]:
            raise InvalidArgument(f"item={name!r}: is given more than once. Give each column once.", argument="item")
        if len(names) > 1 and name in _RESERVED:
            raise InvalidArgument(
                f"{what}={name!r}: is the name of a column of the result. Give it another: {{'name': '\"{name}\"'}}.",
                argument=what,
            )
    if count is not None and count == user:
        raise InvalidArgument(
            f"user={user!r}: is count too, and they need to be two different columns.", argument="user"
        )


def _expressions(
    own: tuple[str, object], chosen: list[tuple[str, object]], by: object, where: object
) -> list[tuple[Role, object]]:
    """The expressions of the caller, with the arguments that they came in. The groups' column, if any, comes first."""
    roles = ["user", *("by" if by is not None and place == 0 else "item" for place in range(len(chosen)))]
    made = [(Role(role, name), one) for role, (name, one) in zip(roles, (own, *chosen), strict=True) if one is not None]
    given = [(role, one.values if isinstance(one, Bins) else one) for role, one in made]
    return given if where is None else [(WHERE, where), *given]


def _wanted(plain: list[str], expressions: list[tuple[Role, object]]) -> list[str] | None:
    """The columns to open; None for all, if an Ibis expression may use any of them."""
    wanted = list(plain)
    for role, expression in expressions:
        if not isinstance(expression, str):
            return None
        wanted += columns_of(parse(expression, role))
    return list(dict.fromkeys(wanted))
