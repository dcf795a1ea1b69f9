"""What a release says of itself, and its one warning."""

from __future__ import annotations

import warnings
from dataclasses import replace

import pyarrow as pa
import pytest

import crowdgram
from crowdgram import Quantity
from crowdgram.errors import AccuracyWarning
from crowdgram.mechanisms.estimate import Total
from crowdgram.present.wording import coverage, sentences, totals


def tiny(**more):
    table = pa.table({"user": list(range(30)), "group": ["a"] * 30, "item": [n % 3 for n in range(30)]})
    options = {"user": "user", "item": "item", "domain": range(40), "epsilon": 0.05, "mechanism": "laplace"}
    return crowdgram.release(table, **{**options, "max_rows_per_user": 1, **more})


def test_a_release_of_noise_warns_once():
    """30 users under noise of 20 for each of forty items: their sum is 10 standard deviations off before it could seem
    to be more.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        one = tiny()
    ours = [each for each in caught if issubclass(each.category, AccuracyWarning)]
    assert one.too_little
    assert len(ours) == 1
    assert ours[0].filename == __file__
    assert f"predicted l1 error is {one.predicted_l1_error:.2f}" in str(ours[0].message)
    assert "The release is mostly noise" in one._repr_html_()
    assert (one.upper > 0).all()


def test_a_release_of_more_than_noise_does_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error", AccuracyWarning)
        assert not tiny(epsilon=50.0).too_little
        assert tiny(epsilon=50.0, by="group", groups=["a"]).too_little == ()


def test_groups_with_nothing_are_warned_of_by_name():
    with pytest.warns(AccuracyWarning, match="2 of 3 groups are mostly noise.*'b', 'c'"):
        made = tiny(epsilon=50.0, by="group", groups=["a", "b", "c"])
    assert made.too_little == ("b", "c")
    assert "2 of 3 groups are mostly noise" in made._repr_html_()


def test_a_warning_made_an_error_comes_after_the_release_is_stored(tmp_path):
    path = tmp_path / "data.ledger"
    crowdgram.Ledger.create(path, 1.0, 1e-5)
    with warnings.catch_warnings():
        warnings.simplefilter("error", AccuracyWarning)
        with pytest.raises(AccuracyWarning):
            tiny(ledger=path)
    assert crowdgram.recover(path).too_little


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::crowdgram.errors.AccuracyWarning")
@pytest.mark.parametrize(
    ("more", "covered"),
    [
        ({"max_rows_per_user": None}, "the table's own answer"),
        ({"max_rows_per_user": 1}, "the table's answer with the given bound"),
        ({"weight": "users"}, "the table's own answer"),
        ({"mechanism": "auto", "max_rows_per_user": 2}, "the table's answer with the given bound"),
        ({"mechanism": "sample-one", "max_rows_per_user": 2}, "the table's answer with the given bound"),
        ({"mechanism": "paper", "delta": 1e-6}, "the answer for users who are alike"),
    ],
)
def test_what_an_interval_covers(more, covered):
    """A bound that is given and the paper's model each narrow the question."""
    made = tiny(epsilon=50.0 if "delta" not in more else 1.0, **more)
    assert f"A 95% interval covers {covered}" in coverage(made)
    assert coverage(made) == sentences(made)[0]


def test_totals_are_said_or_said_to_be_unknown():
    one = tiny(epsilon=50.0)
    total = Total(1234.4, row_bound=40)
    users = Quantity(200.2, 180.4, 220.0, 0.95)
    said = totals(replace(one, total=total, users=users))
    assert said[0] == "Users: 200 (95% interval 180 to 220)."
    assert said[1].startswith("Rows, at most 40 of each user: 1,234 (95% interval ")
    assert totals(replace(one, total=replace(total, row_bound=None), users=users))[1].startswith("Rows: 1,234 (")
    assert totals(replace(one, total=total, users=None))[-1] == "How many users they are of was not measured."
    assert totals(replace(one, total=None, users=None)) == ["How many users and rows there are was not measured."]
    by_users = replace(one, weight="users", total=total, users=users)
    assert totals(by_users)[1] == "How many rows there are was not measured, as users weigh the same."
    assert totals(replace(by_users, users=None))[0].startswith(
        "Users, each by the share of their rows that is here: 1,2"
    )
    for each in totals(by_users):
        assert each in by_users._repr_html_()
