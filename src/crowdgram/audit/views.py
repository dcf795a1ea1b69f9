"""What an outsider sees of a release, as numbers: everything that is in the saved file.

An estimate without a file is seen field by field. Texts, and what may be there or not, become numbers too: 1 if they
are there.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, is_dataclass
from typing import Any

import numpy as np

from ..arrays import Floats
from ..export.documents import to_text
from ..results.grouped import GroupedRelease
from ..results.grouped_reach import GroupedReach
from ..results.reach import Reach
from ..results.release import Release

__all__ = ["View", "as_table", "view_of"]

View = Mapping[str, float]
"""Every figure that is shown, by its place."""

COUNT = "count"
"""The place of a share times what it is a share of: the noisy sum of an item, which the file holds in two parts."""


def view_of(made: Any) -> View:
    """What `made` shows: a release, an estimate, or several of them."""
    if isinstance(made, tuple | list):
        return {f"{n}.{place}": value for n, one in enumerate(made) for place, value in view_of(one).items()}
    if isinstance(made, Release | GroupedRelease | Reach | GroupedReach):
        return dict(_file(json.loads(to_text(made))))
    return dict(_flat("", asdict(made) if is_dataclass(made) and not isinstance(made, type) else made))


def as_table(views: Iterable[View], places: Iterable[str]) -> Floats:
    """A row for each view, and two columns for each place: its value, 0 if it is not there, and whether it is."""
    wanted = list(places)
    values = np.array([[view.get(place, np.nan) for place in wanted] for view in views], dtype=np.float64)
    there = ~np.isnan(values)
    return np.concatenate([np.where(there, values, 0.0), there.astype(np.float64)], axis=1)


def _file(document: dict[str, Any]) -> Iterator[tuple[str, float]]:
    """The values of a saved file. Those of an item are named by it: its place depends on what else is there."""
    items = [json.dumps(item) for item in document["items"]]
    total = (document.get("total") or {}).get("value")
    for name, value in document.items():
        if isinstance(value, list) and len(value) == len(items) and name != "events":
            for item, one in zip(items, value, strict=True):
                yield from _flat(f"{name}[{item}]", 1 if name == "items" else one)
                if name == "measured" and total is not None:
                    yield f"{COUNT}[{item}]", one * total
        else:
            yield from _flat(name, value)


def _flat(place: str, value: Any) -> Iterator[tuple[str, float]]:
    if isinstance(value, dict):
        for name, one in value.items():
            yield from _flat(f"{place}.{name}", one)
    elif isinstance(value, list | tuple | np.ndarray):
        for number, one in enumerate(value):
            yield from _flat(f"{place}[{number}]", one)
    elif isinstance(value, int | float | np.number) and not isinstance(value, bool):
        yield place, float(value)
    else:
        yield f"{place}={value}", 1.0
