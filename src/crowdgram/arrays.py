"""The array types of the package, by what they hold, and two functions of NumPy's own without what these load.

`np.unique` and `np.median` load masked arrays, which takes 0.02 CPU s of a command.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt

__all__ = ["Booleans", "Floats", "Integers", "distinct", "median"]

Booleans = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

Number = TypeVar("Number", np.float64, np.int64)


def distinct(values: npt.NDArray[Number]) -> npt.NDArray[Number]:
    """The different numbers of an array, sorted, as `np.unique` has them."""
    ordered = np.sort(values, axis=None)
    first = np.full(len(ordered), True)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    found: npt.NDArray[Number] = ordered[first]
    return found


def median(rows: Floats) -> Floats:
    """The median of each column, as `np.median` has it; no number may be missing."""
    ordered = np.sort(rows, axis=0)
    middle: Floats = (ordered[(len(rows) - 1) // 2] + ordered[len(rows) // 2]) / 2
    return middle
