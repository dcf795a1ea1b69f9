"""One outcome for two tables that do not have the same items: what each run is told, and that the weights are right."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from crowdgram.audit.draws import Asked, Sampling, Tilt
from crowdgram.errors import InvalidArgument

SIGMA = 1e6


def asked(values, scale=SIGMA):
    return Asked("gaussian", (tuple(values.values()),), scale, tuple(values))


def test_what_both_have_gets_one_outcome_and_what_one_has_gets_its_own():
    ours, theirs = {1: 50, 2: 0, 7: 10**9}, {1: 50, 3: 0, 7: 10**9}
    one, other = Sampling(Tilt()).draw(asked(ours), asked(theirs))
    assert one[0] == other[0]
    assert one[2] == other[2]
    assert abs(one[1]) < 7 * SIGMA  # an ordinary draw
    assert other[1] == -12 * SIGMA  # kept down: nothing that the first table shows has it


def test_the_loss_is_that_of_what_both_have():
    sampling = Sampling(Tilt())
    sampling.draw(asked({1: 10**6, 2: 0}), asked({1: 0, 2: 0}))
    path = sampling.path(None)
    assert path.squared_mu == pytest.approx(1.0)
    assert path.lone == ()
    alone = Sampling(Tilt())
    alone.draw(asked({1: 0, 2: 10**6}), asked({1: 0}))
    assert alone.path(None).loss == 0.0
    assert alone.path(None).lone == (2,)


def test_an_item_of_both_that_one_run_gives_up_is_seen():
    sampling = Sampling(Tilt())
    assert sampling.draw(asked({1: 0, 2: 0}), asked({1: 0})) is not None
    assert sampling.draw(asked({1: 0, 2: 0}), asked({1: 0})) is not None
    assert sampling.draw(asked({2: 0}), asked({1: 0})) is None
    assert sampling.draw(asked({1: 0}), asked({1: 0}, scale=5.0)) is None
    plain = Asked("gaussian", ((0,),), SIGMA)
    assert sampling.draw(asked({1: 0}), plain) is None


def test_tables_without_an_exact_loss_are_refused():
    with pytest.raises(InvalidArgument, match="two pairs"):
        Sampling(Tilt()).draw(asked({1: 5, 2: 0}), asked({1: 0}))


@pytest.mark.slow
@pytest.mark.parametrize(("items", "wrong"), [(1, False), (6, False), (6, True)])
def test_rare_passes_are_counted_rightly(items, wrong):
    """Items of the first table alone, in two draws; some passes 4.5 standard deviations with a chance that is known.

    The mean of the weights of those that pass is that chance, within 6 standard errors (false alarms below 1e-8); with
    the tilt left out of account it is not: the mean is then near 0.3, and 300 runs are enough to see it.
    """
    high = 4.5 * math.sqrt(2)
    exact = -math.expm1(items * math.log1p(-stats.norm.sf(4.5)))
    ours, weights = dict.fromkeys(range(items), 0), []
    for _ in range(300 if wrong else 800):
        sampling = Sampling(Tilt(shared=1.0, lone=4.7 / math.sqrt(2) * SIGMA))
        outcomes = np.array([sampling.draw(asked(ours), asked({}))[0] for _ in range(2)]).sum(axis=0) / SIGMA
        weight = 0.0 if wrong else sampling.path(None).log_weight
        weights.append(math.exp(weight) * bool((outcomes > high).any()))
    error = np.std(weights) / math.sqrt(len(weights))
    assert (abs(np.mean(weights) - exact) < 6 * error) is not wrong
    if not wrong:
        assert error < 0.3 * exact


@pytest.mark.slow
def test_weights_of_a_mixture_average_to_one():
    """Shared items that differ: half of the runs are tilted. E[P/Q] = 1, and P/Q is at most 2."""
    ratios = []
    for _ in range(1500):
        sampling = Sampling(Tilt(shared=1.5, lone=1.0))
        sampling.draw(asked({1: 10**6}), asked({1: 0}))
        ratios.append(math.exp(sampling.path(None).log_weight))
    assert max(ratios) <= 2.0 + 1e-9
    assert abs(np.mean(ratios) - 1.0) < 6 * np.std(ratios) / math.sqrt(len(ratios))
    assert np.std(ratios) > 0.1
