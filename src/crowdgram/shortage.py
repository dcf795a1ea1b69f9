"""Too little memory, in whatever words a library says so.

Python and NumPy raise `MemoryError`, and Arrow a kind of it. But a shared library that finds no room is an ImportError
or an OSError with words of the system's loader, a thread that cannot be started a RuntimeError, and DuckDB has an error
of its own. Code in C that overlooks a failure may raise anything later: that the process has come near its limit tells
then. Nothing here looks into the message of an error that may quote rows: only into those of the loader and of Python.
"""

from __future__ import annotations

import errno
import mmap
from collections.abc import Iterator
from pathlib import Path

try:
    import resource
except ImportError:  # no such limits on this system
    resource = None  # type: ignore[assignment]

__all__ = ["TOO_LITTLE_MEMORY", "check_room", "is_near_limit", "is_shortage"]

TOO_LITTLE_MEMORY = "there is too little memory for this command. Give it more."

_LOADER = (
    "failed to map segment",
    "cannot allocate memory",
    "cannot map zero-fill pages",
    "cannot create shared object descriptor",
    "cannot create cache",
    "cannot apply additional memory protection",
    "cannot change memory protections",
    "cannot make segment writable",
    "out of memory",
    "paging file is too small",  # Windows
    "not enough memory",
)
"""What the system's loader says of a library for which there is no room, in small letters."""
_THREAD = ("can't start new thread", "can't allocate lock")
"""What Python says of a thread that the system does not give it."""
_OUT_OF_MEMORY = ("_duckdb", "OutOfMemoryException")
"""DuckDB's error, by name: it is slow to load."""
_NEAR = 256 * 2**20
"""A process that came so near to its limit may have failed for it: a large library is mapped in one piece."""


def is_shortage(error: BaseException) -> bool:
    """Whether an error, or one that it came of, says that there is too little memory."""
    return any(map(_says_so, _behind(error)))


def check_room(size: int) -> None:
    """Raise MemoryError unless there is room for `size` more bytes: for a library that crashes without it."""
    try:
        mmap.mmap(-1, size).close()
    except (OSError, ValueError):
        raise MemoryError from None


def is_near_limit() -> bool:
    """Whether the process has come near the limit of its address space, if the system sets one: an error that says
    nothing of memory may come of it all the same.
    """
    if resource is None:
        return False
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        return False
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
        [peak] = [1024 * int(line.split()[1]) for line in lines if line.startswith("VmPeak:")]
    except (OSError, ValueError):
        return False
    return peak + _NEAR > limit


def _behind(error: BaseException) -> Iterator[BaseException]:
    """An error and all that it came of; OpenDP also gives one as an argument."""
    todo, seen = [error], set()
    while todo:
        one = todo.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        todo += [cause for cause in (one.__cause__, one.__context__, *one.args) if isinstance(cause, BaseException)]
        if isinstance(one, BaseExceptionGroup):
            todo += one.exceptions


def _says_so(error: BaseException) -> bool:
    if isinstance(error, MemoryError) or _OUT_OF_MEMORY in {
        (one.__module__, one.__name__) for one in type(error).__mro__
    }:
        return True
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno == errno.ENOMEM
    if isinstance(error, ImportError) or (isinstance(error, OSError) and _is_of_ctypes(error)):
        said = str(error).lower()
        return any(words in said for words in _LOADER)
    return isinstance(error, RuntimeError) and error.args[:1] in [(words,) for words in _THREAD]


def _is_of_ctypes(error: BaseException) -> bool:
    """Whether it was raised by the module that loads libraries; Arrow has errors of that kind too, which may quote."""
    frames = error.__traceback__
    while frames is not None and frames.tb_next is not None:
        frames = frames.tb_next
    return frames is not None and frames.tb_frame.f_globals.get("__name__") == "ctypes"
