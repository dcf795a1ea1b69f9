"""Private tables: sources, the domain, counts and bounded integer sums. The only package that knows Ibis."""

from __future__ import annotations

from .counts import ROW_LIMIT, Counts, count_rows, tally_rows
from .distances import MAX_BITS, MAX_EXPONENT, MAX_RADIUS, Centre, CentredSum, Distances, Norm, distances
from .domain import Domain, read_domain
from .sets import GAIN, SPREAD, ItemSets, item_sets, largest_part
from .sources import Rows, open_rows
from .sums import UNIT, l1_sum, rows_histogram, sampled_sum

__all__ = [
    "GAIN",
    "MAX_BITS",
    "MAX_EXPONENT",
    "MAX_RADIUS",
    "ROW_LIMIT",
    "SPREAD",
    "UNIT",
    "Centre",
    "CentredSum",
    "Counts",
    "Distances",
    "Domain",
    "ItemSets",
    "Norm",
    "Rows",
    "count_rows",
    "distances",
    "item_sets",
    "l1_sum",
    "largest_part",
    "open_rows",
    "read_domain",
    "rows_histogram",
    "sampled_sum",
    "tally_rows",
]
