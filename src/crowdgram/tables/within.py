"""Rows of one period: a filter by a column of moments, half-open, made of functions that have a value on every row."""

from __future__ import annotations

import datetime
import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..errors import InvalidTable
from .roles import Role

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from .engines import Engine

__all__ = ["PERIOD_COLUMN", "Within"]

PERIOD_COLUMN = Role("period_column")
_WRITTEN = r"^\s*[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?)?\s*$"


@dataclass(frozen=True)
class Within:
    """Rows whose moment in a column is on or after `start` and before `end`; a row without one is of no period."""

    column: str
    start: datetime.date
    end: datetime.date

    def verdict(self, engine: Engine, table: ir.Table) -> Any:
        """Whether each row is of the period: true, false or null.

        Timestamps with a zone are taken in UTC, which engines are set to. Text is a moment if it is written as one
        without a zone: what engines make of other text depends on them, and of a bare time on the clock.
        Guarantee: it depends on the row alone and fails on none (docs/proofs/filters.md).
        """
        import ibis  # slow to load, and few releases need it

        from . import row_functions as row
        from .expressions import checked

        moment = row.read(engine, table[self.column])
        if row.type_of(moment) == "string":
            moment = row.cast(ibis.ifelse(moment.re_search(_WRITTEN), moment.strip(), ibis.null("string")), "timestamp")
        if row.type_of(moment) not in row.MOMENTS:
            raise InvalidTable(
                f"period_column={self.column!r}: has type {table[self.column].type()}, and needs dates or timestamps, "
                "or text of such as 2026-11-03. Cast it first.",
                column=self.column,
            )
        start, end = (row.constant(one, "date") for one in (self.start, self.end))
        made = row.every([row.compare(operator.ge, moment, start), row.compare(operator.lt, moment, end)])
        return checked(made, engine, table, PERIOD_COLUMN, f"period_column={self.column!r}")
