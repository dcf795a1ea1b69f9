"""Commands on saved releases: `compare`, `export`, `series`, and `report` of reports.py. They cost no privacy."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import InvalidArgument, UnreadableSource
from .command import ForceOption, QuietOption
from .measures import MEASURE, MeasureChoice
from .reports import report
from .streams import is_standard, print_json

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["MEASURE", "SAVED_COMMANDS", "MeasureChoice"]

_MOST_LINES = 20


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
    from rich.console import Console

    from ..export.json_file import load
    from ..results import GroupedRelease, Release

    console = Console()
    one = load(first)
    if second is not None:
        two = load(second)
        names = _file_names(first, second)
        if isinstance(one, Release) and isinstance(two, Release):
            _show_pair(console, one, two, names, kind.value, top)
        elif isinstance(one, GroupedRelease) and isinstance(two, GroupedRelease):
            _show_group_by_group(console, one, two, names, kind.value, top)
        else:
            by, plain = (first, second) if isinstance(one, GroupedRelease) else (second, first)
            raise InvalidArgument(
                f"{str(by)!r} (by groups), {str(plain)!r} (not by groups): need to be of one kind. Give two of one "
                "kind, or one by groups.",
                argument=None,
            )
        return
    if isinstance(one, Release) or len(one) < 2:
        raise InvalidArgument(
            f"{str(first)!r}: needs at least two groups to compare. Give a second release.", argument=None
        )
    found = one.distances(kind.value)
    _show_distances(console, (one.by, ""), found, kind.value, one)
    a, b = next(iter(found))
    console.print()
    _show_pair(console, one[a], one[b], (_group(one, a), _group(one, b)), kind.value, top)


def export(
    path: Annotated[Path, typer.Argument(help="A saved release.", show_default=False)],
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            help="Where to write: .csv, .parquet or .json; - prints JSON on standard output.",
            show_default=False,
        ),
    ],
    merge: Annotated[
        Path | None,
        typer.Option(help="CSV file with a header and two columns, an item and what it becomes: items are summed."),
    ] = None,
    other: Annotated[
        str | None, typer.Option(help="With --merge: name of the item for all that the file does not list.")
    ] = None,
    measure: Annotated[MeasureChoice, MEASURE] = MeasureChoice.SHARES,
    force: ForceOption = False,
    quiet: QuietOption = False,
) -> None:
    """Write a saved release as CSV, Parquet or JSON, with items merged if asked. Costs no privacy."""
    from functools import partial

    from rich.console import Console

    from ..export import load, save, write_csv, write_parquet
    from ..export.documents import to_text
    from ..results import GroupedReach, Reach, Release
    from .display import printable, say

    writers: dict[str, Callable[..., None]] = {
        ".csv": partial(write_csv, measure=measure.value),
        ".parquet": partial(write_parquet, measure=measure.value),
        ".json": save,
    }
    suffix = output.suffix.lower()
    if suffix not in writers and not is_standard(output):
        raise InvalidArgument(
            f"--output {str(output)!r}: its name must end in .csv, .parquet or .json.", argument="--output"
        )
    if (suffix == ".json" or is_standard(output)) and measure is MeasureChoice.COUNTS:
        raise InvalidArgument(
            f"--measure counts: needs --output {str(output)!r} to end in .csv or .parquet. JSON holds shares and the "
            "total, so it has counts as well.",
            argument="--measure",
        )
    if any(one is not None and one.resolve() == output.resolve() for one in (path, merge)):
        raise InvalidArgument(
            f"--output {str(output)!r}: needs to be no input, as that would be overwritten. Give another name.",
            argument="--output",
        )
    if other is not None and merge is None:
        raise InvalidArgument(
            f"--other {other!r}: needs --merge, and names what that does not list. Give both or neither.",
            argument="--other",
        )
    loaded = load(path)
    if isinstance(loaded, Reach | GroupedReach) and (merge is not None or measure is MeasureChoice.COUNTS):
        option = "--measure counts" if merge is None else f"--merge {str(merge)!r}"
        why = "has users and shares in one table" if merge is None else "does not add up: users have several items"
        raise InvalidArgument(
            f"{option}: {str(path)!r} is a reach, which {why}. Leave it out.", argument=option.split()[0]
        )
    if merge is not None and not isinstance(loaded, Reach | GroupedReach):
        joint = loaded if isinstance(loaded, Release) else loaded.joint
        own = 1 if joint is loaded else 2
        if len(joint.item_columns) > own:
            raise InvalidArgument(
                f"--merge {str(merge)!r}: needs a release of one item column. In Python, merged() takes any.",
                argument="--merge",
            )
        items = dict.fromkeys(item if own == 1 else item[1] for item in joint.items)  # type: ignore[index]
        loaded = loaded.merged(_mapping(merge, items), other=other)
    if is_standard(output):
        print_json(to_text(loaded))
        return
    writers[suffix](loaded, output, overwrite=force)
    if not quiet:
        say(Console(), f"Wrote {printable(str(output))}.")


def series(
    paths: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="Saved releases, in the order of time.", show_default=False)
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="Where to write: .html, .csv, or a picture: .png, .svg or .pdf. [default: print it]"
        ),
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option(help="Name of a release, once for each, in order. [default: its period, or the file's name]"),
    ] = None,
    item: Annotated[
        list[str] | None, typer.Option(help="Item to show; may be given again. [default: the largest]")
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="How many of the largest items to show.")] = 6,
    measure: Annotated[MeasureChoice, MEASURE] = MeasureChoice.SHARES,
    title: Annotated[str | None, typer.Option(help="Heading of the page, for .html.")] = None,
    force: ForceOption = False,
    quiet: QuietOption = False,
) -> None:
    """Show items over time, from several saved releases, with intervals and changes. Costs no privacy."""
    from .over_time import Asked, run

    run(paths, output, Asked(label or [], item or [], top, measure.value, title), force=force, quiet=quiet)


SAVED_COMMANDS = (compare, export, report, series)


def _show_distances(console: Console, heads: Sequence[str], found: Any, kind: str, grouped: Any) -> None:
    """A line for each distance; `found` has the group, or the groups, that each is of."""
    from rich.table import Table
    from rich.text import Text

    from ..present.wording import number
    from .display import printable, say

    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in heads:
        table.add_column(Text(printable(name)), overflow="fold", max_width=40)
    table.add_column(f"{kind} distance", justify="right")
    table.add_column(f"{grouped.joint.confidence:.0%} interval", justify="right")
    for groups, quantity in list(found.items())[:_MOST_LINES]:
        table.add_row(
            *(Text(printable(_group(grouped, group))) for group in groups),
            number(quantity, 4),
            f"{quantity.lower:.4f} to {quantity.upper:.4f}",
        )
    console.print(table)
    rest = len(found) - _MOST_LINES
    if rest > 0:
        say(console, f"and {rest} more")


def _show_group_by_group(console: Console, one: Any, two: Any, names: tuple[str, str], kind: str, top: int) -> None:
    """Two releases by groups: how far each group that both have moved, and then the one that moved most."""
    from ..inference.distances import by_distance
    from .display import printable, say

    common = [group for group in one if group in two]
    if one.by != two.by:
        raise InvalidArgument(
            f"{names[0]!r}, {names[1]!r}: both need the same column of groups; one is by {one.by!r}, the other by "
            f"{two.by!r}.",
            argument=None,
        )
    if not common:
        raise InvalidArgument(
            f"{names[0]!r}, {names[1]!r}: need a group in common, or there is nothing to compare.", argument=None
        )
    found = {(group,): one[group].distance(two[group], kind) for group in common}
    ordered = dict(sorted(found.items(), key=lambda pair: by_distance(pair[1])))
    _show_distances(console, (one.by,), ordered, kind, one)
    for name, mine, others in ((names[0], one, two), (names[1], two, one)):
        alone = [_group(mine, group) for group in mine if group not in others]
        if alone:
            say(console, f"only in {printable(name)}: {printable(', '.join(alone))}")
    console.print()
    (most,) = next(iter(ordered))
    shown = tuple(f"{_group(one, most)} in {name}" for name in names)
    _show_pair(console, one[most], two[most], shown, kind, top)  # type: ignore[arg-type]


def _group(grouped: Any, group: Any) -> str:
    return str(grouped.shares.texts(group)[0])


def _file_names(first: Path, second: Path) -> tuple[str, str]:
    """What to call two files: by their names, or by their paths if the names are alike."""
    if first.name != second.name:
        return first.name, second.name
    return (str(first), str(second)) if first != second else ("first", "second")


def _show_pair(console: Console, one: Any, two: Any, names: tuple[str, str], kind: str, top: int) -> None:
    """The distance of two releases and the items that differ most."""
    from rich.table import Table
    from rich.text import Text

    from ..inference.alignment import unmatched_shares
    from .display import printable, say

    distance = one.distance(two, kind)
    both = f"{printable(names[0])} and {printable(names[1])}"
    interval = f"{distance.confidence:.0%} interval {distance.lower:.4f} to {distance.upper:.4f}"
    if distance.is_known:
        say(console, f"{both} are {distance.value:.4f} apart in {kind} ({interval}), corrected for noise.")
    else:
        say(console, f"How far apart {both} are in {kind} is unknown: the releases are mostly noise ({interval}).")
    for name, share in zip(names, unmatched_shares(one, two), strict=True):
        if share > 0:
            say(console, f"Items that only {printable(name)} lists, {share:.4f} of it, count as all others here.")
    shown = one.differences(two, top)
    if not shown:
        return
    console.print()
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in one.heads:
        table.add_column(Text(printable(name)), overflow="fold", max_width=40)
    for name in (*names, "difference", f"{one.confidence:.0%} interval"):
        table.add_column(Text(printable(name)), justify="right", overflow="fold", max_width=24)
    for each in shown:
        table.add_row(
            *(Text(printable(text)) for text in one.texts(each.item)),
            f"{each.first:.5f}",
            f"{each.second:.5f}",
            f"{each.difference:+.5f}",
            f"{each.lower:+.5f} to {each.upper:+.5f}",
        )
    console.print(table)


def _mapping(path: Path, items: Iterable[Any]) -> dict[Any, str]:
    """The mapping of a CSV file, its items looked up among those of the release by their text."""
    from ..results import Other

    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            header, *rows = [row for row in csv.reader(file) if row] or [[]]
    except OSError as error:
        raise UnreadableSource(f"--merge {str(path)!r} cannot be read: {error.strerror}.") from None
    except (UnicodeDecodeError, csv.Error):
        raise UnreadableSource(f"--merge {str(path)!r}: needs to be CSV text in UTF-8.") from None
    known = {str(item): item for item in items if not isinstance(item, Other)}
    if header and header[0] in known:
        raise InvalidArgument(
            f"--merge {str(path)!r}: its first line names the item {header[0]!r}, but is read as a header. Put one "
            "before it, such as 'item,becomes'.",
            argument="--merge",
        )
    if not rows or any(len(row) != 2 for row in rows):
        raise InvalidArgument(
            f"--merge {str(path)!r}: needs a header and lines of two values, an item and a new one.", argument="--merge"
        )
    if len({item for item, _ in rows}) < len(rows):
        raise InvalidArgument(f"--merge {str(path)!r}: needs each item once.", argument="--merge")
    for item, new in rows:
        if item not in known:
            raise InvalidArgument(
                f"--merge {str(path)!r}: its item {item!r} needs to be one of the release's items.", argument="--merge"
            )
        if not new:
            raise InvalidArgument(
                f"--merge {str(path)!r}: its item {item!r} needs a new one. Give it, or leave the line out.",
                argument="--merge",
            )
    return {known[item]: new for item, new in rows}
