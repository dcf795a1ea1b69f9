"""SQL text as an expression of one row: a rule for every node that may be used.

One language for all engines: DuckDB's names and meanings, whatever holds the table.
"""

from __future__ import annotations

import datetime
import logging
import operator
import re
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import ibis
import sqlglot
from ibis.common.annotations import ValidationError
from sqlglot import exp

from ..errors import InvalidArgument, InvalidTable
from . import row_functions as row
from .engines import Engine
from .roles import Role, check_unicode

if TYPE_CHECKING:
    import ibis.expr.types as ir

__all__ = ["ALLOWED", "Tree", "columns_of", "parse", "row_wise", "statements", "translate"]

Tree = Any
"""A node of sqlglot's syntax tree."""

ALLOWED = (
    "comparisons, and, or, not, in, between, is null, like, ilike, + - * / // %, ||, case, if, coalesce, nullif, "
    "greatest, least, abs, floor, ceil, round, cast, date_trunc, extract, year, quarter, month, day, hour, minute, "
    "second, dayofweek, isodow, strftime, lower, upper, trim, length, left, right, substring, split_part, starts_with, "
    "ends_with, contains"
)

_SPECIAL = ("symmetric", "zone", "truncate", "collation", "position")
"""Clauses that change what a node means and that no rule knows."""


def parse(text: str, role: Role) -> Tree:
    """SQL text as a tree, or an error that says where it does not parse. The text is public."""
    try:
        found = statements(text, role)
    except (sqlglot.errors.SqlglotError, RecursionError) as error:
        where = ""
        if isinstance(error, sqlglot.errors.ParseError) and error.errors:
            where = f" at column {error.errors[0].get('col')}"
        raise InvalidArgument(
            f"{role}={text!r}: does not parse as an SQL expression{where}.", argument=role.argument
        ) from None
    if len(found) != 1:
        raise InvalidArgument(
            f"{role}={text!r}: needs one SQL expression, such as \"country = 'DE'\".", argument=role.argument
        )
    if type(found[0]) not in _RULES:
        raise _refused(role, text, found[0])
    return found[0]


def statements(text: str, role: Role) -> list[Tree]:
    """The syntax trees of SQL text, parsed without a word of sqlglot, which logs text that it does not know."""
    check_unicode(text, role)
    _here.parsing = True
    try:
        return [tree for tree in sqlglot.parse(text, dialect="duckdb") if tree is not None]
    finally:
        _here.parsing = False


_here = threading.local()
logging.getLogger("sqlglot").addFilter(lambda _: not getattr(_here, "parsing", False))


def columns_of(tree: Tree) -> list[str]:
    """The columns that a tree names, each once."""
    return list(dict.fromkeys(column.name for column in tree.find_all(exp.Column)))


def translate(tree: Tree, engine: Engine, table: ir.Table, role: Role, text: str) -> Any:
    """A tree of the SQL text as a column of `table`, made of `row_functions`."""
    return _Translator(engine, table, role, text).column(tree)


def row_wise(shown: str, what: str) -> str:
    return (
        f"{shown}: {what}, and needs to look at one row at a time, so that no user's rows decide over another's. "
        "Use comparisons, arithmetic and functions of the row's own columns."
    )


def _refused(role: Role, text: str, tree: Tree) -> InvalidArgument:
    if tree.find(exp.AggFunc, exp.Window, exp.Query):
        return InvalidArgument(row_wise(f"{role}={text!r}", f"holds {_shown(tree)}"), argument=role.argument)
    return InvalidArgument(
        f"{role}={text!r}: holds {_shown(tree)}, and needs to be made of {ALLOWED}.", argument=role.argument
    )


