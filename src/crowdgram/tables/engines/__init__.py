"""The engines in which tables are worked on. Each is one class in one file; `ENGINES` is the only list."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .base import Engine, fresh_name, shield
from .duckdb import DuckEngine
from .spark import SparkEngine

__all__ = ["ENGINES", "DuckEngine", "Engine", "SparkEngine", "engine_for", "fresh_name", "shield"]

ENGINES: dict[str, type[Engine]] = {"duckdb": DuckEngine, "pyspark": SparkEngine}
"""By the name of the Ibis backend: where tables are worked on in place. The conformance suite holds all to the same
integers. From other databases that Ibis reaches, rows are streamed into the embedded DuckDB.
"""


def engine_for(backend: Any, on_close: Sequence[Callable[[], None]] = ()) -> Engine:
    """The engine for an Ibis backend that the caller connected."""
    return ENGINES.get(backend.name, Engine)(backend, on_close)
