"""Periods of a calendar: days, weeks, months, quarters or years, each with one name and a half-open interval of days.

A ledger with periods has one budget for each. So a period must have one name only: two spellings of one month would be
two budgets for the same rows.
"""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass
from typing import Literal, get_args

from crowdgram.errors import InvalidArgument

__all__ = ["Every", "Period", "parse_every"]

Every = Literal["day", "week", "month", "quarter", "year"]
"""How long each period of a ledger is. Weeks are those of ISO 8601: from Monday to Sunday."""

_FORMS: dict[str, tuple[str, str]] = {
    "day": (r"([0-9]{4})-([0-9]{2})-([0-9]{2})", "2026-11-03"),
    "week": (r"([0-9]{4})-W([0-9]{2})", "2026-W45"),
    "month": (r"([0-9]{4})-([0-9]{2})", "2026-11"),
    "quarter": (r"([0-9]{4})-Q([1-4])", "2026-Q4"),
    "year": (r"([0-9]{4})", "2026"),
}


@dataclass(frozen=True, slots=True, order=True)
class Period:
    """One period: its first day, the first day after it, and its name, such as "2026-11"."""

    start: datetime.date
    end: datetime.date
    name: str

    @classmethod
    def parse(cls, every: Every, name: object) -> Period:
        """The period of this name. Names are exact: "2026-1" is not January."""
        form, example = _FORMS[every]
        found = re.fullmatch(form, name) if isinstance(name, str) else None
        ends = None if found is None else _ends(every, [int(part) for part in found.groups()])
        if found is None or ends is None:
            raise InvalidArgument(
                f"period={name!r:.80}: needs to be the name of a {every}, such as {example!r}.", argument="period"
            )
        return cls(*ends, found[0])  # a plain text: a subclass may say otherwise what it is


def parse_every(value: object) -> Every:
    """How long periods are, or InvalidArgument with the choices."""
    for one in get_args(Every):
        if value == one:
            return one  # type: ignore[no-any-return]
    choices = ", ".join(map(repr, get_args(Every)))
    raise InvalidArgument(f"every={value!r:.80}: needs to be one of {choices}. Try every='month'.", argument="every")


def _ends(every: Every, parts: list[int]) -> tuple[datetime.date, datetime.date] | None:
    """The first day and the first day after; None if the calendar has no such period."""
    year = parts[0]
    try:
        if every == "day":
            start = datetime.date(*parts)
            return start, start + datetime.timedelta(days=1)
        if every == "week":
            start = datetime.date.fromisocalendar(year, parts[1], 1)
            return start, start + datetime.timedelta(days=7)
        if every == "month":
            return datetime.date(year, parts[1], 1), _first_of_month(year, parts[1] + 1)
        if every == "quarter":
            return datetime.date(year, 3 * parts[1] - 2, 1), _first_of_month(year, 3 * parts[1] + 1)
        return datetime.date(year, 1, 1), datetime.date(year + 1, 1, 1)
    except (ValueError, OverflowError):
        return None


def _first_of_month(year: int, month: int) -> datetime.date:
    """The first day of a month; month 13 is the next January."""
    return datetime.date(year + (month - 1) // 12, (month - 1) % 12 + 1, 1)
