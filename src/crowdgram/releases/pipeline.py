"""The pipeline, from a table to a release."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from typing import TYPE_CHECKING, Literal, Required, TypedDict, Unpack, overload

from ..arrays import Floats
from ..errors import InvalidArgument
from ..mechanisms import (
    CONFIDENCE,
    Costed,
    Discovering,
    Estimate,
    Mechanism,
    Request,
    Weight,
)
from ..present.wording import warn_of_too_little
from ..privacy import EXACT, Adjacency, Guarantee, Opening, Ready, Sampler, Spending, check_sampler
from ..results.covariance import number_of_users
from ..results.grouped import GroupedRelease
from ..results.grouped_reach import GroupedReach
from ..results.marginals import widen_intervals
from ..results.reach import Reach
from ..results.release import OWN_SUM, Release
from ..results.values import Item, Quantity
from ..stages import Stage
from .budgets import (
    Charge,
    LedgerLike,
    charge_ledger,
    open_ledger,
    period_parameters,
    rows_within,
    store_release,
)
from .exception_hygiene import sanitize_errors
from .items import (
    Lists,
    check_tells,
    found_domain,
    group_numbers,
    named_items,
    public_domain,
    read_lists,
    sought_rows,
    with_bins,
)
from .priors import ReadPrior, read_prior
from .promises import promise_of
from .query import Column, Columns, Query
from .registry import as_mechanism

if TYPE_CHECKING:
    from ..mechanisms import FoundByHistogram, ReachEstimate
    from ..privacy import Ledger, LedgerHead
    from ..tables import Domain, Rows

__all__ = ["Asked", "read_public", "release", "run"]

Progress = Callable[[Stage], None]


class Asked(TypedDict, total=False):
    """The arguments of `release` and of `reach` that do not decide what they return."""

    user: Required[Column]
    item: Required[Columns]
    epsilon: Required[float]
    delta: float
    domain: object
    count: str | None
    where: object
    other: str | None
    adjacency: Adjacency | Literal["add-remove", "replace"]
    ledger: LedgerLike | None
    progress: Progress | None


class _Asked(Asked, total=False):
    weight: Weight
    mechanism: str | Mechanism
    max_rows_per_user: int | None


@overload
def release(table: object, *, by: None = None, groups: None = None, **asked: Unpack[_Asked]) -> Release: ...
@overload
def release(table: object, *, by: Column, groups: object = None, **asked: Unpack[_Asked]) -> GroupedRelease: ...
@sanitize_errors(then=warn_of_too_little)
def release(
    table: object,
    *,
    user: Column,
    item: Columns,
    epsilon: float,
    delta: float = 0.0,
    domain: object = None,
    count: str | None = None,
    where: object = None,
    by: Column | None = None,
    groups: object = None,
    other: str | None = None,
    adjacency: Adjacency | Literal["add-remove", "replace"] = Adjacency.ADD_REMOVE,
    weight: Weight = "rows",
    mechanism: str | Mechanism = "auto",
    max_rows_per_user: int | None = None,
    ledger: LedgerLike | None = None,
    progress: Progress | None = None,
) -> Release | GroupedRelease:
    """Release the distribution over items of a table of (user, item) rows, under user-level differential privacy.

    table: a path or glob of CSV, Parquet or JSON files, or a list of these; `Csv(path, delimiter=";",
        encoding="latin-1")`; a `Database`, or its address; or a pandas, polars, pyarrow, DuckDB, Spark or Ibis table.
    user, item: its columns: integers, strings, dates, booleans or UUIDs. Rows with a null in either, and rows outside
        the domain, are dropped. Either may also map a name to an expression of one row, as in {"month":
        "date_trunc('month', day)"}; then the guarantee is for each value of the expression for `user`. `item` may map a
        name to `Bins("age", [0, 18, 30, 65])`, whose intervals are then the domain, or be a list of columns, for a
        joint distribution.
    epsilon, delta: the budget, all of it spent by this call.
    domain: the public list of items: a list, a file with one item a line, a (path, column) pair, or a column of a
        table. For several item columns: a list of tuples, a file or table with these columns, or a mapping of each
        column to a domain of its own, for all combinations. Or "discover", the default: find the items that enough
        users have, for part of the budget, which needs a delta; `Discover(share=0.6)` says for which part.
    count: a column of whole numbers that says how many rows a row stands for. A row whose count is missing, negative
        or zero is dropped.
    where: a filter before anything else, an expression of one row: SQL text, or an Ibis expression or function of the
        table.
    by, groups: one distribution for each group: a column (or a name with an expression), and the public list of its
        values, or "discover", the default. All groups together have the one guarantee; the result is a
        `GroupedRelease`. If groups or items are discovered, pairs of both are; each group has its own "other".
    other: the name of the item for all rows outside the domain ("other" if items are discovered). With public lists
        there is such an item only if it is named; rows outside are dropped otherwise. Rows outside a public list of
        groups are always dropped.
    adjacency: "add-remove" hides whether a user is in the table at all; "replace" hides what a user's rows are.
    weight: "rows", the share of all rows; "users", the average user's distribution.
    mechanism: "auto" chooses by predicted error; "adaptive", "laplace", "gaussian" and "sample-one" are as they say;
        "paper" is the published algorithm, for users who are alike. Or one with options: `Auto(rounds=3)`,
        `Auto(prior=last_month)`, `Paper(constants="tight", alpha=0.1)`. If noise is most of the result there is an
        `AccuracyWarning` (`Release.too_little`), and with "paper" if its bound on the error does not apply; both depend
        on public and noisy values only.
    max_rows_per_user: how many rows of one user count fully; users with more are scaled down, not dropped. By default
        it is found privately, for a small part of the budget.
    ledger: the budget of the data set, as a path or a Ledger: the release is charged to it before a row is read,
        refused if it would overspend, and stored in it before it is returned. `Ledger.open(path, label="weekly")` names
        the release in the ledger's history. A ledger with periods needs one of them, and the column by which only its
        rows are read: `Ledger.open(path, period="2026-11", period_column="day")`.
    progress: called with each stage as it starts, such as "opening the table".

    Guarantee: the returned release satisfies `release.guarantee`, recomputed from `release.events`: everything else
    that leaves this function (errors, stages) depends on the schema, on public arguments and on noisy values only.
    """
    domain, groups = with_bins(item, by, domain, groups)
    query = Query(
        user=user,
        item=item,
        guarantee=Guarantee(epsilon, delta, Adjacency.parse(adjacency)),
        domain=domain,
        count=count,
        where=where,
        by=by,
        groups=groups,
        other=other,
        weight=weight,
        mechanism=as_mechanism(mechanism),
        max_rows_per_user=max_rows_per_user,
    )
    made = run(table, query, ledger=ledger, progress=progress)
    assert not isinstance(made, Reach | GroupedReach)
    return made


def run(
    table: object,
    query: Query,
    *,
    ledger: LedgerLike | None = None,
    progress: Progress | None = None,
    sampler: Sampler = EXACT,
) -> Release | GroupedRelease | Reach | GroupedReach:
    """Answer `query`. Not public: only an audit or a test may give another sampler than `EXACT`."""
    mechanism = query.mechanism
    guarantee, search = promise_of(query)
    if progress is not None and not callable(progress):
        raise InvalidArgument(
            f"progress={progress!r}: needs to be a function that takes a stage, or None. Try progress=print.",
            argument="progress",
        )
    check_sampler()
    if search is not None:
        from ..mechanisms import FoundByHistogram, find_items  # here, so that it fails before anything is charged
    report = progress or (lambda _: None)
    today = datetime.now(UTC).date().isoformat()  # before a row is read, so that it cannot depend on rows
    budget = open_ledger(ledger, guarantee)
    report(Stage.OPENING)
    rows = open_table(table, query, budget)
    with rows.engine as engine:
        engine.check_resources()
        lists, prior, items, request = read_public(rows, query, report)
        versions = _versions(engine.name, engine.package)
        spending = Spending(guarantee, sampler=sampler)
        opening = spending.open()
        charged: LedgerHead | None = None
        if budget is not None:
            report(Stage.CHARGING)
            size = None if items is None else len(items)
            charged = charge_ledger(budget, Charge(guarantee, mechanism, request, size, query.discovery_share))
        report(Stage.COUNTING)
        estimate: Estimate | ReachEstimate
        if search is None:
            assert items is not None
            estimate = _estimate(rows, items, mechanism, opening, request)
        else:
            follows, plan = search
            rows, sought = sought_rows(rows, lists, other=query.other is not None)
            report(Stage.FINDING)
            found = find_items(sought, opening, plan, follows, request, whole=sought is rows)
            items = found_domain(rows, lists, found.items)
            public = None if prior is None else prior.over(items)
            report(Stage.COUNTING_FOUND)
            if isinstance(found, FoundByHistogram):
                estimate = _estimate_found(rows, items, found, public)
            else:
                request = replace(request, found=True, seen_rows=found.seen_rows, prior=public)
                request = _counting_groups(request, query, items)
                estimate = _estimate(rows, items, follows, found.spending, request)
                estimate = replace(estimate, parameters={"discovery_share": plan.share, **estimate.parameters})
        report(Stage.CHECKING)
        guarantee = spending.settled()
        named = named_items(items, query.other or "other")
        known = {} if prior is None else {"prior": "given"}
        parameters = {"items": len(items), **query.bound, **period_parameters(budget), **known, **estimate.parameters}
        parameters["released_on"] = today
        about = _About(named, rows.names, guarantee, spending, parameters, versions, charged)
        made: Release | GroupedRelease | Reach | GroupedReach
        if isinstance(estimate, Estimate):
            joint = _release(estimate, about, mechanism.name, query.weight)
            made = GroupedRelease(joint) if query.grouped else joint
        else:
            made = _reach(estimate, about, grouped=query.grouped)
        if budget is not None and charged is not None:
            report(Stage.STORING)
            store_release(budget, charged, made)
        return made


def open_table(table: object, query: Query, ledger: Ledger | None) -> Rows:
    """The rows that a query asks for, within the period that a ledger is opened for. None is read."""
    from ..tables import open_rows

    return open_rows(
        table,
        user=query.user,
        item=query.item,
        count=query.count,
        where=query.where,
        by=query.by,
        within=rows_within(ledger),
    )


def read_public(rows: Rows, query: Query, report: Progress) -> tuple[Lists, ReadPrior | None, Domain | None, Request]:
    """The public lists, in the types of the item columns; the prior; the items, unless they are to be found; and the
    request to the mechanism. All of it is checked, and no row is read.
    """
    mechanism = query.mechanism
    lists = read_lists(rows, query.domain, query.groups, grouped=query.grouped)
    prior = read_prior(mechanism, rows)
    request = Request(query.weight, query.max_rows_per_user, report)
    items = None if query.missing else public_domain(rows, lists, other=query.other is not None)
    if items is not None and isinstance(mechanism, Mechanism):
        check_tells(items)
        if prior is not None:
            prior.check_covers(items)
            request = replace(request, prior=prior.over(items))
    if items is not None:
        request = _counting_groups(request, query, items)
    return lists, prior, items, request


def _counting_groups(request: Request, query: Query, items: Domain) -> Request:
    """The request, with the group of each item if users of groups are to be counted."""
    counted = query.grouped and not isinstance(query.mechanism, Mechanism)
    return replace(request, group_of=group_numbers(items)) if counted else request


def _estimate(
    rows: Rows, items: Domain, mechanism: Costed, budget: Ready, request: Request
) -> Estimate | ReachEstimate:
    """Read the rows of known items, and let the mechanism estimate."""
    from ..tables import count_rows, find_presence

    if isinstance(mechanism, Discovering):
        return mechanism.run(count_rows(rows, items), budget, request)
    if isinstance(mechanism, Mechanism):
        assert isinstance(budget, Opening)
        return mechanism.run(count_rows(rows, items), budget, request)
    from ..mechanisms import ItemUsers

    assert isinstance(mechanism, ItemUsers)
    return mechanism.run(find_presence(rows, items), budget, request)


def _estimate_found(rows: Rows, items: Domain, found: FoundByHistogram, prior: Floats | None) -> Estimate:
    """The estimate of items that one histogram has measured already."""
    from ..mechanisms import estimate_from_histogram
    from ..tables import count_rows

    return estimate_from_histogram(found.measured, items.items, count_rows(rows, items), found.spending, prior)


@dataclass(frozen=True)
class _About:
    """What every result says of itself."""

    items: tuple[Item, ...]
    item_columns: tuple[str, ...]
    guarantee: Guarantee
    spending: Spending
    parameters: Mapping[str, int | float | str]
    versions: Mapping[str, str]
    ledger_head: LedgerHead | None


def _release(estimate: Estimate, about: _About, mechanism: str, weight: str) -> Release:
    joint = Release(
        items=about.items,
        item_columns=about.item_columns,
        probabilities=estimate.probabilities,
        standard_errors=estimate.standard_errors,
        lower=estimate.lower,
        upper=estimate.upper,
        confidence=CONFIDENCE,
        predicted_l1_error=estimate.predicted_l1_error,
        sampling_errors=estimate.sampling_errors,
        guarantee=about.guarantee,
        events=about.spending.events,
        mechanism=mechanism,
        weight=weight,
        parameters=about.parameters,
        versions=about.versions,
        ledger_head=about.ledger_head,
        measured=estimate.measured,
        other_errors=estimate.other_errors,
        noise_errors=estimate.noise_errors,
        divisor=estimate.divisor or OWN_SUM,
        total=estimate.total,
    )
    return replace(widen_intervals(joint), users=number_of_users(joint, estimate.users))


def _reach(estimate: ReachEstimate, about: _About, *, grouped: bool) -> Reach | GroupedReach:
    joint = Reach(
        items=about.items,
        item_columns=about.item_columns,
        counts=estimate.counts,
        standard_errors=estimate.standard_errors,
        lower=estimate.lower,
        upper=estimate.upper,
        confidence=CONFIDENCE,
        users=Quantity(*estimate.users, CONFIDENCE),
        left_out=None if estimate.left_out is None else Quantity(*estimate.left_out, CONFIDENCE),
        predicted_l1_error=estimate.predicted_l1_error,
        predicted_errors=estimate.predicted_errors,
        guarantee=about.guarantee,
        events=about.spending.events,
        parameters=about.parameters,
        versions=about.versions,
        ledger_head=about.ledger_head,
    )
    return GroupedReach(joint, tuple(Quantity(*one, CONFIDENCE) for one in estimate.groups)) if grouped else joint


def _versions(engine: str, package: str) -> dict[str, str]:
    packages = ["crowdgram", "ibis-framework", "opendp", "dp-accounting", "numpy", package]
    return {**{name: _version(name) for name in packages}, "engine": engine, "python": platform.python_version()}


@cache
def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:  # a cluster's own PySpark, or a bare checkout
        return "unknown"
