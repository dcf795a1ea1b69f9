"""The command `plan`: the error to expect of a release, without touching data."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..adjacency import Adjacency
from ..errors import InvalidArgument
from .asking import Reading, files_of, read_discovery, read_domain_option, read_source, show_warnings
from .columns import read_bins, read_column, read_user
from .command import ForceOption
from .options import (
    AdjacencyOption,
    BinsOption,
    DelimiterOption,
    DeltaOption,
    DiscoveryShareOption,
    DomainColumnOption,
    DomainOption,
    EncodingOption,
    LedgerOption,
    OtherOption,
    PeriodColumnOption,
    PeriodOption,
    QueryOption,
    TableOption,
    WhereOption,
)
from .streams import is_standard, print_json

if TYPE_CHECKING:
    from rich.console import Console

    from ..planning import Plan

__all__ = ["plan"]


class PresetChoice(StrEnum):
    ALIKE = "alike"
    TYPICAL = "typical"
    VERY_DIFFERENT = "very-different"


class AgainstChoice(StrEnum):
    TABLE = "table"
    POPULATION = "population"


class WeightChoice(StrEnum):
    ROWS = "rows"
    USERS = "users"


def plan(
    source: Annotated[
        str | None,
        typer.Argument(
            metavar="TABLE",
            help="A table to check as 'crowdgram release' does: columns, types, lists, ledger. No row is read.",
            show_default=False,
        ),
    ] = None,
    users: Annotated[int | None, typer.Option(help="How many users.", show_default=False)] = None,
    rows_per_user: Annotated[
        float | None, typer.Option(help="Rows of one user, on average.", show_default=False)
    ] = None,
    items: Annotated[
        int | None, typer.Option(help="How many items. [default: the length of --domain]", show_default=False)
    ] = None,
    epsilon: Annotated[float | None, typer.Option(help="Privacy budget of the release.", show_default=False)] = None,
    delta: DeltaOption = 0.0,
    target_error: Annotated[
        float | None,
        typer.Option(
            help="An l1 error: solve for that one of --users, --rows-per-user and --epsilon that is left out.",
            show_default=False,
        ),
    ] = None,
    against: Annotated[
        AgainstChoice,
        typer.Option(help="Whose answer --target-error is against: the table's own, or the population's."),
    ] = AgainstChoice.TABLE,
    tails: Annotated[
        PresetChoice | None, typer.Option(help="How much rows per user differ. [default: typical, or as --like]")
    ] = None,
    tastes: Annotated[
        PresetChoice | None, typer.Option(help="How much users differ in items. [default: typical, or as --like]")
    ] = None,
    zipf: Annotated[float, typer.Option(help="Zipf exponent of the items; 0 is uniform.")] = 1.0,
    like: Annotated[
        Path | None,
        typer.Option(help="A saved release: what is not given is taken from what is public in it.", show_default=False),
    ] = None,
    share: Annotated[
        float | None, typer.Option(help="Share of the item whose error is shown. [default: 0.01, or the nearest]")
    ] = None,
    weight: Annotated[
        WeightChoice | None,
        typer.Option(help="rows: share of all rows; users: the average user. [default: rows, or as --like]"),
    ] = None,
    adjacency: AdjacencyOption = Adjacency.ADD_REMOVE,
    user: Annotated[str | None, typer.Option(help="Of TABLE: column of user identifiers.", show_default=False)] = None,
    item: Annotated[list[str] | None, typer.Option(help="Of TABLE: column of items.", show_default=False)] = None,
    domain: DomainOption = None,
    bins: BinsOption = None,
    domain_column: DomainColumnOption = None,
    discovery_share: DiscoveryShareOption = None,
    other: OtherOption = None,
    table: TableOption = None,
    query: QueryOption = None,
    delimiter: DelimiterOption = None,
    encoding: EncodingOption = None,
    count: Annotated[
        str | None, typer.Option(help="Of TABLE: column that says how many rows each row stands for.")
    ] = None,
    where: WhereOption = None,
    by: Annotated[str | None, typer.Option(help="Of TABLE: column of groups.")] = None,
    groups: Annotated[str | None, typer.Option(help="The public groups: a file.")] = None,
    ledger: LedgerOption = None,
    period: PeriodOption = None,
    period_column: PeriodColumnOption = None,
    plot: Annotated[Path | None, typer.Option(help="Draw the plan here (.png, .svg or .pdf).")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    force: ForceOption = False,
) -> None:
    """Say which error to expect of a release, or what it takes for an error. No data is touched."""
    from rich.console import Console

    from .. import planning
    from .progress import Stages

    if plot is not None:
        _check_plot(plot, [source, *files_of(domain or []), like, ledger], force=force)
    reading = Reading(table, query, delimiter, encoding, None)
    asked: dict[str, Any] = _table_options(
        source, reading, user, item or [], domain or [], bins or [], domain_column, by
    )
    asked["domain"], asked["groups"] = read_discovery(asked.get("domain"), by, groups, discovery_share)
    if ledger is not None:
        from ..privacy import Ledger

        asked["ledger"] = Ledger.open(ledger, period=period, period_column=period_column)
    elif period is not None or period_column is not None:
        raise InvalidArgument("--period and --period-column are for a ledger. Give --ledger too.", argument="--period")
    with Stages(Console(stderr=True)) as stages, show_warnings(stages):
        stages("simulating releases")
        made = planning.plan(
            users=users,
            rows_per_user=rows_per_user,
            items=items,
            epsilon=epsilon,
            delta=delta,
            target_error=target_error,
            against=against.value,
            tails=None if tails is None else tails.value,  # type: ignore[arg-type]
            tastes=None if tastes is None else tastes.value,  # type: ignore[arg-type]
            zipf=zipf,
            like=like,
            share=share,
            weight=None if weight is None else weight.value,
            adjacency=adjacency,
            count=count,
            where=where,
            other=other,
            **asked,
        )
    if plot is not None:
        made.plot().savefig(plot)
    if as_json:
        print_json(json.dumps(made.to_dict()))
        return
    _show(Console(), made)


def _table_options(
    source: str | None,
    reading: Reading,
    user: str | None,
    item: list[str],
    domain: list[str],
    bins: list[str],
    domain_column: str | None,
    by: str | None,
) -> dict[str, Any]:
    """The table and its columns as the library takes them."""
    if source is None:
        if domain or bins or any(value is not None for value in (reading.table, reading.query, domain_column)):
            raise InvalidArgument("TABLE: is needed for --domain, --bins and --table. Give one.", argument="TABLE")
        return {"user": user, "item": item or None, "by": by}
    if is_standard(source):
        raise InvalidArgument(
            "TABLE='-': standard input cannot be checked without reading it. Give a file or a database.",
            argument="TABLE",
        )
    columns, grouped = read_bins(
        [read_column(one) for one in item], None if by is None else read_column(by), bins if item else []
    )
    opened, _ = read_source(reading, source)
    return {
        "table": opened,
        "user": None if user is None else read_user(user),
        "item": None if not columns else columns[0] if len(columns) == 1 else columns,
        "by": grouped,
        "domain": read_domain_option(columns, domain, domain_column) if columns else None,
    }


def _check_plot(path: Path, inputs: list[Any], *, force: bool) -> None:
    from .asking import check_target

    if path.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise InvalidArgument(f"--plot {str(path)!r}: needs a name that ends in .png, .svg or .pdf.", argument="--plot")
    check_target("--plot", path, [None if one is None else str(one) for one in inputs], force=force)


def _show(console: Console, made: Plan) -> None:
    """The first sentence, the table of ways, and the rest."""
    from rich.table import Table
    from rich.text import Text

    from ..planning.view import HEADS, cells, percent
    from .display import say

    said = made.sentences()
    first = [one for one in said if not one.startswith(("A release by auto", "Instead"))]
    head = 1 + (made.solved is not None) + (0 if made.checked is None else len(made.checked.sentences()))
    for sentence in first[: head if made.expected else len(first)]:
        say(console, sentence)
    if not made.expected:
        return
    table = Table(box=None, pad_edge=False)
    for place, name in enumerate(HEADS):
        table.add_column(name.format(share=percent(made.share)), justify="left" if place == 0 else "right")
    for one in made.expected:
        table.add_row(*(Text(cell) for cell in cells(one)))
    console.print(table)
    for sentence in [one for one in said if one not in first[:head]]:
        say(console, sentence)
