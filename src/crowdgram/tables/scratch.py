"""Scratch folders: where the embedded engine puts rows that do not fit into memory.

What is in them is private, so that they are readable by their owner only and removed however a release ends. A process
that is killed cannot do that; the next one does it. A folder in use holds a locked file, and the lock goes with the
process: no process number is trusted, and no folder is touched whose lock is held, or that is another user's. One that
lacks the file was never used, and is removed if it is empty: its maker, if that lives, makes another.
"""

from __future__ import annotations

import atexit
import contextlib
import errno
import os
import shutil
import stat
import tempfile
import uuid
from collections.abc import Callable
from functools import partial
from pathlib import Path

from ..errors import EngineFailure
from ..interrupts import hold_interrupts

try:
    import fcntl
except ImportError:  # no such locks on this system: nothing is swept
    fcntl = None  # type: ignore[assignment]

__all__ = ["make_scratch", "sweep"]

PREFIX = "crowdgram-"
NAME = f"{PREFIX}scratch-"
"""How the name of a folder begins. One that only begins with PREFIX may be an older version's, and if nobody locked it
somebody else's.
"""
LOCK = "in-use"
DRAFT = f"{LOCK}.new"
"""The lock before it has its name."""
TRIES = 100
"""Folders that are made until one is locked before another process sweeps it."""

_made: dict[str, int] = {}
"""The folders that are there, by the process that made them: a fork has no business with those of its parent."""


def make_scratch(within: str | os.PathLike[str] | None = None) -> tuple[str, Callable[[], None]]:
    """A new folder, and what removes it. Folders of processes that died are removed first.

    within: the folder to make it in; the system's for temporary files by default. If a signal ends the process before
    the caller can see to it, it is removed as the process ends.
    """
    sweep(within)
    place = os.path.abspath(_folder_for_temporary_files() if within is None else within)
    for _ in range(TRIES):
        folder = os.path.join(place, f"{NAME}{uuid.uuid4().hex[:12]}")
        _made[folder] = os.getpid()
        try:
            os.mkdir(folder, 0o700)
            held = _lock(Path(folder))
        except BaseException as error:
            _remove(folder)
            if isinstance(error, FileNotFoundError) and os.path.isdir(place):
                continue  # another process has swept it before it was locked
            if isinstance(error, OSError) and error.errno != errno.ENOMEM:
                raise _no_scratch(place, error.strerror or type(error).__name__) from None
            raise
        return folder, partial(_remove, folder, held)
    raise _no_scratch(place, "other processes removed each at once")


def _no_scratch(place: str, reason: str) -> EngineFailure:
    return EngineFailure(
        f"no scratch folder can be made in {place!r}: {reason}. Nothing was released. Make room there, or give another "
        "folder: temp_directory, or --temp-directory on the command line."
    )


def _remove(folder: str, held: int | None = None) -> None:
    _clear(folder)
    _made.pop(folder, None)
    if held is not None:
        with contextlib.suppress(OSError):
            os.close(held)


def _clear(folder: str | os.PathLike[str]) -> None:
    """Remove a folder, its lock last: if this process is killed meanwhile, the next one finds what is left by it."""
    with contextlib.suppress(OSError):
        for one in os.scandir(folder):
            if one.is_dir(follow_symlinks=False):
                shutil.rmtree(one.path, ignore_errors=True)
            elif one.name != LOCK:
                with contextlib.suppress(OSError):
                    os.unlink(one.path)
        if os.listdir(folder) == [LOCK]:
            os.unlink(os.path.join(folder, LOCK))
        os.rmdir(folder)


@atexit.register
def _remove_all() -> None:
    for folder, process in list(_made.items()):
        if process == os.getpid():
            _remove(folder)


def sweep(within: str | os.PathLike[str] | None = None) -> None:
    """Remove the scratch folders of this user whose process is gone."""
    if fcntl is None:
        return
    for folder in Path(_folder_for_temporary_files() if within is None else within).glob(f"{PREFIX}*"):
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
        _clear(folder)
    finally:
        os.close(lock)


def _remove_if_unused(folder: Path) -> None:
    """Remove a folder that was never locked, of a process that was killed in between: it holds nothing but the draft.

    If its maker lives after all, it finds no folder, or no draft, and makes another one; or it has locked it meanwhile,
    and `rmdir` fails, as the folder is not empty.
    """
    if not folder.name.startswith(NAME) or not set(os.listdir(folder)) <= {DRAFT}:
        return
    with contextlib.suppress(FileNotFoundError):
        (folder / DRAFT).unlink()
    folder.rmdir()


def _folder_for_temporary_files() -> str:
    """The system's. To find it, Python writes a file and removes it, which Ctrl-C in between would leave."""
    with hold_interrupts():
        return tempfile.gettempdir()
