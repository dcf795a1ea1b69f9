"""Reach: how many users have each item, by plain noise on bounded sums, whose bound and noise are chosen privately.

A user with d items is scaled down to a bound L on items: to L / d of a weight in l1, for Laplace noise of scale L /
epsilon, or to sqrt(L / d) in l2, for Gaussian noise that grows as sqrt(L). What that takes off an item is a bias, and
its size is measured by the same noise (`tables.ItemReach`): *missing* is what an item loses that all users have. L and
the noise are chosen by predicted error, from noisy numbers of users by items.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..arrays import Floats, Integers
from ..privacy import Cost, Guarantee, LaplaceEvent, Looks, Ready, Reserve
from ..stages import Stage
from ..tables import BOOKS, FAR, MOST_ITEMS_PER_USER, UNIT, ItemReach, Norm, Presence, UsersByItems
from .costs import gaussian_way, items_between, pure_way
from .discovery import Finish
from .item_sizes import crowds_of_items
from .mechanism import PURE_LEAST, Searching, check_whole
from .noisy_bins import Bins
from .pilot_queries import HISTOGRAM_UNIT, PilotQuery, looked_for
from .reach_estimate import ReachEstimate, Taken, estimate_reach
from .request import Request

__all__ = ["ItemUsers"]

FIRST = PilotQuery("users by items, first look", 0.01, HISTOGRAM_UNIT, grows=3.0, power=0.5)
SECOND = PilotQuery("users by items, second look", 0.05, HISTOGRAM_UNIT, grows=1.6, power=0.2)
"""Larger if items are few: a wrong bound is dearer beside the noise, and Gaussian noise, which pays for what is
reserved, is seldom the best.
"""

RESIDUAL = 0.6
"""What is left of the bias in l1 after what is added back, for the choice."""
LIGHT_BOOKS, LEAST_BOOKS, MOST_BOOKS = 0.5, 0.02, 0.05
"""Of UNIT, for the books in l1: LIGHT_BOOKS / bound, within these limits. They then have about the noise of items."""
SQUARE_BOOKS = 0.15
"""Of UNIT, for the books in l2: costs items a hundredth."""
WHOLE = 1.05
"""No bound is taken if its predicted error is at most this factor above the least: intervals then need no allowance."""
PARTS = 3
"""Points that a bin's users are spread over."""
MOST_BOUNDS = 48
SMALL_BOUNDS = 12


