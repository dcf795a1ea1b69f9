"""The whole way, from a table to a release."""

from __future__ import annotations

import platform
from collections.abc import Callable
from dataclasses import replace
from importlib import metadata
from typing import Literal

from ..errors import InvalidArgument
from ..mechanisms import CONFIDENCE, MECHANISMS, PURE, Request, check_mechanism, reserve
from ..paper import PAPER_MECHANISMS, check_paper
from ..privacy import Adjacency, Guarantee, Spending
from .budgets import LedgerLike, charged, opened, stored
from .release import Release
from .seal import sealed

__all__ = ["release"]

MIN_EPSILON = 1e-3
MIN_MU = 1e-5
"""Below, all is noise, and some of it would not fit 64-bit integers."""

Progress = Callable[[str], None]

ALL_MECHANISMS = {**MECHANISMS, **PAPER_MECHANISMS}


@sealed
def release(
    table: object,
    *,
    user: str,
    item: str,
    epsilon: float,
    delta: float = 0.0,
    domain: object = None,
    adjacency: Adjacency | Literal["add-remove", "replace"] = Adjacency.ADD_REMOVE,
    weight: Literal["rows", "users"] = "rows",
    mechanism: str = "auto",
    max_rows_per_user: int | None = None,
    rounds: int | None = None,
    constants: Literal["paper", "tight"] | None = None,
    alpha: float | None = None,
    ledger: LedgerLike | None = None,
    label: str = "",
    progress: Progress | None = None,
) -> Release:
    """Release the distribution over items of a table of (user, item) rows, under user-level differential privacy.

    table: a path or glob of CSV, Parquet or JSON files; or a pandas, polars, pyarrow, DuckDB, Spark or Ibis table.
    user, item: its columns, integers or strings. Rows with a null in either, and rows outside the domain, are dropped.
    epsilon, delta: the budget, all of it spent by this call.
    domain: the public list of items: a list, a file with one item a line, a (path, column) pair, or a column of a
    table.
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
    ledger: the budget of the data set, as a path or a Ledger: the release is charged to it before a row is read,
        refused if it would overspend, and stored in it before it is returned.
    label: what the release is for; shown in the ledger's history.
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
    budget = opened(ledger, label, guarantee)

    from ..tables import count_rows, open_rows, read_domain

    report("opening the table")
    rows = open_rows(table, user=user, item=item)
    with rows.engine as engine:
        items = read_domain(domain, rows.item_type, item=item)
        versions = _versions(engine.name)
        spending = Spending(guarantee)
        request = Request(weight, max_rows_per_user, rounds, report, constants, alpha)
        number = 0
        if budget is not None:
            report("charging the ledger")
            number = charged(budget, guarantee, mechanism, request, len(items), label=label)
        report("counting rows by user and item")
        counts = count_rows(rows, items)
        estimate = ALL_MECHANISMS[mechanism](counts, spending, request)
        report("checking the guarantee")
        made = Release(
            items=items.items,
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
        )
        if budget is not None:
            report("storing the release in the ledger")
            stored(budget, number, made)
        return made


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
