"""A job: what the page's form asks for, as arguments of `release`, as a command, and as Python."""

from __future__ import annotations

import contextlib
import glob
import os
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import InvalidArgument
from ..escaping import printable
from ..privacy import Ledger
from ..tables import Bins, Database, as_database, is_address
from ..tables.bins import MOST_EDGES

__all__ = ["Job", "Listed", "as_table", "number", "optional", "path", "read_job", "text", "whole"]

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
    bins: Bins | None = None
    where: str | None = None
    by: str | None = None
    groups: Listed | None = None
    group_bins: Bins | None = None
    max_rows_per_user: int | None = None
    ledger: str | None = None
    label: str = ""
    period: str | None = None
    period_column: str | None = None

    @property
    def given_table(self) -> object:
        """The table as the library takes it."""
        return as_table(self.source, self.table)

    def arguments(self) -> dict[str, Any]:
        """All arguments of `release` but the table, the budget and the ledger."""
        return {
            "user": self.user,
            "item": self.item if self.bins is None else {self.item: self.bins},
            "domain": self.domain.argument,
            "where": self.where,
            "by": self.by if self.by is None or self.group_bins is None else {self.by: self.group_bins},
            "groups": None if self.groups is None else self.groups.argument,
            "weight": self.weight,
            "max_rows_per_user": self.max_rows_per_user,
        }

    def open_ledger(self) -> Ledger | None:
        return None if self.ledger is None else Ledger.open(self.ledger, **self._of_ledger())

    def _of_ledger(self) -> dict[str, Any]:
        """How the ledger is opened, as far as it is said."""
        given = {"label": self.label or None, "period": self.period, "period_column": self.period_column}
        return {name: value for name, value in given.items() if value is not None}

    def command(self) -> str:
        """The same job for a shell. A pasted list is in the file that the page offers for download."""
        for argument, name in (("user", self.user), ("item", self.item), ("by", self.by or "")):
            if "=" in name or (argument == "user" and re.fullmatch(r"\s*\w+\(.*\)\s*", name, re.DOTALL)):
                return f"# The column name given as {argument} would be read as an expression here. Use Python."
        if self.by is not None and self.group_bins is not None and self.by != self.by.strip():
            return "# The column name given as by has a blank at an end, which would be dropped here. Use Python."
        bins = [] if self.bins is None else [_listed_edges(self.bins)]
        bins += [] if self.group_bins is None else [f"{self.by}={_listed_edges(self.group_bins)}"]
        words = ["crowdgram", "release", f"./{self.source}" if self.source.startswith("-") else self.source]
        options: dict[str, object] = {
            "--table": self.table,
            "--user": self.user,
            "--item": self.item,
            "--domain": self.domain.path,
            "--by": self.by,
            "--groups": None if self.groups is None else self.groups.path,
            "--where": self.where,
            "--weight": None if self.weight == "rows" else self.weight,
            "--max-rows-per-user": self.max_rows_per_user,
            "--epsilon": f"{self.epsilon!r}",
            "--delta": f"{self.delta!r}" if self.delta else None,
            "--ledger": self.ledger,
            "--label": self.label or None,
            "--period": self.period,
            "--period-column": self.period_column,
            "--output": "release.json",
        }
        for option, value in [*options.items(), *(("--bins", one) for one in bins)]:
            if value is not None:
                given = str(value)
                words += [f"{option}={given}"] if given.startswith("-") else [option, given]
        if any(printable(word) != word for word in words):  # it could end the quotes of a terminal, or hide a part
            return "# A name has characters that are not seen, such as a line break. Use Python, which spells them."
        return f"{shlex.join(words)}\ncrowdgram report release.json --output report.html"

    def python(self) -> str:
        """The same job as Python code."""
        table = f"crowdgram.Database({self.source!r}, {self.table!r})" if self.table is not None else repr(self.source)
        ledger = None if self.ledger is None else repr(self.ledger)
        if ledger is not None and self._of_ledger():
            named = [f"{name}={value!r}" for name, value in self._of_ledger().items()]
            ledger = f"crowdgram.Ledger.open({', '.join([ledger, *named])})"
        given = {
            "user": repr(self.user),
            "item": _code(self.item, self.bins),
            "domain": self.domain.code,
            "where": None if self.where is None else repr(self.where),
            "by": None if self.by is None else _code(self.by, self.group_bins),
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
                "import os",
                "",
                "import crowdgram",
                "",
                'if os.path.exists("release.json"):',
                '    raise SystemExit("release.json exists. Move it first. Nothing was spent.")',
                "release = crowdgram.release(",
                f"    {table},",
                *lines,
                ")",
                'release.save("release.json")',
                'release.to_html("report.html")',
            ]
        )


def as_table(source: str, table: str | None) -> object:
    """A table by its path or address, and by its name if it is in a database. The errors are for the page's fields, and
    do not quote an address, which may hold a password.
    """
    if table is not None:
        if is_address(source):
            return Database(source, table)
        as_database(source)  # refuses addresses of an unknown kind
        raise InvalidArgument(
            f"database_table={table!r:.80}: is for databases, and the table's path is none: that is a DuckDB or SQLite "
            "file, or an address. Leave it out, or give the path of a database.",
            argument="database_table",
        )
    if "?" in source or not is_address(source):
        return as_database(source) or source
    with contextlib.suppress(InvalidArgument):
        return as_database(source)
    raise InvalidArgument(
        "database_table: the path is that of a database. Say which table of it to read.", argument="database_table"
    )


