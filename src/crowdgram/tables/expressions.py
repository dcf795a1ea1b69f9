"""Expressions of one row: filters, computed items and computed users, as SQL text or as Ibis expressions.

A filter must decide over each row by that row alone: if one user's rows could decide which rows of others are kept,
the bound on one user's contribution would be worth nothing (docs/proofs/filters.md). It must not fail on some rows
either, since then whether a release comes out would depend on them. So neither SQL text nor an Ibis expression is
handed to the engine. Each is walked node by node, and every node is either rebuilt of the functions in
`row_functions` by a rule (`sql_text` for SQL, below for Ibis) or refused. There is no rule for aggregates, windows,
subqueries, functions of the caller's own, or anything else that is not listed.

What comes out is checked against the engine: its own name for the type of the result has to be the expected one.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any

import ibis
import ibis.expr.operations as ops
import ibis.expr.types as ir
from ibis.common.deferred import Deferred

from ..errors import InvalidArgument
from . import row_functions as row
from .columns import LEFT_OUT
from .engines import Engine
from .roles import Role, check_unicode
from .sql_text import ALLOWED, Tree, columns_of, parse, row_wise, translate

__all__ = ["Expression", "checked", "columns_of", "evaluate", "parse"]

Expression = str | Deferred | ir.Value | Callable[[ir.Table], ir.Value]
"""SQL text, or an Ibis expression: of the table, deferred (`ibis._.day`), or a function of the table."""

NODES, TEXTS = 50_000, 200
"""Limits on the size of an expression: of all nodes, and of those that make a text, each of which needs memory."""


def evaluate(expression: object, engine: Engine, table: ir.Table, role: Role, part: Tree | None = None) -> Any:
    """The expression as a column of `table`: of its row alone, total, and of the type that the engine says it has.

    `part`: the part of the SQL text that is meant, if it is not all of it.
    """
    if isinstance(expression, str):
        tree = parse(expression, role) if part is None else part
        shown, value = f"{role}={expression!r}", translate(tree, engine, table, role, expression)
    else:
        blank = ibis.table(table.schema(), name="rows")
        shown, value = str(role), _Rebuilt(engine, table, blank, role).column(_given(expression, blank, role).op())
    return checked(value, engine, table, role, shown)


def checked(value: Any, engine: Engine, table: ir.Table, role: Role, shown: str) -> Any:
    """A value that was built of `row_functions`, if it is small enough and has the type that the engine says it has."""
    nodes, texts = _size(value.op())
    if nodes > NODES or texts > TEXTS:
        raise InvalidArgument(f"{shown}: is too long. Make a column of a part of it first.", argument=role.argument)
    found = row.type_of(value)
    if found not in row.TYPES:
        return value  # a constant null, or a column as it is: the caller says what it needs instead
    value = engine.tried(value)
    if not engine.gives(table.select(made=value), {"made": found}, "opening the table"):
        raise InvalidArgument(
            f"{shown}: has another type in the engine than {found}. Cast its columns first.", argument=role.argument
        )
    return value


def _size(node: Any) -> tuple[int, int]:
    """How many nodes the expression has when written out, and how many of them make a text."""
    makes = (ops.StringUnary, ops.StringConcat, ops.Substring, ops.StrRight, ops.ScalarUDF, ops.Strftime)
    sizes: dict[Any, tuple[int, int]] = {}
    todo = [(node, False)]
    while todo:
        one, done = todo.pop()
        if one in sizes:
            continue
        parts = [] if isinstance(one, ops.Relation | ops.Field) else list(one.__children__)
        if not done:
            todo += [(one, True), *((p, False) for p in parts)]
            continue
        nodes, texts = (sum(sizes[p][j] for p in parts) for j in (0, 1))
        sizes[one] = 1 + nodes, texts + (isinstance(one, makes) and one.dtype.is_string() and bool(parts))
    return sizes[node]


# --- Ibis expressions


def _given(expression: object, table: ir.Table, role: Role) -> Any:
    """The expression of the caller. `table` has columns and no rows: a function, or `_.n.max().execute()`, that asks
    for some fails for every table.
    """
    value: Any = expression
    try:
        if isinstance(expression, Deferred):
            value = expression.resolve(table)
        elif callable(expression) and not isinstance(expression, ibis.Expr):
            value = expression(table)
    except Exception as error:  # noqa: BLE001 (whatever the caller's function does)
        # Not its words: they may list the columns, and in a text file without a header line those are the first row.
        # But a name that the caller's own code asked for, and that is none of them.
        asked = re.search(r"(?:attribute|[Cc]olumn) '([^']+)'", str(error))
        missing = asked is not None and isinstance(error, AttributeError | ibis.common.exceptions.IbisError)
        if asked is not None and missing and asked[1] not in table.columns:
            raise InvalidArgument(
                f"{role}: the table has no column {asked[1]!r}. Check the name. {LEFT_OUT}", argument=role.argument
            ) from None
        if "unbound" in str(error):
            raise InvalidArgument(row_wise(str(role), "runs a query"), argument=role.argument) from None
        raise InvalidArgument(
            f"{role}: cannot be built of the table's columns ({type(error).__name__}). Check names and types.",
            argument=role.argument,
        ) from None
    if not isinstance(value, ir.Value):
        raise InvalidArgument(
            f"{role}: is a {type(value).__name__}, and needs SQL text, or an Ibis expression of the table's columns.",
            argument=role.argument,
        )
    return value


_ACROSS: dict[str, tuple[type, ...]] = {
    "an aggregate": (ops.Reduction,),
    "a window function": (ops.Analytic, ops.WindowFunction),
    "a subquery": (ops.Subquery, ops.Relation),
    "a row's number": (ops.RowID,),
    "more rows than one": (ops.Unnest,),
}


class _Rebuilt:
    """From an Ibis expression of the caller to one of `row_functions`. What has no rule is refused."""

    def __init__(self, engine: Engine, table: ir.Table, blank: ir.Table, role: Role) -> None:
        self._engine, self._table, self._role = engine, table, role
        self._own = {table.op(), blank.op()}
        self._made: dict[Any, Any] = {}

    def column(self, node: Any) -> Any:
        if node not in self._made:
            self._made[node] = self._rebuilt(node)
        return self._made[node]

    def columns(self, nodes: Any) -> list[Any]:
        return [self.column(node) for node in nodes]

    def _rebuilt(self, node: Any) -> Any:
        rule = _RULES.get(type(node))
        if rule is None:
            what = next((name for name, kinds in _ACROSS.items() if isinstance(node, kinds)), None)
            if what is not None:
                raise InvalidArgument(
                    row_wise(str(self._role), f"holds {what} ({type(node).__name__})"), argument=self._role.argument
                )
            raise InvalidArgument(
                f"{self._role}: holds {type(node).__name__}, and needs to be made of {ALLOWED}. Compute the "
                "column in the table first.",
                argument=self._role.argument,
            )
        try:
            return rule(self, node)
        except RecursionError:
            raise InvalidArgument(
                f"{self._role}: is nested too deeply. Make a column of a part of it first.",
                argument=self._role.argument,
            ) from None
        except row.Misfit:
            pass
        raise InvalidArgument(
            f"{self._role}: the types or constants in {type(node).__name__} do not fit together. Cast one of them.",
            argument=self._role.argument,
        )

    def field(self, node: Any) -> Any:
        if node.rel not in self._own:
            if isinstance(node.rel, ops.DatabaseTable | ops.InMemoryTable):
                raise InvalidArgument(
                    f"{self._role}: uses a column of another table, and needs columns of the given one.",
                    argument=self._role.argument,
                )
            raise InvalidArgument(
                row_wise(str(self._role), "uses a column of a table that is derived of others"),
                argument=self._role.argument,
            )
        return row.read(self._engine, self._table[node.name])

    def literal(self, node: Any) -> Any:
        if node.value is None:
            return ibis.null()
        found = node.dtype
        for name, fits in (
            ("boolean", found.is_boolean()),
            ("integer", found.is_integer()),
            ("real", found.is_floating() or found.is_decimal()),
            ("string", found.is_string() or found.is_uuid()),
            ("date", found.is_date()),
            ("timestamp", found.is_timestamp() and found.timezone is None),
        ):
            if fits:
                value = float(node.value) if name == "real" else node.value
                row.need(name != "integer" or -(2**63) <= value < 2**63)
                if name == "string":
                    check_unicode(value := str(value), self._role)
                return row.constant(value, name)
        raise row.Misfit

    def whole(self, node: Any) -> int:
        """A constant whole number."""
        row.need(isinstance(node, ops.Literal) and node.dtype.is_integer() and node.value is not None)
        return int(node.value)

    def plain(self, node: Any) -> str:
        """A constant text."""
        row.need(isinstance(node, ops.Literal) and node.dtype.is_string() and node.value is not None)
        check_unicode(str(node.value), self._role)
        return str(node.value)

    def cast(self, node: Any) -> Any:
        to = "integer" if node.to.is_integer() else "real" if node.to.is_floating() else None
        to = to or next((name for name in ("string", "boolean", "date") if getattr(node.to, f"is_{name}")()), None)
        if node.to.is_timestamp() and node.to.timezone is None:
            to = "timestamp"
        row.need(to is not None)
        return row.cast(self.column(node.arg), to or "")

    def cases(self, node: Any) -> Any:
        whens = self.columns(node.cases)
        if isinstance(node, ops.SimpleCase):
            base = self.column(node.base)
            whens = [row.compare(operator.eq, base, when) for when in whens]
        arms = list(zip(whens, self.columns(node.results), strict=True))
        return row.choose(arms, self.column(node.default))

    def between(self, node: Any) -> Any:
        value, low, high = self.columns((node.arg, node.lower_bound, node.upper_bound))
        return row.every([row.compare(operator.ge, value, low), row.compare(operator.le, value, high)])

    def unit(self, node: Any) -> Any:
        name = str(node.unit.name)
        row.need(name in row.TRUNCATIONS)
        return row.truncated(self.column(node.arg), name)

    def like(self, node: Any) -> Any:
        row.need(node.escape is None)
        fold = isinstance(node, ops.StringSQLILike)
        return row.like(self._engine, self.column(node.arg), self.plain(node.pattern), fold=fold)


_Rule = Callable[[_Rebuilt, Any], Any]


def _two(act: Callable[[Any, Any], Any]) -> _Rule:
    return lambda self, node: act(self.column(node.left), self.column(node.right))


def _one(act: Callable[..., Any], *more: object) -> _Rule:
    """A rule for a function of one value. `more` comes before it: the name of what is done to it."""
    return lambda self, node: act(*more, self.column(node.arg))


def _compared(act: Callable[[Any, Any], Any]) -> _Rule:
    return _two(lambda one, other: row.compare(act, one, other))


def _computed(act: Callable[[Any, Any], Any]) -> _Rule:
    return _two(lambda one, other: row.arithmetic(act, one, other))


def _part(name: str) -> _Rule:
    return lambda self, node: row.part(self.column(node.arg), name)


def _several(act: Callable[..., Any]) -> _Rule:
    return lambda self, node: row.several(act, self.columns(node.arg))


def _search(act: str, part: str) -> _Rule:
    return lambda self, node: row.search(act, self.column(node.args[0]), self.column(getattr(node, part)))


_RULES: dict[type, _Rule] = {
    ops.Field: _Rebuilt.field,
    ops.Literal: _Rebuilt.literal,
    ops.Alias: lambda self, node: self.column(node.arg),
    ops.Equals: _compared(operator.eq),
    ops.NotEquals: _compared(operator.ne),
    ops.Less: _compared(operator.lt),
    ops.LessEqual: _compared(operator.le),
    ops.Greater: _compared(operator.gt),
    ops.GreaterEqual: _compared(operator.ge),
    ops.IdenticalTo: _two(row.same),
    ops.And: _two(lambda one, other: row.every([one, other])),
    ops.Or: _two(lambda one, other: row.every([one, other], operator.or_)),
    ops.Xor: _compared(operator.ne),
    ops.Not: _one(row.negated),
    ops.IsNull: _one(row.is_null),
    ops.NotNull: lambda self, node: row.negated(row.is_null(self.column(node.arg))),
    ops.Between: _Rebuilt.between,
    ops.InValues: lambda self, node: row.among(self.column(node.value), self.columns(node.options)),
    ops.IfElse: lambda self, node: row.choose(
        [(self.column(node.bool_expr), self.column(node.true_expr))], self.column(node.false_null_expr)
    ),
    ops.SearchedCase: _Rebuilt.cases,
    ops.SimpleCase: _Rebuilt.cases,
    ops.Coalesce: _several(ibis.coalesce),
    ops.Greatest: _several(ibis.greatest),
    ops.Least: _several(ibis.least),
    ops.NullIf: lambda self, node: row.null_if(self.column(node.arg), self.column(node.null_if_expr)),
    ops.Add: _computed(operator.add),
    ops.Subtract: _computed(operator.sub),
    ops.Multiply: _computed(operator.mul),
    ops.Divide: _two(row.divided),
    ops.FloorDivide: _two(row.floor_divided),
    ops.Modulus: _two(row.remainder),
    ops.Negate: _one(row.opposite),
    ops.Abs: _one(row.absolute),
    ops.Floor: _one(row.rounded, "floor"),
    ops.Ceil: _one(row.rounded, "ceil"),
    ops.Cast: _Rebuilt.cast,
    ops.TryCast: _Rebuilt.cast,
    ops.Lowercase: _one(row.changed, "lower"),
    ops.Uppercase: _one(row.changed, "upper"),
    ops.Strip: _one(row.changed, "strip"),
    ops.StringLength: _one(row.length),
    ops.StartsWith: _search("startswith", "start"),
    ops.EndsWith: _search("endswith", "end"),
    ops.StringContains: _search("contains", "needle"),
    ops.StringConcat: lambda self, node: row.joined(self.columns(node.arg)),
    ops.StringSQLLike: _Rebuilt.like,
    ops.StringSQLILike: _Rebuilt.like,
    ops.Substring: lambda self, node: row.slice_of(
        self.column(node.arg), self.whole(node.start), None if node.length is None else self.whole(node.length)
    ),
    ops.StrRight: lambda self, node: row.right(self.column(node.arg), self.whole(node.nchars)),
    ops.ExtractYear: _part("year"),
    ops.ExtractQuarter: _part("quarter"),
    ops.ExtractMonth: _part("month"),
    ops.ExtractDay: _part("day"),
    ops.ExtractHour: _part("hour"),
    ops.ExtractMinute: _part("minute"),
    ops.ExtractSecond: _part("second"),
    ops.DayOfWeekIndex: _part("weekday"),
    ops.DateTruncate: _Rebuilt.unit,
    ops.TimestampTruncate: _Rebuilt.unit,
    ops.Date: lambda self, node: row.cast(row.a_moment(self.column(node.arg)), "date"),
    ops.Strftime: lambda self, node: row.formatted(self.column(node.arg), self.plain(node.format_str)),
}
