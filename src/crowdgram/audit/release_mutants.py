"""Whole releases that are broken on purpose, each beside its healthy sibling. No release but an audit's can reach them.

A broken release is made of the same parts as a real one, put together here with one of them wrong.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ..arrays import Integers
from ..mechanisms import Adaptive, Gaussian, ItemUsers, Laplace, Request, Searching, discovery, open_search
from ..privacy import Adjacency, Found, Guarantee, Spending
from ..releases.items import Lists, found_domain, group_numbers
from ..releases.registry import make_mechanism
from ..tables import (
    GROUP_PART,
    UNIT,
    Domain,
    ItemReach,
    ItemSets,
    Presence,
    Rows,
    WeightedSets,
    count_rows,
    find_presence,
    item_sets,
    open_rows,
    read_domain,
    tally_rows,
)
from .attack import Case
from .mutants import Mutant
from .whole_releases import GROUP_VALUES, KINDS, PLACES, REACHED, WHOLE_RELEASES, run_periods, run_release

__all__ = ["RELEASE_MUTANTS"]


def low_threshold(table: Any, spending: Spending, request: Request) -> Any:
    """The threshold for one item of a user, although a user may have a thousand."""
    return _found(table, spending, request, most_paid=1)


class _WholeWeights(WeightedSets):
    """Every item of a user gets the whole weight: the norm grows with the number of items."""

    def totals(self, view: ItemSets) -> Integers:
        totals = np.zeros(view.items, dtype=np.int64)
        held = view.engine.fetch(view.members.group_by("idx").agg(users=view.members.count()), "counting users by item")
        totals[held.column("idx").to_numpy()] = UNIT * held.column("users").to_numpy()
        return np.where(self.gains > 0, totals, 0)


def whole_weights(table: Any, spending: Spending, request: Request) -> Any:
    """Weights of items that are not held to norm one."""
    return _found(table, spending, request, kind=_WholeWeights)


def _found(
    table: Any,
    spending: Spending,
    request: Request,
    *,
    kind: type[WeightedSets] = WeightedSets,
    most_paid: int = discovery.MOST_ITEMS,
) -> Any:
    """The steps of a release that finds items and goes on with Gaussian noise, one by one, so that one can be broken:
    kind: what is summed over sets; most_paid: how many items of one user the threshold is for.
    """
    rows = tally_rows(open_rows(table, user="user", item="item"))
    items, found = _search(rows, spending, Gaussian(), kind, most_paid)
    counts = count_rows(rows, Domain(tuple(items), rows.item_types, other=True))
    return items, Gaussian().run(counts, found, replace(request, found=True))


def _search(
    rows: Rows, spending: Spending, follows: Searching, kind: type[WeightedSets], most_paid: int
) -> tuple[list[Any], Found]:
    """Find items by rounds, and what is left for what follows."""
    _, plan = follows.search(spending.guarantee, None)
    search = open_search(spending.open(), plan)
    sets = item_sets(rows, search.salt(), discovery.MOST_ITEMS)
    thresholds = discovery.thresholds_for(discovery.round_sigma(search, plan), search.chance, most_paid)
    return discovery.search_sets(sets, search, plan, thresholds, kind)


def uncapped_counts(table: Any, spending: Spending, request: Request) -> Any:
    """A user's weight is that of one row, whatever the row counts for."""
    rows = open_rows(table, user="user", item="item", count="n")
    counts = count_rows(rows, read_domain(list(KINDS), rows.item_type))
    uncapped = replace(counts, users=counts.users.mutate(rows=counts.users.rows * 0 + 1))
    return Laplace().run(uncapped, spending.open(), request)


def each_group(table: Any, spending: Spending, request: Request) -> tuple[Any, ...]:
    """A release of every group by itself, each with the whole budget: a user may be in all of them."""
    asked = {"item": "item", "domain": list(KINDS), "mechanism": Laplace()}
    return tuple(run_release(table, spending, request, where=f'"group" = {group}', **asked) for group in GROUP_VALUES)


def each_column(table: Any, spending: Spending, request: Request) -> tuple[Any, ...]:
    """A release of every column by itself, each with the whole budget."""
    lists = {"kind": list(KINDS), "place": list(PLACES)}
    return tuple(
        run_release(table, spending, request, item=name, domain=domain, mechanism=Laplace())
        for name, domain in lists.items()
    )


def every_period(table: Any, spending: Spending, request: Request) -> Any:
    """A release of every period that reads the rows of all: each pays for a user's rows of one period again."""
    asked = {"item": "item", "domain": list(KINDS), "mechanism": Laplace()}
    return run_periods(table, spending, request, period_column=None, **asked)


def unbounded_reach(table: Any, spending: Spending, request: Request) -> Any:
    """A user has the full weight for every item, however many there are."""
    rows = open_rows(table, user="user", item="item")
    presence = find_presence(rows, read_domain(list(REACHED), rows.item_type))
    light = replace(presence, users=presence.users.mutate(size=presence.users["size"] * 0 + 1))
    return ItemUsers(max_items_per_user=1).run(light, spending.open(), request)


