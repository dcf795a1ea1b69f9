"""A page on this machine, for people who do not write Python: plan, release, read the report."""

from __future__ import annotations

from .serving import serve

__all__ = ["serve"]
