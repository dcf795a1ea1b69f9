"""A public prior: what is known of the distribution before a table is read."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from ..arrays import Floats
from ..errors import InvalidArgument

__all__ = ["Prior"]


@dataclass(frozen=True, eq=False, repr=False)
class Prior:
    """Items and their weights, as the caller gave them: of any sum, and none below 0.

    It may be wrong: that costs accuracy, and little of it. It has to be public, or released before: the guarantee is
    for what the table is asked, and does not cover what a prior tells of it.
    """

    items: tuple[Any, ...]
    weights: Floats

    def __repr__(self) -> str:
        return f"<prior of {len(self.items)} items>"

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Prior) and self.items == other.items and bool(np.array_equal(self.weights, other.weights))
        )

    def __hash__(self) -> int:
        return hash(self.items)

    @classmethod
    def of(cls, given: object) -> Prior:
        """A mapping of items to weights, or a release, which may be one by groups."""
        if isinstance(given, cls):
            return given
        release = getattr(given, "joint", given)  # of a release by groups
        if hasattr(release, "probabilities") and hasattr(release, "items"):
            return cls(tuple(release.items), np.array(release.probabilities, dtype=np.float64))
        pairs = getattr(given, "items", None)
        if not callable(pairs) or hasattr(given, "columns"):
            raise InvalidArgument(
                f"prior: is a {type(given).__name__}, and needs to be a mapping of items to shares, or a release. Read "
                "a saved release with crowdgram.load.",
                argument="prior",
            )
        return cls.of_pairs(pairs())

    @classmethod
    def of_pairs(cls, pairs: Iterable[tuple[Any, Any]]) -> Prior:
        """From items and their weights, which are checked."""
        found: dict[Any, float] = {}
        for item, weight in pairs:
            if isinstance(weight, bool) or not isinstance(weight, Real) or not 0 <= float(weight) < math.inf:
                raise InvalidArgument(
                    f"prior: has {weight!r} for {item!r}, and needs a number of at least 0 for each item: its share, "
                    "or a count.",
                    argument="prior",
                )
            if item in found:
                raise InvalidArgument(
                    f"prior: has {item!r} more than once, and needs distinct items. Remove the repeats.",
                    argument="prior",
                )
            found[item] = float(weight)
        weights = np.array(list(found.values()), dtype=np.float64)
        if not np.any(weights > 0):
            raise InvalidArgument(
                "prior: needs at least one item with a share above 0. Leave prior out if nothing is known.",
                argument="prior",
            )
        weights /= weights.max()  # so that no sum overflows
        return cls(tuple(found), weights / weights.sum())
