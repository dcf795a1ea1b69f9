"""The mechanism "paper": the published algorithm, on any table."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..errors import AccuracyWarning, InvalidArgument
from ..mechanisms import Estimate, Laplace, Mechanism, Request
from ..mechanisms.simplex import project
from ..privacy import Guarantee, Opening
from ..stages import Stage
from ..tables import Counts

if TYPE_CHECKING:
    from .regimes import Constants, Learned
    from .variable import RowsFound

__all__ = ["Paper"]


@dataclass(frozen=True)
class Paper(Mechanism):
    """Theorem 12's algorithm, projected onto the simplex.

    The paper takes users to be alike: each draws their rows from the same distribution, so the answer by rows and
    by users is the same. Where they are not, this estimates neither; errors do not say by how much.
    `max_rows_per_user`: m-hat, the rows of each user that are used; users with fewer take no part.

    constants: "paper", as published, or "tight", far more accurate. alpha: the l1 error that is wanted; by default 0.1
    with the published constants, and chosen by predicted error with tight ones.

    Guarantee: that of the budget. Warns, from public and noisy values, where the theorem's bound on the error does
    not apply.
    """

    name = "paper"
    needs_delta = "Its theorems need a delta above 0. Give a delta such as 1e-6."
    counts = False
    constants: Constants = "paper"
    alpha: float | None = None

    def __post_init__(self) -> None:
        if self.constants not in ("paper", "tight"):
            raise InvalidArgument(
                f"constants={self.constants!r}: needs to be 'paper' (as published) or 'tight'.", argument="constants"
            )
        alpha: object = self.alpha
        if alpha is not None:
            real = isinstance(alpha, int | float | np.integer | np.floating) and not isinstance(alpha, bool)
            if not real or not 0.0 < alpha <= 1.0:  # type: ignore[operator]
                raise InvalidArgument(
                    f"alpha={alpha!r}: the l1 error that is wanted; above 0 and at most 1. Try alpha=0.1.",
                    argument="alpha",
                )

    def instead(self, _: Guarantee) -> Sequence[Mechanism]:
        return [Laplace()]

    def run(self, counts: Counts, budget: Opening, request: Request, /) -> Estimate:
        from .variable import learn_variable  # with all of the paper's mathematics, which no other mechanism needs

        request.report(Stage.CHOOSING_ROWS)
        learned, found = learn_variable(
            counts,
            budget.start(),
            alpha=self.alpha,
            constants=self.constants,
            rows=request.max_rows_per_user,
            checked=False,
        )
        doubts = (*found.doubts, *learned.doubts)
        if doubts:
            warnings.warn(
                f"the paper's bound on the error does not apply: {'; '.join(doubts)}. Privacy holds all the same.",
                AccuracyWarning,
                stacklevel=2,
            )
        return _estimate(learned, found, {"constants": self.constants})


def _estimate(learned: Learned, found: RowsFound, parameters: dict[str, str]) -> Estimate:
    """Project, with intervals around what was chosen: the spread of the choice, and of the rows that were drawn.

    A choice by counts at thresholds is about as efficient as a median: pi/2 times the variance of the mean.
    """
    raw = learned.probabilities
    probabilities = project(raw)
    sampling = np.sqrt(math.pi / 2 * raw * (1 - raw) / (found.rows * found.users))
    reach = 1.96 * sampling
    lower = raw - np.hypot(np.maximum(learned.high, 0.0), reach)
    upper = raw + np.hypot(np.minimum(learned.low, 0.0), reach)
    error = float(np.hypot(learned.absolute, math.sqrt(2 / math.pi) * sampling).sum())
    return Estimate(
        probabilities=probabilities,
        standard_errors=learned.deviations,
        lower=np.minimum(np.clip(lower, 0.0, 1.0), probabilities),
        upper=np.maximum(np.clip(upper, 0.0, 1.0), probabilities),
        predicted_l1_error=min(2.0, error),
        parameters={
            **parameters,
            "regime": learned.regime,
            "rows_per_user": found.rows,
            "users": found.users,
            "alpha": float(learned.alpha),
            "hypotheses": learned.hypotheses,
        },
    )
