"""The whole way, from a table to a release."""

from __future__ import annotations

import platform
from collections.abc import Callable
from dataclasses import replace
from importlib import metadata
from typing import TYPE_CHECKING, Literal

from ..errors import InvalidArgument
from ..mechanisms import (
    CONFIDENCE,
    MECHANISMS,
    PURE,
    DiscoveryPlan,
    Request,
    check_mechanism,
    discover,
    finish_of,
    plan_discovery,
    rehearse,
    reserve,
)
from ..privacy import Adjacency, Guarantee, Spending
from .release import Other, Release

if TYPE_CHECKING:
    from ..tables import Domain, Rows

__all__ = ["release"]

MIN_EPSILON = 1e-3
MIN_MU = 1e-5
"""Below, all is noise, and some of it would not fit 64-bit integers."""

PURE_LEAST = 0.25
"""Part of epsilon that a discovery must leave for Laplace noise: enough for a profile and for something to follow."""

Progress = Callable[[str], None]


def release(
    table: object,
    *,
    user: str,
    item: str,
    epsilon: float,
    delta: float = 0.0,
    domain: object = None,
    discovery_share: float | None = None,
    other: str | None = None,
    adjacency: Adjacency | Literal["add-remove", "replace"] = Adjacency.ADD_REMOVE,
    weight: Literal["rows", "users"] = "rows",
    mechanism: str = "auto",
    max_rows_per_user: int | None = None,
    rounds: int | None = None,
    progress: Progress | None = None,
) -> Release:
    """Release the distribution over items of a table of (user, item) rows, under user-level differential privacy.

    table: a path or glob of CSV, Parquet or JSON files; or a pandas, polars, pyarrow, DuckDB, Spark or Ibis table.
    user, item: its columns, integers or strings. Rows with a null in either, and rows outside the domain, are dropped.
    epsilon, delta: the budget, all of it spent by this call.
    domain: the public list of items: a list, a file with one item a line, a (path, column) pair, or a column of a
        table. Or "discover", as where none is given: part of the budget, which needs a delta, then buys the list of
        those items that enough users have.
    discovery_share: the part of the budget (of mu^2) that buys it.
    other: the name of the item for all rows outside the domain ("other" where the items are discovered). With a public
        domain there is such an item only if it is named; rows outside are dropped otherwise.
    adjacency: "add-remove" hides whether a user is in the table at all; "replace" hides what a user's rows are.
    weight: "rows", the share of all rows; "users", the average user's distribution.
    mechanism: "auto" chooses by predicted error; "adaptive", "laplace", "gaussian" and "sample-one" are as they say.
    max_rows_per_user: how many rows of one user count fully; users with more are scaled down, not dropped. Found
        privately, for a small part of the budget, where it is not given.
    rounds: how many rounds "adaptive" makes (and "auto", where it chooses them); as many as promise to pay where not
    given.
    progress: called with the name of each stage as it starts. Stages are the same for all tables.

    Guarantee: the returned release satisfies `release.guarantee`, recomputed from `release.events`: everything else
    that leaves this function (errors, stages) depends on the schema and on public arguments only.
    """
    guarantee = Guarantee(epsilon, delta, Adjacency.parse(adjacency))
    check_mechanism(mechanism, weight, delta, max_rows_per_user, rounds)
    _check_name(other)
    way, plan = mechanism, None
    if _to_discover(domain):
        way, plan = _plan(guarantee, mechanism, discovery_share)
    elif discovery_share is not None:
        raise InvalidArgument(
            f"discovery_share={discovery_share!r} has no meaning where a domain is given. Leave one of them out."
        )
    else:
        _check_affordable(guarantee, mechanism)
    if mechanism in PURE and plan is None:
        guarantee = replace(guarantee, delta=0.0)
    if progress is not None and not callable(progress):
        raise InvalidArgument(f"progress={progress!r}: needs a function that takes the name of a stage, or None.")
    report = progress or (lambda _: None)

    from ..tables import count_rows, open_rows, read_domain

    report("opening the table")
    rows = open_rows(table, user=user, item=item)
    with rows.engine as engine:
        spending = Spending(guarantee)
        versions = _versions(engine.name)
        if plan is None:
            items = read_domain(domain, rows.item_type, item=item)
            items = replace(items, other=other is not None)
            report("counting rows by user and item")
        else:
            rows, items = _discovered(rows, spending, plan, report)
            if way == "auto":
                # By public values: how many items were found must not decide what is set aside.
                reserve(spending, items=1, rows=weight == "rows" and max_rows_per_user is None)
        counts = count_rows(rows, items)
        estimate = MECHANISMS[way](counts, spending, Request(weight, max_rows_per_user, rounds, report))
        report("checking the guarantee")
        return Release(
            items=(*items.items, Other.apart_from(items.items, other or "other")) if items.other else items.items,
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
            parameters={
                "items": len(items),
                **({} if plan is None else {"discovery_share": plan.share}),
                **estimate.parameters,
            },
            versions=versions,
        )


def _discovered(rows: Rows, spending: Spending, plan: DiscoveryPlan, report: Progress) -> tuple[Rows, Domain]:
    """Read the rows, find their items, and close the opening of the release."""
    from ..tables import Domain, tally_rows

    report("counting rows by user and item")
    tallied = tally_rows(rows)
    report("finding the items: no domain was given, so part of the budget buys it")
    found = discover(tallied, spending, plan)
    spending.end_opening(pure_delta=plan.pure_delta)
    report("counting rows of the items that were found")
    return tallied, Domain(tuple(found), rows.item_type, other=True)


def _plan(guarantee: Guarantee, mechanism: str, share: float | None) -> tuple[str, DiscoveryPlan]:
    """What discovery may spend and which mechanism runs on the rest; refuse what leaves nothing. No row is read."""
    plan = plan_discovery(guarantee, share, finish_of(mechanism))
    _check_affordable(guarantee, "laplace")
    trial = Spending(guarantee)
    rehearse(trial, plan)
    if mechanism not in PURE:
        reserve(trial, items=1)
    if mechanism == "auto" and trial.remaining_epsilon() < PURE_LEAST * guarantee.epsilon:
        # Too little for plain Laplace noise to be a choice.
        return "adaptive", _plan(guarantee, "adaptive", share)[1]
    if mechanism in PURE:
        enough = trial.remaining_epsilon() >= PURE_LEAST * guarantee.epsilon
    else:
        enough = trial.remaining_mu(1) >= MIN_MU
    if plan.mu < MIN_MU or not enough:
        raise InvalidArgument(
            f"epsilon={guarantee.epsilon:g}, delta={guarantee.delta:g}: discovery_share={plan.share:g} leaves nothing "
            f"for mechanism={mechanism!r}. Give a larger epsilon or delta, another share, or a public domain."
        )
    return mechanism, plan


def _to_discover(domain: object) -> bool:
    return domain is None or (isinstance(domain, str) and domain == "discover")


def _check_name(other: object) -> None:
    if other is not None and (not isinstance(other, str) or not other.strip()):
        raise InvalidArgument(f"other={other!r}: needs to be a name for the item that stands for all others, or None.")


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
