"""Mechanisms that are broken on purpose, each beside its healthy sibling, to show what the audit can see.

No release can reach them. A mutant claims the guarantee and breaks it; its sibling does the same thing right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ..arrays import Floats, Integers
from ..mechanisms import Estimate, Gaussian, Request
from ..privacy import Adjacency, Guarantee, Labels, Sampler, Spending
from ..tables import UNIT, BoundedSum, CappedRows, Centre, Counts, Distances, RowsByStratum, UsersByHalf, distances
from .attack import Case
from .paired_execution import on_counts
from .pairs import Pair, Tables, pairs_for

__all__ = ["MECHANISM_MUTANTS", "Mutant", "levelled", "nested_levels", "rescaled"]

BITS = 16
RADII = tuple(level * UNIT << (BITS - 5) for level in (1, 2, 3, 4))
MASS = 2**BITS // 8
FLOAT_CAP = 4096
LIGHT = 20


@dataclass(frozen=True)
class Mutant:
    """A broken case, what is wrong with it, its healthy sibling, and the tables that tell."""

    what: str
    broken: Case
    healthy: Case
    pairs: tuple[Tables, ...]


@dataclass(frozen=True)
class _Rescaled:
    """A sampler that draws for `factor` times the scale that it is asked for."""

    real: Sampler
    factor: float

    def laplace(self, values: Integers | Sequence[int], scale: float, labels: Labels | None, /) -> Integers:
        return self.real.laplace(values, self.factor * scale, labels)

    def gaussian(self, values: Integers | Sequence[int], sigma: float, labels: Labels | None, /) -> Integers:
        return self.real.gaussian(values, self.factor * sigma, labels)

    def choose(self, scores: Integers, scale: float, /) -> Integers:
        return self.real.choose(scores, self.factor * scale)

    def salt(self) -> str:
        return self.real.salt()


def half_the_noise(counts: Counts, spending: Spending, request: Request) -> Estimate:
    """Plain Gaussian noise on counts, at half of the sigma that is recorded."""
    return Gaussian().run(counts, rescaled(spending, 0.5).open(), request)


def centred(counts: Counts, spending: Spending, _: Request) -> Estimate:
    """Deviations from the uniform distribution, which is public, with Gaussian noise for a fixed radius."""
    return _around(counts, spending, np.full(counts.items, 1 / counts.items), non_negative=False)


def sqrt_two(counts: Counts, spending: Spending, _: Request) -> Estimate:
    """As `centred`, but replacing a user is charged as sqrt(2) radii, as if deviations could not be negative."""
    return _around(counts, spending, np.full(counts.items, 1 / counts.items), non_negative=True)


def unpaid_centre(counts: Counts, spending: Spending, _: Request) -> Estimate:
    """As `centred`, but around the table's own answer, for which no noise was paid."""
    sums = counts.sum(CappedRows(1)).values.astype(np.float64)
    return _around(counts, spending, sums / max(float(sums.sum()), 1.0), non_negative=False)


def levelled(counts: Counts, spending: Spending, _: Request) -> Estimate:
    """As `centred`, split over several radii, with the mass beside it: each level has noise for its own width."""
    measured = _measured(counts, np.full(counts.items, 1 / counts.items))
    levels = measured.levels(RADII, 1, UNIT, MASS)
    measured.drop()
    return _level_by_level(spending, levels)


def nested_levels(counts: Counts, spending: Spending, _: Request) -> Estimate:
    """As `levelled`, but weights are R_j / d: a level has all that is within its radius, and noise for its width."""
    measured = _measured(counts, np.full(counts.items, 1 / counts.items))
    levels = [measured.levels([radius], 1, UNIT, MASS)[0] for radius in RADII]
    measured.drop()
    return _level_by_level(spending, levels)


def by_half(counts: Counts, spending: Spending, _: Request) -> Estimate:
    """Users by what lies in a half of the items: one bin of each."""
    return _plain(spending, counts.sum(UsersByHalf(counts.items, 0, 1)).values)


