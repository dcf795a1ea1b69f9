"""The error to expect of each way to release a crowd of a given shape, and what the paper proves about it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from .. import theory
from ..arrays import Floats
from ..mechanisms import Auto, Gaussian, Laplace, Mechanism, Weight
from ..privacy import Adjacency, Guarantee
from ..tables import ROW_LIMIT
from .shapes import Shape
from .simulation import MOST_DRAWS, Crowd, run_mechanism, simulate

__all__ = [
    "SEARCH_RUNS",
    "Bound",
    "Expected",
    "Question",
    "expected_auto",
    "expected_plain",
    "paper_bounds",
    "without_privacy",
]

LEAST_RUNS, MOST_RUNS, PRECISE = 4, 16, 0.06
"""Simulated releases: so many at least, and more until the standard error of the mean is so small a part of it; by
users, where a run is quick, three times as many.
"""
SEARCH_RUNS, TUNING_RUNS = 3, 2
"""The same while a value is solved for, and while a contribution bound is tuned."""
Z_95 = 1.96
"""19 of 20 releases err by less than so many root mean square errors."""
KERNEL_OCTAVES = 1.0
"""Items count for the error of an item of some share by how many octaves their own share is off: the standard
deviation of the kernel.
"""


@dataclass(frozen=True, eq=False)
class Question:
    """What a plan is asked: a crowd, a guarantee, a weight, and the share of an item whose error is shown.

    discovery_share: the part of the budget that finds the items; None if they are listed.
    """

    shape: Shape
    guarantee: Guarantee
    weight: Weight
    share: float
    discovery_share: float | None = None
    _crowds: dict[int, Crowd] = field(default_factory=dict)

    def crowd(self, number: int) -> Crowd:
        """The crowd of a simulated release; the first few are kept. One that is simulated as a whole is another one
        each time, as tables are; of a large one, users differ little from draw to draw.
        """
        seed = number if self.shape.users * self.shape.rows <= MOST_DRAWS else 0
        if seed in self._crowds:
            return self._crowds[seed]
        made = simulate(self.shape, seed)
        if seed < LEAST_RUNS:
            self._crowds[seed] = made
        return made


@dataclass(frozen=True)
class Expected:
    """What to expect of one way to release.

    way: "auto", "laplace", "gaussian", or "no privacy". l1_error: of all shares together, against the table's own
    answer: the figure computed from the same rows without privacy. sampling_error: of the table's own answer, against
    the population that its users came from. within: what the error of an item of `share` keeps to in 19 of 20 releases,
    against the table's own answer; without privacy, against the population. bound: the contribution bound, if one was
    tuned. rounds: the part of releases that took rounds, of auto. standard_error: of l1_error, because it is a mean of
    simulated releases.
    """

    way: str
    l1_error: float
    sampling_error: float
    within: float
    bound: int | None = None
    rounds: float | None = None
    standard_error: float = 0.0

    @property
    def population_error(self) -> float:
        """The expected l1 error against the population: of privacy and of sampling, which are independent."""
        return min(2.0, math.hypot(self.l1_error, self.sampling_error))


def expected_auto(asked: Question, most: int | None = None) -> Expected:
    """The mean over simulated releases by `auto`: at most so many, or as many as make it precise."""
    runs = _Runs(asked)
    while len(runs.l1) < (most or runs.most) and not runs.precise:
        runs.add(Auto())
    return runs.summary("auto", rounds=runs.rounds / len(runs.l1))


def expected_plain(asked: Question, mechanism: Laplace | Gaussian) -> Expected:
    """The mean over simulated releases by plain noise, at the contribution bound that is best for this crowd. A real
    release has to find a bound without knowing which is best.
    """
    if asked.weight == "users":  # every user weighs the same, and there is nothing to tune
        return _plain_runs(asked, mechanism, None, LEAST_RUNS).summary(mechanism.name)
    most = float(asked.crowd(0).rows.max())
    bounds = sorted({round(most ** (j / _octaves(most))) for j in range(_octaves(most) + 1)})

    def tried(bound: int) -> float:
        return _plain_runs(asked, mechanism, bound, TUNING_RUNS).mean

    errors = {bound: tried(bound) for bound in bounds}
    best = min(errors, key=lambda bound: errors[bound])
    errors |= {
        bound: tried(bound) for bound in {min(max(1, round(best * factor)), ROW_LIMIT) for factor in (0.71, 1.41)}
    }
    least = min(errors.values())
    best = max(bound for bound, error in errors.items() if error <= 1.01 * least)  # of equals, the largest
    return _plain_runs(asked, mechanism, best, LEAST_RUNS).summary(mechanism.name, bound=best)


def _octaves(most: float) -> int:
    return max(1, math.ceil(math.log2(most)))


def _plain_runs(asked: Question, mechanism: Mechanism, bound: int | None, number: int) -> _Runs:
    runs = _Runs(asked)
    for _ in range(number):
        runs.add(mechanism, bound)
    return runs


def without_privacy(asked: Question) -> Expected:
    """The table's own answer: it errs by nothing against itself, and by sampling against the population."""
    variance, p = sampling_variance(asked.shape, asked.weight), asked.shape.shares
    share = asked.share
    return Expected("no privacy", 0.0, _l1_of(p, variance), Z_95 * math.sqrt(share * (1 - share) * variance))


def sampling_variance(shape: Shape, weight: Weight) -> float:
    """V, where the table's own share of an item has variance p (1 - p) V over tables.

    A user with m rows has m (1 + (m - 1) t) p (1 - p) for the variance of rows with an item, t the correlation within
    users. V is the sum of that over users, over the square of all rows; by users, the mean over m^2, over their number.
    """
    rows = shape.rows_at((np.arange(20_000) + 0.5) / 20_000)
    own = shape.tastes + (1 - shape.tastes) / rows
    if weight == "users":
        return float(own.mean()) / shape.users
    return float((own * rows**2).mean()) / (shape.users * float(rows.mean()) ** 2)


