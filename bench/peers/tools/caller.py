"""What the caller has to do for tools that do not bound users themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas


def rows_of_users(table: str, rows: int) -> Any:
    """Rows of each item, at most so many of a user, drawn by chance."""
    shuffled = pandas.read_parquet(table).sample(frac=1)
    return shuffled.groupby("user").head(rows)["item"]


def users_of_items(table: str, items: int) -> Any:
    """Users of each item, at most so many items of a user, drawn by chance."""
    shuffled = pandas.read_parquet(table).drop_duplicates().sample(frac=1)
    return shuffled.groupby("user").head(items)["item"]


def clipped_sums(table: str, items: list[int], norm: float) -> Any:
    """Rows of each item, where a user's counts are scaled down to an l2 norm."""
    counts = pandas.read_parquet(table).groupby(["user", "item"]).size()
    norms = np.sqrt((counts**2).groupby("user").sum())
    scale = np.minimum(1, norm / norms)
    clipped = counts * scale.reindex(counts.index.get_level_values("user")).to_numpy()
    return clipped.groupby("item").sum().reindex(items, fill_value=0).to_numpy(float)


def totals(kept: Any, items: list[int]) -> Any:
    """How often each item is kept."""
    return kept.value_counts().reindex(items, fill_value=0).to_numpy()
