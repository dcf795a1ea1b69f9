"""Values of options that are plain enough to convert without pydantic.

Typer has pydantic convert every value, even that of an option that is not given. To load it, and to describe the
options of a release to it, takes 0.15 CPU s, an eighth of a small release. What is plain is converted here, to the very
same value. For anything else, and for every error, Typer is asked.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Any, get_args, get_origin

__all__ = ["with_plain_values"]

_NOT_PLAIN = object()
_NUMBERS: dict[type[int | float], re.Pattern[str]] = {
    int: re.compile(r"0|[1-9][0-9]{0,14}"),
    float: re.compile(r"(0|[1-9][0-9]{0,14})(\.[0-9]{1,15})?(e-?[0-9]{1,2})?"),
}


def with_plain_values(parameters: list[Any]) -> list[Any]:
    """The same options and arguments of Typer, which now ask for pydantic only if their value is not plain."""
    for one in parameters:
        described = getattr(one, "type_descriptor", None)  # which a Typer that converts by itself does not have
        if described is not None and described.parameter_info.parser is None and "process_value" not in vars(one):
            one.process_value = _processing(one, described)
    return parameters


def _processing(parameter: Any, described: Any) -> Callable[[Any, Any], Any]:
    ask: Callable[[Any, Any], Any] = parameter.process_value
    several = getattr(parameter, "multiple", False) or parameter.nargs == -1

    def process_value(context: Any, value: Any) -> Any:
        found = _plain(value, described.annotation, described.parameter_info, several=several)
        if found is _NOT_PLAIN or (parameter.required and not found):
            return ask(context, value)
        return found if parameter.callback is None else parameter.callback(context, parameter, found)

    return process_value


def _plain(value: Any, annotation: Any, info: Any, *, several: bool) -> Any:
    if value is None:
        return () if several else None
    if several:
        if get_origin(annotation) is not list or not isinstance(value, list | tuple):
            return _NOT_PLAIN
        [kind] = get_args(annotation)
        found = [_one(one, kind, info) for one in value]
        return _NOT_PLAIN if any(one is _NOT_PLAIN for one in found) else found
    return _one(value, annotation, info)


def _one(value: Any, kind: Any, info: Any) -> Any:
    if not isinstance(kind, type):
        return _NOT_PLAIN
    if issubclass(kind, Enum):
        return next((one for one in kind if value is one or (type(value) is str and value == one.value)), _NOT_PLAIN)
    if kind in _NUMBERS:
        if type(value) is str and _NUMBERS[kind].fullmatch(value):
            value = kind(value)
        within = type(value) is kind and not info.clamp
        within = within and (info.min is None or value >= info.min) and (info.max is None or value <= info.max)
        return value if within else _NOT_PLAIN
    if kind is str and type(value) is str:
        return value
    if kind is Path and type(value) is str and _only_named(info):
        # What is there has to be readable.
        return Path(value) if not os.path.exists(value) or os.access(value, os.R_OK) else _NOT_PLAIN
    return _NOT_PLAIN


def _only_named(info: Any) -> bool:
    """Whether nothing is asked of a path but that it can be read if it is there."""
    asked = info.exists or info.writable or info.resolve_path or info.allow_dash or info.path_type is not None
    return info.file_okay and info.dir_okay and not asked
