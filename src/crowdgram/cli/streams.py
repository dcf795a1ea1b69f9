"""`-` on the command line: standard input as a table, and standard output as a file."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path

from ..errors import UnreadableSource, UnwritableTarget

__all__ = ["STANDARD", "FormatChoice", "input_as_file", "is_standard", "print_json"]

STANDARD = "-"


class FormatChoice(StrEnum):
    CSV = "csv"
    TSV = "tsv"
    JSONL = "jsonl"
    PARQUET = "parquet"


def is_standard(path: Path | str) -> bool:
    """Whether `path` means standard input or output. A file of that name is ./- ."""
    return str(path) == STANDARD


def print_json(text: str) -> None:
    """Print JSON in ASCII: a name in it then steers no terminal, and any encoding can hold it."""
    plain = json.dumps(json.loads(text), indent=1)
    try:
        sys.stdout.write(plain + "\n")
        sys.stdout.flush()
        return
    except OSError as error:
        reason = error.strerror or type(error).__name__
    with contextlib.suppress(OSError):  # what is still in its buffer would fail once more at the end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    raise UnwritableTarget(f"--output '-': standard output cannot be written: {reason}.")


@contextlib.contextmanager
def input_as_file(kind: FormatChoice) -> Iterator[str]:
    """The path of a copy of standard input, which is removed at the end.

    Its rows are private, so it is in a scratch folder, like those that the engine spills to: readable by its owner
    only, and removed by the next release if this process is killed.
    """
    from ..tables.engines.resources import current_resources
    from ..tables.scratch import make_scratch

    if sys.stdin is None or sys.stdin.isatty():  # None: closed
        raise UnreadableSource("TABLE '-': needs a table on standard input, which has none. Pipe one into it.")
    folder, remove = make_scratch(current_resources().temp_directory)
    try:
        path = os.path.join(folder, f"standard-input.{kind.value}")
        _copy_input(path)
        yield path
    finally:
        remove()


def _copy_input(path: str) -> None:
    try:
        with open(path, "xb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        return
    except OSError as error:
        reason = error.strerror or type(error).__name__
    raise UnreadableSource(f"TABLE '-': cannot be copied into a scratch folder: {reason}. Give a file instead.")
