"""The pictures of `crowdgram paper`: the paper's Figure 1, and users needed by rows per user."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arrays import Floats
from ..errors import MissingDependency
from ..shortage import is_shortage
from ..theory import binomial_distance
from .complexity import COMPARED, Line, Question

if TYPE_CHECKING:
    import matplotlib.figure

__all__ = ["Panel", "draw_complexity", "draw_figure1", "figure1_panels", "png"]


_BLUE, _ORANGE, _GREY = "#08519c", "#e6550d", "#777777"


@dataclass(frozen=True)
class Panel:
    """A panel of Figure 1: exact distances against x, and the least-squares line through them."""

    title: str
    label: str
    x: Floats
    distance: Floats
    slope: float
    intercept: float
    explained: float


def figure1_panels(p: float, q: float) -> tuple[Panel, Panel]:
    """The distance of Bin(m, p) and Bin(m, q): against m for m <= 20, against sqrt(m) for m from 100 to 4,000."""
    small, large = np.arange(1, 21), np.arange(100, 4_001, 10)
    return (
        _panel("m ≤ 20: linear in m", "m", small.astype(np.float64), binomial_distance(small, p, q)),
        _panel("larger m: linear in √m", "√m", np.sqrt(large), binomial_distance(large, p, q)),
    )


def _panel(title: str, label: str, x: Floats, distance: Floats) -> Panel:
    slope, intercept = np.polyfit(x, distance, 1)
    left = distance - (slope * x + intercept)
    explained = 1 - float(left @ left) / float(np.sum((distance - distance.mean()) ** 2))
    return Panel(title, label, x, distance, float(slope), float(intercept), explained)


def draw_figure1(panels: Sequence[Panel], p: float, q: float) -> matplotlib.figure.Figure:
    """Both panels side by side: distances in blue, line fits in orange, as in the paper."""
    drawing = _figure((9, 3.8))
    for ax, panel in zip(drawing.subplots(1, 2), panels, strict=True):
        few = len(panel.x) <= 20
        ax.plot(panel.x, panel.distance, "o" if few else "-", color=_BLUE, ms=5, lw=1.6, label="exact distance")
        fit = f"fit: {panel.slope:.5f} {panel.label} {panel.intercept:+.4f}"
        ax.plot(panel.x, panel.slope * panel.x + panel.intercept, "--", color=_ORANGE, lw=1.8, label=fit)
        ax.set_xlabel(panel.label)
        ax.set_title(panel.title, fontsize=10)
        ax.set_ylim(bottom=0)
        if few:
            ax.set_xticks(range(0, 21, 5))
        _tidy(ax)
        ax.legend(frameon=False, loc="upper left", fontsize=9)
    drawing.axes[0].set_ylabel(f"l1 distance of Bin(m, {p:g}) and Bin(m, {q:g})")
    return drawing


_CURVES = {
    "gaussian": ("#a63603", "s-"),
    "laplace": ("#e6550d", "s-"),
    "paper": ("#6a51a3", "^-"),
    "paper-tight": ("#31a354", "D-"),
    "auto": (_BLUE, "o-"),
    "no-privacy": ("#555555", "o-"),
}
_BOUNDS = {"counts only": "lower bound, summed counts (Thm 1)", "any": "lower bound, any mechanism"}


def draw_complexity(question: Question, lines: Sequence[Line]) -> matplotlib.figure.Figure:
    """Users needed by rows a user, on log scales. Hollow marks: more than that, which was the most tried."""
    drawing = _figure((9, 5.4))
    ax = drawing.subplots()
    ends: dict[str, tuple[float, str]] = {}
    for name, (color, style) in _CURVES.items():
        if name not in lines[0].measured:
            continue
        found = [(line.rows, line.measured[name].users) for line in lines if not line.measured[name].more]
        beyond = [(line.rows, line.measured[name].users) for line in lines if line.measured[name].more]
        if found:
            ax.plot(*zip(*found, strict=True), style, color=color, ms=6, lw=1.8)
        if beyond:
            ax.plot(*zip(*beyond, strict=True), style[0], color=color, ms=7, mfc="white")
        last = lines[-1].measured[name]
        ends[COMPARED[name] + (" (more)" if last.more else "")] = (last.users, color)
    for name, label in _BOUNDS.items():
        users = [line.bounds[name] or 1 for line in lines]
        ax.plot([line.rows for line in lines], users, "--" if name == "counts only" else ":", color=_GREY, lw=1.5)
        ends[label] = (users[-1], _GREY)
    ax.set_xscale("log")
    ax.set_yscale("log")
    _name_ends(ax, ends, lines[-1].rows)
    ax.set_xlabel("rows a user (m)")
    ax.set_ylabel(f"users needed for an l1 error of {question.alpha:g}")
    promise = f"epsilon={question.epsilon:g}" + (f", delta={question.delta:g}" if question.delta else "")
    ax.set_title(f"{question.items} items, Zipf {question.zipf:g}; {promise}, {question.adjacency.value}", fontsize=10)
    _tidy(ax)
    return drawing


def _name_ends(ax: Any, ends: dict[str, tuple[float, str]], x: float) -> None:
    """Names at the right end of the curves, moved up if they would overlap."""
    low, high = ax.get_ylim()
    apart = (high / low) ** (1 / 21)  # the height of a line of text
    free = 0.0
    for label, (value, color) in sorted(ends.items(), key=lambda end: end[1][0]):
        height = max(value, free)
        free = height * apart
        ax.annotate(
            label,
            (x, height),
            (9, 0),
            textcoords="offset points",
            va="center",
            color=color,
            fontsize=9.5,
            annotation_clip=False,
        )


def _tidy(ax: Any) -> None:
    ax.grid(color="#eeeeee")
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)


def _figure(size: tuple[float, float]) -> matplotlib.figure.Figure:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        if is_shortage(error):
            raise
        raise MissingDependency(
            "matplotlib is not installed: pip install 'crowdgram[plot]'.", name="matplotlib"
        ) from None
    return Figure(figsize=size, layout="constrained")


def png(drawing: matplotlib.figure.Figure) -> bytes:
    """The picture as the bytes of a PNG file."""
    drawn = io.BytesIO()
    drawing.savefig(drawn, format="png", dpi=150)
    return drawn.getvalue()
