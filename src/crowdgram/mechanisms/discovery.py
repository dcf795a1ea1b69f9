"""Finding the items of a table that has no public domain: private set union in rounds.

Every user spreads a weight of l2 norm 1 over their items, the weights are summed by item, and noise is added. The
first round shares alike. After each round the evidence so far is held against a threshold, which an item of one user
alone passes with a chance that is paid for. An item that passes is found: later noise cannot lose it, and it needs no
more weight. Nor does one that is hopeless; one that needs little gets little; and what is saved goes to the user's
other items.

Reference: Gopi et al., "Differentially Private Set Union" (arXiv 2002.09745), for the weights; Chen, Cohen-Addad,
Epasto and Zadimoghaddam, "Scalable Private Partition Selection via Adaptive Weighting" (arXiv 2502.08878), for
rerouting what popular items do not need and for the bias by a first noisy round. Proof: docs/proofs/discovery.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np

from ..arrays import Booleans, Integers
from ..errors import InvalidArgument
from ..privacy import (
    Found,
    Guarantee,
    Labels,
    Opening,
    Reserve,
    Search,
    SearchRounds,
    Spending,
    ThresholdEvent,
    remaining_mu,
)
from ..privacy.threshold import LEAST_DELTA, lone_threshold
from ..tables import GAIN, SETS_BOUND, UNIT, ItemSets, Rows, WeightedSets, item_sets, largest_part

__all__ = [
    "DEFAULT_SHARE",
    "LOOKS",
    "MOST_ITEMS_OF_A_TABLE",
    "Discover",
    "DiscoveryPlan",
    "discover",
    "look_reserves",
    "open_search",
    "plan_discovery",
    "rehearse",
    "round_sigma",
    "search_sets",
    "thresholds_for",
    "users_needed",
]

Finish = Literal["pure", "gaussian", "either"]

DEFAULT_SHARE = 0.3
"""Part of the budget (of mu^2) for discovery if the caller gives none."""

THRESHOLD_PART = 0.25
"""Of delta, for the threshold: half as much or twice as much moves it by less than 1%."""
PURE_PART = 0.125
"""Of delta, for what a pure finish after Gaussian discovery leaves open, where a mechanism may choose one."""

LOOKS = {"items of users, first look": 0.01, "items of users, second look": 0.02}
"""Parts of epsilon for looks at how many items users have, where what follows may be chosen by them. Set aside, they
cost Gaussian rounds 0.9% of mu^2.
"""

ROUNDS = 8
"""Rounds, each with the same part of the discovery's mu^2. Twelve find up to 4% more items, six up to 3% fewer."""

EARLY = 0.1
"""Of the threshold's chance, for passing before the last round. A half or twice as much moves what is found by 1%."""

MOST_ITEMS = 2**10
"""Items of one user that are weighed; a user with more has as many drawn. The threshold grows with it, slowly."""

MOST_ITEMS_OF_A_TABLE = 2**40
"""A public bound on how many items a table can hold: their number is private."""

GROWTH = 1.4
"""What an item's weight of a round is predicted to grow by, as its users' other items are found or given up."""
SURE = 1.0
"""An item needs to be above the last threshold by this many deviations of the noise to come."""
HOPELESS = 0.25
"""An item is given up if the density of its predicted evidence at the threshold is this part of the highest or less."""


@dataclass(frozen=True)
class Discover:
    """In place of a public list of items or groups: find those that enough users have. "discover" is short for it.

    share: the part of the budget (of mu^2) that finds them. A larger part finds more and measures each less well. It
        has no effect if users turn out to have so few items that one histogram finds and measures them.
    """

    share: float = DEFAULT_SHARE

    def __post_init__(self) -> None:
        given = self.share
        if isinstance(given, bool) or not isinstance(given, (int, float)) or not 0.001 <= given <= 0.999:
            raise InvalidArgument(
                f"share={given!r}: needs to be a number from 0.001 to 0.999, the part of the budget that finds items. "
                f"The default is {DEFAULT_SHARE:g}.",
                argument="share",
            )


@dataclass(frozen=True)
class DiscoveryPlan:
    """What discovery may spend: public values. mu: for its noise. threshold_delta: for its threshold. pure_delta: of
    the rest, for paths that finish purely. looks: whether the way to find items is chosen by a look.
    """

    share: float
    mu: float
    threshold_delta: float
    pure_delta: float
    looks: bool = False


