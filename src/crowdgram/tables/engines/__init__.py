"""The engines in which tables are worked on: a class each; `ENGINES` is the list."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from .base import Engine, fresh_name, shield
from .duckdb import DuckEngine
from .resources import DuckDB, Spark, current_spark, running_session, start_session
from .spark import SparkEngine, hold_settings

if TYPE_CHECKING:
    import ibis.expr.types as ir

__all__ = [
    "ENGINES",
    "DuckDB",
    "DuckEngine",
    "Engine",
    "Spark",
    "SparkEngine",
    "current_spark",
    "engine_for",
    "fetch_public",
    "fresh_name",
    "hold_settings",
    "running_session",
    "shield",
    "start_session",
]

ENGINES: dict[str, type[Engine]] = {"duckdb": DuckEngine, "pyspark": SparkEngine}
"""By the name of the Ibis backend: where tables are worked on in place. The conformance suite holds all to the same
integers. From other databases that Ibis reaches, rows are streamed into the embedded DuckDB.
"""


def engine_for(backend: Any, on_close: Sequence[Callable[[], None]] = ()) -> Engine:
    """The engine for an Ibis backend that the caller connected, which is one of ENGINES."""
    return ENGINES[backend.name](backend, on_close)


def fetch_public(backend: Any, table: ir.Table, stage: str) -> pa.Table:
    """The rows of a public table on any Ibis backend."""
    if backend.name not in ENGINES:
        return shield(stage, lambda: backend.to_pyarrow(table))
    with engine_for(backend) as engine:
        return engine.fetch(table, stage)
