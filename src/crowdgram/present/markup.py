"""Text for HTML: what others chose leaves nothing that markup, a terminal or the order of letters could obey."""

from __future__ import annotations

import html

from ..escaping import printable
from .wording import shorten

__all__ = ["escape"]


def escape(text: object, longest: int | None = None) -> str:
    """`text` as HTML may hold it, between tags or in a quoted attribute; cut to `longest` characters."""
    whole = str(text)
    return html.escape(printable(whole if longest is None else shorten(whole, longest)))
