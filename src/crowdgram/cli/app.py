"""The commands.

Exit codes: 0; 2 for a usage or input error; 3 if a ledger has too little left; 1 for a failure; 130 if interrupted.
"""

from __future__ import annotations

import contextlib
import functools
import json
import warnings
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TypeVar

import typer
from rich.console import Console

from ..errors import (
    AccuracyWarning,
    BudgetExceeded,
    CrowdgramError,
    EngineFailure,
    InvalidArgument,
    PrivacyViolation,
    PrivacyWarning,
    UnwritableTarget,
)
from ..privacy import Adjacency
from ..stages import Stage
from . import ledgers
from .columns import Column, names_of, read_bins, read_column, read_user
from .command import MECHANISM, ForceOption, QuietOption, StrictCommand, mechanisms
from .paper import PAPER_COMMANDS
from .priors import read_prior_file
from .saved import MEASURE, SAVED_COMMANDS, MeasureChoice
from .streams import FormatChoice, input_as_file, is_standard, print_json

if TYPE_CHECKING:
    from .display import Stages

__all__ = ["app"]

app = typer.Typer(
    name="crowdgram",
    help="Release the distribution over items of a (user, item) table under user-level differential privacy.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

F = TypeVar("F", bound=Callable[..., Any])


class WeightChoice(StrEnum):
    ROWS = "rows"
    USERS = "users"


class ConstantsChoice(StrEnum):
    PAPER = "paper"
    TIGHT = "tight"


def catch_errors(command: F, *, private: bool = True) -> F:
    """Turn errors into one line on standard error and an exit code.

    An unexpected error shows its type only, unless the command reads nothing private: a saved release is public.
    """

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> Any:
        try:
            return command(*args, **kwargs)
        except (EngineFailure, PrivacyViolation) as error:
            _fail(str(error), 1)
        except BudgetExceeded as error:
            _fail(str(error), 3)
        except CrowdgramError as error:
            _fail(str(error), 2)
        except KeyboardInterrupt as error:
            _say(str(error) or "interrupted.", "yellow")
            raise typer.Exit(130) from None
        except (typer.Exit, typer.Abort, typer.BadParameter):
            raise
        except Exception as error:  # noqa: BLE001 (its message may quote rows)
            withheld = ". Details are withheld because they could reveal rows"
            said = withheld if private else f": {str(error).rstrip('.')}"
            _fail(f"unexpected {type(error).__name__}{said}. Please report it.", 1)

    return run  # type: ignore[return-value]


@contextlib.contextmanager
def show_warnings(console: Console) -> Iterator[None]:
    """Show our own warnings as one line each, as they come: what is weak about a guarantee before it is paid for."""
    others = warnings.showwarning

    def show(message: Any, category: type[Warning], *where: Any, **more: Any) -> None:
        if issubclass(category, AccuracyWarning | PrivacyWarning):
            _say(f"warning: {message}", "yellow", console)
        else:
            others(message, category, *where, **more)

    with warnings.catch_warnings():
        for category in (AccuracyWarning, PrivacyWarning):
            warnings.simplefilter("always", category)
        warnings.showwarning = show
        yield


def _fail(message: str, code: int) -> NoReturn:
    _say(f"error: {message}", "red")
    raise typer.Exit(code)


def _say(message: str, style: str, console: Console | None = None) -> None:
    """One line on standard error."""
    from .display import printable

    shown = console or Console(stderr=True)
    shown.print(printable(message), style=style, markup=False, highlight=False, soft_wrap=True)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"crowdgram {metadata.version('crowdgram')}")
        raise typer.Exit()


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Release the distribution over items of a (user, item) table under user-level differential privacy."""


@app.command()
@catch_errors
def release(
    source: Annotated[
        str,
        typer.Argument(
            metavar="TABLE",
            help="A path or glob of CSV, Parquet or JSON files; a DuckDB or SQLite file; an address that starts "
            "with duckdb:, sqlite:, postgresql: or spark:; or - for standard input.",
            show_default=False,
        ),
    ],
    user: Annotated[
        str,
        typer.Option(
            help="Column of user identifiers, or an expression of one row: NAME=EXPRESSION, or a call such as "
            "'lower(trim(name))'.",
            show_default=False,
        ),
    ],
    item: Annotated[
        list[str],
        typer.Option(
            help="Column whose distribution is released, or NAME=EXPRESSION. Several: a joint distribution.",
            show_default=False,
        ),
    ],
    epsilon: Annotated[
        float,
        typer.Option(
            help="Privacy budget: one user changes the probability of any outcome by a factor of at most e^epsilon.",
            show_default=False,
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", help="Where to save the release (JSON); - for standard output.", show_default=False
        ),
    ],
    delta: Annotated[float, typer.Option(help="Chance that the bound of epsilon fails; 0 for pure privacy.")] = 0.0,
    domain: Annotated[
        list[str] | None,
        typer.Option(
            help="The public items: a file with one a line, or a CSV, Parquet or JSON file. "
            "For several item columns, a file with all of them, or COLUMN=FILE for each. [default: discover, which "
            "finds the items that enough users have, for part of the budget]",
            show_default=False,
        ),
    ] = None,
    bins: Annotated[
        list[str] | None,
        typer.Option(
            help="Public edges that put numbers into intervals, such as 0,18,30,65. The intervals are the domain. "
            "For one of several columns: COLUMN=EDGES.",
            show_default=False,
        ),
    ] = None,
    domain_column: Annotated[
        str | None, typer.Option(help="Column of the domain file. [default: like --item, or the only one]")
    ] = None,
    discovery_share: Annotated[
        float | None, typer.Option(help="Part of the budget that discovers the items. [default: 0.3]")
    ] = None,
    other: Annotated[
        str | None,
        typer.Option(
            help="Name of the item for all rows outside the domain. [default: other, if items are discovered]"
        ),
    ] = None,
    table: Annotated[str | None, typer.Option(help="Table of a database.")] = None,
    query: Annotated[
        str | None, typer.Option(help="SELECT of columns and expressions of one row, FROM one table.")
    ] = None,
    delimiter: Annotated[
        str | None, typer.Option(help="Character between the fields of a CSV file. [default: a comma; a tab in .tsv]")
    ] = None,
    encoding: Annotated[
        str | None, typer.Option(help="Encoding of a CSV file, such as latin-1 or cp1252. [default: utf-8]")
    ] = None,
    count: Annotated[
        str | None, typer.Option(help="Column of whole numbers: how many rows each row stands for.")
    ] = None,
    where: Annotated[
        str | None,
        typer.Option(help="Filter of rows, applied first, such as \"country = 'DE' and day >= '2024-01-01'\"."),
    ] = None,
    by: Annotated[
        str | None, typer.Option(help="Column of groups, or NAME=EXPRESSION: one distribution for each group.")
    ] = None,
    groups: Annotated[
        str | None,
        typer.Option(
            help="The public groups: a file with one a line, or a CSV, Parquet or JSON file. [default: discover]"
        ),
    ] = None,
    weight: Annotated[
        WeightChoice,
        typer.Option(help="rows: share of all rows, as SQL counts; users: the average user's distribution."),
    ] = WeightChoice.ROWS,
    adjacency: Annotated[
        Adjacency,
        typer.Option(help="add-remove hides whether a user is in the table; replace hides what a user's rows are."),
    ] = Adjacency.ADD_REMOVE,
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
    ledger: Annotated[
        Path | None, typer.Option(help="The data set's budget: the release is charged to it, and stored in it.")
    ] = None,
    label: Annotated[str, typer.Option(help="What the release is for; shown in the ledger's history.")] = "",
    csv: Annotated[Path | None, typer.Option(help="Also write the distribution as CSV here.")] = None,
    input_format: Annotated[
        FormatChoice | None, typer.Option("--format", help="What standard input holds, for TABLE -. [default: csv]")
    ] = None,
    force: ForceOption = False,
    quiet: QuietOption = False,
    top: Annotated[int, typer.Option(min=0, help="How many items to show.")] = 10,
    measure: Annotated[MeasureChoice, MEASURE] = MeasureChoice.SHARES,
) -> None:
    """Release a table's distribution over items."""
    from .. import releases, results
    from ..privacy import Ledger
    from ..releases.registry import make_mechanism
    from .display import Stages, printable, show

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
    given, grouping = _discover(_domain(columns, domain or [], domain_column), by, groups, discovery_share)
    if label and ledger is None:
        raise InvalidArgument(
            f"--label {label!r} is for the history of a ledger. Give --ledger too.", argument="--label"
        )
    piped = is_standard(source) and table is None and query is None
    if input_format is not None and not piped:
        raise InvalidArgument(
            f"--format {input_format.value} is for standard input, and TABLE is {source!r}. Leave it out, or give -.",
            argument="--format",
        )
    opened, path = _source(source, table, query, delimiter, encoding)
    inputs = [
        None if piped else path,
        groups,
        None if ledger is None else str(ledger),
        None if prior is None else str(prior),
        *(domain or []),
        *(one.partition("=")[2] for one in domain or [] if "=" in one),
    ]
    if not is_standard(output):
        _check_target("--output", output, inputs, force=force)
    if csv is not None:
        if is_standard(csv):
            raise InvalidArgument("--csv '-': needs to be a file. -o - prints JSON.", argument="--csv")
        if csv.resolve() == output.resolve():
            raise InvalidArgument(f"--csv and --output are both {str(output)!r}. Give two names.", argument="--csv")
        _check_target("--csv", csv, inputs, force=force)
    budget = None if ledger is None else Ledger.open(ledger, label=label)
    with contextlib.ExitStack() as stack:
        stages = stack.enter_context(Stages(Console(stderr=True), quiet=quiet))
        stack.enter_context(_interruptible(stages, ledger))
        stack.enter_context(show_warnings(stages.console))
        if piped:
            stages("reading standard input")
            copied = stack.enter_context(input_as_file(input_format or FormatChoice.CSV))
            opened, _ = _source(copied, None, None, delimiter, encoding)
        made: results.Release | results.GroupedRelease = releases.release(  # type: ignore[misc, call-overload]
            opened,
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
            ledger=budget,
            progress=stages,
        )
        stages(Stage.SAVING)
        shown = made if isinstance(made, results.Release) else made.joint
        if measure is MeasureChoice.COUNTS and shown.total is None:
            measure = MeasureChoice.SHARES
            warnings.warn("the total is not seen above its noise, so shares are shown.", AccuracyWarning, stacklevel=1)
        ledgers.save_release(made, output, ledger, overwrite=force)
        stages.written.append(output)
        if csv is not None:
            made.to_csv(csv, measure=measure.value, overwrite=force)
    if quiet:
        return
    console = Console(stderr=is_standard(output))  # what is printed is JSON, and nothing else
    show(console, made, top, measure.value)
    if not is_standard(output):
        console.print(f"Saved to {printable(str(output))}.", markup=False, highlight=False, soft_wrap=True)


