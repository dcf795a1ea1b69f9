"""Attacks on the mechanisms: a lower bound on epsilon beside each claim. Tables are made here; no user's is touched."""

from __future__ import annotations

from .attack import ATTACKED, Case, Finding, attack, cases
from .blackbox import attack_releases, attack_sampler
from .pairs import Pair, pairs_for
from .twins import TWINS, Twin

__all__ = [
    "ATTACKED",
    "TWINS",
    "Case",
    "Finding",
    "Pair",
    "Twin",
    "attack",
    "attack_releases",
    "attack_sampler",
    "cases",
    "pairs_for",
]
