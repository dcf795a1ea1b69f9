"""Whole releases under attack, from rows to what comes out: found items, groups, counts, several and
computed columns, periods, a prior.

A mechanism is attacked on counts. Here the rest is: how rows become counts, which items they are counted for, and what
finding these gives away. The tables of each release are made to be hard for it.
"""

from __future__ import annotations

import datetime
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from ..errors import InvalidArgument
from ..mechanisms import Costed, ItemUsers, Request, Searching, Weight
from ..privacy import Adjacency, Guarantee, Ledger, Spending
from ..releases.pipeline import run
from ..releases.query import Query
from ..releases.registry import as_mechanism, make_mechanism
from ..tables import Bins
from .attack import Case
from .pairs import RowPair

__all__ = ["WHOLE_RELEASES", "WholeRelease", "release_cases", "run_periods", "run_release"]

TARGET_USER = 4000
"""Above all others, and small: the engine groups users of a narrow range in an array as long as the range."""
ON_SEARCH_EDGE = 48
"""Users of an item that is found about as often as not, at epsilon = 1 and delta = 1e-6: all rounds are about it."""
UNSHARED_ITEMS = 1100
"""Items of one user alone: more than are weighed."""
GROUP_VALUES, KINDS, PLACES, REACHED = range(4), range(2), range(3), range(12)
PERIODS = ("2026-10", "2026-11")
KNOWN_ITEMS = 30
"""Items of a release with a prior, so that it takes rounds."""
HUGE = 2**62
BINNED = Bins("2 * value", (0, 10, 20))
"""The item of a release whose columns are all computed."""

RowTuples = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class WholeRelease:
    """A way to ask for a release: its arguments, the tables that it is attacked on, what asks for it, and options of
    its mechanism.
    """

    name: str
    arguments: Mapping[str, Any]
    pairs: Callable[[Adjacency], tuple[RowPair, ...]]
    ask: Callable[..., Any]
    own: Costed | None = None
    """What makes it, if no mechanism can be chosen: it then has one case for all of them, with the weight it serves."""
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def finds(self) -> bool:
        """Whether items or groups are found, which needs a delta."""
        return not {"domain", *(["groups"] if "by" in self.arguments else [])} <= set(self.arguments)


def release_cases(
    epsilon: float,
    delta: float,
    *,
    names: Iterable[str] | None = None,
    mechanisms: Iterable[str] = ("auto",),
    weights: Iterable[Weight] = ("rows", "users"),
    adjacencies: Iterable[Adjacency] = tuple(Adjacency),
) -> Iterator[Case]:
    """Every whole release, or those that are named, by each of these mechanisms."""
    weights, adjacencies, mechanisms = tuple(weights), tuple(adjacencies), tuple(mechanisms)
    for name, mechanism in product(WHOLE_RELEASES if names is None else names, mechanisms):
        if name in WHOLE_RELEASES and WHOLE_RELEASES[name].own is not None and mechanism != mechanisms[0]:
            continue
        if name not in WHOLE_RELEASES:
            raise InvalidArgument(
                f"release={name!r}: needs to be one of {', '.join(map(repr, WHOLE_RELEASES))}.", argument="release"
            )
        release = WHOLE_RELEASES[name]
        if release.finds and delta == 0 and names is None:  # of all, those that can do without
            continue
        kind = release.own or as_mechanism(mechanism)
        if names is None and not set(release.options) <= {option.name for option in fields(kind)}:
            continue
        kind = make_mechanism(mechanism, **release.options) if release.options else kind
        served = [one for one in weights if release.own is None or one in kind.weights] or weights
        if release.finds and (delta == 0 or not isinstance(kind, Searching)):
            raise InvalidArgument(
                f"release={name!r}: finds items, and cannot with mechanism={mechanism!r} and delta={delta:g}: it "
                "needs a delta, such as 1e-6, and a mechanism that can follow a search, such as 'auto'.",
                argument="release",
            )
        for weight, adjacency in product(served, adjacencies):
            offered = Guarantee(epsilon, delta, adjacency)
            kind.check(offered, weight)
            claim = offered if release.finds else kind.promised(offered)
            ask = partial(release.ask, mechanism=kind, **release.arguments)
            yield Case(
                name if release.own else f"{name}: {mechanism}", ask, weight, claim, pairs=release.pairs(adjacency)
            )


