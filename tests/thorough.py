"""How much the tests try: a choice by default, and all of it with CROWDGRAM_TESTS=thorough (`make test-thorough`)."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

THOROUGH = os.environ.get("CROWDGRAM_TESTS") == "thorough"


def examples(few, many=None):
    """Settings of a property test: this many examples, and ten times as many if thorough, or `many`."""
    tried = (many or 10 * few) if THOROUGH else few
    return settings(max_examples=tried, deadline=None, suppress_health_check=[HealthCheck.too_slow])
