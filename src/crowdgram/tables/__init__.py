"""Private tables: sources, the domain, counts and bounded integer sums. The only package that knows Ibis."""

from __future__ import annotations

from .counts import ROW_LIMIT, Counts, count_rows
from .databases import Database, as_database
from .distances import MAX_BITS, MAX_RADIUS, MAX_STRETCH, Centre, CentredSum, Distances, Norm, distances
from .domain import Domain, combined, read_domain, read_joint_domain
from .rows import Rows, open_rows
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
    "Database",
    "Distances",
    "Domain",
    "Norm",
    "Rows",
    "Tallies",
    "as_database",
    "combined",
    "count_rows",
    "distances",
    "l1_sum",
    "open_rows",
    "read_domain",
    "read_joint_domain",
    "rows_histogram",
    "sampled_sum",
    "tally",
]