@dataclass(frozen=True)
class ItemUsers(Searching):
    """Users by item, by Laplace or Gaussian noise, whichever is predicted to err less.

    max_items_per_user: the bound L; by default it is found privately.

    Guarantee: looks are reserved by public values before the table is looked at. The noise and the bound are chosen
    from their noisy outcomes. Gaussian noise has what the looks have left, and Laplace noise what is left of epsilon:
    Theorem 7 in docs/proofs/accounting.md. `ItemReach` moves by UNIT (add-remove), by 2 UNIT in l1 or by sqrt(2) UNIT
    in l2 (replace).
    """

    name = "reach"
    finish: ClassVar[Finish] = "either"
    weights = ("users",)
    max_items_per_user: int | None = None

    def __post_init__(self) -> None:
        check_whole("max_items_per_user", self.max_items_per_user, MOST_ITEMS_PER_USER)

    def reserves(self, guarantee: Guarantee, _: Request, items: int | None) -> list[Reserve]:
        if self.max_items_per_user is not None:
            return []
        return [look.reserve(guarantee, items) for look in (FIRST, SECOND)]

    def ways(self, trial: Looks, items: int | None) -> Sequence[Cost]:
        fewest, most = items_between(items)
        fewest, most = fewest + BOOKS["l2"], 2 * most + BOOKS["l2"]  # there are no more groups than items
        gaussian = [gaussian_way(trial, fewest, most)] if trial.guarantee.delta > 0.0 else []
        return [*([pure_way(trial)] if _may_finish_purely(trial) else []), *gaussian]

    def run(self, presence: Presence, budget: Ready, request: Request, /) -> ReachEstimate:
        looks = budget.looks(self.reserves(budget.guarantee, request, looked_for(presence.items, request)))
        request.report(Stage.BOUNDING)
        chosen, taken = self._choose(presence, looks, request)
        request.report(Stage.SUMMING)
        sums = presence.sum(chosen)
        request.report(Stage.NOISE)
        if chosen.norm == "l1":
            pure = looks.finish_purely()
            noisy, event = pure.laplace(
                "users by item", sums.values, bound=sums.bound.l1, epsilon=pure.remaining_epsilon()
            )
            return estimate_reach(noisy, chosen, taken, _deviation(event), "laplace", presence.items)
        rounds = looks.rounds()
        noisy, normal = rounds.gaussian(
            "users by item",
            sums.values,
            bound=sums.bound.l2,
            mu=rounds.remaining_mu(len(sums.values)),
            non_negative=sums.bound.non_negative,
        )
        return estimate_reach(noisy, chosen, taken, normal.sigma, "gaussian", presence.items)

    def _choose(self, presence: Presence, looks: Looks, request: Request) -> tuple[ItemReach, Taken | None]:
        """The sums to ask for, and what their bound is expected to take off all items, if there was a look."""
        items, group_of, looked = presence.items, request.group_of, looked_for(presence.items, request)
        if self.max_items_per_user is not None or items == 1:
            bound = min(self.max_items_per_user or 1, items)
            return min(_candidates(looks, items, [bound], group_of), key=lambda one: one.noise).sums, None
        edges = _edges(items)
        histogram = presence.sum(UsersByItems(edges)).values
        found = _histogram(histogram, looks, FIRST.purpose, FIRST.most(looked), edges)
        prices = _prices(found, looks, items, group_of)
        # Gaussian noise pays little for a look, a fiftieth of mu; after a search, it has paid already.
        if prices.chosen.sums.norm == "l2" or prices.worth_knowing > SECOND.most(looked) * prices.noise:
            found += _histogram(histogram, looks, SECOND.purpose, SECOND.most(looked), edges)
            prices = _prices(found, looks, items, group_of)
        return prices.chosen.sums, prices.taken


def _edges(items: int) -> list[int]:
    """1, 2, 3, 5, 8, 13, ..., and all items by themselves: a bound need not be known better, and more bins hold fewer
    users in the same noise.
    """
    edges, after = [1], 2
    while after < items - 1:
        edges.append(after)
        after += edges[-2]
    return sorted({*edges, max(items - 1, 1), items})


def _may_finish_purely(looks: Looks) -> bool:
    """Whether enough of epsilon is left for Laplace noise: not after a search for items that took most of it."""
    return looks.guarantee.delta == 0.0 or looks.remaining_epsilon() >= PURE_LEAST * looks.guarantee.epsilon


def _deviation(event: LaplaceEvent) -> float:
    return math.sqrt(2) * event.scale


def _histogram(histogram: Integers, looks: Looks, purpose: str, part: float, edges: Sequence[int]) -> Bins:
    """A noisy histogram. A user is in one bin."""
    noisy, event = looks.laplace(
        purpose, histogram * HISTOGRAM_UNIT, bound=HISTOGRAM_UNIT, epsilon=part * looks.guarantee.epsilon
    )
    deviation = _deviation(event) / HISTOGRAM_UNIT
    return Bins(noisy / HISTOGRAM_UNIT, np.full(len(edges), deviation), np.array(edges, dtype=np.float64), laplace=True)


# --- the choice of the bound and the noise


@dataclass(frozen=True)
class _Candidate:
    """Sums that may be asked for, and the l1 noise of all items that they would have, in users. whole: whether they
    leave nothing out.
    """

    sums: ItemReach
    noise: float
    whole: bool


