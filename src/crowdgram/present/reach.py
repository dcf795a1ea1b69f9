"""The sentences about a reach, its warning, and what a notebook shows of it. From public and noisy values only."""

from __future__ import annotations

import warnings

from ..errors import AccuracyWarning
from ..results.reach import Reach
from ..results.values import Other, is_unlisted, label, values_of
from .markup import escape
from .wording import whole_number

__all__ = ["QUESTION", "reach_chosen", "reach_sentences", "reach_too_little", "reach_view", "warn_of_little_reach"]

QUESTION = "Users who have each item"
_MOST_ROWS = 20
_LONGEST = 40


def reach_sentences(reach: Reach) -> list[str]:
    """All sentences about the figures, except the warning that they are mostly noise."""
    said = [
        "A user who has several items counts for each of them, so counts do not sum to the number of users.",
        f"A {reach.confidence:.0%} interval covers the table's own number of users with the item.",
        f"Predicted l1 error of {_all(len(reach))}: {reach.predicted_l1_error:,.0f} users.",
        f"Users: {whole_number(reach.users)}.",
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


def reach_too_little(reach: Reach) -> str | None:
    """The warning that a reach is mostly noise; None if it is not."""
    if not reach.too_little:
        return None
    return (
        f"the release is mostly noise: its predicted l1 error is {reach.predicted_l1_error:,.0f} users, and its counts "
        f"sum to {float(reach.counts.sum()):,.0f}. More users, a larger epsilon, or fewer items would help."
    )


def warn_of_little_reach(made: Reach) -> None:
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
    little = reach_too_little(reach)
    warned = "" if little is None else f"<p><b>{escape(little[0].upper() + little[1:])}</b></p>"
    said = "".join(f"<p>{escape(one)}</p>" for one in reach_sentences(reach))
    return (
        f"<div><p><b>{escape(QUESTION)}</b>. {escape(reach.guarantee.sentence())}</p><table><thead><tr>"
        f"<th>{escape(', '.join(reach.heads))}</th><th>users</th><th>{reach.confidence:.0%} interval</th>"
        f"<th>share of users</th></tr></thead><tbody>{rows}</tbody></table>{more}{warned}{said}</div>"
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
        listed = f"{len(reach) - sum(map(is_unlisted, reach.items)):,} listed"
        said.append(f"The items ({listed}) were found in the table, for part of the budget.")
    if others:
        said.append(f"The item '{others[-1]}' stands for all items that are not listed: users who have any of them.")
    return " ".join(said) or None


def _all(number: int) -> str:
    return "the one count" if number == 1 else f"all {number:,} counts together"
