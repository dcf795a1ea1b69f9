"""Crowdgram: the distribution over items of a (user, item) table, under user-level differential privacy.

    import crowdgram

    release = crowdgram.release("visits.parquet", user="user", item="page", epsilon=1.0, delta=1e-6, domain="pages.txt")
    release.top(10)

Nothing heavy is imported until it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from . import errors as errors
    from . import paper as paper
    from . import samples as samples
    from . import synth as synth
    from . import theory as theory
    from .errors import CrowdgramError
    from .export import load, make_key, sign, verify
    from .mechanisms import Adaptive, Auto, Discover
    from .paper import Paper
    from .planning import Plan, plan
    from .present.report import report
    from .privacy import Adjacency, Guarantee, Ledger, LedgerHead
    from .releases import reach, recover, release, verify_ledger
    from .results import (
        Difference,
        GroupedReach,
        GroupedRelease,
        ItemCount,
        ItemCounts,
        ItemEstimate,
        Other,
        Quantity,
        Reach,
        ReachedItem,
        Release,
        Series,
        SeriesPoint,
    )
    from .tables import Bins, Csv, Database, DuckDB, Spark

__all__ = [
    "Adaptive",
    "Adjacency",
    "Auto",
    "Bins",
    "CrowdgramError",
    "Csv",
    "Database",
    "Difference",
    "Discover",
    "DuckDB",
    "GroupedReach",
    "GroupedRelease",
    "Guarantee",
    "ItemCount",
    "ItemCounts",
    "ItemEstimate",
    "Ledger",
    "LedgerHead",
    "Other",
    "Paper",
    "Plan",
    "Quantity",
    "Reach",
    "ReachedItem",
    "Release",
    "Series",
    "SeriesPoint",
    "Spark",
    "__version__",
    "load",
    "make_key",
    "plan",
    "reach",
    "recover",
    "release",
    "report",
    "sign",
    "verify",
    "verify_ledger",
]

__version__ = "0.1.0"

_MODULES = {"errors", "paper", "samples", "synth", "theory"}
_HOMES = {
    "Adaptive": "mechanisms",
    "Adjacency": "privacy",
    "Auto": "mechanisms",
    "Bins": "tables",
    "CrowdgramError": "errors",
    "Csv": "tables",
    "Database": "tables",
    "Difference": "results",
    "Discover": "mechanisms",
    "DuckDB": "tables",
    "GroupedReach": "results",
    "GroupedRelease": "results",
    "Guarantee": "privacy",
    "ItemCount": "results",
    "ItemCounts": "results",
    "ItemEstimate": "results",
    "Ledger": "privacy",
    "LedgerHead": "privacy",
    "Other": "results",
    "Paper": "paper",
    "Plan": "planning",
    "Quantity": "results",
    "Reach": "results",
    "ReachedItem": "results",
    "Release": "results",
    "Series": "results",
    "SeriesPoint": "results",
    "Spark": "tables",
    "load": "export",
    "make_key": "export",
    "plan": "planning",
    "reach": "releases",
    "recover": "releases",
    "release": "releases",
    "report": "present.report",
    "sign": "export",
    "verify": "export",
    "verify_ledger": "releases",
}


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name in _MODULES:
        return import_module(f".{name}", __name__)
    if name not in _HOMES:
        raise AttributeError(f"module 'crowdgram' has no attribute {name!r}")
    value = getattr(import_module(f".{_HOMES[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *_MODULES})
