"""Releases on disk: JSON with a schema version, written whole or not at all."""

from __future__ import annotations

import contextlib
import json
import os
import uuid
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import CrowdgramError, InvalidArgument, UnreadableSource, UnwritableTarget
from ..privacy import Guarantee, event_from_dict, event_to_dict
from .release import Item, Other, Release

__all__ = ["SCHEMA_VERSION", "load", "save", "to_document", "write_whole"]

SCHEMA_VERSION = 2
"""2: the last item may be {"other": name}. Version 1 is read too."""
READABLE = (1, 2)
_ARRAYS = ("probabilities", "standard_errors", "lower", "upper")


def to_document(release: Release) -> dict[str, Any]:
    """The release as plain JSON values."""
    return {
        "schema": "crowdgram-release",
        "schema_version": SCHEMA_VERSION,
        "guarantee": release.guarantee.to_dict(),
        "mechanism": release.mechanism,
        "weight": release.weight,
        "parameters": dict(release.parameters),
        "events": [event_to_dict(event) for event in release.events],
        "versions": dict(release.versions),
        "confidence": release.confidence,
        "predicted_l1_error": release.predicted_l1_error,
        "items": [_item_to_json(item) for item in release.items],
        **{name: getattr(release, name).tolist() for name in _ARRAYS},
        "sampling_errors": None if release.sampling_errors is None else release.sampling_errors.tolist(),
    }


def save(release: Release, path: str | os.PathLike[str]) -> None:
    """Write `release` to `path`."""
    write_whole(path, json.dumps(to_document(release), ensure_ascii=False, allow_nan=False, indent=1) + "\n")


def load(path: str | os.PathLike[str]) -> Release:
    """Read a release, checking its schema version and its shape."""
    where = os.fspath(path)
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise UnreadableSource(f"{where!r} cannot be read: {error.strerror or type(error).__name__}.") from None
    except (ValueError, RecursionError):
        raise UnreadableSource(f"{where!r} is not JSON text, so it is not a saved release.") from None
    if not isinstance(document, dict) or document.get("schema") != "crowdgram-release":
        raise UnreadableSource(f"{where!r} is not a saved release: it has no schema 'crowdgram-release'.")
    version = document.get("schema_version")
    if version not in READABLE or isinstance(version, (bool, float)):
        newer = isinstance(version, int) and version > SCHEMA_VERSION
        step = (
            "Install a newer Crowdgram."
            if newer
            else "Check that it is a file that 'crowdgram release' or Release.save wrote."
        )
        raise UnreadableSource(
            f"{where!r} has schema version {version!r}; this Crowdgram reads versions up to {SCHEMA_VERSION}. {step}"
        )
    try:
        loaded = Release(
            items=tuple(_item_from_json(item) for item in document["items"]),
            **{name: np.array(document[name], dtype=np.float64) for name in _ARRAYS},
            confidence=float(document["confidence"]),
            predicted_l1_error=float(document["predicted_l1_error"]),
            sampling_errors=_optional_array(document["sampling_errors"]),
            guarantee=Guarantee.from_dict(document["guarantee"]),
            events=tuple(event_from_dict(event) for event in document["events"]),
            mechanism=str(document["mechanism"]),
            weight=str(document["weight"]),
            parameters=dict(document["parameters"]),
            versions=dict(document["versions"]),
        )
        _check_shape(loaded)
        return loaded
    except KeyError as error:
        raise UnreadableSource(f"{where!r} is a damaged release: {error} is missing.") from None
    except (AttributeError, TypeError, ValueError, OverflowError, CrowdgramError) as error:
        raise UnreadableSource(f"{where!r} is a damaged release: {str(error).rstrip('.')}.") from None


def _item_to_json(item: Item) -> Any:
    return {"other": item.name} if isinstance(item, Other) else item


def _item_from_json(value: Any) -> Any:
    if isinstance(value, dict):
        if set(value) != {"other"} or not isinstance(value["other"], str):
            raise InvalidArgument("an item that is not an integer or a string needs to be {'other': its name}")
        return Other(value["other"])
    return value


def _optional_array(values: Any) -> Any:
    return None if values is None else np.array(values, dtype=np.float64)


def _check_shape(release: Release) -> None:
    if not release.items or len(set(release.items)) < len(release.items):
        raise InvalidArgument("its items need to be distinct, and at least one")
    listed = release.items if release.other is None else release.items[:-1]
    if not all(isinstance(item, (int, str)) and not isinstance(item, bool) for item in listed):
        raise InvalidArgument("its items need to be integers or strings")
    for name in _ARRAYS if release.sampling_errors is None else (*_ARRAYS, "sampling_errors"):
        values = getattr(release, name)
        if values.ndim != 1 or not np.all(np.isfinite(values)) or np.any(values < 0):
            raise InvalidArgument(f"its {name} need to be finite numbers of at least 0")
    if abs(float(release.probabilities.sum()) - 1) > 1e-6:
        raise InvalidArgument("its probabilities need to sum to 1")
    if release.weight not in ("rows", "users"):
        raise InvalidArgument(f"its weight is {release.weight!r}")


def write_whole(path: str | os.PathLike[str], content: str | bytes) -> None:
    """Write a file so that a reader sees all of it or nothing: a temporary file beside it, synced, then renamed."""
    target = Path(path)
    data = content.encode() if isinstance(content, str) else content
    draft = target.parent / f".crowdgram-{uuid.uuid4().hex}"
    try:
        with open(draft, "xb") as file:  # with the permissions of any new file: a release is made to be shared
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, target)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise UnwritableTarget(f"{os.fspath(path)!r} cannot be written: {reason}. Nothing was written.") from None
    finally:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)
