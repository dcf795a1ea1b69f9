"""Reach on disk: JSON with a schema of its own and its version."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import InvalidArgument, UnreadableSource
from ..privacy import Guarantee, event_from_dict, event_to_dict
from ..results.grouped_reach import GroupedReach
from ..results.reach import Reach
from ..results.values import Quantity
from .fields import LARGEST_FIGURE, read_columns, read_figures, read_parameters, read_versions
from .json_file import DAMAGE, check_items, check_promise, head_to_json, items_to_json, kinds_of, read_head, read_items
from .json_text import document_text

__all__ = ["REACH_SCHEMA", "REACH_VERSION", "parse_reach", "reach_to_text"]

REACH_SCHEMA, REACH_VERSION = "crowdgram-reach", 1
_ARRAYS = ("counts", "standard_errors", "lower", "upper")


def reach_to_text(result: Reach | GroupedReach) -> str:
    """The content of the file that `save` writes. By groups, it is the joint reach, and the users of each group."""
    reach = result.joint if isinstance(result, GroupedReach) else result
    groups = [_ends(one) for one in result.group_users] if isinstance(result, GroupedReach) else None
    document = {
        "schema": REACH_SCHEMA,
        "schema_version": REACH_VERSION,
        "guarantee": reach.guarantee.to_dict(),
        "parameters": dict(reach.parameters),
        "events": [event_to_dict(event) for event in reach.events],
        "versions": dict(reach.versions),
        "ledger": head_to_json(reach.ledger_head),
        "confidence": reach.confidence,
        "predicted_l1_error": reach.predicted_l1_error,
        "users": _ends(reach.users),
        "left_out": None if reach.left_out is None else _ends(reach.left_out),
        "item_columns": list(reach.item_columns),
        "item_kinds": kinds_of(reach.items),
        "items": items_to_json(reach.items),
        **{name: getattr(reach, name) for name in _ARRAYS},
        "predicted_errors": reach.predicted_errors,
        "group_users": groups,
    }
    return document_text(document)


def parse_reach(document: dict[str, Any], where: str) -> Reach | GroupedReach:
    """The reach that `reach_to_text` wrote; `where` it comes from is for errors."""
    version = document.get("schema_version")
    if isinstance(version, (bool, float)) or version != REACH_VERSION:
        newer = isinstance(version, int) and version > REACH_VERSION
        step = "Install a newer Crowdgram." if newer else "Check that 'crowdgram reach' or Reach.save wrote it."
        raise UnreadableSource(
            f"{where!r} has schema version {version!r}; this Crowdgram reads version {REACH_VERSION}. {step}"
        )
    try:
        columns = read_columns(document)
        confidence = float(document["confidence"])
        left_out = document["left_out"]
        named = [*_ARRAYS, *(["predicted_errors"] if document.get("predicted_errors") is not None else [])]
        arrays: dict[str, Any] = {name: read_figures(document, name) for name in named}
        loaded = Reach(
            items=read_items(document, columns),
            item_columns=columns,
            **arrays,
            confidence=confidence,
            users=_quantity(document["users"], confidence),
            left_out=None if left_out is None else _quantity(left_out, confidence),
            predicted_l1_error=float(document["predicted_l1_error"]),
            guarantee=Guarantee.from_dict(document["guarantee"]),
            events=tuple(event_from_dict(event) for event in document["events"]),
            parameters=read_parameters(document),
            versions=read_versions(document),
            ledger_head=read_head(document),
        )
        _check(loaded)
        groups = document.get("group_users")
        if groups is None:
            return loaded
        return GroupedReach(loaded, tuple(_quantity(one, confidence) for one in groups))
    except KeyError as error:
        raise UnreadableSource(f"{where!r} is a damaged release: {error} is missing.") from None
    except DAMAGE as error:
        raise UnreadableSource(f"{where!r} is a damaged release: {str(error).rstrip('.')}.") from None


def _ends(quantity: Quantity) -> dict[str, float]:
    return {"value": quantity.value, "lower": quantity.lower, "upper": quantity.upper}


def _quantity(values: Any, confidence: float) -> Quantity:
    value, lower, upper = (float(values[name]) for name in ("value", "lower", "upper"))
    if not 0 <= lower <= value <= upper <= LARGEST_FIGURE:
        raise InvalidArgument("its users need a value within an interval of numbers of at least 0", argument=None)
    return Quantity(value, lower, upper, confidence)


def _check(reach: Reach) -> None:
    check_items(reach.items, reach.item_columns)
    if np.any(reach.lower > reach.counts + 1e-6) or np.any(reach.upper < reach.counts - 1e-6):
        raise InvalidArgument("its intervals need to hold its counts", argument=None)
    if reach.users.value < 1 or not 0 < reach.confidence < 1 or not 0 <= reach.predicted_l1_error <= LARGEST_FIGURE:
        raise InvalidArgument(
            "it needs at least one user, a confidence between 0 and 1 and a predicted error of at least 0",
            argument=None,
        )
    if reach.left_out is not None and reach.parameters.get("max_items_per_user") is None:
        raise InvalidArgument("its left_out needs the parameter max_items_per_user", argument=None)
    check_promise(reach.events, reach.guarantee)
