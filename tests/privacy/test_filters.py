"""Many releases against one budget: curves against oracles, and strategies that try to cheat the filter."""

from __future__ import annotations

import dataclasses
import json
import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowdgram.errors import InvalidArgument, PrivacyViolation
from crowdgram.privacy import (
    Cost,
    ExponentialEvent,
    Filter,
    GaussianEvent,
    Guarantee,
    LaplaceEvent,
    Plan,
    cost_of,
    opaque_cost,
)
from crowdgram.privacy import filters as module
from crowdgram.privacy.filters import Box, total
from crowdgram.privacy.gaussian import gaussian_deltas, gaussian_mu

from ..thorough import examples
from . import oracle

BUDGET = Guarantee(3.0, 1e-5)


def pure(epsilon, **more):
    return Cost(epsilon, 0.0, epsilon, epsilon, math.nextafter(epsilon**2, math.inf), **more)


def gaussian(epsilon, delta):
    return Cost(epsilon, delta, mu_squared=gaussian_mu(epsilon, delta) ** 2, dimension=10)


def response(epsilon, at):
    """The curve of randomised response."""
    p = 1 / (1 + np.exp(-epsilon))
    return np.maximum(np.maximum(0.0, -np.expm1(at)), p - (1 - p) * np.exp(at))


def joined(epsilon, mu, at):
    """Randomised response composed with Gaussian noise, without any rounding to the safe side."""
    p = 1 / (1 + math.exp(-epsilon))
    return p * gaussian_deltas(mu, at - epsilon) + (1 - p) * gaussian_deltas(mu, at + epsilon)


class TestPureInMu:
    @pytest.mark.parametrize("epsilon", [1e-3, 0.05, 0.5, 1.0, 3.0, 10.0])
    def test_a_gaussian_dominates(self, epsilon):
        at = np.linspace(-1.2 * epsilon, 1.2 * epsilon, 999)
        mu = math.sqrt(float(module.HALF_PI)) * epsilon
        assert np.all(response(epsilon, at) <= gaussian_deltas(mu, at) * (1 + 1e-9))

    def test_not_by_much(self):
        at = np.linspace(-0.06, 0.06, 999)
        assert np.any(response(0.05, at) > gaussian_deltas(0.99 * math.sqrt(math.pi / 2) * 0.05, at))

    @given(st.floats(1e-6, 40.0))
    @examples(100)
    def test_the_constant(self, epsilon):
        # The least mu: the point half way must be as good a test as randomised response.
        with mp.workdps(60):
            p = 1 / (1 + mp.exp(-mp.mpf(epsilon)))
            least = 2 * mp.sqrt(2) * mp.erfinv(2 * p - 1)
            assert least <= mp.sqrt(mp.mpf(module.HALF_PI.numerator) / module.HALF_PI.denominator) * mp.mpf(epsilon)


class TestBoxes:
    def test_parts_of_delta_add_to_one(self):
        assert module.ALL_IN_MU + sum(module.WITH_PURE.values()) + module.PLAIN_SUM + module.OUTRIGHT == 1

    @pytest.mark.parametrize("epsilon", [0.0, 0.3, 2.0])
    @pytest.mark.parametrize("mu", [0.05, 0.6])
    def test_curve(self, epsilon, mu):
        p = 1 / (1 + mp.exp(-mp.mpf(epsilon)))
        truth = p * oracle.gaussian(mu, 2.5 - mp.mpf(epsilon)) + (1 - p) * oracle.gaussian(mu, 2.5 + mp.mpf(epsilon))
        found = Box(epsilon, mu).delta(2.5)
        assert truth <= found <= truth * (1 + mp.mpf(1e-9)) + mp.mpf(1e-299)

    @given(st.floats(0.01, 100.0), st.floats(1e-12, 0.1))
    @examples(30)
    def test_every_filter_keeps_its_delta(self, epsilon, delta):
        made = Filter.of(Guarantee(epsilon, delta))
        assert made.is_sound()
        assert len(made.boxes) >= 1
        assert Filter.from_dict(json.loads(json.dumps(made.to_dict()))) == made

    def test_boxes_are_no_smaller_than_need_be(self):
        for box in Filter.of(BUDGET).boxes:
            part = 0.5 if box.epsilon == 0 else 1 / 16
            assert Box(box.epsilon, box.mu * 1.001).delta(3.0) > part * 1e-5 > box.delta(3.0) > 0.99 * part * 1e-5

    def test_a_widened_box_is_noticed(self):
        values = Filter.of(BUDGET).to_dict()
        values["boxes"][0]["mu"] *= 1.2
        with pytest.raises(InvalidArgument):
            Filter.from_dict(values)

    def test_a_pure_budget_has_none(self):
        assert Filter.of(Guarantee(1.0)).boxes == ()


