"""Expressions of one row: filters and computed items, as SQL text or as Ibis expressions.

A filter must decide over each row by that row alone: if one user's rows could decide which rows of others are kept,
the bound on one user's contribution would be worth nothing (docs/proofs/filters.md). So SQL text is not handed to the
engine. It is parsed, and every node is either translated to Ibis by a rule below or refused: there is no rule for
aggregates, windows, subqueries or functions that are not listed. Ibis expressions are searched for the same.

An expression must not fail on some rows either, since then whether a release comes out would depend on them. A cast
that cannot be done, a division by zero, or an integer that may not fit 64 bits gives null. Types are checked here, so
the engine converts nothing on its own. In an Ibis expression, casts are made to give null; for the rest, the caller
answers.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import ibis
import ibis.expr.operations as ops
import ibis.expr.types as ir
import sqlglot
from ibis.common.annotations import ValidationError
from ibis.common.deferred import Deferred
from sqlglot import exp

from ..errors import InvalidArgument, InvalidTable
from .engine import Engine
from .kinds import moment

__all__ = ["Expression", "columns_of", "evaluate", "parse"]

Expression = str | Deferred | ir.Value | Callable[[ir.Table], ir.Value]
"""SQL text, or an Ibis expression: of the table, deferred (`ibis._.day`), or a function of the table."""

Tree = Any
"""A node of sqlglot's syntax tree."""

_WIDE, _NARROW, _EXACT = 2**62, 2**31, 2**52
_SPECIAL = ("symmetric", "zone", "truncate", "collation", "position")
"""Clauses that change what a node means and that no rule knows."""
_PARTS = ("year", "quarter", "month", "day", "hour", "minute", "second")
_UNITS = {"YEAR": "Y", "QUARTER": "Q", "MONTH": "M", "WEEK": "W", "DAY": "D", "HOUR": "h", "MINUTE": "m", "SECOND": "s"}
_DIRECTIVES = "YmdHMSyj"


def parse(text: str, role: str) -> Tree:
    """SQL text as a tree, or an error that says where it does not parse. The text is public."""
    try:
        found = [tree for tree in sqlglot.parse(text, dialect="duckdb") if tree is not None]
    except (sqlglot.errors.SqlglotError, RecursionError) as error:
        where = ""
        if isinstance(error, sqlglot.errors.ParseError) and error.errors:
            where = f" at column {error.errors[0].get('col')}"
        raise InvalidArgument(f"{role}={text!r} does not parse as an SQL expression{where}.") from None
    if len(found) != 1:
        raise InvalidArgument(f"{role}={text!r}: needs one SQL expression, such as \"country = 'DE'\".")
    if type(found[0]) not in _RULES:
        raise _refused(role, text, found[0])
    return found[0]


def columns_of(tree: Tree) -> list[str]:
    """The columns that a tree names, each once."""
    return list(dict.fromkeys(column.name for column in tree.find_all(exp.Column)))


def evaluate(expression: object, engine: Engine, table: ir.Table, role: str) -> Any:
    """The expression as an Ibis column of `table`, checked to be one of single rows."""
    if isinstance(expression, str):
        return _Translator(engine, table, role, expression).column(parse(expression, role))
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
            raise InvalidArgument(f"{role}: the table has no column {asked[1]!r}. Check the name.") from None
        raise InvalidArgument(
            f"{role} cannot be built of the table's columns ({type(error).__name__}). Check names and types."
        ) from None
    if not isinstance(value, ir.Value):
        raise InvalidArgument(
            f"{role} is a {type(value).__name__}: needs SQL text, or an Ibis expression of the table's columns."
        )
    return _checked(value, table, role)


# --- Ibis expressions

_REFUSED: dict[str, tuple[type, ...]] = {
    "an aggregate": (ops.Reduction,),
    "a window function": (ops.Analytic, ops.WindowFunction),
    "a subquery": (ops.Subquery, ops.Relation),
    "a function of its own or of chance": (ops.Impure, ops.AggUDF),
    "a row's number": (ops.RowID,),
    "more rows than one": (ops.Unnest,),
}


