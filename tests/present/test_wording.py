"""What a release says of itself, and its one warning."""

from __future__ import annotations

import warnings

import pyarrow as pa
import pytest

import crowdgram
from crowdgram.errors import AccuracyWarning


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
    assert str(ours[0].message).startswith(f"too little to say: predicted l1 error {one.predicted_l1_error:.2f}, of at")
    assert "Too little to say" in one._repr_html_()
    assert (one.upper > 0).all()


def test_a_release_of_more_than_noise_does_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error", AccuracyWarning)
        assert not tiny(epsilon=50.0).too_little
        assert tiny(epsilon=50.0, by="group", groups=["a"]).too_little == ()


def test_groups_with_nothing_are_warned_of_by_name():
    with pytest.warns(AccuracyWarning, match="too little to say of 2 of 3 groups, .*: 'b', 'c'"):
        made = tiny(epsilon=50.0, by="group", groups=["a", "b", "c"])
    assert made.too_little == ("b", "c")
    assert "Too little to say of 2 of 3 groups" in made._repr_html_()


def test_a_warning_made_an_error_comes_after_the_release_is_stored(tmp_path):
    path = tmp_path / "data.ledger"
    crowdgram.Ledger.create(path, 1.0, 1e-5)
    with warnings.catch_warnings():
        warnings.simplefilter("error", AccuracyWarning)
        with pytest.raises(AccuracyWarning, match="too little to say"):
            tiny(ledger=path)
    assert crowdgram.recover(path).too_little
