"""Names that somebody else chose, made harmless where they are shown or stored.

A name comes from a domain or from a saved file. JSON and Parquet hold it as it is; a terminal, a page, a picture and a
spreadsheet would each take some of it for an instruction.
"""

from __future__ import annotations

import unicodedata

__all__ = ["guarded_cell", "printable", "unguarded_cell"]

_FORMULA = tuple("=+-@\t\r\n'＝＋－＠")


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

    That is a text whose first character is one of = + - @ (or their wide forms), a tab, a line break, or the quote
    itself, so that `unguarded_cell` gives back every text.
    """
    return f"'{text}" if text.startswith(_FORMULA) else text


def unguarded_cell(cell: str) -> str:
    """The text that `guarded_cell` was given."""
    return cell.removeprefix("'")
