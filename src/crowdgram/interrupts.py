"""Ctrl-C, and other signals that end a program, while a library works that swallows them.

A signal's handler runs in whatever Python code comes next, and what it raises (`KeyboardInterrupt`, `SystemExit`)
passes through all of ours. But DuckDB asks for signals itself while it works, drops what the handler raised, and fails
with an error of its own; so does Arrow with a stream of rows. `catch_interrupts` keeps it, for the caller to raise.
While DuckDB is being loaded, what a handler raises ends the process in a crash: `hold_interrupts` has signals wait.
In a destructor Python drops it, with a traceback: `heed_dropped_errors` has the signal sent once more.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["SIGNALS", "catch_interrupts", "heed_dropped_errors", "hold_interrupts"]

SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK") if hasattr(signal, name)]
"""Those that ask a program to end."""
REPEATED_AFTER = 0.02
"""Seconds after which a signal is sent once more."""


@contextmanager
def catch_interrupts(stop: Callable[[], object] | None = None) -> Iterator[list[BaseException]]:
    """A list of what handlers of signals raise meanwhile. The handlers stay as they are, and are put back at the end.

    stop: called when one of them raises, to end what works. In another thread than the main one, to which no signal
    comes, the list stays empty.
    """
    raised: list[BaseException] = []
    if threading.current_thread() is not threading.main_thread():
        yield raised
        return

    def watched(handler: Callable[..., Any]) -> Callable[..., Any]:
        def handle(*args: Any) -> Any:
            try:
                return handler(*args)
            except BaseException as error:
                raised.append(error)
                if stop is not None:
                    stop()
                raise

        return handle

    found = {number: signal.getsignal(number) for number in SIGNALS}
    ours = {number: (handler, watched(handler)) for number, handler in found.items() if callable(handler)}
    for number, (_, handle) in ours.items():
        signal.signal(number, handle)
    try:
        yield raised
    finally:
        for number, (handler, handle) in ours.items():
            if signal.getsignal(number) is handle:  # Spark, for one, sets its own when it starts
                signal.signal(number, handler)


@contextmanager
def hold_interrupts() -> Iterator[None]:
    """Have signals wait until the end, and handle them then: for native code that crashes of an error in between.

    In another thread than the main one, to which no signal comes, there is nothing to do.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    waiting: list[tuple[int, Any]] = []

    def wait(number: int, frame: Any) -> None:
        waiting.append((number, frame))

    found = {number: signal.getsignal(number) for number in SIGNALS}
    handlers = {number: handler for number, handler in found.items() if callable(handler)}
    try:
        for number in handlers:
            signal.signal(number, wait)
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for number, frame in waiting:
            handlers[number](number, frame)


def heed_dropped_errors() -> None:
    """From now on: what a handler raises in a destructor, or wherever else Python drops an error, is not shown, and the
    signal comes again. For programs whose handlers raise `KeyboardInterrupt`, or `SystemExit` with 128 and the signal.
    Too little memory is not shown there either: what lacks it fails with words of its own.
    """
    usual = sys.unraisablehook

    def hook(dropped: Any) -> None:
        error = dropped.exc_value
        if isinstance(error, KeyboardInterrupt):
            _send_soon(signal.SIGINT)
        elif isinstance(error, SystemExit) and isinstance(error.code, int) and error.code - 128 in SIGNALS:
            _send_soon(error.code - 128)
        elif not isinstance(error, MemoryError):
            usual(dropped)

    sys.unraisablehook = hook


def _send_soon(number: int) -> None:
    """Send a signal to this process, from a thread: a handler that ran at once would raise in the hook."""
    if sys.is_finalizing():  # it ends in any case
        return
    timer = threading.Timer(REPEATED_AFTER, os.kill, (os.getpid(), number))
    timer.daemon = True
    timer.start()
