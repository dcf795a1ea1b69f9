"""Garbage of a command, which is mostly what was loaded for all of its life.

Python looks through all of it whenever many objects were made, and several times when it ends: a fifth of the CPU time
of a small release. Only a command that has the process to itself does without: elsewhere the collector is somebody
else's.
"""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys
import threading

from ..interrupts import SIGNALS

__all__ = ["collect_seldom", "end_at_once", "keep_what_is_loaded"]

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


def end_at_once(code: int) -> None:
    """End this process, unless threads are left to wait for, or what was printed cannot be written.

    What was asked to run at the end runs, and output is written. What was loaded is not taken apart: that takes a
    fifteenth of the time of a small release.
    """
    if threading.active_count() > 1:
        return
    for number in SIGNALS:  # all is done
        signal.signal(number, signal.SIG_IGN)
    atexit._run_exitfuncs()  # each of them once: Python would find none left
    for number in SIGNALS:  # a pipe that nobody reads may be full
        signal.signal(number, signal.SIG_DFL)
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except (OSError, ValueError):  # Python says so as it ends
        return
    os._exit(code & 0xFF)
