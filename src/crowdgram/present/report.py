"""A release as one page of HTML, for readers who did not make it. Costs no privacy: it sees the release only.

The page is one file without scripts, and its own security policy forbids it to load anything. What is drawn is capped
by the numbers below, which are public, so that the page of hundreds of groups or a million items stays small; it says
what it leaves out.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from itertools import combinations
from typing import Any

from ..errors import InvalidArgument
from ..export import write_whole
from ..inference.distances import by_distance
from ..privacy import event_to_dict
from ..results.grouped import GroupedRelease
from ..results.release import Release
from ..results.values import ItemEstimate, Measure, Quantity, Value, check_measure, is_other
from .markup import STYLE, bar, cells, digits, escape, heads, items_table, line, name, scale, wide
from .selection import common_items, largest_groups, top_listed
from .wording import measured_as, number, sentences, too_little

__all__ = ["check_title", "html_page", "page", "write_html"]

_ITEMS = 50
_ITEMS_OF_A_PART = 15
_SHARES = 20
_GROUPS = 100
_COMPARED_GROUPS = 8
_COMPARED_ITEMS = 20
_DIFFERENCES = 5
_EVENTS = 100


def write_html(
    release: Release | GroupedRelease,
    path: str | os.PathLike[str],
    title: str | None = None,
    measure: Measure = "shares",
    *,
    overwrite: bool = False,
) -> None:
    """Write the page, whole or not at all."""
    write_whole(path, page(release, title, measure), overwrite=overwrite)


def page(release: Release | GroupedRelease, title: str | None = None, measure: Measure = "shares") -> str:
    """The page of a release, or of all groups of one. With counts, groups are still compared by shares."""
    check_measure(measure)
    check_title(title)
    if isinstance(release, Release):
        joint, said, body = release, measured_as(release, release.item_columns, measure), _release(release, measure)
    else:
        joint = release.joint
        said, body = (
            f"{measured_as(joint, joint.item_columns[1:], measure)} for each {release.by}",
            _groups(release, measure),
        )
    return html_page(said if title is None else title, f"{body}{_method(joint)}")


def html_page(title: str, body: str) -> str:
    """A whole page of this heading and body. Its own security policy forbids it to load anything."""
    heading = escape(title, 200)
    return (
        '<!doctype html>\n<html lang="en" dir="ltr"><head><meta charset="utf-8">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="referrer" content="no-referrer"><meta name="generator" content="crowdgram">'
        f"<title>{heading}</title><style>{STYLE}</style></head><body><main><h1>{heading}</h1>{body}"
        "</main></body></html>\n"
    )


def check_title(title: object) -> None:
    """Refuse a heading that says nothing."""
    if title is not None and (not isinstance(title, str) or not title.strip()):
        raise InvalidArgument(
            f"title={title!r}: needs to be a text. Leave it out for one that says what is shown.", argument="title"
        )


def _release(release: Release, measure: Measure) -> str:
    parts = [
        _promise(release, "It holds for everything on this page together.", measure) + _warning(release),
        f"<h2>Items</h2>{_omission(release, _ITEMS, 'most probable', 'items')}"
        + items_table(release, _ITEMS, measure=measure),
    ]
    if len(release.item_columns) > 1:
        parts.append("<h2>Each column by itself</h2><p>Sums of the items above, with errors of their own.</p>")
        sums = [(column, release.marginal(column)) for column in release.item_columns]
        own = [f"<section><h3>{name(column)}</h3>{_part(one, 'values', measure)}</section>" for column, one in sums]
        parts.append(f'<div class="grid">{"".join(own)}</div>')
    return "".join(parts)


def _groups(grouped: GroupedRelease, measure: Measure) -> str:
    shown = top_listed(grouped.shares, _GROUPS)
    places = {one.item: f"group-{number}" for number, one in enumerate(shown, 1)}
    parts = [
        _promise(
            grouped.joint, "It holds for everything on this page together, in however many groups a user is.", measure
        )
        + _warning(grouped),
        f"<h2>Groups</h2>{_omission(grouped.shares, _SHARES, 'largest', 'groups')}"
        + items_table(grouped.shares, _SHARES, "share of all", places, measure),
    ]
    compared = largest_groups(grouped, _COMPARED_GROUPS)
    if len(compared) > 1:
        parts.append(_comparison(grouped, {group: grouped[group] for group in compared}))
    which = "" if len(shown) == len(grouped) else f" The {len(shown)} largest of {len(grouped):,} groups are here."
    add = "The probabilities of a group add to 1." if measure == "shares" else "Counts are those of the group."
    parts.append(f"<h2>Each group</h2><p>{add}{which}</p>")
    parts += [_group(grouped, one, places[one.item], measure, is_open=len(shown) == 1) for one in shown]
    return "".join(parts)


def _group(grouped: GroupedRelease, share: ItemEstimate, place: str, measure: Measure, *, is_open: bool) -> str:
    decimals = digits([share.probability])
    ends = f"{share.lower:.{decimals}f} to {share.upper:.{decimals}f}"
    # The place to jump to is inside the fold: a browser then opens it.
    return (
        f"<details{' open' if is_open else ''}><summary>{name(share.item)}"
        f"<small>{share.probability:.{decimals}f} of all ({ends})</small></summary>"
        f'<div id="{place}">{_part(grouped[share.item], "items", measure)}</div></details>'  # type: ignore[index]
    )


def _comparison(grouped: GroupedRelease, parts: Mapping[Value, Release]) -> str:
    """Groups side by side, on one scale; then how far they are from each other."""
    items = common_items(parts.values(), _COMPARED_ITEMS)
    listed = [set(own.items) for own in parts.values()]
    rows = [
        [own.estimate(item) if item in has else None for own, has in zip(parts.values(), listed, strict=True)]
        for item in items
    ]
    found = [one for row in rows for one in row if one is not None and not is_other(one.item)]
    full, decimals = scale(found), digits(one.probability for one in found)

    def cell(one: ItemEstimate | None) -> str:
        if one is None:
            return '<td class="missing" title="not listed in this group">–</td>'
        ends = f"{one.lower:.{decimals}f} to {one.upper:.{decimals}f}"
        drawn = "" if is_other(one.item) else bar(one, full)
        return f'<td title="{ends}">{drawn}<small>{one.probability:.{decimals}f}</small></td>'

    body = "".join(
        f'<tr><th class="name">{line(item, 60)}</th>{"".join(map(cell, row))}</tr>'
        for item, row in zip(items, rows, strict=True)
    )
    drawn = sum(not is_other(item) for item in items)
    whole, every = len(grouped), sum(not is_other(item) for item in set().union(*listed))
    which = "All groups" if len(parts) == whole else f"The {len(parts)} largest of {whole:,} groups"
    most = f"the {drawn} of {every:,} items with the largest mean over them"
    what = "all items" if drawn == every else most
    missing = "" if all(None not in row for row in rows) else " – stands for an item that is not listed in that group."
    return (
        f"<h2>Groups compared</h2><p>{which}, and {what}. All bars have one scale; the lines are "
        f"{grouped.joint.confidence:.0%} intervals.{missing}</p>"
        + wide(
            f'<table class="compared"><thead><tr><th class="name"></th>{_group_heads(parts)}</tr></thead>'
            f"<tbody>{body}</tbody></table>"
        )
        + _distances(parts)
    )


def _distances(parts: Mapping[Value, Release]) -> str:
    try:
        found = {pair: parts[pair[0]].distance(parts[pair[1]]) for pair in combinations(parts, 2)}
    except InvalidArgument:  # the groups have different items, and no "other" to hold the rest
        return ""

    def cell(q: Quantity) -> str:
        sure = ' class="sure"' if q.lower > 0 else ""
        ends = f"<small>{q.lower:.3f} to {q.upper:.3f}</small>"
        far = min(q.value / 2, 1.0) if q.is_known else 0.0
        return f'<td{sure} style="--far:{far:.3f}">{number(q, 3)}{ends}</td>'

    groups = list(parts)
    body = "".join(
        f"<tr><th>{name(group, 24)}</th>{''.join(cell(found[other, group]) for other in groups[:place])}</tr>"
        for place, group in enumerate(groups)
        if place
    )
    one, two = min(found, key=lambda pair: by_distance(found[pair]))
    first = parts[one]
    differences = "".join(
        f"<tr>{cells(each.item)}<td>{each.first:.4f}</td><td>{each.second:.4f}</td><td>{each.difference:+.4f}</td>"
        f'<td class="interval">{each.lower:+.4f} to {each.upper:+.4f}</td></tr>'
        for each in first.differences(parts[two], _DIFFERENCES)
    )
    return (
        "<h3>How far groups are from each other</h3><p>The l1 distance: the sum over all items of the difference, from "
        f"0 to 2, corrected for noise, with its {first.confidence:.0%} interval. Bold: the interval is above 0; "
        "unknown: it could be anything.</p>"
        + wide(
            f'<table class="distances"><thead><tr><th></th>{_group_heads(groups[:-1])}</tr></thead>'
            f"<tbody>{body}</tbody></table>"
        )
        + f"<p>The items in which {name(one)} and {name(two)}, the pair that is farthest apart, differ most:</p>"
        + wide(
            f"<table><thead><tr>{heads(first)}{_group_heads((one, two))}<th>difference</th>"
            f"<th>{first.confidence:.0%} interval</th></tr></thead><tbody>{differences}</tbody></table>"
        )
    )


def _group_heads(groups: Any) -> str:
    return "".join(f"<th>{name(group, 24)}</th>" for group in groups)


def _part(release: Release, kind: str, measure: Measure) -> str:
    return (
        _warning(release)
        + _omission(release, _ITEMS_OF_A_PART, "most probable", kind)
        + items_table(release, _ITEMS_OF_A_PART, measure=measure)
    )


def _warning(release: Release | GroupedRelease) -> str:
    """The warning that the release is mostly noise, if it is."""
    said = too_little(release)
    return "" if said is None else f'<p class="little">{escape(said[0].upper() + said[1:])}</p>'


def _omission(release: Release, most: int, order: str, kind: str) -> str:
    """How many of the listed items a table shows, and what they hold."""
    listed = len(release) - (release.other is not None)
    if listed <= most:
        return ""
    held = sum(one.probability for one in top_listed(release, most))
    return f'<p class="quiet">The {most} {order} of {listed:,} {kind}; they hold {held:.3f} of all.</p>'


def _promise(release: Release, scope: str, measure: Measure) -> str:
    """The guarantee, once for the whole page, what its figures mean, and where the items come from."""
    g = release.guarantee
    delta = f", delta = {g.delta:g}" if g.delta else ""
    noisy = "Probabilities are noisy."
    if measure == "counts":
        noisy = f"{escape(release.counts().about, 400)} They are noisy."
    sentence = re.sub(r"(?<![\w.])\d[\d.]*e-\d+", r'<span class="number">\g<0></span>', escape(g.sentence()))
    return (
        f'<div class="promise"><p>{sentence} {scope}</p>'
        f"<p><small>epsilon = {g.epsilon:g}{delta}, {g.adjacency.value}</small></p></div>"
        f"<p>{noisy} A line is an interval; one without an end at the right goes on.</p>"
        + "".join(f"<p>{escape(one)}</p>" for one in sentences(release))
    )


def _method(release: Release) -> str:
    """How it was made: mechanism, parameters, versions, and every draw of noise."""
    facts = {"mechanism": release.mechanism, "weight": release.weight, **release.parameters}
    versions = ", ".join(f"{one} {version}" for one, version in release.versions.items())
    rows = {**facts, **({"software": versions} if versions else {})}
    body = "".join(
        f'<tr><td class="name">{name(key)}</td><td class="name">{escape(value, 400)}</td></tr>'
        for key, value in rows.items()
    )
    events = []
    for event in release.events[:_EVENTS]:
        fields = event_to_dict(event)
        kind, purpose = fields.pop("kind"), fields.pop("purpose")
        said = ", ".join(
            f"{key} {value:g}" if isinstance(value, float) else f"{key} {value}" for key, value in fields.items()
        )
        events.append(
            f'<tr><td class="name">{name(purpose)}</td><td class="name">{escape(kind)}</td>'
            f'<td class="name">{escape(said)}</td></tr>'
        )
    more = f"<p>and {len(release.events) - _EVENTS} more</p>" if len(release.events) > _EVENTS else ""
    return (
        "<h2>How it was made</h2>"
        + wide(f"<table><tbody>{body}</tbody></table>")
        + "<details><summary>Every draw of noise that the table paid for</summary><div>"
        + wide(
            '<table><thead><tr><th class="name">for</th><th class="name">event</th><th class="name">noise</th></tr>'
            f"</thead><tbody>{''.join(events)}</tbody></table>"
        )
        + f"{more}</div></details>"
    )
