"""An engine that caches: an audit runs the same queries over and over."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from ..tables.engines import DuckEngine
from ..tables.relations import Relation

__all__ = ["CachingEngine"]


class CachingEngine(DuckEngine):
    """DuckDB with a cache of results, of kept tables and of plans.

    A result is an exact function of the text of its query, whose tables are kept under names of their own and never
    change after they are made, so nothing else changes. What a release drops or closes stays for the next one.
    """

    @classmethod
    @contextmanager
    def open(cls) -> Iterator[CachingEngine]:
        """An engine, closed at the end."""
        engine = cls.embedded()
        assert isinstance(engine, cls)
        try:
            yield engine
        finally:
            super(cls, engine).close()

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._known: dict[Any, Any] = {}

    def fetch(self, table: Any, stage: str) -> pa.Table:
        return self._once(("fetch", *self._asked(table)), lambda: super(CachingEngine, self).fetch(table, stage))

    def keep(self, table: Any, stage: str) -> Any:
        return self._once(("keep", *self._asked(table)), lambda: super(CachingEngine, self).keep(table, stage))

    def count_by_bin(self, values: Any, edges: Sequence[float], stage: str) -> pa.Table:
        asked = ("bins", *self._asked(values), tuple(edges))
        return self._once(asked, lambda: super(CachingEngine, self).count_by_bin(values, edges, stage))

    def upload(self, table: pa.Table, stage: str) -> Any:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as stream:
            stream.write_table(table)
        content = sink.getvalue().to_pybytes()
        return self._once(("upload", content), lambda: super(CachingEngine, self).upload(table, stage))

    def exchange(self, table: Any, users: Any, rows: Any, stage: str) -> None:
        """Once: the rows that come are there already the next time."""
        asked = ("exchange", *(one.get_name() for one in (table, users, rows)))
        self._once(asked, lambda: super(CachingEngine, self).exchange(table, users, rows, stage))

    def check(self, table: Any, stage: str) -> None:
        self._once(("check", *self._asked(table)), lambda: super(CachingEngine, self).check(table, stage))

    def gives(self, table: Any, types: Mapping[str, str], stage: str) -> bool:
        asked = ("gives", *self._asked(table), tuple(types.items()))
        return bool(self._once(asked, lambda: super(CachingEngine, self).gives(table, types, stage)))

    def operators(self, table: Any) -> Iterator[str]:
        asked = ("operators", *self._asked(table))
        yield from self._once(asked, lambda: tuple(super(CachingEngine, self).operators(table)))

    def drop(self, table: Any) -> None:
        """Nothing: the next run asks for it again."""

    def close(self) -> None:
        """Nothing: the next run goes on with it."""

    def _asked(self, table: Any) -> tuple[Any, ...]:
        """A query, as what a cache knows it by. Not its expression: two that call the same function are not equal."""
        types = table.types if isinstance(table, Relation) else table.schema()
        return self._sql(table), *types.items()

    def _once(self, question: Any, ask: Callable[[], Any]) -> Any:
        if question not in self._known:
            self._known[question] = ask()
        return self._known[question]
