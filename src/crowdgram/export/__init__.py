"""Export: results as files and frames."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..later import load_later
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

# What signs results, and what writes tables of them.
__getattr__ = load_later(
    __name__,
    {
        "make_key": "keys",
        "sign": "signing",
        "verify": "signing",
        "write_csv": "tabular",
        "write_parquet": "tabular",
    },
)
