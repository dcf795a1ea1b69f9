"""From a public prior, as the caller gave it, to shares in the order of a domain.

Items of the prior that the domain lacks add to its "other"; without one their rows are not in the release, and their
share is left out. Items that the prior lacks share what it has for its own "other", if it comes of a release; and all
items share a small uniform part, so that no share is 0.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arrays import Floats
from ..errors import AccuracyWarning, InvalidArgument
from ..mechanisms import Adaptive, Costed
from ..results import Other

if TYPE_CHECKING:
    from ..tables import Domain, Rows

__all__ = ["ReadPrior", "read_prior", "smoothed"]

UNIFORM_PART = 0.01
"""Of a prior, divided evenly over all items: it may lack some, and hold others to be rarer than they are."""
FEW = 0.5
"""A prior with less of its weight on public items than this gets a warning."""


@dataclass(frozen=True)
class ReadPrior:
    """A prior in the types of the item columns. listed: weights of items; own: of the rest of a group, by group;
    other: of all other items.
    """

    listed: dict[Any, float]
    own: dict[Any, float]
    other: float

    def check_covers(self, domain: Domain) -> None:
        """Refuse a prior that says nothing of a public domain, and warn of one that says little."""
        inside = sum(self.listed.get(item, 0.0) for item in domain.items)
        whole = sum(self.listed.values())
        if inside == 0:
            raise InvalidArgument(
                "prior: has none of the items of domain. Check the spelling of both, or leave prior out.",
                argument="prior",
            )
        if inside < FEW * whole:
            warnings.warn(
                f"prior: {inside / whole:.0%} of its weight is on items of domain. Check the spelling of both.",
                AccuracyWarning,
                stacklevel=6,  # the caller of `release`, behind `sanitize_errors`
            )

    def over(self, domain: Domain) -> Floats:
        """Positive shares of all that is in the domain, in its order."""
        first = len(domain.items)
        weights = np.zeros(len(domain))
        weights[:first] = [self.listed.get(item, 0.0) for item in domain.items]
        inside, other = set(domain.items), self.other
        if domain.groups:
            places = {group: first + number for number, group in enumerate(domain.groups)}
            left = [(item[0], weight) for item, weight in self.listed.items() if item not in inside]
            for group, weight in (*left, *self.own.items()):
                if group in places:
                    weights[places[group]] += weight
                elif domain.other:
                    other += weight
        elif domain.other:
            other += sum(weight for item, weight in self.listed.items() if item not in inside)
            other += sum(self.own.values())
        lacking = np.flatnonzero(weights == 0)
        if domain.other:
            weights[-1] += other
        elif len(lacking):
            weights[lacking] += other / len(lacking)
        return smoothed(weights)


def read_prior(mechanism: Costed, rows: Rows) -> ReadPrior | None:
    """The prior of a mechanism, if it has one, with items in the types of the item columns. No row is read."""
    from ..tables.kinds import convert
    from ..tables.roles import Role

    prior = mechanism.prior if isinstance(mechanism, Adaptive) else None
    if prior is None:
        return None
    names, types, role = rows.names, rows.item_types, Role("prior")
    listed: dict[Any, float] = {}
    own: dict[Any, float] = {}
    other = 0.0
    for item, weight in zip(prior.items, prior.weights.tolist(), strict=True):
        values = _values(item, names)
        if all(isinstance(value, Other) for value in values):
            other += weight
            continue
        if any(isinstance(value, Other) for value in values):
            group = convert(values[0], types[0], role, names[0])
            own[group] = own.get(group, 0.0) + weight
            continue
        read = tuple(convert(v, t, role, n) for v, t, n in zip(values, types, names, strict=True))
        place = read if len(names) > 1 else read[0]
        listed[place] = listed.get(place, 0.0) + weight
    return ReadPrior(listed, own, other)


def smoothed(weights: Floats) -> Floats:
    """Shares that go with weights, with a small uniform part; uniform ones if all weights are 0."""
    total = float(weights.sum())
    shares = weights / total if total > 0 else np.full(len(weights), 1 / len(weights))
    mixed: Floats = (1 - UNIFORM_PART) * shares + UNIFORM_PART / len(shares)
    return mixed


def _values(item: object, names: Sequence[str]) -> Sequence[object]:
    """The values of an item, one for each column, the groups' first."""
    if len(names) == 1 and not isinstance(item, tuple):
        return (item,)
    if len(names) > 1 and isinstance(item, tuple) and len(item) == len(names):
        return item
    if len(names) > 1 and isinstance(item, Other):
        return (item,) * len(names)
    needed = f"tuples of values of {', '.join(map(repr, names))}" if len(names) > 1 else f"values of {names[0]!r}"
    raise InvalidArgument(f"prior: holds {item!r}, and needs {needed}.", argument="prior")
