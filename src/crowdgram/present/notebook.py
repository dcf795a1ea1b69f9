"""What a notebook shows of a release, and of its groups. Every text is escaped."""

from __future__ import annotations

from ..results.grouped import GroupedRelease
from ..results.release import Release
from ..results.values import Other, label
from .markup import escape, paragraphs
from .wording import question, sentences, shorten, too_little

__all__ = ["groups_view", "release_view"]

_MOST_ROWS = 20
_ITEMS_IN_A_ROW = 3
_LONGEST = 40


def release_view(release: Release) -> str:
    """A table of the most probable items with bars and the guarantee in words. Everything is escaped."""
    shown = release.top(_MOST_ROWS)
    widest = max((one.upper for one in shown), default=1.0) or 1.0
    rows = "".join(
        f"<tr><td style='text-align:left'>{escape(label(one.item), _LONGEST)}</td>"
        f"<td>{one.probability:.4f}</td><td>{one.lower:.4f} to {one.upper:.4f}</td><td style='text-align:left'>"
        "<div style='background:#9ecae1;height:0.9em;"
        f"width:{160 * one.probability / widest:.0f}px'></div></td></tr>"
        for one in shown
    )
    more = f"<p>and {len(release) - len(shown)} more items</p>" if len(release) > len(shown) else ""
    return (
        f"<div><p><b>{escape(question(release))}</b>, released by {escape(release.mechanism)}. "
        f"{escape(release.guarantee.sentence())}</p><table><thead><tr>"
        f"<th>{escape(', '.join(release.heads))}</th>"
        f"<th>probability</th><th>{release.confidence:.0%} interval</th><th></th></tr></thead>"
        f"<tbody>{rows}</tbody></table>{more}{_sentences(release)}</div>"
    )


def groups_view(grouped: GroupedRelease) -> str:
    """A table of the largest groups, the first items of each, and the guarantee of all. Everything is escaped."""
    rows = []
    shown = grouped.shares.top(_MOST_ROWS)
    for one in shown:
        first = [] if isinstance(one.item, Other) else grouped[one.item].top(_ITEMS_IN_A_ROW)  # type: ignore[index]
        items = ", ".join(f"{shorten(label(each.item), 24)} {each.probability:.3f}" for each in first)
        rows.append(
            f"<tr><td style='text-align:left'>{escape(label(one.item), _LONGEST)}</td>"
            f"<td>{one.probability:.4f}</td><td>{one.lower:.4f} to {one.upper:.4f}</td>"
            f"<td style='text-align:left'>{escape(items)}</td></tr>"
        )
    joint = grouped.joint
    more = len(grouped.shares) - len(shown)
    return (
        f"<div><p><b>{escape(question(joint))}</b> for each {escape(grouped.by)}, released by "
        f"{escape(joint.mechanism)}. {escape(joint.guarantee.sentence())} "
        "This holds for all groups together.</p><table><thead><tr>"
        f"<th>{escape(grouped.by, _LONGEST)}</th><th>share</th><th>{joint.confidence:.0%} interval</th>"
        f"<th>most probable items</th></tr></thead><tbody>{''.join(rows)}</tbody></table>"
        f"{f'<p>and {more} more groups</p>' if more > 0 else ''}"
        f"{_sentences(grouped)}</div>"
    )


def _sentences(release: Release | GroupedRelease) -> str:
    return paragraphs(too_little(release), sentences(release if isinstance(release, Release) else release.joint))
