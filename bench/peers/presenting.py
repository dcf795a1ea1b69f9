"""The tables and the picture of the comparison, from its record: nothing is measured."""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path
from typing import Any

from names import name_of

__all__ = ["digest", "draw", "markdown", "ratios"]

TOOLS = {
    "opendp": "OpenDP",
    "tumult": "Tumult Analytics",
    "pipelinedp": "PipelineDP",
    "smartnoise": "SmartNoise",
    "diffprivlib": "diffprivlib",
    "pydp": "PyDP",
}
QUESTIONS = {
    "shares": "shares",
    "users": "distinct users",
    "found_rows": "rows, items found",
    "found_users": "distinct users, items found",
}
OURS = "crowdgram"
COLOURS = dict(zip(TOOLS, ("#d94801", "#6a51a3", "#238b45", "#c51b8a", "#525252", "#b8860b"), strict=True))
MARKS = dict(zip(TOOLS, "sDv^oP", strict=True))


def error(table: dict[str, Any], tool: str, question: str, *, strong: bool = False) -> float | None:
    """The error of a tool's answer, as it is meant or at its strongest; None if there is none."""
    line = _line(table, tool, question, strong=strong)
    return None if line is None else float(line["errors"][question.removeprefix("found_")])


def ratios(table: dict[str, Any], question: str) -> dict[tuple[str, bool], float]:
    """Errors over ours, by tool and whether it is at its strongest."""
    ours = error(table, OURS, question)
    found = {(tool, strong): error(table, tool, question, strong=strong) for tool in TOOLS for strong in (False, True)}
    return {} if ours is None else {key: one / ours for key, one in found.items() if one is not None}


def markdown(record: dict[str, Any]) -> str:
    """Errors, then costs."""
    heads = ["table", "question", "Crowdgram", *TOOLS.values(), "we lead"]
    rows = [heads, ["---"] * len(heads)]
    for table in record["tables"]:
        for question, words in QUESTIONS.items():
            found, ours = ratios(table, question), error(table, OURS, question)
            if ours is None:
                continue
            cells = [_pair(found.get((tool, False)), found.get((tool, True))) for tool in TOOLS]
            leads = "yes" if min(found.values()) > 1 else "**no**"
            rows.append([name_of(table["name"]), words, f"{ours:#.2g}".rstrip("."), *cells, leads])
    heads = ["table", "of", "Crowdgram", *TOOLS.values()]
    costs = [heads, ["---"] * len(heads)]
    for table in record["tables"]:
        ours = _line(table, OURS, "shares")
        if ours is None:
            continue
        for key, words, unit in (("cpu", "CPU time", "s"), ("peak_mb", "memory", "MB")):
            cells = []
            for tool in TOOLS:
                lines = [_line(table, tool, "rows", strong=strong) for strong in (False, True)]
                cells.append(_pair(*(None if one is None else one[key] / ours[key] for one in lines)))
            costs.append([name_of(table["name"]), words, f"{ours[key]:,.3g} {unit}", *cells])
    lengths = ["all tables", "lines of code", str(_length(record, OURS, strong=False))]
    for tool in TOOLS:
        lengths.append(_pair(*(_length(record, tool, strong=strong) for strong in (False, True)), times=""))
    costs.append(lengths)
    parts = ["\n".join(f"| {' | '.join(row)} |" for row in part) for part in (rows, costs)]
    runs = sorted({line["runs"] for table in record["tables"] for line in table["lines"]})
    number = "one run" if runs == [1] else f"{runs[0]} to {runs[-1]} runs" if len(runs) > 1 else f"{runs[0]} runs"
    return "\n\n".join([*parts, f"(Each figure is of {number}.)"]) + "\n"


def digest(record: dict[str, Any]) -> str:
    """Of all that the picture shows."""
    shown = [[name_of(table["name"]), *_figures(table)] for table in record["tables"]]
    return hashlib.sha256(json.dumps(shown).encode()).hexdigest()


