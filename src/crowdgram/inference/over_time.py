"""Items over time: their shares or counts at each time, and how they changed since the time before.

A change is the difference of one item in two releases, whose noise is independent (`contrasts.difference`).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from ..errors import InvalidArgument, UnknownItem
from ..results.release import Release
from ..results.series import Series, SeriesPoint
from ..results.values import Item, ItemCount, ItemEstimate, Measure, check_measure, is_unlisted
from .alignment import align
from .contrasts import difference
from .counts import counts

__all__ = ["check_series", "largest_items", "points"]


def check_series(series: Series) -> None:
    """Refuse releases that cannot be compared, by the rules for two of them, and labels that name nothing."""
    for label, release in zip(series.labels, series.releases, strict=True):
        if not isinstance(label, str) or not label.strip():
            raise InvalidArgument(
                f"releases: the label {label!r:.80} needs to be a text, such as '2026-11'.", argument="releases"
            )
        if not isinstance(release, Release):
            raise InvalidArgument(
                f"releases: {label!r} needs to be a Release; of a grouped one, a group.", argument="releases"
            )
    if len(series) < 2:
        raise InvalidArgument(f"releases: needs at least two, and has {len(series)}.", argument="releases")
    for (first, one), (second, two) in pairwise(zip(series.labels, series.releases, strict=True)):
        try:
            align(one, two)
        except InvalidArgument as error:
            said, argument = str(error), error.argument
        else:
            continue
        raise InvalidArgument(f"{said} They are {first!r} and {second!r}.", argument=argument)


def largest_items(series: Series, n: int) -> list[Item]:
    """The listed items with the largest mean share over all times; where an item is not listed it counts as 0."""
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise InvalidArgument(f"n={n!r}: needs to be a whole number of at least 1.", argument="n")
    sums: dict[Item, float] = {}
    for release in series.releases:
        for item, share in zip(release.items, release.probabilities.tolist(), strict=True):
            if not is_unlisted(item):
                sums[item] = sums.get(item, 0.0) + share
    return sorted(sums, key=lambda item: -sums[item])[:n]


def points(series: Series, items: Sequence[Item] | None, n: int, measure: Measure) -> list[SeriesPoint]:
    """Each item at each time; items in their order, and times in theirs."""
    check_measure(measure)
    chosen = largest_items(series, n) if items is None else _known(series, items)
    tables = [counts(one, simultaneous=False) if measure == "counts" else one for one in series.releases]
    found = []
    for item in chosen:
        before: Release | None = None
        for label, release, table in zip(series.labels, series.releases, tables, strict=True):
            listed = item in release
            change = None
            if listed and before is not None and item in before:
                change = difference(release, item, None, before, measure)
            now = table.estimate(item) if listed else None
            found.append(
                SeriesPoint(
                    item,
                    label,
                    None if now is None else _value(now),
                    None if now is None else now.lower,
                    None if now is None else now.upper,
                    None if change is None else change.value,
                    None if change is None else change.lower,
                    None if change is None else change.upper,
                )
            )
            before = release
    return found


def _value(estimate: ItemEstimate | ItemCount) -> float:
    return estimate.count if isinstance(estimate, ItemCount) else estimate.probability


def _known(series: Series, items: Sequence[Item]) -> list[Item]:
    """The items asked for. That for all others stands for the same ones only if all lists are the same."""
    same = len({frozenset(release.items) for release in series.releases}) == 1
    if isinstance(items, str) or not items or len(set(items)) < len(items):
        raise InvalidArgument(f"items={items!r:.80}: needs to be a list of items, each once.", argument="items")
    for item in items:
        if not any(item in release for release in series.releases):
            raise UnknownItem(
                f"items: {item!r} needs to be an item of one of the releases.", item=item, argument="items"
            )
        if is_unlisted(item) and not same:
            raise InvalidArgument(
                f"items: {str(item)!r} stands for other items at each time, as the lists differ. Choose listed items.",
                argument="items",
            )
    return list(items)
