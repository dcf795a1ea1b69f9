"""What the script of a page reads: the list of all items, and curves. JSON, by columns."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...arrays import Floats
from ...escaping import guarded_cell, printable
from ...export.tabular import columns
from ...results.grouped import GroupedRelease
from ...results.grouped_reach import GroupedReach
from ...results.reach import Reach
from ...results.release import Release
from ...results.values import Measure, Other, values_of, whole_days
from ..wording import shorten
from .templating import to_json

__all__ = ["MOST_LISTED", "Listing", "curve", "listing", "series_block"]

MOST_LISTED = 200_000
"""Items that the list holds."""
_POINTS = 300
"""Points of a curve."""
_FEWEST = 8
"""Items below which bars say more than a curve."""
_TOP = (1, 10, 100, 1000, 10_000, 100_000)


class Listing:
    """The list of all items of one result. block: its JSON. listed: how many it holds, of how many."""

    def __init__(self, block: str, listed: int, whole: int) -> None:
        self.block, self.listed, self.whole = block, listed, whole


def listing(result: Release | GroupedRelease | Reach | GroupedReach, measure: Measure, file: str) -> Listing:
    """All items with their figures: those of `export`, rounded to six digits, most probable first."""
    joint = result.joint if isinstance(result, GroupedRelease | GroupedReach) else result
    found = columns(result, measure)
    names = _names(result, list(found))
    value, low, high = _shown(result, measure)
    unlisted = np.array(found.get("is_other", np.zeros(len(joint), bool)), dtype=bool)
    order = _order(result, found, value, unlisted)[:MOST_LISTED]
    texts = _texts(result, found, names, order)
    fields = []
    for column, values in found.items():
        if column in names:
            fields.append(_name_field(column, texts[column]))
        elif column == "is_other":
            fields.append(f'{{"name":"is_other","kind":"flag","values":{to_json(unlisted[order].tolist())}}}')
        else:
            cells = _numbers(np.asarray(values, dtype=float)[order])
            fields.append(
                f'{{"name":{to_json(column)},"cell":{to_json(guarded_cell(column))},"kind":"figure","values":{cells}}}'
            )
    shown = np.asarray(found[value], dtype=float)[order]
    about = {
        "file": re.sub(r"[^a-z0-9]+", "-", file.lower()).strip("-")[:60] or "release",
        "measure": "counts" if measure == "counts" or isinstance(result, Reach | GroupedReach) else "shares",
        "value": value,
        "lower": low,
        "upper": high,
        "confidence": f"{joint.confidence:.0%}",
        "full": _full(shown, np.asarray(found[high], dtype=float)[order], unlisted[order]),
        "ranked": not isinstance(result, GroupedRelease | GroupedReach),
    }
    block = f'{{"about":{to_json(about)},"fields":[{",".join(fields)}]}}'
    return Listing(block, len(order), len(joint))


def curve(result: Release | Reach) -> tuple[str, list[tuple[int, float]]] | None:
    """The shares by rank: JSON for the picture, and what the first 1, 10, 100, ... items hold. None: too few.

    Points are taken evenly over the logarithm of the rank. Of a reach, the shares of users who have each item.
    """
    if isinstance(result, Reach):
        values, (lower, upper) = result.shares, result.share_intervals
    else:
        values, lower, upper = result.probabilities, result.lower, result.upper
    listed = np.array([not any(isinstance(one, Other) for one in values_of(item)) for item in result.items], dtype=bool)
    order = np.argsort(-values[listed], kind="stable")
    shares, low, high = (each[listed][order] for each in (values, lower, upper))
    positive = int((shares > 0).sum())
    if positive < _FEWEST:
        return None
    ranks = np.unique(np.round(np.geomspace(1, positive, _POINTS)).astype(int))
    floor = float(shares[positive - 1]) / 10
    picked = [np.maximum(each[ranks - 1], floor) for each in (shares, low, high)]
    block = f'{{"kind":"ranks","ranks":{to_json(ranks.tolist())},"values":[{",".join(map(_numbers, picked))}]}}'
    held = np.cumsum(shares)
    tops = [n for n in _TOP if n < len(shares)]
    return block, [(n, float(held[n - 1])) for n in tops]


def series_block(labels: Sequence[str], name: str, lines: Sequence[Sequence[float | None]], measure: Measure) -> str:
    """One item over time: its values, and both ends of its intervals."""
    values = [[None if one is None else float(f"{one:.6g}") for one in line] for line in lines]
    told = {"labels": [printable(shorten(one, 24)) for one in labels], "name": printable(name), "measure": measure}
    return to_json({"kind": "series", **told, "values": values})


def _names(result: Release | GroupedRelease | Reach | GroupedReach, found: Sequence[str]) -> list[str]:
    """Those of the columns that hold names."""
    if isinstance(result, GroupedRelease | GroupedReach):
        return list(result.joint.item_columns)
    return list(found)[: len(result.item_columns)]


def _shown(result: Release | GroupedRelease | Reach | GroupedReach, measure: Measure) -> tuple[str, str, str]:
    """The columns of the figure that is shown, and of its interval."""
    if isinstance(result, Reach | GroupedReach):
        return "users", "lower", "upper"
    return ("probability" if measure == "shares" else "count"), "lower", "upper"


def _order(
    result: Release | GroupedRelease | Reach | GroupedReach,
    found: dict[str, Any],
    value: str,
    unlisted: np.ndarray[Any, Any],
) -> np.ndarray[Any, Any]:
    """Largest first, and what is not listed last; by groups, group after group, the largest first."""
    figures = np.asarray(found[value], dtype=float)
    if not isinstance(result, GroupedRelease | GroupedReach):
        return np.lexsort((-figures, unlisted))
    size = next(name for name in ("group_users", "share", "total") if name in found)
    sizes = np.nan_to_num(np.asarray(found[size], dtype=float))
    groups = found[result.by]
    first = {group: place for place, group in reversed(list(enumerate(groups)))}
    whole = np.array([first[group] for group in groups])
    last = np.array([group is None for group in groups]) | (unlisted & (sizes == 0))
    return np.lexsort((-figures, unlisted, whole, -sizes, last))


def _texts(
    result: Release | GroupedRelease | Reach | GroupedReach,
    found: dict[str, Any],
    names: Sequence[str],
    order: np.ndarray[Any, Any],
) -> dict[str, list[Any]]:
    """The names of each column, in their order: numbers as they are, all else as text."""
    joint = result.joint if isinstance(result, GroupedRelease | GroupedReach) else result
    days = dict(zip(names, whole_days(joint.items), strict=True))
    return {column: [_text(found[column][place], days[column]) for place in order.tolist()] for column in names}


def _text(value: Any, day: bool) -> Any:
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**53):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value.date() if day and isinstance(value, datetime.datetime) else value)


def _name_field(column: str, values: Sequence[Any]) -> str:
    """A column of names, and of those few that need it, what is shown instead and what a cell of CSV holds."""
    texts = [(place, value) for place, value in enumerate(values) if isinstance(value, str)]
    shown = {place: safe for place, value in texts if not value.isprintable() and (safe := printable(value)) != value}
    cells = {place: cell for place, value in texts if not _is_plain(value) and (cell := guarded_cell(value)) != value}
    field = {"name": printable(column), "cell": guarded_cell(column), "kind": "name", "shown": shown, "cells": cells}
    return f'{to_json(field)[:-1]},"values":{to_json(list(values))}}}'


def _is_plain(text: str) -> bool:
    """Whether a text begins as no formula does: most do, and need no closer look."""
    first = text[:1]
    return first.isascii() and first.isalnum()


def _numbers(values: Floats) -> str:
    return f"[{','.join(map('%.6g'.__mod__, values.tolist()))}]"


def _full(values: Floats, upper: Floats, unlisted: np.ndarray[Any, Any]) -> float:
    """What a full bar stands for: all intervals of the first items fit, unless bars would be short for it."""
    own, ends = values[~unlisted], upper[~unlisted]
    if not len(own):
        return 1.0
    longest, widest = float(own.max()), float(ends[: max(20, math.isqrt(len(ends)))].max())
    return (min(widest, 2 * longest) if longest > 0 else widest) or 1.0