def worst(boxes, epsilon, opening):
    """The delta of the best strategy that draws Gaussian noise of mu `opening` first, and then goes for whichever box
    promises most for the loss it met.
    """
    losses = np.linspace(opening**2 / 2 - 12 * opening, opening**2 / 2 + 12 * opening, 20_001)
    density = np.exp(-0.5 * ((losses - opening**2 / 2) / opening) ** 2)
    density /= density.sum()
    rests = [joined(b.epsilon, math.sqrt(b.mu**2 - opening**2), epsilon - losses) for b in boxes if b.mu > opening]
    return float(density @ np.max(rests, axis=0))


class TestCheating:
    """Going for the box that suits the outcomes so far."""

    @pytest.mark.parametrize("budget", [BUDGET, Guarantee(1.0, 1e-6), Guarantee(0.3, 1e-3)])
    @pytest.mark.parametrize("part", [0.2, 0.5, 0.9])
    def test_boxes_hold_together(self, budget, part):
        boxes = Filter.of(budget).boxes
        opening = part * min(box.mu for box in boxes)
        assert worst(boxes, budget.epsilon, opening) <= budget.delta * 0.76  # their parts are three quarters

    def test_boxes_with_all_of_delta_each_would_not(self):
        wide = [module._widest(part, 3.0, 1e-5) for part in (Fraction(0), Fraction(1, 2), Fraction(7, 8))]
        assert worst(wide, 3.0, 0.9 * wide[-1].mu) > 1.05e-5


class TestCosts:
    def test_of_events(self):
        events = [
            LaplaceEvent("look", 1, 10.0, 5),
            LaplaceEvent("counts", 2, 4.0, 5),
            ExponentialEvent("choice", 0.25, 7),
            GaussianEvent("round", 3.0, 30.0, 11),
        ]
        cost = cost_of(events, Guarantee(1.0, 1e-6), {"look"})
        assert (cost.epsilon, cost.delta, cost.dimension, cost.outright) == (1.0, 1e-6, 11, 0.0)
        assert cost.pure == pytest.approx(0.85)
        assert cost.finish == pytest.approx(0.75)
        assert cost.finish_squared == pytest.approx(0.25 + 0.0625)
        assert cost.looks_squared == pytest.approx(0.01)
        assert cost.mu_squared == pytest.approx(9 / 896)
        assert Fraction(cost.mu_squared) >= Fraction(9, 896)
        assert Fraction(cost.looks_squared) >= Fraction(1, 100)

    def test_unknown_events_have_none(self):
        with pytest.raises(InvalidArgument, match="opaque_cost"):
            cost_of([object()], BUDGET)

    def test_opaque(self):
        cost = opaque_cost(Guarantee(1.0, 1e-7))
        assert (cost.pure, cost.finish, cost.outright, cost.mu_squared) == (1.0, 1.0, 1e-7, 0.0)

    def test_bad_values(self):
        for values in ({"pure": -1.0}, {"finish": math.nan}, {"mu_squared": math.inf}, {"dimension": 1.5}):
            with pytest.raises(InvalidArgument):
                Cost(1.0, 0.0, **values)
        with pytest.raises(InvalidArgument):
            Cost.from_dict({"epsilon": 1.0})
        assert Cost.from_dict(pure(0.5).to_dict()) == pure(0.5)

    def test_plans(self):
        with pytest.raises(InvalidArgument):
            Plan(())
        plan = Plan((pure(0.5), Cost(0.5, 1e-7, mu_squared=0.01, dimension=3)))
        assert plan.most == pure(0.5, mu_squared=0.01, dimension=3) or plan.most.delta == 1e-7
        assert all(way.within(plan.most) for way in plan.ways)

    def test_what_was_drawn_must_be_one_way(self):
        promise = Guarantee(0.5, 1e-7)
        laplace = LaplaceEvent("counts", 1, 2.0, 3)
        noise = GaussianEvent("round", 1.0, 20.0, 3)
        plan = Plan((cost_of([laplace], promise), cost_of([noise], promise)))
        assert plan.settled([laplace], promise).mu_squared == 0
        assert plan.settled([noise], promise).finish == 0
        with pytest.raises(PrivacyViolation):  # each is within the largest of all ways, both together are no way
            plan.settled([laplace, noise], promise)
        with pytest.raises(PrivacyViolation):
            plan.settled([dataclasses.replace(laplace, scale=1.99)], promise)
        assert Plan((opaque_cost(promise),), known=False).settled([laplace], promise) == opaque_cost(promise)


