"""Saved results of any kind: a file says by its schema what it holds."""

from __future__ import annotations

import hashlib
import os
from typing import Any

from ..errors import UnreadableSource
from ..results.grouped import GroupedRelease
from ..results.grouped_reach import GroupedReach
from ..results.reach import Reach
from ..results.release import Release
from .json_file import decoded, parse_document, read_bytes, read_document, read_text, to_parts
from .json_file import to_text as release_to_text
from .reach_file import REACH_SCHEMA, parse_reach, reach_to_text
from .writing import write_whole

__all__ = ["load", "load_hashed", "load_reach", "parse", "parse_values", "save", "to_text"]


def to_text(result: Release | GroupedRelease | Reach | GroupedReach) -> str:
    """The content of the file that `save` writes."""
    return reach_to_text(result) if isinstance(result, Reach | GroupedReach) else release_to_text(result)


def save(
    result: Release | GroupedRelease | Reach | GroupedReach, path: str | os.PathLike[str], *, overwrite: bool = False
) -> None:
    """Write a result to `path`."""
    written = reach_to_text(result) if isinstance(result, Reach | GroupedReach) else to_parts(result)
    write_whole(path, written, overwrite=overwrite)


def load(path: str | os.PathLike[str]) -> Release | GroupedRelease | Reach | GroupedReach:
    """Read a saved release, grouped release or reach, checking its schema version and its shape."""
    return parse(read_text(path), os.fspath(path))


def load_hashed(path: str | os.PathLike[str]) -> tuple[Release | GroupedRelease | Reach | GroupedReach, str]:
    """A saved result, and the SHA-256 of the file that it was read from, which is read once."""
    content, where = read_bytes(path), os.fspath(path)
    return parse(decoded(content, where), where), hashlib.sha256(content).hexdigest()


def load_reach(path: str | os.PathLike[str]) -> Reach:
    """Read a saved reach."""
    loaded = load(path)
    if not isinstance(loaded, Reach):
        kind = "reach by groups" if isinstance(loaded, GroupedReach) else "release"
        raise UnreadableSource(f"{os.fspath(path)!r} is a saved {kind}, not a reach. Read it with crowdgram.load.")
    return loaded


def parse(text: str, where: str) -> Release | GroupedRelease | Reach | GroupedReach:
    """The result that `to_text` wrote; `where` it comes from is for errors."""
    return parse_values(read_document(text, where), where)


def parse_values(document: dict[str, Any], where: str) -> Release | GroupedRelease | Reach | GroupedReach:
    """The result in the JSON values of a saved file."""
    return parse_reach(document, where) if document.get("schema") == REACH_SCHEMA else parse_document(document, where)
