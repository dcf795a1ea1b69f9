"""Marginals and conditionals: they agree with the whole, and their errors are honest."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import crowdgram
from crowdgram.errors import InvalidArgument

from .synthetic import made

COUNTRIES, PAGES, HOURS = ("DE", "FR", "IT"), tuple("abcd"), (0, 1)


def exact(tables=(COUNTRIES, PAGES, HOURS), columns=("country", "page", "hour")):
    items = list(product(*tables))
    p = np.arange(1, len(items) + 1, dtype=float) ** 1.5
    return made(p / p.sum(), np.full(len(items), 1e-9), items, columns)


def test_sums_of_the_release_itself():
    joint = exact()
    frame = joint.to_pandas()
    assert list(frame.columns)[:3] == ["country", "page", "hour"]
    by_page = frame.groupby("page", sort=False).probability.sum()
    marginal = joint.marginal("page")
    assert marginal.items == PAGES
    assert marginal.item_columns == ("page",)
    assert marginal.probabilities == pytest.approx(by_page.to_numpy())
    two = joint.marginal("hour", "country")
    assert two.items[:4] == ((0, "DE"), (1, "DE"), (0, "FR"), (1, "FR"))
    assert two.probability((1, "IT")) == pytest.approx(
        frame[(frame.hour == 1) & (frame.country == "IT")].probability.sum()
    )
    given = joint.conditional("page", country="FR", hour=1)
    chosen = frame[(frame.country == "FR") & (frame.hour == 1)].probability
    assert given.probabilities == pytest.approx((chosen / chosen.sum()).to_numpy())
    rest = joint.conditional(country="FR")
    assert rest.item_columns == ("page", "hour")
    assert len(rest) == 8
    assert joint.conditional("page", given={"country": "FR", "hour": 1}) == given
    assert joint.marginal("country", "page", "hour") is joint
    assert given.guarantee == joint.guarantee
    assert given.events == joint.events


def test_parts_of_parts():
    joint = exact()
    one = joint.conditional("page", "hour", country="DE").conditional("page", hour=1)
    assert one.probabilities == pytest.approx(joint.conditional("page", country="DE", hour=1).probabilities)
    assert joint.marginal("country", "page").marginal("page").probabilities == pytest.approx(
        joint.marginal("page").probabilities
    )


@pytest.mark.parametrize(
    "ask",
    [
        lambda r: r.marginal(),
        lambda r: r.marginal("nothere"),
        lambda r: r.marginal("page", "page"),
        lambda r: r.conditional("page"),
        lambda r: r.conditional("page", page="a"),
        lambda r: r.conditional("page", country="XX"),
        lambda r: r.conditional("page", nothere="XX"),
        lambda r: r.conditional(country="DE", page="a", hour=0),
        lambda r: r.probability("DE"),
        lambda r: r.probability(("DE", "a")),
        lambda r: r.marginal("page").intervals("population"),
    ],
)
def test_what_cannot_be_asked(ask):
    with pytest.raises(InvalidArgument):
        ask(exact())


def coverage(normalised, claimed=1.0, runs=200):
    """How often 95% intervals of marginals and conditionals hold the truth, over seeded noise."""
    rng = np.random.default_rng(7)
    items = list(product(range(6), range(30)))
    truth = rng.dirichlet(np.full(len(items), 0.3))
    errors = np.full(len(items), 0.004)
    by_first = truth.reshape(6, 30).sum(axis=1)
    hits = {"marginal": [], "conditional": []}
    for _ in range(runs):
        measured = truth + rng.normal(0, errors)
        if normalised:
            measured = measured / measured.sum()
        release = made(measured, errors * claimed, items, ("g", "i"))
        marginal = release.marginal("g")
        hits["marginal"] += ((marginal.lower <= by_first) & (by_first <= marginal.upper)).tolist()
        for g in range(6):
            given, own = release.conditional("i", g=g), truth[30 * g : 30 * g + 30] / by_first[g]
            hits["conditional"] += ((given.lower <= own) & (own <= given.upper)).tolist()
    return {name: float(np.mean(found)) for name, found in hits.items()}


@pytest.mark.slow
@pytest.mark.parametrize("normalised", [True, False])
def test_intervals_of_parts_cover(normalised):
    """Seeded, so it cannot fail by chance. Intervals are a little wide: they allow for Laplace noise too."""
    found = coverage(normalised)
    assert 0.94 <= found["marginal"] <= 0.995
    assert 0.94 <= found["conditional"] <= 0.995


def test_the_coverage_test_notices_errors_that_are_too_small():
    found = coverage(True, claimed=0.5, runs=60)
    assert max(found.values()) < 0.85


def test_a_group_that_is_lost_in_noise_says_so():
    items = list(product("ab", range(10)))
    measured = np.concatenate([np.full(10, 0.1), np.linspace(-0.01, 0.01, 10)])
    release = made(measured, np.full(20, 0.01), items, ("g", "i"))
    lost = release.conditional("i", g="b")
    assert lost.lower.tolist() == [0.0] * 10
    assert lost.upper.tolist() == [1.0] * 10
    assert lost.probabilities.sum() == pytest.approx(1)
    seen = release.conditional("i", g="a")
    assert np.all(seen.upper < 0.2)
    nothing = made(np.concatenate([np.full(10, 0.1), np.full(10, -0.1)]), np.full(20, 0.001), items, ("g", "i"))
    empty = nothing.conditional("i", g="b")
    assert empty.probabilities.tolist() == pytest.approx([0.1] * 10)
    assert empty.upper.tolist() == [1.0] * 10


def test_bias_adds_up_by_squares_within_a_part_but_not_beyond_that_of_all_others():
    items = list(product("ab", range(4)))
    release = made(np.full(8, 1 / 8), np.full(8, 1e-6), items, ("g", "i"), other=np.full(8, 0.01))
    reach = release.marginal("g").upper[0] - 0.5
    z = -math.log(0.05) / math.sqrt(2)
    assert reach == pytest.approx(z * 0.02, rel=1e-3)
    assert release.marginal("i").other_errors == pytest.approx([0.01 * math.sqrt(2)] * 4)
    most = release.merged(lambda item: "one" if item == ("a", 0) else "rest")
    assert most.other_errors == pytest.approx([0.01, 0.01])
    # Of a ratio: b_j^2 (1 - 2 q) + q^2 sum b^2, relative to the group's half.
    inside = math.sqrt(1e-4 * 0.5 + 4e-4 / 16) / 0.5
    assert release.conditional("i", g="a").other_errors == pytest.approx([inside] * 4)


def test_parts_of_a_real_release():
    """Errors within 5 predicted standard deviations; a right release fails in fewer than 1 of 10^5 runs."""
    rng = np.random.default_rng(3)
    n = 40_000
    table = pd.DataFrame(
        {
            "user": rng.integers(0, 2000, n),
            "country": rng.choice(COUNTRIES, n, p=[0.6, 0.3, 0.1]),
            "page": rng.choice(PAGES, n, p=[0.5, 0.3, 0.15, 0.05]),
        }
    )
    release = crowdgram.release(
        table,
        user="user",
        item=["country", "page"],
        epsilon=2.0,
        domain={"country": COUNTRIES, "page": PAGES},
        mechanism="laplace",
        max_rows_per_user=20,
    )
    truth = table.country.value_counts(normalize=True)
    marginal = release.marginal("country")
    for one in marginal.top(3):
        assert abs(one.probability - truth[one.item]) < 5 * one.standard_error + 0.02  # 0.02: the cap's bias
    given = release.conditional("page", country="DE")
    own = table[table.country == "DE"].page.value_counts(normalize=True)
    for one in given.top(4):
        assert abs(one.probability - own[one.item]) < 5 * one.standard_error + 0.02


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", ["auto", "adaptive", "laplace", "gaussian", "sample-one"])
def test_parts_of_a_release_of_nothing(mechanism):
    """All is noise, and every part of it still is a distribution with intervals that say so."""
    table = pa.table({name: pa.array([], pa.string()) for name in ("user", "country", "page")})
    options = {"user": "user", "epsilon": 1.0, "delta": 1e-6, "mechanism": mechanism}
    joint = crowdgram.release(table, item=["country", "page"], domain={"country": COUNTRIES, "page": PAGES}, **options)
    for part in (joint.marginal("country"), joint.marginal("page"), joint.conditional("page", country="DE")):
        assert part.probabilities.sum() == pytest.approx(1)
        assert np.all((part.lower >= 0) & (part.lower <= part.probabilities) & (part.probabilities <= part.upper))
        assert np.all(part.upper <= 1)
        assert np.all(np.isfinite(part.standard_errors))
        assert 0 <= part.predicted_l1_error <= 2
