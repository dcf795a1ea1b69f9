"""Escaping of names that somebody else chose, for the place in which they are shown or stored.

A name comes from a domain or from a saved file. JSON and Parquet hold it as it is; a terminal, a page, a picture and a
spreadsheet would each take some of it for an instruction.
"""

from __future__ import annotations

import unicodedata

__all__ = ["guarded_cell", "printable", "unguarded_cell"]

_FORMULA = tuple("=+-@\u2212")
_BREAKS = tuple("\t\r\n'")
_UNSEEN = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Blank, or without a shape, though Unicode counts them as letters, marks or symbols."""


def printable(text: str) -> str:
    """`text` without what could steer a terminal or turn a line around: control, format and surrogate characters
    become visible escapes.
    """
    return "".join(
        char.encode("unicode_escape").decode() if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp") else char
        for char in text
    )


def guarded_cell(text: str) -> str:
    """`text` for a cell of CSV that a spreadsheet may open: what would be read as a formula gets a quote before it.

    That is a text that begins with a tab, a line break, or the quote itself, so that `unguarded_cell` gives back every
    text; or whose first character that can be seen is one of = + - @ in any width: programs drop blanks and invisible
    characters before it.
    """
    seen = next((char for char in text if not _is_unseen(char)), "")
    formula = unicodedata.normalize("NFKC", seen).startswith(_FORMULA)
    return f"'{text}" if formula or text.startswith(_BREAKS) else text


def _is_unseen(char: str) -> bool:
    """Whether a character is blank, or has no shape at all."""
    return (
        char.isspace()
        or char in _UNSEEN
        or unicodedata.category(char) in ("Cc", "Cf", "Cn", "Co", "Cs", "Mn", "Zl", "Zp", "Zs")
    )


def unguarded_cell(cell: str) -> str:
    """The text that `guarded_cell` was given."""
    return cell.removeprefix("'")
