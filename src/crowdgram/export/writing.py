"""Files that are written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..errors import UnwritableTarget
from ..files import put_in_place

__all__ = ["write_whole"]


def write_whole(
    path: str | os.PathLike[str],
    content: str | bytes | Iterable[Any],
    *,
    overwrite: bool = False,
    private: bool = False,
) -> None:
    """Write a file so that a reader sees all of it or nothing: a temporary file beside it, synced, then named.

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
    try:
        made = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600 if private else 0o666)
        with open(made, "wb") as file:
            file.writelines(parts)
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
