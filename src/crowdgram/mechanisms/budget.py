"""What rounds may spend."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..arrays import Integers
from ..privacy import Adjacency, PureFinish, Rounds
from ..tables import BoundedSum, Norm
from .shrink import NoiseShape

__all__ = ["Allowance", "Budget"]


@dataclass
class Allowance:
    """What rounds may spend: Gaussian noise (mu) or, for pure privacy, Laplace noise (epsilon)."""

    adjacency: Adjacency
    shape: NoiseShape
    total: float

    @property
    def norm(self) -> Norm:
        return "l2" if self.shape == "gaussian" else "l1"

    @property
    def mean_absolute(self) -> float:
        """Mean absolute value of the noise, in standard deviations."""
        return math.sqrt(2 / math.pi) if self.shape == "gaussian" else math.sqrt(0.5)

    def deviation(self, share: float, *, non_negative: bool = False) -> float:
        """Standard deviation of the noise on sums of vectors of norm at most 1."""
        gaussian = self.shape == "gaussian"
        factor = 1.0 if gaussian else math.sqrt(2)
        if self.adjacency is Adjacency.REPLACE:
            factor *= math.sqrt(2) if non_negative and gaussian else 2.0
        return factor / (self.total * math.pow(share, 0.5 if gaussian else 1.0))

    def share_for(self, deviation: float) -> float:
        """The share at which a histogram of users has noise of this standard deviation: `deviation` turned round."""
        one = self.deviation(1.0, non_negative=True) / deviation
        return one**2 if self.shape == "gaussian" else one


@dataclass
class Budget(Allowance):
    """An allowance as it is spent, in shares of the whole: Gaussian noise in `Rounds`, Laplace noise in a pure
    finish.
    """

    phase: Rounds | PureFinish
    left: float = 1.0

    @classmethod
    def of(cls, allowance: Allowance, phase: Rounds | PureFinish) -> Budget:
        return cls(allowance.adjacency, allowance.shape, allowance.total, phase)

    def noisy(self, purpose: str, sums: BoundedSum[Integers | Sequence[int]], share: float) -> Integers:
        """The sums with noise for `share`; `left` falls by it."""
        self.left -= share
        bound = sums.bound
        if isinstance(self.phase, Rounds):
            mu = self.total * math.sqrt(share)
            one_sided = bound.non_negative
            return self.phase.gaussian(purpose, sums.values, bound=bound.l2, mu=mu, non_negative=one_sided)[0]
        values = np.array([min(max(v, -(2**62)), 2**62) for v in sums.values], dtype=np.int64)
        return self.phase.laplace(purpose, values, bound=bound.l1, epsilon=self.total * share)[0]