def _checked(value: Any, table: ir.Table, role: str) -> Any:
    """`value` if each of its rows depends on that row of `table` alone; its casts give null where they fail."""
    todo, seen = [value.op()], set()
    while todo:
        node = todo.pop()
        if node in seen:
            continue
        seen.add(node)
        if isinstance(node, ops.Field):
            if node.rel != table.op():
                raise InvalidArgument(f"{role} uses a column of another table. Use columns of the given table only.")
            continue
        for what, kinds in _REFUSED.items():
            if isinstance(node, kinds):
                raise InvalidArgument(_row_wise(role, f"holds {what} ({type(node).__name__})"))
        todo.extend(node.__children__)

    def soften(node: Any, kwargs: Any) -> Any:
        made = node.__recreate__(kwargs) if kwargs else node
        return ops.TryCast(made.arg, made.to) if type(made) is ops.Cast else made

    return value.op().replace(soften, filter=ops.Value).to_expr()


def _refused(role: str, text: str, tree: Tree) -> InvalidArgument:
    if tree.find(exp.AggFunc, exp.Window, exp.Query):
        return InvalidArgument(_row_wise(f"{role}={text!r}", f"holds {_shown(tree)}"))
    return InvalidArgument(f"{role}={text!r} holds {_shown(tree)}, which is not among what may be used: {_FUNCTIONS}.")


def _row_wise(role: str, what: str) -> str:
    return (
        f"{role} {what}: it needs to look at one row at a time, so that no user's rows decide over another's. "
        "Use comparisons, arithmetic and functions of the row's own columns."
    )


# --- SQL text


