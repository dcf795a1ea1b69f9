"""Pieces of an HTML page: names as text, bars with intervals, tables of items, and the style.

Every text that comes from a release passes `escape`, which leaves nothing that markup, a terminal or the order of
letters on a line could obey. A name stands in a `<bdi>`, so that one that is written from right to left moves nothing
around it.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Mapping
from typing import Any

from ..escaping import printable
from ..results.release import Release
from ..results.values import ItemEstimate, Measure, Other, is_other, values_of
from .selection import figures, top_listed
from .wording import shorten

__all__ = [
    "STYLE",
    "bar",
    "cells",
    "digits",
    "escape",
    "heads",
    "items_table",
    "line",
    "name",
    "scale",
    "wide",
]

_LONGEST = 80


def escape(text: object, longest: int | None = None) -> str:
    """`text` as a page may hold it, between tags or in a quoted attribute; cut to `longest` characters."""
    whole = str(text)
    return html.escape(printable(whole if longest is None else shorten(whole, longest)))


def name(value: object, longest: int = _LONGEST) -> str:
    """A value, a group or a column, as text of its own direction. An `Other` is in italics; outer blanks are quoted."""
    text = f"<bdi>{escape(value, longest)}</bdi>"
    if not str(value) or str(value) != str(value).strip():
        text = f'<span class="quiet">“</span>{text}<span class="quiet">”</span>'
    return f"<i>{text}</i>" if isinstance(value, Other) else text


def line(item: Any, longest: int = _LONGEST) -> str:
    """An item in one place; the values of several columns side by side."""
    values = values_of(item)
    if len(values) == 1 or is_other(item):
        return name(values[0], longest)
    return ", ".join(name(value, max(longest // len(values), 12)) for value in values)


def cells(item: Any) -> str:
    """An item in a row of a table, a cell for each column."""
    return "".join(f'<td class="name">{name(value)}</td>' for value in values_of(item))


def heads(release: Release) -> str:
    """The headings of `cells`."""
    return "".join(f'<th class="name">{name(column, 40)}</th>' for column in release.item_columns)


def digits(values: Iterable[float]) -> int:
    """Decimals that show three digits of the largest value; at least 4, at most 9."""
    largest = max(values, default=1.0)
    return 4 if largest <= 0 else min(max(2 - math.floor(math.log10(largest)), 4), 9)


def scale(shown: Iterable[ItemEstimate]) -> float:
    """What a full bar stands for: all intervals fit, unless that would leave the bars less than half of the width."""
    kept = list(shown)
    longest = max((one.probability for one in kept), default=0.0)
    widest = max((one.upper for one in kept), default=0.0)
    return (min(widest, 2 * longest) if longest > 0 else widest) or 1.0


def bar(one: ItemEstimate, full: float) -> str:
    """A bar for the probability and a line for the interval; a line without an end at the right goes on."""
    value, low, high = (100 * min(max(part / full, 0.0), 1.0) for part in (one.probability, one.lower, one.upper))
    end = f"M{high:.2f} 2.5V7.5" if one.upper <= full else ""
    return (
        '<svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect width="{value:.2f}" height="10"/><path d="M{low:.2f} 5H{high:.2f}M{low:.2f} 2.5V7.5{end}"/></svg>'
    )


def items_table(
    release: Release,
    n: int,
    heading: str = "probability",
    links: Mapping[Any, str] | None = None,
    measure: Measure = "shares",
) -> str:
    """The n most probable items with intervals and bars, and last the one for all others, which has no bar: it is
    often longer than all the rest. `links`: where on the page an item's name leads. measure: what is shown of them.
    """
    shown = figures(release, top_listed(release, n), measure)
    full, decimals = scale(shown), digits(one.probability for one in shown)
    if measure == "counts":
        heading, decimals = "count", 0
    rows = [*((one, bar(one, full)) for one in shown)]
    if release.other is not None:
        rest = figures(release, [release.estimate(release.other)], measure)
        rows.append((rest[0], '<span class="quiet">all that is not listed</span>'))
    body = []
    for one, drawn in rows:
        target = (links or {}).get(one.item)
        named = f'<td class="name"><a href="#{escape(target)}">{name(one.item)}</a></td>' if target else cells(one.item)
        body.append(
            f"<tr>{named}<td>{one.probability:,.{decimals}f}</td>"
            f'<td class="interval">{one.lower:,.{decimals}f} to {one.upper:,.{decimals}f}</td>'
            f'<td class="bar">{drawn}</td></tr>'
        )
    return wide(
        f'<table class="items"><thead><tr>{heads(release)}<th>{heading}</th>'
        f"<th>{release.confidence:.0%} interval</th><th></th></tr></thead><tbody>{''.join(body)}</tbody></table>"
    )


def wide(table: str) -> str:
    """A table that scrolls by itself if the page is too narrow for it."""
    return f'<div class="wide">{table}</div>'


STYLE = """
:root { color-scheme: light dark; --text: #1c2733; --quiet: #5b6b7a; --page: #fff; --box: #f1f5f9; --rule: #dbe3ea;
  --bar: #9ecae1; --line: #08519c; }
@media (prefers-color-scheme: dark) { :root { --text: #e3e9ef; --quiet: #9fb0c0; --page: #12181f; --box: #1c2530;
  --rule: #32404e; --bar: #2f6690; --line: #bfdcf2; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--text); font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 72rem; margin: 0 auto; padding: 1.5rem 1.25rem 4rem; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 1rem; overflow-wrap: anywhere; }
h2 { font-size: 1.2rem; margin: 2.2rem 0 0.4rem; }
h3 { font-size: 1rem; margin: 1.4rem 0 0.3rem; overflow-wrap: anywhere; }
p { margin: 0.4rem 0; max-width: 62rem; }
a { color: var(--line); }
.promise { background: var(--box); border-left: 4px solid var(--line); padding: 0.7rem 1rem; }
.quiet, .promise small { color: var(--quiet); }
.wide { overflow-x: auto; margin: 0.5rem 0 1rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: 0.15rem 0.9rem 0.15rem 0; text-align: right; vertical-align: middle; white-space: nowrap; }
thead th { border-bottom: 1px solid var(--rule); font-weight: 600; vertical-align: bottom; }
th.name, td.name { text-align: left; white-space: normal; overflow-wrap: anywhere; min-width: 8rem; max-width: 24rem; }
bdi { display: inline-block; max-width: 100%; overflow: hidden; vertical-align: bottom; white-space: pre-wrap; }
td.interval, small { color: var(--quiet); }
table.items { width: 100%; }
td.bar { min-width: 12rem; width: 60%; padding-right: 0; text-align: left; }
.number { white-space: nowrap; }
svg { display: block; width: 100%; height: 0.9rem; }
rect { fill: var(--bar); }
path { stroke: var(--line); stroke-width: 1.5px; fill: none; vector-effect: non-scaling-stroke; }
.grid { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(30rem, 100%), 1fr)); gap: 0 2.5rem; }
.grid td.bar { min-width: 6rem; width: 40%; }
.compared th.name { position: sticky; left: 0; background: var(--page); max-width: 14rem; font-weight: 400; }
.compared td { min-width: 6.5rem; text-align: left; padding-bottom: 0.3rem; }
.compared thead th { text-align: left; white-space: normal; overflow-wrap: anywhere; max-width: 8rem; }
.compared small, .distances small { display: block; line-height: 1.2; }
.compared td.missing { color: var(--quiet); }
.distances th { text-align: left; white-space: normal; overflow-wrap: anywhere; max-width: 12rem; }
.distances td { padding: 0.3rem 0.6rem; border: 2px solid var(--page); }
.distances td { background: color-mix(in srgb, var(--bar) calc(var(--far) * 100%), var(--box)); }
.distances td small { color: inherit; font-weight: 400; }
.sure, .little { font-weight: 700; }
.series td.bar { min-width: 16rem; }
.series svg { height: 2.6rem; }
.series .band { fill: var(--bar); fill-opacity: 0.55; stroke: none; }
details { border-top: 1px solid var(--rule); padding: 0.35rem 0; }
summary { cursor: pointer; font-weight: 600; overflow-wrap: anywhere; }
summary bdi { max-width: calc(100% - 2rem); }
summary small { font-weight: 400; margin-left: 0.6rem; }
details > div { scroll-margin-top: 3rem; padding-left: 1rem; }
@media (max-width: 40rem) { td.bar { min-width: 7rem; } th.name, td.name { min-width: 5rem; } }
@media print { .wide { overflow: visible; } }
"""
