"""A finished file gets its name, and takes that of no other file unless this is asked for."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from .errors import UnwritableTarget

__all__ = ["exists_already", "put_in_place"]


def put_in_place(draft: Path, target: Path, *, overwrite: bool) -> None:
    """Give a finished file its name. The draft may stay behind under its own, for the caller to remove.

    overwrite: whether a file that is there is replaced. If not, that is an error, also for a file that another process
    makes in the meantime. On a file system without hard links an empty file holds the name for a moment; a process that
    is killed just then leaves it behind.
    """
    if overwrite:
        os.replace(draft, target)
        return
    try:
        os.link(draft, target)  # unlike a rename, it fails if the name is taken
        return
    except FileExistsError:
        pass
    except OSError:  # a file system without links: take the name first, then replace what holds it
        with contextlib.suppress(FileExistsError):
            os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            _replace_empty(draft, target)
            return
    raise exists_already(target)


def _replace_empty(draft: Path, target: Path) -> None:
    """Put a finished file in place of the empty one that holds its name, or neither."""
    try:
        os.replace(draft, target)
    except BaseException:
        with contextlib.suppress(OSError):
            if target.stat().st_size == 0:  # still ours
                target.unlink()
        raise


def exists_already(target: Path) -> UnwritableTarget:
    """The error for a file that may not be overwritten."""
    if target.is_dir():
        return UnwritableTarget(f"{str(target)!r} cannot be written: it is a folder. Give the name of a file.")
    return UnwritableTarget(
        f"{str(target)!r} exists, and nothing was written. Give another name, or overwrite it: overwrite=True, or "
        "--force on the command line."
    )
