"""Pictures of a release and of its groups: matplotlib axes, and HTML for notebooks."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..errors import InvalidArgument, MissingDependency
from ..escaping import printable
from ..results.release import Item, Other, Release, Value, label

if TYPE_CHECKING:
    import matplotlib.axes
    import matplotlib.figure

    from ..results.grouped import GroupedRelease

__all__ = ["common_items", "groups_in_a_notebook", "in_a_notebook", "is_other", "largest_groups", "plot", "plot_groups"]

_SHOWN_IN_HTML = 20
_GROUPS_IN_A_PICTURE = 12
_ITEMS_IN_A_ROW = 3


def plot(
    release: Release, n: int, truth: Mapping[Any, float] | None, ax: matplotlib.axes.Axes | None
) -> matplotlib.axes.Axes:
    """Bars with intervals for the n most probable items; marks for `truth`, below the intervals so that both show."""
    shown = release.top(n)
    if ax is None:
        ax = _figure(8, 1.4 + 0.28 * len(shown)).subplots()
    places = list(range(len(shown)))
    values = [one.probability for one in shown]
    below = [one.probability - one.lower for one in shown]
    above = [one.upper - one.probability for one in shown]
    ax.barh(places, values, color="#9ecae1", label="released")
    apart = 0.0 if truth is None else 0.2
    ax.errorbar(
        values,
        [place - apart for place in places],
        xerr=[below, above],
        fmt="none",
        ecolor="#08519c",
        capsize=2 if truth is None else 3.5,
        label=f"{release.confidence:.0%} interval",
    )
    if truth is not None:
        ax.plot(
            [truth.get(one.item, 0.0) for one in shown],
            [place + apart for place in places],
            "|",
            color="#d94801",
            ms=7,
            mew=1.8,
            label="truth (public here)",
        )
    ax.set_yticks(places, [_label(label(one.item)) for one in shown])
    ax.invert_yaxis()
    ax.set_xlim(left=0)
    ax.set_xlabel("probability")
    ax.set_title(f"{_question(release)} ({_promise(release)})", fontsize=10)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, loc="lower right")
    return ax


def plot_groups(grouped: GroupedRelease, n: int, groups: Sequence[Value] | None) -> matplotlib.figure.Figure:
    """The same items in every group, on one scale: a panel for each group."""
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise InvalidArgument(f"n={n!r}: needs to be a whole number of at least 1.")
    chosen = largest_groups(grouped, _GROUPS_IN_A_PICTURE) if groups is None else list(groups)
    for group in chosen:
        if group not in grouped:
            raise InvalidArgument(f"groups has {group!r}, which is not a group of this release.")
    if not chosen or len(set(chosen)) < len(chosen):
        raise InvalidArgument(f"groups={groups!r}: name at least one group, and each once.")
    parts = [grouped[group] for group in chosen]
    items = common_items(parts, n)
    across = min(len(parts), 4 if len(parts) != 3 else 3)
    down = math.ceil(len(parts) / across)
    figure = _figure(2.2 + 2.4 * across, 0.7 + down * (0.7 + 0.24 * len(items)))
    panels = figure.subplots(down, across, sharex=True, sharey=True, squeeze=False)
    shares = {group: grouped.shares.estimate(group) for group in chosen}
    for ax, group, own in zip(panels.flat, chosen, parts, strict=False):
        listed = set(own.items)
        there = [
            (place, own.estimate(item)) for place, item in enumerate(items) if item in listed and not is_other(item)
        ]
        places, values = [place for place, _ in there], [one.probability for _, one in there]
        reach = [[one.probability - one.lower for _, one in there], [one.upper - one.probability for _, one in there]]
        ax.barh(places, values, color="#9ecae1")
        ax.errorbar(values, places, xerr=reach, fmt="none", ecolor="#08519c", elinewidth=1, capsize=1.5)
        for place in set(range(len(items))) - set(places):  # an "other" is often longer than all the rest
            said = f"{own.probability(items[place]):.3f}" if items[place] in listed else "not listed"
            ax.text(0, place, f" {said}", va="center", color="#777777", fontsize=7)
        ax.set_title(f"{_label(str(group), 24)}  ({shares[group].probability:.3f} of all)", fontsize=9)
        ax.spines[["top", "right"]].set_visible(False)
        ax.tick_params(labelsize=8)
    for ax in panels.flat[len(parts) :]:
        ax.set_visible(False)
    first = panels[0, 0]
    first.set_yticks(range(len(items)), [_label(label(item), 28) for item in items])
    first.set_ylim(len(items) - 0.4, -0.6)
    first.set_xlim(left=0)
    which = "" if len(chosen) == len(grouped) else f", {len(chosen)} of {len(grouped)} groups"
    joint = grouped.joint
    asked = f"{_question(joint)} for each {_label(grouped.by)}{which}, {joint.confidence:.0%} intervals"
    figure.suptitle(f"{asked}\n({_promise(joint)}, for all groups together)", fontsize=10)
    return figure


def largest_groups(grouped: GroupedRelease, n: int) -> list[Any]:
    """The n groups with the largest shares, largest first."""
    found = grouped.shares.top(len(grouped.shares))
    return [one.item for one in found if not isinstance(one.item, Other)][:n]


def common_items(parts: Iterable[Release], n: int) -> list[Item]:
    """The n listed items with the largest mean probability over `parts`, largest first; last, the `Other` if any."""
    sums: dict[Item, float] = {}
    for own in parts:
        for item, probability in zip(own.items, own.probabilities.tolist(), strict=True):
            sums[item] = sums.get(item, 0.0) + probability
    listed = sorted((item for item in sums if not is_other(item)), key=lambda item: -sums[item])
    return listed[:n] + [item for item in sums if is_other(item)]


def is_other(item: Item) -> bool:
    """Whether an item stands for all that are not listed."""
    return all(isinstance(value, Other) for value in (item if isinstance(item, tuple) else (item,)))


def groups_in_a_notebook(grouped: GroupedRelease) -> str:
    """A table of the largest groups, the first items of each, and the guarantee of all. Everything is escaped."""
    rows = []
    shown = grouped.shares.top(_SHOWN_IN_HTML)
    for one in shown:
        first = [] if isinstance(one.item, Other) else grouped[one.item].top(_ITEMS_IN_A_ROW)  # type: ignore[index]
        items = ", ".join(f"{_short(label(each.item), 24)} {each.probability:.3f}" for each in first)
        rows.append(
            f"<tr><td style='text-align:left'>{html.escape(printable(_short(label(one.item))))}</td>"
            f"<td>{one.probability:.4f}</td><td>{one.lower:.4f} to {one.upper:.4f}</td>"
            f"<td style='text-align:left'>{html.escape(printable(items))}</td></tr>"
        )
    joint = grouped.joint
    more = len(grouped.shares) - len(shown)
    return (
        f"<div><p><b>{html.escape(_question(joint))}</b> for each {html.escape(printable(grouped.by))}, released by "
        f"{html.escape(printable(joint.mechanism))}. {html.escape(printable(joint.guarantee.sentence()))} "
        "This holds for all groups together.</p><table><thead><tr>"
        f"<th>{html.escape(printable(_short(grouped.by)))}</th><th>share</th><th>{joint.confidence:.0%} interval</th>"
        f"<th>most probable items</th></tr></thead><tbody>{''.join(rows)}</tbody></table>"
        f"{f'<p>and {more} more groups</p>' if more > 0 else ''}"
        f"{_told(grouped)}</div>"
    )


def in_a_notebook(release: Release) -> str:
    """A table of the most probable items with bars and the guarantee in words. Everything is escaped."""
    shown = release.top(_SHOWN_IN_HTML)
    widest = max((one.upper for one in shown), default=1.0) or 1.0
    rows = "".join(
        f"<tr><td style='text-align:left'>{html.escape(printable(_short(label(one.item))))}</td>"
        f"<td>{one.probability:.4f}</td><td>{one.lower:.4f} to {one.upper:.4f}</td><td style='text-align:left'>"
        "<div style='background:#9ecae1;height:0.9em;"
        f"width:{160 * one.probability / widest:.0f}px'></div></td></tr>"
        for one in shown
    )
    more = f"<p>and {len(release) - len(shown)} more items</p>" if len(release) > len(shown) else ""
    return (
        f"<div><p><b>{html.escape(_question(release))}</b>, released by {html.escape(printable(release.mechanism))}. "
        f"{html.escape(printable(release.guarantee.sentence()))}</p><table><thead><tr>"
        f"<th>{html.escape(printable(_heading(release)))}</th>"
        f"<th>probability</th><th>{release.confidence:.0%} interval</th><th></th></tr></thead>"
        f"<tbody>{rows}</tbody></table>{more}{_told(release)}</div>"
    )


def _told(release: Release | GroupedRelease) -> str:
    """What is to be said of the figures; first of all, that there is too little to say."""
    from .wording import sentences, too_little

    little = too_little(release)
    warned = "" if little is None else f"<p><b>{html.escape(printable(little[0].upper() + little[1:]))}</b></p>"
    said = sentences(release if isinstance(release, Release) else release.joint)
    return warned + "".join(f"<p>{html.escape(printable(one))}</p>" for one in said)


def _figure(width: float, height: float) -> matplotlib.figure.Figure:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingDependency("matplotlib is not installed: pip install 'crowdgram[plot]'.") from None
    return Figure(figsize=(width, height), layout="constrained")


def _promise(release: Release) -> str:
    g = release.guarantee
    delta = f", delta={g.delta:g}" if g.delta else ""
    return f"{_label(release.mechanism)}, epsilon={g.epsilon:g}{delta}, {g.adjacency.value}"


def _question(release: Release) -> str:
    return "Share of all rows by item" if release.weight == "rows" else "Average user's share by item"


def _heading(release: Release) -> str:
    return ", ".join(release.heads)


def _label(name: str, most: int = 40) -> str:
    """A name as a picture may show it. "$" would start a formula in matplotlib, and a formula can fail to parse."""
    return _short(_one_line(name), most).replace("$", r"\$")


def _one_line(text: str) -> str:
    """`text` without line breaks or control characters, which would overlap other labels or have no glyph."""
    return "".join(char if char.isprintable() else "�" for char in text)


def _short(text: str, most: int = 40) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
