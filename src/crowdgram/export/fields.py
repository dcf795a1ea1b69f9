"""Fields of a saved file: each is held to what later code relies on, as it is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..arrays import Floats
from ..errors import InvalidArgument

__all__ = ["LARGEST_FIGURE", "read_columns", "read_figures", "read_parameters", "read_versions", "read_word"]

LARGEST_FIGURE = 1e100
"""No figure of a table is larger, and of what is not the squares are finite."""


def read_figures(document: Mapping[str, Any], name: str, *, signed: bool = False) -> Floats:
    """A field that has a number for each item."""
    found = np.array(document[name], dtype=np.float64)
    low = -LARGEST_FIGURE if signed else 0.0
    if found.ndim != 1 or not np.all((found >= low) & (found <= LARGEST_FIGURE)):
        raise InvalidArgument(f"its {name} need to be numbers from {low:g} to {LARGEST_FIGURE:g}", argument=None)
    return found


def read_word(document: Mapping[str, Any], name: str) -> str:
    """A field that is text."""
    return str(_checked(f"its {name}", document[name], _TEXT))


def read_columns(document: Mapping[str, Any]) -> tuple[str, ...]:
    """The names of the item columns; files of version 1 have none."""
    found = document.get("item_columns", ["item"])
    if not isinstance(found, list):
        raise InvalidArgument("its item_columns need to be a list of texts", argument=None)
    return tuple(str(_checked("each of its item_columns", name, _TEXT)) for name in found)


def read_versions(document: Mapping[str, Any]) -> dict[str, str]:
    """The versions of the software that made it, by name."""
    found = _object(document, "versions")
    return {name: _checked(f"its version of {name!r:.80}", value, _TEXT) for name, value in found.items()}


def read_parameters(document: Mapping[str, Any]) -> dict[str, Any]:
    """How it was made: numbers and texts by name, of the type that is known for the name; null is not known."""
    found = _object(document, "parameters")
    for name, value in found.items():
        if value is not None:
            _checked(f"its parameter {name!r:.80}", value, _PARAMETERS.get(name, _SCALAR))
    return found


def _object(document: Mapping[str, Any], name: str) -> dict[str, Any]:
    found = document[name]
    if not isinstance(found, dict):
        raise InvalidArgument(f"its {name} need to be an object of names and values", argument=None)
    return found


Kind = tuple[str, Callable[[Any], bool]]
"""What a value needs to be, in words, and whether it is."""


def _checked(what: str, value: Any, kind: Kind) -> Any:
    words, is_right = kind
    if not is_right(value):
        raise InvalidArgument(f"{what} is {value!r:.80}, and needs to be {words}", argument=None)
    return value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and -LARGEST_FIGURE <= value <= LARGEST_FIGURE


_TEXT: Kind = ("text", lambda value: isinstance(value, str))
_WHOLE: Kind = ("a whole number of at least 1", lambda value: type(value) is int and 1 <= value < 2**63)
_NUMBER: Kind = ("a number", _is_number)
_SCALAR: Kind = ("a number, a text, true or false", lambda value: isinstance(value, str | bool) or _is_number(value))
_PARAMETERS: dict[str, Kind] = {
    **dict.fromkeys(("max_items_per_user", "max_rows_per_user", "rows_per_user"), _WHOLE),
    **dict.fromkeys(("discovery_share", "rows_above_bound", "rows_above_bound_high", "rows_above_bound_low"), _NUMBER),
    **dict.fromkeys(("branch", "noise", "period", "prior", "regime", "released_on", "row_bound"), _TEXT),
}
"""Parameters that sentences, facts and plans are made of. Others are shown as they are."""