def plan_discovery(
    guarantee: Guarantee,
    share: float | None,
    finish: Finish,
    *,
    looks: bool = False,
    reserves: Sequence[Reserve] = (),
) -> DiscoveryPlan:
    """Divide the budget between discovery and what follows it: "pure" events, "gaussian" ones, or "either".

    `reserves`: beside the looks of `look_reserves`, what is set aside before discovery draws noise.
    """
    share = DEFAULT_SHARE if share is None else share
    threshold_delta = THRESHOLD_PART * guarantee.delta
    if threshold_delta / 2 * EARLY / (ROUNDS - 1) < LEAST_DELTA:
        raise InvalidArgument(
            f"delta={guarantee.delta:g}: is too small to find items in the table with. Try delta=1e-6.",
            argument="delta",
        )
    left = math.nextafter(guarantee.delta - threshold_delta, 0.0)
    pure_delta = {"pure": left, "gaussian": 0.0, "either": PURE_PART * guarantee.delta}[finish]
    for_noise = guarantee
    if finish == "either":
        for_noise = replace(guarantee, delta=math.nextafter(guarantee.delta - pure_delta, 0.0))
    threshold = ThresholdEvent("threshold", threshold_delta)
    mu = math.sqrt(share) * remaining_mu(for_noise, [threshold], MOST_ITEMS_OF_A_TABLE)
    plan = DiscoveryPlan(float(share), mu, threshold_delta, pure_delta, looks)
    # What is reserved counts as spent from the first round on: a large share has to leave it.
    trial = open_search(Spending(for_noise).open(), replace(plan, pure_delta=0.0), reserves)
    return replace(plan, mu=min(mu, trial.remaining_mu(MOST_ITEMS_OF_A_TABLE)))


def open_search(opening: Opening, plan: DiscoveryPlan, reserves: Sequence[Reserve] = ()) -> Search:
    """Record the threshold, before all else, and set looks aside: those of the plan, and `reserves`."""
    looks = look_reserves(opening.guarantee) if plan.looks else []
    return opening.search(
        "threshold for items",
        delta=plan.threshold_delta,
        rounds=ROUNDS,
        mu=_mu(plan),
        pure_delta=plan.pure_delta,
        reserves=[*looks, *reserves],
    )


def look_reserves(guarantee: Guarantee) -> list[Reserve]:
    """What looks at how many items users have may cost."""
    return [Reserve(purpose, UNIT, share * guarantee.epsilon) for purpose, share in LOOKS.items()]


def discover(rows: Rows, search: Search, plan: DiscoveryPlan, most_items: int = MOST_ITEMS) -> tuple[list[Any], Found]:
    """The items that enough users have, in the order of their values.

    Guarantee: the events of ROUNDS Gaussian rounds with mu_t^2 = mu^2 / ROUNDS on vectors of l2 norm at most UNIT a
    user (`WeightedSets`), and of one threshold, whose chance is divided between the rounds. What is returned, and which
    items get which gain, is made of noisy values. Noise is drawn only for items that somebody has; that this shows
    nothing is what the threshold pays for (docs/proofs/discovery.md, Theorem 1). `rows` comes from `tally_rows`.
    """
    sets = item_sets(rows, search.salt(), most_items)
    return search_sets(sets, search, plan, thresholds_for(round_sigma(search, plan), search.chance, most_items))


def search_sets(
    sets: ItemSets,
    search: Search,
    plan: DiscoveryPlan,
    thresholds: Sequence[int],
    statistic: type[WeightedSets] = WeightedSets,
) -> tuple[list[Any], Found]:
    """The rounds of `discover` over users' sets of items, which are dropped; `thresholds`: one after each round."""
    rounds, sigma = search.rounds(), round_sigma(search, plan)
    alive, found = np.arange(sets.items), [np.zeros(0, dtype=np.int64)]
    gains = np.full(sets.items, GAIN)
    evidence = np.zeros(sets.items, dtype=np.int64)
    for number, threshold in enumerate(thresholds, start=1):
        labels = partial(sets.named, alive)  # items are numbered in the order of their values, and named in it
        evidence = _added(evidence, _noisy(rounds, plan, number, _sums(sets, alive, gains, statistic), labels))
        passed = evidence > threshold
        found.append(alive[passed])
        if number < ROUNDS:
            gains, hopeful = _gains(evidence, thresholds[-1], sigma, number)
            kept = hopeful & ~passed
            alive, gains, evidence = alive[kept], gains[kept], evidence[kept]
    named = sets.named(np.concatenate(found))
    sets.drop()
    return named, rounds.end()


