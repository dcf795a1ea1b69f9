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
from typing import TYPE_CHECKING

from ..errors import InvalidArgument, InvalidTable
from .addresses import as_database
from .bins import Bins
from .columns import LEFT_OUT, MissingColumn, check_columns
from .engines import DuckEngine, Engine
from .kinds import plain_type
from .relations import Relation
from .roles import WHERE, Role, check_unicode
from .sources import is_text, open_source
from .spelling import Spelling
from .within import PERIOD_COLUMN, Within

if TYPE_CHECKING:
    import ibis.expr.datatypes as dt

    from .engines.base import Table

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
    table: Relation
    names: tuple[str, ...]
    item_types: tuple[dt.DataType, ...]
    spellings: tuple[tuple[Spelling, ...], ...] = ()
    gathered: bool = False

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
    named = [name for name, expression in (own, *chosen) if expression is None] + ([count] if count else [])
    if within is not None:
        _check_name(str(PERIOD_COLUMN), within.column)
        named.append(within.column)
        database = as_database(source)
        if database is not None and database.query is not None:
            from .queries import check_own_column

            check_own_column(database.query, within.column)
    engine, table = _open(source, _wanted(named, given), own, chosen, by, count, given, within)
    try:
        rows = None if given or count is not None or within is not None else _plain(engine, table, own[0], names)
        if rows is None:
            # It loads Ibis, which takes longer than many a release.
            from .computed import compute

            made = compute(
                engine, table, own, chosen, count, where, within, grouped=by is not None, text=is_text(source)
            )
            rows = Rows(engine, made.table, tuple(names), made.types, made.spellings)
        engine.check(rows.table, "opening the table")
        return rows
    except BaseException:
        engine.close()
        raise


def _plain(engine: Engine, table: Table, user: str, names: Sequence[str]) -> Rows | None:
    """The rows, if all columns are integers or strings of the table as they are, in the embedded engine."""
    if not isinstance(table, Relation) or not isinstance(engine, DuckEngine):
        return None
    own, types = plain_type(table.types[user]), [plain_type(table.types[name]) for name in names]
    if own is None or None in types:
        return None
    made = {"user": engine.plain_key(table, user)}
    for place, name in enumerate(names):
        made["item" if place == 0 else f"item_{place}"] = engine.plain_key(table, name)
    return Rows(engine, table.select(**made), tuple(names), tuple(types), tuple(() for _ in names))


def _open(
    source: object,
    wanted: list[str] | None,
    own: tuple[str, object],
    chosen: list[tuple[str, object]],
    by: object,
    count: str | None,
    given: list[tuple[Role, object]],
    within: Within | None,
) -> tuple[Engine, Table]:
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
    elif given:
        from .expressions import columns_of, parse

        for argument, text in given:
            if isinstance(text, str) and column in columns_of(parse(text, argument)):
                asked = f"{argument}={text!r}"
                if f'"{column}"' in text:
                    hint += f" Double quotes are for names of columns; for text use single quotes: '{column}'."
                break
    raise InvalidTable(f"{asked}: {said}{hint}" if asked else f"{said}{hint}", column=column)


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
    if not expressions:
        return list(dict.fromkeys(wanted))
    from .expressions import columns_of, parse

    for role, expression in expressions:
        if not isinstance(expression, str):
            return None
        wanted += columns_of(parse(expression, role))
    return list(dict.fromkeys(wanted))
