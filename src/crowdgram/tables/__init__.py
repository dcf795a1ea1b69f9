"""Private tables: sources, the domain, counts and bounded integer sums. The only package that knows Ibis."""

from __future__ import annotations

from .counts import ROW_LIMIT, Counts, count_rows, known_counts, listed_rows, tally_rows
from .databases import Database, as_database, is_address
from .distances import (
    MAX_BITS,
    MAX_MASS_SCALE,
    MAX_RADIUS,
    MAX_STRETCH,
    Centre,
    CentredSum,
    Distances,
    Norm,
    distances,
)
from .domain import Domain, Item, combined, read_domain, read_joint_domain
from .holdings import HeldItems, Holdings, held_items, holdings
from .kinds import Value
from .rows import Rows, open_rows
from .sets import GAIN, SPREAD, ItemSets, item_sets, largest_part
from .sources import Placed
from .sums import UNIT, concentration_sum, l1_sum, rows_histogram, sampled_sum
from .tallies import Tallies, tally

__all__ = [
    "GAIN",
    "MAX_BITS",
    "MAX_MASS_SCALE",
    "MAX_RADIUS",
    "MAX_STRETCH",
    "ROW_LIMIT",
    "SPREAD",
    "UNIT",
    "Centre",
    "CentredSum",
    "Counts",
    "Database",
    "Distances",
    "Domain",
    "HeldItems",
    "Holdings",
    "Item",
    "ItemSets",
    "Norm",
    "Placed",
    "Rows",
    "Tallies",
    "Value",
    "as_database",
    "combined",
    "concentration_sum",
    "count_rows",
    "distances",
    "held_items",
    "holdings",
    "is_address",
    "item_sets",
    "known_counts",
    "l1_sum",
    "largest_part",
    "listed_rows",
    "open_rows",
    "read_domain",
    "read_joint_domain",
    "rows_histogram",
    "sampled_sum",
    "tally",
    "tally_rows",
]
