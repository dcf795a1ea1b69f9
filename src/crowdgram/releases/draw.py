"""Pictures of a release: matplotlib axes, and HTML for notebooks."""

from __future__ import annotations

import html
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..errors import MissingDependency
from .release import Release, label
from .text import printable

if TYPE_CHECKING:
    import matplotlib.axes

__all__ = ["plot", "to_html"]

_SHOWN_IN_HTML = 20


def plot(
    release: Release, n: int, truth: Mapping[Any, float] | None, ax: matplotlib.axes.Axes | None
) -> matplotlib.axes.Axes:
    """Bars with intervals for the n most probable items; dots for `truth`."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingDependency("matplotlib is not installed: pip install 'crowdgram[plot]'.") from None

    shown = release.top(n)
    if ax is None:
        figure = Figure(figsize=(8, 1.4 + 0.28 * len(shown)), layout="constrained")
        ax = figure.subplots()
    places = list(range(len(shown)))
    values = [one.probability for one in shown]
    below = [one.probability - one.lower for one in shown]
    above = [one.upper - one.probability for one in shown]
    ax.barh(places, values, color="#9ecae1", label="released")
    ax.errorbar(
        values,
        places,
        xerr=[below, above],
        fmt="none",
        ecolor="#08519c",
        capsize=2,
        label=f"{release.confidence:.0%} interval",
    )
    if truth is not None:
        ax.plot(
            [truth.get(one.item, 0.0) for one in shown],
            places,
            "D",
            color="#d94801",
            ms=3.5,
            label="truth (public here)",
        )
    ax.set_yticks(places, [_label(label(one.item)) for one in shown])
    ax.invert_yaxis()
    ax.set_xlim(left=0)
    ax.set_xlabel("probability")
    g = release.guarantee
    promise = f"epsilon={g.epsilon:g}" + (f", delta={g.delta:g}" if g.delta else "")
    ax.set_title(f"{_question(release)} ({_label(release.mechanism)}, {promise}, {g.adjacency.value})", fontsize=10)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, loc="lower right")
    return ax


def to_html(release: Release) -> str:
    """A table of the most probable items with bars and the guarantee in words. Everything is escaped."""
    shown = release.top(_SHOWN_IN_HTML)
    widest = max((one.upper for one in shown), default=1.0) or 1.0
    rows = "".join(
        f"<tr><td style='text-align:left'>{html.escape(printable(_short(label(one.item))))}</td>"
        f"<td>{one.probability:.4f}</td><td>{one.lower:.4f} to {one.upper:.4f}</td><td style='text-align:left'>"
        "<div style='background:#9ecae1;height:0.9em;"
        f"width:{160 * one.probability / widest:.0f}px'></div></td></tr>"
        for one in shown
    )
    about = release.about_items()
    items = f"<p>{html.escape(about)}</p>" if about else ""
    more = f"<p>and {len(release) - len(shown)} more items</p>" if len(release) > len(shown) else ""
    return (
        f"<div><p><b>{html.escape(_question(release))}</b>, released by {html.escape(printable(release.mechanism))}. "
        f"{html.escape(printable(release.guarantee.sentence()))}</p><table><thead><tr>"
        f"<th>{html.escape(printable(_heading(release)))}</th>"
        f"<th>probability</th><th>{release.confidence:.0%} interval</th><th></th></tr></thead>"
        f"<tbody>{rows}</tbody></table>{more}{items}</div>"
    )


def _question(release: Release) -> str:
    return "Share of all rows by item" if release.weight == "rows" else "Average user's share by item"


def _heading(release: Release) -> str:
    return ", ".join(release.item_columns) if len(release.item_columns) > 1 else "item"


def _label(name: str) -> str:
    """A name as a picture may show it. "$" would start a formula in matplotlib, and a formula can fail to parse."""
    return _short(_one_line(name)).replace("$", r"\$")


def _one_line(text: str) -> str:
    """`text` without line breaks or control characters, which would overlap other labels or have no glyph."""
    return "".join(char if char.isprintable() else "�" for char in text)


def _short(text: str, most: int = 40) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
