"""JSON text of results: readable if they are small, and written in bulk if they have many items."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from ..arrays import Floats, Integers, distinct

__all__ = ["document_parts", "document_text"]

LONG_LIST = 10_000
"""Lists from this length on are written on one line."""
SAMPLED_NUMBERS = 2**10
"""Numbers that tell whether many are equal."""
PIECE = 2**16
"""Numbers that are joined at once: their text stays in the cache of a core, and its memory is used again."""


def document_text(document: Mapping[str, Any]) -> str:
    """The document as JSON: one field after another, its lists one entry a line, or on one line if they are long.

    Values are JSON values, or arrays of floats or of 64-bit integers. Every float is written with as many digits as
    give it back.
    """
    return b"".join(document_parts(document)).decode()


def document_parts(document: Mapping[str, Any]) -> Iterator[Any]:
    """The same in UTF-8, in parts: a file of hundreds of megabytes need not be one text first."""
    before, values = b"{\n", list(document.values())
    held: dict[int, list[Any]] = {}  # the text of arrays that come again, such as errors by noise alone
    for place, (name, value) in enumerate(document.items()):
        yield before + f" {json.dumps(name)}: ".encode()
        same = [other for other, one in enumerate(values) if other == place or _same_arrays(one, value)]
        if len(same) == 1:
            yield from _value_parts(value)
        else:
            if same[0] == place:
                held[place] = list(_value_parts(value))
            yield from held[same[0]]
        before = b",\n"
    yield b"\n}\n"


def _same_arrays(one: Any, other: Any) -> bool:
    """Whether both are long arrays with the same bits."""
    arrays = isinstance(one, np.ndarray) and isinstance(other, np.ndarray)
    if not arrays or len(one) < LONG_LIST or one.shape != other.shape or one.dtype != other.dtype:
        return False
    bits, others = one.view(np.int64), other.view(np.int64)
    step = len(bits) // SAMPLED_NUMBERS  # most that differ do so in a few: to compare all pairs whole took a twentieth
    return np.array_equal(bits[::step], others[::step]) and np.array_equal(bits, others)


def _value_parts(value: Any) -> Iterator[Any]:
    if isinstance(value, np.ndarray):
        if len(value) >= LONG_LIST:
            yield from _array_parts(value)
            return
        value = value.tolist()
    if isinstance(value, list) and len(value) >= LONG_LIST:
        plain = _plain_strings(value)
        yield plain or json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    elif isinstance(value, list) and value and not any(isinstance(one, list | tuple | dict) for one in value):
        # As with an indent, for which the standard library goes through the entries in Python.
        entries = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",\n  ", ": "))
        yield f"[\n  {entries[1:-1]}\n ]".encode()
    else:
        yield json.dumps(value, ensure_ascii=False, allow_nan=False, indent=1).replace("\n", "\n ").encode()


def _plain_strings(values: list[Any]) -> bytes | None:
    """A list of strings as JSON, in a third of the time; None if one needs an escape, or is no string."""
    try:
        joined = '","'.join(values).encode()
    except TypeError:
        return None
    each = np.frombuffer(joined, dtype=np.uint8)
    escapes = b"\\" in joined or np.count_nonzero(each == ord('"')) > 2 * (len(values) - 1)
    return None if escapes or each.min(initial=255) < ord(" ") else b'["' + joined + b'"]'


def _array_parts(values: Floats | Integers) -> Iterator[Any]:
    """The array by Arrow, which writes the shortest digits of a double four times as fast as Python."""
    if not np.all(np.isfinite(values)):
        raise ValueError("Out of range float values are not JSON compliant")
    before = b"["
    for start in range(0, len(values), PIECE):
        yield before
        yield _joined(np.ascontiguousarray(values[start : start + PIECE]))
        before = b","
    yield b"]"


def _joined(values: Any) -> Any:
    """The numbers with commas between them, as a buffer."""
    bits = values.view(np.int64)
    if bits[0] == bits[-1] and np.all(bits == bits[0]):  # such as lower ends of 0: one text, again and again
        one = _texts(values[:1])[0].as_py().encode()
        return one + (b"," + one) * (len(values) - 1)
    ends = pa.py_buffer(np.array([0, len(values)], dtype=np.int32))
    one = pa.ListArray.from_buffers(pa.list_(pa.string()), 1, [None, ends], children=[_texts(values)])
    # From a buffer too: of a Python string Arrow would load pandas.
    comma = pa.StringArray.from_buffers(1, pa.py_buffer(np.array([0, 1], dtype=np.int32)), pa.py_buffer(b","))
    return _arrow("binary_join", one, comma)[0].as_buffer()


def _texts(values: Any) -> pa.Array:
    """Each number as a text. From its buffer: `pa.array` would load pandas."""
    kind = pa.int64() if values.dtype == np.int64 else pa.float64()
    some = values.view(np.int64)[:: max(len(values) // SAMPLED_NUMBERS, 1)]
    if len(distinct(some)) > len(some) // 4:
        return _cast(pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(values)]))
    # Many are equal, such as the errors of items with the same noise: each is written once. By their bits.
    coded = _arrow("dictionary_encode", pa.Array.from_buffers(pa.int64(), len(values), [None, pa.py_buffer(values)]))
    return _arrow("take", _cast(coded.dictionary.view(kind)), coded.indices)


def _cast(numbers: pa.Array) -> pa.Array:
    from pyarrow._compute import CastOptions

    return _arrow("cast", numbers, options=CastOptions.safe(pa.string()))


def _arrow(function: str, *arrays: Any, options: Any = None) -> Any:
    """A function of Arrow. By `pyarrow.compute`, which has the same one, each of 286 would first be wrapped in Python:
    0.07 CPU s. So it would by methods of arrays, such as `cast`.
    """
    from pyarrow._compute import call_function

    return call_function(function, list(arrays), options)
