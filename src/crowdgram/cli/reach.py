"""The command `reach`: how many users have each item."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..adjacency import Adjacency
from ..stages import Stage
from .asking import Reading, asking, files_of, read_discovery, read_domain_option, read_engine
from .columns import read_bins, read_column, read_user
from .command import ForceOption, QuietOption
from .options import (
    AdjacencyOption,
    BinsOption,
    ByOption,
    DelimiterOption,
    DeltaOption,
    DiscoveryShareOption,
    DomainColumnOption,
    DomainOption,
    EncodingOption,
    EngineChoice,
    EngineOption,
    EpsilonOption,
    FormatOption,
    GroupsOption,
    LabelOption,
    LedgerOption,
    MasterOption,
    MemoryOption,
    OtherOption,
    OutputOption,
    PeriodColumnOption,
    PeriodOption,
    QueryOption,
    SourceArgument,
    TableOption,
    TempOption,
    ThreadsOption,
    TopOption,
    UserOption,
    WhereOption,
)
from .saving import save_made, show_made

__all__ = ["reach"]


def reach(
    source: SourceArgument,
    user: UserOption,
    item: Annotated[
        list[str],
        typer.Option(
            help="Column of items, or NAME=EXPRESSION. Several: combinations of their values.", show_default=False
        ),
    ],
    epsilon: EpsilonOption,
    output: OutputOption,
    delta: DeltaOption = 0.0,
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
        str | None, typer.Option(help="Column of whole numbers: a row whose count is 0 or less gives no item.")
    ] = None,
    where: WhereOption = None,
    by: ByOption = None,
    groups: GroupsOption = None,
    adjacency: AdjacencyOption = Adjacency.ADD_REMOVE,
    max_items_per_user: Annotated[
        int | None,
        typer.Option(
            help="Items of one user that count fully; users with more count in part. [default: found privately]"
        ),
    ] = None,
    ledger: LedgerOption = None,
    label: LabelOption = "",
    period: PeriodOption = None,
    period_column: PeriodColumnOption = None,
    csv: Annotated[Path | None, typer.Option(help="Also write the counts as CSV here.")] = None,
    input_format: FormatOption = None,
    engine: EngineOption = EngineChoice.DUCKDB,
    master: MasterOption = None,
    memory_limit: MemoryOption = None,
    threads: ThreadsOption = None,
    temp_directory: TempOption = None,
    force: ForceOption = False,
    quiet: QuietOption = False,
    top: TopOption = 10,
) -> None:
    """Release how many users have each item, and which share of all users."""
    from .. import releases, results

    columns, group = read_bins([read_column(one) for one in item], None if by is None else read_column(by), bins or [])
    given, grouping = read_discovery(
        read_domain_option(columns, domain or [], domain_column), by, groups, discovery_share
    )
    with asking(
        source,
        Reading(table, query, delimiter, encoding, input_format),
        inputs=[groups, *files_of(domain or [])],
        output=output,
        csv=csv,
        ledger=ledger,
        label=label,
        period=period,
        period_column=period_column,
        force=force,
        quiet=quiet,
        engine=read_engine(engine, master, memory_limit, threads, temp_directory),
    ) as asked:
        made: results.Reach | results.GroupedReach = releases.reach(  # type: ignore[misc]
            asked.table,
            user=read_user(user),
            item=columns[0] if len(columns) == 1 else columns,
            epsilon=epsilon,
            delta=delta,
            domain=given,
            count=count,
            where=where,
            by=group,  # type: ignore[arg-type]
            groups=grouping,
            other=other,
            adjacency=adjacency,
            max_items_per_user=max_items_per_user,
            ledger=asked.ledger,
            progress=asked.stages,
        )
        asked.stages(Stage.SAVING)
        save_made(made, asked, output, ledger, force=force)
        if csv is not None:
            made.to_csv(csv, overwrite=force)
    show_made(made, output, top, quiet=quiet)