class _Translator:
    """From an SQL tree to a column. What has no rule is refused."""

    def __init__(self, engine: Engine, table: ir.Table, role: Role, text: str) -> None:
        self._engine, self._table, self._role, self._text = engine, table, role, text
        self._types = dict(table.schema().items())

    def column(self, tree: Tree) -> Any:
        rule = _RULES.get(type(tree))
        if rule is None or any(tree.args.get(name) for name in _SPECIAL):
            raise self._refused(tree)
        try:
            return rule(self, tree)
        except RecursionError:
            raise InvalidArgument(
                f"{self._role}: is nested too deeply. Make a column of a part of it first.",
                argument=self._role.argument,
            ) from None
        except (row.Misfit, AttributeError, TypeError, ValidationError, ibis.common.exceptions.IbisError):
            pass  # the types do not fit: said below, in our words
        kinds = {c.name: str(self._types[c.name]) for c in tree.find_all(exp.Column) if c.name in self._types}
        named = ", ".join(f"{name} is {kind}" for name, kind in kinds.items()) or "constants only"
        raise self._wrong(f"the types in {_shown(tree)} do not fit together ({named}). Cast one of them.")

    def columns(self, trees: Any) -> list[Any]:
        return [self.column(tree) for tree in trees]

    def _refused(self, tree: Tree) -> InvalidArgument:
        return _refused(self._role, self._text, tree)

    def _wrong(self, what: str) -> InvalidArgument:
        return InvalidArgument(f"{self._role}={self._text!r}: {what}", argument=self._role.argument)

    def name(self, tree: Tree) -> Any:
        if tree.args.get("table") is not None or not isinstance(tree.this, exp.Identifier):
            raise self._wrong(f"{_shown(tree)} needs to be the plain name of a column.")
        if tree.name not in self._types:
            raise InvalidTable(f"{self._role}={self._text!r}: the table has no column {tree.name!r}.", column=tree.name)
        return row.read(self._engine, self._table[tree.name])

    def literal(self, tree: Tree) -> Any:
        if tree.is_string:
            return row.constant(tree.name, "string")
        if re.fullmatch(r"[0-9]{1,19}", tree.name) and int(tree.name) < 2**63:
            return row.constant(int(tree.name), "integer")
        return row.constant(float(tree.name), "real")

    def pair(self, left: Tree, right: Tree) -> tuple[Any, Any]:
        """Two sides that are compared: a quoted constant takes the type of the other side."""
        one, other = self.column(left), self.column(right)
        if _is_text(left) and not _is_text(right):
            one = self._as_type(left, other)
        elif _is_text(right) and not _is_text(left):
            other = self._as_type(right, one)
        return one, other

    def _as_type(self, text: Tree, other: Any) -> Any:
        """A quoted constant, in the type of what it is compared with: read here, where a mistake can be named."""
        value, to = text.name, row.type_of(other)
        try:
            if to in row.MOMENTS:
                time = datetime.datetime.fromisoformat(value)
                if to == "date" and time == datetime.datetime(time.year, time.month, time.day):
                    return row.constant(time.date(), "date")
                time = time if time.tzinfo is None else time.astimezone(datetime.UTC).replace(tzinfo=None)
                return row.constant(time, "timestamp")
            if to in row.NUMBERS:
                return self.column(exp.Literal.number(value.strip() or "empty"))
        except (ValueError, OverflowError):
            raise self._wrong(f"{value!r} is compared with a {other.type()} and cannot be read as one.") from None
        return row.constant(value, "string")

    def compare(self, tree: Tree) -> Any:
        return _COMPARISONS[type(tree)](*self.pair(tree.left, tree.right))

    def logic(self, tree: Tree) -> Any:
        # `a and b and c ...` leans to the left: walked in a loop, so that a long filter does not nest deeply.
        parts = self.columns(tree.flatten(unnest=False))
        return row.every(parts, operator.and_ if isinstance(tree, exp.And) else operator.or_)

    def is_(self, tree: Tree) -> Any:
        if isinstance(tree.expression, exp.Null):
            return row.is_null(self.column(tree.this))
        if isinstance(tree.expression, exp.Boolean):
            return row.same(row.condition(self.column(tree.this)), self.column(tree.expression))
        raise self._refused(tree)

    def among(self, tree: Tree) -> Any:
        if tree.args.get("query") is not None or tree.args.get("unnest") is not None or not tree.expressions:
            raise self._refused(tree)
        pairs = [self.pair(tree.this, value) for value in tree.expressions]
        return row.among(pairs[0][0], [other for _, other in pairs])

    def between(self, tree: Tree) -> Any:
        low, high = (self.pair(tree.this, tree.args[end]) for end in ("low", "high"))
        return row.every([row.compare(operator.ge, *low), row.compare(operator.le, *high)])

    def like(self, tree: Tree) -> Any:
        pattern = self.plain(tree.expression)
        return row.like(self._engine, self.column(tree.this), pattern, fold=isinstance(tree, exp.ILike))

    def plain(self, tree: Tree) -> str:
        """A constant text."""
        row.need(_is_text(tree))
        return str(tree.name)

    def whole(self, tree: Tree, least: int = 0) -> int:
        """A constant whole number."""
        if not (isinstance(tree, exp.Literal) and not tree.is_string and re.fullmatch(r"[0-9]{1,9}", tree.name)):
            raise self._wrong("lengths and places need to be whole numbers.")
        if int(tree.name) < least:
            raise self._wrong(f"{tree.name} needs to be at least {least}.")
        return int(tree.name)

    def binary(self, tree: Tree) -> Any:
        return _ARITHMETIC[type(tree)](self.column(tree.left), self.column(tree.right))

    def rounded(self, tree: Tree) -> Any:
        row.need(tree.args.get("decimals") is None and tree.args.get("to") is None)
        return row.rounded(type(tree).__name__.lower(), self.column(tree.this))

    def branches(self, tree: Tree) -> Any:
        arms = []
        for arm in tree.args["ifs"]:
            if tree.this is None:
                condition = self.column(arm.this)
            else:
                condition = row.compare(operator.eq, *self.pair(tree.this, arm.this))
            arms.append((condition, self.column(arm.args["true"])))
        return row.choose(arms, self._or_null(tree.args.get("default")))

    def either(self, tree: Tree) -> Any:
        arm = self.column(tree.this), self.column(tree.args["true"])
        return row.choose([arm], self._or_null(tree.args.get("false")))

    def _or_null(self, tree: Tree | None) -> Any:
        return ibis.null() if tree is None else self.column(tree)

    def several(self, tree: Tree) -> Any:
        acts: dict[type, Any] = {exp.Coalesce: ibis.coalesce, exp.Greatest: ibis.greatest, exp.Least: ibis.least}
        return row.several(acts[type(tree)], self.columns((tree.this, *tree.expressions)))

    def joined(self, tree: Tree) -> Any:
        if isinstance(tree, exp.DPipe):
            return row.joined(self.columns(tree.flatten()))
        empty = row.constant("", "string")  # concat passes over nulls, || does not
        return row.joined(
            [row.several(ibis.coalesce, [row.text(part), empty]) for part in self.columns(tree.expressions)]
        )

    def cast(self, tree: Tree) -> Any:
        row.need(not (tree.args.get("format") or tree.args.get("default")))
        kind, T = tree.to.this, exp.DataType.Type
        kinds = {T.DATE: "date", T.TIMESTAMP: "timestamp", T.TIMESTAMPNTZ: "timestamp", T.DATETIME: "timestamp"}
        kinds |= {T.DOUBLE: "real", T.FLOAT: "real", T.BOOLEAN: "boolean"}
        kinds |= dict.fromkeys(exp.DataType.TEXT_TYPES, "string") | dict.fromkeys(exp.DataType.INTEGER_TYPES, "integer")
        if kind not in kinds:
            raise self._wrong(f"cannot cast to {tree.to.sql()}. Use text, bigint, double, boolean, date or timestamp.")
        return row.cast(self.column(tree.this), kinds[kind])

    def truncated(self, tree: Tree) -> Any:
        unit = tree.args["unit"].name.upper()
        if unit not in row.TRUNCATIONS:
            raise self._wrong(f"date_trunc needs one of {', '.join(row.TRUNCATIONS).lower()}.")
        return row.truncated(self.column(tree.this), unit)

    def part(self, tree: Tree) -> Any:
        name = tree.this.name.lower() if isinstance(tree, exp.Extract) else type(tree).__name__.lower()
        value = self.column(tree.expression if isinstance(tree, exp.Extract) else tree.this)
        if name in ("isodow", "dayofweekiso", "dayofweek", "dow"):
            one = row.constant(1, "integer")
            monday_is_1 = row.arithmetic(operator.add, row.part(value, "weekday"), one)
            return monday_is_1 if "iso" in name else row.remainder(monday_is_1, row.constant(7, "integer"))
        if name not in row.DATE_PARTS:
            raise self._refused(tree)
        return row.part(value, name)

    def formatted(self, tree: Tree) -> Any:
        pattern = self.plain(tree.args["format"])
        if re.sub(f"%[{row.DIRECTIVES}]", "", pattern).count("%"):
            allowed = ", ".join(f"%{one}" for one in row.DIRECTIVES)
            raise self._wrong(f"strftime takes {allowed} and plain text.")
        return row.formatted(self.column(tree.this), pattern)

    def slice(self, tree: Tree) -> Any:
        value = self.column(tree.this)
        if isinstance(tree, exp.Left):
            return row.slice_of(value, 0, self.whole(tree.expression))
        if isinstance(tree, exp.Right):
            return row.right(value, self.whole(tree.expression))
        length = tree.args.get("length")
        start = self.whole(tree.args.get("start"), 1) - 1
        return row.slice_of(value, start, None if length is None else self.whole(length))

    def piece(self, tree: Tree) -> Any:
        place = self.whole(tree.args["part_index"], 1)
        return row.piece(self.column(tree.this), self.plain(tree.args["delimiter"]), place)


