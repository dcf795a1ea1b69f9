"""Addresses of databases: what names a database, a table of it or a query, before anything is opened.

Errors name the database without user name or password.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit, urlunsplit

from ..errors import InvalidArgument, UnreadableSource

__all__ = [
    "ADDRESSES",
    "Database",
    "Name",
    "as_database",
    "existing_file",
    "is_address",
    "no_table",
    "resolved_kind",
    "without_options",
]

Name = tuple[str, ...]
"""A table's name: perhaps a database, perhaps a schema, and the name."""
_SCHEMES = {"duckdb": "duckdb", "sqlite": "sqlite", "postgresql": "postgres", "postgres": "postgres", "spark": "spark"}
_NAMED = [f"{scheme}:" for scheme in _SCHEMES if scheme != "postgres"]  # a shorter name for postgresql
ADDRESSES = f"{', '.join(_NAMED[:-1])} or {_NAMED[-1]}"
"""How addresses start, for errors."""
_FILES = (".duckdb", ".ddb", ".sqlite", ".sqlite3", ".db")


@dataclass(frozen=True)
class Database:
    """A table of a database, by name, or what a query gives.

    address: `duckdb:///file.duckdb`, `sqlite:///file.db` (three slashes for a relative path, four for an absolute one),
    `postgresql://user@host/name`, `spark:`, or just the path of a DuckDB or SQLite file. The address may end in
    `?table=NAME` instead of `table`.
    """

    address: str = field(repr=False)
    table: str | None = None
    query: str | None = None

    def __post_init__(self) -> None:
        if not is_address(self.address):
            raise InvalidArgument(
                f"address: needs to be a DuckDB or SQLite file, or to start with {ADDRESSES}.",
                argument="address",
            )
        given = _options(self.address)
        for name in ("table", "query"):
            if name in given:
                if getattr(self, name) is not None:
                    raise InvalidArgument(
                        f"{name}: is given in the address and beside it. Give it once.", argument=name
                    )
                object.__setattr__(self, name, given[name])
        if (self.table is None) == (self.query is None):
            raise InvalidArgument(
                f"table: {self.shown} needs table or query, and not both. Give one.", argument="table"
            )

    @property
    def kind(self) -> str:
        return _kind(self.address) or ""

    @property
    def path(self) -> str | None:
        """The file, where there is one."""
        return _path(self.address) if self.kind in ("duckdb", "sqlite", "file") else None

    @property
    def shown(self) -> str:
        """The address without user name, password and options."""
        if self.path is not None:
            return repr(self.path)
        parts = urlsplit(self.address)
        host = (parts.hostname or "") + (f":{parts.port}" if _port(parts) else "")
        return repr(f"{parts.scheme}://{host}{parts.path}" if self.kind == "postgres" else f"{parts.scheme}:")


def is_address(source: object) -> bool:
    """Whether `source` is the address or the path of a database of a kind that we know."""
    return isinstance(source, str) and _kind(source) is not None


def as_database(source: object) -> Database | None:
    """`source` as a database, if it is the address of one."""
    if isinstance(source, Database):
        return source
    scheme = re.match(r"([A-Za-z][A-Za-z0-9+.-]*)://", source) if isinstance(source, str) else None
    if scheme is not None and not is_address(source):
        # Not the rest of it, which may hold a password.
        raise InvalidArgument(
            f"table: is an address that starts with {scheme[0]!r}, and needs to be a path, or to start with "
            f"{ADDRESSES}.",
            argument="table",
        )
    if isinstance(source, str) and (_kind(source) not in (None, "file") or _options(source)):
        return Database(source)
    if isinstance(source, (str, os.PathLike)) and _kind(os.fspath(source)) == "file":
        raise InvalidArgument(
            f"table={os.fspath(source)!r}: is a database, and needs the name of a table. Give it with "
            "crowdgram.Database(path, table=...), '?table=NAME' after the path, or --table.",
            argument="table",
        )
    return None


def resolved_kind(database: Database) -> str:
    """Which database it is; for a bare path, by the file's first bytes."""
    return _sniff(database) if database.kind == "file" else database.kind


def no_table(database: Database, name: Name) -> UnreadableSource:
    return UnreadableSource(
        f"address={database.shown}: has no table {'.'.join(name)!r} that may be read. Check the name."
    )


def existing_file(database: Database) -> str:
    path = database.path or ""
    if not Path(path).is_file() or not os.access(path, os.R_OK):
        raise UnreadableSource(
            f"address={path!r}: is no file that can be read. In an address, three slashes start a relative path and "
            "four an absolute one."
        )
    return path


def without_options(address: str) -> str:
    parts = urlsplit(address)
    kept = [(name, value) for name, value in parse_qsl(parts.query) if name not in ("table", "query")]
    return urlunsplit(parts._replace(query=urlencode(kept)))


def _kind(address: str) -> str | None:
    scheme, colon, _ = address.partition(":")
    if colon and scheme.lower() in _SCHEMES:
        return _SCHEMES[scheme.lower()]
    return "file" if address.partition("?")[0].lower().endswith(_FILES) else None


def _options(address: str) -> dict[str, str]:
    if _kind(address) is None:
        return {}
    found = dict(parse_qsl(address.partition("?")[2], keep_blank_values=True))
    return {name: found[name] for name in ("table", "query") if name in found}


def _path(address: str) -> str:
    bare = address.partition("?")[0]
    if _kind(address) == "file":
        return bare
    rest = unquote(bare.partition(":")[2])
    return rest.removeprefix("///") if rest.startswith("///") else rest.removeprefix("//")


def _port(parts: Any) -> bool:
    try:
        return parts.port is not None
    except ValueError:
        return False


def _sniff(database: Database) -> str:
    """DuckDB or SQLite, by the file's first bytes."""
    with open(existing_file(database), "rb") as file:
        start = file.read(16)
    if start.startswith(b"SQLite format 3\x00"):
        return "sqlite"
    if start[8:12] == b"DUCK":
        return "duckdb"
    raise UnreadableSource(f"address={database.shown}: is neither a DuckDB nor an SQLite database. Check the path.")
