"""The domain: the list of items whose distribution is released.

A domain comes from outside the private table (a catalogue, a dictionary, a code list), or it was found in it and paid
for, so its values may appear in errors and in the release. Its order is the order of the release. Values are read in
the type of the item column. With several item columns, an item is a tuple with a value of each.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ..errors import InvalidArgument, InvalidDomain, UnreadableSource
from .arrow import numbers_table
from .engines import Engine, fetch_public
from .kinds import Value, arrow_keys, convert_all
from .roles import DOMAIN, Role
from .stored_files import SUFFIXES, read_column, read_columns

if TYPE_CHECKING:
    import ibis.expr.datatypes as dt

    from .relations import Relation

__all__ = ["MOST_COMBINATIONS", "Domain", "Item", "combined", "read_domain", "read_joint_domain"]

Item = Value | tuple[Value, ...]

MOST_COMBINATIONS = 10_000_000
"""A product of domains above this is more likely a mistake than a question."""


@dataclass(frozen=True)
class Domain:
    """Distinct items, in the types of the item columns, in the order of the release.

    groups: if there are any, the values of the first item column that have one more item each, after the listed ones,
    for the rows of the group whose item is not listed. other: there is one more item, the last, for all other rows.
    Without it, such rows are dropped.
    """

    items: tuple[Item, ...]
    types: tuple[dt.DataType, ...]
    other: bool = False
    groups: tuple[Value, ...] = ()

    def __len__(self) -> int:
        return len(self.items) + len(self.groups) + self.other

    def upload(self, engine: Engine, keys: Sequence[str] = ("item",)) -> Relation:
        """The table (*keys, idx) in the engine; `idx` is the place of a listed item in the domain."""
        columns: Iterable[Any] = zip(*self.items, strict=True) if len(keys) > 1 else [self.items]
        parts = zip(keys, columns, self.types, strict=True)
        placed = {name: arrow_keys(values, dtype) for name, values, dtype in parts}
        places = numbers_table({"idx": np.arange(len(self.items))}).column(0)
        return engine.upload(pa.table({**placed, "idx": places}), "placing the domain")

    def upload_groups(self, engine: Engine) -> Relation:
        """The table (item, own) in the engine; `own` is the place of a group's own item."""
        first = len(self.items)
        places = numbers_table({"own": np.arange(first, first + len(self.groups))}).column(0)
        values = arrow_keys(self.groups, self.types[0])
        return engine.upload(pa.table({"item": values, "own": places}), "placing the groups")


def read_domain(domain: object, item_type: dt.DataType, *, item: str = "item", role: Role = DOMAIN) -> Domain:
    """Read a public domain in the item column's type.

    `domain`: a list or array of items; a path (one item a line; or CSV, Parquet or JSON with a column named like the
    item column or with one column only); a pair (path, column); or a column of a pandas, polars, pyarrow or Ibis
    table. `role`: the argument that it was given as.
    """
    values = convert_all(_values(domain, item, role), item_type, role, item)
    _check_distinct(values, role)
    return Domain(values, (item_type,))


def read_joint_domain(
    domain: object, types: Sequence[dt.DataType], names: Sequence[str], *, role: Role = DOMAIN
) -> Domain:
    """Read a public domain of several item columns.

    `domain`: a list of tuples with a value for each column; a path of a CSV, Parquet or JSON file, or a pandas, polars
    or pyarrow table, with these columns; or a mapping of each column to a domain of its own, for all combinations.
    """
    listed = ", ".join(map(repr, names))
    if isinstance(domain, Mapping):
        if set(domain) != set(names):
            given = ", ".join(map(repr, domain))
            raise InvalidDomain(
                f"{role}: has entries for {given}, and needs one for each of {listed}.", argument=role.argument
            )
        parts = [
            read_domain(domain[name], kind, item=name, role=Role(role.argument, name))
            for name, kind in zip(names, types, strict=True)
        ]
        return combined(parts, types)
    rows = list(_joint_values(domain, names, role))
    columns = zip(zip(*rows, strict=True) if rows else [()] * len(names), types, names, strict=True)
    items = tuple(zip(*(convert_all(column, kind, role, name) for column, kind, name in columns), strict=True))
    _check_distinct(items, role)
    return Domain(items, tuple(types))


def combined(parts: Sequence[Domain], types: Sequence[dt.DataType]) -> Domain:
    """All combinations, the last column fastest."""
    size = math.prod(len(part) for part in parts)
    if size > MOST_COMBINATIONS:
        raise InvalidDomain(
            f"domain: has {' x '.join(str(len(part)) for part in parts)} = {size} combinations, and at most "
            f"{MOST_COMBINATIONS} can be used. Give a list of those that can occur.",
            argument="domain",
        )
    rows = product(*([_as_tuple(item) for item in part.items] for part in parts))
    return Domain(tuple(tuple(value for piece in row for value in piece) for row in rows), tuple(types))