def overlapping_bins(counts: Counts, spending: Spending, _: Request) -> Estimate:
    """As `by_half`, but every user is in all bins from their own on, as if that were the same."""
    return _plain(spending, np.cumsum(counts.sum(UsersByHalf(counts.items, 0, 1)).values))


def by_stratum(counts: Counts, spending: Spending, _: Request) -> Estimate:
    """Rows of light users and those of all others, apart: each user is in one of the two."""
    return _plain(spending, counts.sum(RowsByStratum(LIGHT, counts.items, (LIGHT,))).values)


def strata_in_common(counts: Counts, spending: Spending, _: Request) -> Estimate:
    """As `by_stratum`, but light users are among all users as well."""
    strata = counts.sum(RowsByStratum(LIGHT, counts.items, (LIGHT,))).values.reshape(2, -1)
    return _plain(spending, np.append(strata[0], strata.sum(axis=0)))


def commonest(counts: Counts, spending: Spending, _: Request) -> Estimate:
    """The commonest item, by the exponential mechanism: P[i] proportional to exp(epsilon S_i / 2)."""
    epsilon = spending.guarantee.epsilon
    finish = spending.open().looks().finish_purely()
    chosen, _event = finish.choose(
        "the commonest item", counts.sum(CappedRows(1)).values, sensitivity=UNIT, epsilon=epsilon
    )
    return _estimate(np.eye(counts.items)[chosen])


def printed_exponential(counts: Counts, spending: Spending, request: Request) -> Estimate:
    """As `commonest`, by the formula as the paper prints it: P[i] proportional to exp(S_i / (2 epsilon))."""
    return commonest(counts, rescaled(spending, spending.guarantee.epsilon**2), request)


def float_sum(counts: Counts, spending: Spending, request: Request) -> Estimate:
    """Plain Laplace noise on counts that were added up in single precision, user by user."""
    cells = counts.engine.fetch(counts.cells, "adding in floats")
    columns = [cells.column(name).to_numpy() for name in ("user", "idx", "n")]
    users, items, rows = (column[np.argsort(columns[0], kind="stable")] for column in columns)
    _, place = np.unique(users, return_inverse=True)
    weights = UNIT // np.maximum(np.bincount(place, rows).astype(np.int64), _cap(request))
    sums = np.zeros(counts.items, dtype=np.int64)
    for item in range(counts.items):
        added = (weights[place] * rows)[items == item].astype(np.float32)
        sums[item] = int(np.cumsum(added, dtype=np.float32)[-1]) if len(added) else 0
    return _plain(spending, sums)


def whole_sum(counts: Counts, spending: Spending, request: Request) -> Estimate:
    """As `float_sum`, in integers."""
    return _plain(spending, counts.sum(CappedRows(_cap(request))).values)


def _around(counts: Counts, spending: Spending, centre: Floats, *, non_negative: bool) -> Estimate:
    measured = _measured(counts, centre)
    radius = RADII[-1]
    (sums,) = measured.levels([radius], 1, UNIT)
    measured.drop()
    rounds = spending.open().looks().rounds()
    mu = rounds.remaining_mu(counts.items + 1)
    noisy, _ = rounds.gaussian("deviations", sums.values, bound=sums.bound.l2, mu=mu, non_negative=non_negative)
    return _estimate(measured.centre.coordinates / 2**BITS + noisy[:-1] / 2.0 ** (BITS + 40))


def _measured(counts: Counts, centre: Floats) -> Distances:
    coordinates = np.floor(centre * 2**BITS).astype(np.int64)
    return distances(counts, Centre(coordinates, np.ones(counts.items, dtype=np.int64), BITS), "l2")


