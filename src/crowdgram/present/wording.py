"""The sentences about a release: on the terminal, on a page, in a notebook, in a warning.

Everything here comes from the release, so from public and noisy values only.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence

from ..errors import AccuracyWarning
from ..privacy import Adjacency, Guarantee
from ..results.covariance import total_of
from ..results.grouped import GroupedRelease
from ..results.release import Release
from ..results.values import Measure, Other, Quantity, Value, unlisted, values_of

__all__ = [
    "INNER_PARAMETERS",
    "about_items",
    "chosen",
    "coverage",
    "guess",
    "measured_as",
    "noisy_groups",
    "number",
    "predicted",
    "predicted_in_words",
    "question",
    "rows_above",
    "sentences",
    "shorten",
    "too_little",
    "totals",
    "warn_of_too_little",
    "whole_number",
]

INNER_PARAMETERS = ("rows_above_bound", "rows_above_bound_low", "rows_above_bound_high", "released_on")
"""Parameters that `rows_above` puts into words, and the date."""
_NAMED = 5


def sentences(release: Release) -> list[str]:
    """All sentences about the figures of a release, except the warning that it is mostly noise."""
    said = [coverage(release), predicted(release), *totals(release), rows_above(release), about_items(release)]
    return [one for one in said if one is not None]


def question(release: Release) -> str:
    """The question that a release answers, as a heading."""
    return "Share of all rows by item" if release.weight == "rows" else "Average user's share by item"


def measured_as(release: Release, columns: Sequence[str], measure: Measure) -> str:
    """What is shown of each item, as a heading with the names of the item columns."""
    asked = "Share of all rows" if release.weight == "rows" else "The average user's share"
    if measure == "counts":
        asked = f"Number of {release.weight}"
    return f"{asked} by {' and '.join(columns)}"


def coverage(release: Release) -> str:
    """What an interval covers; docs/how-to/read-a-release.md explains it."""
    interval = f"A {release.confidence:.0%} interval covers"
    if release.mechanism == "paper":
        return (
            f"{interval} the answer for users who are alike. If they are not, no interval says by how much it is off."
        )
    if release.parameters.get("row_bound") == "given":
        return (
            f"{interval} the table's answer with the given bound: the figure computed from the same rows without "
            "privacy, with users above the bound scaled down to it."
        )
    return f"{interval} the table's own answer: the figure computed from the same rows without privacy."


def predicted(release: Release) -> str:
    """The predicted error of the whole release."""
    number = len(release)
    return f"Predicted l1 error of {_all(number)}: {release.predicted_l1_error:.2g}, of at most 2."


def predicted_in_words(release: Release) -> str:
    """What the predicted error means: half of the l1 error is the share that would have to move."""
    return (
        f"About {_two_digits(release.predicted_l1_error / 2)} of the whole is predicted to be counted for a wrong "
        "item: half of the l1 error, the sum of the differences of all shares."
    )


def guess(guarantee: Guarantee) -> str:
    """The guarantee as the chance of a guess.

    Formula: (e^epsilon + delta) / (e^epsilon + 1), the largest chance of telling two neighbouring tables apart by one
    outcome if both are equally likely (Kairouz, Oh and Viswanath, "The Composition Theorem for Differential Privacy").
    """
    odds = math.exp(-guarantee.epsilon)
    right = min((1.0 + guarantee.delta * odds) / (1.0 + odds), 1.0)
    places = 1 if right < 0.999 else 3
    share = min(math.ceil(right * 10 ** (places + 2)) / 10**places, 100.0)  # rounded up: it is a bound
    said = "100" if share == 100.0 else f"{share:.{places}f}"
    what = f"any one {guarantee.unit} is in the table"
    if guarantee.adjacency is Adjacency.REPLACE:
        what = f"any one {guarantee.unit} has these rows or those"
    return (
        f"Somebody to whom it is as likely as not that {what}, and who then sees all of these figures, guesses right "
        f"at most {said}% of the time. Without them it would be 50%."
    )


def chosen(release: Release) -> str:
    """What was chosen, and why, in two sentences."""
    bound = release.parameters.get("max_rows_per_user")
    by_rows = "" if bound is None else f" of at most {bound:,} {'row' if bound == 1 else 'rows'} of each user"
    given = release.parameters.get("row_bound") == "given"
    branch = release.parameters.get("branch")
    if branch == "rounds":
        what = (
            f"The items were measured in {release.parameters.get('rounds', 'several')} rounds, each of which measures "
            "how far users are from the estimate so far."
        )
        why = "Noise then has to hide how far users differ, which is less than all they have if users are alike"
        end = "." if release.mechanism != "auto" else ", and pilot queries predicted a smaller error for it."
        return f"{what} {why}{end}"
    if branch == "histogram":
        return (
            "The items were found and measured by one histogram with Laplace noise. Pilot queries showed that users "
            "have few items each, so that a second measurement of what was found would cost more than it tells."
        )
    if release.mechanism == "paper":
        return (
            f"The published algorithm was asked for, and its {release.parameters.get('regime', 'own')} case applies. "
            "Its bound on the error is for users who are alike."
        )
    noise = "Gaussian" if release.mechanism == "gaussian" else "Laplace"
    what = f"Items{by_rows} were counted once, with {noise} noise."
    if release.mechanism == "sample-one":
        what = f"One row of each user was drawn to stand for all of theirs, and counted with {noise} noise."
    if given:
        why = "The contribution bound was given by whoever asked."
    elif release.mechanism == "auto":
        why = "Pilot queries predicted a smaller error for it than for rounds that measure how far users differ"
        why += "." if not by_rows else ", and the bound is the one with the smallest predicted error."
    elif by_rows:
        why = "The mechanism was asked for, and the bound is the one with the smallest predicted error."
    else:
        why = "The mechanism was asked for, and all users weigh the same."
    return f"{what} {why}"


def totals(release: Release) -> list[str]:
    """How many users and rows there are, or that this is not known."""
    total = total_of(release)
    if release.users is None and total is None:
        return ["How many users and rows there are was not measured."]
    said = []
    if release.users is not None:
        said.append(f"Users: {whole_number(release.users)}.")
    elif release.weight == "users" and total is not None:
        said.append(f"Users, each by the share of their rows that is here: {whole_number(total)}.")
    if release.weight == "users":
        return [*said, "How many rows there are was not measured, as users weigh the same."]
    if total is not None and release.total is not None:
        bound = release.total.row_bound
        which = "Rows" if bound is None else f"Rows, at most {bound:,} of each user"
        said.append(f"{which}: {whole_number(total)}.")
    if release.users is None:
        said.append("How many users they are of was not measured.")
    return said


def whole_number(quantity: Quantity) -> str:
    """A number of users or rows, and its interval."""
    ends = f"{quantity.confidence:.0%} interval {quantity.lower:,.0f} to {quantity.upper:,.0f}"
    return f"{quantity.value:,.0f} ({ends})"


def rows_above(release: Release) -> str | None:
    """How many rows the contribution bound leaves out, and what cannot be known about that; None without a bound."""
    bound = release.parameters.get("max_rows_per_user")
    if release.weight == "rows" and release.parameters.get("branch") == "rounds":
        return (
            "The rows of users who are far from all others count in part only; the predicted error and the intervals "
            "allow for those that are seen. Users too few to be seen may hold more rows."
        )
    if release.weight != "rows" or bound is None:
        return None
    above = release.rows_above_bound
    counted = f"Each user counts for at most {bound:,} {'row' if bound == 1 else 'rows'}"
    if above is None:
        return f"{counted}; how many rows that leaves out was not measured."
    return (
        f"{counted}, which leaves out {above.value:.2g} of all rows by estimate ({above.confidence:.0%} interval "
        f"{above.lower:.2g} to {above.upper:.2g}); users too few to be seen may hold more."
    )


def about_items(release: Release) -> str | None:
    """Where the items come from; None for a public domain that is all."""
    others = [value for value in values_of(release.items[-1]) if isinstance(value, Other)]
    said = []
    if release.threshold_delta:
        share = release.parameters.get("discovery_share")
        part = f"{share:.3g} of" if isinstance(share, float) else "part of"
        listed = f"{len(release) - sum(unlisted(release.items)):,} listed"
        said.append(f"The items ({listed}) were found in the table, for {part} the budget.")
    if said and len(release) == 1 and release.other is not None:
        said.append("No item was found: none has enough users.")
    missed = release.missed
    if others:
        said.append(f"The item '{others[-1]}' stands for all items that are not listed.")
    if others and missed is not None:
        interval = f"{missed.confidence:.0%} interval {missed.lower:.4f} to {missed.upper:.4f}"
        said.append(f"Its share, which the list misses, is {missed.value:.4f} ({interval}).")
    if said and not others:
        said.append("Items that are not listed are left out.")
    return " ".join(said) or None


def too_little(release: Release | GroupedRelease) -> str | None:
    """The warning that a release, or some of its groups, is mostly noise; None if it is not."""
    whole = release.joint if isinstance(release, GroupedRelease) else release
    if whole.too_little:
        return (
            f"the release is mostly noise: its predicted l1 error is {whole.predicted_l1_error:.2f}, of at most 2. "
            "More users, a larger epsilon, or fewer items would help."
        )
    if not isinstance(release, GroupedRelease) or not release.too_little:
        return None
    return noisy_groups(release.too_little, len(release), "one half")


def noisy_groups(lost: Sequence[Value], groups: int, limit: str) -> str:
    """The warning that some groups are mostly noise: which, and what their predicted error is above."""
    named = ", ".join(repr(str(one)) for one in lost[:_NAMED])
    more = f" and {len(lost) - _NAMED} more" if len(lost) > _NAMED else ""
    verb = "is" if len(lost) == 1 else "are"
    return (
        f"{len(lost)} of {groups} groups {verb} mostly noise, with a predicted l1 error above {limit}: {named}{more}."
    )


def number(quantity: Quantity, digits: int) -> str:
    """The value of a quantity; "unknown" if it could be anything."""
    return f"{quantity.value:.{digits}f}" if quantity.is_known else "unknown"


def shorten(text: str, longest: int = 40) -> str:
    """`text`, cut to `longest` characters, the last of which then is a sign that more follows."""
    return text if len(text) <= longest else text[: longest - 1] + "…"


def warn_of_too_little(made: Release | GroupedRelease) -> None:
    """Warn if a release is mostly noise, after it is made, paid for and stored."""
    said = too_little(made)
    if said is not None:
        warnings.warn(said, AccuracyWarning, stacklevel=3)


def _two_digits(share: float) -> str:
    """A share as a percentage of two digits."""
    if share <= 0.0:
        return "0%"
    return f"{100 * share:.{max(0, 1 - math.floor(math.log10(100 * share)))}f}%"


def _all(number: int) -> str:
    return "the one probability" if number == 1 else f"all {number:,} probabilities together"
