"""Which argument a value came from, so that an error can name it."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["DOMAIN", "GROUPS", "QUERY", "TABLE", "WHERE", "Role"]


@dataclass(frozen=True)
class Role:
    """An argument, or one part of it: `where`, `item['month']`, `domain['page']`."""

    argument: str
    part: str | None = None

    def __str__(self) -> str:
        return self.argument if self.part is None else f"{self.argument}[{self.part!r}]"


TABLE, DOMAIN, GROUPS, WHERE, QUERY = map(Role, ("table", "domain", "groups", "where", "query"))
