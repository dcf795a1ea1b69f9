"""Whole releases that are broken on purpose, each beside its healthy sibling. No release but an audit's can reach them.

What is broken is swapped for the time of the attack, and in the threads of its runs alone.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import tables
from ..mechanisms import Request, discovery
from ..privacy import Adjacency, Guarantee, Spending
from ..privacy.threshold import lone_threshold
from ..tables import UNIT, Counts, Domain, ItemSets, Rows, WeightedSets, count_rows
from .attack import Case
from .forms import FORMS, GROUPS, KINDS, PLACES, released
from .lockstep import swapped
from .twins import Twin

__all__ = ["RELEASE_TWINS"]

Integers = npt.NDArray[np.int64]


def low_threshold() -> AbstractContextManager[None]:
    """The threshold that one item of one user needs, where a user may have a thousand."""

    def for_one(tops: Any, rounds: int, sigma: float, delta: float) -> int:
        return lone_threshold(tops[:1], rounds, sigma, delta)

    return swapped(discovery, "lone_threshold", for_one)


def whole_weights() -> AbstractContextManager[None]:
    """Every item of a user gets the whole weight: the norm grows with the number of items."""

    def whole(statistic: WeightedSets, sets: ItemSets) -> Integers:
        totals = np.zeros(sets.items, dtype=np.int64)
        held = sets.engine.fetch(sets.members.group_by("idx").agg(users=sets.members.count()), "counting users by item")
        totals[held.column("idx").to_numpy()] = UNIT * held.column("users").to_numpy()
        return np.where(statistic.gains > 0, totals, 0)

    return swapped(WeightedSets, "totals", whole)


def uncapped_counts() -> AbstractContextManager[None]:
    """A user's weight is that of one row, whatever the row counts for."""

    def uncapped(rows: Rows, domain: Domain) -> Counts:
        counts = count_rows(rows, domain)
        return replace(counts, users=counts.users.mutate(rows=counts.users.rows * 0 + 1))

    return swapped(tables, "count_rows", uncapped)


def each_group(table: Any, spending: Spending, request: Request) -> tuple[Any, ...]:
    """A release of every group by itself, each with the whole budget: a user may be in all of them."""
    asked = {"item": "item", "domain": list(KINDS), "mechanism": "laplace"}
    return tuple(released(table, spending, request, where=f'"group" = {group}', **asked) for group in GROUPS)


def each_column(table: Any, spending: Spending, request: Request) -> tuple[Any, ...]:
    """A release of every column by itself, each with the whole budget."""
    lists = {"kind": list(KINDS), "place": list(PLACES)}
    return tuple(
        released(table, spending, request, item=name, domain=domain, mechanism="laplace")
        for name, domain in lists.items()
    )


def _twins() -> tuple[Twin, ...]:
    add = Adjacency.ADD_REMOVE
    usual, pure = Guarantee(1.0, 1e-6, add), Guarantee(1.0, 0.0, add)
    often = Guarantee(1.0, 0.09, add)  # at a large delta, every run shows what passes too often
    edge, many, *_ = FORMS["found-items"].pairs(add)

    def case(form: str, claim: Guarantee, name: str | None = None, by: str = "laplace", **changes: Any) -> Case:
        ask = partial(released, mechanism=by, **FORMS[form].arguments)
        made = Case(f"{form}: {by}", ask, "users", claim, pairs=FORMS[form].pairs(add))
        return replace(made, name=name or made.name, **changes)

    return (
        Twin(
            "a threshold for one item where a user may have a thousand",
            case("found-items", often, "low-threshold", "gaussian", within=low_threshold),
            case("found-items", often, by="gaussian"),
            (many,),
        ),
        Twin(
            "weights of items that are not held to norm one",
            case("found-items", usual, "whole-weights", "gaussian", within=whole_weights),
            case("found-items", usual, by="gaussian"),
            (edge,),
        ),
        Twin(
            "every group with the whole budget",
            case("groups", pure, "each-group", mechanism=each_group),
            case("groups", pure),
            FORMS["groups"].pairs(add)[:1],
        ),
        Twin(
            "a row that counts for many, weighed as one",
            case("counts", pure, "uncapped-counts", within=uncapped_counts),
            case("counts", pure),
            FORMS["counts"].pairs(add)[:1],
        ),
        Twin(
            "every column with the whole budget",
            case("columns", pure, "each-column", mechanism=each_column),
            case("columns", pure),
            FORMS["columns"].pairs(add),
        ),
    )


RELEASE_TWINS = _twins()
