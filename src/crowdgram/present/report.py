"""A release as one page of HTML, for readers who did not make it. Costs no privacy: it sees the release only.

The page is one file, and its own security policy forbids it to load anything or to run any script but its own. Tables
that are drawn are capped by the numbers below, which are public; the list holds all items, up to `MOST_LISTED`.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from typing import Any

from ..errors import InvalidArgument
from ..export import write_whole
from ..export.documents import to_text
from ..results.grouped import GroupedRelease
from ..results.grouped_reach import GroupedReach
from ..results.reach import Reach
from ..results.release import Release
from ..results.values import ItemEstimate, Measure, check_measure
from .comparison import comparison
from .numbers import interval, percent, percent_of, short
from .pages import render
from .pages.contexts import items_table, reach_groups_table, reach_table, story
from .pages.data import curve, listing
from .reach import QUESTION, reach_too_little
from .reach import largest_groups as reach_groups
from .selection import largest_groups, top_listed
from .wording import measured_as, too_little

__all__ = ["check_title", "page", "page_of_several", "report", "terms", "write_html"]

_ITEMS = 25
_ITEMS_OF_A_PART = 15
_SHARES = 20
_GROUPS = 100
_COMPARED = 8

Result = Release | GroupedRelease | Reach | GroupedReach


def report(
    results: Result | Mapping[str, Result],
    path: str | os.PathLike[str],
    *,
    title: str | None = None,
    measure: Measure = "shares",
    overwrite: bool = False,
) -> None:
    """Write a page to read in a browser, of one result or of several side by side, whole or not at all.

        crowdgram.report({"October": october, "November": november}, "both.html")

    results: a release or a reach, of all or by groups; or several by their labels. title: the heading. measure:
    "shares", or "counts". It is one file that loads nothing. overwrite: also over a file that is there. It costs no
    privacy.
    """
    if isinstance(results, Mapping) and not isinstance(results, GroupedRelease | GroupedReach):
        write_whole(path, page_of_several(results, title, measure), overwrite=overwrite)
        return
    write_whole(path, page(results, title, measure), overwrite=overwrite)


def write_html(
    result: Result,
    path: str | os.PathLike[str],
    title: str | None = None,
    measure: Measure = "shares",
    *,
    overwrite: bool = False,
) -> None:
    """Write the page of one result, whole or not at all."""
    report(result, path, title=title, measure=measure, overwrite=overwrite)


def page(result: Result, title: str | None = None, measure: Measure = "shares", digest: str | None = None) -> str:
    """The page of a release, of all groups of one, or of a reach. With counts, groups are still compared by shares.

    digest: SHA-256 of the file that the result was read from; without it, of the file that `save` would write.
    """
    check_measure(measure)
    check_title(title)
    _check(result)
    blocks: dict[str, str] = {}
    one = _context(result, "one", measure, "on this page", blocks, digest, title)
    return render("page.html.j2", title=one["title"] if title is None else title, blocks=blocks, results=[one])


def page_of_several(
    results: Mapping[str, Result],
    title: str | None = None,
    measure: Measure = "shares",
    digests: Mapping[str, str] | None = None,
) -> str:
    """Several results on one page: those that can be compared side by side, then each by itself."""
    check_measure(measure)
    check_title(title)
    if not results:
        raise InvalidArgument("results: needs at least one result.", argument="results")
    for label, result in results.items():
        if not isinstance(label, str) or not label.strip():
            raise InvalidArgument(
                f"results: the label {label!r:.80} needs to be a text, such as 'November'.", argument="results"
            )
        _check(result)
    blocks: dict[str, str] = {}
    contexts = []
    for place, (label, result) in enumerate(results.items(), 1):
        digest = None if digests is None else digests[label]
        one = _context(result, f"release-{place}", measure, "in this release", blocks, digest, None)
        one["what"] = f"{one['what']} of {label}"
        contexts.append({**one, "label": label, "terms": terms(result)})
    plain = {label: one for label, one in results.items() if isinstance(one, Release)}
    shown = dict(list(plain.items())[:_COMPARED])
    compared = None
    if len(shown) > 1 and len({(one.weight, one.item_columns) for one in shown.values()}) == 1:
        compared = comparison(shown, len(plain), "Releases compared", "releases")
    heading = " and ".join(dict.fromkeys(one["title"] for one in contexts))
    return render(
        "several.html.j2",
        title=heading if title is None else title,
        blocks=blocks,
        results=contexts,
        comparison=compared,
    )


def check_title(title: object) -> None:
    """Refuse a heading that says nothing."""
    if title is not None and (not isinstance(title, str) or not title.strip()):
        raise InvalidArgument(
            f"title={title!r}: needs to be a text. Leave it out for one that says what is shown.", argument="title"
        )


def terms(result: Result) -> tuple[str, ...]:
    """What a result promises and of how many users it is, in a row of a table."""
    made = result.joint if isinstance(result, GroupedRelease | GroupedReach) else result
    g = made.guarantee
    mechanism = "reach" if isinstance(made, Reach) else made.mechanism
    users, when = short(made.users) or "–", made.parameters.get("released_on", "–")
    return f"{g.epsilon:g}", f"{g.delta:g}", g.adjacency.value, mechanism, users, str(when)


def _check(result: object) -> None:
    if not isinstance(result, Release | GroupedRelease | Reach | GroupedReach):
        raise InvalidArgument(
            f"results: a {type(result).__name__} is no result. Give a Release or a Reach, of all or by groups.",
            argument="results",
        )


def _context(
    result: Result,
    key: str,
    measure: Measure,
    where: str,
    blocks: dict[str, str],
    digest: str | None,
    title: str | None,
) -> dict[str, Any]:
    """What the template of one result is given; its JSON is added to `blocks`."""
    said = _title(result, measure)
    found = listing(result, measure, title or said)
    blocks[f"{key}-list"] = found.block
    one: dict[str, Any] = {
        "key": key,
        "kind": "groups" if isinstance(result, GroupedRelease | GroupedReach) else "items",
        "title": said,
        "story": story(result, measure, where),
        "listing": found,
        "what": "groups and items" if isinstance(result, GroupedRelease | GroupedReach) else "items",
        "digest": digest or hashlib.sha256(to_text(result).encode()).hexdigest(),
        "citation": _citation(result, title or said),
    }
    if isinstance(result, GroupedRelease):
        return {**one, **_groups(result, measure, key)}
    if isinstance(result, GroupedReach):
        return {**one, **_reach_groups(result, key)}
    drawn = curve(result)
    one |= {"curve": drawn is not None, "held": [], "of": "Share of users" if isinstance(result, Reach) else "Share"}
    if drawn is not None:
        blocks[f"{key}-curve"] = drawn[0]
        if isinstance(result, Release):
            one["held"] = [(n, percent(share, 1)) for n, share in drawn[1]]
    if isinstance(result, Reach):
        return {**one, "first": "Items of most users", "table": reach_table(result, _ITEMS), "columns": []}
    own = result.item_columns if len(result.item_columns) > 1 else ()
    parts = [{"column": column, **_part(result.marginal(column), "values", measure)} for column in own]
    return {**one, "first": "Most probable items", "table": items_table(result, _ITEMS, measure), "columns": parts}


def _groups(grouped: GroupedRelease, measure: Measure, key: str) -> dict[str, Any]:
    shown = top_listed(grouped.shares, _GROUPS)
    places = {one.item: f"{key}-group-{number}" for number, one in enumerate(shown, 1)}
    compared: dict[Any, Release] = {group: grouped[group] for group in largest_groups(grouped, _COMPARED)}
    which = "" if len(shown) == len(grouped) else f" The {len(shown)} largest of {len(grouped):,} groups are here."
    add = "The shares of a group add to 100%." if measure == "shares" else "Counts are those of the group."
    return {
        "shares": items_table(
            grouped.shares,
            _SHARES,
            measure,
            heading="share of all",
            kind="groups",
            order="largest",
            links=places,
        ),
        "comparison": comparison(compared, len(grouped), "Groups compared", "groups") if len(compared) > 1 else None,
        "about_groups": f"{add}{which}",
        "groups": [
            {
                "group": one.item,
                "share": _size(one),
                "place": places[one.item],
                **_part(grouped[one.item], "items", measure),  # type: ignore[index]
            }
            for one in shown
        ],
    }


def _reach_groups(grouped: GroupedReach, key: str) -> dict[str, Any]:
    shown = reach_groups(grouped, _GROUPS)
    places = {group: f"{key}-group-{number}" for number, group in enumerate(shown, 1)}
    which = "" if len(shown) == len(grouped) else f" The {len(shown)} largest of {len(grouped):,} groups are here."
    parts = []
    for group in shown:
        own = grouped[group]
        little = reach_too_little(own)
        parts.append(
            {
                "group": group,
                "share": f"{own.users.value:,.0f} users ({own.users.lower:,.0f} to {own.users.upper:,.0f})",
                "place": places[group],
                "little": None if little is None else little[0].upper() + little[1:],
                "table": reach_table(own, _ITEMS_OF_A_PART, "of the group's users"),
            }
        )
    return {
        "shares": reach_groups_table(grouped, _SHARES, places),
        "comparison": None,
        "about_groups": f"Shares are of the users of the group; a user may have several items.{which}",
        "groups": parts,
    }


def _size(share: ItemEstimate) -> str:
    ends = share.probability, share.lower, share.upper
    return f"{percent_of(*ends)} of all ({interval(*ends, 'shares')})"


def _part(release: Release, kind: str, measure: Measure) -> dict[str, Any]:
    little = too_little(release)
    return {
        "little": None if little is None else little[0].upper() + little[1:],
        "table": items_table(release, _ITEMS_OF_A_PART, measure, kind=kind),
    }


def _title(result: Result, measure: Measure) -> str:
    if isinstance(result, Reach):
        return f"{QUESTION.replace('each item', 'each')} {' and '.join(result.item_columns)}"
    if isinstance(result, GroupedReach):
        items = " and ".join(result.joint.item_columns[1:])
        return f"{QUESTION.replace('each item', 'each')} {items}, for each {result.by}"
    if isinstance(result, GroupedRelease):
        return f"{measured_as(result.joint, result.joint.item_columns[1:], measure)} for each {result.by}"
    return measured_as(result, result.item_columns, measure)


def _citation(result: Result, title: str) -> str:
    """How to cite a result: what it is, since when, under which promise, and made by what."""
    made = result.joint if isinstance(result, GroupedRelease | GroupedReach) else result
    g, when = made.guarantee, made.parameters.get("released_on")
    day = "" if when is None else f" Released on {when}"
    promise = f"{g.epsilon:g}" if not g.delta else f"({g.epsilon:g}, {g.delta:g})"
    version = made.versions.get("crowdgram")
    by = "Crowdgram" if version is None else f"Crowdgram {version}"
    start = f"{day} under" if day else " Released under"
    return f"{title}.{start} {promise}-differential privacy of one {g.unit} ({g.adjacency.value}), by {by}."
