"""Scratch folders: where the embedded engine puts rows that do not fit into memory.

What is in them is private, so that they are readable by their owner only and removed however a release ends. A process
that is killed cannot do that; the next one does it. A folder in use holds a locked file, and the lock goes with the
process: no process number is trusted, and no folder is touched whose lock is held, or that is another user's. One that
lacks the file was never used, and is removed once its maker has had an hour to lock it, if it is empty.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

try:
    import fcntl
except ImportError:  # no such locks on this system: nothing is swept
    fcntl = None  # type: ignore[assignment]

__all__ = ["make_scratch", "sweep"]

PREFIX = "crowdgram-"
LOCK = "in-use"
DRAFT = f"{LOCK}.new"
"""The lock before it has its name."""
UNLOCKED_SECONDS = 3600.0
"""After so long, who made a folder and has not locked it was killed in between."""


def make_scratch(within: str | os.PathLike[str] | None = None) -> tuple[str, Callable[[], None]]:
    """A new folder, and what removes it. Folders of processes that died are removed first.

    within: the folder to make it in; the system's for temporary files by default.
    """
    sweep(within)
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=within))  # mode 0700
    try:
        held = _lock(folder)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise

    def remove() -> None:
        shutil.rmtree(folder, ignore_errors=True)
        if held is not None:
            with contextlib.suppress(OSError):
                os.close(held)

    return str(folder), remove


def sweep(within: str | os.PathLike[str] | None = None) -> None:
    """Remove the scratch folders of this user whose process is gone."""
    if fcntl is None:
        return
    for folder in Path(tempfile.gettempdir() if within is None else within).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            if _is_own(folder):
                _remove_if_left(folder)


def _lock(folder: Path) -> int | None:
    """Lock a file in the folder for as long as this process, or a fork of it, lives."""
    if fcntl is None:
        return None
    # Locked before it has its name, so that nobody finds it unlocked while we live.
    draft = folder / DRAFT
    held = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        draft.rename(folder / LOCK)
    except BaseException:
        os.close(held)
        raise
    return held


def _is_own(folder: Path) -> bool:
    """Whether this is a real folder of this user that nobody else can read: what `make_scratch` makes."""
    found = folder.lstat()
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and stat.S_IMODE(found.st_mode) == 0o700


def _remove_if_left(folder: Path) -> None:
    try:
        lock = os.open(folder / LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        _remove_if_unused(folder)
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails while the owner lives
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(lock)


def _remove_if_unused(folder: Path) -> None:
    """Remove a folder that was never locked, of a process that was killed in between: it holds nothing but the draft.

    If its maker lives after all, it has been stopped, by a machine that slept perhaps. Either it finds no folder to
    lock, and fails before it reads a row, or it has locked it meanwhile, and `rmdir` fails, as the folder is not empty.
    """
    if time.time() - folder.lstat().st_mtime < UNLOCKED_SECONDS or not set(os.listdir(folder)) <= {DRAFT}:
        return
    with contextlib.suppress(FileNotFoundError):
        (folder / DRAFT).unlink()
    folder.rmdir()
