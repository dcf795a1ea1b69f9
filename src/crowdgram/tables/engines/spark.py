"""Spark as an engine: the session is the caller's."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa

from ..relations import INTEGER, REAL, TEXT, Dialect, Relation
from .base import Engine, fresh_name, function, shield

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from .base import Table

__all__ = ["SparkEngine", "hold_settings"]

BROADCAST_ROWS = 2**20
"""Public tables up to this size are copied to every machine; Spark itself would stop at 10 MB, some 400,000 items."""
PARTITION_BYTES, LEAST_PARTITIONS = 2**24, 2
"""Of the tables that are read: about three million rows of two numbers in Parquet."""
_SETTINGS = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.optimizer.canChangeCachedPlanOutputPartitioning": "true",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.variable.substitute": "false",
}
CHANGED = (*_SETTINGS, "spark.sql.mapKeyDedupPolicy")
"""Settings that a release changes: the last is one of Ibis, which changes the time zone too."""
HELD: dict[str, tuple[int, dict[str, str | None]]] = {}
"""How many hold the settings of a session, and what these were before the first of them."""
_LOCK = threading.Lock()


def hold_settings(session: Any) -> Callable[[], None]:
    """Note the settings of a session before they are changed; what is returned puts them back.

    Not before the last that holds them is done: of two releases in one session, the first to end would take ANSI mode
    from the other, and the last would leave behind what it took for the user's.
    """
    java = getattr(session, "_jsparkSession", None)  # PySpark has several objects for one session
    same = str(session.session_id if java is None else java.toString())
    with _LOCK:
        held, before = HELD.get(same) or (0, {name: session.conf.get(name, None) for name in CHANGED})
        HELD[same] = held + 1, before

    def put_back() -> None:
        with _LOCK:
            held, before = HELD.pop(same)
            if held > 1:
                HELD[same] = held - 1, before
                return
            for name, value in before.items():
                if value is None:  # it had Spark's default, which for the time zone is the machine's
                    session.conf.unset(name)
                else:
                    session.conf.set(name, value)

    return put_back


class SparkEngine(Engine):
    """Spark through PySpark: kept tables are cached data frames behind temporary views.

    The session is the user's. Until the end it has _SETTINGS: ANSI mode, since without it a sum that leaves 64 bits
    would wrap around silently, and no bound would hold; kept tables with as many partitions as their size needs instead
    of 200 (if adaptive execution is on, as it is by default); constants read in the way in which Ibis writes them; UTC,
    so that the day of a moment does not depend on the session; and no settings put in place of `${name}`, which could
    hold a quote and end the constant.
    """

    name = package = "pyspark"
    dialect = Dialect(
        quote="`",
        types={
            pa.int8(): "TINYINT",
            pa.int16(): "SMALLINT",
            pa.int32(): "INT",
            INTEGER: "BIGINT",
            pa.float32(): "FLOAT",
            REAL: "DOUBLE",
            TEXT: "STRING",
        },
        quotient="({} DIV {})",
        numbers="EXPLODE(SEQUENCE(CAST(0 AS BIGINT), {} - 1))",
        hexadecimal="CAST(CONV({}, 16, 10) AS BIGINT)",
    )
    TYPES: ClassVar[Mapping[str, Sequence[str]]] = {
        "integer": ("bigint",),
        "real": ("double",),
        "string": ("string",),
        "boolean": ("boolean",),
        "date": ("date",),
        "timestamp": ("timestamp", "timestamp_ntz"),
    }
    ROW_WISE = frozenset({"Project", "Filter", "SubqueryAlias", "OneRowRelation"})

    def __init__(self, backend: Any, on_close: Iterable[Callable[[], None]] = ()) -> None:
        session = backend._session
        super().__init__(backend, [hold_settings(session), *on_close])
        for name, value in _SETTINGS.items():
            session.conf.set(name, value)
        self._session = session
        self._frames: dict[str, Any] = {}
        self._parts = 0

    def exact(self, text: Any) -> Any:
        # A cast, which takes off a collation; Ibis would leave out its own.
        return function("try_validate_utf8")(function("string")(text))

    def pattern(self, like: str) -> str:
        return like.replace("\\", "\\\\")  # it escapes, and in front of most characters it is an error

    def operators(self, table: ir.Table) -> Iterator[str]:
        # Spark Connect shows its plan as text only, in which a constant of the caller may look like an operator.
        frame = getattr(self._session.sql(str(self.backend.compile(table))), "_jdf", None)
        todo = [] if frame is None else [frame.queryExecution().analyzed()]
        while todo:
            one = todo.pop()
            todo += [one.children().apply(place) for place in range(one.children().size())]
            yield str(one.nodeName())
            if one.subqueries().size():  # they belong to expressions, and are no children
                yield "Subquery"

    def gather_users(self, table: Relation, stage: str, /) -> Relation:
        # Not before rows are counted: of a user with a tenth of all rows, one machine would count them all. A fixed
        # number of partitions, the same for all tables: Spark does not see that tables agree in their partitions if it
        # has chosen them itself. In the order of users, so that joins by user do not sort again.
        name = fresh_name()

        def gather() -> Relation:
            frame = self._session.sql(table.sql)
            self._parts = self._parts or self._partitions(frame)
            frame = frame.repartition(self._parts, "user").sortWithinPartitions("user")
            frame.createOrReplaceTempView(name)
            return Relation.named(self.dialect, name, table.types)

        self.before_close(lambda: self._session.catalog.dropTempView(name))
        return shield(stage, gather, self._stop)

    def _partitions(self, frame: Any) -> int:
        """How many partitions the rows of a frame need, by the size of the tables that it reads as Spark states it: of
        files, that on the disk. No row is read.
        """
        most = int(self._session.conf.get("spark.sql.shuffle.partitions"))
        if not hasattr(frame, "_jdf"):  # Spark Connect does not hand out its plan
            return most
        parts, size, todo = 0, 0, [frame._jdf.queryExecution().optimizedPlan()]
        while todo:
            top = one = todo.pop()
            while one.children().size() == 1:
                one = one.children().head()
            todo += [one.children().apply(place) for place in range(one.children().size())]
            if str(one.getClass().getSimpleName()) == "LogicalRDD":  # of unknown size
                parts += int(one.rdd().getNumPartitions())
            elif not one.children().size():
                # With what is above it, which leaves out columns; that of a join would be a product.
                size += int(str(top.stats().sizeInBytes()))
        return min(most, max(LEAST_PARTITIONS, parts + size // PARTITION_BYTES))

    def _create(self, name: str, query: str) -> None:
        self._hold(name, self._session.sql(query))

    def _plan(self, table: Table) -> None:
        self._session.sql(self._sql(table))

    def _fetch(self, table: Relation) -> pa.Table:
        return self._rows(table.typed()).cast(pa.schema(list(table.types.items())))

    def _rows(self, query: str) -> pa.Table:
        return self._session.sql(query).toArrow()

    def _types(self, table: ir.Table) -> dict[str, str]:
        return dict(self._session.sql(self._sql(table)).dtypes)

    def _upload(self, name: str, table: pa.Table) -> None:
        # Not by way of pandas, which starts processes. Sent everywhere, so that joins with it do not move private rows.
        frame = self._session.createDataFrame(table)
        self._hold(name, frame, hint="broadcast" if table.num_rows <= BROADCAST_ROWS else None)

    def _hold(self, name: str, frame: Any, hint: str | None = None) -> None:
        frame = frame.cache()
        frame.count()  # fills the cache now: the source is read once, and later passes all see the same rows
        (frame.hint(hint) if hint else frame).createOrReplaceTempView(name)
        self._frames[name] = frame

    def _drop(self, name: str) -> None:
        self._session.catalog.dropTempView(name)
        self._frames.pop(name).unpersist()
