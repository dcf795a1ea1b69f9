"""The sentences about a reach, its warning, and what a notebook shows of it. From public and noisy values only."""

from __future__ import annotations

import warnings

from ..errors import AccuracyWarning
from ..results.grouped_reach import GroupedReach
from ..results.reach import Reach
from ..results.values import Other, Value, label, unlisted, values_of
from .markup import escape, paragraphs
from .wording import noisy_groups, shorten, whole_number

__all__ = [
    "QUESTION",
    "groups_view",
    "largest_groups",
    "reach_chosen",
    "reach_sentences",
    "reach_too_little",
    "reach_view",
    "warn_of_little_reach",
]

QUESTION = "Users who have each item"
_MOST_ROWS = 20
_LONGEST = 40
_ITEMS_IN_A_ROW = 3


def reach_sentences(result: Reach | GroupedReach) -> list[str]:
    """All sentences about the figures, except the warning that they are mostly noise."""
    reach = result.joint if isinstance(result, GroupedReach) else result
    several = "items counts for each of them"
    if isinstance(result, GroupedReach):
        several = "items, or is in several groups, counts for each of them"
    said = [
        f"A user who has several {several}, so counts do not sum to the number of users.",
        f"A {reach.confidence:.0%} interval covers the table's own number of users with the item.",
        f"Predicted l1 error of {_all(len(reach))}: {reach.predicted_l1_error:,.0f} users.",
        f"Users: {whole_number(reach.users)}.",
        None if result is reach else "Shares are of the users of the group.",
        _bound(reach),
        _items(reach),
    ]
    return [one for one in said if one is not None]


def reach_chosen(reach: Reach) -> str:
    """What was chosen, and why, in two sentences."""
    bound, noise = reach.parameters.get("max_items_per_user"), reach.parameters.get("noise", "laplace")
    kind = "Gaussian" if noise == "gaussian" else "Laplace"
    fully = (
        "" if bound is None else f", and a user counts fully for at most {bound:,} {'item' if bound == 1 else 'items'}"
    )
    what = f"The users of each item were counted once, with {kind} noise{fully}."
    if any(event.purpose.startswith("users by items") for event in reach.events):
        return f"{what} Both have the smallest predicted error, by a noisy histogram of how many items users have."
    return f"{what} The noise is the one with the smaller predicted error, and no bound had to be looked for."


def reach_too_little(result: Reach | GroupedReach) -> str | None:
    """The warning that a reach, or some of its groups, is mostly noise; None if it is not."""
    reach = result.joint if isinstance(result, GroupedReach) else result
    if not reach.too_little:
        lost = result.too_little if isinstance(result, GroupedReach) else ()
        if not lost:
            return None
        return noisy_groups(lost, len(result), "half of the sum of their counts")
    return (
        f"the release is mostly noise: its predicted l1 error is {reach.predicted_l1_error:,.0f} users, and its counts "
        f"sum to {float(reach.counts.sum()):,.0f}. More users, a larger epsilon, or fewer items would help."
    )


def warn_of_little_reach(made: Reach | GroupedReach) -> None:
    """Warn if a reach is mostly noise, after it is made, paid for and stored."""
    said = reach_too_little(made)
    if said is not None:
        warnings.warn(said, AccuracyWarning, stacklevel=3)


def reach_view(reach: Reach) -> str:
    """A table of the items that most users have, and the guarantee in words. Everything is escaped."""
    shown = reach.top(_MOST_ROWS)
    rows = "".join(
        f"<tr><td style='text-align:left'>{escape(label(one.item), _LONGEST)}</td><td>{one.users:,.0f}</td>"
        f"<td>{one.lower:,.0f} to {one.upper:,.0f}</td><td>{one.share:.4f}</td></tr>"
        for one in shown
    )
    more = f"<p>and {len(reach) - len(shown)} more items</p>" if len(reach) > len(shown) else ""
    said = paragraphs(reach_too_little(reach), reach_sentences(reach))
    return (
        f"<div><p><b>{escape(QUESTION)}</b>. {escape(reach.guarantee.sentence())}</p><table><thead><tr>"
        f"<th>{escape(', '.join(reach.heads))}</th><th>users</th><th>{reach.confidence:.0%} interval</th>"
        f"<th>share of users</th></tr></thead><tbody>{rows}</tbody></table>{more}{said}</div>"
    )


def largest_groups(grouped: GroupedReach, n: int) -> list[Value]:
    """The n groups with most users, in the order of the release."""
    order = sorted(grouped.groups, key=lambda group: -grouped[group].users.value)[:n]
    return [group for group in grouped if group in set(order)]


def groups_view(grouped: GroupedReach) -> str:
    """A table of the largest groups, the first items of each, and the guarantee of all. Everything is escaped."""
    shown, rows = largest_groups(grouped, _MOST_ROWS), []
    for group in shown:
        own = grouped[group]
        first = ", ".join(f"{shorten(label(one.item), 24)} {one.users:,.0f}" for one in own.top(_ITEMS_IN_A_ROW))
        rows.append(
            f"<tr><td style='text-align:left'>{escape(label(group), _LONGEST)}</td><td>{own.users.value:,.0f}</td>"
            f"<td>{own.users.lower:,.0f} to {own.users.upper:,.0f}</td>"
            f"<td style='text-align:left'>{escape(first)}</td></tr>"
        )
    more = len(grouped) - len(shown)
    rest = f"<p>and {more} more groups</p>" if more > 0 else ""
    said = paragraphs(reach_too_little(grouped), reach_sentences(grouped))
    return (
        f"<div><p><b>{escape(QUESTION)}</b> for each {escape(grouped.by)}. {escape(grouped.guarantee.sentence())} This "
        f"holds for all groups together.</p><table><thead><tr><th>{escape(grouped.by, _LONGEST)}</th><th>users</th>"
        f"<th>{grouped.joint.confidence:.0%} interval</th><th>items of most users</th></tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table>{rest}{said}</div>"
    )


def _bound(reach: Reach) -> str | None:
    bound, left_out = reach.parameters.get("max_items_per_user"), reach.left_out
    if left_out is None or bound is None:
        return None
    return (
        f"A user with more than {bound:,} {'item' if bound == 1 else 'items'} counts in part for each of them. By "
        f"estimate that takes {whole_number(left_out)} users off an item that all users have, and less off others; "
        "intervals allow for it."
    )


def _items(reach: Reach) -> str | None:
    others = [value for value in values_of(reach.items[-1]) if isinstance(value, Other)]
    said = []
    if reach.threshold_delta:
        listed = f"{len(reach) - sum(unlisted(reach.items)):,} listed"
        said.append(f"The items ({listed}) were found in the table, for part of the budget.")
    if others:
        said.append(f"The item '{others[-1]}' stands for all items that are not listed: users who have any of them.")
    return " ".join(said) or None


def _all(number: int) -> str:
    return "the one count" if number == 1 else f"all {number:,} counts together"
