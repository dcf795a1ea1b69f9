"""A job: what the page's form asks for, as arguments of `release`, as a command, and as Python."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import InvalidArgument
from ..privacy import Ledger
from ..tables import Database, as_database

__all__ = ["Job", "Listed", "number", "read_job", "text", "whole"]

_INLINE = 200
"""So many items of a pasted list stand in the Python code; more are in a file."""


@dataclass(frozen=True)
class Listed:
    """A public list: pasted, or in a file; neither, if it is to be found. saved_as: the file that a copied job names
    for a pasted list.
    """

    saved_as: str
    pasted: tuple[str, ...] | None = None
    file: str | None = None

    @property
    def argument(self) -> object:
        """As `release` takes it."""
        return self.file if self.pasted is None else list(self.pasted)

    @property
    def path(self) -> str | None:
        return self.file if self.pasted is None else self.saved_as

    @property
    def code(self) -> str | None:
        if self.pasted is not None and len(self.pasted) <= _INLINE:
            return repr(list(self.pasted))
        return None if self.path is None else repr(self.path)


@dataclass(frozen=True)
class Job:
    """What is asked for, read and not yet checked: `release` checks it. No field comes from a row."""

    source: str
    user: str
    item: str
    epsilon: float
    delta: float
    domain: Listed
    weight: str = "rows"
    table: str | None = None
    by: str | None = None
    groups: Listed | None = None
    max_rows_per_user: int | None = None
    ledger: str | None = None
    label: str = ""

    @property
    def opened(self) -> object:
        """The table as the library takes it."""
        return opened(self.source, self.table)

    def arguments(self) -> dict[str, Any]:
        """All arguments of `release` but the table, the budget and the ledger."""
        return {
            "user": self.user,
            "item": self.item,
            "domain": self.domain.argument,
            "by": self.by,
            "groups": None if self.groups is None else self.groups.argument,
            "weight": self.weight,
            "max_rows_per_user": self.max_rows_per_user,
        }

    def open_ledger(self) -> Ledger | None:
        return None if self.ledger is None else Ledger.open(self.ledger, label=self.label)

    def command(self) -> str:
        """The same job for a shell. A pasted list is in the file that the page offers for download."""
        for argument, name in (("user", self.user), ("item", self.item), ("by", self.by or "")):
            if "=" in name or (argument == "user" and re.fullmatch(r"\s*\w+\(.*\)\s*", name, re.DOTALL)):
                return f"# The column name given as {argument} would be read as an expression here. Use Python."
        words = ["crowdgram", "release", f"./{self.source}" if self.source.startswith("-") else self.source]
        options: dict[str, object] = {
            "--table": self.table,
            "--user": self.user,
            "--item": self.item,
            "--domain": self.domain.path,
            "--by": self.by,
            "--groups": None if self.groups is None else self.groups.path,
            "--weight": None if self.weight == "rows" else self.weight,
            "--max-rows-per-user": self.max_rows_per_user,
            "--epsilon": f"{self.epsilon!r}",
            "--delta": f"{self.delta!r}" if self.delta else None,
            "--ledger": self.ledger,
            "--label": self.label or None,
            "--output": "release.json",
        }
        for option, value in options.items():
            if value is not None:
                given = str(value)
                words += [f"{option}={given}"] if given.startswith("-") else [option, given]
        return f"{shlex.join(words)}\ncrowdgram report release.json --output report.html"

    def python(self) -> str:
        """The same job as Python code."""
        table = f"crowdgram.Database({self.source!r}, {self.table!r})" if self.table is not None else repr(self.source)
        ledger = None if self.ledger is None else repr(self.ledger)
        if ledger is not None and self.label:
            ledger = f"crowdgram.Ledger.open({ledger}, label={self.label!r})"
        given = {
            "user": repr(self.user),
            "item": repr(self.item),
            "domain": self.domain.code,
            "by": None if self.by is None else repr(self.by),
            "groups": None if self.groups is None else self.groups.code,
            "weight": None if self.weight == "rows" else repr(self.weight),
            "max_rows_per_user": None if self.max_rows_per_user is None else repr(self.max_rows_per_user),
            "epsilon": repr(self.epsilon),
            "delta": repr(self.delta) if self.delta else None,
            "ledger": ledger,
        }
        lines = [f"    {name}={code}," for name, code in given.items() if code is not None]
        return "\n".join(
            [
                "import crowdgram",
                "",
                "release = crowdgram.release(",
                f"    {table},",
                *lines,
                ")",
                'release.save("release.json")',
                'release.to_html("report.html")',
            ]
        )


def opened(source: str, table: str | None) -> object:
    """A table by its path or address, and by its name if it is in a database."""
    if table is not None:
        return Database(source, table)
    return as_database(source) or source


def read_job(form: Mapping[str, Any]) -> Job:
    """The job of a form; an error names the field that is missing or no number."""
    source = text(form, "table", "the path of a table")
    domain = _listed(form, "domain", "items.txt", source)
    by = _optional(form, "by")
    bound = _optional(form, "max_rows_per_user")
    ledger = _optional(form, "ledger")
    if source == "-":
        raise InvalidArgument("table='-': needs to be a file or a database here.", argument="table")
    if ledger is not None and _same(ledger, source):
        raise InvalidArgument(f"ledger={ledger!r}: is the table itself. Give the file of a ledger.", argument="ledger")
    return Job(
        source=source,
        table=_optional(form, "database_table"),
        user=text(form, "user", "the column of users"),
        item=text(form, "item", "the column of items"),
        epsilon=number(form, "epsilon"),
        delta=number(form, "delta", 0.0),
        domain=domain,
        weight=_optional(form, "weight") or "rows",
        by=by,
        groups=None if by is None else _listed(form, "groups", "groups.txt", source),
        max_rows_per_user=None if bound is None else whole(form, "max_rows_per_user"),
        ledger=ledger,
        label="" if ledger is None else _optional(form, "label") or "",
    )


def text(form: Mapping[str, Any], name: str, what: str) -> str:
    found = _optional(form, name)
    if found is None:
        raise InvalidArgument(f"{name}: needs {what}.", argument=name)
    return found


def number(form: Mapping[str, Any], name: str, default: float | None = None) -> float:
    given = form.get(name, "")
    if default is not None and given in ("", None):
        return default
    try:
        return float(given)
    except (TypeError, ValueError, OverflowError):
        pass
    raise InvalidArgument(f"{name}={given!r:.80}: needs to be a number, such as 1 or 1e-6.", argument=name)


def whole(form: Mapping[str, Any], name: str) -> int:
    found = number(form, name)
    if found.is_integer() and abs(found) < 2**53:
        return int(found)
    raise InvalidArgument(f"{name}={form.get(name)!r:.80}: needs to be a whole number.", argument=name)


def _optional(form: Mapping[str, Any], name: str) -> str | None:
    found = form.get(name) or ""
    if not isinstance(found, str) or "\0" in found:
        raise InvalidArgument(f"{name}: needs to be text.", argument=name)
    return found if found.strip() else None


def _listed(form: Mapping[str, Any], name: str, saved_as: str, source: str) -> Listed:
    """A public list as the form has it. A file with one item a line and a pasted list are read alike."""
    kind = form.get(f"{name}_kind", "discover")
    if kind == "discover":
        return Listed(saved_as)
    if kind == "list":
        lines = text(form, f"{name}_list", "a list with one value a line").replace("\r\n", "\n").split("\n")
        return Listed(saved_as, pasted=tuple(line for line in lines if line))
    file = text(form, f"{name}_file", "the path of a public list")
    if _same(file, source):
        raise InvalidArgument(
            f"{name}={file!r}: is the table itself, which is private. Give a public list, or have it found.",
            argument=name,
        )
    return Listed(saved_as, file=f"./{file}" if file == "discover" else file)


def _same(one: str, other: str) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)
