"""Which two tables count as neighbours. It stands alone, so that the command line knows it without loading the rest."""

from __future__ import annotations

from enum import StrEnum

from .errors import InvalidArgument

__all__ = ["Adjacency"]


class Adjacency(StrEnum):
    """Which two tables count as neighbours.

    ADD_REMOVE: one has all rows of one unit more than the other (the number of units is private).
    REPLACE: all rows of one unit are changed for any others (the number of units is public).
    """

    ADD_REMOVE = "add-remove"
    REPLACE = "replace"

    @classmethod
    def parse(cls, value: object) -> Adjacency:
        """The adjacency named by `value`, or InvalidArgument with the choices."""
        try:
            return cls(value)  # type: ignore[arg-type]
        except ValueError:
            choices = " or ".join(f"'{choice.value}'" for choice in cls)
            raise InvalidArgument(
                f"adjacency={value!r}: needs to be {choices}. 'add-remove' is the usual choice.", argument="adjacency"
            ) from None