def _is_ibis(value: object) -> bool:
    return type(value).__module__.split(".")[0] == "ibis"


def _as_tuple(item: Item) -> tuple[Value, ...]:
    return item if isinstance(item, tuple) else (item,)


def _check_distinct(values: Sequence[Item], role: Role) -> None:
    one = "group" if role.argument == "groups" else "item"
    if not values:
        raise InvalidDomain(f"{role}: is empty, and needs at least one {one}.", argument=role.argument)
    if len(set(values)) < len(values):
        seen: set[Item] = set()
        repeated = next(v for v in values if v in seen or seen.add(v))  # type: ignore[func-returns-value]
        raise InvalidDomain(
            f"{role}: holds {repeated!r} more than once, and needs distinct {one}s. Remove the repeats.",
            argument=role.argument,
        )


def _joint_values(domain: object, names: Sequence[str], role: Role) -> Iterable[Sequence[Any]]:
    listed = ", ".join(map(repr, names))
    if isinstance(domain, (str, os.PathLike)):
        path = os.fspath(domain)
        if not path.lower().endswith(SUFFIXES):
            raise InvalidArgument(
                f"{role}={path!r}: needs a CSV, Parquet or JSON file with the columns {listed}, or a mapping of each "
                "of them to a file.",
                argument=role.argument,
            )
        return read_columns(path, names, role)
    columns = getattr(domain, "column_names", getattr(domain, "columns", None))  # pyarrow; pandas and polars
    if columns is not None and not _is_ibis(domain):
        # The private table itself, given by mistake, would have the user column too.
        if set(columns) != set(names) or len(columns) != len(names):
            raise InvalidDomain(
                f"{role}: is a table, and needs the columns {listed} and no others.", argument=role.argument
            )
        table: Any = domain
        return zip(
            *(
                table[name].to_pylist() if hasattr(table[name], "to_pylist") else table[name].to_list()
                for name in names
            ),
            strict=True,
        )
    rows = domain.tolist() if hasattr(domain, "tolist") else domain
    if isinstance(rows, bytes) or _is_ibis(rows) or not isinstance(rows, Iterable):
        raise InvalidDomain(
            f"{role}: is a {type(domain).__name__}, and needs a list of tuples with values of {listed}.",
            argument=role.argument,
        )
    found = list(rows)
    for row in found:
        if not isinstance(row, (tuple, list)) or len(row) != len(names):
            raise InvalidDomain(
                f"{role}: holds {row!r}, and needs tuples of {len(names)} values, of {listed}.", argument=role.argument
            )
    return found


def _values(domain: object, item: str, role: Role) -> Iterable[Any]:
    if isinstance(domain, (str, os.PathLike)):
        return _from_file(os.fspath(domain), None, item, role)
    if isinstance(domain, tuple) and len(domain) == 2 and isinstance(domain[0], (os.PathLike, str)):
        path, column = domain
        if isinstance(path, os.PathLike) or path.lower().endswith(SUFFIXES):
            return _from_file(os.fspath(path), column, item, role)
    if _is_ibis(domain):
        import ibis

        if isinstance(domain, ibis.Column):
            table = domain.name("item").as_table()
            return list(fetch_public(ibis.get_backend(table), table, "reading the domain").column(0).to_pylist())
    values: object = domain
    for method in ("to_pylist", "to_list", "tolist"):  # pyarrow; pandas and polars; numpy
        if hasattr(domain, method):
            values = getattr(domain, method)()
            break
    # A table would give its column names, or its rows: perhaps the private ones, by mistake.
    is_table = hasattr(domain, "columns") or _is_ibis(domain)
    if is_table or isinstance(values, (bytes, dict)) or not isinstance(values, Iterable):
        raise InvalidDomain(
            f"{role}: is a {type(domain).__name__}, and needs to be a list of items, a path, a pair (path, column), or "
            "one column.",
            argument=role.argument,
        )
    return values


def _from_file(path: str, column: str | None, item: str, role: Role) -> list[Any]:
    if any(path.lower().endswith(suffix) for suffix in SUFFIXES):
        return read_column(path, column, item, role)
    if column is not None:
        raise InvalidArgument(
            f"{role}={path!r}: is read as one item a line, so it has no column {column!r}. Leave the column out.",
            argument=role.argument,
        )
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise UnreadableSource(
            f"{role}={path!r}: cannot be read ({error.strerror or type(error).__name__}). Check the path."
        ) from None
    except ValueError:
        raise UnreadableSource(f"{role}={path!r}: needs to be UTF-8 text with one item a line.") from None
    return [line for line in text.replace("\r\n", "\n").split("\n") if line]
