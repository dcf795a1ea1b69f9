"""A plan in words, as a table in a notebook, and as a picture."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ..present.markup import escape
from ..present.plots import new_figure
from .expected import Bound, Expected
from .shapes import TAIL_PRESETS, TASTE_PRESETS, Preset

if TYPE_CHECKING:
    import matplotlib.figure

    from .value import Plan

__all__ = ["HEADS", "cells", "html", "name_of", "percent", "plot", "sentences"]

HEADS = ("way", "l1 error", "of population", "item of {share} within")
_NAMES = {"auto": "auto", "laplace": "Laplace noise", "gaussian": "Gaussian noise", "no privacy": "no privacy"}


def sentences(plan: Plan) -> list[str]:
    """The plan in words: the answer first, then what it rests on."""
    said = [*_checked(plan)]
    if plan.expected:
        said += [*_solved(plan), _item(plan), _whole(plan), _others(plan), _sampling(plan), _crowd(plan), _found(plan)]
        said += [_bounds(plan)]
    return [*[one for one in said if one], plan.guarantee.sentence()]


def percent(share: float) -> str:
    """A share or an error as a percentage, with two digits that count, and no more than it takes."""
    value = 100 * share
    if value == 0:
        return "0%"
    digits = max(0, 1 - math.floor(math.log10(abs(value))))
    text = f"{value:.{min(digits, 12)}f}"
    return (text.rstrip("0").rstrip(".") if "." in text else text) + "%"


def name_of(one: Expected) -> str:
    """A way to release, with its contribution bound."""
    bound = "" if one.bound is None else f", best bound {one.bound:,}"
    return f"{_NAMES[one.way]}{bound}"


def cells(one: Expected) -> tuple[str, str, str, str]:
    """A line of the table of ways."""
    return name_of(one), _error(one.l1_error), _error(one.population_error), percent(one.within)


def _error(value: float) -> str:
    return "0" if value == 0 else f"{value:.2g}"


def _item(plan: Plan) -> str:
    within = plan.within
    item = f"An item of {percent(plan.share)}"
    if within >= plan.share:
        return (
            f"{item} will not be told from noise: it will be known to within {percent(within)}, in 19 of 20 releases."
        )
    return f"{item} will be known to within {percent(within)}, in 19 of 20 releases."


def _whole(plan: Plan) -> str:
    auto = plan["auto"]
    by = {0.0: "by Laplace noise", 1.0: "by rounds"}.get(auto.rounds or 0.0, "by rounds or by Laplace noise")
    more = " The release will be mostly noise." if auto.l1_error > 0.5 else ""
    return (
        f"A release by auto ({by}) errs by {_error(auto.l1_error)} in l1, the sum of all items' errors, of at most 2: "
        f"half of that, {percent(auto.l1_error / 2)}, is the part of all {plan.weight} that it puts at the wrong "
        f"item.{more}"
    )


def _others(plan: Plan) -> str:
    auto = plan["auto"].l1_error
    parts = [
        f"{name_of(one)}, by {_error(one.l1_error)} ({one.l1_error / max(auto, 1e-300):.1f} times as much)"
        for one in plan.expected
        if one.way in ("laplace", "gaussian")
    ]
    tuned = any(one.bound is not None for one in plan.expected)
    more = " Such a bound is known only with the true answer in hand." if tuned else ""
    return f"Instead, {'; '.join(parts)}.{more}"


def _sampling(plan: Plan) -> str:
    error = plan["no privacy"].sampling_error
    return (
        "These errors are against the table's own answer: the figure computed from the same rows without privacy, "
        "which errs by 0. If the users are a sample of a larger population, the table itself, without any privacy, "
        f"is off from that by {_error(error)}, and auto by {_error(plan['auto'].population_error)}."
    )


def _crowd(plan: Plan) -> str:
    assert plan.users is not None
    assert plan.rows_per_user is not None
    tails, tastes = _preset(plan.tails, TAIL_PRESETS), _preset(plan.tastes, TASTE_PRESETS)
    return (
        f"Planned for {plan.users:,} users with {plan.rows_per_user:,.4g} rows each on average and {plan.items:,} "
        f"items, by {plan.weight}. Rows per user are {tails} (log-normal, sigma {plan.tails:.3g}), and tastes are "
        f"{tastes} (two rows of a user agree by taste in {percent(plan.tastes)} of cases). No table was read."
    )


def _found(plan: Plan) -> str:
    if plan.discovery_share is None:
        return ""
    return (
        f"The items have to be found first. {percent(plan.discovery_share)} of the budget goes there and is counted "
        f'here. All {plan.items:,} are taken as found: in a release, those that too few users have are left in "other".'
    )


def _preset(value: float, presets: dict[Preset, float]) -> str:
    return next((name for name, one in presets.items() if one == value), "as given")


def _solved(plan: Plan) -> list[str]:
    if plan.solved is None:
        return []
    found = {
        "users": f"{plan.users:,} users",
        "rows_per_user": f"{plan.rows_per_user:,.4g} {'row' if plan.rows_per_user == 1 else 'rows'} per user",
        "epsilon": f"an epsilon of {plan.epsilon:.3g}",
    }[plan.solved]
    whose = "the table's own answer" if plan.against == "table" else "the population"
    return [f"For an l1 error of {plan.target_error:g} against {whose}: {found}."]


def _bounds(plan: Plan) -> str:
    known: dict[tuple[str, str], str] = {}
    for one in plan.bounds:
        if one.error is not None:  # of two that say the same error, the stronger comes first
            known.setdefault((one.kind, _error(one.error)), f"{one.says} {_error(one.error)} ({one.name})")
    if not known:
        return ""
    said = "; ".join(known.values())
    return (
        "What the paper proves, for users who are alike and have equal rows, against the population, and for the "
        f"hardest distribution: {said}."
    )


def _checked(plan: Plan) -> list[str]:
    return [] if plan.checked is None else plan.checked.sentences()


def html(plan: Plan) -> str:
    """What a notebook shows. Everything is escaped."""
    rows = "".join(
        "<tr>" + "".join(f"<td style='text-align:left'>{escape(cell)}</td>" for cell in cells(one)) + "</tr>"
        for one in plan.expected
    )
    heads = "".join(f"<th>{escape(head.format(share=percent(plan.share)))}</th>" for head in HEADS)
    table = f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>" if plan.expected else ""
    first, *rest = sentences(plan)
    said = "".join(f"<p>{escape(one)}</p>" for one in rest)
    return f"<div><p><b>{escape(first)}</b></p>{table}{said}</div>"


def plot(plan: Plan) -> matplotlib.figure.Figure:
    """Bars of the l1 error of each way, alone and with sampling, on a logarithmic scale; lines for bounds."""
    plan["auto"]  # an error, if there is nothing to draw
    figure = new_figure(8, 1.8 + 0.5 * len(plan.expected))
    ax = figure.subplots()
    places = range(len(plan.expected))
    totals = [one.population_error for one in plan.expected]
    ax.barh(places, totals, height=0.7, color="#deebf7", label="with sampling: against the population")
    ax.barh(places, [one.l1_error for one in plan.expected], height=0.4, color="#3182bd", label="against the table")
    for colour, one in zip(("#d94801", "#a63603", "#7f2704"), _lines(plan), strict=False):
        ax.axvline(one.error or 0.0, color=colour, linestyle=":", label=f"{one.says} {_error(one.error or 0.0)}")
    drawn = (*totals, *(one.l1_error for one in plan.expected), *(one.error or 0.0 for one in _lines(plan)))
    ax.set_xscale("log")
    ax.set_xlim(left=min(value for value in drawn if value > 0) / 1.5)
    ax.set_yticks(list(places), [name_of(one) for one in plan.expected])
    ax.invert_yaxis()
    ax.set_xlabel("expected l1 error")
    g = plan.guarantee
    delta = f", delta={g.delta:g}" if g.delta else ""
    figure.suptitle(
        f"{plan.users:,} users, {plan.rows_per_user:,.4g} rows each, {plan.items:,} items\n"
        f"(epsilon={g.epsilon:.3g}{delta}, {g.adjacency.value}, by {plan.weight})",
        fontsize=10,
    )
    ax.spines[["top", "right"]].set_visible(False)
    figure.legend(frameon=False, loc="outside lower center", fontsize=8)
    return figure


def _lines(plan: Plan) -> list[Bound]:
    drawn: dict[str, Bound] = {}
    for one in plan.bounds:
        if one.kind == "least" and one.error:
            drawn.setdefault(_error(one.error), one)
    return list(drawn.values())