def draw(record: dict[str, Any], file: Path, field: str) -> None:
    """For each table the error of shares and the CPU time of every tool over ours. `field` of the file: its digest."""
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    tables = record["tables"]
    drawing = Figure(figsize=(9.5, 1.8 + 0.5 * len(tables)), layout="constrained")
    left, right = drawing.subplots(1, 2, sharey=True)
    for place, table in enumerate(tables):
        errors, costs = _figures(table)
        for ax, figures in ((left, errors), (right, costs)):
            for tool, strong, one in figures:
                shift = (list(TOOLS).index(tool) - 2.5) * 0.11
                face = COLOURS[tool] if strong else "white"
                ax.plot(one, place + shift, MARKS[tool], mfc=face, mec=COLOURS[tool], mew=1.3, ms=6, zorder=3)
    for ax, words in ((left, "error of shares"), (right, "CPU time")):
        ax.axvline(1, color="#08519c", lw=2, zorder=2)
        ax.set_xscale("log")
        ax.xaxis.set_major_formatter("{x:g}")
        ax.set_xlabel(f"{words}, times Crowdgram's")
        ax.grid(axis="x", color="#eeeeee", zorder=0)
        ax.spines[["top", "right", "left"]].set_visible(False)
        ax.tick_params(axis="y", length=0)
        for place in range(len(tables) - 1):
            ax.axhline(place + 0.5, color="#dddddd", lw=0.6)
    left.set_yticks(range(len(tables)), [name_of(table["name"]) for table in tables])
    left.set_ylim(len(tables) - 0.5, -0.5)
    marks = [
        Line2D([], [], ls="", marker=MARKS[tool], mfc="white", mec=COLOURS[tool], mew=1.3, label=name)
        for tool, name in TOOLS.items()
    ]
    marks.append(Line2D([], [], ls="", marker="s", color="#555555", label="filled: the strongest use"))
    marks.append(Line2D([], [], color="#08519c", lw=2, label="Crowdgram"))
    drawing.legend(handles=marks, loc="outside upper center", ncols=4, frameon=False, fontsize=9)
    drawing.savefig(file, dpi=150, metadata={field: digest(record)})


def _figures(table: dict[str, Any]) -> tuple[list[tuple[str, bool, float]], list[tuple[str, bool, float]]]:
    """(tool, at its strongest, over ours) for errors of shares and for CPU time."""
    ours = _line(table, OURS, "shares")
    errors = [(tool, strong, one) for (tool, strong), one in ratios(table, "shares").items()]
    costs = []
    for tool, strong, _ in errors:
        line = _line(table, tool, "rows", strong=strong)
        if line is not None and ours is not None:
            costs.append((tool, strong, line["cpu"] / ours["cpu"]))
    return errors, costs


def _line(table: dict[str, Any], tool: str, question: str, *, strong: bool = False) -> dict[str, Any] | None:
    """Others give shares by counting rows."""
    use = "rows" if question == "shares" and tool != OURS else question
    name = f"{use}_strong" if strong else use
    return next((one for one in table["lines"] if one["tool"] == tool and one["use"] == name), None)


def _length(record: dict[str, Any], tool: str, *, strong: bool) -> float | None:
    lines = [_line(table, tool, "shares", strong=strong) for table in record["tables"]]
    return next((one["lines_of_code"] for one in lines if one is not None), None)


def _pair(meant: float | None, strong: float | None, times: str = "x") -> str:
    """As it is meant / at its strongest."""
    shown = ["-" if one is None else f"{_figure(one)}{times}" for one in (meant, strong)]
    return shown[0] if strong is None else " / ".join(shown)


def _figure(value: float) -> str:
    """Two digits that count."""
    return f"{value:.2g}" if value < 10 and not math.isclose(value, round(value)) else f"{value:,.0f}"
