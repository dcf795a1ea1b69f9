"""Private tables: sources, the domain, counts and statistics of users. The only package that knows Ibis."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..later import load_later
from .addresses import Database, as_database, is_address
from .bins import Bins
from .counts import ROW_LIMIT, Counts, Presence, count_rows, find_presence, known_counts, listed_rows, tally_rows
from .delimited import Csv
from .domain import Domain, Item, combined, read_domain, read_joint_domain
from .engines import DuckDB, Spark
from .kinds import Value
from .rows import Rows, open_rows
from .sources import Placed
from .statistics import (
    GAIN,
    HALF_BINS,
    MAX_BITS,
    MAX_MASS_SCALE,
    MAX_RADIUS,
    MAX_STRETCH,
    SETS_BOUND,
    SPREAD,
    UNIT,
    BoundedSum,
    CappedRows,
    Centre,
    Distances,
    ItemSets,
    Norm,
    RowsByStratum,
    SampledRow,
    SimulatedCrowd,
    UsersByHalf,
    UsersByItems,
    UsersByRows,
    WeightedSets,
    distances,
    item_sets,
    largest_part,
)
from .stored_files import read_columns
from .within import Within

if TYPE_CHECKING:
    from .statistics.reach import BOOKS, FAR, GROUP_PART, MOST_ITEMS_PER_USER, ItemReach
    from .statistics.tallies import Tallies, Tally
    from .statistics.user_totals import HeldItems, RootOfItems, UserTotals, held_items, user_totals

__all__ = [
    "BOOKS",
    "FAR",
    "GAIN",
    "GROUP_PART",
    "HALF_BINS",
    "MAX_BITS",
    "MAX_MASS_SCALE",
    "MAX_RADIUS",
    "MAX_STRETCH",
    "MOST_ITEMS_PER_USER",
    "ROW_LIMIT",
    "SETS_BOUND",
    "SPREAD",
    "UNIT",
    "Bins",
    "BoundedSum",
    "CappedRows",
    "Centre",
    "Counts",
    "Csv",
    "Database",
    "Distances",
    "Domain",
    "DuckDB",
    "HeldItems",
    "Item",
    "ItemReach",
    "ItemSets",
    "Norm",
    "Placed",
    "Presence",
    "RootOfItems",
    "Rows",
    "RowsByStratum",
    "SampledRow",
    "SimulatedCrowd",
    "Spark",
    "Tallies",
    "Tally",
    "UserTotals",
    "UsersByHalf",
    "UsersByItems",
    "UsersByRows",
    "Value",
    "WeightedSets",
    "Within",
    "as_database",
    "combined",
    "count_rows",
    "distances",
    "find_presence",
    "held_items",
    "is_address",
    "item_sets",
    "known_counts",
    "largest_part",
    "listed_rows",
    "open_rows",
    "read_columns",
    "read_domain",
    "read_joint_domain",
    "tally_rows",
    "user_totals",
]

# Statistics that most releases have no use for.
__getattr__ = load_later(
    __name__,
    {
        "BOOKS": "statistics.reach",
        "FAR": "statistics.reach",
        "GROUP_PART": "statistics.reach",
        "HeldItems": "statistics.user_totals",
        "ItemReach": "statistics.reach",
        "MOST_ITEMS_PER_USER": "statistics.reach",
        "RootOfItems": "statistics.user_totals",
        "Tallies": "statistics.tallies",
        "Tally": "statistics.tallies",
        "UserTotals": "statistics.user_totals",
        "held_items": "statistics.user_totals",
        "user_totals": "statistics.user_totals",
    },
)
