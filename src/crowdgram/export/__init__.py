"""Export: results as files and frames."""

from __future__ import annotations

from .json_file import load, save, write_csv, write_parquet, write_whole

__all__ = ["load", "save", "write_csv", "write_parquet", "write_whole"]