def _l1_of(p: Floats, variance: float) -> float:
    """The mean absolute deviation, summed: that of a normal variable, and of a rare item twice its share at most."""
    one = np.minimum(np.sqrt(2 / math.pi * variance * p * (1 - p)), 2 * p * (1 - p))
    return float(min(one.sum(), 2.0))


class _Runs:
    """Simulated releases of one question, and their errors."""

    def __init__(self, asked: Question) -> None:
        self.asked = asked
        self.l1: list[float] = []
        self.rounds = 0
        self._squares: list[tuple[float, float]] = []

    def add(self, mechanism: Mechanism, bound: int | None = None) -> None:
        """One more release, with noise of its own."""
        asked, number = self.asked, len(self.l1)
        crowd = asked.crowd(number)
        made = run_mechanism(
            crowd,
            mechanism,
            asked.guarantee,
            asked.weight,
            bound=bound,
            discovery_share=asked.discovery_share,
            seed=number,
        )
        truth = crowd.answer(asked.weight)
        errors = made.probabilities - truth
        self.l1.append(float(np.abs(errors).sum()))
        self.rounds += made.parameters.get("branch") == "rounds"
        self._squares.append(_near(truth, errors**2, asked.share))

    @property
    def mean(self) -> float:
        return float(np.mean(self.l1))

    @property
    def standard_error(self) -> float:
        return float(np.std(self.l1, ddof=1) / math.sqrt(len(self.l1)))

    @property
    def precise(self) -> bool:
        return len(self.l1) >= LEAST_RUNS * self._times and self.standard_error < PRECISE * self.mean

    @property
    def most(self) -> int:
        return MOST_RUNS * self._times

    @property
    def _times(self) -> int:
        return 3 if self.asked.weight == "users" else 1

    def summary(self, way: str, *, bound: int | None = None, rounds: float | None = None) -> Expected:
        weights, squares = (np.array(each) for each in zip(*self._squares, strict=True))
        within = Z_95 * math.sqrt(float(weights @ squares) / max(float(weights.sum()), 1e-300))
        sampling = without_privacy(self.asked).sampling_error
        return Expected(way, self.mean, sampling, within, bound, rounds, self.standard_error)


def _near(truth: Floats, squares: Floats, share: float) -> tuple[float, float]:
    """The mean square error of the items whose share is near `share`, and how much it tells."""
    off = np.log2(np.maximum(truth, 1e-12) / share)
    nearest = float(np.abs(off).min())
    weights = np.exp((nearest**2 - off**2) / (2 * KERNEL_OCTAVES**2))
    return math.exp(-(nearest**2) / 8), float(weights @ squares / weights.sum())


@dataclass(frozen=True)
class Bound:
    """A bound that the paper proves. error: an expected l1 error against the population, or None if the theorem says
    nothing here. kind: whether no mechanism ("least") or this mechanism at worst ("most") errs by as much.
    """

    name: str
    kind: str
    error: float | None
    says: str


def paper_bounds(asked: Question) -> tuple[Bound, ...]:
    """What is proved for this many users, rows and items: for users who are alike and have equal rows, and for the
    hardest distribution. Adding or removing a user implies a guarantee for replacing one, at which bounds that no
    mechanism beats are taken; a mechanism's own are the paper's, for replacing a user.
    """
    shape, guarantee = asked.shape, asked.guarantee
    users, items, rows = shape.users, shape.items, max(1, round(shape.rows))
    epsilon, delta = guarantee.epsilon, guarantee.delta
    if guarantee.adjacency is Adjacency.ADD_REMOVE:
        epsilon, delta = theory.replaced(epsilon, delta)

    def every() -> float:
        if delta == 0.0:
            return theory.pure_error(users, items, rows, epsilon)
        return theory.private_error(users, items, rows, epsilon, delta)

    own, chance = guarantee.epsilon, guarantee.delta
    lines: list[tuple[str, str, Callable[[], float], str]] = [
        ("sampling", "least", lambda: theory.sampling_error(users, items, rows), "no estimate, private or not, beats"),
        ("every private mechanism", "least", every, "no private mechanism beats"),
        (
            "summed counts",
            "least",
            lambda: theory.counts_only_error(users, items, rows, epsilon, delta),
            "no private mechanism that sees summed counts only, as plain noise does, beats",
        ),
        (
            "Lemma 1, Laplace",
            "most",
            lambda: _inverse(users, lambda alpha: theory.laplace_users(items, rows, alpha, own)),
            "plain Laplace noise errs at most by",
        ),
        (
            "Lemma 1, Gaussian",
            "most",
            lambda: _inverse(users, lambda alpha: theory.gaussian_users(items, rows, alpha, own, chance)),
            "plain Gaussian noise errs at most by",
        ),
        (
            "Theorem 2",
            "most",
            lambda: _inverse(users, lambda alpha: theory.joined_users(items, rows, alpha, own, chance, "tight")),
            "the paper's algorithm, with tight constants, errs at most by",
        ),
    ]
    return tuple(Bound(name, kind, _value(value), says) for name, kind, value, says in lines)


def _value(value: Callable[[], float]) -> float | None:
    try:
        return value()
    except theory.OutOfRange:
        return None


def _inverse(users: int, needed: Callable[[float], float]) -> float:
    """The least alpha below 1 for which `users` are enough."""
    low, high = 1e-6, 0.999
    if needed(high) > users:
        raise theory.OutOfRange("no error below 1 is promised for so few users.")
    while high > 1.005 * low:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if needed(middle) <= users else (middle, high)
    return high
