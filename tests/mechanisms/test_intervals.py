"""Intervals cover what they say and errors are as predicted, on synthetic tables whose truth is known.

The target: 95% intervals cover 93% to 99% of the items above the noise (a probability of more than three standard
errors), pooled over items and releases, and the predicted l1 error is within 30% of the measured mean. Each case below
was run by hand, at least 24 times; `cover` and `population` are the measured means, `scatter` the standard deviation of
one release's coverage, all rounded. A test takes the median of `TIMES` releases of fresh tables, because one release in
some hundreds sees rows that are not there, and alarms at five standard deviations of a median: by a normal
approximation a false alarm in about a million runs of a case. Where a number of releases must pass, no more are made
once so many did.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import pytest

from crowdgram.synth import Crowd, Visits

from ..thorough import THOROUGH
from .crowds import answers, counted, run, table_of

pytestmark = pytest.mark.slow

TIMES = 6
Z = NormalDist().inv_cdf(0.975)
MANY = {"items": 50, "rows": 200, "users": 1000}
SHORT = {"items": 20, "rows": 20, "users": 500}


@dataclass(frozen=True)
class Case:
    size: dict
    differ: float
    tail: float
    weight: str
    cover: float
    population: float
    scatter: float
    ratio: float
    ratio_scatter: float = 0.25

    def __str__(self):
        return f"{self.size['items']} items, differ {self.differ}, tail {self.tail}, {self.weight}"


CASES = [
    Case(MANY, 0.0, 0.0, "rows", 0.947, 0.940, 0.050, 0.98),
    Case(MANY, 0.0, 0.0, "users", 0.957, 0.950, 0.040, 1.05),
    Case(MANY, 0.1, 0.0, "rows", 0.938, 0.945, 0.045, 1.05),
    Case(MANY, 0.4, 1.0, "users", 0.950, 0.944, 0.041, 0.97),
    Case(SHORT, 0.0, 0.0, "users", 0.952, 0.953, 0.055, 1.12),
    Case(SHORT, 0.1, 0.0, "rows", 0.960, 0.950, 0.057, 1.15),
    Case(SHORT, 0.1, 1.0, "users", 0.945, 0.960, 0.058, 0.98),
    Case(SHORT, 0.4, 0.0, "users", 0.950, 0.945, 0.060, 0.93),
    Case(MANY, 0.1, 1.0, "rows", 0.962, 0.978, 0.070, 1.11),
    Case(SHORT, 0.4, 1.0, "rows", 0.955, 0.990, 0.100, 1.00, 0.40),
]


def alarm(scatter, times):
    """Five standard deviations of the median of so many: sqrt(pi / 2) those of the mean."""
    return 5 * math.sqrt(math.pi / 2) * scatter / math.sqrt(times)


def measure(case):
    """By release: coverage of the table's own answer, the same by halved intervals, coverage of the population,
    predicted and measured l1 error.
    """
    found = []
    for seed in range(TIMES):
        crowd = Crowd(**case.size, differ=case.differ, tail=case.tail, seed=9000 + seed)
        table = crowd.table()
        with counted(table, crowd.items) as counts:
            made = run(counts, weight=case.weight).estimate
        truth = answers(table, crowd.items)[case.weight]
        above = truth > 3 * made.standard_errors
        if not above.any():
            continue
        middle, reach = (made.lower + made.upper) / 2, (made.upper - made.lower) / 2
        covered, narrow = (np.abs(truth - middle) <= width for width in (reach * (1 + 1e-9), reach / 2))
        reached = np.abs(crowd.distribution() - middle) <= np.hypot(reach, Z * made.sampling_errors)
        error = np.abs(made.probabilities - truth).sum()
        covers = [each[above].mean() for each in (covered, narrow, reached)]
        found.append((*covers, made.predicted_l1_error, error))
    return np.array(found)


@pytest.mark.parametrize("case", CASES if THOROUGH else CASES[::3], ids=str)
def test_coverage_and_prediction(case):
    found = measure(case)
    assert len(found) >= TIMES / 2
    coverage, narrow, reached, predicted, error = np.median(found, axis=0)
    slack = alarm(case.scatter, len(found))
    low = 0.93
    # A measured mean may be below the target's edge by chance alone; the alarm starts five deviations below.
    assert coverage > min(low, case.cover) - slack
    assert reached > min(low, case.population) - slack
    ratio = predicted / error
    spread = alarm(case.ratio_scatter, len(found))
    assert min(0.7, case.ratio) - spread < ratio < max(1.3, case.ratio) + spread
    if case.scatter < 0.05:  # twice as wide as need be would be noticed; half as wide is, above
        assert narrow < 0.93 - slack


def test_few_items_and_few_rows():
    """Users who agree, with 5 rows or so of three items: who is clipped depends on which items they have.

    97% of intervals cover, measured over 60 releases. With a correction to first order only it was 54%, which this
    notices (20 of 27 would be covered in 1 of 40 runs); a false alarm needs 8 misses of 27.
    """
    covered = 0
    for seed in range(9):
        generator = np.random.default_rng(seed)
        users, items = generator.integers(0, 4000, 20_000), generator.choice(3, 20_000, p=[0.6, 0.3, 0.1])
        table = table_of(users, items)
        with counted(table, 3) as counts:
            made = run(counts, "adaptive").estimate
        truth = answers(table, 3)["rows"]
        covered += ((made.lower <= truth) & (truth <= made.upper)).sum()
        if covered > 19:
            break
    assert covered > 19


def test_robots_with_a_fifth_of_all_rows_are_not_clipped_away():
    """The sample table's pages by rows: 40 of 4,000 users have 18% of them, all of one page. With rounds the error is
    0.29; all of 12 releases took Laplace noise, with a mean error of 0.044. If one in twenty did not, four of seven
    would once in 5,000 runs.
    """
    table = Visits().table()
    pages, items = np.unique(table["page"].to_pylist(), return_inverse=True)
    table = table_of(table["user"].to_numpy(), items)
    truth = answers(table, len(pages))["rows"]
    near = sure = honest = 0
    with counted(table, len(pages)) as counts:
        for _ in range(7):
            made = run(counts).estimate
            near += np.abs(made.probabilities - truth).sum() < 0.15
            sure += ((made.lower <= truth) & (truth <= made.upper)).mean() > 0.6
            honest += made.predicted_l1_error > 0.02
            if min(near, sure, honest) >= 4:
                break
    assert min(near, sure, honest) >= 4


def test_a_bound_far_above_most_users_does_not_hide_how_many_rows_they_have():
    """Rows are log-normal, and users with many hold other items. With a bound of 3,000 rows the error of 6 releases was
    0.033 to 0.046, half of it predicted; taking all users to have 3,000 rows it was 0.35 to 1.06.
    """
    generator = np.random.default_rng(0)
    rows = np.minimum(np.exp(generator.normal(2.0, 1.5, 4000)), 3000).astype(np.int64) + 1
    users, falling = np.repeat(np.arange(4000), rows), 1 / np.arange(1, 31)
    light, heavy = (generator.choice(30, len(users), p=p / p.sum()) for p in (falling, falling[::-1]))
    other = generator.random(len(users)) < np.repeat(np.log(rows) / math.log(3000), rows) / 2
    table = table_of(users, np.where(other, heavy, light))
    truth = answers(table, 30)["rows"]
    errors = []
    with counted(table, 30) as counts:
        for _ in range(3):
            errors.append(np.abs(run(counts, max_rows_per_user=3000).estimate.probabilities - truth).sum())
    assert np.median(errors) < 0.15


@pytest.mark.parametrize("items", [250, 1000])
def test_one_large_item_among_many_is_covered(items):
    """One item a user, one item of 40%. Its interval needs the noise of the divisor: without it 28% cover. If 95%
    cover, 5 or fewer of 12 do once in 2 million runs; if 90%, once in 20,000.
    """
    generator = np.random.default_rng(items)
    shares = np.append(0.4, np.full(items - 1, 0.6 / (items - 1)))
    table = table_of(np.arange(3000), generator.choice(items, 3000, p=shares))
    truth = answers(table, items)["users"]
    covered = 0
    with counted(table, items) as counts:
        for _ in range(12):
            made = run(counts, weight="users").estimate
            covered += made.lower[0] <= truth[0] <= made.upper[0]
            if covered > 5:
                break
    assert covered > 5
