"""What the commands that make a release do before and around it: errors, warnings, sources, targets, stages."""

from __future__ import annotations

import contextlib
import functools
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import typer

from ..errors import (
    AccuracyWarning,
    BudgetExceeded,
    CrowdgramError,
    EngineFailure,
    InvalidArgument,
    PrivacyViolation,
    PrivacyWarning,
    SignatureFailure,
    UnwritableTarget,
)
from ..escaping import printable
from ..interrupts import catch_interrupts
from ..shortage import TOO_LITTLE_MEMORY, is_near_limit, is_shortage
from ..stages import Stage
from .columns import Column, names_of
from .garbage import keep_what_is_loaded
from .options import EngineChoice
from .streams import FormatChoice, input_as_file, is_standard

if TYPE_CHECKING:
    from rich.console import Console

    from ..privacy import Ledger
    from ..tables import DuckDB, Spark
    from .progress import Stages

__all__ = [
    "Asked",
    "Reading",
    "asking",
    "catch_errors",
    "files_of",
    "read_discovery",
    "read_domain_option",
    "read_engine",
    "say_on_error",
]

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Reading:
    """How TABLE is read: the options about it."""

    table: str | None
    query: str | None
    delimiter: str | None
    encoding: str | None
    input_format: FormatChoice | None


@dataclass(frozen=True)
class Asked:
    """What a release is made with: the table as the library takes it, the ledger, and who is told of stages."""

    table: object
    ledger: Ledger | None
    stages: Stages


@contextlib.contextmanager
def asking(
    source: str,
    reading: Reading,
    *,
    inputs: Sequence[str | None],
    output: Path,
    csv: Path | None,
    ledger: Path | None,
    label: str,
    period: str | None,
    period_column: str | None,
    force: bool,
    quiet: bool,
    engine: DuckDB | Spark | None,
) -> Iterator[Asked]:
    """Check the options about files before any budget is spent, and show stages and warnings while the release is made.

    inputs: other files that are read, which no output may overwrite. engine: where the work is done, if not in the
    embedded engine as it is.
    """
    from .progress import Stages

    shown = Stages(quiet=quiet)
    keep_what_is_loaded()
    if label and ledger is None:
        raise InvalidArgument(
            f"--label {label!r} is for the history of a ledger. Give --ledger too.", argument="--label"
        )
    for option, value in (("--period", period), ("--period-column", period_column)):
        if value is not None and ledger is None:
            raise InvalidArgument(f"{option} {value!r} is for a ledger. Give --ledger too.", argument=option)
    piped = is_standard(source) and reading.table is None and reading.query is None
    if reading.input_format is not None and not piped:
        raise InvalidArgument(
            f"--format {reading.input_format.value} is for standard input, and TABLE is {source!r}. Leave it out, or "
            "give -.",
            argument="--format",
        )
    opened, path = read_source(reading, source, in_spark=_is_spark(engine))
    read = [None if piped else path, None if ledger is None else str(ledger), *inputs]
    if not is_standard(output):
        check_target("--output", output, read, force=force)
    if csv is not None:
        if is_standard(csv):
            raise InvalidArgument("--csv '-': needs to be a file. -o - prints JSON.", argument="--csv")
        if csv.resolve() == output.resolve():
            raise InvalidArgument(f"--csv and --output are both {str(output)!r}. Give two names.", argument="--csv")
        check_target("--csv", csv, read, force=force)
    budget = None
    if ledger is not None:
        from ..privacy import Ledger
        from .ledgers import check_apart

        for option, target in (("--output", output), ("--csv", csv)):
            if target is not None:
                check_apart(option, target, ledger)
        budget = Ledger.open(ledger, label=label, period=period, period_column=period_column)
        budget.check_period()
    with contextlib.ExitStack() as stack:
        if engine is not None:
            stack.enter_context(engine)
        stages = stack.enter_context(shown)
        stack.enter_context(interruptible(stages, ledger))
        stack.enter_context(show_warnings(stages))
        if piped:
            stages("reading standard input")
            copied = stack.enter_context(input_as_file(reading.input_format or FormatChoice.CSV))
            opened, _ = read_source(reading, copied)
        yield Asked(opened, budget, stages)


def files_of(domain: Sequence[str]) -> list[str]:
    """The files that --domain may name: each value, and what follows COLUMN= in it."""
    return [*domain, *(one.partition("=")[2] for one in domain if "=" in one)]


