"""Where a release is worked out: in the embedded engine, with so much memory and so many threads, or in Spark."""

from __future__ import annotations

import os
import re
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from ...errors import EngineFailure, InvalidArgument, MissingDependency
from ...shortage import is_shortage

__all__ = ["DuckDB", "Spark", "current_resources", "current_spark", "running_session", "start_session"]

UNITS = {"KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}
LEAST_MEMORY = 100 * 10**6
"""Bytes: with less the engine may fail to sort or group, after a release is paid for."""
MOST_THREADS = 1024

FEW_THREADS = 4
"""DuckDB cuts a hash table into as many parts as it has threads, at first. On two cores, with four threads, parts fit
into the processor's cache: a group-by of 20 million rows takes half the CPU time.
"""
ARRAY_BITS, MEMORY_FOR_ARRAYS = 20, 10**9
"""Groups by integers of a range below 2^ARRAY_BITS are kept in an array for each thread, instead of a hash table, if
there is so much memory: a fifth less CPU time of a whole release.
"""


@dataclass(frozen=True)
class DuckDB:
    """What the embedded DuckDB may use, for all releases that are made within it:

        with crowdgram.DuckDB(memory_limit="4GB", threads=4):
            release = crowdgram.release("visits.parquet", ...)

    memory_limit: such as "4GB" or "500MiB", at least 100MB; what does not fit is kept in `temp_directory`. Memory that
        Python, Arrow and the noise need is not part of it. By default, 80% of what the machine has.
    threads: how many work at once. By default, one for each core, and at least four.
    temp_directory: a folder that exists. Within it is a folder that only this user can read, removed at the end. By
        default, the system's folder for temporary files.

    It holds for the thread, or the task, that enters it. A table in a DuckDB connection of your own, or in Spark, is
    worked on there: set that engine's own options instead.
    """

    memory_limit: str | None = None
    threads: int | None = None
    temp_directory: str | os.PathLike[str] | None = None

    def __post_init__(self) -> None:
        if self.memory_limit is not None:
            _check_memory(self.memory_limit)
        threads = self.threads
        if threads is not None and (
            isinstance(threads, bool) or not isinstance(threads, int) or not 1 <= threads <= MOST_THREADS
        ):
            raise InvalidArgument(
                f"threads={threads!r}: needs to be a whole number from 1 to {MOST_THREADS}. Leave it out for one a "
                "core.",
                argument="threads",
            )
        if self.temp_directory is not None:
            _check_folder(self.temp_directory)

    def __enter__(self) -> DuckDB:
        _ENTERED.set((*_ENTERED.get(), self))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _ENTERED.set(_ENTERED.get()[:-1])

    @property
    def settings(self) -> dict[str, Any]:
        """What is set when DuckDB is started."""
        given = {"memory_limit": self.memory_limit, "threads": self.threads or max(os.cpu_count() or 1, FEW_THREADS)}
        if self.memory_limit is None or _check_memory(self.memory_limit) >= MEMORY_FOR_ARRAYS:
            given["perfect_ht_threshold"] = ARRAY_BITS
        return {name: value for name, value in given.items() if value is not None}

    def __bool__(self) -> bool:
        """Whether anything is asked for."""
        return self != DuckDB()


class Spark:
    """Work in Spark, for all releases that are made within it:

        with crowdgram.Spark(master="spark://host:7077"):
            release = crowdgram.release("hdfs:///visits/*.parquet", ...)

    master: the cluster's address, such as "spark://host:7077", "yarn", "k8s://https://host:6443" or "local[4]". By
        default, the session that is running; if there is none, what Spark's own configuration says.

    Within it a table is a path or glob of Parquet files, as Spark understands paths; the name of a table of Spark's
    catalogue, such as "shop.visits"; or a Spark data frame. A session that is started here is stopped at the end. It
    shows no page and no bar of progress, and logs nothing, as all of these tell of rows. It holds for the thread, or
    the task, that enters it.
    """

    def __init__(self, master: str | None = None) -> None:
        if master is not None and (not isinstance(master, str) or not master.strip()):
            raise InvalidArgument(
                f"master={master!r}: needs to be an address such as 'spark://host:7077', 'yarn' or 'local[4]'.",
                argument="master",
            )
        if master is not None and master.startswith("sc:"):
            raise InvalidArgument(
                f"master={master!r}: is an address of Spark Connect. Make the session yourself, and give its data "
                "frame as the table.",
                argument="master",
            )
        self.master = master
        self._own: Any = None

    def __repr__(self) -> str:
        return f"Spark(master={self.master!r})" if self.master else "Spark()"

    def __enter__(self) -> Spark:
        _ENTERED.set((*_ENTERED.get(), self))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _ENTERED.set(_ENTERED.get()[:-1])
        own, self._own = self._own, None
        if own is not None:
            own.stop()

    def session(self) -> Any:
        """The session that is running, or one that is started, and stopped at the end."""
        running = running_session()
        if running is None:
            self._own = start_session(self.master)
            return self._own
        if self.master not in (None, running.conf.get("spark.master", None)):
            raise InvalidArgument(
                f"master={self.master!r}: is not that of the Spark session that is running. Stop that session, or "
                "leave master out.",
                argument="master",
            )
        return running


def running_session() -> Any:
    """The Spark session of this process, if there is one."""
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        if is_shortage(error):
            raise
        raise MissingDependency("pyspark is not installed: pip install 'crowdgram[spark]'.", name="pyspark") from None
    return SparkSession.getActiveSession() or SparkSession._instantiatedSession


def start_session(master: str | None) -> Any:
    """A session of our own. What Spark shows and logs, sizes and values, depends on rows: it does neither."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName("crowdgram")
    for name, value in _QUIET.items():
        builder = builder.config(name, value)
    try:
        return (builder if master is None else builder.master(master)).getOrCreate()
    except Exception:  # noqa: BLE001 (pages of Java, and perhaps of settings)
        pass
    given = "" if master is None else f" on {master!r}"
    raise EngineFailure(
        f"Spark could not be started{given}. Check the address, and that Java 17 is installed here.",
        stage="starting Spark",
    )


_QUIET = {
    "spark.eventLog.enabled": "false",
    "spark.log.level": "OFF",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}

_ENTERED: ContextVar[tuple[DuckDB | Spark, ...]] = ContextVar("entered", default=())


def current_resources() -> DuckDB:
    """The innermost `DuckDB` that is entered; if there is none, one without limits."""
    entered = _ENTERED.get()
    return entered[-1] if entered and isinstance(entered[-1], DuckDB) else DuckDB()


def current_spark() -> Spark | None:
    """The `Spark` that is entered, if that is the innermost."""
    entered = _ENTERED.get()
    return entered[-1] if entered and isinstance(entered[-1], Spark) else None


def _check_memory(given: object) -> int:
    """The bytes of a limit."""
    text = given if isinstance(given, str) else ""
    parts = re.fullmatch(r"\s*([0-9]{1,9}(?:\.[0-9]{1,6})?)\s*([KMGT]i?B)\s*", text, re.IGNORECASE)
    if parts is None:
        raise InvalidArgument(
            f"memory_limit={given!r}: needs to be a size such as '4GB' or '500MiB'.", argument="memory_limit"
        )
    size = int(float(parts[1]) * UNITS[parts[2].upper()])
    if size < LEAST_MEMORY:
        raise InvalidArgument(
            f"memory_limit={given!r}: needs to be at least 100MB. Give the engine more.", argument="memory_limit"
        )
    return size


def _check_folder(given: object) -> None:
    if not isinstance(given, (str, os.PathLike)) or not Path(given).is_dir() or not os.access(given, os.W_OK | os.X_OK):
        raise InvalidArgument(
            f"temp_directory={given!r}: needs to be a folder that exists and can be written to. Make it first.",
            argument="temp_directory",
        )