@contextlib.contextmanager
def _interruptible(stages: Stages, ledger: Path | None) -> Iterator[None]:
    """On Ctrl-C, say whether a file was written and whether the ledger was charged."""
    try:
        yield
    except KeyboardInterrupt:
        said = f"interrupted; {str(stages.written[0])!r} was written." if stages.written else ""
        said = said or "interrupted; nothing was written."
    else:
        return
    if ledger is not None and Stage.CHARGING in stages.passed:
        where, last = str(ledger), stages.passed[-1]
        if last == Stage.CHARGING:
            said += f" The release may be charged already: see crowdgram ledger history {where!r}."
        elif last in (Stage.STORING, Stage.SAVING):
            said += (
                f" The release is charged; if it was finished, it is kept: crowdgram ledger recover {where!r} -o FILE"
            )
        else:
            said += f" The release stays charged, as rows may have been read: see crowdgram ledger history {where!r}."
    raise KeyboardInterrupt(said)


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
    from ..export import load
    from ..present.wording import too_little
    from .display import show as show_any
    from .display import show_entropy

    loaded, console = load(path), Console()
    little = too_little(loaded)
    if little is not None:
        _say(f"warning: {little}", "yellow")
    if as_json:
        from .summary import summary

        print_json(json.dumps(summary(loaded, top, measure.value, entropy=entropy)))
        return
    show_any(console, loaded, top, measure.value)
    if entropy:
        show_entropy(console, loaded)


