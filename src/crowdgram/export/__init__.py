"""Export: results as files and frames."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from .documents import load, load_reach, save
from .json_file import load_joint
from .writing import write_whole

if TYPE_CHECKING:
    from .keys import make_key
    from .signing import sign, verify
    from .tabular import write_csv, write_parquet

__all__ = [
    "load",
    "load_joint",
    "load_reach",
    "make_key",
    "save",
    "sign",
    "verify",
    "write_csv",
    "write_parquet",
    "write_whole",
]

_LATER = {
    "make_key": "keys",
    "sign": "signing",
    "verify": "signing",
    "write_csv": "tabular",
    "write_parquet": "tabular",
}


def __getattr__(name: str) -> object:
    """What signs results, and what writes tables of them, is loaded when it is asked for."""
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_LATER[name]}", __name__), name)