def run_release(table: Any, spending: Spending, request: Request, **arguments: Any) -> Any:
    """A whole release of `table`. Its budget is its own; `spending` says how large it is, and who draws the noise."""
    asked = {"user": "user", **arguments}
    query = Query(guarantee=spending.guarantee, weight=request.weight, **asked)
    return run(table, query, sampler=spending.sampler)


def run_periods(
    table: Any, spending: Spending, request: Request, *, period_column: str | None = "day", **arguments: Any
) -> tuple[Any, ...]:
    """A release of every period, each with the whole budget of that period in one ledger, and what the ledger keeps.
    What is claimed for all of them is the budget of one: the tables differ in one period.
    """
    g = spending.guarantee
    query = Query(user="user", guarantee=g, weight=request.weight, **arguments)
    with tempfile.TemporaryDirectory() as folder:
        path = Ledger.create(Path(folder, "audit.ledger"), g.epsilon, g.delta, g.adjacency, every="month").path
        opened = [Ledger.open(path, period=period, period_column=period_column) for period in PERIODS]
        made = [run(table, query, ledger=one, sampler=spending.sampler) for one in opened]
        kept = [replace(entry, at="", digest="") for entry in opened[0].history()]
        return (*map(_without_digests, made), *kept)


def _without_digests(made: Any) -> Any:
    """A release without the digests of its ledger, which has another identity, time and salt in each of two runs."""
    return replace(made, ledger_head=replace(made.ledger_head, ledger="0" * 64, digest="0" * 64))


def _found(adjacency: Adjacency) -> tuple[RowPair, ...]:
    """Items on the edge of being found, all or one of which a user has; items that nobody else has, many and one."""
    return _pairs(("user", "item"), adjacency, lambda item: (item,))


