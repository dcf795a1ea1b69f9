"""`crowdgram report`: saved results as a page, or as an entry of the registry of deployments. Costs no privacy."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from ..errors import InvalidArgument
from .command import ForceOption, QuietOption
from .measures import MEASURE, MeasureChoice
from .streams import is_standard

__all__ = ["report"]


def report(
    paths: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="A saved release, by groups or not, or a reach.", show_default=False),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", help="Where to write: .html, or with --registry .yaml; - prints YAML.", show_default=False
        ),
    ],
    title: Annotated[
        str | None, typer.Option(help="Its heading. [default: the question, such as 'Share of all rows by page']")
    ] = None,
    measure: Annotated[MeasureChoice, MEASURE] = MeasureChoice.SHARES,
    label: Annotated[
        list[str] | None,
        typer.Option(help="Of several, the name of a release, once for each, in order. [default: the file's name]"),
    ] = None,
    registry: Annotated[
        bool, typer.Option("--registry", help="Write an entry for the registry of deployments instead, as YAML.")
    ] = False,
    operator: Annotated[
        Path | None, typer.Option(help="With --registry: YAML file with fields that only you know.")
    ] = None,
    ledger: Annotated[
        Path | None, typer.Option(help="With --registry: the ledger that the release was charged to.")
    ] = None,
    force: ForceOption = False,
    quiet: QuietOption = False,
) -> None:
    """Write saved releases as a page to read in a browser: one file that loads nothing. Costs no privacy."""
    from rich.console import Console

    from ..export import write_whole
    from .display import printable, say

    suffixes = (".yaml", ".yml") if registry else (".html", ".htm")
    if output.suffix.lower() not in suffixes and not (registry and is_standard(output)):
        where = "with --registry its name" if registry else "its name"
        raise InvalidArgument(f"--output {str(output)!r}: {where} must end in {suffixes[0]}.", argument="--output")
    if any(one.resolve() == output.resolve() for one in (*paths, *(one for one in (operator, ledger) if one))):
        raise InvalidArgument(
            f"--output {str(output)!r}: needs to be no input, as that would be overwritten. Give another name.",
            argument="--output",
        )
    if registry:
        if title is not None or label or measure is not MeasureChoice.SHARES:
            option = "--title" if title is not None else "--label" if label else "--measure"
            raise InvalidArgument(f"{option}: is for a page. Leave it out with --registry.", argument=option)
        text = _record(paths, operator, ledger)
        if is_standard(output):
            typer.echo(text, nl=False)
            return
    else:
        text = _page(paths, title, measure, label or [], operator, ledger)
    write_whole(output, text, overwrite=force)
    if not quiet:
        say(Console(), f"Wrote {printable(str(output))}.")


def _page(
    paths: Sequence[Path],
    title: str | None,
    measure: MeasureChoice,
    labels: Sequence[str],
    operator: Path | None,
    ledger: Path | None,
) -> str:
    from ..export.documents import load_hashed
    from ..present.report import page, page_of_several

    for option, given in (("--operator", operator), ("--ledger", ledger)):
        if given is not None:
            raise InvalidArgument(f"{option} {str(given)!r}: needs --registry. Give both or neither.", argument=option)
    if labels and len(labels) != len(paths):
        raise InvalidArgument(
            f"--label {labels[-1]!r}: is given {len(labels)} times for {len(paths)} releases. Give it once for each.",
            argument="--label",
        )
    if len(paths) == 1 and not labels:
        result, digest = load_hashed(paths[0])
        _check_measure(paths[0], result, measure)
        return page(result, title, measure.value, digest)
    names = _labels(paths, labels)
    found = [load_hashed(path) for path in paths]
    for path, (result, _) in zip(paths, found, strict=True):
        _check_measure(path, result, measure)
    results = {name: result for name, (result, _) in zip(names, found, strict=True)}
    digests = {name: digest for name, (_, digest) in zip(names, found, strict=True)}
    return page_of_several(results, title, measure.value, digests)


def _labels(paths: Sequence[Path], labels: Sequence[str]) -> list[str]:
    """The names of several files: as given, or their stems, or their paths if stems are alike."""
    names = list(labels) or [path.stem for path in paths]
    if not labels and len(set(names)) < len(names):
        names = [str(path) for path in paths]
    if len(set(names)) < len(names):
        repeated = next(one for one in names if names.count(one) > 1)
        raise InvalidArgument(
            f"--label {repeated!r}: names two releases. Give --label once for each, and each another.",
            argument="--label",
        )
    return names


def _record(paths: Sequence[Path], operator: Path | None, ledger: Path | None) -> str:
    from ..export.documents import load_hashed
    from ..present.record import read_operator, record
    from ..privacy import Ledger

    if len(paths) > 1:
        raise InvalidArgument(
            f"{str(paths[1])!r}: an entry of the registry is of one release. Give one file.", argument=None
        )
    given = None if operator is None else read_operator(operator)
    result, digest = load_hashed(paths[0])
    return record(result, operator=given, ledger=None if ledger is None else Ledger.open(ledger), digest=digest)


def _check_measure(path: Path, result: object, measure: MeasureChoice) -> None:
    from ..results import GroupedReach, Reach

    if isinstance(result, Reach | GroupedReach) and measure is MeasureChoice.COUNTS:
        raise InvalidArgument(
            f"--measure counts: {str(path)!r} is a reach, whose figures are counts already. Leave it out.",
            argument="--measure",
        )
