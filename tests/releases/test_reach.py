"""`crowdgram.reach`: from a table to how many users have each item."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import crowdgram
from crowdgram import Ledger, Other, Reach
from crowdgram.errors import AccuracyWarning, BudgetExceeded, InvalidArgument, PrivacyWarning
from crowdgram.mechanisms import ItemUsers
from crowdgram.privacy import Guarantee
from crowdgram.releases.pipeline import run
from crowdgram.releases.query import Query
from crowdgram.stages import Stage

EXACT = 100.0
"""An epsilon at which noise of a few items, of scale 0.05, is far less than half a user."""
ASKED = {"user": "user", "item": "page", "domain": ["a", "b", "c", "never"]}


def table():
    """30 users have a, many times; every other one b; one in three c; two an item outside the domain."""
    rows = [(user, page) for user in range(30) for page in ["a"] * (user + 1) + ["b"] * (user % 2) * 3]
    rows += [(user, "c") for user in range(0, 30, 3)] + [(1, "x"), (2, "x"), (2, "y"), (None, "a"), (3, None)]
    return pd.DataFrame(rows, columns=["user", "page"]).astype({"user": "Int64"})


def exact(source=None, **more):
    with pytest.warns(PrivacyWarning):
        return crowdgram.reach(table() if source is None else source, **{**ASKED, "epsilon": EXACT, **more})


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
def test_users_are_counted_once_for_each_item(adjacency):
    made = exact(adjacency=adjacency)
    assert isinstance(made, Reach)
    assert made.items == ("a", "b", "c", "never")
    assert np.abs(made.counts - [30, 15, 10, 0]).max() < 1
    assert made.users.value == pytest.approx(30, abs=1)
    assert made.shares[0] == pytest.approx(1, abs=0.05)
    assert made.shares.sum() > 1.5
    assert made.guarantee.adjacency.value == adjacency
    assert made.guarantee.delta == 0


def test_the_other_item_is_users_who_have_any_of_it():
    made = exact(other="rest")
    assert made.other == Other("rest")
    assert made.estimate(Other("rest")).users == pytest.approx(2, abs=1)


def test_a_count_of_nothing_gives_no_item():
    rows = pd.DataFrame({"user": [1, 2, 3, 4], "page": ["a"] * 4, "n": [5, 0, -2, 10**12]})
    made = exact(rows, count="n", domain=["a", "b"])
    assert made.estimate("a").users == pytest.approx(2, abs=0.5)


def test_a_users_rare_items_count_beside_huge_ones():
    """No limit on rows takes them away."""
    rows = pd.DataFrame({"user": [1, 1, 2], "page": ["a", "b", "a"], "n": [2**40, 1, 1]})
    made = exact(rows, count="n", domain=["a", "b"], max_items_per_user=2)
    assert made.estimate("b").users == pytest.approx(1, abs=0.5)


def test_filters_several_columns_and_expressions():
    rows = pd.DataFrame({"u": [1, 1, 2, 3], "x": ["A", "b", "a", "a"], "y": [1, 1, 2, 2]})
    asked = {"user": "u", "item": [{"x": "lower(x)"}, "y"], "where": "u < 3"}
    made = exact(rows, **asked, domain={"x": ["a", "b"], "y": [1, 2]}, max_items_per_user=4)
    assert made.item_columns == ("x", "y")
    assert made.items == (("a", 1), ("a", 2), ("b", 1), ("b", 2))
    assert np.abs(made.counts - [1, 1, 1, 0]).max() < 0.6


def test_items_are_found():
    rows = pd.DataFrame([(user, page) for user in range(3000) for page in ("home", "help")] + [(7, "secret")])
    rows.columns = ["user", "page"]
    made = crowdgram.reach(rows, user="user", item="page", epsilon=2, delta=1e-6)
    assert made.items[:2] == ("help", "home")
    assert made.items[2:] == (Other("other"),)
    assert made.threshold_delta > 0
    assert made.lower[0] <= 3000 <= made.upper[0] + 60  # 60: far more than noise
    assert "were found in the table" in made._repr_html_()


def test_a_warning_if_it_is_mostly_noise():
    with pytest.warns(AccuracyWarning, match="the release is mostly noise"):
        made = crowdgram.reach(table(), **ASKED, epsilon=0.01)
    assert made.too_little


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"domain": None}, "delta=0: without domain"),
        ({"max_items_per_user": 0}, "max_items_per_user=0: needs to be a whole number"),
        ({"epsilon": 0}, "epsilon=0"),
        ({"epsilon": 1e-9}, "epsilon=1e-09, delta=0: needs an epsilon"),
        ({"delta": 0.5}, "delta=0.5: needs to be below"),
        ({"delta": 1e-300}, "such as 1e-6, or delta=0"),
        ({"other": " "}, "other=' '"),
        ({"progress": 3}, "progress=3"),
    ],
)
def test_bad_arguments_are_refused_before_a_table_is_opened(changed, said):
    with pytest.raises(InvalidArgument, match=said):
        crowdgram.reach("nowhere.parquet", **{**ASKED, "epsilon": 1.0, **changed})


def test_a_ledger_is_charged_and_holds_the_reach(tmp_path):
    ledger = Ledger.create(tmp_path / "l.ledger", 2.0, 1e-5)
    stages = []
    made = crowdgram.reach(table(), **ASKED, epsilon=1.0, delta=1e-6, ledger=ledger, progress=stages.append)
    (entry,) = ledger.history()
    assert (entry.mechanism, entry.weight, entry.finished) == ("reach", "users", True)
    assert crowdgram.recover(ledger) == made
    assert stages.index(Stage.CHARGING) < stages.index(Stage.COUNTING)
    with pytest.raises(BudgetExceeded) as refused:
        crowdgram.reach(table(), **ASKED, epsilon=2.0, delta=1e-6, ledger=ledger)
    assert 0 < refused.value.remaining < 2
    assert "mechanism='reach'" in str(refused.value)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("delta", "given", "adjacency"), [(0.0, None, "replace"), (1e-7, None, "add-remove"), (1e-7, 2, "replace")]
)
def test_what_is_drawn_keeps_to_the_plan(tmp_path, delta, given, adjacency):
    """`settle` compares the events with what was charged, also if items are found."""
    rows = pd.DataFrame([(user, page) for user in range(300) for page in range(user % 7 + 1)], columns=["user", "page"])
    for number, domain in enumerate([list(range(7)), *([None] if delta else [])]):
        ledger = Ledger.create(tmp_path / f"{number}.ledger", 3.0, 1e-5, adjacency)
        asked = {"user": "user", "item": "page", "epsilon": 1.0, "delta": delta, "adjacency": adjacency}
        crowdgram.reach(rows, **asked, domain=domain, max_items_per_user=given, ledger=ledger)
        assert ledger.history()[0].finished


def test_stages_do_not_depend_on_the_table():
    seen = []
    for rows in (table(), table()[:0]):
        stages = []
        query = Query(
            user="user",
            item="page",
            domain=["a", "b"],
            guarantee=Guarantee(1.0, 1e-6),
            weight="users",
            mechanism=ItemUsers(),
        )
        run(rows.astype({"page": "string"}), query, progress=stages.append)
        seen.append(stages)
    assert seen[0] == seen[1]
