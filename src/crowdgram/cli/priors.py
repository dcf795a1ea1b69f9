"""The file of --prior: a saved release, or a public list of items and shares."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InvalidArgument, UnreadableSource

if TYPE_CHECKING:
    from ..mechanisms import Prior

__all__ = ["read_prior_file"]

SHARE = "share"
"""The column of a list that holds shares, or counts."""


def read_prior_file(path: Path, names: Sequence[str]) -> Prior:
    """A saved release; or a CSV, Parquet or JSON file with the columns `names` (of groups and items) and `share`."""
    from ..export import load
    from ..mechanisms import Prior

    if path.suffix.lower() == ".json" and not _is_list(path):
        try:
            return Prior.of(load(path))
        except UnreadableSource as error:
            raise UnreadableSource(
                f"--prior: {error} Give a saved release, or a list of items and shares (.csv, .parquet, .json)."
            ) from None
    return Prior.of_pairs(_pairs(path, names))


def _is_list(path: Path) -> bool:
    """Whether a JSON file holds something else than one object with a schema: `load` says what is wrong with others."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError:
        return False
    except ValueError:
        return True  # lines, perhaps
    return not isinstance(found, dict) or "schema" not in found


def _pairs(path: Path, names: Sequence[str]) -> Iterator[tuple[Any, float]]:
    from ..tables import read_columns
    from ..tables.roles import Role

    for *values, share in read_columns(path, [*names, SHARE], Role("--prior")):
        try:
            weight = float(share)
        except (TypeError, ValueError):
            raise InvalidArgument(
                f"--prior {str(path)!r}: has {share!r} in its column {SHARE!r}, and needs numbers of at least 0.",
                argument="--prior",
            ) from None
        yield (tuple(values) if len(values) > 1 else values[0]), weight
