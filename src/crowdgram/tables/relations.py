"""Queries of kept tables, as SQL text that is written at once: what statistics are made of.

They need a few dozen functions of two engines, of columns that this package named itself. To write these in Ibis took a
small release longer than to run them, most of it to load Ibis. So it is for what users bring: their tables, filters and
expressions (`rows`).

Whole numbers are 64-bit integers, all others doubles. What an engine sums in a wider type has that type until the table
is kept or fetched, where it is cast (`Relation.typed`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

__all__ = [
    "Dialect",
    "Relation",
    "Value",
    "coalesce",
    "concat",
    "greatest",
    "ifelse",
    "least",
    "literal",
    "null",
    "row_number",
]

INTEGER, REAL, TEXT, TRUTH = pa.int64(), pa.float64(), pa.string(), pa.bool_()
_TYPES = {"int64": INTEGER, "float64": REAL, "string": TEXT}


@dataclass(frozen=True)
class Dialect:
    """How an engine writes what engines write differently. Places for values are `{}`.

    quote: around names. types: what it calls numbers and text. quotient: of whole numbers that are not negative,
    rounded down. numbers: 0, 1, ... below a positive one, each in a row of its own. hexadecimal: the integer that
    hexadecimal digits write.
    """

    quote: str
    types: Mapping[pa.DataType, str]
    quotient: str
    numbers: str
    hexadecimal: str

    def name(self, name: str) -> str:
        return self.quote + name.replace(self.quote, 2 * self.quote) + self.quote

    def type(self, kind: pa.DataType) -> str | None:
        """What a number of this type is cast to; None for anything else."""
        if pa.types.is_decimal(kind):
            return f"DECIMAL({kind.precision}, {kind.scale})"
        return None if kind == TEXT else self.types.get(kind)


@dataclass(frozen=True, eq=False)
class Value:
    """An expression of the columns of one relation."""

    sql: str
    type: pa.DataType
    dialect: Dialect | None = None

    def __add__(self, other: Any) -> Value:
        return self._with("+", other)

    def __radd__(self, other: Any) -> Value:
        return literal(other)._with("+", self)

    def __sub__(self, other: Any) -> Value:
        return self._with("-", other)

    def __rsub__(self, other: Any) -> Value:
        return literal(other)._with("-", self)

    def __mul__(self, other: Any) -> Value:
        return self._with("*", other)

    def __rmul__(self, other: Any) -> Value:
        return literal(other)._with("*", self)

    def __mod__(self, other: Any) -> Value:
        return self._with("%", other)

    def __truediv__(self, other: Any) -> Value:
        """Of doubles: engines differ in how they divide integers."""
        by = _value(other)
        assert self.type == by.type == REAL
        return self._with("/", by)

    def __rtruediv__(self, other: Any) -> Value:
        return literal(other) / self

    def __floordiv__(self, other: Any) -> Value:
        """Of whole numbers that are not negative, rounded down."""
        by = _value(other)
        assert self.type == by.type == INTEGER
        dialect = self.dialect or by.dialect
        assert dialect is not None
        return Value(dialect.quotient.format(self.sql, by.sql), INTEGER, dialect)

    def __rfloordiv__(self, other: Any) -> Value:
        return literal(other) // self

    def __lt__(self, other: Any) -> Value:
        return self._with("<", other, TRUTH)

    def __le__(self, other: Any) -> Value:
        return self._with("<=", other, TRUTH)

    def __gt__(self, other: Any) -> Value:
        return self._with(">", other, TRUTH)

    def __ge__(self, other: Any) -> Value:
        return self._with(">=", other, TRUTH)

    def __eq__(self, other: Any) -> Value:  # type: ignore[override]
        return self._with("=", other, TRUTH)

    def __and__(self, other: Value) -> Value:
        return self._with("AND", other, TRUTH)

    def cast(self, to: str) -> Value:
        assert self.dialect is not None
        kind = _TYPES[to]
        return Value(f"CAST({self.sql} AS {self.dialect.types[kind]})", kind, self.dialect)

    def abs(self) -> Value:
        return self._of("ABS")

    def floor(self) -> Value:
        """Rounded down; Spark then has an integer, so it is cast before anything else."""
        return self._of("FLOOR")

    def sqrt(self) -> Value:
        return self._of("SQRT")

    def md5(self) -> Value:
        """In hexadecimal digits."""
        return self._of("MD5")

    def start(self, characters: int) -> Value:
        return self._as(f"SUBSTR({self.sql}, 1, {characters})")

    def hexadecimal(self) -> Value:
        """The integer, below 2^63, that hexadecimal digits write."""
        assert self.dialect is not None
        return self._as(self.dialect.hexadecimal.format(self.sql), INTEGER)

    def numbers(self) -> Value:
        """0, 1, ... below this positive number, each in a row of its own."""
        assert self.dialect is not None
        return self._as(self.dialect.numbers.format(self.sql), INTEGER)

    def fill_null(self, value: int) -> Value:
        return coalesce(self, literal(value))

    def ifelse(self, yes: Any, no: Any) -> Value:
        return ifelse(self, yes, no)

    def sum(self) -> Value:
        return self._of("SUM")

    def max(self) -> Value:
        return self._of("MAX")

    def over(self, group_by: Value, order_by: Sequence[Value] = ()) -> Value:
        """An aggregate over the rows that agree in `group_by`; with an order, over those up to this one."""
        return self._as(f"{self.sql} OVER ({_window([group_by], order_by, running=True)})")

    def _with(self, operator: str, other: Any, gives: pa.DataType | None = None) -> Value:
        right = _value(other)
        kind = gives or (REAL if REAL in (self.type, right.type) else self.type)
        return Value(f"({self.sql} {operator} {right.sql})", kind, self.dialect or right.dialect)

    def _of(self, function: str) -> Value:
        return self._as(f"{function}({self.sql})")

    def _as(self, sql: str, kind: pa.DataType | None = None) -> Value:
        return Value(sql, kind or self.type, self.dialect)


def literal(value: Any) -> Value:
    """A public number or text."""
    if isinstance(value, str):
        if not re.fullmatch("[0-9A-Za-z:._-]*", value):  # a salt, or what is put between values
            raise ValueError("engines differ in how they quote other text")
        return Value(f"'{value}'", TEXT)
    if isinstance(value, int):
        return Value(f"CAST({value} AS BIGINT)", INTEGER)
    # With all digits, and as a power, so that no engine takes it for a decimal.
    return Value(f"CAST({value:.17e} AS DOUBLE)", REAL)


def null() -> Value:
    """No integer."""
    return Value("CAST(NULL AS BIGINT)", INTEGER)


def least(*values: Any) -> Value:
    return _joined("LEAST({})", ", ", values)


def greatest(*values: Any) -> Value:
    return _joined("GREATEST({})", ", ", values)


def coalesce(*values: Any) -> Value:
    return _joined("COALESCE({})", ", ", values)


def concat(*values: Any) -> Value:
    return _joined("({})", " || ", values)


def ifelse(condition: Value, yes: Any, no: Any) -> Value:
    yes, no = _value(yes), _value(no)
    sql = f"CASE WHEN {condition.sql} THEN {yes.sql} ELSE {no.sql} END"
    return Value(sql, yes.type, condition.dialect or yes.dialect or no.dialect)


def row_number(group_by: Sequence[Value] = (), order_by: Sequence[Value] = ()) -> Value:
    """0, 1, ... in this order; in any, if there is none."""
    return Value(f"(ROW_NUMBER() OVER ({_window(group_by, order_by)}) - 1)", INTEGER)


@dataclass(frozen=True)
class Relation:
    """A table of an engine, or a query of such. `source` is what SQL selects from: a name, or a query in brackets.

    Columns are attributes, or items if their names are those of methods. In queries that have more than one relation
    below them, each column is one of the relation that it is used in: values have no relation of their own.
    """

    dialect: Dialect
    source: str
    types: Mapping[str, pa.DataType]
    table_name: str | None = None

    @classmethod
    def named(cls, dialect: Dialect, name: str, types: Mapping[str, pa.DataType]) -> Relation:
        return cls(dialect, dialect.name(name), types, name)

    def __getattr__(self, column: str) -> Value:
        if column.startswith("_") or column not in self.types:
            raise AttributeError(column)
        return self[column]

    def __getitem__(self, column: str) -> Value:
        return Value(self.dialect.name(column), self.types[column], self.dialect)

    @property
    def columns(self) -> list[str]:
        return list(self.types)

    @property
    def sql(self) -> str:
        return self._select(self._all(), self.source)

    def typed(self) -> str:
        """The query, its numbers in the types that are stated here: engines sum in wider ones."""
        parts = []
        for column, kind in self.types.items():
            name, to = self.dialect.name(column), self.dialect.type(kind)
            parts.append(name if to is None else f"CAST({name} AS {to}) AS {name}")
        return self._select(parts, self.source)

    def get_name(self) -> str:
        assert self.table_name is not None
        return self.table_name

    def count(self) -> Value:
        return Value("COUNT(*)", INTEGER, self.dialect)

    def select(self, *columns: str, **made: Value) -> Relation:
        chosen = {**{name: self[name] for name in columns}, **made}
        parts = [_named(self.dialect, name, value) for name, value in chosen.items()]
        return self._query(self._select(parts, self.source), {name: value.type for name, value in chosen.items()})

    def mutate(self, **made: Value) -> Relation:
        return self.select(*(name for name in self.types if name not in made), **made)

    def rename(self, **names: str) -> Relation:
        """`new="old"`."""
        olds = {old: new for new, old in names.items()}
        return self.select(**{olds.get(name, name): self[name] for name in self.types})

    def filter(self, condition: Value) -> Relation:
        return self._query(f"{self.sql} WHERE {condition.sql}", self.types)

    def drop_null(self, *columns: str) -> Relation:
        there = " AND ".join(f"{self.dialect.name(name)} IS NOT NULL" for name in columns)
        return self._query(f"{self.sql} WHERE {there}", self.types)

    def distinct(self) -> Relation:
        return self._query(self._select(self._all(), self.source, "SELECT DISTINCT"), self.types)

    def union(self, other: Relation) -> Relation:
        """The rows of both."""
        assert self.columns == other.columns
        return self._query(f"{self.sql} UNION ALL {other.sql}", self.types)

    def agg(self, **made: Value) -> Relation:
        """One row of aggregates."""
        return self.group_by().agg(**made)

    def group_by(self, *columns: str) -> _Groups:
        return _Groups(self, columns)

    def inner_join(self, other: Relation, *on: str) -> Relation:
        """The columns of this one, and those of the other that are not in `on`."""
        return self._joined("JOIN", other, on)

    def left_join(self, other: Relation, *on: str) -> Relation:
        return self._joined("LEFT JOIN", other, on)

    def semi_join(self, other: Relation, *on: str) -> Relation:
        """The rows that have a row of the other."""
        return self._joined("SEMI JOIN", other, on, {})

    def anti_join(self, other: Relation, *on: str) -> Relation:
        """The rows that have none."""
        return self._joined("ANTI JOIN", other, on, {})

    def _joined(
        self, kind: str, other: Relation, on: Sequence[str], more: Mapping[str, pa.DataType] | None = None
    ) -> Relation:
        more = {name: one for name, one in other.types.items() if name not in on} if more is None else more
        assert not set(more) & set(self.types)
        quoted = self.dialect.name
        parts = [f"l.{quoted(name)}" for name in self.types] + [f"r.{quoted(name)}" for name in more]
        same = " AND ".join(f"l.{quoted(name)} = r.{quoted(name)}" for name in on)
        text = self._select(parts, f"{self.source} AS l {kind} {other.source} AS r ON {same}")
        return self._query(text, {**self.types, **more})

    def _all(self) -> list[str]:
        return [self.dialect.name(name) for name in self.types]

    @staticmethod
    def _select(parts: Sequence[str], source: str, select: str = "SELECT") -> str:
        return f"{select} {', '.join(parts)} FROM {source}"

    def _query(self, sql: str, types: Mapping[str, pa.DataType]) -> Relation:
        return Relation(self.dialect, f"({sql})", dict(types))


@dataclass(frozen=True)
class _Groups:
    """Rows by the values of these columns."""

    of: Relation
    columns: Sequence[str]

    def agg(self, **made: Value) -> Relation:
        of, quoted = self.of, self.of.dialect.name
        parts = [quoted(name) for name in self.columns]
        parts += [_named(of.dialect, name, value) for name, value in made.items()]
        by = f" GROUP BY {', '.join(quoted(name) for name in self.columns)}" if self.columns else ""
        types = {**{name: of.types[name] for name in self.columns}, **{name: one.type for name, one in made.items()}}
        return of._query(of._select(parts, of.source) + by, types)


def _value(given: Any) -> Value:
    return given if isinstance(given, Value) else literal(given)


def _joined(form: str, between: str, given: Sequence[Any]) -> Value:
    values = [_value(one) for one in given]
    dialect = next((one.dialect for one in values if one.dialect is not None), None)
    return Value(form.format(between.join(one.sql for one in values)), values[0].type, dialect)


def _named(dialect: Dialect, name: str, value: Value) -> str:
    quoted = dialect.name(name)
    return quoted if value.sql == quoted else f"{value.sql} AS {quoted}"


def _window(group_by: Sequence[Value], order_by: Sequence[Value], *, running: bool = False) -> str:
    parts = [f"PARTITION BY {', '.join(one.sql for one in group_by)}"] if group_by else []
    # The direction is written: on a connection of the caller's own it may be another by default.
    parts += [f"ORDER BY {', '.join(f'{one.sql} ASC' for one in order_by)}"] if order_by else []
    parts += ["ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"] if order_by and running else []
    return " ".join(parts)
