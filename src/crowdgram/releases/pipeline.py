"""The whole way, from a table to a release."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib import metadata
from typing import TYPE_CHECKING, Literal, overload

from ..errors import InvalidArgument
from ..mechanisms import CONFIDENCE, MECHANISMS, PURE, Request, check_mechanism, reserve
from ..paper import PAPER_MECHANISMS, check_paper
from ..privacy import Adjacency, Guarantee, Spending
from .grouped import GroupedRelease
from .release import Release

if TYPE_CHECKING:
    from ..tables import Domain, Rows

__all__ = ["release"]

MIN_EPSILON = 1e-3
MIN_MU = 1e-5
"""Below, all is noise, and some of it would not fit 64-bit integers."""

Progress = Callable[[str], None]
Column = str | Mapping[str, object]
"""The name of a column, or a name for an expression."""
Columns = Column | Sequence[Column]

ALL_MECHANISMS = {**MECHANISMS, **PAPER_MECHANISMS}


@overload
def release(
    table: object,
    *,
    user: str,
    item: Columns,
    epsilon: float,
    delta: float = ...,
    domain: object = ...,
    count: str | None = ...,
    where: object = ...,
    by: None = ...,
    groups: None = ...,
    adjacency: Adjacency | Literal["add-remove", "replace"] = ...,
    weight: Literal["rows", "users"] = ...,
    mechanism: str = ...,
    max_rows_per_user: int | None = ...,
    rounds: int | None = ...,
    constants: Literal["paper", "tight"] | None = ...,
    alpha: float | None = ...,
    progress: Progress | None = ...,
) -> Release: ...
@overload
def release(
    table: object,
    *,
    user: str,
    item: Columns,
    epsilon: float,
    delta: float = ...,
    domain: object = ...,
    count: str | None = ...,
    where: object = ...,
    by: Column,
    groups: object,
    adjacency: Adjacency | Literal["add-remove", "replace"] = ...,
    weight: Literal["rows", "users"] = ...,
    mechanism: str = ...,
    max_rows_per_user: int | None = ...,
    rounds: int | None = ...,
    constants: Literal["paper", "tight"] | None = ...,
    alpha: float | None = ...,
    progress: Progress | None = ...,
) -> GroupedRelease: ...
def release(
    table: object,
    *,
    user: str,
    item: Columns,
    epsilon: float,
    delta: float = 0.0,
    domain: object = None,
    count: str | None = None,
    where: object = None,
    by: Column | None = None,
    groups: object = None,
    adjacency: Adjacency | Literal["add-remove", "replace"] = Adjacency.ADD_REMOVE,
    weight: Literal["rows", "users"] = "rows",
    mechanism: str = "auto",
    max_rows_per_user: int | None = None,
    rounds: int | None = None,
    constants: Literal["paper", "tight"] | None = None,
    alpha: float | None = None,
    progress: Progress | None = None,
) -> Release | GroupedRelease:
    """Release the distribution over items of a table of (user, item) rows, under user-level differential privacy.

    table: a path or glob of CSV, Parquet or JSON files; or a pandas, polars, pyarrow, DuckDB, Spark or Ibis table.
    user, item: its columns: integers, strings, dates, booleans or UUIDs. Rows with a null in either, and rows outside
        the domain, are dropped. `item` may also map a name to an expression of one row, as in {"month":
        "date_trunc('month', day)"}, or be a list of columns, for a joint distribution.
    epsilon, delta: the budget, all of it spent by this call.
    domain: the public list of items: a list, a file with one item a line, a (path, column) pair, or a column of a
        table. For several item columns: a list of tuples, a file or table with these columns, or a mapping of each
        column to a domain of its own, for all combinations.
    count: a column of whole numbers that says how many rows a row stands for. A row whose count is missing, negative
        or zero is dropped.
    where: a filter before anything else, an expression of one row: SQL text, or an Ibis expression or function of the
        table.
    by, groups: one distribution for each group: a column (or a name with an expression), and the public list of its
        values. All groups together have the one guarantee; the result is a `GroupedRelease`.
    adjacency: "add-remove" hides whether a user is in the table at all; "replace" hides what a user's rows are.
    weight: "rows", the share of all rows; "users", the average user's distribution.
    mechanism: "auto" chooses by predicted error; "adaptive", "laplace", "gaussian" and "sample-one" are as they say;
        "paper" is the published algorithm, for users who are alike.
    max_rows_per_user: how many rows of one user count fully; users with more are scaled down, not dropped. Found
        privately, for a small part of the budget, where it is not given.
    rounds: how many rounds "adaptive" makes (and "auto", where it chooses them); as many as promise to pay where not
        given.
    constants, alpha: of "paper": "paper" (as published, the default) or "tight"; and the l1 error that is wanted. Where
        the published bound on the error does not apply there is an AccuracyWarning, from public and noisy values.
    progress: called with the name of each stage as it starts. Stages are the same for all tables.

    Guarantee: the returned release satisfies `release.guarantee`, recomputed from `release.events`: everything else
    that leaves this function (errors, stages) depends on the schema and on public arguments only.
    """
    guarantee = Guarantee(epsilon, delta, Adjacency.parse(adjacency))
    check_mechanism(mechanism, weight, delta, max_rows_per_user, rounds, known=ALL_MECHANISMS)
    check_paper(mechanism, delta, constants, alpha)
    _check_affordable(guarantee, mechanism)
    if mechanism in PURE:
        guarantee = replace(guarantee, delta=0.0)
    if progress is not None and not callable(progress):
        raise InvalidArgument(f"progress={progress!r}: needs a function that takes the name of a stage, or None.")
    report = progress or (lambda _: None)

    if by is None and groups is not None:
        raise InvalidArgument(f"groups={groups!r} is given without by. Say which column holds the groups.")

    from ..tables import count_rows, open_rows

    report("opening the table")
    rows = open_rows(table, user=user, item=item, count=count, where=where, by=by)
    with rows.engine as engine:
        items = _domain(rows, domain, groups, grouped=by is not None)
        versions = _versions(engine.name)
        spending = Spending(guarantee)
        report("counting rows by user and item")
        counts = count_rows(rows, items)
        request = Request(weight, max_rows_per_user, rounds, report, constants, alpha)
        estimate = ALL_MECHANISMS[mechanism](counts, spending, request)
        report("checking the guarantee")
        made = Release(
            items=items.items,
            item_columns=rows.names,
            probabilities=estimate.probabilities,
            standard_errors=estimate.standard_errors,
            lower=estimate.lower,
            upper=estimate.upper,
            confidence=CONFIDENCE,
            predicted_l1_error=estimate.predicted_l1_error,
            sampling_errors=estimate.sampling_errors,
            guarantee=spending.settled(),
            events=spending.events,
            mechanism=mechanism,
            weight=weight,
            parameters={"items": len(items), **estimate.parameters},
            versions=versions,
            measured=estimate.measured,
            other_errors=estimate.other_errors,
        )
    return made if by is None else GroupedRelease(made)


def _domain(rows: Rows, domain: object, groups: object, *, grouped: bool) -> Domain:
    """The public domain in the types of the item columns; with groups, all combinations of groups and items."""
    from ..tables import combined, read_domain, read_joint_domain

    names, types = rows.names, rows.item_types
    if not grouped:
        if len(names) == 1:
            return read_domain(domain, types[0], item=names[0])
        return read_joint_domain(domain, types, names)
    if groups is None:
        raise InvalidArgument(
            f"by={names[0]!r} needs groups: which groups occur in the table is private itself, so the list needs to "
            "come from outside it: a list, a file with one group a line, or a column of a public table."
        )
    outer = read_domain(groups, types[0], item=names[0], role="groups")
    if len(names) == 2:
        inner = read_domain(domain, types[1], item=names[1])
    else:
        inner = read_joint_domain(domain, types[1:], names[1:])
    return combined([outer, inner], types)


def _check_affordable(guarantee: Guarantee, mechanism: str) -> None:
    """Refuse, before any row is read, a budget so small that its noise would not fit 64-bit integers."""
    given = f"epsilon={guarantee.epsilon:g}, delta={guarantee.delta:g}"
    if guarantee.epsilon < MIN_EPSILON:
        raise InvalidArgument(
            f"{given}: needs an epsilon of at least {MIN_EPSILON:g}; below, all is noise. Try epsilon=1."
        )
    if guarantee.delta > 0 and mechanism not in PURE:
        trial = Spending(guarantee)
        reserve(trial, items=1)  # what few items set aside is the most
        if trial.remaining_mu(1) < MIN_MU:
            raise InvalidArgument(
                f"{given}: leaves nothing for mechanism={mechanism!r}. Give a larger epsilon, a larger delta, such as "
                "1e-6, or use mechanism='laplace'."
            )


def _versions(engine: str) -> dict[str, str]:
    packages = [
        "crowdgram",
        "ibis-framework",
        "opendp",
        "dp-accounting",
        "numpy",
        {"pyspark": "pyspark"}.get(engine, "duckdb"),
    ]
    return {**{name: _version(name) for name in packages}, "engine": engine, "python": platform.python_version()}


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:  # a cluster's own PySpark, or a bare checkout
        return "unknown"