def many(cost, budget=BUDGET):
    """How many releases of one cost fit."""
    filter_, plan = Filter.of(budget), Plan((cost,))
    composition = filter_.first_composition(plan)
    count, spent = 0, total([])
    while count < 2000 and filter_.fits(composition, spent, plan):
        count, spent = count + 1, spent.with_cost(cost)
    return count, composition


class TestFits:
    def test_gaussian_releases_cost_what_the_theorem_says(self):
        count, composition = many(gaussian(0.3, 1e-6))
        ideal = gaussian_mu(3.0, 1e-5) ** 2 / gaussian_mu(0.3, 1e-6) ** 2
        assert composition == "tight"
        assert 0.92 * ideal < count < ideal
        assert count > 8 * 10  # the plain sum would have had 10

    def test_pure_releases_are_no_dearer_than_their_sum(self):
        assert many(pure(0.3))[0] == 10
        assert many(pure(0.1), Guarantee(0.3))[0] == 3  # although 0.1 is above a tenth
        assert many(pure(0.1), Guarantee(0.3, 1e-6))[0] == 3

    def test_many_small_pure_releases_cost_less(self):
        assert many(pure(0.01))[0] > 2 * 300

    def test_one_release_may_take_all(self):
        for budget in (BUDGET, Guarantee(1.0, 1e-6), Guarantee(1.0)):
            whole = gaussian(budget.epsilon, budget.delta) if budget.delta else pure(budget.epsilon)
            assert many(whole, budget) == (1, "plain")

    def test_a_plain_ledger_sums(self):
        filter_ = Filter.of(BUDGET)
        first = gaussian(2.9, 9.9e-6)
        assert filter_.first_composition(Plan((first,))) == "plain"
        assert filter_.fits("plain", total([first]), Plan((pure(0.1),)))
        assert filter_.fits("plain", total([first]), Plan((gaussian(0.1, 1e-7),)))
        assert not filter_.fits("plain", total([first]), Plan((gaussian(0.1, 2e-7),)))
        assert not filter_.fits("plain", total([first]), Plan((pure(0.11),)))

    def test_small_deltas_leave_the_plain_sum(self):
        filter_ = Filter.of(BUDGET)
        done = [gaussian(1.0, 1e-8), pure(1.0)]
        assert filter_.fits("tight", total(done), Plan((gaussian(1.0, 1e-8), pure(1.0))))
        assert not filter_.fits("tight", total(done), Plan((gaussian(1.0, 1e-8), pure(1.01))))

    def test_every_way_must_fit(self):
        filter_ = Filter.of(BUDGET)
        done = [gaussian(2.8, 1e-6)]
        assert filter_.fits("tight", total(done), Plan((gaussian(0.3, 1e-6),)))
        assert not filter_.fits("tight", total(done), Plan((gaussian(0.3, 1e-6), pure(2.0))))

    def test_outright_deltas_and_coordinates_are_bounded(self):
        filter_ = Filter.of(BUDGET)
        assert filter_.fits("tight", total([]), Plan((pure(0.1, outright=1.2e-6),)))
        assert not filter_.fits("tight", total([]), Plan((pure(0.1, outright=1.3e-6),)))
        assert not filter_.fits("tight", total([]), Plan((pure(0.1, dimension=2**65),)))

    @pytest.mark.slow
    @given(
        st.lists(
            st.tuples(st.sampled_from(["pure", "gaussian", "looks"]), st.floats(0.001, 1.0), st.floats(1e-9, 1e-6)),
            max_size=30,
        )
    )
    @examples(30)
    def test_less_always_fits(self, asked):
        filter_ = Filter.of(BUDGET)
        done = []
        for kind, epsilon, delta in asked:
            cost = {
                "pure": pure(epsilon),
                "gaussian": gaussian(epsilon, delta),
                "looks": dataclasses.replace(
                    gaussian(epsilon, delta), looks_squared=epsilon**2 / 100, pure=epsilon / 9
                ),
            }[kind]
            if filter_.fits("tight", total(done), Plan((cost,))):
                done.append(cost)
        assert filter_.holds("tight", total(done))
        for place in range(len(done)):
            assert filter_.holds("tight", total(done[:place] + done[place + 1 :]))
        spent = total(done)
        assert 0.0 <= filter_.as_epsilon("tight", spent) <= BUDGET.epsilon

    def test_what_is_shown_as_spent(self):
        filter_ = Filter.of(BUDGET)
        ten = filter_.as_epsilon("tight", total([gaussian(0.3, 1e-6)] * 10))
        assert 0.8 < ten < 1.0
        assert filter_.as_epsilon("tight", total([pure(0.3)] * 4)) == pytest.approx(1.2)
        assert filter_.as_epsilon("plain", total([gaussian(0.3, 1e-6)] * 4)) == pytest.approx(1.2)
        assert filter_.as_epsilon("tight", total([])) == 0.0
