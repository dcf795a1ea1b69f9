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
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

__all__ = ["defer_scipy_special"]

_NAME = "scipy.special"
_LINEAR_ALGEBRA = "scipy.linalg"
_LOADING = threading.RLock()


class _Deferred(ModuleType):
    """A package of SciPy: its modules can be loaded, and all of it is as soon as anything is asked of the package."""

    def __init__(self, name: str, spec: ModuleSpec) -> None:
        super().__init__(name)
        self.__spec__, self.__path__ = spec, list(spec.submodule_search_locations or ())
        sys.modules[name] = self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        with _LOADING:  # or two threads would both give the package its place back
            return self._find(name)

    def _find(self, name: str) -> Any:
        self._give_back()
        return getattr(importlib.import_module(self.__name__), name)

    def _give_back(self) -> None:
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]


class _Functions(_Deferred):
    """The functions of `scipy.special` that are ufuncs; the whole package as soon as anything else is asked of it."""

    def _find(self, name: str) -> Any:
        if sys.modules.get(_NAME) is self:
            functions = _load_functions()
            if name in functions.__all__:
                return getattr(functions, name)
        return super()._find(name)


def _load_functions() -> ModuleType:
    """Without the package `scipy.linalg`, which loads what wraps them. From SciPy 1.18 on they need a module of it."""
    scipy, name = importlib.import_module("scipy"), f"{_NAME}._ufuncs"
    if name in sys.modules or _LINEAR_ALGEBRA in sys.modules:
        return importlib.import_module(name)
    spec = PathFinder.find_spec(_LINEAR_ALGEBRA, scipy.__path__)
    package = None if spec is None else _Deferred(_LINEAR_ALGEBRA, spec)
    try:
        return importlib.import_module(name)
    finally:
        if package is not None:
            package._give_back()


def defer_scipy_special() -> None:
    """Put the module in place, unless the package is loaded already or is asked to wrap its functions."""
    package = importlib.util.find_spec("scipy")  # which loads nothing: most commands need no numbers
    spec = None if package is None else PathFinder.find_spec(_NAME, package.submodule_search_locations)
    if _NAME in sys.modules or spec is None or os.environ.get("SCIPY_ARRAY_API"):
        return
    _Functions(_NAME, spec)
