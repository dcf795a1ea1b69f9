"""Garbage of a command, which is mostly what was loaded for all of its life.

Python looks through all of it whenever many objects were made, and several times when it ends: a fifth of the CPU time
of a small release. Only a command that has the process to itself does without: elsewhere the collector is somebody
else's.
"""

from __future__ import annotations

import gc
import sys

__all__ = ["collect_seldom", "keep_what_is_loaded"]

_MANY = 200_000

_alone = False


def collect_seldom() -> None:
    """Take the collector of this process for a command's own."""
    global _alone
    _alone = True
    gc.set_threshold(_MANY)


def keep_what_is_loaded() -> None:
    """Look no more for garbage among the objects that there are: call it when the libraries of a release are loaded.

    But not after DuckDB, which reports what it made as leaks if nobody clears it away at the end.
    """
    if _alone and "_duckdb" not in sys.modules:
        gc.freeze()
