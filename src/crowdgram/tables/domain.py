"""The domain: the public list of items whose distribution is released.

A domain comes from outside the private table (a catalogue, a dictionary, a code list), so its values may appear in
errors and in the release. Its order is the order of the release. Values are read in the type of the item column.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsIndex

import ibis
import ibis.expr.datatypes as dt
import pyarrow as pa

from ..errors import InvalidArgument, InvalidDomain, UnreadableSource
from .engine import Engine, engine_for
from .sources import SUFFIXES, read_column

if TYPE_CHECKING:
    import ibis.expr.types as ir

__all__ = ["Domain", "read_domain"]

Item = int | str


@dataclass(frozen=True)
class Domain:
    """Distinct items, in the type of the item column, in the order of the release.

    `other`: there is one item more, the last, and every row whose item is not in the list is a row of it.
    """

    items: tuple[Item, ...]
    item_type: dt.DataType
    other: bool = False

    def __len__(self) -> int:
        return len(self.items) + self.other

    def upload(self, engine: Engine) -> ir.Table:
        """The table (item, idx) in the engine; `idx` is the item's place in the domain."""
        items = pa.array(self.items, type=self.item_type.to_pyarrow())
        places = pa.array(range(len(self.items)), type=pa.int64())
        return engine.upload(pa.table({"item": items, "idx": places}), "placing the domain")


def read_domain(domain: object, item_type: dt.DataType, *, item: str = "item") -> Domain:
    """Read a public domain in the item column's type.

    `domain`: a list or array of items; a path (one item a line; or CSV, Parquet or JSON with a column named like the
    item column or with one column only); a pair (path, column); or a column of a pandas, polars, pyarrow or Ibis
    table.
    """
    if domain is None:
        raise InvalidArgument(
            "domain is missing: the items that occur in the table are private themselves, so the list of items needs "
            "to come from outside it: a list, a file with one item a line, or a column of a public table."
        )
    values = [_convert(value, item_type) for value in _values(domain, item)]
    if not values:
        raise InvalidDomain("domain is empty: it needs at least one item.")
    if len(set(values)) < len(values):
        seen: set[Item] = set()
        repeated = next(v for v in values if v in seen or seen.add(v))  # type: ignore[func-returns-value]
        raise InvalidDomain(f"domain holds {repeated!r} more than once: items need to be distinct. Remove the repeats.")
    return Domain(tuple(values), item_type)


def _values(domain: object, item: str) -> Iterable[Any]:
    if isinstance(domain, (str, os.PathLike)):
        return _from_file(os.fspath(domain), None, item)
    if isinstance(domain, tuple) and len(domain) == 2 and isinstance(domain[0], (os.PathLike, str)):
        path, column = domain
        if isinstance(path, os.PathLike) or path.lower().endswith(SUFFIXES):
            return _from_file(os.fspath(path), column, item)
    if isinstance(domain, ibis.Column):
        table = domain.name("item").as_table()
        engine = engine_for(ibis.get_backend(table))
        return list(engine.fetch(table, "reading the domain").column(0).to_pylist())
    values: object = domain
    for method in ("to_pylist", "to_list", "tolist"):  # pyarrow; pandas and polars; numpy
        if hasattr(domain, method):
            values = getattr(domain, method)()
            break
    # A table would give its column names, or its rows: perhaps the private ones, by mistake.
    is_table = hasattr(domain, "columns") or isinstance(domain, ibis.Expr)
    if is_table or isinstance(values, (bytes, dict)) or not isinstance(values, Iterable):
        raise InvalidDomain(
            f"domain is a {type(domain).__name__}: needs a list of items, a path, a pair (path, column), or one column."
        )
    return values


def _from_file(path: str, column: str | None, item: str) -> list[Any]:
    if any(path.lower().endswith(suffix) for suffix in SUFFIXES):
        return read_column(path, column, item)
    if column is not None:
        raise InvalidArgument(f"domain={path!r} is read as one item a line, so it has no column {column!r}.")
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise UnreadableSource(f"domain={path!r} cannot be read: {error.strerror or type(error).__name__}.") from None
    except ValueError:
        raise UnreadableSource(f"domain={path!r} is not UTF-8 text with one item a line.") from None
    return [line for line in text.replace("\r\n", "\n").split("\n") if line]


def _convert(value: object, item_type: dt.DataType) -> Item:
    """`value` in the item column's type, or an error that names both."""
    if isinstance(value, SupportsIndex) and not isinstance(value, bool):
        number = value.__index__()
        return _fitting(number, item_type) if isinstance(item_type, dt.Integer) else str(number)
    if isinstance(value, str):
        if not isinstance(item_type, dt.Integer):
            return _plain_text(value)
        if re.fullmatch(r"\s*[+-]?[0-9]{1,30}\s*", value):
            return _fitting(int(value), item_type)
    kind = "integers" if isinstance(item_type, dt.Integer) else "strings"
    raise InvalidDomain(f"domain holds {value!r} ({type(value).__name__}): the item column holds {kind}.")


def _plain_text(value: str) -> str:
    """`value` as a plain `str`, whatever subclass it came as."""
    try:
        return value.encode().decode()
    except UnicodeEncodeError:
        raise InvalidDomain(f"domain holds {value!r}, which is not valid Unicode text.") from None


def _fitting(number: int, item_type: dt.Integer) -> int:
    bounds = item_type.bounds
    if not bounds.lower <= number <= bounds.upper:
        raise InvalidDomain(f"domain holds {number}, which does not fit the item column's type {item_type}.")
    return number
