"""Forms of a release that an outsider attacks, each on tables on which such an attack is strong, with a broken twin.

An outsider counts how often something happens, so what is rare cannot be used. The claims are therefore such that much
of the loss is in common outcomes: epsilon = 2, and a delta of 0.05 if Gaussian noise needs one. The code is the same
for all budgets. The crowds are small, and one user is as far from them as a user can be.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from ..errors import InvalidArgument
from ..mechanisms import Adaptive, Gaussian, Laplace, Request, SampleOne
from ..paper import Paper
from ..privacy import Adjacency, Guarantee, Spending
from .attack import Case
from .mutants import levelled, nested_levels, rescaled
from .paired_execution import Attacked
from .pairs import RowPair, pairs_for
from .release_mutants import each_group, whole_weights
from .whole_releases import GROUP_VALUES, KINDS, TARGET_USER, WHOLE_RELEASES, run_release

__all__ = ["FORMS", "Form", "chosen_forms"]

PURE, USUAL, SMALL = Guarantee(2.0, 0.0), Guarantee(2.0, 0.05), Guarantee(2.0, 1e-6)
SEVERAL, MANY = 8, 64
"""Items of the user whom a broken twin counts too often; if only noisy evidence for items shows it."""
ON_EDGE = 7
"""Users of an item that is found about as often as not, at the claim USUAL."""
PLAIN = 100
"""Users of each item, who have no other: so many that one histogram is taken to find the items, at the claim SMALL. Of
two items ten times as many: with few users in all, noise decides how the items are found.
"""


@dataclass(frozen=True)
class Form:
    """A form of a release, and a twin that is broken as `what` says. Each case has the tables that tell."""

    name: str
    honest: Case
    broken: Case
    what: str


def chosen_forms(names: Iterable[str]) -> Iterator[Form]:
    """The forms of these names; "all" names all of them."""
    for name in names:
        if name == "all":
            yield from FORMS.values()
        elif name in FORMS:
            yield FORMS[name]
        else:
            raise InvalidArgument(
                f"form={name!r}: needs to be 'all' or one of {', '.join(map(repr, FORMS))}.", argument="form"
            )


def scaled(ask: Attacked, factor: float) -> Attacked:
    """The same with `factor` times the noise that is recorded."""

    def run(table: Any, spending: Spending, request: Request) -> Any:
        return ask(table, rescaled(spending, factor), request)

    return run


def _ask(**arguments: Any) -> Attacked:
    return partial(run_release, **{"item": "item", "domain": list(KINDS), **arguments})


def _pair(name: str, crowd: Iterable[tuple[int, ...]], own: Iterable[int]) -> RowPair:
    return RowPair(name, ("user", "item"), tuple(crowd), tuple((TARGET_USER, item) for item in own))


def _forms() -> tuple[Form, ...]:
    few = [(user, user % 2) for user in range(4)]
    alike = [(user, item) for user in range(60) for item in KINDS]
    edge = [*((user, 0) for user in range(ON_EDGE)), *((user + 100, 1) for user in range(40))]
    edges = [(MANY * user + item, item) for user in range(ON_EDGE) for item in range(MANY)]
    one, many = _pair("a user of one item", few, [0] * 4), _pair("a user of many items", few, range(SEVERAL))
    corner = _pair("a user at a corner", alike, [0, 0])
    found = _pair("a user of one item on the edge", edge, [0])
    found_many = _pair("a user of many items on the edge", edges, range(MANY))
    plain = _pair("a user of an item that is found", [(user, user % 2) for user in range(20 * PLAIN)], [0])
    plain_many = _pair(
        "a user of many items that are found",
        [(user, user % SEVERAL) for user in range(SEVERAL * PLAIN)],
        range(SEVERAL),
    )
    every_group, one_group = WHOLE_RELEASES["groups"].pairs(Adjacency.ADD_REMOVE)
    groups, at_corner = WHOLE_RELEASES["groups"].arguments, pairs_for(Adjacency.ADD_REMOVE)[1:2]
    paper = _ask(mechanism=Paper(), max_rows_per_user=2)
    adaptive = _ask(mechanism=Adaptive())
    histogram = partial(run_release, item="item", mechanism=Laplace())
    return (
        Form(
            "sample-one",
            Case("sample-one", _ask(mechanism=SampleOne()), "users", PURE, pairs=(one,)),
            Case(
                "a-row-of-each-item",
                _ask(user={"user": f"user * {SEVERAL} + item"}, domain=list(range(SEVERAL)), mechanism=SampleOne()),
                "users",
                PURE,
                pairs=(many,),
            ),
            "a sampled row for each item of a user, instead of one",
        ),
        Form(
            "paper",
            Case("paper", paper, "users", USUAL, pairs=(corner,)),
            Case("quarter-of-the-noise", scaled(paper, 0.25), "users", USUAL, pairs=(corner,)),
            "a quarter of the noise that is recorded",
        ),
        Form(
            "adaptive",
            Case("adaptive", adaptive, "users", USUAL, pairs=(corner,)),
            Case("third-of-the-noise", scaled(adaptive, 1 / 3), "users", USUAL, pairs=(corner,)),
            "a third of the noise that is recorded",
        ),
        Form(
            "levels",
            Case("levelled", levelled, "users", USUAL, pairs=at_corner),
            Case("nested-levels", nested_levels, "users", USUAL, pairs=at_corner),
            "levels that are wider than their noise is for",
        ),
        Form(
            "groups",
            Case("groups", partial(run_release, **groups, mechanism=Laplace()), "users", PURE, pairs=(one_group,)),
            Case("each-group", each_group, "users", PURE, pairs=(every_group,)),
            f"every one of {len(GROUP_VALUES)} groups with the whole budget",
        ),
        Form(
            "found-items",
            Case(
                "found-items", partial(run_release, item="item", mechanism=Gaussian()), "users", USUAL, pairs=(found,)
            ),
            Case("whole-weights", whole_weights, "users", USUAL, pairs=(found_many,)),
            "weights of items that are not held to norm one",
        ),
        Form(
            "found-by-histogram",
            Case("found-by-histogram", histogram, "users", SMALL, pairs=(plain,)),
            Case(
                "a-user-for-each-item",
                partial(histogram, user={"user": f"user * {SEVERAL} + item"}),
                "users",
                SMALL,
                pairs=(plain_many,),
            ),
            "every item of a user with the whole weight, instead of its part",
        ),
    )


FORMS = {form.name: form for form in _forms()}
"""What an outsider attacks, by name."""
