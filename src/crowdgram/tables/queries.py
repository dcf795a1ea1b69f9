"""Queries: one SELECT of expressions of one row, over one table.

The text of a query never reaches the database. It is parsed, and what it asks for is rebuilt: the table is opened by
its name, and columns and filter are expressions like any other (`expressions`). So a query keeps each row with its
user and cannot fail on a row, by the same argument (docs/proofs/filters.md), and it means the same in every database.
Anything else is refused. A view can hold it: then the database computes it, and whoever made the view is responsible
for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import sqlglot
from sqlglot import exp

from ..errors import InvalidArgument
from .columns import check_columns
from .engines import Engine
from .expressions import columns_of, evaluate
from .roles import QUERY
from .sql_text import Tree, statements

if TYPE_CHECKING:
    import ibis.expr.types as ir

__all__ = ["Query", "check_own_column", "read_query"]

_FORM = (
    "A query is SELECT columns and expressions of one row FROM one table, perhaps WHERE a condition of one row. For "
    "anything else make a view in the database, each row of which comes from one user's data alone, and give that as "
    "the table. Crowdgram does not check what a view computes."
)
_WHAT: dict[str, str] = {
    "distinct": "DISTINCT",
    "group": "GROUP BY",
    "having": "HAVING",
    "joins": "a join",
    "laterals": "a lateral view",
    "limit": "LIMIT",
    "offset": "OFFSET",
    "order": "ORDER BY",
    "pivots": "PIVOT",
    "qualify": "QUALIFY",
    "sample": "a sample",
    "windows": "WINDOW",
    "with_": "WITH",
}
"""Clauses by their names in the syntax tree, for the message. What is not listed is refused as well."""


@dataclass(frozen=True)
class Query:
    """table: the parts of its name. columns: the expression behind each name. star: whether all others come too."""

    text: str
    table: tuple[str, ...]
    columns: dict[str, Tree]
    star: bool
    where: Tree | None

    def needed(self, columns: Sequence[str] | None) -> list[str] | None:
        """The columns of the table for these columns of the query; None for all."""
        if columns is None and self.star:
            return None
        if not self.star:
            check_columns(list(self.columns), columns)
        found = [name for tree in (*self.columns.values(), self.where) if tree for name in columns_of(tree)]
        return list(dict.fromkeys([*found, *(name for name in columns or () if name not in self.columns)]))

    def check_star(self, names: Sequence[str]) -> None:
        """Refuse a star beside a name that a column of the table has too: `names` are those of all its columns."""
        for name in self.columns if self.star else ():
            _check_new(self.text, name, names)

    def apply(self, engine: Engine, table: ir.Table) -> ir.Table:
        """What the query gives of `table`, which has all the columns that are needed."""
        made = {name: table[name] for name in table.columns if self.star}
        for name, tree in self.columns.items():
            plain = _is_plain(tree) and tree.name in table.columns
            made[name] = table[tree.name] if plain else self._column(engine, table, tree)
        if self.where is None:
            return table.select(**made)
        kept = self._column(engine, table, self.where)
        if not kept.type().is_boolean():
            raise InvalidArgument(
                f"query={self.text!r}: WHERE needs a condition, which is true or false.", argument="query"
            )
        taken = {name.casefold() for name in made}
        keep = next(name for name in ("kept", *(f"kept_{n}" for n in range(len(made) + 1))) if name not in taken)
        widened = table.select(**made, **{keep: kept})
        return widened.filter(widened[keep]).drop(keep)

    def _column(self, engine: Engine, table: ir.Table, tree: Tree) -> Any:
        try:
            return evaluate(self.text, engine, table, QUERY, tree)
        except InvalidArgument as error:
            said = str(error)
        raise InvalidArgument(f"{said} {_FORM}", argument="query")


def read_query(text: str, user: str) -> Query:
    """The query, if it has the form that is allowed; `user` is the user column, which may not be computed here."""

    def refused(what: str) -> InvalidArgument:
        return InvalidArgument(f"query={text!r}: {what}. {_FORM}", argument="query")

    try:
        found = statements(text, QUERY)
    except (sqlglot.errors.SqlglotError, RecursionError):
        raise InvalidArgument(f"query={text!r}: does not parse as SQL. {_FORM}", argument="query") from None
    if len(found) != 1 or type(found[0]) is not exp.Select:
        raise refused("it is not one SELECT")
    select = found[0]
    for name, value in select.args.items():
        if value and name not in ("expressions", "from", "from_", "where"):
            raise refused(f"it holds {_WHAT.get(name, name.strip('_').upper())}")
    source = select.args.get("from_") or select.args.get("from")
    table = source.this if source is not None else None
    if type(table) is not exp.Table or any(
        value for name, value in table.args.items() if name not in ("this", "db", "catalog", "alias")
    ):
        raise refused("it does not read one table by its name")
    parts = [part for part in (table.args.get(name) for name in ("catalog", "db", "this")) if part is not None]
    alias = table.args.get("alias")
    if not all(type(part) is exp.Identifier for part in parts) or (alias is not None and alias.args.get("columns")):
        raise refused("it does not read one table by its name")
    columns: dict[str, Tree] = {}
    star = False
    for one in select.expressions:
        tree = _unqualified(one.this if type(one) is exp.Alias else one, table.alias_or_name)
        if type(one) is not exp.Alias and _is_star(tree):
            star = True
            continue
        if tree.find(exp.Star):
            raise refused("it holds a star that is more than all columns")
        name = one.alias_or_name
        if not name:
            raise InvalidArgument(
                f"query={text!r}: a column that is computed needs a name: ... AS name.", argument="query"
            )
        _check_new(text, name, list(columns))
        if name == user and not _is_plain(tree):
            raise refused(f"the user column {user!r} is computed; give that expression as user")
        columns[name] = tree
    where = select.args.get("where")
    return Query(
        text,
        tuple(part.name for part in parts),
        columns,
        star,
        None if where is None else _unqualified(where.this, table.alias_or_name),
    )


def check_own_column(text: str, name: str) -> None:
    """Refuse a query that computes a period's column, or gives its name to another one.

    A ledger knows periods by the name of their column. Under one name, two queries could put a row into two periods.
    """
    tree = read_query(text, "").columns.get(name)
    if tree is not None and not (_is_plain(tree) and tree.name == name):
        raise InvalidArgument(
            f"period_column={name!r}: needs to be a column of the table, and query={text!r} computes it or renames "
            "another. A row could then be of two periods. Select the column as it is.",
            argument="period_column",
        )


def _check_new(text: str, name: str, names: Sequence[str]) -> None:
    """Refuse a name that is among `names`, or differs from one by case only."""
    alike = next((other for other in names if other.casefold() == name.casefold()), None)
    if alike is not None:
        two = f"the name {name!r}" if alike == name else f"names that differ by case only, {alike!r} and {name!r}"
        raise InvalidArgument(f"query={text!r}: gives two columns {two}. Rename one of them.", argument="query")


def _is_plain(tree: Tree) -> bool:
    return type(tree) is exp.Column and [name for name, value in tree.args.items() if value] == ["this"]


def _is_star(tree: Tree) -> bool:
    star = tree.this if _is_plain(tree) else tree
    return type(star) is exp.Star and not any(star.args.values())


def _unqualified(tree: Tree, table: str) -> Tree:
    """The tree without the table's name, or its alias, before names of columns."""
    tree = tree.copy()
    for column in tree.find_all(exp.Column):
        if column.args.get("table") is not None and column.table == table and column.args.get("db") is None:
            column.set("table", None)
    return tree
