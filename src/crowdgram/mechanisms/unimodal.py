"""Histograms that rise to one bin and fall after it, as near as can be to noisy ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..arrays import Floats

__all__ = ["rise_and_fall"]


def rise_and_fall(users: Floats, widths: Floats) -> Floats:
    """Users in bins of these widths: the nearest (l2) non-negative density that rises to one bin and falls after it."""
    density = users / widths
    rising = _Falling.of(-density, widths)
    falling = _Falling.of(-density[::-1], widths[::-1])
    top = int(np.argmin(rising.errors[1:] + falling.errors[-2::-1]))
    nearest = np.append(
        -_Falling.of(-density[: top + 1], widths[: top + 1]).fit, _Falling.of(density[top + 1 :], widths[top + 1 :]).fit
    )
    return np.maximum(nearest, 0.0) * widths


@dataclass(frozen=True, eq=False)
class _Falling:
    """Isotonic regression, decreasing, by pooling adjacent violators: the fit, and the square errors of the fits to the
    first 0, 1, 2, ... of the values.
    """

    fit: Floats
    errors: Floats

    @classmethod
    def of(cls, values: Floats, weights: Floats) -> _Falling:
        pools: list[tuple[float, float, int]] = []  # weight, mean, number of values
        error, errors = 0.0, [0.0]
        for mean, weight in zip(values.tolist(), weights.tolist(), strict=True):
            number = 1
            while pools and pools[-1][1] < mean:
                other, least, more = pools.pop()
                error += weight * other / (weight + other) * (mean - least) ** 2
                mean = (weight * mean + other * least) / (weight + other)
                weight, number = weight + other, number + more
            pools.append((weight, mean, number))
            errors.append(error)
        means, numbers = [pool[1] for pool in pools], [pool[2] for pool in pools]
        return cls(np.repeat(np.array(means, dtype=np.float64), numbers), np.array(errors))