for saved_command in SAVED_COMMANDS:
    app.command()(catch_errors(saved_command, private=False))


@app.command()
@catch_errors
def synth(
    output: Annotated[Path, typer.Argument(help="Where to write the table: .parquet or .csv.", show_default=False)],
    users: Annotated[int, typer.Option(help="How many users.")] = 1000,
    rows: Annotated[int, typer.Option(help="Rows per user: all the same, or the median with --tail.")] = 100,
    items: Annotated[int, typer.Option(help="How many items.")] = 100,
    zipf: Annotated[float, typer.Option(help="Zipf exponent of the items; 0 is uniform.")] = 1.0,
    tail: Annotated[float, typer.Option(help="Spread of rows per user; 0: equal, 1.5: heavy-tailed.")] = 0.0,
    differ: Annotated[float, typer.Option(help="How much users differ, from 0 (alike) to below 1.")] = 0.0,
    seed: Annotated[int | None, typer.Option(help="The same seed writes the same table.")] = None,
    strings: Annotated[bool, typer.Option("--strings", help="Names instead of integers.")] = False,
    truth: Annotated[Path | None, typer.Option(help="Also write the true distribution (CSV) here.")] = None,
    domain: Annotated[Path | None, typer.Option(help="Also write the list of items (one a line) here.")] = None,
    force: ForceOption = False,
    quiet: QuietOption = False,
) -> None:
    """Write a synthetic table, for trying things out."""
    from ..synth import Crowd
    from .display import printable

    crowd = Crowd(users=users, rows=rows, items=items, zipf=zipf, tail=tail, differ=differ, seed=seed, strings=strings)
    written = crowd.write(output, truth=truth, domain=domain, overwrite=force)
    if not quiet:
        typer.echo(f"Wrote {written} rows of {users} users to {printable(str(output))}.")


