"""Items of a public list that a computed column cannot have, by their letters or spaces.

`lower(page)` gives no capitals, so an item "Home" has no rows, and nothing in the release says why. What an expression
gives is read from its outermost functions, so it depends on the expression alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Literal

__all__ = ["Spelling", "misspelt", "spelling_of"]

Spelling = Literal["lower", "upper", "trim"]

_NEVER: dict[Spelling, str] = {"lower": "[A-Z]", "upper": "[a-z]", "trim": "^ | $"}
"""What none of the texts holds that a function gives. Engines differ in letters beyond ASCII."""


def spelling_of(column: Any) -> tuple[Spelling, ...]:
    """The functions among lower, upper and trim that hold for all values of a column that was built by rules."""
    import ibis.expr.operations as ops  # slow to load, and plain columns do not need it

    functions: dict[type, Spelling] = {ops.Lowercase: "lower", ops.Uppercase: "upper", ops.Strip: "trim"}
    node, found = column.op(), list[Spelling]()
    while True:
        name = functions.get(type(node))
        if name is not None:
            # A change of case inside another one is undone by it; trimmed texts stay trimmed.
            if name == "trim" or not {"lower", "upper"} & set(found):
                found.append(name)
        elif not isinstance(node, ops.TryCast | ops.ScalarUDF) or len(node.args) != 1 + isinstance(node, ops.TryCast):
            return tuple(found)
        node = node.args[0]


def misspelt(values: Iterable[object], spelling: Iterable[Spelling]) -> tuple[str, Spelling] | None:
    """A value that the column cannot have, and the function that says so; None if there is none."""
    names = list(spelling)
    texts = [value for value in values if isinstance(value, str)] if names else []
    found = ((text, name) for name in names for text in texts if re.search(_NEVER[name], text))
    return next(found, None)
