"""The attack: a mechanism against its claim, on every pair of tables, from both sides."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import product

from scipy import special

from ..errors import AccuracyWarning, InvalidArgument
from ..mechanisms import Mechanism, Request, Weight
from ..paper import Paper
from ..privacy import Adjacency, Guarantee
from ..privacy.gaussian import gaussian_epsilon
from ..releases.registry import MECHANISMS
from .bounds import epsilon_from_losses
from .draws import Path, Tilt
from .paired_execution import Attacked, follow, on_counts
from .pairs import Tables, open_tables, pairs_for

__all__ = ["ATTACKED", "Case", "Finding", "attack", "cases", "check_effort"]

ATTACKED: dict[str, Mechanism] = {**{name: kind() for name, kind in MECHANISMS.items()}, "paper-tight": Paper("tight")}
"""What can be attacked by name: every mechanism of a release."""

PILOT = 4
"""Runs that choose the tilt; they take no part in the bound."""

LOSS_ROUNDING = 1e-9
"""Relative: what rounding may add to a loss that is summed in doubles."""


@dataclass(frozen=True)
class Case:
    """A mechanism, or a whole release, with all that its claim depends on.

    pairs: the tables to attack it on; None for those of every mechanism.
    """

    name: str
    mechanism: Attacked
    weight: Weight
    claim: Guarantee
    pairs: tuple[Tables, ...] | None = None

    @property
    def request(self) -> Request:
        return Request(weight=self.weight, max_rows_per_user=None, report=lambda _: None)


@dataclass(frozen=True)
class Finding:
    """What an attack found. epsilon: at least this, at the claim's delta, with `confidence`. where: the pair of tables
    that showed it, and how. runs: how many pairs of runs were made in all.
    """

    name: str
    weight: str
    claim: Guarantee
    epsilon: float
    confidence: float
    where: str
    how: str
    runs: int

    @property
    def refuted(self) -> bool:
        return self.epsilon > self.claim.epsilon * (1 + LOSS_ROUNDING)


def cases(
    epsilon: float,
    delta: float,
    *,
    mechanisms: Iterable[str] | None = None,
    weights: Iterable[Weight] = ("rows", "users"),
    adjacencies: Iterable[Adjacency] = tuple(Adjacency),
) -> Iterator[Case]:
    """Every mechanism with every weight and adjacency, or those that are named."""
    for name in ATTACKED if mechanisms is None else mechanisms:
        if name not in ATTACKED:
            raise InvalidArgument(
                f"mechanism={name!r}: needs to be one of {', '.join(map(repr, ATTACKED))}.", argument="mechanism"
            )
        mechanism = ATTACKED[name]
        for weight, adjacency in product(weights, adjacencies):
            offered = Guarantee(epsilon, delta, adjacency)
            try:
                mechanism.check(offered, weight)
            except InvalidArgument:
                if mechanisms is None:  # of all mechanisms, those that can serve this
                    continue
                raise
            yield Case(name, on_counts(mechanism.run), weight, mechanism.promised(offered))


def check_effort(runs: int, confidence: float) -> None:
    """Refuse what no attack can be made with."""
    if runs < 1:
        raise InvalidArgument(f"runs={runs}: needs to be at least 1.", argument="runs")
    if not 0.5 <= confidence < 1:
        raise InvalidArgument(f"confidence={confidence}: needs to be at least 0.5 and below 1.", argument="confidence")


def attack(
    case: Case,
    *,
    runs: int = 60,
    confidence: float = 0.99,
    pairs: Iterable[Tables] | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> Finding:
    """Attack `case` on every pair of tables, from both sides, with `runs` runs each.

    Guarantee of the attack: with probability `confidence` at least, no epsilon below `Finding.epsilon` holds at the
    claim's delta for all that the mechanism draws and returns. Every pair and side has its part of the doubt. It ends
    once no epsilon at all can hold.
    """
    check_effort(runs, confidence)
    chosen = tuple(_pairs(case) if pairs is None else pairs)
    doubt = (1 - confidence) / (2 * len(chosen))
    pilot = min(PILOT, runs // 2)
    best, where, how, made = 0.0, chosen[0].name, "nothing found", 0
    for pair in chosen:
        if math.isinf(best):
            break
        progress(pair.name)
        with open_tables(pair) as (first, second), warnings.catch_warnings():
            warnings.simplefilter("ignore", AccuracyWarning)
            for tables in ((first, second), (second, first)):
                if math.isinf(best):
                    break
                made += pilot + runs
                tilt = _tilt(case, [follow(case.mechanism, tables, case.claim, case.request) for _ in range(pilot)])
                paths = [follow(case.mechanism, tables, case.claim, case.request, tilt) for _ in range(runs)]
                found = epsilon_from_losses(
                    [path.loss for path in paths], [path.log_weight for path in paths], case.claim.delta, doubt
                )
                if found > best:
                    best, where, how = found, pair.name, _how(paths)
    return Finding(case.name, case.weight, case.claim, best, confidence, where, how, made)


def _pairs(case: Case) -> tuple[Tables, ...]:
    return pairs_for(case.claim.adjacency) if case.pairs is None else case.pairs


def _tilt(case: Case, pilot: list[Path]) -> Tilt:
    """Shared: makes losses near the epsilon which the pilot's distances suggest common, epsilon/mu^2 - 1/2. Lone: lifts
    an item to where one of n passes with chance delta, if every draw counts by its precision.
    """
    delta = case.claim.delta
    paths = [path for path in pilot if path.parted is None]
    if delta == 0.0 or not paths:
        return Tilt()
    square = sum(path.squared_mu for path in paths) / len(paths)
    shared = max(0.0, gaussian_epsilon(math.sqrt(square), delta) / square - 0.5) if square > 0.0 else 0.0
    draws = [draw for draw in paths[0].draws if draw.lone is not None]
    if not paths[0].lone:
        return Tilt(shared)
    precision = math.fsum(draw.scale**-2.0 for draw in draws)
    return Tilt(shared, -float(special.ndtri(delta / len(paths[0].lone))) / math.sqrt(precision))


def _how(paths: list[Path]) -> str:
    parted = [path.parted for path in paths if path.parted]
    return f"for the same outcomes {parted[0]}" if parted else "exact losses"
