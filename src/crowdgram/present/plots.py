"""Pictures of a release, of a reach, and of their groups, by matplotlib."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..errors import InvalidArgument, MissingDependency
from ..results.grouped import GroupedRelease
from ..results.grouped_reach import GroupedReach
from ..results.reach import Reach, ReachedItem
from ..results.release import Release
from ..results.values import ItemEstimate, Value, is_other, label
from ..shortage import is_shortage
from .reach import QUESTION
from .selection import common_items, largest_groups
from .wording import question, shorten

if TYPE_CHECKING:
    import matplotlib.axes
    import matplotlib.figure

__all__ = ["draw", "new_figure", "plot", "plot_groups", "shown_name"]

_GROUPS_IN_A_PICTURE = 12


def plot(
    release: Release | Reach, n: int, truth: Mapping[Any, float] | None, ax: matplotlib.axes.Axes | None
) -> matplotlib.figure.Figure | None:
    """A picture of the n most probable items, or of those that most users have; None if they are drawn on `ax`, whose
    picture the caller has.
    """
    if ax is not None:
        draw(release, n, truth, ax)
        return None
    figure = new_figure(8, 1.4 + 0.28 * len(release.top(n)))
    draw(release, n, truth, figure.subplots())
    return figure


def draw(release: Release | Reach, n: int, truth: Mapping[Any, float] | None, ax: matplotlib.axes.Axes) -> None:
    """Bars with intervals for the n first items; marks for `truth`, below the intervals so that both show."""
    shown = release.top(n)
    places = list(range(len(shown)))
    values = [_length(one) for one in shown]
    below = [_length(one) - one.lower for one in shown]
    above = [one.upper - _length(one) for one in shown]
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
    ax.set_yticks(places, [shown_name(label(one.item)) for one in shown])
    ax.invert_yaxis()
    ax.set_xlim(left=0)
    ax.set_xlabel("users" if isinstance(release, Reach) else "probability")
    ax.set_title(f"{_asked(release)} ({_promise(release)})", fontsize=10)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, loc="lower right")


def plot_groups(
    grouped: GroupedRelease | GroupedReach, n: int, groups: Sequence[Value] | None
) -> matplotlib.figure.Figure:
    """The same items in every group, on one scale: a panel for each group."""
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise InvalidArgument(f"n={n!r}: needs to be a whole number of at least 1.", argument="n")
    chosen = largest_groups(grouped, _GROUPS_IN_A_PICTURE) if groups is None else list(groups)
    for group in chosen:
        if group not in grouped:
            raise InvalidArgument(f"groups: {group!r} needs to be one of the release's groups.", argument="groups")
    if not chosen or len(set(chosen)) < len(chosen):
        raise InvalidArgument(f"groups={groups!r}: needs at least one group, and each once.", argument="groups")
    parts: list[Release | Reach] = [grouped[group] for group in chosen]
    items = common_items(parts, n)
    across = min(len(parts), 4 if len(parts) != 3 else 3)
    down = math.ceil(len(parts) / across)
    figure = new_figure(2.2 + 2.4 * across, 0.7 + down * (0.7 + 0.24 * len(items)))
    panels = figure.subplots(down, across, sharex=True, sharey=True, squeeze=False)
    for ax, group, own in zip(panels.flat, chosen, parts, strict=False):
        listed = set(own.items)
        there = [
            (place, own.estimate(item)) for place, item in enumerate(items) if item in listed and not is_other(item)
        ]
        places, values = [place for place, _ in there], [_length(one) for _, one in there]
        reach = [[_length(one) - one.lower for _, one in there], [one.upper - _length(one) for _, one in there]]
        ax.barh(places, values, color="#9ecae1")
        ax.errorbar(values, places, xerr=reach, fmt="none", ecolor="#08519c", elinewidth=1, capsize=1.5)
        for place in set(range(len(items))) - set(places):  # an "other" is often longer than all the rest
            said = _said(_length(own.estimate(items[place])), own) if items[place] in listed else "not listed"
            ax.text(0, place, f" {said}", va="center", color="#777777", fontsize=7)
        ax.set_title(f"{shown_name(str(group), 24)}  ({_size(grouped, group)})", fontsize=9)
        ax.spines[["top", "right"]].set_visible(False)
        ax.tick_params(labelsize=8)
    for ax in panels.flat[len(parts) :]:
        ax.set_visible(False)
    first = panels[0, 0]
    first.set_yticks(range(len(items)), [shown_name(label(item), 28) for item in items])
    first.set_ylim(len(items) - 0.4, -0.6)
    first.set_xlim(left=0)
    which = "" if len(chosen) == len(grouped) else f", {len(chosen)} of {len(grouped)} groups"
    joint = grouped.joint
    asked = f"{_asked(joint)} for each {shown_name(grouped.by)}{which}, {joint.confidence:.0%} intervals"
    figure.suptitle(f"{asked}\n({_promise(joint)}, for all groups together)", fontsize=10)
    return figure


def new_figure(width: float, height: float) -> matplotlib.figure.Figure:
    """An empty picture of this size, in inches; an error that says how to get matplotlib if it is missing."""
    try:
        from .picture import Picture
    except ImportError as error:
        if is_shortage(error):
            raise
        raise MissingDependency(
            "matplotlib is not installed: pip install 'crowdgram[plot]'.", name="matplotlib"
        ) from None
    return Picture(figsize=(width, height), layout="constrained")


def _length(one: ItemEstimate | ReachedItem) -> float:
    """Of an item's bar."""
    return one.users if isinstance(one, ReachedItem) else one.probability


def _said(length: float, release: Release | Reach) -> str:
    return f"{length:,.0f}" if isinstance(release, Reach) else f"{length:.3f}"


def _size(grouped: GroupedRelease | GroupedReach, group: Value) -> str:
    """How large a group is."""
    if isinstance(grouped, GroupedReach):
        return f"{grouped[group].users.value:,.0f} users"
    return f"{grouped.shares.probability(group):.3f} of all"


def _asked(release: Release | Reach) -> str:
    return QUESTION if isinstance(release, Reach) else question(release)


def _promise(release: Release | Reach) -> str:
    g = release.guarantee
    delta = f", delta={g.delta:g}" if g.delta else ""
    way = "reach" if isinstance(release, Reach) else shown_name(release.mechanism)
    return f"{way}, epsilon={g.epsilon:g}{delta}, {g.adjacency.value}"


def shown_name(name: str, most: int = 40) -> str:
    """A name as a picture may show it. "$" would start a formula in matplotlib, and a formula can fail to parse."""
    return shorten(_one_line(name), most).replace("$", r"\$")


def _one_line(text: str) -> str:
    """`text` without line breaks or control characters, which would overlap other labels or have no glyph."""
    return "".join(char if char.isprintable() else "�" for char in text)