_Rule = Callable[[_Translator, Any], Any]


def _alone(act: Callable[..., Any], *more: object) -> _Rule:
    """A rule for a function of one value, and nothing else."""

    def rule(self: _Translator, tree: Any) -> Any:
        if any(value for name, value in tree.args.items() if name != "this"):
            raise self._refused(tree)
        return act(*more, self.column(tree.this))

    return rule


def _search(act: str) -> _Rule:
    """A rule for a function of two texts."""
    return lambda self, tree: row.search(act, self.column(tree.this), self.column(tree.expression))


def _acting(function: Callable[..., Any], act: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda one, other: function(act, one, other)


_COMPARISONS: dict[type, Callable[[Any, Any], Any]] = {
    exp.EQ: _acting(row.compare, operator.eq),
    exp.NEQ: _acting(row.compare, operator.ne),
    exp.LT: _acting(row.compare, operator.lt),
    exp.LTE: _acting(row.compare, operator.le),
    exp.GT: _acting(row.compare, operator.gt),
    exp.GTE: _acting(row.compare, operator.ge),
    exp.NullSafeEQ: row.same,
    exp.NullSafeNEQ: lambda one, other: row.negated(row.same(one, other)),
}
_ARITHMETIC: dict[type, Callable[[Any, Any], Any]] = {
    exp.Add: _acting(row.arithmetic, operator.add),
    exp.Sub: _acting(row.arithmetic, operator.sub),
    exp.Mul: _acting(row.arithmetic, operator.mul),
    exp.Div: row.divided,
    exp.IntDiv: row.floor_divided,
    exp.Mod: row.remainder,
}
_PARTS = (exp.Extract, exp.Year, exp.Quarter, exp.Month, exp.Day, exp.Hour, exp.Minute, exp.Second)
_RULES: dict[type, _Rule] = {
    exp.Column: _Translator.name,
    exp.Literal: _Translator.literal,
    exp.Boolean: lambda _, tree: row.constant(bool(tree.this), "boolean"),
    exp.Null: lambda *_: ibis.null(),
    exp.Paren: lambda self, tree: self.column(tree.this),
    **dict.fromkeys(_COMPARISONS, _Translator.compare),
    **dict.fromkeys((exp.And, exp.Or), _Translator.logic),
    exp.Not: _alone(row.negated),
    exp.Is: _Translator.is_,
    exp.In: _Translator.among,
    exp.Between: _Translator.between,
    **dict.fromkeys((exp.Like, exp.ILike), _Translator.like),
    **dict.fromkeys(_ARITHMETIC, _Translator.binary),
    exp.Neg: _alone(row.opposite),
    exp.Abs: _alone(row.absolute),
    **dict.fromkeys((exp.Floor, exp.Ceil, exp.Round), _Translator.rounded),
    exp.Case: _Translator.branches,
    exp.If: _Translator.either,
    **dict.fromkeys((exp.Coalesce, exp.Greatest, exp.Least), _Translator.several),
    exp.Nullif: lambda self, tree: row.null_if(*self.pair(tree.this, tree.expression)),
    **dict.fromkeys((exp.Concat, exp.DPipe), _Translator.joined),
    **dict.fromkeys((exp.Cast, exp.TryCast), _Translator.cast),
    **dict.fromkeys((exp.TimestampTrunc, exp.DateTrunc), _Translator.truncated),
    **dict.fromkeys((*_PARTS, exp.DayOfWeek, exp.DayOfWeekIso), _Translator.part),
    exp.TimeToStr: _Translator.formatted,
    **dict.fromkeys((exp.Substring, exp.Left, exp.Right), _Translator.slice),
    exp.SplitPart: _Translator.piece,
    exp.Lower: _alone(row.changed, "lower"),
    exp.Upper: _alone(row.changed, "upper"),
    exp.Trim: _alone(row.changed, "strip"),
    exp.Length: _alone(row.length),
    exp.StartsWith: _search("startswith"),
    exp.EndsWith: _search("endswith"),
    exp.Contains: _search("contains"),
}


def _shown(tree: Tree) -> str:
    written = tree.sql(dialect="duckdb", comments=False, unsupported_level=sqlglot.ErrorLevel.IGNORE)
    return repr(written[:60])


def _is_text(tree: Tree) -> bool:
    return isinstance(tree, exp.Literal) and bool(tree.is_string)