@dataclass(frozen=True, eq=False)
class _Prices:
    """A row for each crowd that is possible, with its weight, and a column for each candidate: predicted l1 errors, and
    what the bound takes off all items.
    """

    candidates: Sequence[_Candidate]
    weights: Floats
    errors: Floats
    taken_off: Floats
    users: Floats
    sizes: Floats

    @property
    def place(self) -> int:
        """Of the candidate that is chosen."""
        expected = self.weights @ self.errors
        favoured = np.array([one.whole for one in self.candidates]) & (expected <= WHOLE * expected.min())
        return int(np.argmin(np.where(favoured, expected, np.inf) if favoured.any() else expected))

    @property
    def chosen(self) -> _Candidate:
        return self.candidates[self.place]

    @property
    def noise(self) -> float:
        return self.chosen.noise

    @property
    def taken(self) -> Taken:
        sums = self.chosen.sums
        lack, far = 1 - _weights(sums, self.sizes), self.sizes > FAR * sums.bound_on_items
        near = self.users @ np.where(far, 0.0, lack), self.users @ np.where(far, lack, 0.0)
        return Taken(self.weights, self.taken_off[:, self.place], *near)

    @property
    def worth_knowing(self) -> float:
        """What knowing the crowd exactly would save."""
        return float((self.weights @ self.errors).min() - self.weights @ self.errors.min(axis=1))


def _candidates(looks: Looks, items: int, bounds: Sequence[int], group_of: tuple[int, ...]) -> list[_Candidate]:
    """Both noises with each bound, as far as the budget allows them."""
    found = []
    if _may_finish_purely(looks):
        scale = looks.laplace_scale(UNIT, looks.remaining_epsilon())
        found += [
            _Candidate(one, items * scale / one.full_weight, one.bound_on_items >= items)
            for one in _sums(bounds, items, "l1", group_of)
        ]
    if looks.guarantee.delta > 0.0:
        sigma = looks.gaussian_sigma(
            UNIT, looks.remaining_mu(items + max(group_of, default=-1) + 1 + BOOKS["l2"]), non_negative=True
        )
        mean = math.sqrt(2 / math.pi) * sigma
        found += [
            _Candidate(one, items * mean / one.full_weight, one.bound_on_items >= items)
            for one in _sums(bounds, items, "l2", group_of)
        ]
    return found


def _sums(bounds: Sequence[int], items: int, norm: Norm, group_of: tuple[int, ...]) -> list[ItemReach]:
    return [ItemReach(bound, norm, round(_books(bound, items, norm) * UNIT), group_of) for bound in bounds]


def _books(bound: int, items: int, norm: Norm) -> float:
    if norm == "l2":
        return SQUARE_BOOKS
    return 0.0 if bound >= items else min(max(LIGHT_BOOKS / bound, LEAST_BOOKS), MOST_BOOKS)


def _prices(seen: Bins, looks: Looks, items: int, group_of: tuple[int, ...]) -> _Prices:
    """The predicted error of each candidate: sqrt(n^2 + (RESIDUAL b)^2), with n = noise h / (noise + h).

    where: b = sum_u (1 - w_u) d_u is what the bound takes of all users' items; h = k + noise / sqrt(items), with k =
    sum_u w_u d_u what it keeps, and the noise of the sum of all. Noise counts for h at most, because shrinkage makes
    an item zero that is lost in it.
    """
    crowds = crowds_of_items(seen, items)
    users, sizes = np.repeat(crowds.users / PARTS, PARTS, axis=1), crowds.points(PARTS)
    geometric = np.rint(np.geomspace(1, items, MOST_BOUNDS)).astype(int).tolist()
    bounds = sorted({min(one, items) for one in (*geometric, *range(1, SMALL_BOUNDS + 1), items)})
    candidates = _candidates(looks, items, bounds, group_of)
    weights = np.stack([_weights(one.sums, sizes) for one in candidates], axis=1)
    kept, lack = users @ (sizes[:, None] * weights), sizes[:, None] * (1 - weights)
    taken = np.hypot(
        users @ lack, np.sqrt(crowds.deviations**2 @ lack.reshape(-1, PARTS, lack.shape[1]).mean(axis=1) ** 2)
    )
    noise = np.array([one.noise for one in candidates])
    hidden = kept + noise / math.sqrt(items)
    errors = np.hypot(noise * hidden / (noise + hidden), RESIDUAL * taken)
    return _Prices(candidates, crowds.weights, errors, taken, users, sizes)


def _weights(sums: ItemReach, sizes: Floats) -> Floats:
    """W_u / W of users with so many items."""
    part: Floats = np.minimum(1.0, sums.bound_on_items / sizes)
    return part if sums.norm == "l1" else np.sqrt(part)
