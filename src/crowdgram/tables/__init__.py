"""Private tables: sources, the domain, counts and bounded integer sums. The only package that knows Ibis."""

from __future__ import annotations

from .counts import ROW_LIMIT, Counts, count_rows, known_counts
from .distances import MAX_BITS, MAX_RADIUS, MAX_STRETCH, Centre, CentredSum, Distances, Norm, distances
from .domain import Domain, read_domain
from .sources import Rows, open_rows
from .sums import UNIT, l1_sum, rows_histogram, sampled_sum
from .tallies import Tallies, tally

__all__ = [
    "MAX_BITS",
    "MAX_RADIUS",
    "MAX_STRETCH",
    "ROW_LIMIT",
    "UNIT",
    "Centre",
    "CentredSum",
    "Counts",
    "Distances",
    "Domain",
    "Norm",
    "Rows",
    "Tallies",
    "count_rows",
    "distances",
    "known_counts",
    "l1_sum",
    "open_rows",
    "read_domain",
    "rows_histogram",
    "sampled_sum",
    "tally",
]
