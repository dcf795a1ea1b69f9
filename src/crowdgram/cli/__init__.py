"""The command line: `crowdgram`."""

from __future__ import annotations

__all__ = ["main", "script"]


def script() -> None:
    """The `crowdgram` script, which has the process to itself: run the command line, and end the process."""
    code: object = 0
    try:
        main()
    except SystemExit as ended:
        code = 0 if ended.code is None else ended.code
    from .garbage import end_at_once

    if isinstance(code, int):
        end_at_once(code)
    raise SystemExit(code)


def main() -> None:
    """Run the command line."""
    import sys

    if sys.argv[1:] == ["--version"]:  # as the option does, but without loading the command line
        from .. import __version__

        sys.stdout.write(f"crowdgram {__version__}\n")
        return
    try:
        _run()
    except KeyboardInterrupt:  # before a command has begun: imports take a while
        sys.stderr.write("interrupted; nothing was written.\n")
        sys.exit(130)
    except Exception as error:  # a command sees to its own; this is before one has begun
        from ..shortage import TOO_LITTLE_MEMORY, is_shortage

        if not is_shortage(error):
            raise
        sys.stderr.write(f"error: {TOO_LITTLE_MEMORY}\n")
        sys.exit(1)


def _run() -> None:
    import os
    import signal
    import sys

    from ..interrupts import heed_dropped_errors
    from .garbage import collect_seldom

    heed_dropped_errors()
    collect_seldom()
    # The arrays of a release are small, and the threads that numpy would start for them wait in a busy loop.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

    from .app import app_of
    from .special_functions import defer_scipy_special

    if not {"-h", "--help"} & set(sys.argv):
        defer_scipy_special()

    def leave(number: int, _: object) -> None:
        sys.exit(128 + number)

    # By default a process that is asked to end just ends, and leaves what it spilled to disk behind.
    for name in ("SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), leave)

    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character shows its escape: no release may be lost to an encoding.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    app_of(sys.argv[1] if len(sys.argv) > 1 else None)()
