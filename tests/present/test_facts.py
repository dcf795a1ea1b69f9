"""Facts of a release for reviewers: the parts of its budget, its original parameters, and what its ledger says."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest

import crowdgram
from crowdgram import GroupedRelease, Guarantee, Ledger
from crowdgram.errors import InvalidArgument
from crowdgram.present.spending_parts import mu_of, parts_of_budget, pure_epsilon_of, shares_of_events
from crowdgram.present.wording import chosen, guess, predicted_in_words
from crowdgram.privacy import (
    Adjacency,
    GaussianEvent,
    LaplaceEvent,
    SelectionEvent,
    SparseLaplaceEvent,
    ThresholdEvent,
    delta_spent,
)
from crowdgram.privacy.accounting import gaussian_event_mu

from ..results.synthetic import grouped, made
from ..results.test_reach import made as reach_of

LOOK = LaplaceEvent("users by rows, first look", 1, 10.0, 5)  # epsilon 0.1
ITEMS = LaplaceEvent("counts by item", 9, 10.0, 5)  # epsilon 0.9
ROUND = GaussianEvent("round 1: level 1", 1000.0, 4000.0, 5)
FOUND = GaussianEvent("items, round 2", 1000.0, 2000.0, 5)
THRESHOLD = ThresholdEvent("threshold for items", 1e-7)


def release(**changes):
    return replace(made(np.array([0.5, 0.3, 0.2]), np.full(3, 1e-3), "abc", ("page",)), **changes)


class TestBudget:
    def test_pure_draws_add_up_by_epsilon(self):
        assert shares_of_events([LOOK, ITEMS]) == pytest.approx([0.1, 0.9])
        assert [(part.name, part.draws) for part in parts_of_budget([LOOK, ITEMS])] == [
            ("Pilot queries", 1),
            ("Measuring the items", 1),
        ]

    def test_gaussian_draws_add_up_by_squares(self):
        shares = shares_of_events([LOOK, THRESHOLD, FOUND, ROUND])
        squares = [math.pi / 2 * 0.1**2, 0.0, gaussian_event_mu(FOUND) ** 2, gaussian_event_mu(ROUND) ** 2]
        assert shares == pytest.approx(np.array(squares) / sum(squares))
        parts = parts_of_budget([LOOK, THRESHOLD, FOUND, ROUND])
        assert [part.name for part in parts] == ["Pilot queries", "Finding the items", "Measuring the items"]
        assert [part.draws for part in parts] == [1, 2, 1]
        assert sum(part.share for part in parts) == pytest.approx(1.0)
        assert mu_of([LOOK, FOUND, ROUND]) == pytest.approx(math.hypot(0.5, 0.25), rel=1e-5)
        assert pure_epsilon_of([LOOK, FOUND, THRESHOLD]) == pytest.approx(0.1)

    def test_families_count_by_what_a_user_changes(self):
        choices, sparse = SelectionEvent("a", 0.1, 5, 100, 4), SparseLaplaceEvent("b", 1, 10.0, 100, 12)
        assert shares_of_events([choices, sparse]) == pytest.approx([0.25, 0.75])

    def test_nothing_that_costs(self):
        assert shares_of_events([THRESHOLD]) == [0.0]


class TestFacts:
    def test_all_of_it_is_plain(self):
        for result in (release(), grouped(), reach_of()):
            found = result.facts()
            assert json.loads(json.dumps(found, allow_nan=False)) == found
        assert GroupedRelease(grouped().joint).facts()["question"] == "Share of all rows by page for each country"

    def test_figures(self):
        found = release(parameters={"released_on": "2026-11-17", "max_rows_per_user": 7}).facts()
        assert (found["epsilon"], found["delta"]) == (1.0, 1e-6)
        assert (found["unit"], found["adjacency"]) == ("user", "add-remove")
        assert found["released_on"] == "2026-11-17"
        assert found["pure_epsilon"] == 0.0
        assert found["mu"] == pytest.approx(2.0**30 / 1e10, rel=1e-5)
        assert "At most 7 rows of one user count" in found["contribution_bounds"]
        event = release().events
        assert delta_spent(event, found["epsilon_at_common_delta"]) <= 1e-5
        assert delta_spent(event, found["epsilon_at_common_delta"] * (1 - 1e-9)) > 1e-5

    def test_no_epsilon_at_the_common_delta(self):
        found = release(events=(ThresholdEvent("threshold for items", 1e-4), ROUND)).facts()
        assert found["epsilon_at_common_delta"] is None
        assert "hidden by a threshold" in found["small_items"]

    def test_what_is_not_protected_depends_on_what_was_given(self):
        def told(**parameters):
            return " ".join(release(parameters=parameters).facts()["unprotected"])

        assert "list of items, which are taken to be public" in told()
        assert "bound, which was given" in told(row_bound="given")
        assert "The prior" in told(prior="given")
        assert "this period" in told(period="2026-11")

    def test_a_ledger(self, tmp_path):
        table = {"user": list(range(50)), "item": ["a", "b"] * 25}
        import pyarrow as pa

        ledger = Ledger.create(tmp_path / "l", 2.0, 1e-6)
        one = crowdgram.release(
            pa.table(table), user="user", item="item", epsilon=0.5, domain=["a", "b"], mechanism="laplace",
            max_rows_per_user=1, ledger=ledger,
        )  # fmt: skip
        found = one.facts(ledger=ledger)["ledger"]
        assert (found["epsilon"], found["releases"], found["finished"], found["every"]) == (2.0, 1, 1, None)
        assert found["spent"] == pytest.approx(0.5)
        with pytest.raises(InvalidArgument, match="no charge of this guarantee"):
            replace(one, guarantee=Guarantee(0.7)).facts(ledger=ledger)
        with pytest.raises(InvalidArgument, match="is for adjacency"):
            replace(one, guarantee=Guarantee(0.5, 0.0, Adjacency.REPLACE)).facts(ledger=ledger)


class TestWords:
    @pytest.mark.parametrize(
        ("epsilon", "delta", "share"), [(1.0, 0.0, "73.2%"), (0.1, 0.0, "52.5%"), (4, 1e-6, "98.3%"), (50, 0, "100%")]
    )
    def test_a_guess(self, epsilon, delta, share):
        assert f"guesses right at most {share} of the time" in guess(Guarantee(epsilon, delta))
        right = (math.exp(epsilon) + delta) / (math.exp(epsilon) + 1)
        assert float(share[:-1]) >= 100 * right  # it is a bound

    def test_a_guess_about_rows(self):
        assert "has these rows or those" in guess(Guarantee(1.0, adjacency=Adjacency.REPLACE))

    def test_the_predicted_error_is_what_would_have_to_move(self):
        assert predicted_in_words(release(predicted_l1_error=0.1)).startswith("About 5.0% of the whole")
        assert predicted_in_words(release(predicted_l1_error=0.0)).startswith("About 0%")

    @pytest.mark.parametrize(
        ("mechanism", "parameters", "words"),
        [
            ("auto", {"branch": "rounds", "rounds": 3}, ("in 3 rounds", "pilot queries predicted a smaller error")),
            ("adaptive", {"branch": "rounds", "rounds": 3}, ("in 3 rounds", "if users are alike.")),
            ("auto", {"branch": "laplace", "max_rows_per_user": 8}, ("at most 8 rows", "smallest predicted error")),
            ("auto", {"branch": "histogram"}, ("one histogram", "few items each")),
            ("gaussian", {"max_rows_per_user": 1}, ("at most 1 row of", "Gaussian noise", "was asked for")),
            ("laplace", {"row_bound": "given", "max_rows_per_user": 5}, ("at most 5 rows", "was given")),
            ("laplace", {}, ("Laplace noise", "weigh the same")),
            ("sample-one", {"max_rows_per_user": 5}, ("One row of each user", "was asked for")),
            ("paper", {"regime": "dense"}, ("dense case", "users who are alike")),
        ],
    )
    def test_what_was_chosen_and_why_in_two_sentences(self, mechanism, parameters, words):
        told = chosen(release(mechanism=mechanism, parameters=parameters))
        assert all(word in told for word in words)
        assert told.count(". ") == 1
        assert told.endswith(".")
