"""Which items and groups are shown."""

from __future__ import annotations

from crowdgram.present.selection import common_items, largest_groups

from .test_report import OTHER, grouped, with_other


def test_what_is_common():
    whole = with_other()
    assert largest_groups(whole, 1) == ["DE"]
    assert common_items([whole["DE"], whole["FR"]], 1) == ["a", OTHER]
    assert largest_groups(grouped((0.2, 0.5, 0.3)), 2) == ["g1", "g2"]
