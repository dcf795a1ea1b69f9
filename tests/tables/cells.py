"""What was counted, with users as the table has them."""

from __future__ import annotations

from crowdgram.tables import Counts


def fetch_cells(counts: Counts):
    """(user, idx, n), in Arrow."""
    names = counts.users.select("user", name=counts.names)
    named = counts.cells.inner_join(names, "user")
    return counts.engine.fetch(named.select("idx", "n", user=named.name), "testing")
