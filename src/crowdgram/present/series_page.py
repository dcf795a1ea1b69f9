"""A series as one page of HTML: each item over time, its changes, and every figure. Costs no privacy."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any

from ..export import write_whole
from ..results.series import Series, SeriesPoint
from ..results.values import Item, ItemEstimate, Measure, is_unlisted, label
from .numbers import decimals, figure, interval
from .pages import render
from .pages.contexts import Row, bar, full_bar
from .pages.data import series_block
from .report import check_title, terms
from .wording import coverage, measured_as, shorten, too_little

__all__ = ["series_page", "write_series_html"]


def write_series_html(
    series: Series,
    path: str | os.PathLike[str],
    items: Sequence[Item] | None,
    n: int,
    measure: Measure,
    title: str | None,
    *,
    overwrite: bool = False,
) -> None:
    """Write the page, whole or not at all."""
    write_whole(path, series_page(series, items, n, measure, title), overwrite=overwrite)


def series_page(
    series: Series,
    items: Sequence[Item] | None = None,
    n: int = 6,
    measure: Measure = "shares",
    title: str | None = None,
) -> str:
    """The page of a series."""
    check_title(title)
    points, first = series.points(items, n=n, measure=measure), series.releases[0]
    lines = [points[start : start + len(series)] for start in range(0, len(points), len(series))]
    said = f"{measured_as(first, first.item_columns, measure)}, {series.labels[0]} to {series.labels[-1]}"
    listed = sum(not is_unlisted(item) for item in set().union(*(release.items for release in series.releases)))
    which = "All items." if len(lines) == listed else f"{len(lines)} of {listed:,} items."
    level = f"{first.confidence:.0%} interval"
    keys = [f"item-{place}" for place in range(1, len(lines) + 1)]
    return render(
        "series.html.j2",
        title=said if title is None else title,
        blocks={key: _block(series, own, measure) for key, own in zip(keys, lines, strict=True)},
        coverage=coverage(first),
        lost=[one for one, release in zip(series.labels, series.releases, strict=True) if too_little(release)],
        which=which,
        level=level,
        labels=series.labels,
        heads=first.item_columns,
        pictures=[_picture(key, own, measure) for key, own in zip(keys, lines, strict=True)],
        changes=[_change(own[-1], measure) for own in lines],
        figures=_figures(series, lines, measure, level),
        promises=[(one, terms(release)) for one, release in zip(series.labels, series.releases, strict=True)],
    )


def _block(series: Series, own: Sequence[SeriesPoint], measure: Measure) -> str:
    values = [[getattr(one, name) for one in own] for name in ("value", "lower", "upper")]
    return series_block(series.labels, shorten(label(own[0].item), 60), values, measure)


def _picture(key: str, own: Sequence[SeriesPoint], measure: Measure) -> dict[str, Any]:
    """One item's picture, and in words what it shows."""
    told = [f"{shorten(one.label, 24)}: {_now(one, measure)}" for one in own[:: max(1, len(own) // 12)]]
    return {"key": key, "item": own[0].item, "about": "; ".join(told)}


def _now(one: SeriesPoint, measure: Measure) -> str:
    return "not listed" if one.value is None else figure(one.value, one.lower or 0.0, one.upper or 0.0, measure)


def _change(point: SeriesPoint, measure: Measure) -> dict[str, Any]:
    """An item at the last time, and its change since the time before, with intervals."""
    row = {"item": point.item, "now": "–", "ends": "", "change": "–", "change_ends": "", "sure": False}
    if point.value is not None:
        row["now"] = _now(point, measure)
        row["ends"] = interval(point.value, point.lower or 0.0, point.upper or 0.0, measure)
    low, high, change = point.change_lower, point.change_upper, point.change
    if change is None or low is None or high is None:
        return row
    if math.isnan(change):
        return {**row, "change": "unknown"}
    row["sure"] = low > 0 or high < 0
    if measure == "counts":
        return {**row, "change": f"{change:+,.0f}", "change_ends": f"{low:+,.0f} to {high:+,.0f}"}
    places = decimals(low, high, abs(change))
    ends = f"{100 * low:+z.{places}f} to {100 * high:+z.{places}f} points"
    return {**row, "change": f"{100 * change:+z.{places}f} points", "change_ends": ends}


def _figures(series: Series, lines: Sequence[Sequence[SeriesPoint]], measure: Measure, level: str) -> dict[str, Any]:
    """All values, side by side."""
    estimates = [
        [
            None if one.value is None else ItemEstimate(one.item, one.value, 0.0, one.lower or 0.0, one.upper or 0.0)
            for one in own
        ]
        for own in lines
    ]
    full = full_bar(one for own in estimates for one in own if one is not None)

    def cell(one: ItemEstimate | None) -> Row | None:
        if one is None:
            return None
        ends = one.probability, one.lower, one.upper
        return Row(one.item, figure(*ends, measure), interval(*ends, measure), bar(*ends, full))

    return {
        "heading": "All figures",
        "which": "",
        "level": level,
        "missing": any(one is None for own in estimates for one in own),
        "groups": series.labels,
        "rows": [(own[0].item, [cell(one) for one in found]) for own, found in zip(lines, estimates, strict=True)],
        "distances": None,
    }
