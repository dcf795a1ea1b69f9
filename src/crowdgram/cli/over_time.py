"""`crowdgram series`: saved releases over time, on the terminal or as a page, a table or a picture."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..errors import InvalidArgument
from ..export import load, write_whole
from ..results import Release, Series
from ..results.values import Item, Measure, label, values_of
from .display import printable, say

if TYPE_CHECKING:
    from ..results import SeriesPoint

__all__ = ["Asked", "run"]

PICTURES = (".png", ".svg", ".pdf")


@dataclass(frozen=True)
class Asked:
    """What is to be shown: names of the releases, items by their text, how many of the largest, and of what."""

    labels: Sequence[str]
    items: Sequence[str]
    top: int
    measure: Measure
    title: str | None


def run(paths: Sequence[Path], output: Path | None, asked: Asked, *, force: bool, quiet: bool) -> None:
    """Print the series, or write it in the form that the name of the output says."""
    suffix = "" if output is None else output.suffix.lower()
    if output is not None and suffix not in (".html", ".htm", ".csv", *PICTURES):
        raise InvalidArgument(
            f"--output {str(output)!r}: its name must end in .html, .csv, .png, .svg or .pdf.",
            argument="--output",
        )
    if asked.title is not None and suffix not in (".html", ".htm"):
        raise InvalidArgument(
            f"--title {asked.title!r}: is the heading of a page. Give --output FILE.html.", argument="--title"
        )
    if output is not None and any(one.resolve() == output.resolve() for one in paths):
        raise InvalidArgument(
            f"--output {str(output)!r}: needs to be no input, as that would be overwritten. Give another name.",
            argument="--output",
        )
    series = _series(paths, asked.labels)
    items = [_item(series, text) for text in asked.items] or None
    if output is None:
        _show(Console(), series, series.points(items, n=asked.top, measure=asked.measure), asked.measure)
        return
    options: dict[str, Any] = {"n": asked.top, "measure": asked.measure}
    if suffix in PICTURES:
        drawn = io.BytesIO()
        series.plot(items, **options).savefig(drawn, format=suffix[1:], dpi=150, metadata=_dateless(suffix))
        write_whole(output, drawn.getvalue(), overwrite=force)
    elif suffix == ".csv":
        series.to_csv(output, items, **options, overwrite=force)
    else:
        series.to_html(output, items, **options, title=asked.title, overwrite=force)
    if not quiet:
        say(Console(), f"Wrote {printable(str(output))}.")


def _series(paths: Sequence[Path], labels: Sequence[str]) -> Series:
    """The releases with their names: as given; or their periods; or those of their files."""
    if labels and len(labels) != len(paths):
        raise InvalidArgument(
            f"--label {labels[-1]!r}: is given {len(labels)} times for {len(paths)} releases. Give it once for each.",
            argument="--label",
        )
    loaded = [load(path) for path in paths]
    for path, one in zip(paths, loaded, strict=True):
        if not isinstance(one, Release):
            raise InvalidArgument(
                f"{str(path)!r}: is by groups, and needs to be one distribution. In Python, Series takes a group of "
                "each release.",
                argument=None,
            )
    periods = [one.parameters.get("period") for one in loaded]
    distinct = all(isinstance(one, str) for one in periods) and len(set(periods)) == len(periods)
    names = labels or ([str(one) for one in periods] if distinct else [path.stem for path in paths])
    if len(set(names)) < len(names):
        repeated = next(one for one in names if list(names).count(one) > 1)
        raise InvalidArgument(
            f"--label {repeated!r}: names two releases. Give --label once for each, and each another.",
            argument="--label",
        )
    return Series(dict(zip(names, loaded, strict=True)))  # type: ignore[arg-type]


def _item(series: Series, text: str) -> Item:
    """The item that is written so."""
    for release in series.releases:
        for item in release.items:
            if text in (label(item), ", ".join(release.texts(item))):
                return item
    raise InvalidArgument(f"--item {text!r}: needs to be an item of one of the releases.", argument="--item")


def _show(console: Console, series: Series, points: Sequence[SeriesPoint], measure: Measure) -> None:
    first = series.releases[0]
    decimals = 0 if measure == "counts" else 4
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in first.heads:
        table.add_column(Text(printable(name)), overflow="fold", max_width=40)
    table.add_column("release", overflow="fold", max_width=24)
    level = f"{first.confidence:.0%} interval"
    for name in ("share" if measure == "shares" else "count", level, "change", level):
        table.add_column(name, justify="right")
    for place, one in enumerate(points):
        again = place % len(series) > 0
        names = [" " if again else text for text in _texts(series, one.item)]
        table.add_row(*(Text(printable(text)) for text in (*names, one.label)), *_figures(one, decimals))
        if place % len(series) == len(series) - 1 and place + 1 < len(points):
            table.add_section()
    console.print(table)
    if any(one.value is None for one in points):
        say(console, "- stands for an item that is not listed in that release.")
    say(console, "Each interval holds by itself: of many changes that are none, some will seem to be.")


def _texts(series: Series, item: Item) -> tuple[str, ...]:
    found = next((release.texts(item) for release in series.releases if item in release), None)
    return found or tuple(map(str, values_of(item)))


def _figures(one: SeriesPoint, decimals: int) -> list[str]:
    cells = ["-", "", "", ""]
    if one.value is not None:
        cells[:2] = [f"{one.value:,.{decimals}f}", f"{one.lower:,.{decimals}f} to {one.upper:,.{decimals}f}"]
    if one.change is not None and math.isnan(one.change):
        cells[2] = "unknown"
    elif one.change is not None:
        ends = f"{one.change_lower:+,.{decimals}f} to {one.change_upper:+,.{decimals}f}"
        cells[2:] = [f"{one.change:+,.{decimals}f}", ends]
    return cells


def _dateless(suffix: str) -> dict[str, Any]:
    """Metadata that leaves out when and by what a picture was made: the same releases give the same file."""
    return {".png": {"Software": None}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}[suffix]
