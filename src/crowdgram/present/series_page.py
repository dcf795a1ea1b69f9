"""A series as one page of HTML: each item over time, its changes, and every figure. Costs no privacy."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence

from ..export import write_whole
from ..results.series import Series, SeriesPoint
from ..results.values import Item, ItemEstimate, Measure, is_unlisted
from .markup import bar, cells, digits, escape, heads, line, name, scale, wide
from .report import check_title, html_page
from .wording import coverage, measured_as, too_little

__all__ = ["series_page", "write_series_html"]

_HIGH = 30.0
"""Height of a picture of one item, of which the width is 100."""


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
    known = [one.value for one in points if one.value is not None]
    decimals = 0 if measure == "counts" else digits(known)
    said = f"{measured_as(first, first.item_columns, measure)}, {series.labels[0]} to {series.labels[-1]}"
    listed = sum(not is_unlisted(item) for item in set().union(*(release.items for release in series.releases)))
    which = "All items." if len(lines) == listed else f"{len(lines)} of {listed:,} items."
    missing = " – stands for an item that is not listed then." if len(known) < len(points) else ""
    body = (
        f"<p>{escape(coverage(first))} Each interval holds by itself: of many changes that are none, some will seem to "
        "be.</p>"
        + "".join(_warnings(series))
        + f"<h2>Over time</h2><p>{which} A band holds the {first.confidence:.0%} intervals; each picture has a scale "
        "of its own, which starts at 0. A change is in bold if its interval leaves out 0.</p>"
        + _pictures(series, lines, decimals)
        + f"<h2>All figures</h2><p>All bars have one scale; the lines are intervals.{missing}</p>"
        + _figures(series, lines, decimals)
        + _promises(series)
    )
    return html_page(said if title is None else title, body)


def _warnings(series: Series) -> list[str]:
    """What is mostly noise, if anything is."""
    lost = [label for label, release in zip(series.labels, series.releases, strict=True) if too_little(release)]
    return [f'<p class="little">{name(label)}: the release is mostly noise.</p>' for label in lost]


def _pictures(series: Series, lines: Sequence[Sequence[SeriesPoint]], decimals: int) -> str:
    rows = []
    for own in lines:
        last = own[-1]
        now = "–" if last.value is None else f"{last.value:,.{decimals}f}"
        ends = "" if last.lower is None else f"{last.lower:,.{decimals}f} to {last.upper:,.{decimals}f}"
        rows.append(
            f'<tr>{cells(own[0].item)}<td class="bar">{_picture(own)}</td><td>{now}</td>'
            f'<td class="interval">{ends}</td>{_change(last, decimals)}</tr>'
        )
    start, end = name(series.labels[0], 24), name(series.labels[-1], 24)
    return wide(
        f'<table class="items series"><thead><tr>{heads(series.releases[0])}<th class="name">{start} to {end}</th>'
        f"<th>{end}</th><th>interval</th><th>change</th><th>interval</th></tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table>"
    )


def _change(point: SeriesPoint, decimals: int) -> str:
    """The change since the time before, and its interval."""
    if point.change is None or point.change_lower is None or point.change_upper is None:
        return "<td>–</td><td></td>"
    if math.isnan(point.change):
        return "<td>unknown</td><td></td>"
    sure = point.change_lower > 0 or point.change_upper < 0
    bold = ' class="sure"' if sure else ""
    return (
        f"<td{bold}>{point.change:+,.{decimals}f}</td>"
        f'<td class="interval">{point.change_lower:+,.{decimals}f} to {point.change_upper:+,.{decimals}f}</td>'
    )


def _picture(own: Sequence[SeriesPoint]) -> str:
    """A line with its band, cut where the item is not listed."""
    most = 1.05 * max((one.upper for one in own if one.upper is not None), default=0.0) or 1.0

    def at(place: int, value: float | None) -> str:
        along = 100.0 * (place + 0.5) / len(own)
        return f"{along:.2f} {_HIGH * (1.0 - min((value or 0.0) / most, 1.0)):.2f}"

    bands, drawn = [], []
    for run in _runs(own):
        first, last = run[0], run[-1]
        half = 1.0 if first == last else 0.0  # a point alone has a band too, of some width
        if half:
            low, high = (float(at(first, end).split()[1]) for end in (own[first].lower, own[first].upper))
            along = float(at(first, 0.0).split()[0])
            bands.append(f"M{along - half:.2f} {low:.2f}H{along + half:.2f}V{high:.2f}H{along - half:.2f}Z")
            middle = at(first, own[first].value).split()[1]
            drawn.append(f"M{along - half:.2f} {middle}H{along + half:.2f}")
            continue
        up = "L".join(at(place, own[place].upper) for place in run)
        down = "L".join(at(place, own[place].lower) for place in reversed(run))
        bands.append(f"M{up}L{down}Z")
        drawn.append("M" + "L".join(at(place, own[place].value) for place in run))
    return (
        f'<svg viewBox="0 0 100 {_HIGH:g}" preserveAspectRatio="none" aria-hidden="true">'
        f'<path class="band" d="{"".join(bands)}"/><path d="{"".join(drawn)}"/></svg>'
    )


def _runs(own: Sequence[SeriesPoint]) -> list[list[int]]:
    """The places of an item's values, cut where there is none."""
    runs: list[list[int]] = []
    for place, one in enumerate(own):
        if one.value is None:
            continue
        if runs and runs[-1][-1] == place - 1:
            runs[-1].append(place)
        else:
            runs.append([place])
    return runs


def _figures(series: Series, lines: Sequence[Sequence[SeriesPoint]], decimals: int) -> str:
    estimates = [
        [
            None if one.value is None else ItemEstimate(one.item, one.value, 0.0, one.lower or 0.0, one.upper or 0.0)
            for one in own
        ]
        for own in lines
    ]
    full = scale(one for own in estimates for one in own if one is not None)

    def cell(one: ItemEstimate | None) -> str:
        if one is None:
            return '<td class="missing">–</td>'
        ends = f"<small>{one.lower:,.{decimals}f} to {one.upper:,.{decimals}f}</small>"
        return f"<td>{one.probability:,.{decimals}f}{ends}{bar(one, full)}</td>"

    body = "".join(
        f'<tr><th class="name">{line(own[0].item, 60)}</th>{"".join(map(cell, found))}</tr>'
        for own, found in zip(lines, estimates, strict=True)
    )
    columns = "".join(f"<th>{name(label, 24)}</th>" for label in series.labels)
    return wide(
        f'<table class="compared"><thead><tr><th class="name"></th>{columns}</tr></thead><tbody>{body}</tbody></table>'
    )


def _promises(series: Series) -> str:
    """The guarantee of each release; what they come to together is for the ledger to say."""
    rows = []
    for label, release in zip(series.labels, series.releases, strict=True):
        g = release.guarantee
        facts = (f"{g.epsilon:g}", f"{g.delta:g}", g.adjacency.value, release.mechanism)
        rows.append(
            f'<tr><td class="name">{name(label)}</td>{"".join(f"<td>{escape(fact, 40)}</td>" for fact in facts)}</tr>'
        )
    return (
        "<h2>What is promised</h2><p>Each release has a guarantee of its own. For a user who is in several of them, "
        "they add up: their ledger says to what.</p>"
        + wide(
            '<table><thead><tr><th class="name">release</th><th>epsilon</th><th>delta</th><th>neighbours</th>'
            f"<th>mechanism</th></tr></thead><tbody>{''.join(rows)}</tbody></table>"
        )
    )
