"""The simple mechanisms: the paper's Lemma 1 (Laplace and Gaussian on summed counts) and Section 2 (one row of each
user).

Their noise grows with the row cap. They are what people use today, the fallback where nothing better applies, and what
everything else is measured against.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from ..privacy import Looks, PureFinish, Ready, Rounds
from ..tables import UNIT, Counts, l1_sum, rows_histogram, sampled_sum
from .estimate import Estimate, from_noisy_sums
from .looks import Rows, look_at_rows, look_longer, looked_for, row_reserves
from .request import Request
from .row_bound import Bound, Disagreement, best_bound

__all__ = ["gaussian", "laplace", "sample_one"]

Integers = npt.NDArray[np.int64]


def laplace(counts: Counts, ready: Ready, request: Request) -> Estimate:
    """Discrete Laplace noise on capped counts: pure epsilon-differential privacy.

    T_i + Z_i, Z_i ~ Lap_Z(sensitivity / epsilon), T as in `tables.l1_sum`.

    Guarantee: `l1_sum` moves by UNIT (add-remove) or 2 UNIT (replace) in l1. Reference: the paper's Lemma 1, whose
    sensitivity 2m is that of replace-one.
    """
    spending, cap = _pure_finish(counts, ready, request)
    request.report("summing counts")
    sums = l1_sum(counts, cap.rows)
    request.report("adding noise")
    noisy, event = spending.laplace("counts by item", sums, bound=UNIT, epsilon=spending.remaining_epsilon())
    return from_noisy_sums(noisy, event, _parameters(request, cap.rows), bias=(cap.bias, cap.bias))


def gaussian(counts: Counts, ready: Ready, request: Request) -> Estimate:
    """Discrete Gaussian noise on capped counts: (epsilon, delta)-differential privacy.

    T_i + Z_i, Z_i ~ N_Z(0, sigma^2), T as in `tables.l1_sum`, whose l2 norm a user is at most its l1 norm.

    Guarantee: `l1_sum` moves by UNIT (add-remove) or sqrt(2) UNIT (replace) in l2. Reference: the paper's Lemma 1,
    with sigma from the exact Gaussian trade-off instead of its 2 sqrt(log(1.25/delta)) m/epsilon, which holds for
    epsilon <= 1 only.
    """
    spending, cap = _rounds(counts, ready, request)
    request.report("summing counts")
    sums = l1_sum(counts, cap.rows)
    request.report("adding noise")
    mu = spending.remaining_mu(counts.items)
    noisy, event = spending.gaussian("counts by item", sums, bound=UNIT, mu=mu, non_negative=True)
    return from_noisy_sums(noisy, event, _parameters(request, cap.rows), bias=(cap.bias, cap.bias))


def sample_one(counts: Counts, ready: Ready, request: Request) -> Estimate:
    """Discrete Laplace noise on one sampled row of each user: pure epsilon-differential privacy.

    The sampled row weighs the same for every user (weight "users"), or as many rows as the user has, up to the cap
    (weight "rows"). Guarantee: given the salt, the sum moves by UNIT (add-remove) or 2 UNIT (replace) in l1, whatever
    the sampling drew; no amplification is claimed. Reference: the paper's Section 2.
    """
    spending, cap = _pure_finish(counts, ready, request)
    request.report("summing sampled rows")
    sums = sampled_sum(counts, spending.salt(), cap.rows)
    request.report("adding noise")
    noisy, event = spending.laplace("sampled rows by item", sums, bound=UNIT, epsilon=spending.remaining_epsilon())
    return from_noisy_sums(noisy, event, _parameters(request, cap.rows), bias=(cap.bias, cap.bias))


def _pure_finish(counts: Counts, ready: Ready, request: Request) -> tuple[PureFinish, Bound]:
    """A pure finish, and the row cap to work with: 1 if users weigh the same, else what the caller gave, else found
    privately.
    """
    if not request.buys_rows:
        return ready.looks().finish_purely(), _given(request)
    looks, histogram, rows = _look_at_rows(counts, ready, request)
    spending = looks.finish_purely()
    scale = counts.items * spending.laplace_scale(UNIT, 1.0) / UNIT
    rows = look_longer(rows, histogram, spending, scale, Disagreement.prior().mean)
    one = spending.laplace_scale(UNIT, spending.remaining_epsilon()) / UNIT
    return spending, _best(rows, counts.items * one)


def _rounds(counts: Counts, ready: Ready, request: Request) -> tuple[Rounds, Bound]:
    """The same, before Gaussian noise."""
    if not request.buys_rows:
        return ready.looks().rounds(), _given(request)
    looks, _, rows = _look_at_rows(counts, ready, request)
    one = math.sqrt(2 / math.pi) / looks.remaining_mu(counts.items)
    return looks.rounds(), _best(rows, counts.items * one)


def _look_at_rows(counts: Counts, ready: Ready, request: Request) -> tuple[Looks, Integers, Rows]:
    """Users by rows, exactly and as they were seen."""
    items = looked_for(counts.items, request)
    looks = ready.looks(row_reserves(ready.guarantee, items))
    request.report("finding the row cap")
    histogram = rows_histogram(counts, Rows.edges())
    return looks, histogram, request.seen_rows or look_at_rows(histogram, looks, items)


def _best(rows: Rows, noise: float) -> Bound:
    """The best bound; 1 if too few users are seen: every user then weighs the same."""
    return (
        Bound(1.0, 0.0, 0.0, 0.0) if rows.crowds is None else best_bound(rows.crowds, noise, Disagreement.prior().mean)
    )


def _given(request: Request) -> Bound:
    return Bound(float(1 if request.weight == "users" else request.max_rows_per_user or 1), 0.0, 0.0, 0.0)


def _parameters(request: Request, row_cap: int) -> dict[str, int]:
    return {"max_rows_per_user": row_cap} if request.weight == "rows" else {}
