"""The simple mechanisms: the paper's Lemma 1 (Laplace and Gaussian on summed counts) and Section 2 (one row of each
user).

Their noise grows with the row cap. They are what people use today, the fallback where nothing better applies, and what
everything else is measured against.
"""

from __future__ import annotations

import math
from typing import Literal

from ..privacy import Spending, fresh_salt
from ..tables import UNIT, CappedRows, Counts, SampledRow, UsersByRows
from .estimate import Estimate, from_noisy_sums
from .looks import Rows, look_at_rows, look_longer, looked_for, reserve_rows
from .request import Request
from .row_bound import Bound, Disagreement, best_bound

__all__ = ["gaussian", "laplace", "sample_one"]


def laplace(counts: Counts, spending: Spending, request: Request) -> Estimate:
    """Discrete Laplace noise on capped counts: pure epsilon-differential privacy.

    T_i + Z_i, Z_i ~ Lap_Z(sensitivity / epsilon), T as in `tables.CappedRows`.

    Guarantee: `CappedRows` moves by UNIT (add-remove) or 2 UNIT (replace) in l1. Reference: the paper's Lemma 1, whose
    sensitivity 2m is that of replace-one.
    """
    cap = _row_cap(counts, spending, request, "laplace")
    request.report("summing counts")
    sums = counts.sum(CappedRows(cap.rows))
    request.report("adding noise")
    noisy, event = spending.laplace(
        "counts by item", sums.values, bound=sums.bound.l1, epsilon=spending.remaining_epsilon()
    )
    return from_noisy_sums(noisy, event, _parameters(request, cap.rows), bias=(cap.bias, cap.bias))


def gaussian(counts: Counts, spending: Spending, request: Request) -> Estimate:
    """Discrete Gaussian noise on capped counts: (epsilon, delta)-differential privacy.

    T_i + Z_i, Z_i ~ N_Z(0, sigma^2), T as in `tables.CappedRows`, whose l2 norm a user is at most its l1 norm.

    Guarantee: `CappedRows` moves by UNIT (add-remove) or sqrt(2) UNIT (replace) in l2. Reference: the paper's Lemma 1,
    with sigma from the exact Gaussian trade-off instead of its 2 sqrt(log(1.25/delta)) m/epsilon, which holds for
    epsilon <= 1 only.
    """
    cap = _row_cap(counts, spending, request, "gaussian")
    request.report("summing counts")
    sums = counts.sum(CappedRows(cap.rows))
    request.report("adding noise")
    mu = spending.remaining_mu(counts.items)
    noisy, event = spending.gaussian(
        "counts by item", sums.values, bound=sums.bound.l2, mu=mu, non_negative=sums.bound.non_negative
    )
    return from_noisy_sums(noisy, event, _parameters(request, cap.rows), bias=(cap.bias, cap.bias))


def sample_one(counts: Counts, spending: Spending, request: Request) -> Estimate:
    """Discrete Laplace noise on one sampled row of each user: pure epsilon-differential privacy.

    The sampled row weighs the same for every user (weight "users"), or as many rows as the user has, up to the cap
    (weight "rows"). Guarantee: given the salt, the sum moves by UNIT (add-remove) or 2 UNIT (replace) in l1, whatever
    the sampling drew; no amplification is claimed. Reference: the paper's Section 2.
    """
    cap = _row_cap(counts, spending, request, "laplace")
    request.report("summing sampled rows")
    sums = counts.sum(SampledRow(cap.rows, fresh_salt()))
    request.report("adding noise")
    noisy, event = spending.laplace(
        "sampled rows by item", sums.values, bound=sums.bound.l1, epsilon=spending.remaining_epsilon()
    )
    return from_noisy_sums(noisy, event, _parameters(request, cap.rows), bias=(cap.bias, cap.bias))


def _row_cap(counts: Counts, spending: Spending, request: Request, noise: Literal["laplace", "gaussian"]) -> Bound:
    """The cap to work with: 1 where users weigh the same, else what the user gave, else found privately."""
    if request.weight == "users":
        return _given(1)
    if request.max_rows_per_user is not None:
        return _given(request.max_rows_per_user)
    items = looked_for(counts.items, request)
    reserve_rows(spending, items)
    request.report("finding the row cap")
    histogram = counts.sum(UsersByRows(Rows.edges())).values
    rows = request.seen_rows or look_at_rows(histogram, spending, items)
    disagreement = Disagreement.prior().mean
    if noise == "laplace":
        scale = counts.items * spending.laplace_scale(UNIT, 1.0) / UNIT
        rows = look_longer(rows, histogram, spending, scale, disagreement)
        one = spending.laplace_scale(UNIT, spending.remaining_epsilon()) / UNIT
    else:
        one = math.sqrt(2 / math.pi) / spending.remaining_mu(counts.items)
    if rows.crowds is None:
        return _given(1)  # too few users to see: let every user weigh the same
    return best_bound(rows.crowds, counts.items * one, disagreement)


def _given(row_cap: int) -> Bound:
    return Bound(float(row_cap), 0.0, 0.0, 0.0)


def _parameters(request: Request, row_cap: int) -> dict[str, int]:
    return {"max_rows_per_user": row_cap} if request.weight == "rows" else {}
