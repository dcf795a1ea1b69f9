"""Files that are written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..errors import UnwritableTarget
from ..files import exists_already, put_in_place

__all__ = ["write_whole"]


def write_whole(
    path: str | os.PathLike[str],
    content: str | bytes | Iterable[Any],
    *,
    overwrite: bool = False,
    private: bool = False,
) -> None:
    """Write a file so that a reader sees all of it or nothing: a file without a name, synced, then named.

    Where the system has no such files, and if one that is there is replaced, it has a name beside the target first. A
    process that is killed then leaves it behind.

    content: a text, bytes, or parts of bytes, one after another.
    overwrite: whether a file that is there is replaced; it is an error otherwise. private: only its owner can read it.
    Else it has the permissions of any new file: a release is made to be shared.
    """
    if not os.fspath(path):
        raise UnwritableTarget("path='': needs to be the name of a file. Nothing was written.")
    target = Path(path)
    parts: Iterable[Any] = [content.encode()] if isinstance(content, str) else content
    if isinstance(parts, bytes):
        parts = [parts]
    draft = target.parent / f".crowdgram-{uuid.uuid4().hex}"
    mode = 0o600 if private else 0o666
    try:
        rest = parts if overwrite else _write_unnamed(target, parts, mode)
        if rest is None:
            return
        made = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode)
        with open(made, "wb") as file:
            file.writelines(rest)
            file.flush()
            os.fsync(file.fileno())
        put_in_place(draft, target, overwrite=overwrite)
    except UnwritableTarget:
        raise
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise UnwritableTarget(f"{os.fspath(path)!r} cannot be written: {reason}. Nothing was written.") from None
    finally:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)


def _write_unnamed(target: Path, parts: Iterable[Any], mode: int) -> Iterable[Any] | None:
    """Write a file that has no name until it is whole. What is to be written by other means, if there are none such."""
    if not hasattr(os, "O_TMPFILE"):
        return parts
    try:
        open_files = os.open("/proc/self/fd", os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return parts
    try:
        try:
            made = os.open(target.parent, os.O_TMPFILE | os.O_RDWR, mode)
        except OSError:  # or the folder cannot be written to, as a file with a name will say
            return parts
        with open(made, "w+b") as file:
            file.writelines(parts)
            file.flush()
            os.fsync(file.fileno())
            try:
                # By the folder, as Python would else link the symbolic link that stands there for the file.
                os.link(str(made), target, src_dir_fd=open_files, follow_symlinks=True)
            except FileExistsError:
                raise exists_already(target) from None
            except OSError:  # a file system without links
                file.seek(0)
                return [file.read()]
        return None
    finally:
        os.close(open_files)
