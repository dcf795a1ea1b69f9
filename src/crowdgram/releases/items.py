"""Which items a release is over: public lists, or what is found in the table.

By groups, items are pairs of a group and an item. If the list of either is missing, the pairs are found, among the rows
that the other list allows. Every group then has an item of its own for what was not found in it; and if the groups were
found too, one more item is for the rows of no group that was found. Why that is private: docs/proofs/discovery.md.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ..errors import AccuracyWarning, InvalidArgument, InvalidDomain
from ..mechanisms import Discover
from ..results import Item, Other

if TYPE_CHECKING:
    from ..tables import Domain, Rows

__all__ = [
    "Lists",
    "check_tells",
    "found_domain",
    "group_numbers",
    "missing_lists",
    "named_items",
    "public_domain",
    "read_lists",
    "sought_rows",
    "with_bins",
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


def with_bins(item: object, by: object, domain: object, groups: object) -> tuple[object, object]:
    """The domain and the groups, with the intervals of items and groups that are binned, which are public lists."""
    names, bins = _binned(item)
    _, group_bins = _binned(by)
    for name, intervals in group_bins.items():
        if groups is not None:
            raise InvalidArgument(
                f"groups={groups!r}: by[{name!r}] is binned, and its bins are the groups. Leave groups out.",
                argument="groups",
            )
        groups = intervals
    if not bins:
        return domain, groups
    given = domain if isinstance(domain, Mapping) else {}
    taken = next((name for name in bins if name in given or (len(names) == 1 and domain is not None)), None)
    if taken is not None:
        raise InvalidArgument(
            f"domain: item[{taken!r}] is binned, and its bins are its domain. Leave it out of domain.",
            argument="domain",
        )
    if not _missing(domain) and not isinstance(domain, Mapping):
        raise InvalidArgument(
            f"domain: item[{next(iter(bins))!r}] is binned, and its bins are its domain. Give a mapping of each other "
            "item column to its domain.",
            argument="domain",
        )
    if len(names) == 1:
        return next(iter(bins.values())), groups
    if isinstance(domain, Mapping) or (domain is None and len(bins) == len(names)):
        return {**given, **bins}, groups
    return domain, groups


def _binned(columns: object) -> tuple[list[object], dict[str, tuple[str, ...]]]:
    """The names of all columns, and the intervals of those that are binned. What is no column is refused later."""
    from ..tables import Bins

    parts = columns if isinstance(columns, list | tuple) else [columns]
    named = [pair for one in parts for pair in (one.items() if isinstance(one, Mapping) else [(one, None)])]
    return [name for name, _ in named], {str(name): made.names for name, made in named if isinstance(made, Bins)}


def missing_lists(domain: object, groups: object, *, grouped: bool) -> list[str]:
    """The arguments that give no list, so that items must be found."""
    return [*(["domain"] if _missing(domain) else []), *(["groups"] if grouped and _missing(groups) else [])]


def read_lists(rows: Rows, domain: object, groups: object, *, grouped: bool) -> Lists:
    """Read the public lists in the types of the item columns, and warn of what they cannot hold. No row is read."""
    lists = _read_lists(rows, domain, groups, grouped=grouped)
    parts = [] if lists.groups is None else [("groups", 0, lists.groups.items)]
    if lists.items is not None:
        first, columns = int(grouped), len(lists.items.types)
        each = zip(*lists.items.items, strict=True) if columns > 1 else [lists.items.items]
        parts += [("domain", first + place, values) for place, values in enumerate(each)]
    for argument, place, values in parts:
        _warn_of_spelling(rows, argument, place, values)
    return lists


def _warn_of_spelling(rows: Rows, argument: str, place: int, values: Sequence[object]) -> None:
    """Warn if a public list holds what no row can have, by the expression of its column alone."""
    from ..tables.spelling import misspelt

    found = misspelt(values, rows.spellings[place]) if rows.spellings else None
    if found is not None:
        text, function = found
        gives = {"lower": "no capitals", "upper": "no small letters", "trim": "no spaces around a text"}[function]
        warnings.warn(
            f"{argument}: holds {text!r}, which no row can have, because {rows.names[place]!r} is computed with "
            f"{function}, which gives {gives}. Write the list in the same way.",
            AccuracyWarning,
            stacklevel=7,  # the caller of `release`, behind `sanitize_errors`
        )


def _read_lists(rows: Rows, domain: object, groups: object, *, grouped: bool) -> Lists:
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


def check_tells(domain: Domain) -> None:
    """Refuse a budget that would buy nothing: the share of a single item is 1 for every table."""
    if len(domain) == 1:
        raise InvalidDomain(
            "domain: has one item, whose share is 1 for every table. List more items, name one for all other rows "
            "(other='other'), which also gives the item's count, or count its users with crowdgram.reach.",
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


def group_numbers(domain: Domain) -> tuple[int, ...]:
    """The number of the group of each place of a domain by groups, in the order of the groups; -1: of no group."""
    listed: tuple[Any, ...] = domain.items
    groups = domain.groups or tuple(dict.fromkeys(pair[0] for pair in listed))
    number = {group: place for place, group in enumerate(groups)}
    own = tuple(number[group] for group in domain.groups)
    return (*(number[pair[0]] for pair in listed), *own, *([-1] if domain.other else []))


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
