"""One outcome for two tables: how it is drawn, its privacy loss, and what makes up for how it was drawn.

Outcomes may be drawn with a tilt, so that what is rare is seen often: Gaussian ones around x + tilt (x - x') instead of
x, where large losses are common; or one item that only the first table has, pushed towards the threshold that it must
not pass. `Path.log_weight` = log P[outcomes | x] - log Q[outcomes], Q the distribution that they were drawn from.

Where items are found, the two tables may have different ones. What both have is compared item by item. What only the
first has is drawn for it alone, and is no outcome: it shows if it passes, and then the runs part. What only the second
has stays down, as it does in everything that the first table can show. Proof: docs/proofs/audit.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from ..arrays import Floats
from ..errors import InvalidArgument
from ..privacy import noise

__all__ = ["Asked", "Draw", "Path", "Sampling", "Tilt"]

GIVEN_UP = 12.0
"""Standard deviations that an item of the second table alone is kept below its value: it is given up then."""


@dataclass(frozen=True)
class Tilt:
    """How far from P outcomes are drawn. shared: of Gaussian draws, in units of x - x'. lone: how much one item of the
    first table alone is raised in each draw; half of the runs do this and leave the rest as it is.
    """

    shared: float = 0.0
    lone: float = 0.0


@dataclass(frozen=True)
class Asked:
    """What a run wants drawn: noise on `values` (or a choice by them) of a kind and scale; or a salt. names: the items
    of the coordinates, if they are not listed.
    """

    kind: str
    values: tuple[tuple[int, ...], ...]
    scale: float
    names: tuple[Any, ...] | None = None

    @property
    def public(self) -> tuple[str, float, tuple[int, ...] | None]:
        """What must not depend on the table."""
        return self.kind, self.scale, tuple(len(row) for row in self.values) if self.names is None else None


@dataclass(frozen=True)
class Draw:
    """One draw as both tables see it. squared_mu: (l2 distance / sigma)^2, of a Gaussian one. epsilon: the largest loss
    that it could have, of any other. lone: if items are not listed, log Q/P for each that only the first table has,
    if it was the one raised.
    """

    kind: str
    scale: float
    loss: float
    log_weight: float
    squared_mu: float
    epsilon: float
    lone: Mapping[Any, float] | None = None


@dataclass(frozen=True)
class Path:
    """All draws of one run, and what came out. `parted`: what differed though the outcomes were the same, if anything;
    the loss is infinite then. `mixed`: half of the runs raise an item of the first table alone instead.
    """

    draws: tuple[Draw, ...]
    parted: str | None
    mixed: bool = False

    @property
    def loss(self) -> float:
        return math.inf if self.parted else math.fsum(draw.loss for draw in self.draws)

    @property
    def log_weight(self) -> float:
        """-log Q/P; of a mixture, Q/P = (Q_shared/P + mean over lone items of Q_item/P) / 2."""
        shared = -math.fsum(draw.log_weight for draw in self.draws)
        if not self.mixed:
            return -shared
        raised = [draw.lone for draw in self.draws if draw.lone]
        lone = [math.fsum(ratios.get(name, 0.0) for ratios in raised) for name in self.lone] or [0.0]
        return -float(special.logsumexp([shared, special.logsumexp(lone) - math.log(len(lone))]) - math.log(2.0))

    @property
    def lone(self) -> tuple[Any, ...]:
        """The items that only the first table has."""
        return next((tuple(draw.lone) for draw in self.draws if draw.lone), ())

    @property
    def squared_mu(self) -> float:
        return math.fsum(draw.squared_mu for draw in self.draws)

    @property
    def epsilon(self) -> float:
        return math.fsum(draw.epsilon for draw in self.draws)


class Sampling:
    """The outcomes of one path, as they are asked for."""

    def __init__(self, tilt: Tilt) -> None:
        self.draws: list[Draw] = []
        self._mixed = tilt.lone > 0.0
        self._raising = self._mixed and _uniform() < 0.5
        self._tilt = tilt.shared
        self._lift = round(tilt.lone)
        self._lone: tuple[set[Any], set[Any]] | None = None
        self._raised: Any = None

    def path(self, parted: str | None) -> Path:
        return Path(tuple(self.draws), parted, self._mixed)

    def draw(self, one: Asked, other: Asked) -> tuple[Any, Any] | None:
        """An outcome for each run, the same wherever both have a value; None if the runs ask for different things."""
        if one.public != other.public:
            return None
        if one.kind == "salt":
            self.draws.append(Draw("salt", one.scale, 0.0, 0.0, 0.0, 0.0))
            salt = noise.fresh_salt()
            return salt, salt
        if one.kind == "choice":
            drawn, chosen = _choice(one, other)
            self.draws.append(drawn)
            return chosen, chosen
        if one.names is not None and other.names is not None:
            return self._found(one, other)
        outcome = self._noisy(one.kind, one.values[0], other.values[0], one.scale)
        return outcome, outcome

    def _noisy(
        self,
        kind: str,
        xs: Sequence[int],
        others: Sequence[int],
        scale: float,
        lone: Mapping[Any, float] | None = None,
    ) -> list[int]:
        apart = [a - b for a, b in zip(xs, others, strict=True)]
        ys: list[int]
        if kind == "laplace":
            ys = noise.add_discrete_laplace(list(xs), scale).tolist()
            loss = sum(abs(y - b) - abs(y - a) for y, a, b in zip(ys, xs, others, strict=True))
            self.draws.append(Draw("laplace", scale, loss / scale, 0.0, 0.0, sum(map(abs, apart)) / scale, lone))
            return ys
        # The weight is that of the tilted draw, whether or not this run is one.
        centres = [a + round(self._tilt * d) for a, d in zip(xs, apart, strict=True)]
        ys = noise.add_discrete_gaussian(list(xs) if self._raising else centres, scale).tolist()
        # (y - b)^2 - (y - a)^2 = (a - b)(2y - a - b), in integers; so is the weight, with the centre for b.
        loss = sum((a - b) * (2 * y - a - b) for y, a, b in zip(ys, xs, others, strict=True))
        weight = sum((a - c) * (2 * y - a - c) for y, a, c in zip(ys, xs, centres, strict=True))
        twice, squared = 2.0 * scale * scale, sum(d * d for d in apart) / scale**2
        self.draws.append(Draw("gaussian", scale, loss / twice, weight / twice, squared, 0.0, lone))
        return ys

    def _found(self, one: Asked, other: Asked) -> tuple[list[int], list[int]] | None:
        """Noise on items that nobody has listed: those of both tables together, those of one of them apart."""
        assert one.names is not None
        assert other.names is not None
        ours = dict(zip(one.names, one.values[0], strict=True))
        theirs = dict(zip(other.names, other.values[0], strict=True))
        if self._lone is None:
            self._lone = set(ours) - set(theirs), set(theirs) - set(ours)
            if self._raising and self._lone[0]:
                alone = sorted(self._lone[0])
                self._raised = alone[int(_uniform() * len(alone))]
        if not (set(ours) - set(theirs) <= self._lone[0] and set(theirs) - set(ours) <= self._lone[1]):
            return None  # an item of both is given up in one run only, for the same outcomes
        shared = [name for name in one.names if name in theirs]
        xs, others = [ours[name] for name in shared], [theirs[name] for name in shared]
        if xs != others and (self._lone[0] or self._lone[1]):
            raise InvalidArgument(
                "tables that differ in lone items and in others have no exact loss: use two pairs.", argument=None
            )
        mine, lone = self._alone(one.kind, ours, set(ours) - set(theirs), one.scale)
        both = dict(zip(shared, self._noisy(one.kind, xs, others, one.scale, lone), strict=True))
        down = round(GIVEN_UP * one.scale)
        return (
            [both[name] if name in both else mine[name] for name in one.names],
            [both[name] if name in both else theirs[name] - down for name in other.names],
        )

    def _alone(
        self, kind: str, ours: Mapping[Any, int], names: set[Any], scale: float
    ) -> tuple[dict[Any, int], dict[Any, float]]:
        """Noise on the items of the first table alone, one of them raised; and log Q/P, had it been each of them."""
        alone = sorted(names)
        lifts = [self._lift if name == self._raised else 0 for name in alone]
        lifted = [ours[name] + lift for name, lift in zip(alone, lifts, strict=True)]
        add = noise.add_discrete_laplace if kind == "laplace" else noise.add_discrete_gaussian
        ys = add(lifted, scale).tolist()
        above = [y - ours[name] for name, y in zip(alone, ys, strict=True)]
        if kind == "laplace":
            ratios = [(abs(up) - abs(up - self._lift)) / scale for up in above]
        else:
            ratios = [self._lift * (2 * up - self._lift) / (2.0 * scale * scale) for up in above]
        return dict(zip(alone, ys, strict=True)), dict(zip(alone, ratios, strict=True))


def _choice(one: Asked, other: Asked) -> tuple[Draw, list[int]]:
    """One column of each row, with P[j] proportional to exp(values[j] / scale)."""
    loss, most, chosen = 0.0, 0.0, []
    for mine, theirs in zip(one.values, other.values, strict=True):
        first, second = _log_probabilities(mine, one.scale), _log_probabilities(theirs, one.scale)
        place = min(int(np.searchsorted(np.cumsum(np.exp(first)), _uniform())), len(mine) - 1)
        chosen.append(place)
        loss += float(first[place] - second[place])
        most += float(np.max(np.abs(first - second)))
    return Draw("choice", one.scale, loss, 0.0, 0.0, most), chosen


def _uniform() -> float:
    """From 0 to 1, of 128 random bits: an audit's draw, not a release's."""
    return int(noise.fresh_salt(), 16) / 2.0**128


def _log_probabilities(scores: tuple[int, ...], scale: float) -> Floats:
    highest = max(scores)
    weights = np.array([(score - highest) / scale for score in scores])
    normal: Floats = weights - math.log(math.fsum(np.exp(weights).tolist()))
    return normal
