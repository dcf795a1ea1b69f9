"""The array types of the package, by what they hold."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["Booleans", "Floats", "Integers"]

Booleans = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
