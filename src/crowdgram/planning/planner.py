"""Plan a release: the error to expect, or what it takes for an error, without touching data."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Literal

from ..errors import InvalidArgument
from ..mechanisms import Discover, Gaussian, Laplace, Weight
from ..privacy import Adjacency, Guarantee
from ..releases.budgets import MIN_EPSILON, LedgerLike
from ..releases.checking import Checked, check
from ..releases.query import Column, Columns, check_weight
from .expected import SEARCH_RUNS, Expected, Question, expected_auto, expected_plain, paper_bounds, without_privacy
from .figures import check_numbers, shares_of, shown_share
from .likeness import Likeness, likeness
from .shapes import TAIL_PRESETS, TASTE_PRESETS, Preset, Shape, number_of
from .solving import solve
from .value import Plan

__all__ = ["plan"]

Against = Literal["table", "population"]
_SOLVABLE = ("users", "rows_per_user", "epsilon")


def plan(
    table: object = None,
    *,
    users: int | None = None,
    rows_per_user: float | None = None,
    items: int | None = None,
    epsilon: float | None = None,
    delta: float = 0.0,
    target_error: float | None = None,
    against: Against = "table",
    tails: Preset | float | None = None,
    tastes: Preset | float | None = None,
    zipf: float = 1.0,
    like: object = None,
    share: float | None = None,
    weight: Weight | None = None,
    adjacency: Adjacency | Literal["add-remove", "replace"] = Adjacency.ADD_REMOVE,
    user: Column | None = None,
    item: Columns | None = None,
    domain: object = None,
    count: str | None = None,
    where: object = None,
    by: Column | None = None,
    groups: object = None,
    other: str | None = None,
    ledger: LedgerLike | None = None,
) -> Plan:
    """The error to expect of a release, before it is made. No data is touched, so it costs no privacy.

    users, rows_per_user, items: the crowd: how many users, how many rows each has on average, how many items.
    epsilon, delta: the budget of the release.
    target_error: an l1 error; that one of users, rows_per_user and epsilon that is left out is solved for.
    against: whether target_error is against the "table" itself, or against the "population" that its users came from.
    tails: how much rows per user differ; tastes: how much users differ in their items. Each "alike", "typical" (the
        default) or "very different", or a number: sigma of log-normal rows, from 0 to 3, and the chance that two rows
        of one user have the same item because they are that user's, from 0 to 0.95.
    zipf: item i, from 1, has a share in proportion to i^-zipf.
    like: an earlier release, or the file of one. What is not given is taken from it: items and their shares, users,
        rows per user, tails and tastes, weight. Only what is public in it is used.
    share: of the item whose error is shown. By default 1%, or the share that is nearest to it.
    weight, adjacency: as of `crowdgram.release`.
    table, user, item, domain, count, where, by, groups, other, ledger: as of `crowdgram.release`. They are checked as a
        release does, and no row is read: columns, types, lists, and what the ledger has left. `items` is then the
        length of the public list; without one, say how many there may be. If neither users nor rows_per_user are
        given, the table is checked and nothing more.
    domain: without a table only "discover" or `Discover(share)`: the items have to be found, and part of the budget is
        spent on that.

    The same arguments give the same plan: it is the mean of simulated releases, with a fixed seed.
    """
    earlier = None if like is None else likeness(like, rows_per_user)
    weight = check_weight(weight or ("rows" if earlier is None else earlier.weight))
    public = Guarantee(1.0 if epsilon is None else epsilon, delta, Adjacency.parse(adjacency))
    if public.epsilon < MIN_EPSILON:
        raise InvalidArgument(
            f"epsilon={epsilon:g}: needs to be at least {MIN_EPSILON:g}; below, all is noise.", argument="epsilon"
        )
    asked = {"user": user, "item": item, "domain": domain, "count": count, "where": where, "by": by}
    asked |= {"groups": groups, "other": other, "ledger": ledger}
    sought = domain if table is None and (domain == "discover" or isinstance(domain, Discover)) else None
    if sought is not None:
        del asked["domain"]
    checked = _check_table(table, asked, public, weight, epsilon, target_error)
    if checked is not None and users is None and rows_per_user is None and like is None and target_error is None:
        return Plan(guarantee=public, weight=weight, items=checked.items, checked=checked)
    if checked is not None and items is None and like is None:
        items = checked.items
    given: dict[str, float | None] = {"users": users, "rows_per_user": rows_per_user, "epsilon": epsilon}
    if earlier is not None:
        given = _with(given, earlier, solving=target_error is not None)
    missing = _missing(given, target_error)
    shares = shares_of(items, zipf) if earlier is None or items is not None else earlier.shares / earlier.shares.sum()
    numbers = {
        "tails": number_of("tails", _first(tails, earlier and earlier.tails), TAIL_PRESETS),
        "tastes": number_of("tastes", _first(tastes, earlier and earlier.tastes), TASTE_PRESETS),
    }
    check_numbers(given, against)
    discovery_share = checked.discovery_share if checked is not None else _share_of(sought, public)
    shown = shown_share(share, shares)

    def question(name: str | None = None, value: float = 0.0) -> Question:
        values = {**given, **({} if name is None else {name: value})}
        shape = Shape(round(values["users"] or 0), float(values["rows_per_user"] or 0), shares, **numbers)
        return Question(shape, replace(public, epsilon=float(values["epsilon"] or 0)), weight, shown, discovery_share)

    if missing is None:
        final = question()
        auto = expected_auto(final)
    else:
        final, auto = _solved(missing, target_error or 0.0, against, question)
        if table is not None and missing == "epsilon":
            checked = _check_table(table, asked, final.guarantee, weight, final.guarantee.epsilon, target_error)
    others = [expected_plain(final, Laplace())]
    if final.guarantee.delta > 0:
        others.append(expected_plain(final, Gaussian()))
    return Plan(
        guarantee=final.guarantee,
        weight=weight,
        users=final.shape.users,
        rows_per_user=final.shape.rows,
        items=final.shape.items,
        share=shown,
        discovery_share=discovery_share,
        expected=(auto, *others, without_privacy(final)),
        bounds=paper_bounds(final),
        target_error=target_error,
        against=against,
        solved=missing,
        checked=checked,
        **numbers,
    )


def _check_table(
    table: object, asked: dict[str, Any], guarantee: Guarantee, weight: Weight, epsilon: float | None, target: object
) -> Checked | None:
    """Check a table as a release does. If epsilon is to be found, the ledger waits for it."""
    if table is None:
        given = next((name for name, value in asked.items() if value is not None), None)
        if given is not None:
            raise InvalidArgument(f"{given}: is for a table, and there is none. Give one.", argument=given)
        return None
    for name in ("user", "item"):
        if asked[name] is None:
            raise InvalidArgument(f"{name}=None: a table needs it. Say which column it is.", argument=name)
    if epsilon is None and target is None:
        raise InvalidArgument("epsilon=None: a check needs it. Try epsilon=1.", argument="epsilon")
    later = {"ledger": None} if epsilon is None else {}
    return check(table, guarantee=guarantee, weight=weight, **{**asked, **later})


def _share_of(sought: object, guarantee: Guarantee) -> float | None:
    """The part of the budget that finds items, if they have to be found."""
    if sought is None:
        return None
    if guarantee.delta == 0:
        raise InvalidArgument(
            "delta=0: items can only be found with a small chance delta. Give a delta such as 1e-6.", argument="delta"
        )
    return sought.share if isinstance(sought, Discover) else Discover().share


def _with(given: dict[str, float | None], earlier: Likeness, *, solving: bool) -> dict[str, float | None]:
    """What is not given, from the earlier release. With a target and epsilon, users are solved for; if users are
    given too, rows per user.
    """
    found = dict(given)
    if solving and given["epsilon"] is not None:
        missing = [name for name in ("users", "rows_per_user") if given[name] is None]
        known = {"users": earlier.users, "rows_per_user": earlier.rows}
        # Users are solved for, unless they are given: then rows are.
        for name in missing[1:] if "users" in missing else []:
            found[name] = known[name]
        return found
    for name, value in (("users", earlier.users), ("rows_per_user", earlier.rows)):
        if found[name] is None:
            found[name] = value
    return found


def _missing(given: dict[str, float | None], target: object) -> str | None:
    """The one that is to be solved for; None without a target."""
    missing = [name for name, value in given.items() if value is None]
    if target is None:
        if missing:
            raise InvalidArgument(
                f"{missing[0]}=None: needs a value. Or leave out one of {', '.join(_SOLVABLE)} and give target_error.",
                argument=missing[0],
            )
        return None
    if isinstance(target, bool) or not isinstance(target, int | float) or not 0 < target < 2:
        raise InvalidArgument(
            f"target_error={target!r}: needs to be an l1 error above 0 and below 2, such as 0.05.",
            argument="target_error",
        )
    if len(missing) != 1:
        left = "none is" if not missing else " and ".join(missing) + " are"
        raise InvalidArgument(
            f"target_error={target:g}: needs exactly one of {', '.join(_SOLVABLE)} left out, to be solved for; "
            f"{left} left out.",
            argument="target_error",
        )
    return missing[0]


def _first(*values: Any) -> Any:
    return next((value for value in values if value is not None), "typical")


def _solved(missing: str, target: float, against: Against, question: Any) -> tuple[Question, Expected]:
    """The question at which auto errs by the target, and what to expect there."""
    seen: dict[float, tuple[Question, Expected]] = {}

    def error(value: float) -> float:
        rounded = _rounded(missing, value)
        if rounded not in seen:
            asked = question(missing, rounded)
            seen[rounded] = asked, expected_auto(asked, SEARCH_RUNS)
        found = seen[rounded][1]
        return found.l1_error if against == "table" else found.population_error

    value = _rounded(missing, solve(missing, target, error))
    error(value)
    asked = seen[value][0]
    return asked, expected_auto(asked)


def _rounded(name: str, value: float) -> float:
    """Three digits, rounded up: what is found is at least as good as what is asked for."""
    unit = 10.0 ** (math.floor(math.log10(value)) - 2)
    found = math.ceil(value / unit - 1e-9) * unit
    return float(round(found)) if name == "users" else float(f"{found:.3g}")
