"""Pages: templates, style, script and libraries, put together as one HTML file that loads nothing."""

from __future__ import annotations

from .templating import render

__all__ = ["render"]