def catch_errors(command: F, *, private: bool = True) -> F:
    """Turn errors into one line on standard error and an exit code.

    An unexpected error shows its type only, unless the command reads nothing private: a saved release is public.
    """

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> Any:
        try:
            return _obeying_signals(command, *args, **kwargs)
        except (EngineFailure, PrivacyViolation, SignatureFailure) as error:
            fail(str(error), 1)
        except BudgetExceeded as error:
            fail(str(error), 3)
        except CrowdgramError as error:
            fail(str(error), 2)
        except KeyboardInterrupt as error:
            say_on_error(str(error) or "interrupted.", "yellow")
            raise typer.Exit(130) from None
        except (typer.Exit, typer.Abort, typer.BadParameter):
            raise
        except Exception as error:  # noqa: BLE001 (its message may quote rows)
            if is_shortage(error):
                fail(TOO_LITTLE_MEMORY, 1)
            if private and is_near_limit():
                fail(
                    "an error stopped the command, and the process has come near the limit of its memory. Details are "
                    "withheld because they could reveal rows. Give it more memory, and report it if that does not "
                    "help.",
                    1,
                )
            withheld = ". Details are withheld because they could reveal rows"
            said = withheld if private else f": {str(error).rstrip('.')}"
            fail(f"unexpected {type(error).__name__}{said}. Please report it.", 1)

    return run  # type: ignore[return-value]


def _obeying_signals(command: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Run a command, and end as a signal says, whatever a library made of it.

    DuckDB, told to end while it reads the schema of a list, fails with an error of its own. What reads a private table
    sees to that itself; a command also reads public files.
    """
    with catch_interrupts() as raised:
        try:
            return command(*args, **kwargs)
        except Exception:
            if not raised:
                raise
    raise raised[-1].with_traceback(None)


@contextlib.contextmanager
def show_warnings(stages: Stages) -> Iterator[None]:
    """Show our own warnings as one line each, as they come: what is weak about a guarantee before it is paid for."""
    others = warnings.showwarning

    def show(message: Any, category: type[Warning], *where: Any, **more: Any) -> None:
        if issubclass(category, AccuracyWarning | PrivacyWarning):
            say_on_error(f"warning: {message}", "yellow", stages.console)
        else:
            others(message, category, *where, **more)

    with warnings.catch_warnings():
        for category in (AccuracyWarning, PrivacyWarning):
            warnings.simplefilter("always", category)
        warnings.showwarning = show
        yield


def fail(message: str, code: int) -> NoReturn:
    say_on_error(f"error: {message}", "red")
    raise typer.Exit(code)


def say_on_error(message: str, style: str, console: Console | None = None) -> None:
    """One line on standard error."""
    from rich.console import Console

    shown = console or Console(stderr=True, emoji=False)
    shown.print(printable(message), style=style, markup=False, highlight=False, soft_wrap=True)


@contextlib.contextmanager
def interruptible(stages: Stages, ledger: Path | None) -> Iterator[None]:
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


def read_engine(
    engine: EngineChoice, master: str | None, memory_limit: str | None, threads: int | None, temp_directory: str | None
) -> DuckDB | Spark | None:
    """Where the work is done; None for the embedded engine as it is."""
    from ..tables import DuckDB, Spark

    limits = {"--memory-limit": memory_limit, "--threads": threads, "--temp-directory": temp_directory}
    given = [option for option, value in limits.items() if value is not None]
    if engine is EngineChoice.SPARK:
        if given:
            raise InvalidArgument(
                f"{given[0]}: is for DuckDB. Leave it out, and configure Spark itself.", argument=given[0]
            )
        return Spark(master)
    if master is not None:
        raise InvalidArgument(f"--master {master!r}: is for Spark. Give --engine spark too.", argument="--master")
    return DuckDB(memory_limit, threads, temp_directory) if given else None


def _is_spark(engine: DuckDB | Spark | None) -> bool:
    from ..tables import Spark

    return isinstance(engine, Spark)


def read_source(reading: Reading, source: str, *, in_spark: bool = False) -> tuple[object, str | None]:
    """The source as the library takes it, and its path, which must not be overwritten."""
    from ..tables import Csv, Database, as_database, is_address

    table, query, delimiter, encoding = reading.table, reading.query, reading.delimiter, reading.encoding
    if in_spark and is_standard(source):
        raise InvalidArgument("TABLE='-': cannot be read by --engine spark. Give a path or a table.", argument="TABLE")
    if in_spark and not is_address(source):
        for option, value in (
            ("--table", table),
            ("--query", query),
            ("--delimiter", delimiter),
            ("--encoding", encoding),
        ):
            if value is not None:
                raise InvalidArgument(
                    f"{option} {value!r}: cannot be given with --engine spark, unless TABLE is spark: for --table and "
                    "--query. Leave it out.",
                    argument=option,
                )
        return source, source
    if table is not None or query is not None:
        if not is_address(source) and as_database(source) is None:  # refuses addresses of an unknown kind
            from ..tables.addresses import ADDRESSES

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


def read_domain_option(columns: Sequence[Column], given: Sequence[str], column: str | None) -> object:
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


def read_discovery(domain: object, by: str | None, groups: str | None, share: float | None) -> tuple[object, object]:
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


def check_target(option: str, path: Path, inputs: Sequence[str | None], *, force: bool) -> None:
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
