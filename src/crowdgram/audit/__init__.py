"""Attacks on mechanisms and whole releases: a lower bound on epsilon beside each claim.

Tables are made here; no user's is touched.
"""

from __future__ import annotations

from .attack import ATTACKED, Case, Finding, attack, cases
from .blackbox import attack_releases, attack_sampler
from .forms import FORMS, Form, form_cases
from .pairs import Pair, RowPair, pairs_for
from .release_twins import RELEASE_TWINS
from .selftest import SelfTest, check_draws
from .twins import MECHANISM_TWINS, Twin

__all__ = [
    "ATTACKED",
    "FORMS",
    "TWINS",
    "Case",
    "Finding",
    "Form",
    "Pair",
    "RowPair",
    "SelfTest",
    "Twin",
    "attack",
    "attack_releases",
    "attack_sampler",
    "cases",
    "check_draws",
    "form_cases",
    "pairs_for",
]

TWINS = (*MECHANISM_TWINS, *RELEASE_TWINS)
