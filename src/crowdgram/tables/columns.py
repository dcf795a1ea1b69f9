"""Names of columns: there, once, and told apart from all others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from difflib import get_close_matches

from ..errors import InvalidTable

__all__ = ["LEFT_OUT", "MissingColumn", "all_or", "check_columns", "listed"]

LEFT_OUT = (
    "Columns whose names differ by case only are left out: rename one of them. So are pandas categories of Python "
    "objects."
)
"""Said beside an Ibis expression, for which all columns are opened (`all_or`)."""


class MissingColumn(InvalidTable):
    """A column is not there. Whoever knows which argument asked for it says so (`rows.open_rows`)."""


def check_columns(available: Sequence[object], wanted: Sequence[str] | None, text: str | None = None) -> None:
    """Refuse a column that is missing, repeated or ambiguous. `text`: a name for the text file that `available` was
    read from.

    What a text file has for names is not quoted: without a header line it is the first row, and a JSON key is content.
    """
    for name in wanted or ():
        if available.count(name) > 1:
            raise InvalidTable(f"column {name!r}: occurs more than once in the table. Rename one of them.", column=name)
        alike = [other for other in available if str(other).casefold() == name.casefold() and other != name]
        if name in available and alike:
            other = "another one" if text is not None else repr(alike[0])
            raise InvalidTable(
                f"column {name!r}: is ambiguous, as {other} differs from it by case only, and engines do not tell them "
                "apart. Rename one of them.",
                column=name,
            )
        if name not in available and text is not None:
            raise MissingColumn(
                f"column {name!r} is not in {text}. Check its header line: names need to match exactly.", column=name
            )
        if name not in available:
            alike += get_close_matches(name, [str(other) for other in available], 1)
            hint = f" Did you mean {alike[0]!r}? Names need to match exactly." if alike else ""
            said = f"column {name!r} is not in the table, which has {listed(available)}.{hint}"
            raise MissingColumn(said, column=name)


def listed(names: Sequence[object], most: int = 20) -> str:
    shown = ", ".join(repr(name) for name in names[:most])
    return shown + (f" and {len(names) - most} more" if len(names) > most else "") if names else "no columns"


def all_or(columns: Sequence[str] | None, available: Sequence[object]) -> Sequence[str]:
    """The columns that are asked for; None asks for all that engines tell apart by their names.

    Engines ignore case, cut names off at a null character, and make up names for columns without one and for those
    that repeat another. A name that is made up may be that of a third column, and is then read in its place.
    """
    if columns is not None:
        return columns
    times = Counter(str(name).casefold() for name in available)
    names = [name for name in available if isinstance(name, str) and name and "\0" not in name]
    return [name for name in names if times[name.casefold()] == 1]
