"""The facts about a release that a reviewer asks for, as plain values: in Python, on a page, in the registry.

They are what the Differential Privacy Deployments Registry (its highest tier) and a reviewer by NIST SP 800-226 ask
for, as far as a release, and its ledger if there is one, can tell. All of it is public already. Costs no privacy.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from ..errors import InvalidArgument
from ..privacy import (
    Adjacency,
    Event,
    ExponentialEvent,
    GaussianEvent,
    Guarantee,
    LaplaceEvent,
    Ledger,
    SelectionEvent,
    SparseLaplaceEvent,
    ThresholdEvent,
    epsilon_spent,
    event_to_dict,
)
from ..results.grouped import GroupedRelease
from ..results.grouped_reach import GroupedReach
from ..results.reach import Reach
from ..results.release import Release
from ..results.values import Quantity
from .reach import QUESTION, reach_chosen, reach_sentences
from .spending_parts import mu_of, parts_of_budget, pure_epsilon_of, shares_of_events
from .wording import chosen, coverage, measured_as, predicted, rows_above

__all__ = ["COMMON_DELTA", "adjacent_tables", "facts", "ledger_facts"]

COMMON_DELTA = 1e-5
"""The delta at which epsilons of different deployments are compared."""

_KINDS: dict[type, str] = {
    GaussianEvent: "discrete Gaussian noise",
    LaplaceEvent: "discrete Laplace noise",
    SparseLaplaceEvent: "discrete Laplace noise",
    ExponentialEvent: "exponential mechanism",
    SelectionEvent: "exponential mechanism",
    ThresholdEvent: "threshold",
}


def facts(result: Release | GroupedRelease | Reach | GroupedReach, ledger: Ledger | None = None) -> dict[str, Any]:
    """All facts, by name. ledger: the one that the release was charged to, for what all of its releases come to."""
    made = result.joint if isinstance(result, GroupedRelease | GroupedReach) else result
    g, events, parameters = made.guarantee, made.events, made.parameters
    if ledger is not None and ledger.budget.adjacency is not g.adjacency:
        raise InvalidArgument(
            f"ledger={ledger.written!r}: is for adjacency {ledger.budget.adjacency.value!r}, and the release for "
            f"{g.adjacency.value!r}. Give the ledger that it was charged to.",
            argument="ledger",
        )
    if ledger is not None and not any(
        (entry.guarantee, entry.period) == (g, parameters.get("period")) for entry in ledger.history()
    ):
        raise InvalidArgument(
            f"ledger={ledger.written!r}: has no charge of this guarantee and period. Give the ledger that the "
            "release was charged to.",
            argument="ledger",
        )
    common = _at_common_delta(tuple(events))
    return {
        "question": _question(result),
        "released_on": parameters.get("released_on"),
        "unit": g.unit,
        "adjacency": g.adjacency.value,
        "adjacent_tables": adjacent_tables(g),
        "epsilon": g.epsilon,
        "delta": g.delta,
        "guarantee": g.sentence(),
        "mu": mu_of(events),
        "pure_epsilon": pure_epsilon_of(events),
        "threshold_delta": made.threshold_delta,
        "epsilon_at_common_delta": common if math.isfinite(common) else None,
        "common_delta": COMMON_DELTA,
        "users": _quantity(made.users),
        "rows": None if isinstance(made, Reach) else _quantity(made.rows),
        "items": len(made),
        "predicted_l1_error": made.predicted_l1_error,
        "mechanism": "reach" if isinstance(made, Reach) else made.mechanism,
        "chosen": reach_chosen(made) if isinstance(made, Reach) else chosen(made),
        "budget": [{"for": one.name, "share": one.share, "draws": one.draws} for one in parts_of_budget(events)],
        "draws": [
            {**event_to_dict(event), "kind": _KINDS[type(event)], "share": share}
            for event, share in zip(events, shares_of_events(events), strict=True)
        ],
        "contribution_bounds": _bounds(made),
        "clipping_bias": _clipping(made),
        "small_items": _small_items(made),
        "unprotected": _unprotected(result),
        "composition": _composition(events, g),
        "post_processing": _post_processing(made),
        "utility": " ".join(_utility(made)),
        "period": parameters.get("period"),
        "ledger": None if ledger is None else ledger_facts(ledger),
        "versions": dict(made.versions),
    }


def ledger_facts(ledger: Ledger) -> dict[str, Any]:
    """What a ledger says of all releases that were charged to it."""
    history = ledger.history()
    overall = ledger.overall
    return {
        "epsilon": ledger.budget.epsilon,
        "delta": ledger.budget.delta,
        "adjacency": ledger.budget.adjacency.value,
        "every": ledger.every,
        "overall": None if overall is None else {"epsilon": overall.epsilon, "delta": overall.delta},
        "releases": len(history),
        "finished": sum(entry.finished for entry in history),
        "first": history[0].at if history else None,
        "last": history[-1].at if history else None,
        "spent": ledger.spent_by_period() if ledger.every is not None else ledger.spent(),
        "spent_overall": _finite(ledger.spent_overall()),
        "period_columns": sorted({entry.period_column for entry in history if entry.period_column is not None}),
        "periods_by_operator": any(entry.period is not None and entry.period_column is None for entry in history),
    }


def adjacent_tables(guarantee: Guarantee) -> str:
    """Which tables are adjacent, precisely."""
    unit = guarantee.unit
    if guarantee.adjacency is Adjacency.ADD_REMOVE:
        return (
            f"Two tables are adjacent if one has all rows of one {unit} more than the other, however many rows that "
            f"is: add/remove of one {unit}. Rows of one {unit} are those with one value in the {unit} column."
        )
    return (
        f"Two tables are adjacent if they differ in all rows of one {unit}, which are replaced by any others, however "
        f"many: replacement of one {unit}. Rows of one {unit} are those with one value in the {unit} column."
    )


def _question(result: Release | GroupedRelease | Reach | GroupedReach) -> str:
    if isinstance(result, Reach):
        return f"{QUESTION}: {' and '.join(result.item_columns)}"
    if isinstance(result, GroupedReach):
        return f"{QUESTION}: {' and '.join(result.joint.item_columns[1:])} for each {result.by}"
    if isinstance(result, GroupedRelease):
        return f"{measured_as(result.joint, result.joint.item_columns[1:], 'shares')} for each {result.by}"
    return measured_as(result, result.item_columns, "shares")


def _bounds(made: Release | Reach) -> str:
    parameters = made.parameters
    if isinstance(made, Reach):
        bound = parameters.get("max_items_per_user")
        return (
            "None: every user counts fully." if bound is None else f"A user counts fully for at most {bound:,} items."
        )
    bound = parameters.get("max_rows_per_user", parameters.get("rows_per_user"))
    how = "given by whoever asked" if parameters.get("row_bound") == "given" else "found privately, within the budget"
    if made.weight == "users":
        return "Every user has weight 1, divided over their items as their rows are; no bound on rows is needed."
    if parameters.get("branch") == "rounds":
        limit = "" if bound is None else f" Rows of one user count up to {bound:,} ({how})."
        return f"Each user's distance from the estimate so far is clipped to radii that are found privately.{limit}"
    if parameters.get("branch") == "histogram" and bound is None:
        return "A bound on the items and rows of one user, found privately, within the budget."
    return "None is recorded." if bound is None else f"At most {bound:,} rows of one user count ({how})."


def _clipping(made: Release | Reach) -> str:
    if isinstance(made, Reach):
        if made.left_out is None:
            return "The bound takes nothing off any item."
        return next(one for one in reach_sentences(made) if one.startswith("A user with more than"))
    said = rows_above(made)
    if said is None:
        return "Nothing is clipped: every user weighs the same." if made.weight == "users" else "None is known."
    allowed = made.other_errors is not None and bool((made.other_errors > 0).any())
    end = " Intervals allow for it." if allowed else ""
    direction = " Users above the bound are scaled down, not dropped, so that items which they favour are understated."
    return f"{said}{direction if made.parameters.get('branch') != 'rounds' else ''}{end}"


def _small_items(made: Release | Reach) -> str:
    said = []
    if made.threshold_delta:
        said.append(
            "Items that few users have are not listed: they are hidden by a threshold, and part of the item for all "
            "others."
        )
    if isinstance(made, Reach):
        said.append(
            "Noise is the same for all items, so that items of few users are known to a smaller relative accuracy."
        )
    else:
        said.append(
            "Noise is absolute: an item of a small share is known to a smaller relative accuracy. Shares that are "
            "lost in noise are shrunk together, and negative ones become 0; their intervals say so."
        )
    return " ".join(said)


def _unprotected(result: Release | GroupedRelease | Reach | GroupedReach) -> list[str]:
    made = result.joint if isinstance(result, GroupedRelease | GroupedReach) else result
    said = ["The schema of the table: names and types of its columns."]
    if made.threshold_delta:
        said.append("The query: its columns, filter and budget. The items were found privately.")
    else:
        said.append("The query: its columns, filter and budget, and the list of items, which are taken to be public.")
    if made.parameters.get("row_bound") == "given":
        said.append("The contribution bound, which was given and is taken to be public.")
    if made.parameters.get("prior") == "given":
        said.append("The prior, which was given and is taken to be public or released before.")
    if made.parameters.get("period") is not None:
        said.append("That a release was made for this period.")
    return said


def _composition(events: tuple[Event, ...], guarantee: Guarantee) -> str:
    parts = [f"All {len(events)} draws of noise are composed." if len(events) > 1 else "There is one draw of noise."]
    if any(isinstance(event, GaussianEvent) for event in events):
        parts.append(
            "Gaussian draws add up in mu^2 (Gaussian differential privacy), pure draws by their privacy losses, "
            "adaptively."
        )
    elif len(events) > 1:
        parts.append("Pure draws add up by epsilon, or by their privacy losses at the given delta, adaptively.")
    if any(isinstance(event, ThresholdEvent) for event in events):
        parts.append("The delta of the threshold for items is added.")
    parts.append(
        f"The sum is checked against epsilon={guarantee.epsilon:g}, delta={guarantee.delta:g} before anything is "
        "released, and again whenever the release is loaded."
    )
    return " ".join(parts)


def _post_processing(made: Release | Reach) -> str:
    if isinstance(made, Reach):
        return "Counts below 0 become 0. Shares are counts over the number of users, and at most 1."
    if made.mechanism == "paper":
        return "The probabilities that were chosen are projected: none below 0, and all together 1."
    return (
        "Noisy sums are divided by their noisy total, shrunk by an empirical Bayes estimate of how shares are "
        "distributed, and projected to probabilities: none below 0, and all together 1. Intervals and predicted "
        "errors come from the same noisy values."
    )


def _utility(made: Release | Reach) -> list[str]:
    if isinstance(made, Reach):
        return [f"Predicted l1 error of all counts together: {made.predicted_l1_error:,.0f} users."]
    return [predicted(made), coverage(made)]


def _quantity(quantity: Quantity | None) -> Mapping[str, float] | None:
    if quantity is None or not quantity.is_known:
        return None
    return {
        "value": quantity.value,
        "lower": quantity.lower,
        "upper": quantity.upper,
        "confidence": quantity.confidence,
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


@lru_cache(maxsize=64)  # the parts of a release, and its pages, have the same events
def _at_common_delta(events: tuple[Event, ...]) -> float:
    return epsilon_spent(events, COMMON_DELTA)
