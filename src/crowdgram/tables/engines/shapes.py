"""SQL that is written once for all expressions of one shape.

Every round of a release, and every release of one process, asks the same of tables that are kept under fresh names. To
write the SQL of an expression takes Ibis about as long as a small table takes the engine. So the text is remembered by
the shape of the expression, which is all of it but for those names.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any

import ibis.expr.datatypes as dt
import ibis.expr.operations as ops
from ibis.backends import BaseBackend
from ibis.common.graph import Node
from ibis.expr.operations.udf import InputType

if TYPE_CHECKING:
    import ibis.expr.types as ir

__all__ = ["compile_by_shape", "fresh_name"]

_FRESH = re.compile("crowdgram_[0-9a-f]{32}|CROWDGRAM_[0-9A-F]{32}")
_MOST_SHAPES = 500
_MOST_WORDS = 5_000
"""Of a shape that is remembered: the list of a filter may have any length."""

_PLAIN = frozenset({bool, int, str, type(None)})
_VALUES = (dt.DataType, ops.Namespace, Enum)

_WRITTEN: dict[tuple[Any, ...], tuple[str, ...]] = {}
"""SQL by shape: texts, and between any two of them the number of a fresh name, as a text."""


def fresh_name() -> str:
    return f"crowdgram_{uuid.uuid4().hex}"


def compile_by_shape(backend: Any, table: ir.Table, *, register: bool = False) -> str:
    """What `backend.compile(table)` gives, from memory if the shape is known. With `register`, the engine then knows
    its memtables: such a table holds rows, and has no shape.
    """
    words, names = _shape(table.op())
    if not words:
        if register:
            backend._register_in_memory_tables(table)
        return str(backend.compile(table))
    shape = (type(backend), *words)
    parts = _WRITTEN.get(shape)
    if parts is None:
        text = str(backend.compile(table))
        places = {name: str(place) for place, name in enumerate(names)}
        if set(_FRESH.findall(text)) != set(places):  # one is spelled in another way
            return text
        parts = tuple(places.get(part, part) for part in re.split(f"({_FRESH.pattern})", text))
        if len(_WRITTEN) >= _MOST_SHAPES:
            _WRITTEN.clear()
        _WRITTEN[shape] = parts
    return "".join(names[int(part)] if j % 2 else part for j, part in enumerate(parts))


def _shape(root: Any) -> tuple[list[Any], list[str]]:
    """An expression in words, from the root on, and its fresh names; no words if there is something in it that they
    have no form for.

    Of two expressions with the same words, one is the other under other names: each type is followed by a fixed number
    of words, or says how many follow. Of a node that was met before, and of a fresh name, there is the number of its
    first place. A real number is spelled: 0.0 and -0.0 are equal.
    """
    words: list[Any] = []
    met: dict[int, int] = {}
    names: list[str] = []
    todo: list[Any] = [root]
    while todo:
        one = todo.pop()
        kind = type(one)
        if isinstance(one, Node):
            if id(one) in met:
                words += (Node, met[id(one)])
                continue
            met[id(one)] = len(met)
            arguments = one.__args__
            if isinstance(one, ops.ScalarUDF):
                if one.__input_type__ is not InputType.BUILTIN or one.__config__:
                    return [], []
                kind, arguments = ops.ScalarUDF, (one.__func_name__, one.__udf_namespace__, one.dtype, *arguments)
            words += (kind, len(arguments))
            todo += arguments
        elif kind is str and _FRESH.search(one):
            if not _FRESH.fullmatch(one):
                return [], []
            names += [] if one in names else [one]
            words += (_FRESH, names.index(one))
        elif kind in _PLAIN or isinstance(one, _VALUES):
            words += (kind, one)
        elif kind is float:
            words += (float, repr(one))
        elif kind is tuple:
            words += (tuple, len(one))
            todo += one
        elif isinstance(one, Mapping):
            words += (kind, len(one))
            todo += (*one.keys(), *one.values())
        elif isinstance(one, BaseBackend):
            words.append(kind)
        else:
            return [], []
        if len(words) > _MOST_WORDS:
            return [], []
    return words, names
