"""Finding the items of a table that has no public domain: private set union in three rounds.

Every user spreads a weight of l2 norm 1 over their items, the weights are summed by item, and noise is added. The
first round shares alike. Later rounds look at the noisy evidence so far: items that are in already, or hopeless, get
nothing, items far above what they need get less, and what is saved goes to the user's other items. At the end the
evidence of all rounds is held against one threshold, which an item of one user alone passes with a chance that is
paid for.

Reference: Gopi et al., "Differentially Private Set Union" (arXiv 2002.09745), for the weights; Chen, Cohen-Addad,
Epasto and Zadimoghaddam, "Scalable Private Partition Selection via Adaptive Weighting" (arXiv 2502.08878), for
rerouting what popular items do not need and for the bias by a first noisy round. Proof: docs/proofs/discovery.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ..errors import InvalidArgument
from ..privacy import Guarantee, Spending, ThresholdEvent, fresh_salt, remaining_mu
from ..privacy.threshold import LEAST_DELTA, lone_threshold
from ..tables import GAIN, UNIT, ItemSets, Rows, item_sets, largest_part

__all__ = [
    "DEFAULT_SHARE",
    "LOOKS",
    "MOST_COORDINATES",
    "DiscoveryPlan",
    "discover",
    "open_discovery",
    "plan_discovery",
    "rehearse",
    "reserve_looks",
    "users_needed",
]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Finish = Literal["pure", "gaussian", "either"]

DEFAULT_SHARE = 0.3
"""Part of the budget (of mu^2) for discovery where the caller names none."""

THRESHOLD_PART = 0.25
"""Of delta, for the threshold: half as much or twice as much moves it by less than 1%."""
PURE_PART = 0.125
"""Of delta, for what a pure finish after Gaussian discovery leaves open, where a mechanism may choose one."""

LOOKS = {"items of users, first look": 0.01, "items of users, second look": 0.02}
"""Parts of epsilon for looks at how many items users have, where what follows may be chosen by them. Set aside, they
cost Gaussian rounds 0.9% of mu^2.
"""

COEFFICIENTS = (3, 5, 12)
"""Each round's share of the discovery's mu^2, in twentieths, and the weight of its evidence in the sum."""

MOST_ITEMS = 2**10
"""Items of one user that are weighed; a user with more has as many drawn. The threshold grows with it, slowly."""

MOST_COORDINATES = 2**40
"""A public bound on how many items a table can hold: their number is private."""

SURE = 1.0
"""An item that needs nothing more must be above the threshold by this many deviations of the noise to come."""
LOW, HOPELESS = 1.5, 0.5
"""Standard deviations of the evidence: an item below the first gets the least gain, below the second it is given up."""
LEAST_GAIN = 0.25


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
    set_aside: Callable[[Spending], None] = lambda _: None,
) -> DiscoveryPlan:
    """Divide the budget between discovery and what follows it: "pure" events, "gaussian" ones, or "either".

    `set_aside` reserves, beside the looks, all that is reserved before discovery draws noise.
    """
    share = DEFAULT_SHARE if share is None else share
    if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0.001 <= share <= 0.999:
        raise InvalidArgument(
            f"discovery_share={share!r}: needs to be a number from 0.001 to 0.999, the part of the budget that buys "
            f"the list of items. The default is {DEFAULT_SHARE:g}."
        )
    threshold_delta = THRESHOLD_PART * guarantee.delta
    if threshold_delta / 2 < LEAST_DELTA:
        raise InvalidArgument(
            f"delta={guarantee.delta:g} is too small to find items in the table with. Try delta=1e-6."
        )
    left = math.nextafter(guarantee.delta - threshold_delta, 0.0)
    pure_delta = {"pure": left, "gaussian": 0.0, "either": PURE_PART * guarantee.delta}[finish]
    for_noise = guarantee
    if finish == "either":
        for_noise = replace(guarantee, delta=math.nextafter(guarantee.delta - pure_delta, 0.0))
    threshold = ThresholdEvent("threshold", threshold_delta)
    mu = math.sqrt(share) * remaining_mu(for_noise, [threshold], MOST_COORDINATES)
    plan = DiscoveryPlan(float(share), mu, threshold_delta, pure_delta, looks)
    if looks:
        # What is reserved counts as spent from the first round on: a large share has to leave it.
        trial = Spending(for_noise)
        open_discovery(trial, plan)
        reserve_looks(trial)
        set_aside(trial)
        plan = replace(plan, mu=min(mu, trial.remaining_mu(MOST_COORDINATES)))
    return plan


def open_discovery(spending: Spending, plan: DiscoveryPlan) -> float:
    """Record the threshold, before all else; the chance that what one user alone has may pass it with."""
    return spending.threshold("threshold for items", delta=plan.threshold_delta)


def reserve_looks(spending: Spending) -> None:
    """Set aside what looks at how many items users have may cost."""
    for purpose, share in LOOKS.items():
        spending.reserve(purpose, bound=UNIT, epsilon=share * spending.guarantee.epsilon)


def discover(rows: Rows, spending: Spending, plan: DiscoveryPlan, chance: float) -> list[Any]:
    """The items that enough users have, in the order of their values.

    Guarantee: the events of three Gaussian rounds with mu_t^2 = a_t/20 mu^2, a = COEFFICIENTS, on vectors of l2 norm at
    most UNIT a user (`ItemSets.sum`), and of one threshold. What is returned, and which items get which gain, is made
    of noisy values. Noise is drawn only for items that somebody has; that this shows nothing is what the threshold
    pays for (docs/proofs/discovery.md, Theorem 1). `rows` comes from `tally_rows`, `chance` from `open_discovery`; the
    caller ends the opening.
    """
    sets = item_sets(rows, fresh_salt(), MOST_ITEMS)
    alive = np.arange(sets.items)
    gains = np.full(sets.items, GAIN)
    evidence = np.zeros(sets.items, dtype=np.int64)
    sigmas, threshold = _threshold(spending, plan, chance)
    for number, part in enumerate(COEFFICIENTS, start=1):
        evidence = _added(evidence, part, _noisy(spending, plan, number, _sums(sets, alive, gains)))
        if number < len(COEFFICIENTS):
            gains, hopeful = _gains(evidence, threshold, sigmas, number)
            alive, gains, evidence = alive[hopeful], gains[hopeful], evidence[hopeful]
    found = sets.named(alive[evidence > threshold])
    sets.drop()
    return found


def rehearse(spending: Spending, plan: DiscoveryPlan) -> None:
    """Spend what `discover` will, and set aside a look, without a table: to see beforehand what they leave."""
    if plan.mu <= 0.0:
        raise InvalidArgument(
            f"epsilon={spending.guarantee.epsilon:g}, delta={spending.guarantee.delta:g} leaves nothing to find items "
            "with. Give a larger epsilon or delta, or a public domain."
        )
    open_discovery(spending, plan)
    if plan.looks:
        reserve_looks(spending)
    for number in range(1, len(COEFFICIENTS) + 1):
        _noisy(spending, plan, number, np.zeros(0, dtype=np.int64))
    spending.end_opening(pure_delta=plan.pure_delta)


def users_needed(spending: Spending, plan: DiscoveryPlan, chance: float) -> float:
    """How many users, who have nothing else, an item needs to be found by `discover` as often as not."""
    return _threshold(spending, plan, chance)[1] / (sum(COEFFICIENTS) * UNIT)


def _threshold(spending: Spending, plan: DiscoveryPlan, chance: float) -> tuple[list[float], int]:
    """The noise of each round, and the threshold, from public values."""
    sigmas = [spending.gaussian_sigma(UNIT, _mu(plan, part), non_negative=True) for part in COEFFICIENTS]
    tops = [sum(COEFFICIENTS) * largest_part(size) for size in range(1, MOST_ITEMS + 1)]
    return sigmas, lone_threshold(tops, COEFFICIENTS, sigmas, chance)


def _noisy(spending: Spending, plan: DiscoveryPlan, number: int, sums: Integers) -> Integers:
    noisy, _ = spending.gaussian(
        f"items, round {number}",
        sums,
        bound=UNIT,
        mu=_mu(plan, COEFFICIENTS[number - 1]),
        non_negative=True,
        dimension=MOST_COORDINATES,
    )
    return noisy


def _mu(plan: DiscoveryPlan, part: int) -> float:
    return plan.mu * math.sqrt(part / sum(COEFFICIENTS))


def _sums(sets: ItemSets, alive: Integers, gains: Integers) -> Integers:
    everywhere = np.zeros(sets.items, dtype=np.int64)
    everywhere[alive] = gains
    return sets.sum(everywhere)[alive]


def _added(evidence: Integers, part: int, noisy: Integers) -> Integers:
    """evidence + part noisy, exactly: in unbounded integers where 64 bits may not do."""
    if np.all((noisy > -(2**58)) & (noisy < 2**58)) and evidence.dtype == np.int64:
        return evidence + part * noisy
    exact: Integers = evidence.astype(object) + part * noisy.astype(object)
    return exact


def _gains(
    evidence: Integers, threshold: int, sigmas: list[float], rounds: int
) -> tuple[Integers, npt.NDArray[np.bool_]]:
    """What each item is to get in the next round, relative to the user's other items, and which items to go on with.

    An item whose users gave it the mean weight w so far, and that needs w' in the rounds to come, gets w'/w of a full
    gain. All of it from noisy values.
    """
    noise = [part * sigma for part, sigma in zip(COEFFICIENTS, sigmas, strict=True)]
    spent, left = sum(COEFFICIENTS[:rounds]), sum(COEFFICIENTS[rounds:])
    so_far = evidence.astype(np.float64)
    weight = so_far / (spent * UNIT)
    deviation = math.hypot(*noise[:rounds]) / (spent * UNIT)
    needed = (threshold + SURE * math.hypot(*noise[rounds:]) - so_far) / (left * UNIT)
    gain = np.clip(needed / np.maximum(weight, 1e-9), LEAST_GAIN, 1.0)
    gain = np.where(weight < LOW * deviation, LEAST_GAIN, gain)
    gain = np.where(needed <= 0, 0.0, gain)
    return np.rint(gain * GAIN).astype(np.int64), (weight >= HOPELESS * deviation) | (needed <= 0)
