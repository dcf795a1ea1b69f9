"""The columns of a table, by its schema: names and types, and nothing of any row."""

from __future__ import annotations

from typing import Any

from ..errors import UnreadableSource
from ..releases.exception_hygiene import sanitize_errors
from ..tables import as_database
from ..tables.sources import is_text, open_source
from .jobs import as_table

__all__ = ["columns_of"]


def _nothing(_: object) -> None:
    """Nothing follows."""


@sanitize_errors(then=_nothing)
def columns_of(source: str, table: str | None) -> dict[str, str] | None:
    """The type of each column by its name; None for text files, which have no schema.

    The first line of a CSV file is a header only if its author says so: else it is somebody's row. JSON has names in
    every row. So neither is shown, and the names have to be typed.
    """
    if source == "-":
        raise UnreadableSource("table='-': needs to be a file or a database here.")
    chosen: Any = as_table(source, table)
    if as_database(chosen) is None and is_text(chosen):
        return None
    engine, found = open_source(chosen, None, "")
    with engine:
        return {str(name): str(kind) for name, kind in engine.as_ibis(found).schema().items()}
