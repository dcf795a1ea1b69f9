"""The simple mechanisms: the paper's Lemma 1 (Laplace and Gaussian on summed counts) and Section 2 (one row of each
user).

Their noise grows with the row cap. They are what people use today, the fallback if nothing better applies, and what
everything else is measured against.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ..arrays import Integers
from ..privacy import GaussianEvent, Guarantee, LaplaceEvent, Looks, PureFinish, Ready, Reserve, Rounds
from ..stages import Stage
from ..tables import UNIT, CappedRows, Counts, SampledRow, UsersByRows
from .estimate import Estimate, from_noisy_sums
from .measurements import inverse_variance_mean
from .mechanism import Discovering, Mechanism
from .pilot_queries import (
    USERS,
    RowHistogram,
    buy_further_histograms,
    look_at_rows,
    look_at_users,
    looked_for,
    row_reserves,
)
from .request import Request
from .row_bound import ChosenBound, Disagreement, best_bound

if TYPE_CHECKING:
    from ..privacy import Cost

__all__ = ["Gaussian", "Laplace", "SampleOne"]


class Laplace(Discovering):
    """Discrete Laplace noise on capped counts: pure epsilon-differential privacy.

    T_i + Z_i, Z_i ~ Lap_Z(sensitivity / epsilon), T as in `tables.CappedRows`.

    Guarantee: `CappedRows` moves by UNIT (add-remove) or 2 UNIT (replace) in l1. Reference: the paper's Lemma 1, whose
    sensitivity 2m is that of replace-one.
    """

    name = "laplace"
    pure = True
    finish = "pure"
    histogram = True

    def reserves(self, guarantee: Guarantee, request: Request, items: int | None) -> list[Reserve]:
        return _reserves(guarantee, request, items)

    def ways(self, trial: Looks, items: int | None) -> Sequence[Cost]:
        from .costs import histogram_way, pure_way  # for a ledger only

        return [pure_way(trial)] if items is not None else [histogram_way(trial), pure_way(trial)]

    def run(self, counts: Counts, budget: Ready, request: Request, /) -> Estimate:
        spending, cap, users = _pure_finish(counts, budget, request)
        request.report(Stage.SUMMING)
        sums = counts.sum(CappedRows(cap.rows))
        request.report(Stage.NOISE)
        noisy, event = spending.laplace(
            "counts by item", sums.values, bound=sums.bound.l1, epsilon=spending.remaining_epsilon()
        )
        return _estimate(noisy, event, request, cap, users)


class Gaussian(Discovering):
    """Discrete Gaussian noise on capped counts: (epsilon, delta)-differential privacy.

    T_i + Z_i, Z_i ~ N_Z(0, sigma^2), T as in `tables.CappedRows`, whose l2 norm a user is at most its l1 norm.

    Guarantee: `CappedRows` moves by UNIT (add-remove) or sqrt(2) UNIT (replace) in l2. Reference: the paper's Lemma 1,
    with sigma from the exact Gaussian trade-off instead of its 2 sqrt(log(1.25/delta)) m/epsilon, which holds for
    epsilon <= 1 only.
    """

    name = "gaussian"
    needs_delta = (
        "Gaussian noise always leaves a small chance delta. Give a delta such as 1e-6, or use mechanism='auto' or "
        "'laplace'."
    )
    finish = "gaussian"

    def instead(self, _: Guarantee) -> Sequence[Mechanism]:
        return [Laplace()]

    def reserves(self, guarantee: Guarantee, request: Request, items: int | None) -> list[Reserve]:
        return _reserves(guarantee, request, items)

    def ways(self, trial: Looks, items: int | None) -> Sequence[Cost]:
        from .costs import gaussian_way, items_between

        return [gaussian_way(trial, *items_between(items))]

    def run(self, counts: Counts, budget: Ready, request: Request, /) -> Estimate:
        spending, cap, users = _rounds(counts, budget, request)
        request.report(Stage.SUMMING)
        sums = counts.sum(CappedRows(cap.rows))
        request.report(Stage.NOISE)
        mu = spending.remaining_mu(counts.items)
        noisy, event = spending.gaussian(
            "counts by item", sums.values, bound=sums.bound.l2, mu=mu, non_negative=sums.bound.non_negative
        )
        return _estimate(noisy, event, request, cap, users)


class SampleOne(Discovering):
    """Discrete Laplace noise on one sampled row of each user: pure epsilon-differential privacy.

    The sampled row weighs the same for every user (weight "users"), or as many rows as the user has, up to the cap
    (weight "rows"). Guarantee: given the salt, the sum moves by UNIT (add-remove) or 2 UNIT (replace) in l1, whatever
    the sampling drew; no amplification is claimed. Reference: the paper's Section 2.
    """

    name = "sample-one"
    pure = True
    finish = "pure"

    def reserves(self, guarantee: Guarantee, request: Request, items: int | None) -> list[Reserve]:
        return _reserves(guarantee, request, items)

    def ways(self, trial: Looks, _: int | None) -> Sequence[Cost]:
        from .costs import pure_way

        return [pure_way(trial)]

    def run(self, counts: Counts, budget: Ready, request: Request, /) -> Estimate:
        spending, cap, users = _pure_finish(counts, budget, request)
        request.report(Stage.SUMMING_SAMPLE)
        sums = counts.sum(SampledRow(cap.rows, spending.salt()))
        request.report(Stage.NOISE)
        noisy, event = spending.laplace(
            "sampled rows by item", sums.values, bound=sums.bound.l1, epsilon=spending.remaining_epsilon()
        )
        return _estimate(noisy, event, request, cap, users, sampled=True)


def _reserves(guarantee: Guarantee, request: Request, items: int | None) -> list[Reserve]:
    """What a private row cap may cost, and the number of users that is looked at with it."""
    return [*row_reserves(guarantee, items), USERS.reserve(guarantee, items)] if request.buys_rows else []


Users = tuple[float, float] | None
"""How many users there are, and its standard deviation; None if that was not measured."""


def _pure_finish(counts: Counts, ready: Ready, request: Request) -> tuple[PureFinish, ChosenBound, Users]:
    """A pure finish; the row cap to work with: 1 if users weigh the same, else what the caller gave, else found
    privately; and how many users were found with it.
    """
    if not request.buys_rows:
        return ready.looks().finish_purely(), _given(request), None
    looks, histogram, rows, users = _look_at_rows(counts, ready, request, thrifty=True)
    spending = looks.finish_purely()
    scale = counts.items * spending.laplace_scale(UNIT, 1.0) / UNIT
    rows = buy_further_histograms(rows, histogram, spending, scale, Disagreement.prior().mean)
    one = spending.laplace_scale(UNIT, spending.remaining_epsilon()) / UNIT
    return spending, _best(rows, counts.items * one), inverse_variance_mean(*users, *rows.users)


def _rounds(counts: Counts, ready: Ready, request: Request) -> tuple[Rounds, ChosenBound, Users]:
    """The same, before Gaussian noise."""
    if not request.buys_rows:
        return ready.looks().rounds(), _given(request), None
    looks, _, rows, users = _look_at_rows(counts, ready, request, thrifty=not request.found)
    one = math.sqrt(2 / math.pi) / looks.remaining_mu(counts.items)
    return looks.rounds(), _best(rows, counts.items * one), inverse_variance_mean(*users, *rows.users)


def _look_at_rows(
    counts: Counts, ready: Ready, request: Request, *, thrifty: bool
) -> tuple[Looks, Integers, RowHistogram, tuple[float, float]]:
    """Users by rows, exactly and as they were seen; and their number, with its standard deviation."""
    items = looked_for(counts.items, request)
    looks = ready.looks(_reserves(ready.guarantee, request, items))
    request.report(Stage.BOUNDING)
    histogram = counts.sum(UsersByRows(RowHistogram.edges())).values
    rows = request.seen_rows or look_at_rows(histogram, looks, items, thrifty=thrifty)
    return looks, histogram, rows, look_at_users(counts, looks)


def _best(rows: RowHistogram, noise: float) -> ChosenBound:
    """The best bound; 1 if too few users are seen: every user then weighs the same."""
    return (
        ChosenBound(1.0, 0.0, 0.0, 0.0)
        if rows.crowds is None
        else best_bound(rows.crowds, noise, Disagreement.prior().mean)
    )


def _given(request: Request) -> ChosenBound:
    return ChosenBound(float(request.row_cap), 0.0, 0.0, 0.0)


def _estimate(
    noisy: Integers,
    event: LaplaceEvent | GaussianEvent,
    request: Request,
    cap: ChosenBound,
    users: Users,
    *,
    sampled: bool = False,
) -> Estimate:
    parameters = {"max_rows_per_user": cap.rows} if request.weight == "rows" else {}
    made = from_noisy_sums(noisy, event, parameters, bias=(cap.bias, cap.bias), row_bound=cap.rows, sampled=sampled)
    return replace(made, users=users)
