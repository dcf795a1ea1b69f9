"""How much the tests try: a choice by default, and all of it with CROWDGRAM_TESTS=thorough (`make test-thorough`)."""

from __future__ import annotations

import os
from itertools import combinations, product

from hypothesis import HealthCheck, settings

THOROUGH = os.environ.get("CROWDGRAM_TESTS") == "thorough"


def examples(few, many=None):
    """Settings of a property test: this many examples, and ten times as many if thorough, or `many`."""
    tried = (many or 10 * few) if THOROUGH else few
    return settings(max_examples=tried, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def combined(*choices):
    """Combinations of one of each: so many that any two choices meet in one of them; all of them if thorough."""
    rows = list(product(*(range(len(choice)) for choice in choices)))
    if not THOROUGH:
        pairs = {row: set(combinations(enumerate(row), 2)) for row in rows}
        left, kept = set().union(*pairs.values()), []
        while left:
            kept.append(max(rows, key=lambda row: len(pairs[row] & left)))
            left -= pairs[kept[-1]]
        rows = sorted(kept)
    return [tuple(choice[j] for choice, j in zip(choices, row, strict=True)) for row in rows]


def each(*choices):
    """Combinations of one of each: so many that every choice is in one of them; all of them if thorough."""
    if THOROUGH:
        return list(product(*choices))
    return [tuple(choice[j % len(choice)] for choice in choices) for j in range(max(map(len, choices)))]
