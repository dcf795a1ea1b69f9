"""Plans: the error to expect of a release that is not made yet, from public figures and simulated crowds."""

from __future__ import annotations

from .expected import Bound, Expected
from .planner import plan
from .shapes import PRESETS, TAIL_PRESETS, TASTE_PRESETS, Preset
from .value import Plan

__all__ = ["PRESETS", "TAIL_PRESETS", "TASTE_PRESETS", "Bound", "Expected", "Plan", "Preset", "plan"]
