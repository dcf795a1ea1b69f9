"""Users with one item or a few: one noisy histogram is both the list of items and what is said of them.

Gaussian rounds (`discovery`) suit users who have many items. If users have one or a few, plain Laplace noise needs
far fewer of them to tell an item from one that a single user has. And then nothing need be kept for a second
measurement: what passes the threshold has been measured already. A small rest of the budget measures what did not.

Which of the two suits a table is decided by a look at how many items users have, two noisy numbers for a small part of
the budget. Proof: docs/proofs/discovery.md, Theorem 6.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..arrays import Floats
from ..privacy import Looks, PureFinish, Search
from ..privacy.threshold import lone_laplace_threshold
from ..tables import UNIT, CappedRows, Counts, RootOfItems, Rows, UserTotals, held_items
from .discovery import LOOKS, MOST_ITEMS_OF_A_TABLE
from .estimate import CONFIDENCE, Divisor, Estimate, Total, combine, spread_bias
from .measurements import inverse_variance_mean
from .pilot_queries import RowHistogram
from .row_bound import Disagreement, bias_of
from .shrink import shrink
from .simplex import project

__all__ = [
    "HistogramItems",
    "ItemsPerUser",
    "RowWeights",
    "choose_row_weights",
    "estimate_from_histogram",
    "find_by_histogram",
    "query_items_per_user",
    "users_needed_by_histogram",
]

FURTHEST = 16
"""Users with more items count as having as many: they are not what the look is for."""
USERS_SEEN, USERS_SEEN_WELL = 2.5, 10.0
"""Standard deviations of its noise that the number of users must exceed to count, and for a first look to do."""

REST, REST_LEAST, REST_MOST = 3.0, 0.005, 0.1
"""The part of epsilon for what is not listed: REST / sqrt(epsilon users), within these bounds. Its noise is then about
as much as what a higher threshold misses, if a histogram of s users finds about epsilon s / 150 items.
"""

MOST_HELD, NEARLY_ALONE = 4, 2
"""Items of one user that are in the histogram; who has more draws among them. Each might be a lone item, so the
threshold is a little lower if fewer are allowed.
"""
ROOT_ALONE = 1.25
"""Users with a mean root below this mostly have one item, and few have more than NEARLY_ALONE."""

MISSED_BY_HALVING = 0.1
"""What is missed more, of 1, if users weigh half as much and an item needs twice as many of them."""


@dataclass(frozen=True)
class ItemsPerUser:
    """What a look showed: about how many users, and the mean over them of sqrt(items). Noisy values. error: the
    standard deviation of the number of users.
    """

    users: float
    root: float
    error: float = 0.0

    @property
    def most(self) -> int:
        """How many items of one user to hold."""
        return NEARLY_ALONE if self.root < ROOT_ALONE else MOST_HELD

    @property
    def drawing(self) -> float:
        """The variance that drawing `most` items of each user with more adds to an item's number of users, over that
        number.

        Formula: E[max(1 - most/d, 0)] / most, where: d, the items of a user, is geometric, with the mean of sqrt(d)
        that was seen. An item that is held of d even ones counts 1/most instead of 1/d, with the chance most/d.
        """
        d, continued = np.arange(1, 100), np.linspace(0.0, 0.9, 91)
        chances = (1 - continued[:, None]) * continued[:, None] ** (d - 1)
        variances = chances @ np.maximum(1 - self.most / d, 0.0) / self.most
        return float(np.interp(self.root, chances @ np.sqrt(np.minimum(d, FURTHEST)), variances))


@dataclass(frozen=True)
class RowWeights:
    """How users weigh: min(rows / row_cap, 1), which is `mass` in the mean. bias: predicted, of the answer by rows, in
    l1. users: how many of them the rows were seen of. unseen: users by rows if that shows nothing. Noisy values.
    """

    row_cap: int = 1
    mass: float = 1.0
    bias: float = 0.0
    users: float = 0.0
    unseen: RowHistogram | None = None

    @property
    def parameters(self) -> dict[str, int]:
        return {"max_rows_per_user": self.row_cap}


@dataclass(frozen=True)
class HistogramItems:
    """What passed the threshold, with its noisy sums: noisy values. scale: of their noise. weights: by rows; None if
    users weigh the same. look: how many items users have.
    """

    sums: dict[Any, int]
    scale: float
    threshold: int
    weights: RowWeights | None
    look: ItemsPerUser

    @property
    def items(self) -> list[Any]:
        return list(self.sums)


def query_items_per_user(held: UserTotals, spending: Looks) -> ItemsPerUser | None:
    """How many users there are, and the mean over them of sqrt(d_u), d_u their number of items, at most FURTHEST; None
    if too few are seen. A second query is made if the first shows too little.

    Guarantee: Laplace noise on `RootOfItems`, two non-negative integers that sum to UNIT for each user, in each look.
    """
    sums = held.sum(RootOfItems(FURTHEST))
    furthest = math.sqrt(FURTHEST) - 1
    seen, deviation = np.zeros(2), math.inf  # what was seen, and the deviation of its sum
    for purpose, share in LOOKS.items():
        epsilon = share * spending.guarantee.epsilon
        noisy, event = spending.laplace(purpose, sums.values, bound=sums.bound.l1, epsilon=epsilon)
        seen, deviation = inverse_variance_mean(seen, deviation, noisy / UNIT, 2 * event.scale / UNIT)
        if seen.sum() > USERS_SEEN_WELL * deviation:
            break
    users = float(seen.sum())
    if users < USERS_SEEN * deviation:
        return None
    return ItemsPerUser(users, 1 + furthest * min(max(float(seen[0]) / users, 0.0), 1.0), deviation)


def users_needed_by_histogram(search: Search, look: ItemsPerUser, weights: RowWeights | None) -> float:
    """How many users, who have nothing else, an item needs to be found by `find_by_histogram` as often as not."""
    scale = search.laplace_scale(UNIT, _for_list(search, look))
    needed = lone_laplace_threshold(UNIT, look.most, scale, search.chance) / UNIT
    return needed if weights is None else needed / weights.mass


def choose_row_weights(seen: RowHistogram) -> RowWeights:
    """The row cap for one histogram, from noisy numbers of users by rows: small enough that users count fully, and
    large enough that those with more rows count for more. If rows cannot be seen, all users weigh the same.
    """
    crowds = seen.crowds
    if crowds is None:
        return RowWeights(unseen=seen)
    users, disagreement = crowds.typical, Disagreement.prior().root_mean_square
    caps = np.array(seen.edges(), dtype=np.float64)
    masses = np.minimum(crowds.sizes / caps[:, None], 1.0) @ users / users.sum()
    moved, strange = bias_of(crowds, caps)
    biases = crowds.weights @ (disagreement * moved + strange)
    best = int(np.argmin(MISSED_BY_HALVING / masses + biases))
    return RowWeights(seen.edges()[best], float(masses[best]), float(biases[best]), float(users.sum()))


def find_by_histogram(
    rows: Rows, search: Search, look: ItemsPerUser, weights: RowWeights | None
) -> tuple[HistogramItems, PureFinish]:
    """Find items, and measure them, by one histogram of users, whose weights of at most 1 are spread as their rows are.

    Guarantee: Laplace noise on sums that move by UNIT in l1 for each user (`HeldItems.sum`), drawn only for items that
    somebody holds; that this shows nothing is what the threshold pays for, as a user holds at most `look.most` of them.
    `rows` comes from `tally_rows`. A pure finish begins here, and `estimate_from_histogram` goes on with it.
    """
    spending = search.finish_purely()
    held = held_items(rows, spending.salt(), look.most)
    epsilon = _for_list(spending, look)
    places, sums = held.sum(_row_cap(weights))
    noisy, event = spending.laplace(
        "users by item",
        sums.values,
        bound=sums.bound.l1,
        epsilon=epsilon,
        dimension=MOST_ITEMS_OF_A_TABLE,
        labels=lambda: list(held.named(places)),
    )
    threshold = lone_laplace_threshold(UNIT, look.most, event.scale, search.chance)
    passed = noisy > threshold
    value = dict(zip(places[passed].tolist(), noisy[passed].tolist(), strict=True))
    named = held.named(places[passed])
    held.drop()
    listed = {item: value[place] for item, place in named.items()}
    return HistogramItems(listed, event.scale, threshold, weights, look), spending


def estimate_from_histogram(
    measured: HistogramItems,
    items: Sequence[Any],
    counts: Counts,
    spending: PureFinish,
    prior: Floats | None = None,
) -> Estimate:
    """The distribution over `items`, which were found, and what follows them in the domain, which is measured now.

    Guarantee: Laplace noise, with all of epsilon that is left, on entries of `CappedRows`, of l1 norm at most UNIT a
    user. Everything else is made of noisy values.

    An item that passed by less than its noise may owe that to the noise, and nothing says how much of it is real: its
    interval begins at 0. prior: a public one, for shrinkage.
    """
    counted = counts.sum(CappedRows(_row_cap(measured.weights)))
    rest = counted.values[len(items) :]
    others, event = spending.laplace("other items", rest, bound=counted.bound.l1, epsilon=spending.remaining_epsilon())
    listed = np.array([measured.sums[item] for item in items], dtype=np.float64)
    sums = np.concatenate([listed, others.astype(np.float64)])
    scales = np.concatenate([np.full(len(items), measured.scale), np.full(len(rest), event.scale)])
    total = max(float(sums.sum()), float(np.sqrt(2 * (scales**2).sum())))
    raw, deviations = sums / total, math.sqrt(2) * scales / total
    shrunk = shrink(raw, deviations, "laplace", prior)
    shares, weights = project(shrunk.means), measured.weights or RowWeights()
    drawn = np.sqrt(measured.look.drawing * shares / max(total / UNIT, 1.0))
    made = combine(
        raw=raw,
        noise=deviations,
        shrunk=shrunk,
        bias=np.hypot(spread_bias(weights.bias, shares), drawn),
        shape="laplace",
        divisor=Divisor(own=1.0),
        sampling_variance=float((shares * (1 - shares)).sum()) / max(total / UNIT, 1.0),  # users of one item: the most
        parameters={"branch": "histogram", **({} if measured.weights is None else measured.weights.parameters)},
    )
    barely = np.zeros(len(raw), dtype=bool)
    barely[: len(items)] = listed < measured.threshold - measured.scale * math.log(1 - CONFIDENCE)
    cap = _row_cap(measured.weights)
    return replace(
        made,
        lower=np.where(barely, 0.0, made.lower),
        total=Total(total * cap / UNIT, row_bound=cap, biased=True),
        users=(measured.look.users, measured.look.error) if cap > 1 else None,
    )


def _for_list(spending: Search | PureFinish, look: ItemsPerUser) -> float:
    """What is left of epsilon, less what is kept for the items that will not be listed."""
    epsilon = spending.guarantee.epsilon
    rest = REST / math.sqrt(epsilon * look.users)
    return spending.remaining_epsilon() - min(max(rest, REST_LEAST), REST_MOST) * epsilon


def _row_cap(weights: RowWeights | None) -> int:
    return 1 if weights is None else weights.row_cap
