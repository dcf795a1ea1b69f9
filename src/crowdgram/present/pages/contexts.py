"""What templates are given: tables of items with bars, key figures, the budget. Plain values; names as they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...privacy import event_to_dict
from ...results.grouped import GroupedRelease
from ...results.grouped_reach import GroupedReach
from ...results.reach import Reach
from ...results.release import Release
from ...results.values import ItemEstimate, Measure, Quantity, values_of
from ..facts import facts
from ..numbers import figure, interval, percent, percent_of
from ..reach import reach_sentences, reach_too_little
from ..selection import figures, top_listed
from ..spending_parts import parts_of_budget, shares_of_events
from ..wording import guess, predicted_in_words, sentences, too_little

__all__ = [
    "Bar",
    "Row",
    "Table",
    "bar",
    "full_bar",
    "items_table",
    "key_figures",
    "reach_groups_table",
    "reach_table",
    "story",
]

_EVENTS = 100
_UNKNOWN = "not measured"


@dataclass(frozen=True)
class Bar:
    """A bar, and a line for the interval, in hundredths of the width; without an end at the right the line goes on."""

    value: float
    low: float
    high: float
    ends: bool


@dataclass(frozen=True)
class Row:
    """One item of a table. bar: None of what stands for all items that are not listed, often longer than all others."""

    item: Any
    value: str
    interval: str
    bar: Bar | None
    more: tuple[str, ...] = ()
    link: str | None = None

    @property
    def names(self) -> tuple[Any, ...]:
        return values_of(self.item)


@dataclass(frozen=True)
class Table:
    """Items with their figures. omission: how many of how many it shows; None if all."""

    heads: Sequence[str]
    heading: str
    level: str
    rows: Sequence[Row]
    omission: str | None
    more: tuple[str, ...] = ()


def full_bar(shown: Iterable[ItemEstimate]) -> float:
    """What a full bar stands for: all intervals fit, unless that would leave the bars less than half of the width."""
    kept = list(shown)
    longest = max((one.probability for one in kept), default=0.0)
    widest = max((one.upper for one in kept), default=0.0)
    return (min(widest, 2 * longest) if longest > 0 else widest) or 1.0


def bar(value: float, lower: float, upper: float, full: float) -> Bar:
    """A bar of which `full` is the whole width."""
    along = [round(100 * min(max(part / full, 0.0), 1.0), 2) for part in (value, lower, upper)]
    return Bar(along[0], along[1], along[2], upper <= full)


def items_table(
    release: Release,
    n: int,
    measure: Measure = "shares",
    *,
    heading: str = "share",
    kind: str = "items",
    order: str = "most probable",
    links: Mapping[Any, str] | None = None,
) -> Table:
    """The n most probable items, and last the one for all others. links: where on the page an item's name leads."""
    shown = figures(release, top_listed(release, n), measure)
    full = full_bar(shown)
    rows = [
        Row(
            one.item,
            figure(one.probability, one.lower, one.upper, measure),
            interval(one.probability, one.lower, one.upper, measure),
            bar(one.probability, one.lower, one.upper, full),
            link=(links or {}).get(one.item),
        )
        for one in shown
    ]
    if release.other is not None:
        (rest,) = figures(release, [release.estimate(release.other)], measure)
        ends = (rest.probability, rest.lower, rest.upper)
        rows.append(Row(rest.item, figure(*ends, measure), interval(*ends, measure), None))
    listed = len(release) - (release.other is not None)
    omission = None
    if listed > n:
        held = sum(one.probability for one in top_listed(release, n))
        omission = f"The {n} {order} of {listed:,} {kind}; they hold {percent(held, 1)} of all."
    said = "count" if measure == "counts" else heading
    return Table(release.item_columns, said, f"{release.confidence:.0%} interval", rows, omission)


def reach_table(reach: Reach, n: int, share: str = "of all users") -> Table:
    """The n items that most users have, and last the users of any that is not listed."""
    listed = [one for one in reach.top(n + 1) if one.item != reach.other][:n]
    full = full_bar(ItemEstimate(one.item, one.users, 0.0, one.lower, one.upper) for one in listed)
    shown = [*listed, *([] if reach.other is None else [reach.estimate(reach.other)])]
    rows = [
        Row(
            one.item,
            f"{one.users:,.0f}",
            interval(one.users, one.lower, one.upper, "counts"),
            None if one.item == reach.other else bar(one.users, one.lower, one.upper, full),
            (percent_of(one.share, one.share_lower, one.share_upper),),
        )
        for one in shown
    ]
    whole = len(reach) - (reach.other is not None)
    omission = f"The {n} items of most users, of {whole:,} items." if whole > n else None
    return Table(reach.item_columns, "users", f"{reach.confidence:.0%} interval", rows, omission, (share,))


