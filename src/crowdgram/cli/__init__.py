"""The command line: `crowdgram`."""

from __future__ import annotations

__all__ = ["main"]


def main() -> None:
    """Run the command line; the entry point of the `crowdgram` script."""
    import sys

    from .app import app

    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character shows its escape: no release may be lost to an encoding.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    app()
