"""Releases on disk: JSON with a schema version."""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import re
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ..arrays import Integers
from ..errors import CrowdgramError, InvalidArgument, PrivacyViolation, UnreadableSource
from ..mechanisms.estimate import Divisor, Total
from ..privacy import Event, Guarantee, check, event_from_dict, event_to_dict
from ..privacy.guarantee import MAX_EPSILON
from ..results.grouped import GroupedRelease
from ..results.release import OWN_SUM, Release
from ..results.values import Item, Other, Quantity, fault_of_column, unlisted, values_of
from .fields import LARGEST_FIGURE, read_columns, read_figures, read_parameters, read_versions, read_word
from .json_text import document_parts, document_text
from .writing import write_whole

if TYPE_CHECKING:
    from ..privacy import LedgerHead

__all__ = [
    "DAMAGE",
    "SCHEMA_VERSION",
    "check_items",
    "check_promise",
    "decoded",
    "head_to_json",
    "item_to_json",
    "items_to_json",
    "kinds_of",
    "load",
    "load_joint",
    "parse",
    "parse_document",
    "read_bytes",
    "read_document",
    "read_head",
    "read_items",
    "read_text",
    "save",
    "to_document",
    "to_parts",
    "to_text",
]

SCHEMA_VERSION = 4
"""Version 1 had one item column, of integers or strings, no other item, and neither `measured` nor `other_errors`.
Version 2 had neither `noise_errors`, for which its standard errors are taken, nor a `divisor`: its shares were divided
by their sum. Version 3 had neither `total` nor `users`: they are unknown.
"""
_ARRAYS = ("probabilities", "standard_errors", "lower", "upper")
_OPTIONAL = ("sampling_errors", "measured", "other_errors", "noise_errors")
DAMAGE = (AttributeError, TypeError, ValueError, OverflowError, RecursionError, CrowdgramError)
"""What reading a file raises if it holds something else than was written."""
_VALUE_TYPES: dict[str, type] = {
    "boolean": bool,
    "integer": int,
    "string": str,
    "timestamp": datetime.datetime,
    "date": datetime.date,
    "uuid": uuid.UUID,
}

_HALF = re.compile(r"\\u[dD][89a-fA-F]")
"""Half of a character, as JSON escapes it. In UTF-8 there is none."""