class _ByGroups(Presence):
    """A view that counts users of groups beside the bound, with the weight of an item."""

    def sum(self, statistic: Any) -> Any:
        if not isinstance(statistic, ItemReach):
            return super().sum(statistic)
        alone = super().sum(replace(statistic, group_of=()))
        part = super().sum(statistic).values[-statistic.groups :]
        return replace(alone, values=np.concatenate([alone.values, part * GROUP_PART]))


def uncounted_groups(table: Any, spending: Spending, request: Request) -> Any:
    """Users of groups are counted with the same noise, and what they add to groups is not in the bound."""
    rows = open_rows(table, user="user", item="item", by="group")
    pairs = [(group, kind) for group in GROUP_VALUES for kind in KINDS]
    view = find_presence(rows, Domain(tuple(pairs), rows.item_types))
    request = replace(request, group_of=tuple(group for group, _ in pairs))
    heavy = _ByGroups(view.engine, view.cells, view.users, view.items)
    return ItemUsers(max_items_per_user=1).run(heavy, spending.open(), request)


def low_pair_threshold(table: Any, spending: Spending, request: Request) -> Any:
    """Users by group and item, with the threshold for one pair of a user, although a user may have a thousand."""
    rows = tally_rows(open_rows(table, user="user", item="item", by="group"))
    reach = ItemUsers(max_items_per_user=1)  # which needs no looks
    pairs, left = _search(rows, spending, reach, WeightedSets, most_paid=1)
    domain = found_domain(rows, Lists(None, None, grouped=True), pairs)
    request = replace(request, found=True, group_of=group_numbers(domain))
    return domain.items, reach.run(find_presence(rows, domain), left, request)


def own_prior(table: Any, spending: Spending, request: Request) -> Any:
    """The table's own shares, without noise, as a prior that should be public."""
    shares = Counter(table.engine.fetch(table.table.select("item"), "reading items")["item"].to_pylist())
    return run_release(table, spending, request, mechanism=Adaptive(prior=shares), **WHOLE_RELEASES["prior"].arguments)


def _mutants() -> tuple[Mutant, ...]:
    add = Adjacency.ADD_REMOVE
    usual, pure = Guarantee(1.0, 1e-6, add), Guarantee(1.0, 0.0, add)
    often = Guarantee(1.0, 0.09, add)  # at a large delta, every run shows what passes too often
    edge, many, *_ = WHOLE_RELEASES["found-items"].pairs(add)

    def case(release: str, claim: Guarantee, name: str | None = None, by: str = "laplace", **changes: Any) -> Case:
        whole = WHOLE_RELEASES[release]
        own = whole.own or make_mechanism(by, **whole.options)
        ask = partial(whole.ask, mechanism=own, **whole.arguments)
        named = f"{release}: {by}" if whole.own is None else release
        made = Case(named, ask, "users", claim, pairs=whole.pairs(add))
        return replace(made, name=name or made.name, **changes)

    return (
        Mutant(
            "a threshold for one item, although a user may have a thousand",
            case("found-items", often, "low-threshold", mechanism=low_threshold),
            case("found-items", often, by="gaussian"),
            (many,),
        ),
        Mutant(
            "weights of items that are not held to norm one",
            case("found-items", usual, "whole-weights", mechanism=whole_weights),
            case("found-items", usual, by="gaussian"),
            (edge,),
        ),
        Mutant(
            "every group with the whole budget",
            case("groups", pure, "each-group", mechanism=each_group),
            case("groups", pure),
            WHOLE_RELEASES["groups"].pairs(add)[:1],
        ),
        Mutant(
            "a row that counts for many, weighed as one",
            case("counts", pure, "uncapped-counts", mechanism=uncapped_counts),
            case("counts", pure),
            WHOLE_RELEASES["counts"].pairs(add)[:1],
        ),
        Mutant(
            "every column with the whole budget",
            case("columns", pure, "each-column", mechanism=each_column),
            case("columns", pure),
            WHOLE_RELEASES["columns"].pairs(add),
        ),
        Mutant(
            "every period with the whole budget, read without its filter",
            case("periods", pure, "every-period", mechanism=every_period),
            case("periods", pure),
            WHOLE_RELEASES["periods"].pairs(add)[:1],
        ),
        Mutant(
            "users of many items, who have the full weight for each",
            case("reach", pure, "unbounded-reach", mechanism=unbounded_reach),
            case("reach", pure),
            WHOLE_RELEASES["reach"].pairs(add)[:1],
        ),
        Mutant(
            "users of groups, which are not in the bound",
            case("reach-groups", pure, "uncounted-groups", mechanism=uncounted_groups),
            case("reach-groups", pure),
            WHOLE_RELEASES["reach-groups"].pairs(add)[1:],
        ),
        Mutant(
            "a threshold for one pair of a group and an item, although a user may have a thousand",
            case("found-reach-groups", often, "low-pair-threshold", mechanism=low_pair_threshold),
            case("found-reach-groups", often),
            WHOLE_RELEASES["found-reach-groups"].pairs(add)[1:2],
        ),
        Mutant(
            "a prior that is the table itself, without noise",
            case("prior", usual, "own-prior", "adaptive", mechanism=own_prior),
            case("prior", usual, by="adaptive"),
            WHOLE_RELEASES["prior"].pairs(add)[:1],
        ),
    )


RELEASE_MUTANTS = _mutants()
