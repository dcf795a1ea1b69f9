"""Export: results as files and frames."""

from __future__ import annotations

from .documents import load, load_reach, save
from .json_file import load_joint
from .keys import make_key
from .signing import sign, verify
from .tabular import write_csv, write_parquet
from .writing import write_whole

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