class _Translator:
    """From an SQL tree to an Ibis column. What has no rule is refused."""

    def __init__(self, engine: Engine, table: ir.Table, role: str, text: str) -> None:
        self._engine, self._table, self._role, self._text = engine, table, role, text
        self._types = dict(table.schema().items())

    def column(self, tree: Tree) -> Any:
        rule = _RULES.get(type(tree))
        if rule is None or any(tree.args.get(name) for name in _SPECIAL):
            raise self._refused(tree)
        try:
            return rule(self, tree)
        except RecursionError:
            raise InvalidArgument(f"{self._role}: the expression is nested too deeply.") from None
        except (AttributeError, TypeError, ValidationError, ibis.common.exceptions.IbisError):
            pass  # the types do not fit: said below, in our words
        raise self._misfit(tree)

    def _refused(self, tree: Tree) -> InvalidArgument:
        return _refused(self._role, self._text, tree)

    def _misfit(self, tree: Tree) -> InvalidArgument:
        kinds = {c.name: str(self._types[c.name]) for c in tree.find_all(exp.Column) if c.name in self._types}
        named = ", ".join(f"{name} is {kind}" for name, kind in kinds.items()) or "constants only"
        return InvalidArgument(
            f"{self._role}={self._text!r}: the types in {_shown(tree)} do not fit together ({named}). Cast one of them."
        )

    def _need(self, tree: Tree, fits: bool) -> None:
        if not fits:
            raise self._misfit(tree)

    def name(self, tree: Tree) -> Any:
        if tree.args.get("table") is not None or not isinstance(tree.this, exp.Identifier):
            raise InvalidArgument(
                f"{self._role}={self._text!r}: {_shown(tree)} needs to be the plain name of a column."
            )
        if tree.name not in self._types:
            raise InvalidTable(f"{self._role}={self._text!r}: the table has no column {tree.name!r}.")
        column: Any = self._table[tree.name]
        kind = column.type()
        if kind.is_string():
            return self._engine.exact(column)
        if kind.is_uuid():
            return column.cast("string")
        if kind.is_date() or kind.is_timestamp():
            return moment(column)
        return column.try_cast("float64") if kind.is_decimal() or kind.is_floating() else column

    def literal(self, tree: Tree) -> Any:
        text = tree.name
        if tree.is_string:
            return ibis.literal(text, "string")
        if re.fullmatch(r"[0-9]{1,19}", text) and int(text) < 2**63:
            return ibis.literal(int(text), "int64")
        return ibis.literal(float(text), "float64")

    def pair(self, tree: Tree, left: Tree, right: Tree) -> tuple[Any, Any]:
        """Two sides that can be compared: a quoted constant takes the type of the other side."""
        one, other = self.column(left), self.column(right)
        if _is_text(left) and not _is_text(right):
            one = self._as_type(left, other)
        elif _is_text(right) and not _is_text(left):
            other = self._as_type(right, one)
        if {_family(one), _family(other)} == {"date", "timestamp"}:
            one, other = (side.try_cast("timestamp(6)") if _family(side) == "date" else side for side in (one, other))
        self._need(tree, _family(one) == _family(other) or "null" in (_family(one), _family(other)))
        return one, other

    def _as_type(self, text: Tree, other: Any) -> Any:
        """A quoted constant, in the type of what it is compared with: read here, where a mistake can be named."""
        value, family = text.name, _family(other)
        try:
            if family == "date":
                time = datetime.datetime.fromisoformat(value)
                is_date = time == datetime.datetime(time.year, time.month, time.day)
                return ibis.literal(time.date() if is_date else time, "date" if is_date else "timestamp(6)")
            if family == "timestamp":
                time = datetime.datetime.fromisoformat(value)
                time = time if time.tzinfo is None else time.astimezone(datetime.UTC).replace(tzinfo=None)
                return ibis.literal(time, "timestamp(6)")
            if family == "number":
                return self.column(exp.Literal.number(value.strip() or "empty"))
        except ValueError:
            raise InvalidArgument(
                f"{self._role}={self._text!r}: {value!r} is compared with a {other.type()} and cannot be read as one."
            ) from None
        return ibis.literal(value, "string")

    def compare(self, tree: Tree) -> Any:
        one, other = self.pair(tree, tree.left, tree.right)
        acts: dict[type, Callable[[], Any]] = {
            exp.EQ: lambda: one == other,
            exp.NEQ: lambda: one != other,
            exp.LT: lambda: one < other,
            exp.LTE: lambda: one <= other,
            exp.GT: lambda: one > other,
            exp.GTE: lambda: one >= other,
            exp.NullSafeEQ: lambda: one.identical_to(other),
            exp.NullSafeNEQ: lambda: ~one.identical_to(other),
        }
        return acts[type(tree)]()

    def boolean(self, tree: Tree) -> Any:
        value = self.column(tree)
        self._need(tree, value.type().is_boolean() or value.type().is_null())
        return value.cast("boolean") if value.type().is_null() else value

    def logic(self, tree: Tree) -> Any:
        # `a and b and c ...` leans to the left: walked in a loop, so that a long filter does not nest deeply.
        parts = [self.boolean(part) for part in tree.flatten(unnest=False)]
        value = parts[0]
        for part in parts[1:]:
            value = value & part if isinstance(tree, exp.And) else value | part
        return value

    def is_(self, tree: Tree) -> Any:
        if isinstance(tree.expression, exp.Null):
            return self.column(tree.this).isnull()
        if isinstance(tree.expression, exp.Boolean):
            return self.boolean(tree.this).identical_to(ibis.literal(tree.expression.this))
        raise self._refused(tree)

    def among(self, tree: Tree) -> Any:
        if tree.args.get("query") is not None or tree.args.get("unnest") is not None or not tree.expressions:
            raise self._refused(tree)
        pairs = [self.pair(tree, tree.this, value) for value in tree.expressions]
        if all(isinstance(other.op(), ops.Literal) for _, other in pairs):
            return pairs[0][0].isin([other for _, other in pairs])
        value = pairs[0][0] == pairs[0][1]
        for one, other in pairs[1:]:
            value = value | (one == other)
        return value

    def between(self, tree: Tree) -> Any:
        low, high = (self.pair(tree, tree.this, tree.args[end]) for end in ("low", "high"))
        return (low[0] >= low[1]) & (high[0] <= high[1])

    def like(self, tree: Tree) -> Any:
        self._need(tree, _is_text(tree.expression))
        value, pattern = self.text(tree.this), tree.expression.name
        return value.ilike(pattern) if isinstance(tree, exp.ILike) else value.like(pattern)

    def text(self, tree: Tree) -> Any:
        value = self.column(tree)
        self._need(tree, value.type().is_string())
        return value

    def whole(self, tree: Tree, least: int = 0) -> int:
        """A constant whole number."""
        if not (isinstance(tree, exp.Literal) and not tree.is_string and re.fullmatch(r"[0-9]{1,9}", tree.name)):
            raise InvalidArgument(f"{self._role}={self._text!r}: lengths and places need to be whole numbers.")
        if int(tree.name) < least:
            raise InvalidArgument(f"{self._role}={self._text!r}: {tree.name} needs to be at least {least}.")
        return int(tree.name)

    def arithmetic(self, tree: Tree) -> Any:
        one, other = self.column(tree.left), self.column(tree.right)
        self._need(tree, _family(one) == _family(other) == "number")
        kind = type(tree)
        if kind is exp.Div or not (one.type().is_integer() and other.type().is_integer()):
            self._need(tree, kind in (exp.Add, exp.Sub, exp.Mul, exp.Div))
            one, other = one.cast("float64"), other.cast("float64")
            acts: Mapping[Any, Any] = {exp.Add: one + other, exp.Sub: one - other, exp.Mul: one * other}
            return acts[kind] if kind in acts else one / other.nullif(0.0)
        bound = {exp.Mul: _NARROW, exp.IntDiv: _EXACT}.get(kind, _WIDE)
        one, other = _bounded(one, bound), _bounded(other, bound)
        if kind in (exp.Mod, exp.IntDiv):
            other = other.nullif(0)
            return one % other if kind is exp.Mod else (one // other).cast("int64")
        return {exp.Add: one + other, exp.Sub: one - other, exp.Mul: one * other}[kind]

    def negative(self, tree: Tree) -> Any:
        value = self.column(tree.this)
        self._need(tree, _family(value) == "number")
        value = _bounded(value, _WIDE) if value.type().is_integer() else value
        return -value if isinstance(tree, exp.Neg) else value.abs()

    def rounded(self, tree: Tree) -> Any:
        self._need(tree, tree.args.get("decimals") is None and tree.args.get("to") is None)
        value = self.column(tree.this)
        self._need(tree, _family(value) == "number")
        if value.type().is_integer():
            return value
        value = _within(value, float(_EXACT))
        acts = {exp.Floor: value.floor, exp.Ceil: value.ceil, exp.Round: value.round}
        return acts[type(tree)]().cast("int64")

    def branches(self, tree: Tree) -> Any:
        arms = []
        for arm in tree.args["ifs"]:
            if tree.this is None:
                condition = self.boolean(arm.this)
            else:
                one, other = self.pair(tree, tree.this, arm.this)
                condition = one == other
            arms.append((condition, self.column(arm.args["true"])))
        default = tree.args.get("default")
        last = ibis.null() if default is None else self.column(default)
        self._need(tree, len({_family(value) for value in (*(v for _, v in arms), last)} - {"null"}) <= 1)
        return ibis.cases(*arms, else_=last)

    def either(self, tree: Tree) -> Any:
        otherwise = tree.args.get("false")
        one, other = self.column(tree.args["true"]), ibis.null() if otherwise is None else self.column(otherwise)
        self._need(tree, len({_family(one), _family(other)} - {"null"}) <= 1)
        return ibis.ifelse(self.boolean(tree.this), one, other)

    def several(self, tree: Tree) -> Any:
        values = [self.column(part) for part in (tree.this, *tree.expressions)]
        self._need(tree, len({_family(value) for value in values} - {"null"}) <= 1)
        acts: dict[type, Any] = {exp.Coalesce: ibis.coalesce, exp.Greatest: ibis.greatest, exp.Least: ibis.least}
        return acts[type(tree)](*values)

    def null_if(self, tree: Tree) -> Any:
        one, other = self.pair(tree, tree.this, tree.expression)
        return one.nullif(other)

    def joined(self, tree: Tree) -> Any:
        if isinstance(tree, exp.DPipe):
            return self.text(tree.this) + self.text(tree.expression)
        parts = [self.text(part).fill_null("") for part in tree.expressions]  # concat passes over nulls, || does not
        value = parts[0]
        for part in parts[1:]:
            value = value + part
        return value

    def cast(self, tree: Tree) -> Any:
        self._need(tree, not (tree.args.get("format") or tree.args.get("default")))
        value, kind = self.column(tree.this), tree.to.this
        D, source = exp.DataType.Type, value.type()
        if kind in exp.DataType.TEXT_TYPES:
            return value.cast("string")
        if kind in exp.DataType.INTEGER_TYPES:
            # Engines differ in how they round, and in what text they take for a number.
            self._need(tree, source.is_integer() or source.is_string() or source.is_boolean())
            if source.is_string():
                value = ibis.ifelse(value.re_search(r"^\s*[+-]?[0-9]{1,18}\s*$"), value.strip(), ibis.null("string"))
            return value.try_cast("int64")
        if kind == D.DATE:
            self._need(tree, source.is_string() or source.is_temporal())
            return value.date() if source.is_timestamp() else moment(value.try_cast("date"))
        if kind in (D.TIMESTAMP, D.TIMESTAMPNTZ, D.DATETIME):
            self._need(tree, source.is_string() or source.is_temporal())
            return moment(value.try_cast("timestamp(6)"))
        if kind in (D.DOUBLE, D.FLOAT):
            self._need(tree, source.is_string() or _family(value) == "number")
            return value.try_cast("float64")
        if kind == D.BOOLEAN:
            self._need(tree, source.is_string() or source.is_integer() or source.is_boolean())
            return value.try_cast("boolean")
        raise InvalidArgument(
            f"{self._role}={self._text!r}: cannot cast to {tree.to.sql()}. Use text, bigint, double, boolean, date or "
            "timestamp."
        )

    def moment(self, tree: Tree) -> Any:
        value = self.column(tree)
        self._need(tree, value.type().is_date() or value.type().is_timestamp())
        return value

    def truncated(self, tree: Tree) -> Any:
        unit = _UNITS.get(tree.args["unit"].name.upper())
        if unit is None:
            raise InvalidArgument(f"{self._role}={self._text!r}: date_trunc needs one of {', '.join(_UNITS).lower()}.")
        value = self.moment(tree.this)
        # Engines make a timestamp of a truncated date; what was a date stays one.
        fine = value.try_cast("timestamp(6)").truncate(unit)
        return fine.date() if value.type().is_date() and unit in "YQMWD" else fine

    def part(self, tree: Tree) -> Any:
        name = tree.this.name.lower() if isinstance(tree, exp.Extract) else type(tree).__name__.lower()
        operand = tree.expression if isinstance(tree, exp.Extract) else tree.this
        value = self.moment(operand)
        if name in ("dayofweek", "dow", "isodow", "dayofweekiso"):
            monday_first = value.day_of_week.index().cast("int64")  # 0 is Monday
            return (monday_first + 1) % 7 if name in ("dayofweek", "dow") else monday_first + 1
        if name not in _PARTS:
            raise self._refused(tree)
        self._need(tree, name not in ("hour", "minute", "second") or value.type().is_timestamp())
        return getattr(value, name)().cast("int64")

    def formatted(self, tree: Tree) -> Any:
        pattern = tree.args["format"]
        self._need(tree, _is_text(pattern))
        if re.sub(f"%[{_DIRECTIVES}]", "", pattern.name).count("%"):
            allowed = ", ".join(f"%{one}" for one in _DIRECTIVES)
            raise InvalidArgument(f"{self._role}={self._text!r}: strftime takes {allowed} and plain text.")
        return self.moment(tree.this).strftime(pattern.name)

    def slice(self, tree: Tree) -> Any:
        value = self.text(tree.this)
        if isinstance(tree, exp.Left | exp.Right):
            length = self.whole(tree.expression)
            return value.left(length) if isinstance(tree, exp.Left) else value.right(length)
        start, length_ = self.whole(tree.args.get("start"), 1) - 1, tree.args.get("length")
        return value.substr(start) if length_ is None else value.substr(start, self.whole(length_))

    def piece(self, tree: Tree) -> Any:
        delimiter = tree.args["delimiter"]
        self._need(tree, _is_text(delimiter) and delimiter.name != "")
        place = self.whole(tree.args["part_index"], 1)
        pieces = self.text(tree.this).split(delimiter.name)
        return ibis.ifelse(pieces.length() >= place, pieces[place - 1], ibis.null("string"))


def _rule(act: Callable[[Any], Any]) -> Callable[[_Translator, Any], Any]:
    """A rule for a function of one text, and nothing else."""

    def rule(self: _Translator, tree: Any) -> Any:
        if any(value for name, value in tree.args.items() if name != "this"):
            raise self._refused(tree)
        return act(self.text(tree.this))

    return rule


def _search(act: Callable[[Any, Any], Any]) -> Callable[[_Translator, Any], Any]:
    """A rule for a function of two texts."""
    return lambda self, tree: act(self.text(tree.this), self.text(tree.expression))


_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ)
_RULES: dict[type, Callable[[_Translator, Any], Any]] = {
    exp.Column: _Translator.name,
    exp.Literal: _Translator.literal,
    exp.Boolean: lambda _, tree: ibis.literal(bool(tree.this)),
    exp.Null: lambda *_: ibis.null(),
    exp.Paren: lambda self, tree: self.column(tree.this),
    **dict.fromkeys(_COMPARISONS, _Translator.compare),
    **dict.fromkeys((exp.And, exp.Or), _Translator.logic),
    exp.Not: lambda self, tree: ~self.boolean(tree.this),
    exp.Is: _Translator.is_,
    exp.In: _Translator.among,
    exp.Between: _Translator.between,
    **dict.fromkeys((exp.Like, exp.ILike), _Translator.like),
    **dict.fromkeys((exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod), _Translator.arithmetic),
    **dict.fromkeys((exp.Neg, exp.Abs), _Translator.negative),
    **dict.fromkeys((exp.Floor, exp.Ceil, exp.Round), _Translator.rounded),
    exp.Case: _Translator.branches,
    exp.If: _Translator.either,
    **dict.fromkeys((exp.Coalesce, exp.Greatest, exp.Least), _Translator.several),
    exp.Nullif: _Translator.null_if,
    **dict.fromkeys((exp.Concat, exp.DPipe), _Translator.joined),
    **dict.fromkeys((exp.Cast, exp.TryCast), _Translator.cast),
    **dict.fromkeys((exp.TimestampTrunc, exp.DateTrunc), _Translator.truncated),
    **dict.fromkeys(
        (
            exp.Extract,
            exp.Year,
            exp.Quarter,
            exp.Month,
            exp.Day,
            exp.Hour,
            exp.Minute,
            exp.Second,
            exp.DayOfWeek,
            exp.DayOfWeekIso,
        ),
        _Translator.part,
    ),
    exp.TimeToStr: _Translator.formatted,
    **dict.fromkeys((exp.Substring, exp.Left, exp.Right), _Translator.slice),
    exp.SplitPart: _Translator.piece,
    exp.Lower: _rule(lambda text: text.lower()),
    exp.Upper: _rule(lambda text: text.upper()),
    exp.Trim: _rule(lambda text: text.strip()),
    exp.Length: _rule(lambda text: text.length().cast("int64")),
    exp.StartsWith: _search(lambda text, part: text.startswith(part)),
    exp.EndsWith: _search(lambda text, part: text.endswith(part)),
    exp.Contains: _search(lambda text, part: text.contains(part)),
}
_FUNCTIONS = (
    "comparisons, and, or, not, in, between, is null, like, ilike, + - * / // %, ||, case, if, coalesce, nullif, "
    "greatest, least, abs, floor, ceil, round, cast, date_trunc, extract, year, quarter, month, day, hour, minute, "
    "second, dayofweek, isodow, strftime, lower, upper, trim, length, left, right, substring, split_part, starts_with, "
    "ends_with, contains"
)


def _shown(tree: Tree) -> str:
    return repr(tree.sql(dialect="duckdb", comments=False)[:60])


def _is_text(tree: Tree) -> bool:
    return isinstance(tree, exp.Literal) and bool(tree.is_string)


def _family(value: Any) -> str:
    kind = value.type()
    if kind.is_numeric() and not kind.is_boolean():
        return "number"
    families: Sequence[str] = ("string", "boolean", "date", "timestamp", "null")
    return next((name for name in families if getattr(kind, f"is_{name}")()), str(kind))


def _within(value: Any, bound: Any) -> Any:
    return ibis.ifelse((value >= -bound) & (value <= bound), value, ibis.null(value.type()))


def _bounded(value: Any, bound: int) -> Any:
    """An integer as a 64-bit one; null beyond the bound within which the next operation cannot overflow."""
    return _within(value, bound).cast("int64")
