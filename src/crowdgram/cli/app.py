"""The commands.

Exit codes: 0; 2 for a usage or input error; 3 if a ledger has too little left; 1 for a failure; 130 if interrupted.
"""

from __future__ import annotations

import copy
import json
import warnings
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from .. import __version__
from ..adjacency import Adjacency
from ..errors import AccuracyWarning, InvalidArgument
from ..stages import Stage
from . import ledgers, signatures
from .asking import (
    Reading,
    asking,
    catch_errors,
    files_of,
    read_discovery,
    read_domain_option,
    read_engine,
    say_on_error,
)
from .columns import names_of, read_bins, read_column, read_user
from .command import MECHANISM, ForceOption, QuickGroup, QuietOption, StrictCommand, mechanisms
from .explore import explore
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
from .paper import PAPER_COMMANDS
from .plan import plan
from .priors import read_prior_file
from .reach import reach
from .samples import SAMPLE_COMMANDS
from .saved import MEASURE, SAVED_COMMANDS, MeasureChoice
from .saving import save_made, show_made
from .signatures import SIGNATURE_COMMANDS
from .streams import print_json

__all__ = ["app", "app_of"]

app = typer.Typer(
    name="crowdgram",
    cls=QuickGroup,
    help="Release the distribution over items of a (user, item) table under user-level differential privacy.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


EXAMPLE = "Example: crowdgram {command} visits.csv --user user --item page --domain pages.txt --epsilon 1 -o {output}"
"""It runs as it is after 'crowdgram sample visits.csv --domain pages.txt'."""


class WeightChoice(StrEnum):
    ROWS = "rows"
    USERS = "users"


class ConstantsChoice(StrEnum):
    PAPER = "paper"
    TIGHT = "tight"


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"crowdgram {__version__}")
        raise typer.Exit()


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Release the distribution over items of a (user, item) table under user-level differential privacy."""


@app.command(epilog=EXAMPLE.format(command="release", output="release.json"))
@catch_errors
def release(
    source: SourceArgument,
    user: UserOption,
    item: Annotated[
        list[str],
        typer.Option(
            help="Column whose distribution is released, or NAME=EXPRESSION. Several: a joint distribution.",
            show_default=False,
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
        str | None, typer.Option(help="Column of whole numbers: how many rows each row stands for.")
    ] = None,
    where: WhereOption = None,
    by: ByOption = None,
    groups: GroupsOption = None,
    weight: Annotated[
        WeightChoice,
        typer.Option(help="rows: share of all rows, as SQL counts; users: the average user's distribution."),
    ] = WeightChoice.ROWS,
    adjacency: AdjacencyOption = Adjacency.ADD_REMOVE,
    mechanism: Annotated[
        str, typer.Option(help="How the noise is added.", metavar=MECHANISM, autocompletion=mechanisms)
    ] = "auto",
    max_rows_per_user: Annotated[
        int | None,
        typer.Option(
            help="Rows of one user that count fully; heavier users are scaled down. [default: found privately]"
        ),
    ] = None,
    rounds: Annotated[
        int | None,
        typer.Option(
            help="Number of rounds, for mechanisms auto and adaptive. [default: until the centre is good enough]"
        ),
    ] = None,
    prior: Annotated[
        Path | None,
        typer.Option(
            help="What is known beforehand, for mechanisms auto and adaptive: a saved release (JSON), or a public "
            "CSV, Parquet or JSON file with the item columns and a column 'share'.",
            show_default=False,
        ),
    ] = None,
    constants: Annotated[
        ConstantsChoice | None,
        typer.Option(help="Constants, for mechanism paper: as published, or with tight composition. [default: paper]"),
    ] = None,
    alpha: Annotated[
        float | None, typer.Option(help="Target l1 error, for mechanism paper. [default: 0.1, or chosen]")
    ] = None,
    ledger: LedgerOption = None,
    label: LabelOption = "",
    period: PeriodOption = None,
    period_column: PeriodColumnOption = None,
    csv: Annotated[Path | None, typer.Option(help="Also write the distribution as CSV here.")] = None,
    input_format: FormatOption = None,
    engine: EngineOption = EngineChoice.DUCKDB,
    master: MasterOption = None,
    memory_limit: MemoryOption = None,
    threads: ThreadsOption = None,
    temp_directory: TempOption = None,
    force: ForceOption = False,
    quiet: QuietOption = False,
    top: TopOption = 10,
    measure: Annotated[MeasureChoice, MEASURE] = MeasureChoice.SHARES,
) -> None:
    """Release a table's distribution over items."""
    from .. import releases, results
    from ..releases.registry import make_mechanism

    columns, grouped = read_bins(
        [read_column(one) for one in item], None if by is None else read_column(by), bins or []
    )
    options: dict[str, object] = {
        "rounds": rounds,
        "constants": None if constants is None else constants.value,
        "alpha": alpha,
    }
    if prior is not None:
        names = [name for one in ([] if grouped is None else [grouped]) + columns for name in names_of(one)]
        options["prior"] = read_prior_file(prior, names)
    chosen = make_mechanism(mechanism, **options)
    if measure is MeasureChoice.COUNTS and not chosen.counts:
        raise InvalidArgument(
            f"--measure counts: cannot be served by --mechanism {mechanism}, which does not measure the total. Leave "
            "one of them out.",
            argument="--measure",
        )
    given, grouping = read_discovery(
        read_domain_option(columns, domain or [], domain_column), by, groups, discovery_share
    )
    with asking(
        source,
        Reading(table, query, delimiter, encoding, input_format),
        inputs=[groups, None if prior is None else str(prior), *files_of(domain or [])],
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
        made: results.Release | results.GroupedRelease = releases.release(  # type: ignore[misc, call-overload]
            asked.table,
            user=read_user(user),
            item=columns[0] if len(columns) == 1 else columns,
            epsilon=epsilon,
            delta=delta,
            domain=given,
            count=count,
            where=where,
            by=grouped,
            groups=grouping,
            other=other,
            adjacency=adjacency,
            weight=weight.value,
            mechanism=chosen,
            max_rows_per_user=max_rows_per_user,
            ledger=asked.ledger,
            progress=asked.stages,
        )
        asked.stages(Stage.SAVING)
        shown = made if isinstance(made, results.Release) else made.joint
        if measure is MeasureChoice.COUNTS and shown.total is None:
            measure = MeasureChoice.SHARES
            warnings.warn("the total is not seen above its noise, so shares are shown.", AccuracyWarning, stacklevel=1)
        save_made(made, asked, output, ledger, force=force)
        if csv is not None:
            made.to_csv(csv, measure=measure.value, overwrite=force)
    show_made(made, output, top, measure.value, quiet=quiet)


app.command(epilog=EXAMPLE.format(command="reach", output="reach.json"))(catch_errors(reach))
app.command()(catch_errors(plan))
app.command()(catch_errors(explore))


@app.command()
@catch_errors
def show(
    path: Annotated[Path, typer.Argument(help="A release saved by 'crowdgram release'.", show_default=False)],
    top: Annotated[int, typer.Option(min=0, help="How many items to show.")] = 10,
    measure: Annotated[MeasureChoice, MEASURE] = MeasureChoice.SHARES,
    entropy: Annotated[bool, typer.Option("--entropy", help="Show the entropy too.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Show a saved release."""
    from rich.console import Console

    from ..export import load
    from ..present.reach import reach_too_little
    from ..present.wording import too_little
    from ..results import GroupedReach, Reach
    from .display import show as show_any
    from .display import show_entropy

    loaded, console = load(path), Console(emoji=False)  # a name such as :cat: is shown as it is
    if entropy and isinstance(loaded, Reach | GroupedReach):
        raise InvalidArgument(
            f"--entropy: {str(path)!r} is a reach, which is no distribution. Leave it out.", argument="--entropy"
        )
    little = reach_too_little(loaded) if isinstance(loaded, Reach | GroupedReach) else too_little(loaded)
    if little is not None:
        say_on_error(f"warning: {little}", "yellow")
    if as_json:
        from .summary import summary

        print_json(json.dumps(summary(loaded, top, measure.value, entropy=entropy)))
        return
    show_any(console, loaded, top, measure.value)
    if entropy and not isinstance(loaded, Reach | GroupedReach):
        show_entropy(console, loaded)


for saved_command in SAVED_COMMANDS:
    app.command()(catch_errors(saved_command, private=False))


for signature_command in SIGNATURE_COMMANDS:
    app.command()(catch_errors(signature_command))

keys_app = typer.Typer(help="Make and show keys to sign releases with.", no_args_is_help=True, rich_markup_mode=None)
for _key_command in (signatures.new, signatures.show):
    keys_app.command()(catch_errors(_key_command))
app.add_typer(keys_app, name="keys")


for sample_command in SAMPLE_COMMANDS:
    app.command()(catch_errors(sample_command))


ledger_app = typer.Typer(help="Keep a data set's budget in a file.", no_args_is_help=True, rich_markup_mode=None)
for _command in (ledgers.create, ledgers.show, ledgers.history, ledgers.recover, ledgers.verify):
    ledger_app.command()(catch_errors(_command))
app.add_typer(ledger_app, name="ledger")

paper = typer.Typer(
    help="Reproduce 'Learning discrete distributions: user vs item-level privacy'.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
for command in PAPER_COMMANDS:
    paper.command()(catch_errors(command))
app.add_typer(paper, name="paper")


@app.command()
@catch_errors
def audit(
    mechanism: Annotated[
        list[str] | None, typer.Option(help="Mechanism to attack; may be given again. [default: auto]")
    ] = None,
    release_kind: Annotated[
        list[str] | None,
        typer.Option("--release", help="Whole release to attack, such as found-items or groups; may be given again."),
    ] = None,
    form: Annotated[
        list[str] | None,
        typer.Option(
            help="Form of a release to attack from outside, and a broken twin of it: sample-one, paper, adaptive, "
            "levels, groups, found-items, found-by-histogram or all; may be given again."
        ),
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Attack every mechanism, and every whole release by auto.")
    ] = False,
    weight: Annotated[WeightChoice | None, typer.Option(help="Attack this weight only. [default: both]")] = None,
    adjacency: Annotated[Adjacency | None, typer.Option(help="Attack this adjacency only. [default: both]")] = None,
    epsilon: Annotated[float, typer.Option(help="Epsilon of the attacked claim.")] = 1.0,
    delta: Annotated[float, typer.Option(help="Its delta; pure mechanisms claim 0.")] = 1e-6,
    runs: Annotated[int, typer.Option(min=1, help="Runs for each pair of tables and side.")] = 30,
    black_box: Annotated[
        int | None,
        typer.Option(
            min=4, help="Also attack from outside, by this many releases of each table. [default: 2000 for a form]"
        ),
    ] = None,
    confidence: Annotated[float, typer.Option(help="Confidence of each bound.")] = 0.99,
    mutants: Annotated[
        bool, typer.Option("--mutants", help="Also attack the samplers, and mechanisms that are broken on purpose.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Attack mechanisms on tables made for the audit: a lower bound on epsilon beside each claim.

    Exits with 1 if a claim is refuted.
    """
    from rich.console import Console

    from .audit import Options, run

    if every and (mechanism or release_kind):
        raise InvalidArgument(
            "--all and --mechanism or --release exclude each other. Give one of them.", argument="--all"
        )
    named = mechanism or ["auto"]
    options = Options(
        mechanisms=None if every else [] if release_kind or (form and not mechanism) else named,
        releases=None if every else release_kind or [],
        release_mechanisms=named,
        forms=form or [],
        weights=("rows", "users") if weight is None else (weight.value,),
        adjacencies=tuple(Adjacency) if adjacency is None else (adjacency,),
        epsilon=epsilon,
        delta=delta,
        runs=runs,
        black_box=black_box,
        confidence=confidence,
        mutants=mutants,
    )
    if not run(options, Console(), as_json=as_json):
        raise typer.Exit(1)


for _group in (app, keys_app, ledger_app, paper):
    for _info in _group.registered_commands:
        _info.cls = StrictCommand


def app_of(name: str | None) -> typer.Typer:
    """The app with the command of this name alone, or all of it if there is none: to build every command takes long."""
    of_name = [info for info in app.registered_commands if info.callback and info.callback.__name__ == name]
    if not of_name:
        return app
    alone = copy.copy(app)
    alone.registered_commands, alone.registered_groups = of_name, []
    return alone
