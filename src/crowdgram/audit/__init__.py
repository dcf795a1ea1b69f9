"""Attacks on mechanisms and whole releases: a lower bound on epsilon beside each claim.

Tables are made here; no user's table is read.
"""

from __future__ import annotations

from .attack import ATTACKED, Case, Finding, attack, cases, check_effort
from .blackbox import attack_releases, attack_sampler
from .forms import FORMS, Form, chosen_forms
from .mutants import MECHANISM_MUTANTS, Mutant
from .pairs import Pair, RowPair, pairs_for
from .release_mutants import RELEASE_MUTANTS
from .selftest import SelfTest, check_draws
from .whole_releases import WHOLE_RELEASES, WholeRelease, release_cases

__all__ = [
    "ATTACKED",
    "FORMS",
    "MUTANTS",
    "WHOLE_RELEASES",
    "Case",
    "Finding",
    "Form",
    "Mutant",
    "Pair",
    "RowPair",
    "SelfTest",
    "WholeRelease",
    "attack",
    "attack_releases",
    "attack_sampler",
    "cases",
    "check_draws",
    "check_effort",
    "chosen_forms",
    "pairs_for",
    "release_cases",
]

MUTANTS = (*MECHANISM_MUTANTS, *RELEASE_MUTANTS)