def _found_groups(adjacency: Adjacency) -> tuple[RowPair, ...]:
    """As `_found`, with a group for every other item: a user who is in many groups, or alone in them."""
    return _pairs(("user", "group", "item"), adjacency, lambda item: (item // 2, item % 2))


def _pairs(
    columns: tuple[str, ...], adjacency: Adjacency, named: Callable[[int], tuple[int, ...]]
) -> tuple[RowPair, ...]:
    edge = tuple((16 * n + item, *named(item)) for n in range(ON_SEARCH_EDGE) for item in range(16))
    common = tuple((user, *named(item)) for user in range(200) for item in range(4))

    def own(items: Iterable[int]) -> RowTuples:
        return tuple((TARGET_USER, *named(item)) for item in items)

    if adjacency is Adjacency.ADD_REMOVE:
        return (
            RowPair("a user of items on the edge", columns, edge, own(range(16))),
            RowPair(
                "a user of many items that nobody else has", columns, common, own(range(1000, 1000 + UNSHARED_ITEMS))
            ),
            RowPair("a user of one item that nobody else has", columns, common, own([1000])),
            RowPair("a user of one item on the edge", columns, edge, own([0])),
        )
    others = range(5000, 5000 + UNSHARED_ITEMS)
    return (
        RowPair("a user of items on the edge", columns, edge, own(range(8)), own(range(8, 16))),
        RowPair(
            "a user of many items that nobody else has",
            columns,
            common,
            own(range(1000, 1000 + UNSHARED_ITEMS)),
            own(others),
        ),
        RowPair("a user of one item that nobody else has", columns, common, own([1000]), own([5000])),
        RowPair("a user of one item on the edge", columns, edge, own([0]), own([1])),
    )


def _grouped(adjacency: Adjacency) -> tuple[RowPair, ...]:
    """A user who is in every group, or all in one, in a crowd that is in every group."""
    crowd = tuple((user, group, kind) for user in range(100) for group in GROUP_VALUES for kind in KINDS)
    first = tuple((TARGET_USER, group, 0) for group in GROUP_VALUES)
    second = tuple((TARGET_USER, group, 1) for group in GROUP_VALUES)
    columns = ("user", "group", "item")
    return (
        RowPair("a user in every group", columns, crowd, first, _replaced(adjacency, second)),
        RowPair(
            "a user of one group", columns, crowd, ((TARGET_USER, 0, 0),), _replaced(adjacency, ((TARGET_USER, 1, 1),))
        ),
    )


def _counted(adjacency: Adjacency) -> tuple[RowPair, ...]:
    """A user with one row that counts for 2^62, and one with many that count for more than 64 bits together."""
    columns = ("user", "item", "n")
    crowd = tuple((user, kind, 10) for user in range(200) for kind in KINDS)
    second = _replaced(adjacency, ((TARGET_USER, 1, 1),))
    return (
        RowPair("one row of a huge count", columns, crowd, ((TARGET_USER, 0, HUGE),), second),
        RowPair("huge counts of many rows", columns, crowd, ((TARGET_USER, 0, HUGE),) * 40, second),
    )


def _computed(adjacency: Adjacency) -> tuple[RowPair, ...]:
    """A user of huge counts, rows that the filter drops and rows outside the bins; a user of dropped rows only."""
    columns = ("user", "value", "n")
    crowd = tuple((user, value, 2) for user in range(200) for value in (1, 7, 30))
    heavy = ((TARGET_USER, 1, HUGE), (TARGET_USER, 1, HUGE), (TARGET_USER, 30, 3), (TARGET_USER, 70, HUGE))
    dropped = ((TARGET_USER, 70, HUGE), (TARGET_USER, 1, -HUGE))
    return (
        RowPair("a user of computed items", columns, crowd, heavy, _replaced(adjacency, ((TARGET_USER, 7, HUGE),))),
        RowPair("a user whose rows are dropped", columns, crowd, dropped, _replaced(adjacency, ((TARGET_USER, 7, 1),))),
    )


def _joint(adjacency: Adjacency) -> tuple[RowPair, ...]:
    """A user at one corner of two columns, in a crowd that is everywhere."""
    crowd = tuple((user, kind, place) for user in range(200) for kind in KINDS for place in PLACES)
    first, second = ((TARGET_USER, 0, 0),) * 6, ((TARGET_USER, 1, 2),) * 6
    return (RowPair("a user at a corner", ("user", "kind", "place"), crowd, first, _replaced(adjacency, second)),)


def _periods(adjacency: Adjacency) -> tuple[RowPair, ...]:
    """A user on the first or the last day of one period, in a crowd that is in both."""
    october, november, last = (
        (datetime.date(2026, *day) - datetime.date(1970, 1, 1)).days for day in ((10, 5), (11, 1), (11, 30))
    )
    columns = ("user", "item", "day")
    crowd = tuple((user, kind, day) for user in range(100) for kind in KINDS for day in (october, november))
    return tuple(
        RowPair(
            f"a user on the {name} day of a month",
            columns,
            crowd,
            ((TARGET_USER, 0, day),) * 6,
            _replaced(adjacency, ((TARGET_USER, 1, day),) * 6),
            dates=("day",),
        )
        for name, day in (("first", november), ("last", last))
    )


def _written(adjacency: Adjacency) -> tuple[RowPair, ...]:
    """As `_periods`, with users, items and days that are text."""
    return tuple(replace(pair, texts=pair.columns) for pair in _periods(adjacency)[:1])


def _reached(adjacency: Adjacency) -> tuple[RowPair, ...]:
    """A user of every item, far above any bound, in a crowd with one item each; and a user of one item."""
    crowd = tuple((user, user % len(REACHED)) for user in range(400))
    every = tuple((TARGET_USER, item) for item in REACHED)
    half = tuple((TARGET_USER, item) for item in REACHED[: len(REACHED) // 2])
    columns = ("user", "item")
    return (
        RowPair("a user of every item", columns, crowd, every, _replaced(adjacency, half)),
        RowPair("a user of one item", columns, crowd, ((TARGET_USER, 0),), _replaced(adjacency, ((TARGET_USER, 1),))),
    )


def _wrongly_known(adjacency: Adjacency) -> tuple[RowPair, ...]:
    """A user of the item that a prior takes for the most common, which nobody else has; a user of the crowd's items."""
    columns = ("user", "item")
    crowd = tuple((user, item) for user in range(200) for item in range(1, KNOWN_ITEMS) for _ in range(3))
    rare, usual = (
        ((TARGET_USER, 0),) * 90,
        tuple((TARGET_USER, item) for item in range(1, KNOWN_ITEMS) for _ in range(3)),
    )
    return (
        RowPair("a user of what a wrong prior expects", columns, crowd, rare, _replaced(adjacency, usual)),
        RowPair("a user against a wrong prior", columns, crowd, usual, _replaced(adjacency, rare)),
    )


def _replaced(adjacency: Adjacency, rows: RowTuples) -> RowTuples:
    return rows if adjacency is Adjacency.REPLACE else ()


WHOLE_RELEASES = {
    release.name: release
    for release in (
        WholeRelease("found-items", {"item": "item"}, _found, run_release),
        WholeRelease("found-groups", {"item": "item", "by": "group"}, _found_groups, run_release),
        WholeRelease(
            "listed-items", {"item": "item", "by": "group", "domain": list(KINDS)}, _found_groups, run_release
        ),
        WholeRelease(
            "groups",
            {"item": "item", "by": "group", "groups": list(GROUP_VALUES), "domain": list(KINDS)},
            _grouped,
            run_release,
        ),
        WholeRelease("counts", {"item": "item", "count": "n", "domain": list(KINDS)}, _counted, run_release),
        WholeRelease(
            "columns",
            {"item": ["kind", "place"], "domain": {"kind": list(KINDS), "place": list(PLACES)}},
            _joint,
            run_release,
        ),
        WholeRelease(
            "computed",  # and named as columns that the table has
            {
                "user": {"user": "user // 2"},
                "item": {"value": BINNED},
                "count": "n",
                "where": "value < 50 and n < 9000000000000000000",
                "domain": list(BINNED.names),
                "other": "elsewhere",
                "max_rows_per_user": 5,
            },
            _computed,
            run_release,
        ),
        WholeRelease("periods", {"item": "item", "domain": list(KINDS)}, _periods, run_periods),
        WholeRelease("texts", {"item": "item"}, _written, run_periods),
        WholeRelease("reach", {"item": "item", "domain": list(REACHED)}, _reached, run_release, ItemUsers()),
        WholeRelease("reach-periods", {"item": "item", "domain": list(KINDS)}, _periods, run_periods, ItemUsers()),
        WholeRelease("found-reach", {"item": "item"}, _found, run_release, ItemUsers()),
        WholeRelease("found-reach-groups", {"item": "item", "by": "group"}, _found_groups, run_release, ItemUsers()),
        WholeRelease(
            "reach-groups",
            {"item": "item", "by": "group", "groups": list(GROUP_VALUES), "domain": list(KINDS)},
            _grouped,
            run_release,
            ItemUsers(),
        ),
        WholeRelease(
            "prior",
            {"item": "item", "domain": list(range(KNOWN_ITEMS))},
            _wrongly_known,
            run_release,
            options={"prior": {0: 1.0}},
        ),
    )
}
"""What can be asked of a release, by name."""
