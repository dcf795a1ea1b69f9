"""Export: results as files and frames."""

from __future__ import annotations

from .json_file import load, load_joint, save
from .tabular import write_csv, write_parquet
from .writing import write_whole

__all__ = ["load", "load_joint", "save", "write_csv", "write_parquet", "write_whole"]