ledger_app = typer.Typer(help="Keep a data set's budget in a file.", no_args_is_help=True, rich_markup_mode=None)
for _command in (ledgers.create, ledgers.show, ledgers.history, ledgers.recover):
    ledger_app.command()(catch_errors(_command))
app.add_typer(ledger_app, name="ledger")


@app.command()
@catch_errors
def sample(
    output: Annotated[Path, typer.Argument(help="Where to write the table: .parquet or .csv.", show_default=False)],
    force: ForceOption = False,
    quiet: QuietOption = False,
) -> None:
    """Write the sample table of the examples: visits of an invented shop."""
    from ..synth import Visits
    from .display import printable, say

    written = Visits().write(output, overwrite=force)
    if not quiet:
        say(Console(), f"Wrote {written} rows of {Visits().users} invented users to {printable(str(output))}.")


@app.command()
@catch_errors
def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder for the sample table, release and picture.")
    ] = Path("demo-out"),
    force: ForceOption = False,
) -> None:
    """Release a synthetic sample table and compare it with its public truth."""
    from .demo import run

    run(output, Console(), force=force)


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
    every: Annotated[
        bool, typer.Option("--all", help="Attack every mechanism, and every whole release by auto.")
    ] = False,
    weight: Annotated[WeightChoice | None, typer.Option(help="Attack this weight only. [default: both]")] = None,
    adjacency: Annotated[Adjacency | None, typer.Option(help="Attack this adjacency only. [default: both]")] = None,
    epsilon: Annotated[float, typer.Option(help="Epsilon of the attacked claim.")] = 1.0,
    delta: Annotated[float, typer.Option(help="Its delta; pure mechanisms claim 0.")] = 1e-6,
    runs: Annotated[int, typer.Option(min=1, help="Runs for each pair of tables and side.")] = 30,
    black_box: Annotated[
        int, typer.Option(min=0, help="Also run a black-box attack with this many releases of each table.")
    ] = 0,
    confidence: Annotated[float, typer.Option(help="Confidence of each bound.")] = 0.99,
    mutants: Annotated[
        bool, typer.Option("--mutants", help="Also attack the samplers, and mechanisms that are broken on purpose.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Attack mechanisms on tables made for the audit: a lower bound on epsilon beside each claim.

    Exits with 1 if a claim is refuted.
    """
    from .audit import Options, run

    if every and (mechanism or release_kind):
        raise InvalidArgument(
            "--all and --mechanism or --release exclude each other. Give one of them.", argument="--all"
        )
    named = mechanism or ["auto"]
    options = Options(
        mechanisms=None if every else [] if release_kind else named,
        releases=None if every else release_kind or [],
        release_mechanisms=named,
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


def _source(
    source: str, table: str | None, query: str | None, delimiter: str | None, encoding: str | None
) -> tuple[object, str | None]:
    """The source as the library takes it, and its path, which must not be overwritten."""
    from ..tables import Csv, Database, as_database, is_address

    if table is not None or query is not None:
        if not is_address(source) and as_database(source) is None:  # refuses addresses of an unknown kind
            from ..tables.databases import ADDRESSES

            option = "--query" if table is None else "--table"
            raise InvalidArgument(
                f"{option} {query if table is None else table!r} is for databases, and TABLE {source!r} is none: that "
                f"is a DuckDB or SQLite file, or an address that starts with {ADDRESSES}.",
                argument=option,
            )
        database: Database | None = Database(source, table, query)
    else:
        database = as_database(source)
    if delimiter is not None or encoding is not None:
        if database is not None:
            option = "--delimiter" if encoding is None else "--encoding"
            raise InvalidArgument(f"{option} is for CSV files, and TABLE is a database. Leave it out.", argument=option)
        return Csv(source, "\t" if delimiter == "\\t" else delimiter, encoding or "utf-8"), source
    return (source, source) if database is None else (database, database.path)


def _domain(columns: Sequence[Column], given: Sequence[str], column: str | None) -> object:
    """The domain as the library takes it: a path, a path with its column, or a mapping of columns to paths."""
    if len(columns) == 1:
        if len(given) > 1:
            raise InvalidArgument(
                f"--domain is given {len(given)} times for one item column. Give it once.", argument="--domain"
            )
        if not given or column is None:
            return given[0] if given else None
        return (Path(given[0]), column)
    if column is not None:
        raise InvalidArgument(
            "--domain-column is for one item column. Give --domain COLUMN=FILE for each of several.",
            argument="--domain-column",
        )
    names = [name for one in columns for name in names_of(one)]
    parts = [(name, path) for name, _, path in (one.partition("=") for one in given) if name in names and path]
    if not parts:
        if len(given) > 1:
            raise InvalidArgument(
                f"--domain {given[1]!r}: give one file, or COLUMN=FILE for each item column.", argument="--domain"
            )
        return given[0] if given else None
    if len(parts) < len(given) or len(dict(parts)) < len(parts):
        raise InvalidArgument(
            f"--domain {given[-1]!r}: give COLUMN=FILE once for each of {', '.join(names)}.", argument="--domain"
        )
    return dict(parts)


def _discover(domain: object, by: str | None, groups: str | None, share: float | None) -> tuple[object, object]:
    """The domain and the groups, with the share of the budget in the list that is to be found."""
    from ..mechanisms import Discover

    if share is None:
        return domain, groups
    if domain in (None, "discover"):
        return Discover(share), groups
    if by is not None and groups in (None, "discover"):
        return domain, Discover(share)
    raise InvalidArgument(
        f"--discovery-share {share:g} is for items that are found, and all are listed. Leave it out.",
        argument="--discovery-share",
    )


def _check_target(option: str, path: Path, inputs: Sequence[str | None], *, force: bool) -> None:
    """Refuse, before any budget is spent, an output that cannot be written or that would overwrite something."""
    import glob
    import os

    target = path.resolve()
    for given in inputs:
        if given is not None and any(
            Path(one).resolve() == target for one in (given, *glob.iglob(given, recursive=True))
        ):
            raise InvalidArgument(
                f"{option} {str(path)!r} would overwrite the input {given!r}. Give another name.", argument=option
            )
    folder = path.parent
    if path.is_dir():
        raise UnwritableTarget(f"{option} {str(path)!r} is a folder. Give the name of a file.")
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise UnwritableTarget(
            f"{option} {str(path)!r}: the folder {str(folder)!r} is not there or cannot be written to."
        )
    if os.path.lexists(path) and not force:
        raise UnwritableTarget(
            f"{option} {str(path)!r} exists. Overwriting it would discard a release whose budget is already spent. "
            "Give another name, or --force."
        )


for _group in (app, ledger_app, paper):
    for _info in _group.registered_commands:
        _info.cls = StrictCommand