def rehearse(opening: Opening, plan: DiscoveryPlan, reserves: Sequence[Reserve] = ()) -> Found:
    """Spend what `discover` will, and set looks aside, without a table: to see beforehand what they leave."""
    if plan.mu <= 0.0:
        raise InvalidArgument(
            f"epsilon={opening.guarantee.epsilon:g}, delta={opening.guarantee.delta:g}: leaves nothing to find items "
            "with. Give a larger epsilon or delta, or a public domain.",
            argument="epsilon",
        )
    rounds = open_search(opening, plan, reserves).rounds()
    for number in range(1, ROUNDS + 1):
        _noisy(rounds, plan, number, np.zeros(0, dtype=np.int64))
    return rounds.end()


def users_needed(search: Search, plan: DiscoveryPlan) -> float:
    """How many users, who have nothing else, an item needs to be found by `discover` as often as not."""
    return thresholds_for(round_sigma(search, plan), search.chance)[-1] / (ROUNDS * UNIT)


def round_sigma(search: Search, plan: DiscoveryPlan) -> float:
    """The noise of a round."""
    return search.gaussian_sigma(UNIT, _mu(plan), non_negative=True)


def thresholds_for(sigma: float, chance: float, most_items: int = MOST_ITEMS) -> list[int]:
    """The threshold after each round, from public values. Their chances sum to `chance`."""
    tops = [largest_part(size) for size in range(1, most_items + 1)]
    return [lone_threshold(tops, number, sigma, part) for number, part in enumerate(chances_of(chance), start=1)]


def chances_of(chance: float) -> list[float]:
    """What each round's threshold may fail with, of `chance`."""
    early = [EARLY * chance / (ROUNDS - 1)] * (ROUNDS - 1)
    return [*early, (1.0 - EARLY) * chance]


def _noisy(
    rounds: SearchRounds,
    plan: DiscoveryPlan,
    number: int,
    sums: Integers,
    labels: Labels | None = None,
) -> Integers:
    noisy, _ = rounds.gaussian(
        f"items, round {number}",
        sums,
        bound=SETS_BOUND.l2,
        mu=_mu(plan),
        non_negative=SETS_BOUND.non_negative,
        dimension=MOST_ITEMS_OF_A_TABLE,
        labels=labels,
    )
    return noisy


def _mu(plan: DiscoveryPlan) -> float:
    return plan.mu / math.sqrt(ROUNDS)


def _sums(sets: ItemSets, alive: Integers, gains: Integers, statistic: type[WeightedSets]) -> Integers:
    everywhere = np.zeros(sets.items, dtype=np.int64)
    everywhere[alive] = gains
    return sets.sum(statistic(everywhere)).values[alive]


def _added(evidence: Integers, noisy: Integers) -> Integers:
    """evidence + noisy, exactly: in unbounded integers if 64 bits may not suffice."""
    if np.all((noisy > -(2**58)) & (noisy < 2**58)) and evidence.dtype == np.int64:
        return evidence + noisy
    exact: Integers = evidence.astype(object) + noisy.astype(object)
    return exact


def _gains(evidence: Integers, threshold: int, sigma: float, rounds: int) -> tuple[Integers, Booleans]:
    """What each item is to get in the next round, relative to the user's other items, and which items to go on with.

    For users who want the most items to pass, the best weights of l2 norm 1 are in proportion to what a little more
    evidence adds to each item's chance: the density of its evidence at the end, at the threshold, taken as normal
    around what the rounds so far predict. Items that are predicted to pass get what they need for it. All of it from
    noisy values.
    """
    so_far, left = evidence.astype(np.float64), ROUNDS - rounds
    noise, to_come = sigma / math.sqrt(rounds), sigma * math.sqrt(left)
    growing = GROWTH * left * so_far / rounds
    short = np.maximum(threshold - so_far - growing, 0.0) / math.hypot(to_come, GROWTH * left * noise)
    density = np.exp(-(short**2) / 2)
    needed = (threshold + SURE * to_come - so_far) / np.maximum(growing, 1.0)
    gain = density * np.clip(needed, 0.0, 1.0)
    return np.maximum(np.rint(gain * GAIN), 1.0).astype(np.int64), density > HOPELESS
