"""Options that the commands that make a release have in common."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ..adjacency import Adjacency
from .streams import FormatChoice

__all__ = [
    "AdjacencyOption",
    "BinsOption",
    "ByOption",
    "DelimiterOption",
    "DeltaOption",
    "DiscoveryShareOption",
    "DomainColumnOption",
    "DomainOption",
    "EncodingOption",
    "EngineChoice",
    "EngineOption",
    "EpsilonOption",
    "FormatOption",
    "GroupsOption",
    "LabelOption",
    "LedgerOption",
    "MasterOption",
    "MemoryOption",
    "OtherOption",
    "OutputOption",
    "PeriodColumnOption",
    "PeriodOption",
    "QueryOption",
    "SourceArgument",
    "TableOption",
    "TempOption",
    "ThreadsOption",
    "TopOption",
    "UserOption",
    "WhereOption",
]


class EngineChoice(StrEnum):
    DUCKDB = "duckdb"
    SPARK = "spark"


SourceArgument = Annotated[
    str,
    typer.Argument(
        metavar="TABLE",
        help="A path or glob of CSV, Parquet or JSON files; a DuckDB or SQLite file; an address that starts "
        "with duckdb:, sqlite:, postgresql: or spark:; or - for standard input.",
        show_default=False,
    ),
]
UserOption = Annotated[
    str,
    typer.Option(
        help="Column of user identifiers, or an expression of one row: NAME=EXPRESSION, or a call such as "
        "'lower(trim(name))'.",
        show_default=False,
    ),
]
EpsilonOption = Annotated[
    float,
    typer.Option(
        help="Privacy budget: one user changes the probability of any outcome by a factor of at most e^epsilon.",
        show_default=False,
    ),
]
OutputOption = Annotated[
    Path,
    typer.Option("--output", "-o", help="Where to save the release (JSON); - for standard output.", show_default=False),
]
DeltaOption = Annotated[float, typer.Option(help="Chance that the bound of epsilon fails; 0 for pure privacy.")]
DomainOption = Annotated[
    list[str] | None,
    typer.Option(
        help="The public items: a file with one a line, or a CSV, Parquet or JSON file. "
        "For several item columns, a file with all of them, or COLUMN=FILE for each. [default: discover, which "
        "finds the items that enough users have, for part of the budget]",
        show_default=False,
    ),
]
BinsOption = Annotated[
    list[str] | None,
    typer.Option(
        help="Public edges that put numbers into intervals, such as 0,18,30,65. The intervals are the domain. "
        "For one of several columns: COLUMN=EDGES.",
        show_default=False,
    ),
]
ByOption = Annotated[str | None, typer.Option(help="Column of groups, or NAME=EXPRESSION: one answer for each group.")]
GroupsOption = Annotated[
    str | None,
    typer.Option(help="The public groups: a file with one a line, or a CSV, Parquet or JSON file. [default: discover]"),
]
DomainColumnOption = Annotated[
    str | None, typer.Option(help="Column of the domain file. [default: like --item, or the only one]")
]
DiscoveryShareOption = Annotated[
    float | None, typer.Option(help="Part of the budget that discovers the items. [default: 0.3]")
]
OtherOption = Annotated[
    str | None,
    typer.Option(help="Name of the item for all rows outside the domain. [default: other, if items are discovered]"),
]
TableOption = Annotated[str | None, typer.Option(help="Table of a database.")]
QueryOption = Annotated[str | None, typer.Option(help="SELECT of columns and expressions of one row, FROM one table.")]
DelimiterOption = Annotated[
    str | None, typer.Option(help="Character between the fields of a CSV file. [default: a comma; a tab in .tsv]")
]
EncodingOption = Annotated[
    str | None, typer.Option(help="Encoding of a CSV file, such as latin-1 or cp1252. [default: utf-8]")
]
WhereOption = Annotated[
    str | None,
    typer.Option(help="Filter of rows, applied first, such as \"country = 'DE' and day >= '2024-01-01'\"."),
]
AdjacencyOption = Annotated[
    Adjacency,
    typer.Option(help="add-remove hides whether a user is in the table; replace hides what a user's rows are."),
]
LedgerOption = Annotated[
    Path | None, typer.Option(help="The data set's budget: the release is charged to it, and stored in it.")
]
LabelOption = Annotated[str, typer.Option(help="What the release is for; shown in the ledger's history.")]
PeriodOption = Annotated[
    str | None,
    typer.Option(help="The period to charge, such as 2026-11, of a ledger made with --every. It is never guessed."),
]
PeriodColumnOption = Annotated[
    str | None,
    typer.Option(
        help="Column of dates or timestamps: only rows of --period are read. [default: all rows, and the operator "
        "answers for them]"
    ),
]
MemoryOption = Annotated[
    str | None,
    typer.Option("--memory-limit", help="Memory of the engine, such as 4GB. [default: 80% of the machine's]"),
]
ThreadsOption = Annotated[int | None, typer.Option(help="Threads of the engine. [default: one a core, at least 4]")]
EngineOption = Annotated[
    EngineChoice,
    typer.Option(
        help="Where the work is done. In spark, TABLE is a path or glob of Parquet files as Spark understands it, or a "
        "table of Spark's catalogue, such as shop.visits."
    ),
]
MasterOption = Annotated[
    str | None,
    typer.Option(
        help="Spark's cluster, such as spark://host:7077, yarn or local[4], for --engine spark. [default: as Spark is "
        "configured]",
        show_default=False,
    ),
]
TempOption = Annotated[
    str | None,
    typer.Option(
        "--temp-directory", help="Folder for what does not fit into memory. [default: the system's temporary folder]"
    ),
]
FormatOption = Annotated[
    FormatChoice | None, typer.Option("--format", help="What standard input holds, for TABLE -. [default: csv]")
]
TopOption = Annotated[int, typer.Option(min=0, help="How many items to show.")]
