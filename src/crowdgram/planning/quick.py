"""A quick estimate: `auto` alone, by a few simulated releases, for pages that ask again while a slider moves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..mechanisms import Weight
from ..privacy import Adjacency, Guarantee
from .expected import Expected, Question, expected_auto, without_privacy
from .figures import check_numbers, shares_of, shown_share
from .shapes import TAIL_PRESETS, TASTE_PRESETS, Preset, Shape, number_of
from .view import percent

__all__ = ["RUNS", "Estimate", "quick_estimate"]

RUNS = 2
"""Simulated releases of one estimate. A plan takes the mean of four at least."""


@dataclass(frozen=True)
class Estimate:
    """share: of the item that `auto.within` is about. auto: what to expect. sampling: the table's own answer."""

    share: float
    auto: Expected
    sampling: Expected

    def sentences(self) -> list[str]:
        """The answer in words."""
        auto, item = self.auto, f"An item of {percent(self.share)}"
        told = "will be known to within" if auto.within < self.share else "will not be told from noise: it is known to"
        noise = " The release will be mostly noise." if auto.l1_error > 0.5 else ""
        return [
            f"{item} {told} {percent(auto.within)}, in 19 of 20 releases.",
            f"About {percent(auto.l1_error / 2)} of the whole is put at the wrong item: half of the l1 error, "
            f"{auto.l1_error:.2g}.{noise}",
        ]


def quick_estimate(
    *,
    users: int,
    rows_per_user: float,
    items: int,
    epsilon: float,
    delta: float = 0.0,
    weight: Weight = "rows",
    tails: Preset | float = "typical",
    tastes: Preset | float = "typical",
    zipf: float = 1.0,
    adjacency: Adjacency | Literal["add-remove", "replace"] = Adjacency.ADD_REMOVE,
    discovery_share: float | None = None,
) -> Estimate:
    """What `plan` says of `auto`, from `RUNS` simulated releases. The arguments are those of `plan`, checked alike.

    discovery_share: the part of the budget that finds the items; None if they are listed.
    """
    guarantee = Guarantee(epsilon, delta, Adjacency.parse(adjacency))
    shares = shares_of(items, zipf)
    check_numbers({"users": users, "rows_per_user": rows_per_user}, "table")
    sigma, taste = number_of("tails", tails, TAIL_PRESETS), number_of("tastes", tastes, TASTE_PRESETS)
    share = shown_share(None, shares)
    asked = Question(Shape(users, rows_per_user, shares, sigma, taste), guarantee, weight, share, discovery_share)
    return Estimate(share, expected_auto(asked, RUNS), without_privacy(asked))