def _level_by_level(spending: Spending, levels: Sequence[BoundedSum[list[int]]]) -> Estimate:
    """Gaussian noise on every level for its width, with equal parts of the budget."""
    vectors = [level.values for level in levels]
    rounds = spending.open().looks().rounds()
    mu = rounds.remaining_mu(sum(len(vector) for vector in vectors)) * (1 - 1e-9) / len(vectors) ** 0.5
    widths = [high - low for low, high in pairwise([0, *RADII])]
    noisy = [
        rounds.gaussian(f"level {j}", vector, bound=width, mu=mu)[0]
        for j, (vector, width) in enumerate(zip(vectors, widths, strict=True))
    ]
    return _estimate(np.sum(noisy, axis=0) / 2.0 ** (BITS + 40))


def _plain(spending: Spending, sums: Integers) -> Estimate:
    finish = spending.open().looks().finish_purely()
    noisy, _ = finish.laplace("counts by item", sums, bound=UNIT, epsilon=finish.remaining_epsilon())
    return _estimate(noisy / UNIT)


def rescaled(spending: Spending, factor: float) -> Spending:
    """The same budget, with a sampler that keeps to another scale than the one that is recorded."""
    return Spending(spending.guarantee, sampler=_Rescaled(spending.sampler, factor))


def _cap(request: Request) -> int:
    return 1 if request.weight == "users" else FLOAT_CAP


def _estimate(values: Floats) -> Estimate:
    """Whatever came out, in the shape of an estimate."""
    return Estimate(values, values, values, values, 0.0)


def _float_pair() -> Pair:
    """Below 2^26 single precision has steps of 4, so that 5 is added as 4; from there on steps of 8, and 5 counts as 8.

    In rows: 16383 users of 4096 rows reach 2^26 - 4096, and one more reaches 2^26. 1024 users of 5 rows, who come last,
    are then worth 8192 rows instead of 4096: the one user has moved the sum by 8192 rows, twice the bound.
    """
    full = {user: {0: FLOAT_CAP} for user in range(1, 2**26 // FLOAT_CAP)}
    small = {2**26 + user: {0: 5} for user in range(FLOAT_CAP // 4)}
    return Pair("sums about to lose a bit", 2, {0: {0: FLOAT_CAP}, **full, **small}, {**full, **small})


def _mutants() -> tuple[Mutant, ...]:
    add, replace = Adjacency.ADD_REMOVE, Adjacency.REPLACE
    usual = Guarantee(1.0, 1e-6, add)
    corner = (pairs_for(add)[1],)
    opposite = (pairs_for(replace)[1],)
    small = Guarantee(0.1, 0.0, add)
    replaced = Guarantee(1.0, 1e-6, replace)
    pure = Guarantee(1.0, 0.0, add)
    return (
        Mutant(
            "half of the noise that is recorded",
            Case("half-the-noise", half_the_noise, "users", usual),
            Case("gaussian", on_counts(Gaussian().run), "users", usual),
            corner,
        ),
        Mutant(
            "sensitivity sqrt(2) instead of 2",
            Case("sqrt-two", sqrt_two, "users", replaced),
            Case("centred", centred, "users", replaced),
            opposite,
        ),
        Mutant(
            "a centre that saw the data unpaid",
            Case("unpaid-centre", unpaid_centre, "users", usual),
            Case("centred", centred, "users", usual),
            corner,
        ),
        Mutant(
            "levels that are wider than their noise is for",
            Case("nested-levels", nested_levels, "users", usual),
            Case("levelled", levelled, "users", usual),
            corner,
        ),
        Mutant(
            "bins of users that overlap",
            Case("overlapping-bins", overlapping_bins, "users", pure),
            Case("by-half", by_half, "users", pure),
            corner,
        ),
        Mutant(
            "strata with users in common",
            Case("strata-in-common", strata_in_common, "rows", pure),
            Case("by-stratum", by_stratum, "rows", pure),
            corner,
        ),
        Mutant(
            "the exponential mechanism as the paper prints it",
            Case("printed-exponential", printed_exponential, "users", small),
            Case("commonest", commonest, "users", small),
            corner,
        ),
        Mutant(
            "a sum of floats",
            Case("float-sum", float_sum, "rows", pure),
            Case("whole-sum", whole_sum, "rows", pure),
            (_float_pair(),),
        ),
    )


MECHANISM_MUTANTS = _mutants()
