"""Text for HTML: what others chose leaves nothing that markup, a terminal or the order of letters could obey."""

from __future__ import annotations

import html
from collections.abc import Iterable

from ..escaping import printable
from .wording import shorten

__all__ = ["escape", "paragraphs"]


def escape(text: object, longest: int | None = None) -> str:
    """`text` as HTML may hold it, between tags or in a quoted attribute; cut to `longest` characters."""
    whole = str(text)
    return html.escape(printable(whole if longest is None else shorten(whole, longest)))


def paragraphs(warning: str | None, sentences: Iterable[str]) -> str:
    """The sentences about a result, each by itself; the warning that it is mostly noise comes first."""
    warned = "" if warning is None else f"<p><b>{escape(warning[0].upper() + warning[1:])}</b></p>"
    return warned + "".join(f"<p>{escape(one)}</p>" for one in sentences)
