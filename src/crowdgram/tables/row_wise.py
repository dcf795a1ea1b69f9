"""A second check behind the rules: the engine's own plan of what they built holds projections and filters alone.

The rules of `sql_text` and `expressions` let nothing pass that looks beyond one row. If a rule were wrong, the plan
would show it: an aggregate, a window, a DISTINCT, a sort, a limit, a sample, a join, a set operation and a subquery
are operators of their own there. So what was built over the opened table is built over one row of nulls in its place,
and every operator of the plan has to be on the engine's list (`Engine.ROW_WISE`). What the opened table itself computes
(a view, an Ibis table, a frame) is not in that plan: whoever made it is responsible for it. The plan is read before
an engine simplifies it, and by the schema alone: no row is read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import ibis
import ibis.expr.datatypes as dt
import ibis.expr.operations as ops

from ..errors import PrivacyViolation
from .engines import Engine, shield

if TYPE_CHECKING:
    import ibis.expr.types as ir

__all__ = ["check_row_wise"]

_PLAIN = ("boolean", "integer", "decimal", "floating", "string", "uuid", "date", "timestamp")
"""Types that are computed with. Of all others nothing is asked but whether a value is null."""


def check_row_wise(engine: Engine, made: ir.Table, opened: ir.Table, stage: str) -> None:
    """Raise `PrivacyViolation` unless the engine plans `made`, which was built over `opened`, row by row.

    Only a fault in this package can make it raise. Whether it does depends on the schema and on what was asked.
    """
    found = shield(stage, lambda: list(engine.operators(_over_nulls(made, opened))))
    beyond = sorted(set(found) - engine.ROW_WISE)
    if beyond:
        raise PrivacyViolation(
            f"the engine's plan of the query, the filter or the items holds {', '.join(beyond)}, which may look at "
            "other rows than one. This is a fault of Crowdgram: please report it. No row was read."
        )


def _over_nulls(made: ir.Table, opened: ir.Table) -> ir.Table:
    """`made` as it would be over one row of nulls, in the types of `opened`."""
    nulls = {name: ibis.null(_type(dtype)).op() for name, dtype in opened.schema().items()}
    return made.op().replace({opened.op(): ops.DummyTable(nulls)}).to_expr()


def _type(dtype: dt.DataType) -> dt.DataType:
    plain = any(getattr(dtype, f"is_{kind}")() for kind in _PLAIN)
    return dtype.copy(nullable=True) if plain else dt.null