def save(release: Release | GroupedRelease, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Write `release` to `path`."""
    write_whole(path, to_parts(release), overwrite=overwrite)


def load(path: str | os.PathLike[str]) -> Release | GroupedRelease:
    """Read a release, checking its schema version and its shape."""
    return parse(read_text(path), os.fspath(path))


def read_text(path: str | os.PathLike[str]) -> str:
    """The text of a saved file."""
    return decoded(read_bytes(path), os.fspath(path))


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """The content of a saved file."""
    try:
        return Path(path).read_bytes()
    except (OSError, ValueError) as error:  # a ValueError is of the name
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise UnreadableSource(f"{os.fspath(path)!r} cannot be read: {reason}.") from None


def decoded(content: bytes, where: str) -> str:
    """The content of a saved file as text; `where` it comes from is for errors."""
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise UnreadableSource(f"{where!r} is not JSON text, so it is not a saved release.") from None


def load_joint(path: str | os.PathLike[str]) -> Release:
    """Read a release; of a grouped one, the joint release."""
    loaded = load(path)
    return loaded.joint if isinstance(loaded, GroupedRelease) else loaded


def to_text(release: Release | GroupedRelease) -> str:
    """The content of the file that `save` writes. A grouped release is the joint one that it is made of, and a mark."""
    return document_text(_whole(release))


def to_parts(release: Release | GroupedRelease) -> Iterator[Any]:
    """The same in UTF-8, in parts."""
    return document_parts(_whole(release))


def _whole(release: Release | GroupedRelease) -> dict[str, Any]:
    joint = release.joint if isinstance(release, GroupedRelease) else release
    return {**_fields(joint), "grouped": isinstance(release, GroupedRelease)}


def to_document(release: Release) -> dict[str, Any]:
    """The release as plain JSON values."""
    fields = _fields(release).items()
    return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in fields}


def _fields(release: Release) -> dict[str, Any]:
    """The release as JSON values and arrays."""
    return {
        "schema": "crowdgram-release",
        "schema_version": SCHEMA_VERSION,
        "guarantee": release.guarantee.to_dict(),
        "mechanism": release.mechanism,
        "weight": release.weight,
        "parameters": dict(release.parameters),
        "events": [event_to_dict(event) for event in release.events],
        "versions": dict(release.versions),
        "ledger": head_to_json(release.ledger_head),
        "confidence": release.confidence,
        "predicted_l1_error": release.predicted_l1_error,
        "item_columns": list(release.item_columns),
        "item_kinds": kinds_of(release.items),
        "items": items_to_json(release.items),
        **{name: getattr(release, name) for name in (*_ARRAYS, *_OPTIONAL)},
        "divisor": asdict(release.divisor),
        "total": None if release.total is None else asdict(release.total),
        "users": None if release.users is None else _ends(release.users),
    }


def parse(text: str, where: str) -> Release | GroupedRelease:
    """The release that `to_text` wrote; `where` it comes from is for errors."""
    return parse_document(read_document(text, where), where)


def read_document(text: str, where: str) -> dict[str, Any]:
    """The JSON values of a saved file, of whatever kind: text that UTF-8 can hold, and numbers that JSON has."""
    try:
        document = json.loads(text, object_pairs_hook=_distinct, parse_constant=_no_number)
        if _HALF.search(text):
            json.dumps(document, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise UnreadableSource(f"{where!r} is damaged: it holds half a character (a lone surrogate).") from None
    except InvalidArgument as error:
        raise UnreadableSource(f"{where!r} is damaged: {error}.") from None
    except (ValueError, RecursionError):
        raise UnreadableSource(f"{where!r} is not JSON text, so it is not a saved release.") from None
    return document if isinstance(document, dict) else {}


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object, unless it has a key twice: readers differ in which of the two they take."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key is there twice")
    return found


def _no_number(name: str) -> float:
    raise InvalidArgument(f"it holds {name}, which is no number", argument=None)


def parse_document(document: dict[str, Any], where: str) -> Release | GroupedRelease:
    """The release in the JSON values of a saved file."""
    if document.get("schema") == "crowdgram-reach":
        raise UnreadableSource(
            f"{where!r} is a saved reach, and a release is needed here. Use crowdgram.load, or 'crowdgram show' and "
            "'crowdgram export', which take both."
        )
    if document.get("schema") != "crowdgram-release":
        raise UnreadableSource(f"{where!r} is not a saved release: it has no schema 'crowdgram-release'.")
    version = document.get("schema_version")
    if isinstance(version, (bool, float)) or version not in range(1, SCHEMA_VERSION + 1):
        newer = isinstance(version, int) and version > SCHEMA_VERSION
        step = (
            "Install a newer Crowdgram."
            if newer
            else "Check that it is a file that 'crowdgram release' or Release.save wrote."
        )
        raise UnreadableSource(
            f"{where!r} has schema version {version!r}; this Crowdgram reads versions 1 to {SCHEMA_VERSION}. {step}"
        )
    try:
        columns = read_columns(document)
        named = [*_ARRAYS, *(name for name in _OPTIONAL if document.get(name) is not None)]
        arrays: dict[str, Any] = {name: read_figures(document, name, signed=name == "measured") for name in named}
        loaded = Release(
            items=read_items(document, columns),
            item_columns=columns,
            **arrays,
            confidence=float(document["confidence"]),
            predicted_l1_error=float(document["predicted_l1_error"]),
            total=_read_total(document["total"]) if document["schema_version"] > 3 else None,
            users=_read_users(document["users"], document) if document["schema_version"] > 3 else None,
            divisor=_read_divisor(document["divisor"]) if document["schema_version"] > 2 else OWN_SUM,
            guarantee=Guarantee.from_dict(document["guarantee"]),
            events=tuple(event_from_dict(event) for event in document["events"]),
            mechanism=read_word(document, "mechanism"),
            weight=read_word(document, "weight"),
            parameters=read_parameters(document),
            versions=read_versions(document),
            ledger_head=read_head(document),
        )
        _check_shape(loaded)
        check_promise(loaded.events, loaded.guarantee)
        return GroupedRelease(loaded) if document.get("grouped") is True else loaded
    except KeyError as error:
        raise UnreadableSource(f"{where!r} is a damaged release: {error} is missing.") from None
    except DAMAGE as error:
        raise UnreadableSource(f"{where!r} is a damaged release: {str(error).rstrip('.')}.") from None


def kinds_of(items: Sequence[Item]) -> list[str]:
    """What the values of each item column are, by their Python types; "string" if only the other item is there."""
    found = []
    for place in range(len(values_of(items[0]))):
        column = (values_of(item)[place] for item in items)
        value = next((value for value in column if not isinstance(value, Other)), "")
        found.append(next((kind for kind, python in _VALUE_TYPES.items() if isinstance(value, python)), "string"))
    return found


def items_to_json(items: Sequence[Item]) -> list[Any] | Integers:
    """All items as JSON values; integers of 64 bits as an array, which is written in bulk."""
    kinds = set(map(type, items))
    if kinds == {int}:
        with contextlib.suppress(OverflowError):
            return np.fromiter(cast(Sequence[int], items), np.int64, len(items))
    return list(items) if kinds <= {str, int, bool} else [item_to_json(item) for item in items]


def item_to_json(item: Item) -> Any:
    """An item as JSON: dates, timestamps and UUIDs as text, tuples as lists, the other item as {"other": its name}."""
    if isinstance(item, tuple):
        return [item_to_json(value) for value in item]
    if isinstance(item, Other):
        return {"other": item.name}
    if isinstance(item, datetime.date):
        return item.isoformat()
    return str(item) if isinstance(item, uuid.UUID) else item


def read_items(document: dict[str, Any], columns: tuple[str, ...]) -> tuple[Item, ...]:
    kinds, rows = document.get("item_kinds", [None]), document["items"]
    if not isinstance(kinds, list) or len(kinds) != len(columns):
        raise InvalidArgument("its item_kinds need one entry for each item column", argument=None)
    if not isinstance(rows, list):
        raise InvalidArgument("its items need to be a list", argument=None)
    if len(columns) == 1:
        return tuple(_read_column(rows, kinds[0]))
    if not all(isinstance(row, list) and len(row) == len(columns) for row in rows):
        raise InvalidArgument(f"its items need to be lists of {len(columns)} values", argument=None)
    read = [_read_column([row[place] for row in rows], kind) for place, kind in enumerate(kinds)]
    return tuple(zip(*read, strict=True))


def _read_column(values: list[Any], kind: Any) -> list[Any]:
    """The values of one item column: all of the kind that is stated, or of one if none is, as in version 1."""
    found = [_read_value(value, kind) for value in values]
    fault = fault_of_column(found)
    if fault is not None:
        raise InvalidArgument(f"its items need to be {fault}", argument=None)
    return found


def _read_value(value: Any, kind: Any) -> Any:
    if isinstance(value, dict):
        if set(value) != {"other"} or not isinstance(value["other"], str):
            raise InvalidArgument("an item that is an object needs to be {'other': its name}", argument=None)
        return Other(value["other"])
    if kind in ("date", "timestamp", "uuid"):
        if not isinstance(value, str):
            raise InvalidArgument(f"its items need to be {kind}s in text", argument=None)
        return uuid.UUID(value) if kind == "uuid" else _VALUE_TYPES[kind].fromisoformat(value)  # type: ignore[attr-defined]
    if type(value) not in ((int, str) if kind is None else (_VALUE_TYPES.get(kind),)):
        raise InvalidArgument("its items need to be integers or strings, or of the kind that it states", argument=None)
    return value


def head_to_json(head: LedgerHead | None) -> dict[str, Any] | None:
    """Where the ledger stood at the charge, as JSON."""
    return None if head is None else head.to_dict()


def read_head(document: dict[str, Any]) -> LedgerHead | None:
    """What `head_to_json` wrote; files of before it was kept have none."""
    found = document.get("ledger")
    if found is None:
        return None
    from ..privacy import LedgerHead  # seldom there, and slow to load

    return LedgerHead.from_dict(found)


def _read_divisor(values: Any) -> Divisor:
    own, error = float(values["own"]), float(values["error"])
    if not 0 <= own <= 1 or not 0 <= error <= LARGEST_FIGURE:
        raise InvalidArgument("its divisor needs an own part from 0 to 1 and an error of at least 0", argument=None)
    return Divisor(own, error)


def _read_total(values: Any) -> Total | None:
    if values is None:
        return None
    value, error, bound, biased = (values[name] for name in ("value", "error", "row_bound", "biased"))
    whole = bound is None or (isinstance(bound, int) and not isinstance(bound, bool) and bound >= 1)
    if not whole or not isinstance(biased, bool):
        raise InvalidArgument(
            "its total needs a row_bound of at least 1, or null, and biased as true or false", argument=None
        )
    if not 0 < float(value) <= LARGEST_FIGURE or not 0 <= float(error) <= LARGEST_FIGURE:
        raise InvalidArgument("its total needs a value above 0 and an error of at least 0", argument=None)
    return Total(float(value), float(error), bound, biased)


def _ends(quantity: Quantity) -> dict[str, float]:
    return {"value": quantity.value, "lower": quantity.lower, "upper": quantity.upper}


def _read_users(values: Any, document: dict[str, Any]) -> Quantity | None:
    if values is None:
        return None
    value, lower, upper = (float(values[name]) for name in ("value", "lower", "upper"))
    if not 0 <= lower <= value <= upper <= LARGEST_FIGURE:
        raise InvalidArgument("its users need a value within an interval of numbers of at least 0", argument=None)
    return Quantity(value, lower, upper, float(document["confidence"]))


def check_items(items: Sequence[Item], columns: Sequence[str]) -> None:
    """Refuse items, or columns of them, that no result has."""
    if not items or len(set(items)) < len(items):
        raise InvalidArgument("its items need to be distinct, and at least one", argument=None)
    others = unlisted(items)
    if others != sorted(others):
        raise InvalidArgument("its other items need to be the last", argument=None)
    if not columns or len(set(columns)) < len(columns):
        raise InvalidArgument("its item_columns need to be distinct, and at least one", argument=None)


def _check_shape(release: Release) -> None:
    check_items(release.items, release.item_columns)
    if np.any(release.lower > release.probabilities + 1e-9) or np.any(release.upper < release.probabilities - 1e-9):
        raise InvalidArgument("its intervals need to hold its probabilities", argument=None)
    if abs(float(release.probabilities.sum()) - 1) > 1e-6:
        raise InvalidArgument("its probabilities need to sum to 1", argument=None)
    if release.weight not in ("rows", "users"):
        raise InvalidArgument(f"its weight is {release.weight!r}", argument=None)
    if not 0 <= release.predicted_l1_error <= LARGEST_FIGURE:
        raise InvalidArgument(
            f"its predicted_l1_error is {release.predicted_l1_error!r}, and needs to be a number of at least 0",
            argument=None,
        )
    if not 0 < release.confidence < 1:
        raise InvalidArgument(f"its confidence is {release.confidence!r}, not between 0 and 1", argument=None)


def check_promise(events: Sequence[Event], promised: Guarantee) -> None:
    """Refuse a guarantee that the recorded events do not keep: somebody changed one of them.

    Rounding may differ a little between libraries; so much is let pass.
    """
    loose = replace(promised, epsilon=min(promised.epsilon * (1 + 1e-9), MAX_EPSILON))
    try:
        check(events, replace(loose, delta=min(promised.delta * (1 + 1e-6), 1 - 1e-9)))
        return
    except PrivacyViolation:
        pass
    raise InvalidArgument("its events do not keep its guarantee, so one of them was changed", argument=None)