def _code(column: str, bins: Bins | None) -> str:
    return repr(column) if bins is None else f"{{{column!r}: crowdgram.Bins({bins.values!r}, {list(bins.edges)!r})}}"


def _listed_edges(bins: Bins) -> str:
    return ",".join(repr(edge) for edge in bins.edges)


def read_job(form: Mapping[str, Any]) -> Job:
    """The job of a form; an error names the field that is missing or no number."""
    source = path(form, "table", "the path of a table")
    item = text(form, "item", "the column of items")
    domain = _listed(form, "domain", "items.txt", source)
    by = optional(form, "by")
    bound = optional(form, "max_rows_per_user")
    ledger = None if optional(form, "ledger") is None else path(form, "ledger", "the file of a ledger")
    if source == "-":
        raise InvalidArgument("table='-': needs to be a file or a database here.", argument="table")
    if ledger is not None and _same(ledger, source):
        raise InvalidArgument(f"ledger={ledger!r}: is the table itself. Give the file of a ledger.", argument="ledger")
    for name in ("period", "period_column"):
        if ledger is None and optional(form, name) is not None:
            raise InvalidArgument(
                f"{name}={form[name]!r:.80}: is for a ledger. Give the file of one, or leave it out.", argument=name
            )
    if by is None and optional(form, "by_bins") is not None:
        raise InvalidArgument(
            f"by_bins={form['by_bins']!r:.80}: is for groups. Name their column, or leave it out.", argument="by_bins"
        )
    return Job(
        source=source,
        table=optional(form, "database_table"),
        user=text(form, "user", "the column of users"),
        item=item,
        epsilon=number(form, "epsilon"),
        delta=number(form, "delta", 0.0),
        domain=domain,
        weight=optional(form, "weight") or "rows",
        bins=_bins(form, "item_bins", item),
        where=optional(form, "where"),
        by=by,
        group_bins=None if by is None else _bins(form, "by_bins", by),
        groups=None if by is None else _listed(form, "groups", "groups.txt", source),
        max_rows_per_user=None if bound is None else whole(form, "max_rows_per_user"),
        ledger=ledger,
        label="" if ledger is None else optional(form, "label") or "",
        period=optional(form, "period"),
        period_column=optional(form, "period_column"),
    )


def text(form: Mapping[str, Any], name: str, what: str) -> str:
    found = optional(form, name)
    if found is None:
        raise InvalidArgument(f"{name}: needs {what}.", argument=name)
    return found


def path(form: Mapping[str, Any], name: str, what: str) -> str:
    """A path as the form has it; ~ is the home folder, as a shell would have it."""
    found = text(form, name, what)
    return os.path.expanduser(found) if found.startswith("~/") else found


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


def optional(form: Mapping[str, Any], name: str) -> str | None:
    """The text of a field; None if it is empty."""
    found = form.get(name) or ""
    if not isinstance(found, str) or "\0" in found or any("\ud800" <= char <= "\udfff" for char in found):
        raise InvalidArgument(f"{name}: needs to be text.", argument=name)
    return found if found.strip() else None


def _bins(form: Mapping[str, Any], name: str, column: str) -> Bins | None:
    """The intervals that numbers of a column are put into, by edges with commas between them; None without edges."""
    given = optional(form, name)
    if given is None:
        return None
    try:
        quoted = column.replace('"', '""')  # in quotes it is the name of a column, whatever it holds
        return Bins(f'"{quoted}"', tuple(float(edge) for edge in given.split(",")))
    except ValueError:  # an InvalidArgument too
        pass
    raise InvalidArgument(
        f"{name}={given!r:.80}: needs at least two numbers with commas between them, each above the one before, and "
        f"not more than {MOST_EDGES}, such as 0,18,30,65.",
        argument=name,
    )


def _listed(form: Mapping[str, Any], name: str, saved_as: str, source: str) -> Listed:
    """A public list as the form has it. A file with one item a line and a pasted list are read alike."""
    kind = form.get(f"{name}_kind", "discover")
    if kind == "discover":
        return Listed(saved_as)
    if kind == "list":
        pasted = text(form, f"{name}_list", "a list with one value a line").removeprefix("\ufeff")
        lines = pasted.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        return Listed(saved_as, pasted=tuple(line for line in lines if line))
    file = path(form, f"{name}_file", "the path of a public list")
    if _same(file, source):
        raise InvalidArgument(
            f"{name}={file!r}: is the table itself, which is private. Give a public list, or have it found.",
            argument=name,
        )
    return Listed(saved_as, file=f"./{file}" if file == "discover" else file)


def _same(one: str, other: str) -> bool:
    """Whether two paths share a file: also by a glob, a link, or the address of a database."""
    found = _files(other)
    return any(
        os.path.realpath(mine) == os.path.realpath(its) or _is_one_file(mine, its)
        for mine in _files(one)
        for its in found
    )


def _files(source: str) -> list[str]:
    file = (Database(source.partition("?")[0], "any").path or "") if is_address(source) else source
    return [file, *glob.iglob(file, recursive=True)] if file else []


def _is_one_file(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False
