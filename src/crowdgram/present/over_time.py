"""A picture of a series, by matplotlib: a line for each item, with its intervals as a band."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..results.series import Series, SeriesPoint
from ..results.values import Item, Measure, label
from .plots import new_figure, shown_name
from .wording import measured_as

if TYPE_CHECKING:
    import matplotlib.axes
    import matplotlib.figure

__all__ = ["plot_series"]

_COLORS = ("#08519c", "#d94801", "#238b45", "#6a51a3", "#b8860b", "#c51b8a", "#525252", "#17888f")
_TALL = 0.2
"""Inches: how far apart the names at the right have to be."""
_MOST_TICKS = 16


def plot_series(series: Series, items: Sequence[Item] | None, n: int, measure: Measure) -> matplotlib.figure.Figure:
    """Items over time. A line has a gap at a time at which its item is not listed."""
    points = series.points(items, n=n, measure=measure)
    lines = [points[start : start + len(series)] for start in range(0, len(points), len(series))]
    figure = new_figure(max(7.0, min(3.5 + 0.55 * len(series), 14.0)), max(4.2, 1.2 + 0.32 * len(lines)))
    ax = figure.subplots()
    for place, line in enumerate(lines):
        _draw(ax, line, _COLORS[place % len(_COLORS)])
    step = math.ceil(len(series) / _MOST_TICKS)
    places = range(0, len(series), step)
    ax.set_xticks(list(places), [shown_name(series.labels[place], 20) for place in places])
    if max(len(one) for one in series.labels) * len(places) > 60:
        for text in ax.get_xticklabels():
            text.set(rotation=45, ha="right", rotation_mode="anchor")
    ax.set_ylim(bottom=0)
    ax.margins(x=0.02)
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis="y", color="#dddddd", linewidth=0.6)
    ax.set_axisbelow(True)
    first = series.releases[0]
    ax.set_ylabel("probability" if measure == "shares" else f"{first.weight}")
    asked = shown_name(measured_as(first, first.item_columns, measure), 70)
    ax.set_title(f"{asked} over time, {first.confidence:.0%} intervals", fontsize=10)
    _name_lines(ax, lines)
    return figure


def _draw(ax: matplotlib.axes.Axes, line: Sequence[SeriesPoint], color: str) -> None:
    places = list(range(len(line)))
    value, lower, upper = (
        [math.nan if found is None else found for found in (getattr(one, name) for one in line)]
        for name in ("value", "lower", "upper")
    )
    ax.fill_between(places, lower, upper, color=color, alpha=0.15, linewidth=0)
    ax.plot(places, value, color=color, marker="o", markersize=3.5, linewidth=1.6)
    # A band has no width at a point whose neighbours are missing: its interval is a bar.
    alone = [k for k in places if not math.isnan(value[k]) and all(
        not 0 <= other < len(line) or math.isnan(value[other]) for other in (k - 1, k + 1)
    )]  # fmt: skip
    ax.vlines(alone, [lower[k] for k in alone], [upper[k] for k in alone], color=color, alpha=0.4, linewidth=3)


def _name_lines(ax: matplotlib.axes.Axes, lines: Sequence[Sequence[SeriesPoint]]) -> None:
    """Names at the right end, in the order of the last values, pushed apart so that none covers another."""
    low, high = ax.get_ylim()
    apart = _TALL / (ax.get_figure().get_figheight() - 1.0) * (high - low)  # type: ignore[union-attr]
    ends = []
    for place, line in enumerate(lines):
        last = next((one.value for one in reversed(line) if one.value is not None), 0.0)
        ends.append((float(last or 0.0), place, line[0].item, line[-1].value is None))
    ends.sort(key=lambda end: end[0])
    heights: list[float] = []
    for end in ends:
        heights.append(max(end[0], heights[-1] + apart) if heights else end[0])
    for place in reversed(range(len(heights))):  # and down again from the top
        heights[place] = min(heights[place], high if place == len(heights) - 1 else heights[place + 1] - apart)
    for (value, place, item, gone), height in zip(ends, heights, strict=True):
        color, said = _COLORS[place % len(_COLORS)], shown_name(label(item), 28)
        ax.annotate(
            f"{said} (not listed at the end)" if gone else said,
            xy=(1.0, value),
            xytext=(1.02, height),
            xycoords=("axes fraction", "data"),
            textcoords=("axes fraction", "data"),
            va="center",
            color=color,
            fontsize=9,
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": color, "linewidth": 0.6, "shrinkA": 0, "shrinkB": 0},
        )