def reach_groups_table(grouped: GroupedReach, n: int, links: Mapping[Any, str]) -> Table:
    """The n groups with most users."""
    largest = sorted(grouped.groups, key=lambda group: -grouped[group].users.value)[:n]
    sizes = [(group, grouped[group].users) for group in largest]
    full = full_bar(ItemEstimate(group, one.value, 0.0, one.lower, one.upper) for group, one in sizes)
    rows = [
        Row(
            group,
            f"{one.value:,.0f}",
            interval(one.value, one.lower, one.upper, "counts"),
            bar(one.value, one.lower, one.upper, full),
            link=links.get(group),
        )
        for group, one in sizes
    ]
    omission = f"The {n} largest of {len(grouped):,} groups." if len(grouped) > n else None
    return Table((grouped.by,), "users", f"{grouped.joint.confidence:.0%} interval", rows, omission)


def key_figures(result: Release | GroupedRelease | Reach | GroupedReach) -> list[tuple[str, str, str]]:
    """Label, figure and note of what a reader looks for first."""
    made = result.joint if isinstance(result, GroupedRelease | GroupedReach) else result
    g = made.guarantee
    listed = len(made) - (made.other is not None)
    found = [("Epsilon", f"{g.epsilon:g}", f"delta {g.delta:g}, {g.adjacency.value} of one {g.unit}")]
    found.append(("Users", *_total(made.users)))
    if not isinstance(made, Reach):
        bound = None if made.total is None else made.total.row_bound
        within = "" if bound is None or made.rows is None else f"; at most {bound:,} of each user"
        value, note = _total(made.rows)
        found.append(("Rows", value, f"{note}{within}"))
    if isinstance(result, GroupedRelease | GroupedReach):
        found.append(("Groups", f"{len(result):,}", f"{listed:,} items in all"))
    else:
        found.append(("Items", f"{listed:,}", "found privately" if made.threshold_delta else "from a public list"))
    if isinstance(made, Reach):
        found.append(("Predicted error", f"{made.predicted_l1_error:,.0f}", "users, of all counts together"))
    else:
        wrong = made.predicted_l1_error / 2
        places = 0 if wrong >= 0.1 else 1 if wrong >= 0.01 else 2
        found.append(("Predicted error", percent(wrong, places), "of the whole at a wrong item"))
    when, period = made.parameters.get("released_on"), made.parameters.get("period")
    note = ("" if when is None else "UTC") if period is None else f"for the period {period}"
    found.append(("Released", "–" if when is None else str(when), note if when or period else "date not recorded"))
    return found


def story(result: Release | GroupedRelease | Reach | GroupedReach, measure: Measure, where: str) -> dict[str, Any]:
    """The sentences, facts and budget of a result, which all pages tell alike. where: what the guarantee is for."""
    made = result.joint if isinstance(result, GroupedRelease | GroupedReach) else result
    if isinstance(result, Reach | GroupedReach):
        noisy, said, little = "Counts are noisy.", reach_sentences(result), reach_too_little(result)
    else:
        joint = made if isinstance(made, Release) else None
        assert joint is not None
        noisy = "Shares are noisy." if measure == "shares" else f"{joint.counts().about} They are noisy."
        said, little = [predicted_in_words(joint), *sentences(joint)], too_little(result)
    known = facts(result)
    events = made.events
    draws = []
    for event, share in zip(events[:_EVENTS], shares_of_events(events), strict=False):
        fields = event_to_dict(event)
        kind, purpose = fields.pop("kind"), fields.pop("purpose")
        noise = ", ".join(
            f"{key} {value:.6g}" if isinstance(value, float) else f"{key} {value:,}" for key, value in fields.items()
        )
        draws.append((purpose, kind, noise, percent(share, 1)))
    parts, start = [], 0.0
    for place, one in enumerate(parts_of_budget(events), 1):
        parts.append({"place": place, "start": round(100 * start, 2), "width": round(100 * one.share, 2), "part": one,
                      "text": percent(one.share, 1)})  # fmt: skip
        start += one.share
    parameters = {"mechanism": known["mechanism"], **({} if isinstance(made, Reach) else {"weight": made.weight})}
    versions = ", ".join(f"{key} {value}" for key, value in made.versions.items())
    return {
        "guarantee": made.guarantee.sentence(),
        "guess": guess(made.guarantee),
        "scope": f"It holds for everything {where} together"
        + (", in however many groups a user is." if isinstance(result, GroupedRelease | GroupedReach) else "."),
        "noisy": noisy,
        "sentences": said,
        "little": None if little is None else little[0].upper() + little[1:],
        "figures": key_figures(result),
        "facts": known,
        "parts": parts,
        "draws": draws,
        "more_draws": max(0, len(events) - _EVENTS),
        "parameters": {**parameters, **made.parameters, **({"software": versions} if versions else {})},
    }


def _total(quantity: Quantity | None) -> tuple[str, str]:
    if quantity is None or not quantity.is_known:
        return "–", _UNKNOWN
    return f"{quantity.value:,.0f}", f"{quantity.lower:,.0f} to {quantity.upper:,.0f}"
