"""Which argument a value came from, so that an error can name it."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import InvalidArgument

__all__ = ["DOMAIN", "GROUPS", "QUERY", "TABLE", "WHERE", "Role", "check_unicode"]


@dataclass(frozen=True)
class Role:
    """An argument, or one part of it: `where`, `item['month']`, `domain['page']`."""

    argument: str
    part: str | None = None

    def __str__(self) -> str:
        return self.argument if self.part is None else f"{self.argument}[{self.part!r}]"


TABLE, DOMAIN, GROUPS, WHERE, QUERY = map(Role, ("table", "domain", "groups", "where", "query"))


def check_unicode(text: str, role: Role) -> None:
    """Refuse text with half a character (a lone surrogate): no engine can read it."""
    if any("\ud800" <= char <= "\udfff" for char in text):
        raise InvalidArgument(
            f"{role}: holds {text!r}, and needs valid Unicode text. Remove the lone surrogate.", argument=role.argument
        )
