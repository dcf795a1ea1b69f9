"""The error of an answer: of shares the l1 error, of counts the sum of absolute errors over the sum of true counts."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from .bounds import shares_of

__all__ = ["errors_of"]

Floats = npt.NDArray[np.float64]


def errors_of(
    values: Mapping[str, Mapping[str, float]], items: list[int], truths: Mapping[str, Floats], *, shares: bool
) -> dict[str, float]:
    """By measure. An item without a value counts as 0, and a negative count as 0. Noisy counts of rows of known items
    (`shares`) also give shares: divided by their total and projected onto the simplex.
    """
    found: dict[str, float] = {}
    for measure, of in values.items():
        answer = np.array([of.get(str(item), 0.0) for item in items])
        if measure == "shares":
            found["shares"] = _l1(answer, truths["rows"] / truths["rows"].sum())
            continue
        if measure == "rows" and shares:
            found["shares"] = _l1(shares_of(answer), truths["rows"] / truths["rows"].sum())
        found[measure] = _l1(np.maximum(answer, 0.0), truths[measure]) / float(truths[measure].sum())
    return found


def _l1(one: Floats, other: Floats) -> float:
    return float(np.abs(one - other).sum())
