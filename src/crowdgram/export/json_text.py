"""JSON text of results: readable if they are small, and written in bulk if they have many items."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from ..arrays import Floats

__all__ = ["document_text"]

LONG_LIST = 10_000
"""Lists from this length on are written on one line."""
PIECE = 2**20
"""Numbers that are joined at once: their text is far below the 2 GiB that Arrow's strings can hold."""


def document_text(document: Mapping[str, Any]) -> str:
    """The document as JSON: one field after another, its lists one entry a line, or on one line if they are long.

    Values are JSON values, or arrays of floats. Every float is written with as many digits as give it back.
    """
    fields = ",\n".join(f" {json.dumps(name)}: {_value_text(value)}" for name, value in document.items())
    return f"{{\n{fields}\n}}\n"


def _value_text(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return _array_text(value) if len(value) >= LONG_LIST else _value_text(value.tolist())
    if isinstance(value, list) and len(value) >= LONG_LIST:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return json.dumps(value, ensure_ascii=False, allow_nan=False, indent=1).replace("\n", "\n ")


def _array_text(values: Floats) -> str:
    """The array by Arrow, which writes the shortest digits of a double four times as fast as Python."""
    if not np.all(np.isfinite(values)):
        raise ValueError("Out of range float values are not JSON compliant")
    pieces = [np.ascontiguousarray(values[start : start + PIECE]) for start in range(0, len(values), PIECE)]
    return f"[{','.join(map(_joined, pieces))}]"


def _joined(values: Floats) -> str:
    from pyarrow import compute

    # From its buffer: `pa.array` would load pandas.
    numbers = pa.Array.from_buffers(pa.float64(), len(values), [None, pa.py_buffer(values)]).cast(pa.string())
    ends = pa.py_buffer(np.array([0, len(values)], dtype=np.int32))
    one = pa.ListArray.from_buffers(pa.list_(pa.string()), 1, [None, ends], children=[numbers])
    return str(compute.binary_join(one, ",")[0].as_py())
