"""Commands on saved releases: `compare`, `export` and `report`. They read releases only, and cost no privacy."""

from __future__ import annotations

import csv
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..errors import InvalidArgument, UnreadableSource

__all__ = ["SAVED_COMMANDS"]

_MOST_PAIRS = 20


class KindChoice(StrEnum):
    L1 = "l1"
    TV = "tv"
    L2 = "l2"


def compare(
    first: Annotated[Path, typer.Argument(help="A saved release.", show_default=False)],
    second: Annotated[
        Path | None, typer.Argument(help="Another one. Without it: the groups of the first.", show_default=False)
    ] = None,
    kind: Annotated[
        KindChoice, typer.Option(help="l1: sum of absolute differences; tv: half of it; l2: root of squares.")
    ] = KindChoice.L1,
    top: Annotated[int, typer.Option(min=0, help="How many items to show.")] = 10,
) -> None:
    """Show how far two saved releases, or the groups of one, are from each other. Costs no privacy."""
    from .. import releases
    from .display import printable, say

    console = Console()
    one = releases.load(first)
    if second is not None:
        two = releases.load(second)
        if not isinstance(one, releases.Release) or not isinstance(two, releases.Release):
            raise InvalidArgument("a release by groups is compared by itself, group with group. Give one file.")
        _show_pair(console, one, two, ("first", "second"), kind.value, top)
        return
    if isinstance(one, releases.Release) or len(one) < 2:
        raise InvalidArgument(f"{str(first)!r} has no groups to compare. Give a second release.")
    found = one.distances(kind.value)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in (one.by, ""):
        table.add_column(Text(printable(name)), overflow="fold", max_width=40)
    table.add_column(f"{kind.value} distance", justify="right")
    table.add_column(f"{one.joint.confidence:.0%} interval", justify="right")
    for (a, b), quantity in list(found.items())[:_MOST_PAIRS]:
        table.add_row(
            Text(printable(str(a))),
            Text(printable(str(b))),
            f"{quantity.value:.4f}",
            f"{quantity.lower:.4f} to {quantity.upper:.4f}",
        )
    console.print(table)
    if len(found) > _MOST_PAIRS:
        say(console, f"and {len(found) - _MOST_PAIRS} more pairs")
    a, b = next(iter(found))
    console.print()
    _show_pair(console, one[a], one[b], (str(a), str(b)), kind.value, top)


def export(
    path: Annotated[Path, typer.Argument(help="A saved release.", show_default=False)],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Where to write: .csv, .parquet or .json.", show_default=False)
    ],
    merge: Annotated[
        Path | None,
        typer.Option(help="CSV file with a header and two columns, an item and what it becomes: items are summed."),
    ] = None,
    other: Annotated[
        str | None, typer.Option(help="With --merge: name of the item for all that the file does not list.")
    ] = None,
) -> None:
    """Write a saved release as CSV, Parquet or JSON, with items put together if wanted. Costs no privacy."""
    from .. import releases
    from .display import printable, say

    writers: dict[str, Callable[[Any, Path], None]] = {
        ".csv": releases.write_csv,
        ".parquet": releases.write_parquet,
        ".json": releases.save,
    }
    suffix = output.suffix.lower()
    if suffix not in writers:
        raise InvalidArgument(f"--output {str(output)!r}: its name must end in .csv, .parquet or .json.")
    if any(one is not None and one.resolve() == output.resolve() for one in (path, merge)):
        raise InvalidArgument(f"--output {str(output)!r} would overwrite an input. Give another name.")
    if other is not None and merge is None:
        raise InvalidArgument(f"--other {other!r} is for what --merge does not list. Give --merge too.")
    loaded = releases.load(path)
    if merge is not None:
        if not isinstance(loaded, releases.Release) or len(loaded.item_columns) > 1:
            raise InvalidArgument("--merge is for a release of one item column. In Python, merged() takes any.")
        loaded = loaded.merged(_mapping(merge, loaded, keep=other is None), other=other)
    writers[suffix](loaded, output)
    say(Console(), f"Wrote {printable(str(output))}.")


def report(
    path: Annotated[Path, typer.Argument(help="A saved release, by groups or not.", show_default=False)],
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to write the page: .html.", show_default=False)],
    title: Annotated[
        str | None, typer.Option(help="Its heading. [default: the question, such as 'Share of all rows by page']")
    ] = None,
) -> None:
    """Write a saved release as a page to read in a browser: one file that loads nothing. Costs no privacy."""
    from .. import releases
    from .display import printable, say

    if output.suffix.lower() not in (".html", ".htm"):
        raise InvalidArgument(f"--output {str(output)!r}: its name must end in .html.")
    releases.load(path).to_html(output, title=title)
    say(Console(), f"Wrote {printable(str(output))}.")


SAVED_COMMANDS = (compare, export, report)


def _show_pair(console: Console, one: Any, two: Any, names: tuple[str, str], kind: str, top: int) -> None:
    """The distance of two releases and the items that differ most."""
    from .display import printable, say

    distance = one.distance(two, kind)
    say(
        console,
        f"{printable(names[0])} and {printable(names[1])} are {distance.value:.4f} apart in {kind} "
        f"({distance.confidence:.0%} interval {distance.lower:.4f} to {distance.upper:.4f}), noise taken off.",
    )
    shown = one.differences(two, top)
    if not shown:
        return
    console.print()
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in one.item_columns if len(one.item_columns) > 1 else ["item"]:
        table.add_column(Text(printable(name)), overflow="fold", max_width=40)
    for name in (*names, "difference", f"{one.confidence:.0%} interval"):
        table.add_column(Text(printable(name)), justify="right", overflow="fold", max_width=24)
    for each in shown:
        values = each.item if isinstance(each.item, tuple) else (each.item,)
        table.add_row(
            *(Text(printable(str(value))) for value in values),
            f"{each.first:.5f}",
            f"{each.second:.5f}",
            f"{each.difference:+.5f}",
            f"{each.lower:+.5f} to {each.upper:+.5f}",
        )
    console.print(table)


def _mapping(path: Path, release: Any, *, keep: bool) -> dict[Any, str]:
    """The mapping of a CSV file, its items looked up among those of the release by their text.

    `keep`: what is not listed stays what it is, as text.
    """
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            _, *rows = [row for row in csv.reader(file) if row] or [[]]
    except OSError as error:
        raise UnreadableSource(f"--merge {str(path)!r} cannot be read: {error.strerror}.") from None
    except (UnicodeDecodeError, csv.Error):
        raise UnreadableSource(f"--merge {str(path)!r} is not CSV text in UTF-8.") from None
    if not rows or any(len(row) != 2 for row in rows):
        raise InvalidArgument(f"--merge {str(path)!r}: needs a header and lines of two values, an item and a new one.")
    if len({item for item, _ in rows}) < len(rows):
        raise InvalidArgument(f"--merge {str(path)!r} lists an item twice.")
    known = {str(item): item for item in release.items if item != release.other}
    unknown = next((item for item, _ in rows if item not in known), None)
    if unknown is not None:
        raise InvalidArgument(f"--merge {str(path)!r} lists {unknown!r}, which is not an item of the release.")
    stays = {item: text for text, item in known.items()} if keep else {}
    return {**stays, **{known[item]: new for item, new in rows}}
