"""Which items a release is over: public lists, or what is found in the table.

By groups, items are pairs of a group and an item. If the list of either is missing, the pairs are found, among the rows
that the other list allows. Every group then has an item of its own for what was not found in it; and if the groups were
found too, one more item is for the rows of no group that was found. Why that is private: docs/proofs/discovery.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ..errors import InvalidArgument, InvalidDomain
from ..mechanisms import Discover, Mechanism
from ..results import Item, Other

if TYPE_CHECKING:
    from ..tables import Domain, Rows

__all__ = [
    "Lists",
    "check_tells",
    "found_domain",
    "missing_lists",
    "named_items",
    "public_domain",
    "read_lists",
    "sought_rows",
]

DISCOVER = "discover"
"""Short for `Discover()`."""


@dataclass(frozen=True)
class Lists:
    """The public lists of a release. items: of the item columns; groups: of the first column, if the release is by
    group. None is a list that must be found.
    """

    items: Domain | None
    groups: Domain | None
    grouped: bool


def missing_lists(domain: object, groups: object, *, grouped: bool) -> list[str]:
    """The arguments that give no list, so that items must be found."""
    return [*(["domain"] if _missing(domain) else []), *(["groups"] if grouped and _missing(groups) else [])]


def read_lists(rows: Rows, domain: object, groups: object, *, grouped: bool) -> Lists:
    """Read the public lists in the types of the item columns. No row is read."""
    from ..tables import read_domain, read_joint_domain
    from ..tables.roles import GROUPS

    names, types = rows.names, rows.item_types
    first = None
    if grouped:
        first = None if _missing(groups) else read_domain(groups, types[0], item=names[0], role=GROUPS)
        names, types = names[1:], types[1:]
    if _missing(domain):
        return Lists(None, first, grouped)
    if isinstance(domain, Mapping) and any(_missing(part) for part in domain.values()):
        raise InvalidArgument(
            "domain: the items of one column cannot be found by themselves. Give a list for each column, or no domain.",
            argument="domain",
        )
    if len(names) == 1:
        return Lists(read_domain(domain, types[0], item=names[0]), first, grouped)
    return Lists(read_joint_domain(domain, types, names), first, grouped)


def public_domain(rows: Rows, lists: Lists, *, other: bool) -> Domain:
    """All combinations of public groups and items. `other`: with an item for rows that are not listed."""
    from ..tables import combined

    assert lists.items is not None
    if lists.groups is None:
        return replace(lists.items, other=other)
    groups: tuple[Any, ...] = lists.groups.items if other else ()
    return replace(combined([lists.groups, lists.items], rows.item_types), groups=groups)


def check_tells(domain: Domain, mechanism: Mechanism) -> None:
    """Refuse a budget that would buy nothing: the share of a single item is 1 for every table, so only counts tell."""
    if len(domain) == 1 and not mechanism.counts:
        raise InvalidDomain(
            f"domain: has one item, whose share is 1 for every table, and mechanism={mechanism.name!r} measures shares "
            "only. List more items, name one for all other rows (other='other'), or use mechanism='auto' for counts.",
            argument="domain",
        )


def sought_rows(rows: Rows, lists: Lists, *, other: bool) -> tuple[Rows, Rows]:
    """Read the rows: all that count, and those among them whose items are to be found. `other`: rows whose item is not
    in a public list count too, as rows of the group's own item.
    """
    from ..tables import listed_rows, tally_rows

    if lists.groups is not None:
        rows = listed_rows(rows, lists.groups, rows.keys[:1])
    if lists.items is not None and not other:
        rows = listed_rows(rows, lists.items, rows.keys[1:])
    tallied = tally_rows(rows)
    if lists.items is not None and other:
        return tallied, listed_rows(tallied, lists.items, rows.keys[1:])
    return tallied, tallied


def found_domain(rows: Rows, lists: Lists, found: Sequence[Any]) -> Domain:
    """The domain that the items found, which are in the order of their values, and the public lists make."""
    from ..tables import Domain

    groups: tuple[Any, ...] = ()
    if lists.groups is not None:
        groups = lists.groups.items
        place = {group: number for number, group in enumerate(groups)}
        found = sorted(found, key=lambda pair: place[pair[0]])  # in a group, still in the order of values
    elif lists.grouped:
        groups = tuple(dict.fromkeys(pair[0] for pair in found))
    return Domain(tuple(found), rows.item_types, other=lists.groups is None, groups=groups)


def named_items(domain: Domain, name: str) -> tuple[Item, ...]:
    """The items of a domain, with an `Other` called `name` for those that are not listed."""
    items: tuple[Item, ...] = domain.items
    if not domain.other and not domain.groups:
        return items
    other = Other.apart_from((*items, *domain.groups), name)
    columns = len(domain.types)
    own = tuple((group, *[other] * (columns - 1)) for group in domain.groups)
    last: tuple[Item, ...] = ((other if columns == 1 else (other,) * columns),) if domain.other else ()
    return (*items, *own, *last)


def _missing(given: object) -> bool:
    return given is None or isinstance(given, Discover) or (isinstance(given, str) and given == DISCOVER)
