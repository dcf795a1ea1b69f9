"""`scipy.special` for the life of a command, without what a command does not need.

The functions themselves load in 10 ms. What wraps them for other array libraries takes 150 ms more, a fifth of a small
release. So a command has a module in the package's place that hands out the very same functions, and loads the package
for anything else. Only the command does: in a process of somebody else's, modules of others are left alone.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import threading
from importlib.machinery import PathFinder
from types import ModuleType
from typing import Any

__all__ = ["defer_scipy_special"]

_NAME = "scipy.special"
_LOADING = threading.RLock()


class _Deferred(ModuleType):
    """The functions of `scipy.special` that are ufuncs; the whole package as soon as anything else is asked of it."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        with _LOADING:  # or two threads would both give the package its place back
            if sys.modules.get(_NAME) is self:
                importlib.import_module("scipy")
                functions = importlib.import_module(f"{_NAME}._ufuncs")
                if name in functions.__all__:
                    return getattr(functions, name)
                del sys.modules[_NAME]
            return getattr(importlib.import_module(_NAME), name)


def defer_scipy_special() -> None:
    """Put the module in place, unless the package is loaded already or is asked to wrap its functions."""
    package = importlib.util.find_spec("scipy")  # which loads nothing: most commands need no numbers
    spec = None if package is None else PathFinder.find_spec(_NAME, package.submodule_search_locations)
    if _NAME in sys.modules or spec is None or os.environ.get("SCIPY_ARRAY_API"):
        return
    module = _Deferred(_NAME)
    module.__spec__, module.__path__ = spec, list(spec.submodule_search_locations or ())
    sys.modules[_NAME] = module
