"""Presentation: results in words, in plots, in notebooks and as a page of HTML."""

from __future__ import annotations
