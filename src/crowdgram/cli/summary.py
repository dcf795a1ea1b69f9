"""What `crowdgram show --json` prints: the figures that `show` shows, as plain JSON values."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from ..export.json_file import item_to_json
from ..present.reach import QUESTION, reach_sentences, reach_too_little
from ..present.selection import figures
from ..present.wording import question, sentences, too_little
from ..results import GroupedReach, GroupedRelease, ItemEstimate, Other, Quantity, Reach, Release
from ..results.values import Measure

__all__ = ["summary"]


def summary(
    release: Release | GroupedRelease | Reach | GroupedReach, n: int, measure: Measure, *, entropy: bool
) -> dict[str, Any]:
    """A release, or every group of one, with the n most probable items of each. Groups have shares in any measure. A
    reach has no measure.
    """
    if isinstance(release, Reach | GroupedReach):
        return _reach(release, n)
    joint = release.joint if isinstance(release, GroupedRelease) else release
    return {
        "question": question(joint),
        "weight": joint.weight,
        "mechanism": joint.mechanism,
        "parameters": dict(joint.parameters),
        "guarantee": joint.guarantee.to_dict(),
        "confidence": joint.confidence,
        "predicted_l1_error": joint.predicted_l1_error,
        "users": _quantity(joint.users),
        "rows": _quantity(joint.rows),
        "warning": too_little(release),
        "sentences": [*sentences(joint), joint.guarantee.sentence()],
        "item_columns": list(joint.item_columns),
        "measure": measure,
        **(
            _groups(release, n, measure, entropy)
            if isinstance(release, GroupedRelease)
            else _items(release, n, measure, entropy)
        ),
    }


def _reach(result: Reach | GroupedReach, n: int) -> dict[str, Any]:
    reach = result.joint if isinstance(result, GroupedReach) else result
    return {
        "question": QUESTION,
        "parameters": dict(reach.parameters),
        "guarantee": reach.guarantee.to_dict(),
        "confidence": reach.confidence,
        "predicted_l1_error": reach.predicted_l1_error,
        "users": _quantity(reach.users),
        "left_out": _quantity(reach.left_out),
        "warning": reach_too_little(result),
        "sentences": [*reach_sentences(result), reach.guarantee.sentence()],
        "item_columns": list(reach.item_columns),
        **(_reach_groups(result, n) if isinstance(result, GroupedReach) else _reached(reach, n)),
    }


def _reach_groups(grouped: GroupedReach, n: int) -> dict[str, Any]:
    found = [
        {
            "group": item_to_json(group),
            "users": _quantity(own.users),
            "predicted_l1_error": own.predicted_l1_error,
            **_reached(own, n),
        }
        for group, own in grouped.items()
    ]
    return {"by": grouped.by, "groups": found}


def _reached(reach: Reach, n: int) -> dict[str, Any]:
    return {
        "items": len(reach),
        "top": [{**asdict(one), "item": item_to_json(one.item)} for one in reach.top(n)],
    }


def _groups(grouped: GroupedRelease, n: int, measure: Measure, entropy: bool) -> dict[str, Any]:
    found = []
    for item in grouped.shares:
        own: dict[str, Any] = {}
        if not isinstance(item, Other):  # the rows of groups that were not found
            part = grouped[item]  # type: ignore[index]
            own = {"predicted_l1_error": part.predicted_l1_error, **_items(part, n, measure, entropy)}
        found.append({"group": item_to_json(item), "share": _figures(grouped.shares.estimate(item)), **own})
    return {"by": grouped.by, "groups": found}


def _items(release: Release, n: int, measure: Measure, entropy: bool) -> dict[str, Any]:
    return {
        "items": len(release),
        "top": [
            {"item": item_to_json(one.item), **_figures(one, measure)}
            for one in figures(release, release.top(n), measure)
        ],
        **({"entropy": _quantity(release.entropy())} if entropy else {}),
    }


def _figures(one: ItemEstimate, measure: Measure = "shares") -> dict[str, float]:
    return {
        "probability" if measure == "shares" else "count": one.probability,
        "standard_error": one.standard_error,
        "lower": one.lower,
        "upper": one.upper,
    }


def _quantity(one: Quantity | None) -> dict[str, float | None] | None:
    """What is unknown is null."""
    if one is None:
        return None
    return {"value": None if math.isnan(one.value) else one.value, "lower": one.lower, "upper": one.upper}
