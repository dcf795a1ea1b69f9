"""The simple mechanisms: the paper's Lemma 1 (Laplace and Gaussian on summed counts) and Section 2 (one row of each user).

Their noise grows with the row cap. They are what people use today, the fallback where nothing better applies, and what
everything else is measured against.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

from ..errors import InvalidArgument
from ..privacy import Spending, fresh_salt
from ..tables import ROW_LIMIT, UNIT, Counts, l1_sum, sampled_sum
from .estimate import Estimate, from_noisy_sums
from .row_cap import best_row_cap, buy_row_profile

__all__ = ["MECHANISMS", "Weight", "check_mechanism", "gaussian", "laplace", "sample_one"]

Weight = Literal["rows", "users"]
Report = Callable[[str], None]


def laplace(counts: Counts, spending: Spending, weight: Weight, row_cap: int | None, report: Report) -> Estimate:
    """Discrete Laplace noise on capped counts: pure epsilon-differential privacy.

    T_i + Z_i, Z_i ~ Lap_Z(sensitivity / epsilon), T as in `tables.l1_sum`.

    Guarantee: `l1_sum` moves by UNIT (add-remove) or 2 UNIT (replace) in l1. Reference: the paper's Lemma 1, whose sensitivity
    2m is that of replace-one.
    """
    row_cap = _row_cap(row_cap, counts, spending, weight, "laplace", report)
    report("summing counts")
    sums = l1_sum(counts, row_cap)
    report("adding noise")
    noisy, event = spending.laplace("counts by item", sums, bound=UNIT, epsilon=spending.remaining_epsilon())
    return from_noisy_sums(noisy, event, _parameters(weight, row_cap))


def gaussian(counts: Counts, spending: Spending, weight: Weight, row_cap: int | None, report: Report) -> Estimate:
    """Discrete Gaussian noise on capped counts: (epsilon, delta)-differential privacy.

    T_i + Z_i, Z_i ~ N_Z(0, sigma^2), T as in `tables.l1_sum`, whose l2 norm a user is at most its l1 norm.

    Guarantee: `l1_sum` moves by UNIT (add-remove) or sqrt(2) UNIT (replace) in l2. Reference: the paper's Lemma 1, with sigma from the
    exact Gaussian trade-off instead of its 2 sqrt(log(1.25/delta)) m/epsilon, which holds for epsilon <= 1 only.
    """
    row_cap = _row_cap(row_cap, counts, spending, weight, "gaussian", report)
    report("summing counts")
    sums = l1_sum(counts, row_cap)
    report("adding noise")
    mu = spending.remaining_mu(counts.items)
    noisy, event = spending.gaussian("counts by item", sums, bound=UNIT, mu=mu, non_negative=True)
    return from_noisy_sums(noisy, event, _parameters(weight, row_cap))


def sample_one(counts: Counts, spending: Spending, weight: Weight, row_cap: int | None, report: Report) -> Estimate:
    """Discrete Laplace noise on one sampled row of each user: pure epsilon-differential privacy.

    The sampled row weighs the same for every user (weight "users"), or as many rows as the user has, up to the cap (weight
    "rows"). Guarantee: given the salt, the sum moves by UNIT (add-remove) or 2 UNIT (replace) in l1, whatever the sampling
    drew; no amplification is claimed. Reference: the paper's Section 2.
    """
    row_cap = _row_cap(row_cap, counts, spending, weight, "laplace", report)
    report("summing sampled rows")
    sums = sampled_sum(counts, fresh_salt(), row_cap)
    report("adding noise")
    noisy, event = spending.laplace("sampled rows by item", sums, bound=UNIT, epsilon=spending.remaining_epsilon())
    return from_noisy_sums(noisy, event, _parameters(weight, row_cap))


Mechanism = Callable[[Counts, Spending, Weight, int | None, Report], Estimate]

MECHANISMS: dict[str, Mechanism] = {"laplace": laplace, "gaussian": gaussian, "sample-one": sample_one}


def check_mechanism(mechanism: str, weight: str, delta: float, max_rows_per_user: int | None) -> None:
    """Refuse, before any row is read, what a mechanism cannot do.

    With weight "users" a row cap is accepted and not needed: every user weighs the same, however many rows they have.
    """
    if mechanism not in MECHANISMS:
        raise InvalidArgument(f"mechanism={mechanism!r}: needs to be one of {', '.join(map(repr, MECHANISMS))}.")
    if weight not in ("rows", "users"):
        raise InvalidArgument(f"weight={weight!r}: needs to be 'rows' (share of all rows) or 'users' (the average user).")
    if mechanism == "gaussian" and delta == 0:
        raise InvalidArgument(
            "mechanism='gaussian' cannot serve delta=0: Gaussian noise always leaves a small chance delta. "
            "Give a delta such as 1e-6, or use mechanism='laplace'."
        )
    if max_rows_per_user is None:
        return
    if isinstance(max_rows_per_user, bool) or not isinstance(max_rows_per_user, int) or max_rows_per_user < 1:
        raise InvalidArgument(f"max_rows_per_user={max_rows_per_user!r}: needs to be a whole number of at least 1.")
    if max_rows_per_user > ROW_LIMIT:
        raise InvalidArgument(
            f"max_rows_per_user={max_rows_per_user}: no user counts for more than {ROW_LIMIT} rows. Give at most that."
        )


def _row_cap(
    given: int | None,
    counts: Counts,
    spending: Spending,
    weight: Weight,
    noise: Literal["laplace", "gaussian"],
    report: Report,
) -> int:
    """The cap to work with: 1 where users weigh the same, else what the user gave, else found privately."""
    if weight == "users":
        return 1
    if given is not None:
        return given
    report("finding the row cap")
    profile = buy_row_profile(counts, spending, noise)
    if noise == "laplace":
        one = spending.laplace_scale(UNIT, spending.remaining_epsilon()) / UNIT
    else:
        one = math.sqrt(2 / math.pi) / spending.remaining_mu(counts.items)
    return best_row_cap(profile, counts.items * one)


def _parameters(weight: Weight, row_cap: int) -> dict[str, int]:
    return {"max_rows_per_user": row_cap} if weight == "rows" else {}
